// Subscripts, lengths, membership and iteration.
#include <cstring>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/protocol.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// v itself, or the inherited part of an instance of a subclass.
template <typename T>
T* partOf(Value* v, Kind kind) {
  if (v->kind == kind) return as<T>(v);
  if (v->kind != Kind::Instance) return nullptr;
  HeapValue* contents = as<InstanceValue>(v)->contents;
  return contents && contents->kind == kind ? as<T>(contents) : nullptr;
}

}  // namespace

ListValue* asList(Value* v) { return partOf<ListValue>(v, Kind::List); }
TupleValue* asTuple(Value* v) { return partOf<TupleValue>(v, Kind::Tuple); }
DictValue* asDict(Value* v) { return partOf<DictValue>(v, Kind::Dict); }
DictValue* mergedAsDict(Trace& t, Value* v) {
  DictValue* d = asDict(v);
  if (!d || v->kind == Kind::Dict) return d;
  auto iterates = t.typeOf(v)->tp_iter;
  return iterates == PyDict_Type.tp_iter || iterates == PyODict_Type.tp_iter ? d : nullptr;
}
SetValue* asSet(Value* v) { return partOf<SetValue>(v, Kind::Set); }

namespace {

// Before it is said that a type cannot do something: an existing object of a C type may well, by a slot that is not modelled.
template <typename HasSlot>
void checkModelled(Trace& t, Value* v, const char* what, HasSlot&& hasSlot) {
  auto* i = v->kind == Kind::Instance ? as<InstanceValue>(v) : nullptr;
  if (!isReal(v) && (!i || !i->real)) return;
  PyTypeObject* type = t.typeOf(v);
  static PyMappingMethods noMapping{};
  static PySequenceMethods noSequence{};
  if (hasSlot(*type, type->tp_as_mapping ? *type->tp_as_mapping : noMapping, type->tp_as_sequence ? *type->tp_as_sequence : noSequence))
    unsupported(BreakReason::UnsupportedIteration, std::string(what) + " " + describe(v));
}

// A Python-level special method of an instance, or null where the type's is C code.
Value* pythonSpecial(Trace& t, Value* v, const char* name) {
  if (v->kind != Kind::Instance) return nullptr;
  Value* method = specialMethod(t, v, name);
  if (!method) return nullptr;
  auto* bound = method->kind == Kind::BoundMethod ? as<BoundMethodValue>(method) : nullptr;
  if (bound && isReal(bound->function) &&
      (Py_TYPE(realObject(bound->function)) == &PyWrapperDescr_Type || Py_TYPE(realObject(bound->function)) == &PyMethodDescr_Type))
    return nullptr;
  return method;
}

long long indexOf(Trace& t, Value* key, const char* what) {
  if (std::optional<long long> n = asInteger(t, key)) return *n;
  if (key->kind == Kind::Instance)
    if (Value* n = indexValue(t, key))
      if (std::optional<long long> i = asInteger(t, n)) return *i;
  if (isReal(key) && PyLong_Check(realObject(key))) raise(t, PyExc_IndexError, "cannot fit 'int' into an index-sized integer");
  if (isTensor(key) || isArray(key)) unsupported(BreakReason::TensorAsIndex, std::string("indexing a ") + what + " with " + describe(key));
  if (!std::strcmp(what, "deque")) raise(t, PyExc_TypeError, std::string("sequence index must be integer, not '") + t.typeOf(key)->tp_name + "'");
  raise(t, PyExc_TypeError, std::string(what) + " indices must be integers or slices, not " + t.typeOf(key)->tp_name);
}

// Whether iter(v) can be asked for at all.
bool isIterable(Trace& t, Value* v) {
  if (v->kind == Kind::Instance) return specialMethod(t, v, "__iter__") || specialMethod(t, v, "__getitem__");
  PyTypeObject* type = t.typeOf(v);
  if (isReal(v) && PyType_Check(realObject(v)) && Py_TYPE(realObject(v)) != &PyType_Type) return true;
  return type->tp_iter || (type->tp_as_sequence && type->tp_as_sequence->sq_item);
}

struct SliceRange {
  Py_ssize_t start, stop, step, count;
};

SliceRange sliceRange(Trace& t, Value* key, size_t size) {
  PyObject* slice = t.constant(key);
  if (!slice) unsupported(BreakReason::TensorSliceBounds, "a slice with tensor bounds");
  SliceRange r;
  if (PySlice_Unpack(slice, &r.start, &r.stop, &r.step) < 0) raiseCurrent(t);
  r.count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(size), &r.start, &r.stop, r.step);
  return r;
}

std::vector<Value*> pickSlice(Trace& t, const std::vector<Value*>& items, Value* key) {
  SliceRange r = sliceRange(t, key, items.size());
  std::vector<Value*> out;
  for (Py_ssize_t i = 0; i < r.count; i++) out.push_back(items[static_cast<size_t>(r.start + i * r.step)]);
  return out;
}

bool isSlice(Value* v) { return v->kind == Kind::Slice || (isReal(v) && PySlice_Check(realObject(v))); }

Value* pickItem(Trace& t, const std::vector<Value*>& items, Value* key, const char* what) {
  long long i = indexOf(t, key, what);
  long long n = static_cast<long long>(items.size());
  if (i < 0) i += n;
  if (i < 0 || i >= n) raise(t, PyExc_IndexError, std::string(what) + " index out of range");
  return items[static_cast<size_t>(i)];
}

}  // namespace

void keyError(Trace& t, Value* key) {
  if (PyObject* c = t.constant(key)) throw Raised{t.real(checked(PyObject_CallOneArg(PyExc_KeyError, c)))};
  InstanceValue* error = makeInstance(t, reinterpret_cast<PyTypeObject*>(PyExc_KeyError));
  error->exceptionArgs = t.tuple({key});
  throw Raised{error};
}

Value* defaultFactory(Trace& t, DictValue* d) {
  if (std::strcmp(d->type->tp_name, "collections.defaultdict") != 0) return nullptr;
  if (d->defaultFactory) return d->defaultFactory;
  if (!d->real) return t.none();
  static PyObject* name = PyUnicode_InternFromString("default_factory");
  ObjectRef held = checked(PyObject_GetAttr(d->real.get(), name));
  return d->source ? t.wrap(held.get(), t.sources.attr(d->source, name)) : t.real(std::move(held));
}

namespace {

// An object of module typing: TypeVar, Any, List[int].
PyObject* typingObject(Trace& t, Value* v) {
  PyObject* object = isReal(v)                                                     ? realObject(v)
                     : v->kind == Kind::Instance && !as<InstanceValue>(v)->mutated ? as<InstanceValue>(v)->real.get()
                                                                                   : nullptr;
  if (!object || !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) return nullptr;
  static PyObject* name = PyUnicode_InternFromString("__module__");
  PyObject* module = PyDict_GetItemWithError(typeDict(Py_TYPE(object)), name);
  if (!module || !PyUnicode_Check(module) || PyUnicode_CompareWithASCIIString(module, "typing") != 0) return nullptr;
  if (v->source) t.facts.identityIs(v->source, object);
  return object;
}

// A __class_getitem__ that is written in C, is types.GenericAlias itself, or that of typing.Generic.
bool makesAliases(PyObject* method) {
  if (Py_TYPE(method) == &PyClassMethodDescr_Type || PyCFunction_Check(method)) return true;
  if (Py_TYPE(method) != &PyClassMethod_Type) return false;
  ObjectRef function = checked(PyObject_GetAttrString(method, "__func__"));
  if (PyType_Check(function.get())) return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(function.get()), &Py_GenericAliasType) != 0;
  ObjectRef module = ObjectRef::steal(PyObject_GetAttrString(function.get(), "__module__"));
  PyErr_Clear();
  return module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "typing") == 0;
}

// The parameters of a generic alias as a real object; null where something else than types and typing's objects is among them.
ObjectRef typeArguments(Trace& t, Value* v) {
  if (v->kind == Kind::Tuple || v->kind == Kind::List) {
    std::vector<Value*> items = itemsOf(t, v);
    ObjectRef made = checked(PyList_New(0));
    for (Value* item : items) {
      ObjectRef one = typeArguments(t, item);
      if (!one) return {};
      checkedStatus(PyList_Append(made.get(), one.get()));
    }
    return v->kind == Kind::List ? made : checked(PyList_AsTuple(made.get()));
  }
  if (PyObject* object = typingObject(t, v)) return ObjectRef::share(object);
  return ObjectRef::share(t.constant(v));
}

}  // namespace

Value* genericAlias(Trace& t, Value* container, Value* key) {
  PyObject* object = typingObject(t, container);
  if (!object && isReal(container) && PyType_Check(realObject(container))) {
    static PyObject* name = PyUnicode_InternFromString("__class_getitem__");
    auto* type = reinterpret_cast<PyTypeObject*>(realObject(container));
    PyObject* method = Py_TYPE(type)->tp_as_mapping && Py_TYPE(type)->tp_as_mapping->mp_subscript ? nullptr : lookUp(t, type, name);
    if (method && makesAliases(method)) object = t.identity(container);
  }
  if (!object) return nullptr;
  ObjectRef arguments = typeArguments(t, key);
  if (!arguments) return nullptr;
  PyObject* made = t.keep(native(t, PyObject_GetItem(object, arguments.get())));
  return PyType_IsSubtype(Py_TYPE(made), &Py_GenericAliasType) ? t.realShared(made) : t.wrap(made, t.sources.pinned(made));
}

Value* getItem(Trace& t, Value* container, Value* key) {
  if (Value* core = coreUnless(t, container, {"__getitem__"})) container = core;
  if (isLateText(container)) unsupported(BreakReason::UnsupportedOperator, "a part of a text that shows tensors");
  if (key->kind == Kind::Instance && (isTensor(container) || (isReal(container) && PySequence_Check(realObject(container)))) &&
      !as<InstanceValue>(key)->contents)
    if (Value* index = indexValue(t, key)) key = index;
  if (key->kind == Kind::Slice && container->kind != Kind::Instance) {
    auto* s = as<SliceValue>(key);
    Value* parts[] = {s->start, s->stop, s->step};
    bool changed = false;
    for (Value*& part : parts)
      if (part->kind == Kind::Instance)
        if (Value* index = indexValue(t, part)) part = index, changed = true;
    if (changed) key = t.make<SliceValue>(parts[0], parts[1], parts[2]);
  }
  if (Value* alias = genericAlias(t, container, key)) return alias;
  if (Value* method = pythonSpecial(t, container, "__getitem__")) return call1(t, method, key);
  if (isArray(container)) return arrayOperator(t, "getitem", {container, key});
  if (ListValue* l = asList(container)) {
    t.load(l);
    if (l->type == dequeType() && isSlice(key)) raise(t, PyExc_TypeError, "sequence index must be integer, not 'slice'");
    if (isSlice(key)) return t.list(pickSlice(t, l->items, key));
    return pickItem(t, l->items, key, l->type == dequeType() ? "deque" : "list");
  }
  if (TupleValue* tuple = asTuple(container)) {
    t.load(tuple);
    if (isSlice(key) && tuple->type == &PyTuple_Type) {
      SliceRange r = sliceRange(t, key, tuple->items.size());
      if (r.start == 0 && r.step == 1 && r.count == static_cast<Py_ssize_t>(tuple->items.size())) return container;
    }
    if (isSlice(key)) return t.tuple(pickSlice(t, tuple->items, key), tuple->type == sizeType() ? sizeType() : &PyTuple_Type);
    return pickItem(t, tuple->items, key, "tuple");
  }
  if (DictValue* d = asDict(container)) {
    if (Value* v = t.dictGet(d, t.keyOf(key))) return v;
    if (Value* missing = container->kind == Kind::Instance ? pythonSpecial(t, container, "__missing__") : nullptr) return call1(t, missing, key);
    if (Value* factory = defaultFactory(t, d)) {
      if (!isSame(t, factory, t.none())) {
        Value* made = call(t, factory, {});
        t.dictSet(d, t.keyOf(key), made);
        return made;
      }
    }
    keyError(t, key);
  }
  if (isTensor(container)) {
    if (isOverridden(t, CallArgs{{container, key}, {}})) return call1(t, specialMethod(t, container, "__getitem__"), key);
    static PyObject* getitem = importedObject("operator", "getitem");
    return recordOp(t, getitem, false, {{container, key}, {}});
  }
  if (isReal(container)) {
    PyObject* object = realObject(container);
    if (PyType_Check(object)) {
      // Class[...] by the class's own __class_getitem__.
      static PyObject* name = PyUnicode_InternFromString("__class_getitem__");
      PyObject* meta = lookUp(t, Py_TYPE(object), PyUnicode_InternFromString("__getitem__"));
      if (meta && PyFunction_Check(meta)) return call(t, t.wrap(meta, t.sources.pinned(meta)), {{container, key}, {}});
      Value* method = getTypeAttr(t, reinterpret_cast<PyTypeObject*>(object), name);
      PyObject* ck = t.snapshot(key);
      if (method && ck) return t.real(native(t, PyObject_GetItem(t.identity(container), ck)));
    }
    if (PyObject* c = t.constant(container)) {
      PyObject* ck = isTensor(key) ? nullptr : t.snapshot(key);
      if (ck) return t.real(native(t, PyObject_GetItem(c, ck)));
      if (PyTuple_Check(c) || PyRange_Check(c)) return pickItem(t, itemsOf(t, container), key, "tuple");
      unsupported(BreakReason::TensorAsIndex, "indexing " + describe(container) + " with " + describe(key));
    }
    if (Py_TYPE(object) == &PyDictProxy_Type && !container->source) {
      PyObject* ck = t.constant(key);
      if (ck) return t.real(native(t, PyObject_GetItem(object, ck)));
    }
    unsupported(BreakReason::UnsupportedIndexing, "indexing " + describe(container));
  }
  if (Value* method = specialMethod(t, container, "__getitem__")) return call1(t, method, key);
  checkModelled(t, container, "an item of",
                [](const PyTypeObject&, const PyMappingMethods& m, const PySequenceMethods& s) { return m.mp_subscript || s.sq_item; });
  raise(t, PyExc_TypeError, std::string("'") + t.typeOf(container)->tp_name + "' object is not subscriptable");
}

std::vector<Value*> itemsOr(Trace& t, Value* v, const std::string& refusal) {
  PyTypeObject* type = t.typeOf(v);
  if (!type->tp_iter && !(type->tp_as_sequence && type->tp_as_sequence->sq_item)) raise(t, PyExc_TypeError, refusal);
  return itemsOf(t, v);
}

void setItem(Trace& t, Value* container, Value* key, Value* value) {
  if (Value* method = pythonSpecial(t, container, "__setitem__")) {
    call(t, method, {{key, value}, {}});
    return;
  }
  if (isArray(container)) {
    arrayOperator(t, "setitem", {container, key, value});
    return;
  }
  if (ListValue* l = asList(container)) {
    t.load(l);
    std::vector<Value*> items = l->items;
    bool deque = l->type == dequeType();
    if (isSlice(key) && !deque) {
      SliceRange r = sliceRange(t, key, items.size());
      std::vector<Value*> fresh = itemsOr(t, value, r.step == 1 ? "can only assign an iterable" : "must assign iterable to extended slice");
      if (r.step == 1) {
        Py_ssize_t stop = std::max(r.start, r.stop);
        items.erase(items.begin() + r.start, items.begin() + stop);
        items.insert(items.begin() + r.start, fresh.begin(), fresh.end());
      } else {
        if (static_cast<Py_ssize_t>(fresh.size()) != r.count)
          raise(t, PyExc_ValueError,
                "attempt to assign sequence of size " + std::to_string(fresh.size()) + " to extended slice of size " + std::to_string(r.count));
        for (Py_ssize_t i = 0; i < r.count; i++) items[static_cast<size_t>(r.start + i * r.step)] = fresh[static_cast<size_t>(i)];
      }
      return t.setItems(l, std::move(items));
    }
    long long i = indexOf(t, key, deque ? "deque" : "list");
    if (i < 0) i += static_cast<long long>(items.size());
    if (i < 0 || i >= static_cast<long long>(items.size()))
      raise(t, PyExc_IndexError, deque ? "deque index out of range" : "list assignment index out of range");
    t.touch(l);
    t.journal.onRollback([l, i, old = l->items[static_cast<size_t>(i)]] { l->items[static_cast<size_t>(i)] = old; });
    l->items[static_cast<size_t>(i)] = value;
    return;
  }
  if (DictValue* d = asDict(container)) return t.dictSet(d, t.keyOf(key), value);
  if (isTensor(container)) {
    if (isOverridden(t, CallArgs{{container, key, value}, {}})) {
      call(t, specialMethod(t, container, "__setitem__"), {{key, value}, {}});
      return;
    }
    static PyObject* setitem = importedObject("operator", "setitem");
    recordOp(t, setitem, false, {{container, key, value}, {}});
    return;
  }
  if (Value* method = isReal(container) ? nullptr : specialMethod(t, container, "__setitem__")) {
    call(t, method, {{key, value}, {}});
    return;
  }
  if (isReal(container) && container->source && Py_TYPE(realObject(container))->tp_as_mapping &&
      Py_TYPE(realObject(container))->tp_as_mapping->mp_ass_subscript)
    unsupported(BreakReason::ItemWrite, "assigning to an item of " + describe(container));
  checkModelled(t, container, "writing an item of",
                [](const PyTypeObject&, const PyMappingMethods& m, const PySequenceMethods& s) { return m.mp_ass_subscript || s.sq_ass_item; });
  raise(t, PyExc_TypeError, std::string("'") + t.typeOf(container)->tp_name + "' object does not support item assignment");
}

void delItem(Trace& t, Value* container, Value* key) {
  if (Value* method = pythonSpecial(t, container, "__delitem__")) {
    call1(t, method, key);
    return;
  }
  if (ListValue* l = asList(container)) {
    t.load(l);
    std::vector<Value*> items = l->items;
    bool deque = l->type == dequeType();
    if (isSlice(key) && !deque) {
      SliceRange r = sliceRange(t, key, items.size());
      std::vector<bool> gone(items.size(), false);
      for (Py_ssize_t i = 0; i < r.count; i++) gone[static_cast<size_t>(r.start + i * r.step)] = true;
      std::vector<Value*> left;
      for (size_t i = 0; i < items.size(); i++)
        if (!gone[i]) left.push_back(items[i]);
      return t.setItems(l, std::move(left));
    }
    long long i = indexOf(t, key, deque ? "deque" : "list");
    if (i < 0) i += static_cast<long long>(items.size());
    if (i < 0 || i >= static_cast<long long>(items.size()))
      raise(t, PyExc_IndexError, deque ? "deque index out of range" : "list assignment index out of range");
    items.erase(items.begin() + i);
    return t.setItems(l, std::move(items));
  }
  if (DictValue* d = asDict(container)) {
    if (!t.dictDelete(d, t.keyOf(key))) keyError(t, key);
    return;
  }
  checkModelled(t, container, "deleting an item of",
                [](const PyTypeObject&, const PyMappingMethods& m, const PySequenceMethods& s) { return m.mp_ass_subscript || s.sq_ass_item; });
  raise(t, PyExc_TypeError, std::string("'") + t.typeOf(container)->tp_name + "' object doesn't support item deletion");
}

Py_ssize_t length(Trace& t, Value* v) {
  if (Value* core = coreUnless(t, v, {"__len__"})) v = core;
  if (isLateText(v)) unsupported(BreakReason::UnsupportedOperator, "the length of a text that shows tensors");
  if (Value* method = pythonSpecial(t, v, "__len__")) {
    long long n = indexArgument(t, call(t, method, {}));
    if (n < 0) raise(t, PyExc_ValueError, "__len__() should return >= 0");
    return static_cast<Py_ssize_t>(n);
  }
  if (isArray(v)) return arrayLength(as<ArrayValue>(v));
  if (ListValue* l = asList(v)) {
    t.load(l);
    return static_cast<Py_ssize_t>(l->items.size());
  }
  if (TupleValue* tuple = asTuple(v)) {
    t.load(tuple);
    return static_cast<Py_ssize_t>(tuple->items.size());
  }
  if (DictValue* d = asDict(v)) return static_cast<Py_ssize_t>(t.dictLength(d));
  if (SetValue* s = asSet(v)) {
    t.load(s);
    return static_cast<Py_ssize_t>(s->items.size());
  }
  if (v->kind == Kind::DictView) return static_cast<Py_ssize_t>(t.dictLength(as<DictValue>(as<DictViewValue>(v)->owner)));
  if (isTensor(v)) {
    if (isOverridden(t, CallArgs{{v}, {}})) return static_cast<Py_ssize_t>(indexArgument(t, call(t, specialMethod(t, v, "__len__"), {})));
    auto* tensor = as<TensorValue>(v);
    t.observe(tensor);
    if (tensor->meta.dim() == 0) raise(t, PyExc_TypeError, "len() of a 0-d tensor");
    return static_cast<Py_ssize_t>(tensor->meta.sizes[0]);
  }
  if (PyObject* c = t.constant(v)) {
    Py_ssize_t n = PyObject_Size(c);
    if (n < 0) raiseCurrent(t);
    return n;
  }
  if (isReal(v)) unsupported(BreakReason::UnsupportedLength, "the length of " + describe(v));
  checkModelled(t, v, "the length of",
                [](const PyTypeObject&, const PyMappingMethods& m, const PySequenceMethods& s) { return m.mp_length || s.sq_length; });
  raise(t, PyExc_TypeError, std::string("object of type '") + t.typeOf(v)->tp_name + "' has no len()");
}

bool contains(Trace& t, Value* container, Value* item) {
  if (Value* core = coreUnless(t, container, {"__contains__"})) {
    Value* part = coreOf(t, item);
    return contains(t, core, part ? part : item);
  }
  if (isArray(container) || isArray(item)) unsupported(BreakReason::NumpyCall, "`in` with a NumPy array");
  if (isLateText(container)) unsupported(BreakReason::UnsupportedOperator, "a search in a text that shows tensors");
  if (Value* method = pythonSpecial(t, container, "__contains__")) {
    if (isReal(method, Py_None)) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(container)->tp_name + "' object is not a container");
    return truth(t, call1(t, method, item));
  }
  if (isReal(container) && PyType_Check(realObject(container))) {
    // A class asks its metaclass: of an Enum, not only the members that its iterator gives.
    static PyObject* name = PyUnicode_InternFromString("__contains__");
    auto* meta = Py_TYPE(t.identity(container));
    if (PyObject* method = lookUp(t, meta, name)) return truth(t, call1(t, bindDescriptor(t, method, container, meta, name), item));
  }
  if (DictValue* d = asDict(container)) return t.dictGet(d, t.keyOf(item)) != nullptr;
  if (SetValue* s = asSet(container)) return t.setHas(s, keyToFind(t, item));
  if (container->kind == Kind::DictView && as<DictViewValue>(container)->what == DictViewValue::Keys)
    return t.dictGet(as<DictValue>(as<DictViewValue>(container)->owner), t.keyOf(item)) != nullptr;
  if (container->kind == Kind::Instance)
    if (PyObject* text = t.constant(container); text && PyUnicode_Check(text)) {
      PyObject* part = t.constant(item);
      if (!part) raise(t, PyExc_TypeError, std::string("'in <string>' requires string as left operand, not ") + t.typeOf(item)->tp_name);
      int found = PySequence_Contains(text, part);
      if (found < 0) raiseCurrent(t);
      return found != 0;
    }
  if (isOpen(item) && isReal(container) && PyTuple_CheckExact(realObject(container))) {
    for (Value* v : itemsOf(t, container))
      if (equals(t, v, item)) return true;
    return false;
  }
  if (isReal(container)) {
    PyObject* c = t.constant(container);
    PyObject* ci = c ? t.constant(item) : nullptr;
    if (ci) {
      int found = PySequence_Contains(c, ci);
      if (found < 0) raiseCurrent(t);
      return found != 0;
    }
    if (c && PyUnicode_Check(c) && !isTensor(item) && item->kind != Kind::Instance)
      raise(t, PyExc_TypeError, std::string("'in <string>' requires string as left operand, not ") + t.typeOf(item)->tp_name);
    if (c && PyBytes_Check(c) && !isTensor(item) && item->kind != Kind::Instance)
      raise(t, PyExc_TypeError, std::string("a bytes-like object is required, not '") + t.typeOf(item)->tp_name + "'");
    if (Py_TYPE(realObject(container)) == &PyDictProxy_Type && container->source)
      unsupported(BreakReason::UnsupportedIndexing, "reading " + describe(container));
    if (Py_TYPE(realObject(container)) == &PyDictProxy_Type && (ci = t.constant(item))) {
      int found = PySequence_Contains(realObject(container), ci);
      if (found < 0) raiseCurrent(t);
      return found != 0;
    }
  }
  if (isTensor(container)) unsupported(BreakReason::DataDependentBranch, "`in` on a tensor");
  if (container->kind == Kind::Instance && !as<InstanceValue>(container)->contents && !specialMethod(t, container, "__iter__") &&
      !specialMethod(t, container, "__getitem__"))
    raise(t, PyExc_TypeError, std::string("argument of type '") + t.typeOf(container)->tp_name + "' is not iterable");
  if (!isIterable(t, container)) raise(t, PyExc_TypeError, std::string("argument of type '") + t.typeOf(container)->tp_name + "' is not iterable");
  for (Value* v : itemsOf(t, container))
    if (isSame(t, v, item) || equals(t, v, item)) return true;
  return false;
}

// ---- iteration -------------------------------------------------------------------------------------------------------

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
  switch (v->kind) {
    case Kind::Iterator: t.typeOf(v); return v;
    case Kind::Generator: return v;
    case Kind::Array: unsupported(BreakReason::UnsupportedIteration, "iteration over a NumPy array");
    default: break;
  }
  if (Value* method = pythonSpecial(t, v, "__iter__")) {
    if (isReal(method, Py_None)) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not iterable");
    Value* it = call(t, method, {});
    bool iterator = it->kind == Kind::Iterator || it->kind == Kind::Generator ||
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
    DictValue* d = v->kind == Kind::DictView ? as<DictValue>(as<DictViewValue>(v)->owner) : asDict(v);
    if (PyType_IsSubtype(d->type, &PyODict_Type)) it->type = &PyODictIter_Type;
    t.complete(d);
    it->subject = d;
    it->step = what;
    it->stop = static_cast<int64_t>(d->live);
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
    if (specialMethod(t, v, "__getitem__")) {
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

bool isRaised(Trace& t, const Raised& r, PyObject* type) {
  return PyType_IsSubtype(t.typeOf(r.exception), reinterpret_cast<PyTypeObject*>(type)) != 0;
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
      if (static_cast<int64_t>(d->live) != it->stop) {
        t.journal.set(it->stop, -1);
        raise(t, PyExc_RuntimeError,
              PyType_IsSubtype(d->type, &PyODict_Type) ? "OrderedDict mutated during iteration" : "dictionary changed size during iteration");
      }
      size_t at = static_cast<size_t>(it->position);
      while (at < d->entries.size() && !d->entries[at].value) at++;
      t.journal.set(it->position, static_cast<int64_t>(at) + 1);
      if (at >= d->entries.size()) return finish();
      if (it->given == it->stop) raise(t, PyExc_RuntimeError, "dictionary keys changed during iteration");
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
      Value* v = call(t, it->subject, {});
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
        if (!isRaised(t, r, PyExc_IndexError) && !isRaised(t, r, PyExc_StopIteration)) throw;
        return finish();
      }
    }
    default: return nextOfItertool(t, it);
  }
}

}  // namespace

Value* next(Trace& t, Value* v) {
  if (v->kind == Kind::Iterator) return nextOf(t, as<IteratorValue>(v));
  if (v->kind == Kind::Generator) return resumeGenerator(t, as<GeneratorValue>(v), t.none(), nullptr);
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
    if (!isRaised(t, r, PyExc_StopIteration)) throw;
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

std::vector<Value*> itemsOf(Trace& t, Value* v) {
  bool custom = v->kind == Kind::Instance && pythonSpecial(t, v, "__iter__");
  if (!custom) {
    if (ListValue* l = asList(v)) {
      t.load(l);
      return l->items;
    }
    if (TupleValue* tuple = asTuple(v)) {
      t.load(tuple);
      return tuple->items;
    }
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
