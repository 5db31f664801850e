// Subscripts, lengths, membership and iteration.
#include <algorithm>
#include <cstring>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"
#include "interp/lifetimes.h"
#include "interp/local_classes.h"
#include "interp/protocol.h"
#include "interp/special_methods.h"
#include "interp/stand_ins.h"
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
DictValue* iteratedDict(Value* v) { return v->kind == Kind::DictView ? as<DictValue>(as<DictViewValue>(v)->owner) : asDict(v); }
int64_t iterationState(const DictValue* d) { return PyType_IsSubtype(d->type, &PyODict_Type) ? d->state() : static_cast<int64_t>(d->live); }
DictValue* mergedAsDict(Trace& t, Value* v) {
  DictValue* d = asDict(v);
  if (!d || v->kind == Kind::Dict) return d;
  auto iterates = t.typeOf(v)->tp_iter;
  if (iterates == PyDict_Type.tp_iter) return d;
  return iterates == PyODict_Type.tp_iter && !overrides(t, v, "keys") && !overrides(t, v, "__getitem__") ? d : nullptr;
}
SetValue* asSet(Value* v) { return partOf<SetValue>(v, Kind::Set); }

Value* pythonSpecial(Trace& t, Value* v, const char* name) {
  if (isReal(v) && PyType_Check(realObject(v)) && Py_TYPE(realObject(v)) != &PyType_Type)
    t.identity(v);  // a class asks its metaclass
  else if (v->kind != Kind::Instance)
    return nullptr;
  Value* method = specialMethod(t, v, name);
  if (!method) return nullptr;
  auto* bound = method->kind == Kind::BoundMethod ? as<BoundMethodValue>(method) : nullptr;
  if (bound && isReal(bound->function) &&
      (Py_TYPE(realObject(bound->function)) == &PyWrapperDescr_Type || Py_TYPE(realObject(bound->function)) == &PyMethodDescr_Type))
    return nullptr;
  return method;
}

namespace {

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
  PyObject* constant = t.constant(v);
  if (constant && t.localClass(constant)) unsupported(BreakReason::UnsupportedIndexing, "a generic alias of a class that the program made");
  return ObjectRef::share(constant);
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
  if (t.localClass(object)) unsupported(BreakReason::UnsupportedIndexing, "a generic alias of a class that the program made");
  ObjectRef arguments = typeArguments(t, key);
  if (!arguments) return nullptr;
  PyObject* made = t.keep(native(t, PyObject_GetItem(object, arguments.get())));
  return PyType_IsSubtype(Py_TYPE(made), &Py_GenericAliasType) ? t.realShared(made) : t.wrap(made, t.sources.owned(made));
}

namespace {

// A function of modules typing and dataclasses: it makes aliases of what it is given, and does nothing else.
bool isOfTyping(Trace& t, Value* function) {
  PyObject* real = isReal(function) ? t.identity(function) : nullptr;
  if (!real || !PyFunction_Check(real)) return false;
  static PyObject* typing = PyModule_GetDict(checked(PyImport_ImportModule("typing")).get());
  static PyObject* dataclasses = PyModule_GetDict(checked(PyImport_ImportModule("dataclasses")).get());
  return PyFunction_GET_GLOBALS(real) == typing || PyFunction_GET_GLOBALS(real) == dataclasses;
}

}  // namespace

Value* getItem(Trace& t, Value* container, Value* key) {
  if (Value* core = coreUnless(t, container, {"__getitem__"})) return onCores(t, [&] { return getItem(t, core, key); });
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
      auto* bound = method && method->kind == Kind::BoundMethod ? as<BoundMethodValue>(method) : nullptr;
      if (bound && isPythonFunction(bound->function) && !isOfTyping(t, bound->function)) return call1(t, method, key);
      if (method && ck) return t.real(native(t, PyObject_GetItem(t.identity(container), ck)));
    }
    if (PyObject* c = t.constant(container)) {
      PyObject* ck = isTensor(key) ? nullptr : t.snapshot(key);
      if (ck) return t.real(native(t, PyObject_GetItem(c, ck)));
      if (PyTuple_Check(c) || PyRange_Check(c)) return pickItem(t, itemsOf(t, container), key, PyTuple_Check(c) ? "tuple" : "range");
      unsupported(BreakReason::TensorAsIndex, "indexing " + describe(container) + " with " + describe(key));
    }
    if (Value* mapping = mappingOfProxy(t, container)) return getItem(t, mapping, key);
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

namespace {

// A class with only one of __setitem__ and __delitem__ is asked for the other.
void lacksItemMethod(Trace& t, Value* container, const char* method) {
  PyTypeObject* type = t.typeOf(container);
  if (container->kind != Kind::Instance || !type->tp_as_mapping || !type->tp_as_mapping->mp_ass_subscript) return;
  if (!specialMethod(t, container, method)) raise(t, PyExc_AttributeError, method);
}

}  // namespace

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
    checkOverwritten(t, l->items[static_cast<size_t>(i)]);
    t.touch(l);
    t.journal.onRollback([l, i, old = l->items[static_cast<size_t>(i)]] { l->items[static_cast<size_t>(i)] = old; });
    l->items[static_cast<size_t>(i)] = value;
    return;
  }
  if (DictValue* d = asDict(container)) {
    DictKey k = t.keyOf(key);
    if (!k.asked && !d->asks) checkOverwritten(t, t.dictGet(d, k));
    return t.dictSet(d, k, value);
  }
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
  lacksItemMethod(t, container, "__setitem__");
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
    checkOverwritten(t, items[static_cast<size_t>(i)]);
    items.erase(items.begin() + i);
    return t.setItems(l, std::move(items));
  }
  if (DictValue* d = asDict(container)) {
    DictKey k = t.keyOf(key);
    if (!k.asked && !d->asks) checkOverwritten(t, t.dictGet(d, k));
    if (!t.dictDelete(d, k)) keyError(t, key);
    return;
  }
  lacksItemMethod(t, container, "__delitem__");
  checkModelled(t, container, "deleting an item of",
                [](const PyTypeObject&, const PyMappingMethods& m, const PySequenceMethods& s) { return m.mp_ass_subscript || s.sq_ass_item; });
  const PyNumberMethods* number = t.typeOf(container)->tp_as_sequence ? t.typeOf(key)->tp_as_number : nullptr;
  raise(t, PyExc_TypeError,
        std::string("'") + t.typeOf(container)->tp_name + "' object " +
            (number && number->nb_index && t.typeOf(container)->tp_as_sequence ? "doesn't" : "does not") + " support item deletion");
}

Py_ssize_t length(Trace& t, Value* v) {
  if (Value* core = coreUnless(t, v, {"__len__"})) return onCores(t, [&] { return length(t, core); });
  if (isLateText(v)) unsupported(BreakReason::UnsupportedOperator, "the length of a text that shows tensors");
  if (Value* method = pythonSpecial(t, v, "__len__")) {
    Value* answer = call(t, method, {});
    Value* index = indexValue(t, answer);
    if (PyObject* number = index ? t.constant(index) : nullptr; number && PyLong_Check(number)) {
      int overflow = 0;
      long long sign = PyLong_AsLongLongAndOverflow(number, &overflow);
      if (overflow < 0 || (!overflow && sign < 0)) raise(t, PyExc_ValueError, "__len__() should return >= 0");
      if (overflow) raise(t, PyExc_OverflowError, "cannot fit 'int' into an index-sized integer");
    }
    long long n = indexArgument(t, index ? index : answer);
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
  if (Value* mapping = mappingOfProxy(t, v)) return length(t, mapping);
  if (isReal(v)) unsupported(BreakReason::UnsupportedLength, "the length of " + describe(v));
  checkModelled(t, v, "the length of",
                [](const PyTypeObject&, const PyMappingMethods& m, const PySequenceMethods& s) { return m.mp_length || s.sq_length; });
  raise(t, PyExc_TypeError, std::string("object of type '") + t.typeOf(v)->tp_name + "' has no len()");
}

bool contains(Trace& t, Value* container, Value* item) {
  if (Value* core = coreUnless(t, container, {"__contains__"})) {
    Value* part = coreOf(t, item);
    return onCores(t, [&] { return contains(t, core, part ? part : item); });
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
    PyObject* ci = !c ? nullptr : standsFor(item) ? t.snapshot(item) : t.constant(item);
    if (ci) {
      int found = PySequence_Contains(c, ci);
      if (found < 0) raiseCurrent(t);
      return found != 0;
    }
    Value* part = c && (PyUnicode_Check(c) || PyBytes_Check(c)) ? coreOf(t, item) : nullptr;
    if (part && Py_TYPE(c) == t.typeOf(part)) return contains(t, container, part);
    if (c && PyUnicode_Check(c) && !isTensor(item))
      raise(t, PyExc_TypeError, std::string("'in <string>' requires string as left operand, not ") + shownType(t, item)->tp_name);
    if (c && PyBytes_Check(c) && !isTensor(item)) {
      if (Value* number = item->kind == Kind::Instance ? indexValue(t, item) : nullptr) return contains(t, container, number);
      if (!part) raise(t, PyExc_TypeError, std::string("a bytes-like object is required, not '") + shownType(t, item)->tp_name + "'");
    }
    if (Value* mapping = mappingOfProxy(t, container)) return contains(t, mapping, item);
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
  auto is = [&](Value* v) { return isSame(t, v, item) || equals(t, v, item); };
  if (ListValue* l = asList(container)) {
    // A comparison may change it: a list is read as it is then, a deque says so.
    t.load(l);
    int64_t resizes = l->resizes;
    for (size_t i = 0; i < l->items.size(); i++) {
      bool found = is(l->items[i]);
      if (l->type == dequeType() && l->resizes != resizes) raise(t, PyExc_RuntimeError, "deque mutated during iteration");
      if (found) return true;
    }
    return false;
  }
  if (container->kind == Kind::Generator || container->kind == Kind::Iterator || container->kind == Kind::Instance) {
    // Nothing is taken behind the one that is found.
    Value* iterator = iterate(t, container);
    while (Value* v = next(t, iterator))
      if (is(v)) return true;
    return false;
  }
  std::vector<Value*> items = itemsOf(t, container);
  return std::any_of(items.begin(), items.end(), is);
}

}  // namespace cdynamo
