// Iterators and what goes over them.
#include <cstring>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/protocol.h"
#include "interp/special_methods.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// Start, stop and step are C integers, with room to step past the end.
bool isSmallRange(PyObject* range) {
  for (const char* name : {"start", "stop", "step"}) {
    ObjectRef n = checked(PyObject_GetAttrString(range, name));
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(n.get(), &overflow);
    if (overflow || value > INT64_MAX / 4 || value < INT64_MIN / 4) return false;
  }
  return true;
}

}  // namespace

Value* iterate(Trace& t, Value* v) {
  if (Value* core = coreUnless(t, v, {"__iter__"}); core && t.typeOf(core)->tp_iter) return iterate(t, core);
  if (isLateText(v)) unsupported(BreakReason::UnsupportedOperator, "iteration over a text that shows tensors");
  t.typeOf(v);  // what kind of iterator it is depends on it, also where no item is looked at
  switch (v->kind) {
    case Kind::Iterator: return v;
    case Kind::Generator:
      if (as<GeneratorValue>(v)->type == &PyGen_Type) return v;
      raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not iterable");
    case Kind::Array: unsupported(BreakReason::UnsupportedIteration, "iteration over a NumPy array");
    default: break;
  }
  if (Value* method = pythonSpecial(t, v, "__iter__")) {
    if (isReal(method, Py_None)) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not iterable");
    Value* it = call(t, method, {});
    bool iterator = it->kind == Kind::Iterator || (it->kind == Kind::Generator && as<GeneratorValue>(it)->type == &PyGen_Type) ||
                    (it->kind == Kind::Instance ? specialMethod(t, it, "__next__") != nullptr : isReal(it) && PyIter_Check(realObject(it)));
    if (!iterator) raise(t, PyExc_TypeError, std::string("iter() returned non-iterator of type '") + t.typeOf(it)->tp_name + "'");
    return it;
  }
  auto sequence = [&](Value* subject) {
    auto* it = t.make<IteratorValue>(IteratorValue::Sequence);
    static auto* dequeIter = reinterpret_cast<PyTypeObject*>(importedObject("_collections", "_deque_iterator"));
    it->type = subject->kind != Kind::List ? &PyTupleIter_Type : as<ListValue>(subject)->type == dequeType() ? dequeIter : &PyListIter_Type;
    it->subject = subject;
    if (it->type == dequeIter) it->stop = as<ListValue>(subject)->resizes;
    return it;
  };
  if (asList(v) || asTuple(v)) return sequence(asList(v) ? static_cast<Value*>(asList(v)) : asTuple(v));
  if (asDict(v) || v->kind == Kind::DictView) {
    auto* it = t.make<IteratorValue>(IteratorValue::DictItems);
    auto what = v->kind == Kind::DictView ? as<DictViewValue>(v)->what : DictViewValue::Keys;
    it->type = what == DictViewValue::Keys ? &PyDictIterKey_Type : what == DictViewValue::Values ? &PyDictIterValue_Type : &PyDictIterItem_Type;
    DictValue* d = iteratedDict(v);
    if (PyType_IsSubtype(d->type, &PyODict_Type)) it->type = &PyODictIter_Type;
    t.complete(d);
    it->subject = d;
    it->step = what;
    bool ordered = it->type == &PyODictIter_Type;
    it->stop = iterationState(d);
    it->done = ordered && d->live == 0;
    return it;
  }
  if (SetValue* s = asSet(v)) {
    IteratorValue* it = sequence(t.list(itemsOf(t, v)));
    it->type = &PySetIter_Type;
    it->inputs = {s};
    it->stop = static_cast<int64_t>(s->items.size());
    return it;
  }
  if (isTensor(v)) {
    if (isOverridden(t, CallArgs{{v}, {}})) return call(t, specialMethod(t, v, "__iter__"), {});
    auto* tensor = as<TensorValue>(v);
    t.observe(tensor);
    if (tensor->meta.dim() == 0) raise(t, PyExc_TypeError, "iteration over a 0-d tensor");
    static PyObject* unbind = PyUnicode_InternFromString("unbind");
    return iterate(t, recordOp(t, unbind, true, {{v, t.integer(0)}, {}}));
  }
  if (isReal(v)) {
    PyObject* object = realObject(v);
    if (PyRange_Check(object) && t.constant(v) && isSmallRange(object)) {
      auto* it = t.make<IteratorValue>(IteratorValue::Range);
      it->type = &PyRangeIter_Type;
      auto number = [&](const char* name) {
        ObjectRef n = checked(PyObject_GetAttrString(object, name));
        long long value = PyLong_AsLongLong(n.get());
        if (value == -1 && PyErr_Occurred()) raiseCurrent(t);
        return value;
      };
      it->position = number("start");
      it->stop = number("stop");
      it->step = number("step");
      return it;
    }
    if (PyType_Check(object)) {
      // Enum classes and other metaclasses with __iter__.
      static PyObject* name = PyUnicode_InternFromString("__iter__");
      PyObject* method = lookUp(t, Py_TYPE(object), name);
      if (method && PyFunction_Check(method)) return iterate(t, call1(t, t.wrap(method, t.sources.pinned(method)), v));
    }
    if (PyObject* c = t.constant(v)) {
      if (PyRange_Check(c) && (PyObject_Size(c) < 0 || PyObject_Size(c) > 100'000)) {
        PyErr_Clear();
        unsupported(BreakReason::UnsupportedIteration, "a range of very large numbers");
      }
      ObjectRef items = native(t, PySequence_List(c));
      std::vector<Value*> values;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); i++) values.push_back(t.realShared(PyList_GET_ITEM(items.get(), i)));
      if (PyTuple_CheckExact(c)) return sequence(t.tuple(std::move(values)));
      IteratorValue* it = sequence(t.list(std::move(values)));
      it->subjectOf = v;
      ObjectRef real = native(t, PyObject_GetIter(c));
      it->type = Py_TYPE(real.get());
      return it;
    }
    if (Value* mapping = mappingOfProxy(t, v)) return iterate(t, mapping);
    if (Py_TYPE(object) == &PyDictProxy_Type && !v->source) {
      ObjectRef items = native(t, PySequence_List(object));
      std::vector<Value*> values;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); i++) values.push_back(t.realShared(PyList_GET_ITEM(items.get(), i)));
      IteratorValue* it = sequence(t.list(std::move(values)));
      it->subjectOf = v;
      it->type = &PyDictIterKey_Type;
      return it;
    }
    unsupported(BreakReason::UnsupportedIteration, "iterating over " + describe(v));
  }
  if (v->kind == Kind::Instance) {
    static PyObject* iterName = PyUnicode_InternFromString("__iter__");
    if (!lookUp(t, t.typeOf(v), iterName) && specialMethod(t, v, "__getitem__")) {
      auto* it = t.make<IteratorValue>(IteratorValue::ItemProtocol);
      it->type = &PySeqIter_Type;
      it->subject = v;
      return it;
    }
  }
  checkModelled(t, v, "iterating over",
                [](const PyTypeObject& type, const PyMappingMethods&, const PySequenceMethods& s) { return type.tp_iter || s.sq_item; });
  raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not iterable");
}

namespace {

// Raises where a dict was changed since the iterator was made.
void checkUnchanged(Trace& t, IteratorValue* it, DictValue* d) {
  if (iterationState(d) == it->stop) return;
  if (PyType_IsSubtype(d->type, &PyODict_Type)) {
    t.journal.set(it->done, true);
    raise(t, PyExc_RuntimeError, "OrderedDict mutated during iteration");
  }
  t.journal.set(it->stop, -1);
  raise(t, PyExc_RuntimeError, "dictionary changed size during iteration");
}

Value* nextOf(Trace& t, IteratorValue* it) {
  if (it->done) return nullptr;
  auto finish = [&]() -> Value* {
    t.journal.set(it->done, true);
    return nullptr;
  };
  switch (it->what) {
    case IteratorValue::Existing: return nextOfExisting(t, it);
    case IteratorValue::DictItems: {
      auto* d = as<DictValue>(it->subject);
      checkUnchanged(t, it, d);
      auto following = [d](size_t from) {
        while (from < d->entries.size() && !d->entries[from].value) from++;
        return from;
      };
      size_t at = following(static_cast<size_t>(it->position));
      t.journal.set(it->position, static_cast<int64_t>(at) + 1);
      if (at >= d->entries.size()) return finish();
      // The last item of an OrderedDict is its iterator's end, whatever is done to the dict before somebody asks again.
      bool ordered = it->type == &PyODictIter_Type;
      if (ordered && following(at + 1) >= d->entries.size()) finish();
      if (!ordered && it->given == it->stop) raise(t, PyExc_RuntimeError, "dictionary keys changed during iteration");
      t.journal.set(it->given, it->given + 1);
      const DictEntry& e = d->entries[at];
      return it->step == DictViewValue::Keys ? e.key.value : it->step == DictViewValue::Values ? e.value : t.tuple({e.key.value, e.value});
    }
    case IteratorValue::Sequence: {
      if (!it->inputs.empty() && static_cast<int64_t>(as<SetValue>(it->inputs[0])->items.size()) != it->stop) {
        t.journal.set(it->stop, -1);
        raise(t, PyExc_RuntimeError, "Set changed size during iteration");
      }
      std::vector<Value*>* items;
      if (it->stop >= 0 && it->inputs.empty() && as<ListValue>(it->subject)->resizes != it->stop)
        raise(t, PyExc_RuntimeError, "deque mutated during iteration");
      if (it->subject->kind == Kind::List) {
        t.load(as<ListValue>(it->subject));
        items = &as<ListValue>(it->subject)->items;
      } else {
        t.load(as<TupleValue>(it->subject));
        items = &as<TupleValue>(it->subject)->items;
      }
      if (it->position >= static_cast<int64_t>(items->size())) return finish();
      Value* v = (*items)[static_cast<size_t>(it->position)];
      t.journal.set(it->position, it->position + 1);
      return v;
    }
    case IteratorValue::Reversed: {
      auto* list = as<ListValue>(it->subject);
      t.load(list);
      if (DictValue* d = it->subjectOf ? iteratedDict(it->subjectOf) : nullptr) checkUnchanged(t, it, d);
      int64_t index = it->stop - it->position;
      // A list is read from where it ended when this began; a deque and what cannot change, from the end.
      if (it->subjectOf || list->type == dequeType()) index = static_cast<int64_t>(list->items.size()) - 1 - it->position;
      if (index < 0 || index >= static_cast<int64_t>(list->items.size())) return finish();
      t.journal.set(it->position, it->position + 1);
      return list->items[static_cast<size_t>(index)];
    }
    case IteratorValue::Range: {
      if (it->step > 0 ? it->position >= it->stop : it->position <= it->stop) return finish();
      Value* v = t.integer(it->position);
      t.journal.set(it->position, it->position + it->step);
      return v;
    }
    case IteratorValue::Count: {
      if (it->subject) {
        Value* v = it->subject;
        t.journal.set(it->subject, binaryOp(t, 0, v, it->inputs[0]));
        return v;
      }
      Value* v = t.integer(it->position);
      int64_t following;
      if (__builtin_add_overflow(it->position, it->step, &following)) {
        t.journal.set(it->inputs, std::vector<Value*>{t.integer(it->step)});
        t.journal.set(it->subject, binaryOp(t, 0, v, it->inputs[0]));
      } else {
        t.journal.set(it->position, following);
      }
      return v;
    }
    case IteratorValue::Repeat: {
      if (it->stop >= 0 && it->position >= it->stop) return finish();
      t.journal.set(it->position, it->position + 1);
      return it->subject;
    }
    case IteratorValue::Zip: {
      std::vector<Value*> row;
      for (size_t i = 0; i < it->inputs.size(); i++) {
        Value* v = next(t, it->inputs[i]);
        if (!v) {
          if (it->strict) {
            if (i)
              raise(t, PyExc_ValueError,
                    "zip() argument " + std::to_string(i + 1) + " is shorter than argument" + (i == 1 ? " 1" : "s 1-" + std::to_string(i)));
            for (size_t k = 1; k < it->inputs.size(); k++)
              if (next(t, it->inputs[k]))
                raise(t, PyExc_ValueError,
                      "zip() argument " + std::to_string(k + 1) + " is longer than argument" + (k == 1 ? " 1" : "s 1-" + std::to_string(k)));
          }
          return nullptr;
        }
        row.push_back(v);
      }
      if (row.empty()) return nullptr;
      return t.tuple(std::move(row));
    }
    case IteratorValue::Enumerate: {
      Value* v = next(t, it->inputs[0]);
      if (!v) return nullptr;
      Value* i = it->real ? numberOfExisting(t, it) : t.integer(it->position);
      t.journal.set(it->position, it->position + 1);
      return t.tuple({i, v});
    }
    case IteratorValue::Map: {
      CallArgs args;
      for (Value* in : it->inputs) {
        Value* v = next(t, in);
        if (!v) return nullptr;
        args.args.push_back(v);
      }
      return call(t, it->subject, std::move(args));
    }
    case IteratorValue::Filter: {
      for (;;) {
        Value* v = next(t, it->inputs[0]);
        if (!v) return nullptr;
        bool keep = isReal(it->subject, Py_None) ? truth(t, v) : truth(t, call1(t, it->subject, v));
        if (keep != it->strict) return v;
      }
    }
    case IteratorValue::Chain: {
      for (;;) {
        if (it->subject == nullptr) {
          Value* inner = next(t, it->subjectOf);
          if (!inner) return finish();
          t.journal.set(it->subject, iterate(t, inner));
        }
        if (Value* v = next(t, it->subject)) return v;
        t.journal.set(it->subject, nullptr);
      }
    }
    case IteratorValue::Islice: {
      // position: the item that is wanted next, `stop` itself where that is the end: what comes before is read and dropped.
      int64_t seen = it->inputs.size() > 1 ? asInteger(t, it->inputs[1]).value_or(0) : 0;
      auto read = [&] {
        Value* v = next(t, it->inputs[0]);
        if (v) t.journal.set(it->inputs, std::vector<Value*>{it->inputs[0], t.integer(++seen)});
        return v;
      };
      while (seen < it->position)
        if (!read()) return finish();
      if (it->stop >= 0 && seen >= it->stop) return finish();
      Value* v = read();
      if (!v) return finish();
      int64_t following;
      bool past = __builtin_add_overflow(it->position, it->step, &following) || (it->stop >= 0 && following > it->stop);
      t.journal.set(it->position, past ? it->stop : following);
      return v;
    }
    case IteratorValue::CallIter: {
      Value* v = nullptr;
      try {
        v = call(t, it->subject, {});
      } catch (Raised& r) {
        if (!isA(t, r.exception, PyExc_StopIteration)) throw;
        return finish();
      }
      if (it->done) return nullptr;  // the call itself took the iterator to its end
      if (equals(t, v, it->inputs[0])) return finish();
      return v;
    }
    case IteratorValue::ItemProtocol: {
      try {
        Value* v = call1(t, specialMethod(t, it->subject, "__getitem__"), t.integer(it->position));
        t.journal.set(it->position, it->position + 1);
        return v;
      } catch (Raised& r) {
        if (!isA(t, r.exception, PyExc_IndexError) && !isA(t, r.exception, PyExc_StopIteration)) throw;
        return finish();
      }
    }
    default: return nextOfItertool(t, it);
  }
}

}  // namespace

Value* next(Trace& t, Value* v) {
  if (v->kind == Kind::Iterator) return nextOf(t, as<IteratorValue>(v));
  if (v->kind == Kind::Generator && as<GeneratorValue>(v)->type == &PyGen_Type) return resumeGenerator(t, as<GeneratorValue>(v), t.none(), nullptr);
  Value* method = isReal(v) ? nullptr : specialMethod(t, v, "__next__");
  if (!method) {
    if (isReal(v)) unsupported(BreakReason::UnsupportedNext, "the next item of " + describe(v));
    checkModelled(t, v, "the next item of",
                  [](const PyTypeObject& type, const PyMappingMethods&, const PySequenceMethods&) { return type.tp_iternext != nullptr; });
    raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not an iterator");
  }
  try {
    return call(t, method, {});
  } catch (Raised& r) {
    if (!isA(t, r.exception, PyExc_StopIteration)) throw;
    return nullptr;
  }
}

std::vector<Value*> unorderedItems(Trace& t, Value* v) {
  SetValue* s = v->kind == Kind::Set ? as<SetValue>(v) : nullptr;
  if (!s) return itemsOf(t, v);
  t.load(s);
  std::vector<Value*> items;
  for (const DictKey& k : s->items) items.push_back(k.value);
  return items;
}

const std::vector<Value*>* heldItems(Trace& t, Value* v) {
  if (ListValue* l = asList(v)) {
    t.load(l);
    return &l->items;
  }
  TupleValue* tuple = asTuple(v);
  if (!tuple) return nullptr;
  t.load(tuple);
  return &tuple->items;
}

std::vector<Value*> itemsOf(Trace& t, Value* v) {
  bool custom = v->kind == Kind::Instance && pythonSpecial(t, v, "__iter__");
  if (!custom) {
    if (const auto* items = heldItems(t, v)) return *items;
    if (DictValue* d = asDict(v)) {
      t.complete(d);
      std::vector<Value*> keys;
      for (const DictEntry& e : d->entries)
        if (e.value) keys.push_back(e.key.value);
      return keys;
    }
    if (SetValue* s = asSet(v)) {
      t.load(s);
      if (s->items.size() > 1) {
        ObjectRef layout = t.setLayout(s);
        bool asRead = s->real && s->replayable && s->history.empty();  // the items are in the order of the real set
        if (!layout && !asRead) unsupported(BreakReason::UnknownOrder, "iterating over a set whose order is not known");
        std::vector<Value*> items;
        if (!layout)
          for (const DictKey& k : s->items) items.push_back(k.value);
        PyObject* item;
        Py_hash_t hash;
        for (Py_ssize_t at = 0; layout && _PySet_NextEntry(layout.get(), &at, &item, &hash);)
          items.push_back(s->items[s->index.find(DictKey{nullptr, item, hash})->second].value);
        return items;
      }
      std::vector<Value*> items;
      for (const DictKey& k : s->items) items.push_back(k.value);
      return items;
    }
    if (v->kind == Kind::DictView) {
      auto* view = as<DictViewValue>(v);
      auto* d = as<DictValue>(view->owner);
      t.complete(d);
      std::vector<Value*> items;
      for (const DictEntry& e : d->entries) {
        if (!e.value) continue;
        items.push_back(view->what == DictViewValue::Keys     ? e.key.value
                        : view->what == DictViewValue::Values ? e.value
                                                              : t.tuple({e.key.value, e.value}));
      }
      return items;
    }
    if (isReal(v) && PyTuple_CheckExact(realObject(v))) {
      if (PyObject* c = t.constant(v)) {
        std::vector<Value*> items;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c); i++) items.push_back(t.realShared(PyTuple_GET_ITEM(c, i)));
        return items;
      }
    }
  }
  std::vector<Value*> items;
  Value* it = iterate(t, v);
  while (Value* item = next(t, it)) {
    items.push_back(item);
    if (items.size() > kMostItems) unsupported(BreakReason::EndlessIterator, "an iterator that does not end");
  }
  return items;
}

}  // namespace cdynamo
