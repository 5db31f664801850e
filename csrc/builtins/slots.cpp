// Special methods of builtin types called by name: list.__getitem__(self, i) from a subclass, s.__eq__(other), d.__or__(other). The raw
// operation on the contents, without a look at what a subclass overrides.
#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/special_methods.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

Value* rawSelf(Value* v) {
  if (v->kind == Kind::Instance && as<InstanceValue>(v)->contents) return as<InstanceValue>(v)->contents;
  return v;
}

bool isOfType(Trace& t, Value* v, PyTypeObject* type) { return PyType_IsSubtype(t.typeOf(v), type) != 0; }

Value* notImplemented(Trace& t) { return t.realShared(Py_NotImplemented); }

// A deque has no slots for mappings: an index is asked for before anything else.
void askForIndex(Trace& t, CallArgs& a) {
  ListValue* list = asList(a.args[0]);
  if (list && list->type == dequeType()) a.args[1] = t.integer(indexArgument(t, a.args[1]));
}

Value* slotGetitem(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  askForIndex(t, a);
  // A key that is absent is asked of the subclass.
  DictValue* d = a.args[0]->kind == Kind::Instance ? asDict(a.args[0]) : nullptr;
  if (Value* missing = d && !t.dictGet(d, t.keyOf(a.args[1])) ? pythonSpecial(t, a.args[0], "__missing__") : nullptr)
    return call1(t, missing, a.args[1]);
  return getItem(t, rawSelf(a.args[0]), a.args[1]);
}
Value* slotSetitem(Trace& t, CallArgs& a) {
  expectArgs(a, 3, 3);
  askForIndex(t, a);
  setItem(t, rawSelf(a.args[0]), a.args[1], a.args[2]);
  return t.none();
}
Value* slotDelitem(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  askForIndex(t, a);
  delItem(t, rawSelf(a.args[0]), a.args[1]);
  return t.none();
}
Value* slotContains(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(contains(t, rawSelf(a.args[0]), a.args[1]));
}
Value* slotLen(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.integer(length(t, rawSelf(a.args[0])));
}
Value* slotIter(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return iterate(t, rawSelf(a.args[0]));
}
Value* slotReversed(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return call1(t, t.realShared(reinterpret_cast<PyObject*>(&PyReversed_Type)), rawSelf(a.args[0]));
}

// The type whose instances a comparison of v knows.
PyTypeObject* comparedWith(Trace& t, Value* v) {
  if (isOfType(t, v, &PyList_Type)) return &PyList_Type;
  if (isOfType(t, v, &PyTuple_Type)) return &PyTuple_Type;
  if (isOfType(t, v, &PyDict_Type)) return &PyDict_Type;
  return isOfType(t, v, dequeType()) ? dequeType() : nullptr;
}

template <int op>
Value* slotCompare(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  Value *x = rawSelf(a.args[0]), *y = rawSelf(a.args[1]);
  PyTypeObject* other = comparedWith(t, a.args[0]);
  bool known = other ? isOfType(t, a.args[1], other) : isOfType(t, a.args[1], &PySet_Type) || isOfType(t, a.args[1], &PyFrozenSet_Type);
  if (!known || (other == &PyDict_Type && op != Py_EQ && op != Py_NE)) return notImplemented(t);
  return compareOp(t, op, x, y);
}

// __add__ and __iadd__ of sequences.
template <int op>
Value* slotConcat(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return binaryOp(t, op, rawSelf(a.args[0]), rawSelf(a.args[1]));
}
// __mul__, __rmul__, __imul__: the number as an index.
template <int op>
Value* slotRepeat(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return binaryOp(t, op, rawSelf(a.args[0]), t.integer(indexArgument(t, a.args[1])));
}

// __or__, __ror__, __ior__ of dicts.
template <int op, bool reflected>
Value* slotMerge(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  bool inplace = op >= 13;
  if (!inplace && !isOfType(t, a.args[1], &PyDict_Type)) return notImplemented(t);
  if (inplace) {
    PyTypeObject* base = isOfType(t, a.args[0], &PyODict_Type) ? &PyODict_Type : &PyDict_Type;
    call(t, getAttr(t, t.realShared(reinterpret_cast<PyObject*>(base)), "update"), {{a.args[0], a.args[1]}, {}});
    return a.args[0];
  }
  for (Value* v : a.args)
    if (v->kind == Kind::Instance && (PyType_IsSubtype(t.typeOf(v), &PyODict_Type) || defaultFactory(t, asDict(v))))
      unsupported(BreakReason::MethodCall, "merging " + describe(v));
  Value *left = rawSelf(a.args[reflected]), *right = rawSelf(a.args[!reflected]);
  return binaryOp(t, op, left, right);
}

Value* slotRepr(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  // An instance of a subclass shows as what it inherits, with the names of the subclass where CPython does so.
  if (a.args[0]->kind == Kind::Instance && (asDict(a.args[0]) && t.typeOf(a.args[0]) != &PyDict_Type)) {
    PyTypeObject* base = asDict(a.args[0])->type;
    if (PyType_IsSubtype(base, &PyODict_Type) || defaultFactory(t, asDict(a.args[0])))
      unsupported(BreakReason::UnsupportedText, "the text of " + describe(a.args[0]));
  }
  return repr(t, rawSelf(a.args[0]));
}
Value* slotHash(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  DictKey k = t.keyOf(rawSelf(a.args[0]));
  if (!k.constant || !t.constant(rawSelf(a.args[0]))) unsupported(BreakReason::HashOrCompare, "the hash of " + describe(a.args[0]));
  return t.integer(k.hash);
}
Value* slotGetnewargs(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.tuple({t.tuple(itemsOf(t, rawSelf(a.args[0])))});
}

// object.__str__ is the type's __repr__; object.__format__ is str, and takes no specification.
Value* objectStr(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return repr(t, a.args[0]);
}
Value* objectFormat(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  PyObject* spec = t.constant(a.args[1]);
  if (!spec) unsupported(BreakReason::UnsupportedText, "a format specification made from " + describe(a.args[1]));
  if (!PyUnicode_Check(spec))
    raise(t, PyExc_TypeError, std::string("__format__() argument must be str, not ") + (spec == Py_None ? "None" : Py_TYPE(spec)->tp_name));
  return format(t, a.args[0], a.args[1], 0);
}

Value* defaultdictMissing(Trace& t, CallArgs& a) {
  DictValue* d = asDict(a.args[0]);
  Value* factory = d ? defaultFactory(t, d) : nullptr;
  if (!factory) unsupported(BreakReason::MethodCall, "__missing__ of " + describe(a.args[0]));
  if (isSame(t, factory, t.none())) keyError(t, a.args[1]);
  Value* made = call(t, factory, {});
  setItem(t, a.args[0], a.args[1], made);
  return made;
}

}  // namespace

void addSlotMethods(BuiltinTable& table) {
  struct Row {
    const char* name;
    BuiltinHandler handler;
  };
  const Row common[] = {{"__getitem__", slotGetitem},   {"__setitem__", slotSetitem},   {"__delitem__", slotDelitem},
                        {"__contains__", slotContains}, {"__len__", slotLen},           {"__iter__", slotIter},
                        {"__eq__", slotCompare<Py_EQ>}, {"__ne__", slotCompare<Py_NE>}, {"__lt__", slotCompare<Py_LT>},
                        {"__le__", slotCompare<Py_LE>}, {"__gt__", slotCompare<Py_GT>}, {"__ge__", slotCompare<Py_GE>},
                        {"__reversed__", slotReversed}, {"__repr__", slotRepr}};
  const Row sequences[] = {{"__add__", slotConcat<0>},
                           {"__iadd__", slotConcat<13>},
                           {"__mul__", slotRepeat<5>},
                           {"__rmul__", slotRepeat<5>},
                           {"__imul__", slotRepeat<18>}};
  const Row dicts[] = {{"__or__", slotMerge<7, false>}, {"__ror__", slotMerge<7, true>}, {"__ior__", slotMerge<20, false>}};
  auto add = [&](PyTypeObject* type, const Row& r) {
    ObjectRef name = checked(PyUnicode_InternFromString(r.name));
    PyObject* own = PyDict_GetItemWithError(typeDict(type), name.get());
    if (own && own != Py_None && !table.find(own)) table.addType(type, r.name, r.handler);
  };
  auto* defaultdict = reinterpret_cast<PyTypeObject*>(importedObject("collections", "defaultdict"));
  for (PyTypeObject* type : {&PyList_Type, &PyTuple_Type, dequeType()}) {
    for (const Row& r : common) add(type, r);
    for (const Row& r : sequences) add(type, r);
  }
  const Row plain[] = {{"__setitem__", ofPlainDict<slotSetitem>},    {"__delitem__", ofPlainDict<slotDelitem>},
                       {"__iter__", ofPlainDict<slotIter>},          {"__reversed__", ofPlainDict<slotReversed>},
                       {"__repr__", ofPlainDict<slotRepr>},          {"__eq__", ofPlainDict<slotCompare<Py_EQ>>},
                       {"__ne__", ofPlainDict<slotCompare<Py_NE>>},  {"__or__", ofPlainDict<slotMerge<7, false>>},
                       {"__ror__", ofPlainDict<slotMerge<7, true>>}, {"__ior__", ofPlainDict<slotMerge<20, false>>}};
  for (const Row& r : plain) add(&PyDict_Type, r);
  for (PyTypeObject* type : {&PyDict_Type, &PyODict_Type, defaultdict}) {
    for (const Row& r : common) add(type, r);
    for (const Row& r : dicts) add(type, r);
  }
  for (PyTypeObject* type : {&PySet_Type, &PyFrozenSet_Type})
    for (const Row& r : common) add(type, r);
  for (PyTypeObject* type : {&PyTuple_Type, &PyFrozenSet_Type}) add(type, {"__hash__", slotHash});
  add(&PyTuple_Type, {"__getnewargs__", slotGetnewargs});
  add(defaultdict, {"__missing__", defaultdictMissing});
  add(&PyBaseObject_Type, {"__str__", objectStr});
  add(&PyBaseObject_Type, {"__format__", objectFormat});
}

}  // namespace cdynamo
