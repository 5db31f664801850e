// Reading and writing lists, tuples, dicts and cells of the symbolic heap.
#include <algorithm>

#include "cpython/compat.h"
#include "source/evaluate.h"
#include "source/open_ids.h"
#include "torch/bridge.h"
#include "torch/types.h"
#include "values/held_keys.h"
#include "values/trace.h"

namespace cdynamo {

bool DictKeyEqual::operator()(const DictKey& a, const DictKey& b) const {
  if (a.constant && b.constant) {
    if (a.constant == b.constant) return true;
    if (a.hash != b.hash || isTensor(a.constant) || isTensor(b.constant)) return false;
    int equal = PyObject_RichCompareBool(a.constant, b.constant, Py_EQ);
    if (equal < 0) PyErr_Clear();
    return equal > 0;
  }
  return a.value == b.value;
}

bool isMadeAnew(PyObject* object) { return PyExceptionInstance_Check(object) || Py_TYPE(object) == &PyBaseObject_Type; }

bool isEnumMember(PyObject* object) {
  static PyObject* enumType = [] {
    ObjectRef module = ObjectRef::steal(PyImport_ImportModule("enum"));
    PyObject* type = module ? PyObject_GetAttrString(module.get(), "Enum") : nullptr;
    if (!type) PyErr_Clear();
    return type;
  }();
  return enumType && PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(enumType));
}

void Trace::touch(HeapValue* v) {
  if (bodySerial) {
    HeapValue* owner = v->kind == Kind::Dict && as<DictValue>(v)->instance ? as<DictValue>(v)->instance : holderOf(v);
    if (v->real || owner->real || owner->serial < bodySerial) wroteOutsideBody = true;
  }
  writes++;
  if (!v->real) return;
  if (orderedAfter_) unsupported(BreakReason::UnsupportedMutation, "a change of an existing object after output that could show its order");
  if (v->mutated) return;
  journal.set(v->mutated, true);
  mutated_.push_back(v);
  journal.onRollback([this] { mutated_.pop_back(); });
}

// ---- lists and tuples ------------------------------------------------------------------------------------------------

void Trace::load(ListValue* l) {
  if (l->loaded) return;
  PyObject* object = l->real.get();
  if (l->type == dequeType()) {
    ObjectRef snapshot = checked(PySequence_List(object));
    Py_ssize_t n = PyList_GET_SIZE(snapshot.get());
    static PyObject* maxlenName = PyUnicode_InternFromString("maxlen");
    ObjectRef bound = checked(PyObject_GetAttr(object, maxlenName));
    if (l->source) {
      facts.typeIs(l->source, l->type);
      facts.length(l->source, n);
      constant(wrap(bound.get(), sources.attr(l->source, maxlenName)));
    }
    if (bound.get() != Py_None) l->maxlen = PyLong_AsLongLong(bound.get());
    std::vector<Value*> items;
    for (Py_ssize_t i = 0; i < n; i++)
      items.push_back(wrap(PyList_GET_ITEM(snapshot.get(), i), sources.dequeItem(l->source, static_cast<int32_t>(i))));
    journal.set(l->loaded, true);
    l->items = std::move(items);
    return;
  }
  if (l->source) {
    facts.typeIs(l->source, l->type);
    facts.length(l->source, PyList_GET_SIZE(object));
  }
  std::vector<Value*> items;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); i++)
    items.push_back(wrap(PyList_GET_ITEM(object, i), sources.sequenceItem(l->source, static_cast<int32_t>(i))));
  journal.onRollback([l, appended = l->items] {
    l->loaded = false;
    l->items = appended;
  });
  items.insert(items.end(), l->items.begin(), l->items.end());
  l->loaded = true;
  l->items = std::move(items);
}

void Trace::load(TupleValue* t) {
  if (t->loaded) return;
  PyObject* object = t->real.get();
  if (t->source) {
    facts.typeIs(t->source, t->type);
    facts.length(t->source, PyTuple_GET_SIZE(object));
  }
  std::vector<Value*> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
    items.push_back(wrap(PyTuple_GET_ITEM(object, i), sources.sequenceItem(t->source, static_cast<int32_t>(i))));
  journal.set(t->loaded, true);
  t->items = std::move(items);
}

namespace {

// An existing object whose death a weak reference shows, or that runs code when it dies: it must die when the program lets go of it.
bool isWatched(const Value* v) {
  PyObject* object = v->kind == Kind::Instance && v->source ? static_cast<const InstanceValue*>(v)->real.get() : nullptr;
  return object && (Py_TYPE(object)->tp_finalize || hasWeakReferences(object));
}

// v leaves a container that exists.
void checkLetGo(const Value* v) {
  if (v && isWatched(v))
    unsupported(BreakReason::UnsupportedMutation, std::string("taking a ") + Py_TYPE(static_cast<const InstanceValue*>(v)->real.get())->tp_name +
                                                      ", whose death can be seen, out of a container");
}

}  // namespace

void Trace::setItems(ListValue* l, std::vector<Value*> items) {
  load(l);
  if (l->real)
    for (const Value* v : l->items)
      if (isWatched(v) && std::find(items.begin(), items.end(), v) == items.end()) checkLetGo(v);
  touch(l);
  if (items.size() != l->items.size()) journal.set(l->resizes, l->resizes + 1);
  // What differs, between the beginning and the end that stay: many small changes of a long list must not take its length each.
  size_t shorter = std::min(items.size(), l->items.size()), head = 0, tail = 0;
  while (head < shorter && items[head] == l->items[head]) head++;
  while (tail < shorter - head && items[items.size() - 1 - tail] == l->items[l->items.size() - 1 - tail]) tail++;
  std::vector<Value*> old(l->items.begin() + static_cast<ptrdiff_t>(head), l->items.end() - static_cast<ptrdiff_t>(tail));
  journal.onRollback([l, head, tail, old = std::move(old)] {
    l->items.erase(l->items.begin() + static_cast<ptrdiff_t>(head), l->items.end() - static_cast<ptrdiff_t>(tail));
    l->items.insert(l->items.begin() + static_cast<ptrdiff_t>(head), old.begin(), old.end());
  });
  l->items = std::move(items);
}

void Trace::append(ListValue* l, Value* v) {
  if (!l->loaded && l->source) facts.typeIs(l->source, l->type);
  if (l->items.size() >= 1'000'000) unsupported(BreakReason::EndlessIterator, "a list of more than a million items");
  touch(l);
  l->items.push_back(v);
  l->resizes++;
  journal.onRollback([l] {
    l->items.pop_back();
    l->resizes--;
  });
}

// ---- cells -----------------------------------------------------------------------------------------------------------

Value* Trace::cellContents(CellValue* c) {
  if (!c->loaded) {
    PyObject* held = PyCell_GET(c->real.get());
    const Source* inner = sources.cellContents(c->source);
    if (held == nullptr) {
      static PyObject* name = PyUnicode_InternFromString("cell_contents");
      facts.lacksAttr(c->source, name);
    }
    Value* contents = held ? wrap(held, inner) : nullptr;
    journal.set(c->loaded, true);
    journal.set(c->contents, contents);
  }
  return c->contents;
}

void Trace::setCell(CellValue* c, Value* v) {
  if (!c->loaded) journal.set(c->loaded, true);
  touch(c);
  journal.set(c->contents, v);
}

// ---- dicts -----------------------------------------------------------------------------------------------------------

DictKey Trace::identityKey(Value* key, PyObject* object) {
  if (!object || !key->source) return {key, nullptr, static_cast<Py_hash_t>(reinterpret_cast<size_t>(key) >> 4)};
  // Two inputs that are two keys must still be two objects when the capture is used again.
  if (identityKeys_.insert(key).second) {
    facts.distinct(key->source, true);
    journal.onRollback([this, key] { identityKeys_.erase(key); });
  }
  Py_hash_t hash = PyObject_Hash(object);
  if (hash == -1 && PyErr_Occurred()) raiseCurrent(*this);
  return {key, object, hash};
}

// A key that stands for an existing object by identity is looked up among keys that are known: it must be that object again.
void Trace::pinKey(const DictKey& k) {
  if (!k.value || !k.constant || isReal(k.value) || !k.value->source) return;
  // Of an object around a plain value, that value is guarded already.
  if (k.value->kind == Kind::Instance && as<InstanceValue>(k.value)->real.get() == k.constant) facts.identityIs(k.value->source, k.constant);
}

namespace {

// Whether a key is an existing object that hashes and compares by identity, reached by a source.
bool standsForItself(const DictKey& k) {
  if (!k.value || !k.constant || !k.value->source || k.asked) return false;
  if (isTensor(k.value)) return as<TensorValue>(k.value)->real == k.constant;
  return k.value->kind == Kind::Instance && as<InstanceValue>(k.value)->real.get() == k.constant &&
         Py_TYPE(k.constant)->tp_hash == PyBaseObject_Type.tp_hash;
}

}  // namespace

DictKey Trace::keyOf(Value* key) {
  PyObject* c = constant(key);
  if (c) {
    Py_hash_t hash = PyObject_Hash(c);
    if (hash == -1 && PyErr_Occurred()) raiseCurrent(*this);
    return {key, c, hash};
  }
  switch (key->kind) {
    case Kind::List:
    case Kind::Dict: raise(*this, PyExc_TypeError, std::string("unhashable type: '") + typeOf(key)->tp_name + "'");
    case Kind::Set: raise(*this, PyExc_TypeError, "unhashable type: 'set'");
    case Kind::Slice: raise(*this, PyExc_TypeError, "unhashable type: 'slice'");
    case Kind::Real: {
      // An opaque object: by identity where its type hashes so.
      PyTypeObject* type = typeOf(key);
      if (type->tp_hash == PyBaseObject_Type.tp_hash)
        return {key, identity(key), static_cast<Py_hash_t>(reinterpret_cast<size_t>(realObject(key)) >> 4)};
      unsupported(BreakReason::HashOrCompare, std::string("a dict or set key of type ") + type->tp_name);
    }
    case Kind::Tensor: {
      auto* tensor = as<TensorValue>(key);
      // By its id, unless a subclass has other ideas.
      static PyObject* name = PyUnicode_InternFromString("__hash__");
      PyTypeObject* type = typeOf(key);
      PyObject* method = typeLookup(type, name);
      if (method != typeLookup(tensorType(), name)) unsupported(BreakReason::TensorKey, "a key of a tensor class with a __hash__ of its own");
      facts.typeLookup(type, name, method);
      return identityKey(tensor, tensor->real);
    }
    case Kind::Tuple:
      // Its first item without a hash, if there is one.
      load(as<TupleValue>(key));
      for (Value* item : as<TupleValue>(key)->items) keyOf(item);
      [[fallthrough]];
    case Kind::BoundMethod:
      if (DictKey asked{key, nullptr, 0, true}; key->kind == Kind::Tuple) {
        uint64_t before = writes;
        if (!hashByProgram(*this, key, asked.hash)) break;
        asked.effects = writes != before;
        return asked;
      }
      unsupported(BreakReason::HashOrCompare, std::string("a dict or set key of type ") + typeOf(key)->tp_name + " that holds objects");
    case Kind::DictView:
      if (as<DictViewValue>(key)->what == DictViewValue::Values) return identityKey(key, nullptr);
      raise(*this, PyExc_TypeError, std::string("unhashable type: '") + typeOf(key)->tp_name + "'");
    case Kind::Array: unsupported(BreakReason::HashOrCompare, "a numpy array as a key");
    case Kind::Instance: {
      auto* i = as<InstanceValue>(key);
      PyTypeObject* type = typeOf(key);
      if (type->tp_hash == PyObject_HashNotImplemented) raise(*this, PyExc_TypeError, std::string("unhashable type: '") + type->tp_name + "'");
      if (type->tp_hash == PyBaseObject_Type.tp_hash) return identityKey(i, i->real.get());
      if (i->lateText && type == &PyLong_Type) {
        // An id(). That of an object that exists may be among the keys of any dict.
        if (isOpenId(options.openNames, sources, i->lateText->args.at(0)->source))
          unsupported(BreakReason::HashOrCompare, "the id() of an object that is another one in each call, as a key");
        return identityKey(i, nullptr);
      }
      if (i->lateText && type == &_PyWeakref_RefType) {
        // A weak reference to an existing object: hashed and compared as that is.
        auto* object = as<InstanceValue>(i->lateText->args.at(0));
        if (object->real && Py_TYPE(object->real.get())->tp_hash == PyBaseObject_Type.tp_hash &&
            object->type->tp_richcompare == PyBaseObject_Type.tp_richcompare) {
          facts.identityIs(object->source, object->real.get());
          PyObject* reference = keep(checked(PyWeakref_NewRef(object->real.get(), nullptr)));
          return {key, reference, PyObject_Hash(reference)};
        }
      }
      if (i->real && isEnumMember(i->real.get())) {
        // Members are singletons: equal means identical.
        if (i->source) facts.identityIs(i->source, i->real.get());
        Py_hash_t hash = PyObject_Hash(i->real.get());
        if (hash == -1 && PyErr_Occurred()) raiseCurrent(*this);
        return {key, i->real.get(), hash};
      }
      DictKey asked{key, nullptr, 0, true};
      uint64_t before = writes;
      if (Value* plain = plainKey(*this, key)) return {key, constant(plain), keyOf(plain).hash};
      if (!hashByProgram(*this, key, asked.hash)) break;
      asked.effects = writes != before;
      return asked;
    }
    default: return {key, nullptr, static_cast<Py_hash_t>(reinterpret_cast<size_t>(key) >> 4)};
  }
  unsupported(BreakReason::HashOrCompare, std::string("a dict or set key of class ") + typeOf(key)->tp_name);
}

namespace {

// By CPython's rules: identity, then equal hashes, then what the stored key says. Null: none is equal.
template <typename Keys>
const DictKey* findEqual(Trace& t, const Keys& keys, const DictKey& k) {
  for (const DictKey* stored : keys) {
    if (k.value && stored->value == k.value) return stored;
    if (stored->hash != k.hash || !(stored->asked || k.asked)) continue;
    if (!(stored->asked || stored->constant) || !(k.asked || k.constant)) continue;  // one of them hashes by its address
    if (equalKeys(t, stored->value ? stored->value : t.realShared(stored->constant), k.value ? k.value : t.realShared(k.constant))) return stored;
  }
  return nullptr;
}

}  // namespace

DictKey Trace::resolve(DictValue* d, const DictKey& k) {
  if (!k.asked && !d->asks) return k;
  complete(d);
  std::vector<const DictKey*> keys;
  std::vector<DictEntry> entries = d->entries;  // the comparisons may be anything
  for (const DictEntry& e : entries)
    if (e.value) keys.push_back(&e.key);
  const DictKey* found = findEqual(*this, keys, k);
  return found ? *found : k;
}

DictKey Trace::resolve(SetValue* s, const DictKey& k) {
  load(s);
  if (!k.asked && !s->asks) return k;
  std::vector<const DictKey*> keys;
  std::vector<DictKey> items = s->items;
  for (const DictKey& item : items) keys.push_back(&item);
  const DictKey* found = findEqual(*this, keys, k);
  return found ? *found : k;
}

namespace {

void addEntry(DictValue* d, const DictKey& k, Value* v, bool written) {
  d->index[k] = d->entries.size();
  d->entries.push_back({k, v, written});
  if (v) d->live++;
}

}  // namespace

Value* Trace::dictGet(DictValue* d, const DictKey& given) {
  const DictKey k = given.asked || d->asks ? resolve(d, given) : given;
  const bool byIdentity = d->real && !d->complete && d->source && standsForItself(k);
  if (d->real && !byIdentity) pinKey(k);
  auto found = d->index.find(k);
  if (found != d->index.end()) return d->entries[found->second].value;
  if (d->complete) return nullptr;
  if (!k.constant) return nullptr;  // a real dict cannot hold an object that the trace made; others are rare enough to miss
  PyObject* held = byIdentity ? readKeyedItem(d->real.get(), k.constant) : PyDict_GetItemWithError(d->real.get(), k.constant);
  if (held == nullptr && PyErr_Occurred()) raiseCurrent(*this);
  if (d->source && held == nullptr) {
    if (byIdentity)
      facts.lacksKey(d->source, k.value->source);
    else
      facts.dictLacks(d->source, k.constant);
  }
  const Source* item = nullptr;
  if (held) item = byIdentity ? sources.keyedItem(d->source, k.value->source) : sources.dictItem(d->source, k.constant);
  if (item && d->source) facts.present(item);
  Value* v = held ? wrap(held, item) : nullptr;
  DictKey stored = k;
  keep(ObjectRef::share(k.constant));
  addEntry(d, stored, v, false);
  journal.onRollback([d, stored] {
    if (d->entries.back().value) d->live--;
    d->index.erase(stored);
    d->entries.pop_back();
  });
  return v;
}

Value* Trace::dictGetName(DictValue* d, PyObject* name) {
  Py_hash_t hash = PyObject_Hash(name);
  return dictGet(d, DictKey{nullptr, name, hash});
}

void Trace::complete(DictValue* d) {
  if (d->complete) return;
  PyObject* object = d->real.get();
  // Subclasses may iterate in their own way; OrderedDict keeps its own order.
  ObjectRef keys;
  if (PyType_IsSubtype(Py_TYPE(object), &PyODict_Type)) {
    ObjectRef view = checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyODict_Type), "keys", "O", object));
    keys = ObjectRef::steal(PySequence_List(view.get()));
    if (!keys || PyList_GET_SIZE(keys.get()) != PyDict_GET_SIZE(object)) {
      PyErr_Clear();
      unsupported(BreakReason::MethodCall, "an OrderedDict that was changed by methods of dict");
    }
  } else {
    keys = checked(PyDict_Keys(object));
  }
  if (d->source) {
    facts.typeIs(d->source, d->type);
    ObjectRef tuple = checked(PyList_AsTuple(keys.get()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); i++) {
      PyObject* key = PyTuple_GET_ITEM(tuple.get(), i);
      if (isTensor(key)) unsupported(BreakReason::TensorKey, "iterating over a dict with tensors as keys");
    }
    facts.dictKeys(d->source, tuple.get());
  }
  auto old = d->entries;
  auto oldIndex = d->index;
  auto oldLive = d->live;
  // What was asked or written before, by key: the first entry is the one that stands where the real dict has the key; a
  // key that was deleted and set again has a second one, at the end.
  std::unordered_map<DictKey, size_t, DictKeyHash, DictKeyEqual> first;
  for (size_t i = 0; i < old.size(); i++) first.emplace(old[i].key, i);
  std::vector<DictEntry> entries;
  bool asks = d->asks;
  std::vector<bool> used(old.size(), false);
  // Read as it stands: a lookup by key would run the __hash__ and the __eq__ of the program.
  struct Slot {
    PyObject* value;
    Py_hash_t hash;
  };
  std::unordered_map<PyObject*, Slot> slots;
  std::unordered_map<Py_hash_t, int> sameHash;
  PyObject *slotKey = nullptr, *slotValue = nullptr;
  Py_hash_t slotHash = 0;
  for (Py_ssize_t at = 0; _PyDict_Next(object, &at, &slotKey, &slotValue, &slotHash);) {
    slots[slotKey] = {slotValue, slotHash};
    sameHash[slotHash]++;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); i++) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    auto slot = slots.find(key);
    if (slot == slots.end()) unsupported(BreakReason::MethodCall, "an OrderedDict that was changed by methods of dict");
    auto [held, hash] = slot->second;
    if (d->source && sameHash[hash] > 1 && isHashedByPython(key))
      unsupported(BreakReason::HashOrCompare, std::string("a dict with keys of class ") + Py_TYPE(key)->tp_name + " that have one hash");
    keep(ObjectRef::share(key));
    DictKey k{nullptr, key, hash};
    if (isHashedByPython(key)) {
      if (isOpenId(options.openNames, sources, d->source))
        unsupported(BreakReason::HashOrCompare, std::string("a dict with other keys of class ") + Py_TYPE(key)->tp_name + " in each call");
      // Pinned by the fact about the keys.
      k = {wrap(key, sources.pinned(key)), nullptr, hash, true};
      asks = true;
    }
    auto found = first.find(k);
    if (found != first.end()) {
      used[found->second] = true;
      DictEntry copy = old[found->second];
      pinKey(copy.key);
      if (!copy.key.value) copy.key.value = heldKey(*this, key);
      entries.push_back(copy);
      continue;
    }
    if (!k.value) k.value = heldKey(*this, key);
    entries.push_back({k, wrap(held, sources.dictItem(d->source, key)), false});
  }
  for (size_t i = 0; i < old.size(); i++)
    if (!used[i] && old[i].value) entries.push_back(old[i]);
  d->entries = std::move(entries);
  d->index.clear();
  d->live = 0;
  for (size_t i = 0; i < d->entries.size(); i++) {
    d->index[d->entries[i].key] = i;
    if (d->entries[i].value) d->live++;
  }
  d->complete = true;
  journal.set(d->asks, asks);
  journal.onRollback([d, old, oldIndex, oldLive] {
    d->entries = old;
    d->index = oldIndex;
    d->live = oldLive;
    d->complete = false;
  });
}

void Trace::dictSet(DictValue* d, const DictKey& given, Value* v) {
  const DictKey k = given.asked || d->asks ? resolve(d, given) : given;
  if (k.asked && !d->asks) journal.set(d->asks, true);
  touch(d);
  if (!k.asked && !d->asks) dictGet(d, k);
  auto found = d->index.find(k);
  Value* before = found == d->index.end() ? nullptr : d->entries[found->second].value;
  if (found != d->index.end() && before) {
    DictEntry& e = d->entries[found->second];
    size_t at = found->second;
    journal.onRollback([d, at, old = e] { d->entries[at] = old; });
    e.value = v;
    e.written = true;
    if (!e.key.value && e.key.constant) e.key.value = realShared(e.key.constant);
    return;
  }
  DictKey stored = k;
  if (stored.constant) keep(ObjectRef::share(stored.constant));
  if (!stored.value && stored.constant) stored.value = realShared(stored.constant);
  bool hadIndex = found != d->index.end();
  size_t oldAt = hadIndex ? found->second : 0;
  if (hadIndex) d->index.erase(found);
  addEntry(d, stored, v, true);
  journal.onRollback([d, stored, hadIndex, oldAt] {
    d->index.erase(stored);
    d->live--;
    d->entries.pop_back();
    if (hadIndex) d->index[d->entries[oldAt].key] = oldAt;
  });
}

bool Trace::dictDelete(DictValue* d, const DictKey& given) {
  const DictKey k = given.asked || d->asks ? resolve(d, given) : given;
  if (!k.asked && !d->asks) dictGet(d, k);
  auto found = d->index.find(k);
  if (found == d->index.end() || !d->entries[found->second].value) return false;
  size_t at = d->index.find(k)->second;
  if (d->real) checkLetGo(d->entries[at].value);
  if (d->real && d->entries[at].key.value) checkLetGo(d->entries[at].key.value);
  touch(d);
  journal.onRollback([d, at, old = d->entries[at]] {
    d->entries[at] = old;
    d->live++;
  });
  d->entries[at].value = nullptr;
  d->entries[at].written = true;
  d->live--;
  return true;
}

size_t Trace::dictLength(DictValue* d) {
  if (!d->complete) {
    if (!d->mutated && d->source) {
      facts.typeIs(d->source, d->type);
      facts.length(d->source, PyDict_GET_SIZE(d->real.get()));
      return static_cast<size_t>(PyDict_GET_SIZE(d->real.get()));
    }
    complete(d);
  }
  return d->live;
}

DictValue* Trace::dictOf(InstanceValue* i) {
  if (i->dict) return i->dict;
  if (!i->real) {
    auto* made = dict();
    made->instance = i;
    journal.set(i->dict, made);
    return made;
  }
  PyObject* real = instanceDict(i->real.get());
  if (real == nullptr) return nullptr;
  DictValue* made = existingDict(real, i->source);
  journal.set(i->dict, made);
  return made;
}

DictValue* Trace::dictOf(DictValue* d) {
  if (d->attributes || !PyType_IsSubtype(d->type, &PyODict_Type)) return d->attributes;
  PyObject* real = d->real ? instanceDict(d->real.get()) : nullptr;
  DictValue* made = real ? existingDict(real, d->source) : dict();
  if (!real) made->instance = d;
  journal.set(d->attributes, made);
  return made;
}

DictValue* Trace::existingDict(PyObject* real, const Source* owner) {
  if (owner) return as<DictValue>(wrap(real, sources.instanceDict(owner)));
  auto* made = make<DictValue>();
  made->real = ObjectRef::share(real);
  made->type = &PyDict_Type;
  made->complete = false;
  return made;
}

}  // namespace cdynamo
