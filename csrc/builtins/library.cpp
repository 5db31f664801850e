// Pieces of the standard library: copying, mappings that only show another one, json.
#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"
#include "values/namespaces.h"

namespace cdynamo {

namespace {

// ---- mappingproxy --------------------------------------------------------------------------------------------------------

// What a mapping shows: where it is known without a guard (of a class made by the trace, of a signature), a copy of it.
DictValue* shownDict(Trace& t, Value* v) {
  Value* mapping = mappingOfProxy(t, v);
  if (mapping && mapping->kind == Kind::Dict) return as<DictValue>(mapping);
  if (!isReal(v) || v->source) unsupported(BreakReason::UnsupportedIndexing, "reading " + describe(v));
  ObjectRef copy = checked(PyDict_New());
  checkedStatus(PyDict_Update(copy.get(), realObject(v)));
  DictValue* d = t.dict();
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(copy.get(), &at, &key, &value);)
    t.dictSet(d, t.keyOf(t.realShared(key)), t.realShared(t.keep(ObjectRef::share(value))));
  return d;
}

template <DictViewValue::What what>
Value* proxyView(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.make<DictViewValue>(shownDict(t, a.args[0]), what);
}
Value* proxyCopy(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  static PyObject* copy = typeLookup(&PyDict_Type, interned("copy"));
  return call1(t, t.realShared(copy), shownDict(t, a.args[0]));
}
Value* proxyGet(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 3);
  DictValue* d = shownDict(t, a.args[0]);
  Value* v = t.dictGet(d, t.keyOf(a.args[1]));
  return v ? v : a.args.size() > 2 ? a.args[2] : t.none();
}

// ---- SimpleNamespace -----------------------------------------------------------------------------------------------------

Value* namespaceNew(Trace& t, CallArgs& a) {
  if (a.args.empty() || !isReal(a.args[0]) || !PyType_Check(realObject(a.args[0]))) throw WrongArguments{};
  auto* type = reinterpret_cast<PyTypeObject*>(t.identity(a.args[0]));
  if (!PyType_IsSubtype(type, namespaceType())) throw WrongArguments{};
  return makeInstance(t, type);
}
Value* namespaceInit(Trace& t, CallArgs& a) {
  if (a.args.size() != 1) throw WrongArguments{};
  if (a.args[0]->kind != Kind::Instance) unsupported(BreakReason::ObjectConstruction, "initialising " + describe(a.args[0]));
  DictValue* attributes = t.dictOf(as<InstanceValue>(a.args[0]));
  for (auto& [name, v] : a.kwargs) t.dictSet(attributes, t.keyOf(t.realShared(name)), v);
  return t.none();
}

// ---- json: on plain data, by itself ----------------------------------------------------------------------------------------

bool isPlainData(Trace& t, Value* v) {
  PyTypeObject* type = t.typeOf(v);
  if (isReal(v)) return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || isReal(v, Py_None);
  if (v->kind == Kind::Dict) {
    t.complete(as<DictValue>(v));
    for (const DictEntry& e : as<DictValue>(v)->entries)
      if (e.value && (!e.key.value || !isPlainData(t, e.key.value) || !isPlainData(t, e.value))) return false;
    return type == &PyDict_Type;
  }
  if (type != &PyList_Type && type != &PyTuple_Type) return false;
  for (Value* item : itemsOf(t, v))
    if (!isPlainData(t, item)) return false;
  return true;
}

Value* jsonDumps(Trace& t, CallArgs& a) {
  static PyObject* dumps = importedObject("json", "dumps");
  bool plain = true;
  for (Value* v : a.args) plain = plain && isPlainData(t, v);
  for (auto& [name, v] : a.kwargs) plain = plain && isPlainData(t, v);
  Value* text = plain ? callNative(t, dumps, a) : nullptr;
  return text ? text : inlineFunction(t, pinnedValue(t, dumps), a);
}

// ---- iterators called by name --------------------------------------------------------------------------------------------------

Value* iteratorNext(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  if (a.args[0]->kind != Kind::Iterator) unsupported(BreakReason::UnsupportedNext, "the next item of " + describe(a.args[0]));
  if (Value* v = next(t, a.args[0])) return v;
  throw Raised{t.real(checked(PyObject_CallNoArgs(PyExc_StopIteration)))};
}
Value* iteratorIter(Trace&, CallArgs& a) {
  expectArgs(a, 1, 1);
  return a.args[0];
}

Value* viewIsDisjoint(Trace& t, CallArgs& a) {
  Value* it = iterate(t, a.args[1]);
  while (Value* v = next(t, it))
    if (contains(t, a.args[0], v)) return t.boolean(false);
  return t.boolean(true);
}

Value* copyTensor(Trace&, CallArgs&) { unsupported(BreakReason::UnknownFunction, "copying a tensor with module copy"); }

void addIterator(BuiltinTable& table, PyTypeObject* type) {
  table.addType(type, "__next__", iteratorNext);
  table.addType(type, "__iter__", iteratorIter);
}

}  // namespace

void addLibraryFunctions(BuiltinTable& table) {
  for (PyTypeObject* type : {&PyListIter_Type, &PyTupleIter_Type, &PyRangeIter_Type, &PyDictIterKey_Type, &PyDictIterValue_Type, &PyDictIterItem_Type,
                             &PySetIter_Type, &PyZip_Type, &PyMap_Type, &PyFilter_Type, &PyEnum_Type, &PyListRevIter_Type, &PyReversed_Type,
                             &PyCallIter_Type, &PyUnicodeIter_Type, &PyDictRevIterKey_Type, &PyDictRevIterValue_Type, &PyDictRevIterItem_Type,
                             Py_TYPE(checked(PyObject_GetIter(importedObject("string", "digits"))).get())})
    addIterator(table, type);
  PyObject *name, *object;
  for (Py_ssize_t at = 0; PyDict_Next(PyModule_GetDict(checked(PyImport_ImportModule("itertools")).get()), &at, &name, &object);)
    if (PyType_Check(object) && reinterpret_cast<PyTypeObject*>(object)->tp_iternext) addIterator(table, reinterpret_cast<PyTypeObject*>(object));
  for (PyTypeObject* type : {&PyDictKeys_Type, &PyDictItems_Type}) table.addType(type, "isdisjoint", viewIsDisjoint);
  table.add("torch.Tensor.__reduce_ex__", copyTensor);
  table.addPolyfill("builtins.object.__reduce_ex__", "object_reduce_ex");
  table.addPolyfill("builtins.object.__getstate__", "object_getstate");
  table.addPolyfill("builtins.BaseException.__reduce__", "exception_reduce");
  table.addPolyfill("builtins.set.__reduce__", "set_reduce");
  table.addPolyfill("builtins.frozenset.__reduce__", "set_reduce");
  table.addPolyfill("builtins.slice.__reduce__", "slice_reduce");
  table.addPolyfill("collections.deque.__reduce__", "deque_reduce");
  table.addPolyfill("collections.OrderedDict.__reduce__", "ordered_dict_reduce");
  table.addPolyfill("collections.defaultdict.__reduce__", "default_dict_reduce");
  table.add("types.SimpleNamespace.__new__", namespaceNew);
  table.add("types.SimpleNamespace.__init__", namespaceInit);
  table.addPolyfill("types.SimpleNamespace.__repr__", "namespace_repr");
  table.addPolyfill("types.SimpleNamespace.__eq__", "namespace_eq");
  table.addPolyfill("types.SimpleNamespace.__ne__", "namespace_ne");
  table.addPolyfill("types.SimpleNamespace.__reduce__", "namespace_reduce");
  table.add("json.dumps", jsonDumps);
  table.addType(&PyDictProxy_Type, "keys", proxyView<DictViewValue::Keys>);
  table.addType(&PyDictProxy_Type, "values", proxyView<DictViewValue::Values>);
  table.addType(&PyDictProxy_Type, "items", proxyView<DictViewValue::Items>);
  table.addType(&PyDictProxy_Type, "copy", proxyCopy);
  table.addType(&PyDictProxy_Type, "get", proxyGet);
}

}  // namespace cdynamo
