// Sets of the symbolic heap, and the order that CPython has them in.
#include "cpython/set_layout.h"
#include "values/held_keys.h"
#include "values/trace.h"

namespace cdynamo {

void Trace::fillSet(SetValue* s, PyObject* set) {
  PyObject* item;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(set, &at, &item, &hash);) {
    keep(ObjectRef::share(item));
    DictKey k{heldKey(*this, item), item, hash};
    if (isHashedByPython(item)) {
      k = {wrap(item, sources.pinned(item)), nullptr, hash, true};
      journal.set(s->asks, true);
    }
    s->index[k] = s->items.size();
    s->items.push_back(k);
  }
}

namespace {

// True where items that the program hashes have one hash: a lookup of one would run the __eq__ of another.
bool asksToCompare(PyObject* set) {
  std::unordered_map<Py_hash_t, int> sameHash;
  std::vector<Py_hash_t> asked;
  PyObject* item;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(set, &at, &item, &hash);) {
    sameHash[hash]++;
    if (isHashedByPython(item)) asked.push_back(hash);
  }
  return std::any_of(asked.begin(), asked.end(), [&](Py_hash_t h) { return sameHash[h] > 1; });
}

}  // namespace

void Trace::load(SetValue* s) {
  if (s->loaded) return;
  ObjectRef frozen = checked(PyFrozenSet_New(s->real.get()));
  if (s->source) {
    if (asksToCompare(s->real.get()))
      unsupported(BreakReason::HashOrCompare, std::string("a set with items that have one hash and an __eq__ of their own"));
    facts.typeIs(s->source, s->type);
    facts.setEquals(s->source, frozen.get());
  }
  fillSet(s, s->real.get());
  s->loaded = true;
  journal.onRollback([s] {
    s->loaded = false;
    s->items.clear();
    s->index.clear();
  });
}

void Trace::pinItem(const DictKey& k) {
  if (k.value && k.constant && isTensor(k.value)) unsupported(BreakReason::TensorKey, "a tensor as item of an existing set");
  pinKey(k);
}

bool Trace::setHas(SetValue* s, const DictKey& given) {
  load(s);
  const DictKey k = resolve(s, given);
  if (s->real) pinItem(k);
  return s->index.count(k) != 0;
}

void Trace::note(SetValue* s, SetValue::Change change) {
  s->history.push_back(change);
  journal.onRollback([s] { s->history.pop_back(); });
}

void Trace::setAdd(SetValue* s, const DictKey& k) {
  if (setHas(s, k)) return;
  insert(s, k);
  note(s, {SetValue::Change::Add, k});
}

void Trace::setMerge(SetValue* s, PyObject* frozenset) {
  load(s);
  ObjectRef items = checked(PySequence_Tuple(frozenset));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++) {
    DictKey k = keyOf(realShared(PyTuple_GET_ITEM(items.get(), i)));
    if (!setHas(s, k)) insert(s, k);
  }
  note(s, {SetValue::Change::Merge, {}, keep(ObjectRef::share(frozenset))});
}

void Trace::insert(SetValue* s, const DictKey& k) {
  touch(s);
  if (k.constant) keep(ObjectRef::share(k.constant));
  if (k.asked && !s->asks) journal.set(s->asks, true);
  s->index[k] = s->items.size();
  s->items.push_back(k);
  journal.onRollback([s, k] {
    s->index.erase(k);
    s->items.pop_back();
  });
}

bool Trace::setDiscard(SetValue* s, const DictKey& given) {
  load(s);
  const DictKey k = resolve(s, given);
  if (s->real) pinItem(k);
  if (!s->index.count(k)) return false;
  touch(s);
  journal.onRollback([s, items = s->items, index = s->index] {
    s->items = items;
    s->index = index;
  });
  note(s, {SetValue::Change::Discard, k});
  size_t at = s->index[k];
  s->items.erase(s->items.begin() + static_cast<ptrdiff_t>(at));
  s->index.clear();
  for (size_t i = 0; i < s->items.size(); i++) s->index[s->items[i]] = i;
  return true;
}

// ---- CPython's order -------------------------------------------------------------------------------------------------

namespace {

// Compares and hashes in each call as it does now.
bool isStable(Trace& t, const DictKey& k) { return k.constant && k.value && (isReal(k.value) || t.constant(k.value)); }

void redo(PyObject* set, const SetValue::Change& c) {
  if (c.what == SetValue::Change::Add) {
    checkedStatus(PySet_Add(set, c.key.constant));
  } else if (c.what == SetValue::Change::Discard) {
    checkedStatus(PySet_Discard(set, c.key.constant));
  } else if (c.what == SetValue::Change::Merge) {
    ObjectRef done = checked(PyObject_CallMethod(set, "update", "O", c.merged));
  } else {
    std::vector<PyObject*> args{set};
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(c.merged); i++) args.push_back(PyTuple_GET_ITEM(c.merged, i));
    ObjectRef done = checked(PyObject_Vectorcall(PyTuple_GET_ITEM(c.merged, 0), args.data(), args.size(), nullptr));
  }
}

}  // namespace

SetValue* Trace::setMade(ObjectRef made) {
  auto* s = make<SetValue>();
  s->type = Py_TYPE(made.get());
  fillSet(s, made.get());
  s->start = std::move(made);
  return s;
}

ObjectRef Trace::setLayout(SetValue* s) {
  load(s);
  if (!s->replayable) return nullptr;
  bool ordered = s->items.size() > 1 || !s->history.empty();
  if (s->real && s->source && ordered && !s->orderGuarded) {
    ObjectRef clone = checked(cloneSet(s->real.get())), order = checked(PySequence_Tuple(clone.get()));
    facts.setOrder(s->source, order.get());
    journal.set(s->orderGuarded, true);
  }
  if (s->asks) return nullptr;
  for (const SetValue::Change& c : s->history)
    if (c.what < SetValue::Change::Merge && !isStable(*this, c.key)) return nullptr;
  PyObject* base = s->start ? s->start.get() : s->real.get();
  ObjectRef made = checked(base ? cloneSet(base) : PyType_IsSubtype(s->type, &PyFrozenSet_Type) ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
  for (const SetValue::Change& c : s->history) redo(made.get(), c);
  return made;
}

ObjectRef Trace::setCall(SetValue* s, PyObject* method, const std::vector<PyObject*>& args) {
  ObjectRef set = setLayout(s);
  CD_CHECK(set, "a call on a set whose order is not known");
  std::vector<PyObject*> all{set.get()};
  all.insert(all.end(), args.begin(), args.end());
  ObjectRef answer = native(*this, PyObject_Vectorcall(method, all.data(), all.size(), nullptr));
  ObjectRef call = checked(PyTuple_New(static_cast<Py_ssize_t>(all.size())));
  PyTuple_SET_ITEM(call.get(), 0, ObjectRef::share(method).release());
  for (size_t i = 0; i < args.size(); i++) PyTuple_SET_ITEM(call.get(), static_cast<Py_ssize_t>(i + 1), ObjectRef::share(args[i]).release());
  touch(s);
  note(s, {SetValue::Change::Call, {}, keep(std::move(call))});
  journal.onRollback([s, items = s->items, index = s->index] {
    s->items = items;
    s->index = index;
  });
  // Keys that stay are the values they were.
  auto before = std::move(s->index);
  auto values = std::move(s->items);
  s->index.clear();
  s->items.clear();
  fillSet(s, set.get());
  for (DictKey& k : s->items)
    if (auto found = before.find(k); found != before.end()) k = values[found->second];
  return answer;
}

}  // namespace cdynamo
