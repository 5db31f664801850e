// Builtin functions.
#include <algorithm>
#include <cmath>

#include "base/own_library.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/attribute_parts.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/operator_parts.h"
#include "interp/stand_ins.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

PyObject* nameArgument(Trace& t, Value* v, const char* fn) {
  if (!PyType_IsSubtype(t.typeOf(v), &PyUnicode_Type))
    raise(t, PyExc_TypeError, std::string("attribute name must be string, not '") + t.typeOf(v)->tp_name + "'");
  PyObject* name = t.constant(v);
  if (!name || !PyUnicode_CheckExact(name)) unsupported(BreakReason::BuiltinCall, std::string(fn) + " with " + describe(v) + " for a name");
  PyObject* interned = ObjectRef::share(name).release();
  PyUnicode_InternInPlace(&interned);
  return t.keep(ObjectRef::steal(interned));
}

namespace {

Value* builtinLen(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.integer(length(t, a.args[0]));
}

Value* builtinGetattr(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 3);
  PyObject* name = nameArgument(t, a.args[1], "getattr");
  if (a.args.size() == 2) return getAttr(t, a.args[0], name);
  Value* v = getAttrOrNull(t, a.args[0], name);
  return v ? v : a.args[2];
}

Value* builtinHasattr(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(getAttrOrNull(t, a.args[0], nameArgument(t, a.args[1], "hasattr")) != nullptr);
}

Value* builtinSetattr(Trace& t, CallArgs& a) {
  expectArgs(a, 3, 3);
  setAttr(t, a.args[0], nameArgument(t, a.args[1], "setattr"), a.args[2]);
  return t.none();
}

Value* builtinDelattr(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  delAttr(t, a.args[0], nameArgument(t, a.args[1], "delattr"));
  return t.none();
}

Value* builtinCallable(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* v = a.args[0];
  switch (v->kind) {
    case Kind::Function:
    case Kind::BoundMethod: return t.boolean(true);
    case Kind::Real: t.typeOf(v); return t.boolean(PyCallable_Check(realObject(v)));
    case Kind::Instance: return t.boolean(t.typeOf(v)->tp_call != nullptr);
    default: return t.boolean(false);
  }
}

// ---- numbers ---------------------------------------------------------------------------------------------------------

// The special methods that a conversion asks, in order.
std::vector<const char*> fallbacks(std::string_view special) {
  if (special == "__int__") return {"__int__", "__index__", "__trunc__"};
  if (special == "__float__") return {"__float__", "__index__"};
  if (special == "__complex__") return {"__complex__", "__float__", "__index__"};
  return {special.data()};
}

// What a conversion makes of the answer of the object's method.
Value* converted(Trace& t, Value* object, std::string_view special, Value* answer) {
  struct Expected {
    std::string_view special;
    PyTypeObject* type;
    const char* text;
  };
  static const Expected all[] = {{"__int__", &PyLong_Type, "int"},
                                 {"__index__", &PyLong_Type, "int"},
                                 {"__float__", &PyFloat_Type, "float"},
                                 {"__complex__", &PyComplex_Type, "complex"},
                                 {"__bytes__", &PyBytes_Type, "bytes"}};
  for (const Expected& e : all) {
    if (e.special != special) continue;
    PyTypeObject* got = t.typeOf(answer);
    std::string owner = special == "__float__" ? std::string(t.typeOf(object)->tp_name) + "." : "";
    if (!PyType_IsSubtype(got, e.type))
      raise(t, PyExc_TypeError, owner + std::string(special) + " returned non-" + e.text + " (type " + got->tp_name + ")");
    if (got != e.type && e.type != &PyBytes_Type) unsupported(BreakReason::BuiltinCall, std::string(special) + " that gives a subclass, which warns");
  }
  return answer;
}

Value* convertedBy(Trace& t, CallArgs& a, const char* name, Value* method) {
  if (std::string_view(name) == "__trunc__") unsupported(BreakReason::BuiltinCall, "int() by __trunc__, which warns");
  return converted(t, a.args[0], name, call(t, method, {{a.args.begin() + 1, a.args.end()}, a.kwargs}));
}

// Whether the method is given the other arguments.
bool takesMore(std::string_view special) { return special == "__round__" || special == "__pow__"; }

// What the class of an object around a plain value says itself about a conversion; null where the plain value is asked.
Value* ownConversion(Trace& t, CallArgs& a, std::string_view special) {
  if (a.args.empty() || a.args[0]->kind != Kind::Instance || !coreType(t.typeOf(a.args[0]))) return nullptr;
  if (special == "__str__" || (!takesMore(special) && (a.args.size() != 1 || !a.kwargs.empty()))) return nullptr;
  if (special == "__complex__" && coreType(t.typeOf(a.args[0])) == &PyUnicode_Type) return nullptr;
  for (const char* name : fallbacks(special))
    if (Value* method = specialMethod(t, a.args[0], name)) return overrides(t, a.args[0], name) ? convertedBy(t, a, name, method) : nullptr;
  return nullptr;
}

// Whether the class, or one that it derives from, is our own and stands for one of the library.
bool standsForAnother(PyTypeObject* type) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++)
    if (isOwnLibrary(typeDict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i))), "__module__")) return true;
  return false;
}

Value* viaNative(Trace& t, CallArgs& a, PyObject* callable, const char* special) {
  if (Value* v = ownConversion(t, a, special)) return v;
  if (Value* v = callNative(t, callable, a)) return v;
  if (!a.args.empty() && (a.args[0]->kind == Kind::List || a.args[0]->kind == Kind::Dict || a.args[0]->kind == Kind::Set)) {
    CallArgs copies = a;
    if (ObjectRef copy = snapshot(t, a.args[0])) copies.args[0] = t.real(std::move(copy));
    if (Value* v = callNative(t, callable, copies)) return v;
  }
  if (!a.args.empty() && isTensor(a.args[0])) unsupported(BreakReason::ScalarRead, std::string(special) + " of a tensor");
  if (!takesMore(special) && (a.args.size() > 1 || !a.kwargs.empty()))
    unsupported(BreakReason::BuiltinCall, std::string(special) + " of several arguments");
  if (!a.args.empty() && a.args[0]->kind == Kind::Instance)
    for (const char* name : fallbacks(special))
      if (Value* method = specialMethod(t, a.args[0], name)) return convertedBy(t, a, name, method);
  // None of them: CPython says so about any object of the class.
  if (!a.args.empty() && a.args[0]->kind == Kind::Instance && t.typeOf(a.args[0])->tp_new == PyBaseObject_Type.tp_new &&
      !PyType_HasFeature(t.typeOf(a.args[0]), Py_TPFLAGS_IS_ABSTRACT) && !standsForAnother(t.typeOf(a.args[0]))) {
    CallArgs blank = a;
    ObjectRef nothing = checked(PyTuple_New(0));
    blank.args[0] = t.real(checked(PyBaseObject_Type.tp_new(t.typeOf(a.args[0]), nothing.get(), nullptr)));
    callNative(t, callable, blank);
  }
  unsupported(BreakReason::BuiltinCall, std::string(special) + " of " + (a.args.empty() ? "nothing" : describe(a.args[0])));
}

PyObject* typeObject(PyTypeObject& type) { return reinterpret_cast<PyObject*>(&type); }

// int(n) and float(f) of what is exactly that.
bool isOpenOf(const CallArgs& a, PyTypeObject& type) {
  return a.args.size() == 1 && a.kwargs.empty() && isOpen(a.args[0]) && Py_TYPE(realObject(a.args[0])) == &type;
}

// int(v), float(v), bool(v) of a number of the graph, or of a tensor whose value is one; null where it is something else.
Value* asNumber(Trace& t, const CallArgs& a, PyTypeObject& type) {
  if (a.args.size() != 1 || !a.kwargs.empty()) return nullptr;
  Value* v = a.args[0];
  if (isTensor(v) && t.options.captureScalars) v = itemOf(t, as<TensorValue>(v));
  return isNumber(v) ? convertNumber(t, as<NumberValue>(v), &type) : nullptr;
}

Value* builtinInt(Trace& t, CallArgs& a) {
  if (Value* v = asNumber(t, a, PyLong_Type)) return v;
  if (isOpenOf(a, PyLong_Type)) return t.typeOf(a.args[0]), a.args[0];
  return viaNative(t, a, typeObject(PyLong_Type), "__int__");
}
Value* builtinFloat(Trace& t, CallArgs& a) {
  if (Value* v = asNumber(t, a, PyFloat_Type)) return v;
  if (isOpenOf(a, PyFloat_Type)) return t.typeOf(a.args[0]), a.args[0];
  Value* v = viaNative(t, a, typeObject(PyFloat_Type), "__float__");
  CallArgs index{{v}, {}};
  return t.typeOf(v) == &PyLong_Type ? viaNative(t, index, typeObject(PyFloat_Type), "__float__") : v;
}
Value* builtinComplex(Trace& t, CallArgs& a) {
  Value* v = viaNative(t, a, typeObject(PyComplex_Type), "__complex__");
  CallArgs number{{v}, {}};
  return t.typeOf(v) == &PyComplex_Type ? v : viaNative(t, number, typeObject(PyComplex_Type), "__complex__");
}
Value* builtinBool(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 1);
  if (Value* v = asNumber(t, a, PyBool_Type)) return v;
  return t.boolean(!a.args.empty() && truth(t, a.args[0]));
}
Value* builtinStr(Trace& t, CallArgs& a) {
  if (a.args.empty() && a.kwargs.empty()) return t.string("");
  if (a.args.size() == 1 && a.kwargs.empty()) return str(t, a.args[0]);
  if (Value* v = callNative(t, typeObject(PyUnicode_Type), a)) return v;
  unsupported(BreakReason::BuiltinCall, "str() with an encoding");
}
Value* builtinBytes(Trace& t, CallArgs& a) {
  if (a.args.size() == 1 && a.kwargs.empty()) {
    Value* v = a.args[0];
    auto has = [&](const char* name) { return lookUp(t, t.typeOf(v), interned(name)) != nullptr; };
    bool iterable = v->kind == Kind::Iterator || v->kind == Kind::Generator ||
                    (v->kind == Kind::Instance && !coreOf(t, v) && !has("__bytes__") && !has("__index__") && (has("__iter__") || has("__getitem__")));
    if (iterable) a.args[0] = t.list(itemsOf(t, v));
    if (v->kind == Kind::Instance && !coreOf(t, v) && !has("__bytes__") && has("__index__")) a.args[0] = indexValue(t, v);
  }
  return viaNative(t, a, typeObject(PyBytes_Type), "__bytes__");
}
Value* builtinRepr(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return repr(t, a.args[0]);
}
Value* builtinFormat(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 2);
  if (a.args.size() > 1 && !isLateText(a.args[1]) && !PyType_IsSubtype(t.typeOf(a.args[1]), &PyUnicode_Type))
    raise(t, PyExc_TypeError, std::string("format() argument 2 must be str, not ") + t.typeOf(a.args[1])->tp_name);
  return format(t, a.args[0], a.args.size() > 1 ? a.args[1] : nullptr, 0);
}

PyObject* builtinObject(const char* name) {
  PyObject* builtins = PyEval_GetBuiltins();
  return PyDict_GetItemString(builtins, name);
}

Value* builtinAbs(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  static PyObject* abs = PyUnicode_InternFromString("abs");
  if (isTensor(a.args[0])) return recordOp(t, abs, true, a);
  if (isArray(a.args[0])) return arrayOperator(t, "abs", {a.args[0]});
  if (isNumber(a.args[0])) return numberUnary(t, 'a', as<NumberValue>(a.args[0]));
  if (isOpenOf(a, PyLong_Type)) return truth(t, compareOp(t, Py_LT, a.args[0], t.integer(0))) ? unaryOp(t, '-', a.args[0]) : a.args[0];
  return viaNative(t, a, builtinObject("abs"), "__abs__");
}

Value* builtinRound(Trace& t, CallArgs& a) {
  if (!a.args.empty() && isTensor(a.args[0]) && !lookUp(t, t.typeOf(a.args[0]), interned("__round__")))
    raise(t, PyExc_TypeError, std::string("type ") + t.typeOf(a.args[0])->tp_name + " doesn't define __round__ method");
  return viaNative(t, a, builtinObject("round"), "__round__");
}

Value* builtinDivmod(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  if (!overrides(t, a.args[0], "__divmod__") && !overrides(t, a.args[1], "__rdivmod__"))
    if (Value* v = callNative(t, builtinObject("divmod"), a)) return v;
  return divideWithRest(t, a.args[0], a.args[1]);
}

Value* builtinPow(Trace& t, CallArgs& a) {
  const bool noModulus = a.args.size() == 2 || (a.args.size() == 3 && isReal(a.args[2], Py_None));
  if (noModulus && a.kwargs.empty()) return binaryOp(t, 8, a.args[0], a.args[1]);
  Value* v = viaNative(t, a, builtinObject("pow"), "__pow__");
  if (isReal(v, Py_NotImplemented)) unsupported(BreakReason::BuiltinCall, "pow() of what does not fit");
  return v;
}

Value* builtinHash(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* v = a.args[0];
  DictKey k = t.keyOf(v);
  bool exact = hasExactHash(t, v);
  if (!exact && k.constant && v->kind != Kind::Tuple && v->kind != Kind::Set) {
    // By address, of an object that exists.
    bool plain = plainKey(t, v) != nullptr;
    if (plain && PyFloat_Check(k.constant) && std::isnan(PyFloat_AS_DOUBLE(k.constant))) {
      if (!v->source) unsupported(BreakReason::HashOrCompare, "the hash of " + describe(v));
      t.facts.identityIs(v->source, existing(v));
      return t.integer(PyObject_Hash(existing(v)));
    }
    if (v->source && !isReal(v) && !plain) t.facts.identityIs(v->source, k.constant);
    exact = plain || v->source || (isReal(v) && !isMadeAnew(realObject(v)) && !t.localClass(realObject(v)));
  }
  if (!exact) unsupported(BreakReason::HashOrCompare, "the hash of " + describe(v));
  return t.integer(k.hash);
}

// ---- folds -----------------------------------------------------------------------------------------------------------

Value* extremum(Trace& t, CallArgs& a, int op, const char* name) {
  Value* key = a.takeKeyword("key");
  Value* fallback = a.takeKeyword("default");
  if (key && isReal(key, Py_None)) key = nullptr;
  expectArgs(a, 1, SIZE_MAX);
  if (fallback && a.args.size() > 1)
    raise(t, PyExc_TypeError, std::string("Cannot specify a default for ") + name + "() with multiple positional arguments");
  std::vector<Value*> items = a.args.size() == 1 ? itemsOf(t, a.args[0]) : a.args;
  if (items.empty()) {
    if (fallback) return fallback;
    // CPython's own words, which differ from version to version.
    static PyObject* nothing = checked(PyTuple_New(0)).release();
    ObjectRef::steal(PyObject_CallOneArg(builtinObject(name), nothing));
    raiseCurrent(t);
  }
  Value* best = items[0];
  Value* bestKey = key ? call1(t, key, best) : best;
  for (size_t i = 1; i < items.size(); i++) {
    Value* k = key ? call1(t, key, items[i]) : items[i];
    if (isTensor(k) || isTensor(bestKey)) unsupported(BreakReason::DataDependentBranch, std::string(name) + "() of tensors");
    if (truth(t, compareOp(t, op, k, bestKey))) {
      best = items[i];
      bestKey = k;
    }
  }
  return best;
}
Value* builtinMin(Trace& t, CallArgs& a) { return extremum(t, a, Py_LT, "min"); }
Value* builtinMax(Trace& t, CallArgs& a) { return extremum(t, a, Py_GT, "max"); }

Value* builtinSum(Trace& t, CallArgs& a) {
  Value* start = a.takeKeyword("start");
  expectArgs(a, 1, start ? 1 : 2);
  if (a.args.size() == 2) start = a.args[1];
  Value* total = start ? start : t.integer(0);
  if (PyTypeObject* type = shownType(t, total);
      PyType_IsSubtype(type, &PyUnicode_Type) || PyType_IsSubtype(type, &PyBytes_Type) || PyType_IsSubtype(type, &PyByteArray_Type)) {
    bool text = PyType_IsSubtype(type, &PyUnicode_Type), array = PyType_IsSubtype(type, &PyByteArray_Type);
    iterate(t, a.args[0]);
    raise(t, PyExc_TypeError,
          text ? "sum() can't sum strings [use ''.join(seq) instead]"
               : std::string("sum() can't sum ") + (array ? "bytearray" : "bytes") + " [use b''.join(seq) instead]");
  }
  std::vector<Value*> items = itemsOf(t, a.args[0]);
  // Constants are summed by CPython, whose way with floats differs between versions.
  bool constant = t.isConstant(total);
  for (size_t i = 0; constant && i < items.size(); i++) constant = t.isConstant(items[i]);
  if (constant) {
    Value* v = callNative(t, builtinObject("sum"), {{t.tuple(items), total}, {}});
    if (v) return v;
  }
  for (Value* v : items) {
    if (isNumber(v) && t.typeOf(v) == &PyFloat_Type) t.constant(v);  // CPython's way with floats, again
    total = binaryOp(t, 0, total, v);
  }
  return total;
}

Value* builtinAny(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* it = iterate(t, a.args[0]);
  while (Value* v = next(t, it))
    if (truth(t, v)) return t.boolean(true);
  return t.boolean(false);
}

Value* builtinAll(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* it = iterate(t, a.args[0]);
  while (Value* v = next(t, it))
    if (!truth(t, v)) return t.boolean(false);
  return t.boolean(true);
}

Value* builtinSorted(Trace& t, CallArgs& a) {
  Value* key = a.takeKeyword("key");
  Value* reverse = a.takeKeyword("reverse");
  expectArgs(a, 1, 1);
  if (key && isSame(t, key, t.none())) key = nullptr;
  // The order of a set matters, unless its items have one of their own.
  bool ordered = !key && asSet(a.args[0]);
  std::vector<Value*> items = ordered ? unorderedItems(t, a.args[0]) : itemsOf(t, a.args[0]);
  for (size_t i = 0; ordered && i < items.size(); i++)
    ordered = t.typeOf(items[i]) == t.typeOf(items[0]) && (t.typeOf(items[i]) == &PyUnicode_Type || t.typeOf(items[i]) == &PyLong_Type);
  if (!ordered && asSet(a.args[0])) items = itemsOf(t, a.args[0]);
  return t.list(sortedItems(t, std::move(items), key, reverse && indexArgument(t, reverse) != 0));
}

// ---- constructors of containers --------------------------------------------------------------------------------------

Value* builtinList(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 1);
  return t.list(a.args.empty() ? std::vector<Value*>{} : itemsOf(t, a.args[0]));
}

Value* builtinTuple(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 1);
  if (!a.args.empty() && t.typeOf(a.args[0]) == &PyTuple_Type) return a.args[0];
  return t.tuple(a.args.empty() ? std::vector<Value*>{} : itemsOf(t, a.args[0]));
}

Value* sizeNew(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 1);
  return sizeOf(t, a.args.empty() ? std::vector<Value*>{} : itemsOf(t, a.args[0]));
}

Value* builtinSlice(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 3);
  if (a.args.size() == 1) return t.make<SliceValue>(t.none(), a.args[0], t.none());
  return t.make<SliceValue>(a.args[0], a.args[1], a.args.size() > 2 ? a.args[2] : t.none());
}

Value* builtinRange(Trace& t, CallArgs& a) {
  for (Value*& v : a.args)
    if (isTensor(v)) unsupported(BreakReason::TensorAsIndex, "a range with tensor bounds");
  for (Value*& v : a.args)
    if (v->kind == Kind::Instance)
      if (Value* index = indexValue(t, v)) v = index;
  Value* v = callNative(t, typeObject(PyRange_Type), a);
  if (!v) unsupported(BreakReason::BuiltinCall, "a range of " + describe(a.args[0]));
  return v;
}

Value* builtinProperty(Trace& t, CallArgs& a) {
  Value* parts[4] = {};
  const char* names[] = {"fget", "fset", "fdel", "doc"};
  if (a.args.size() > 4) raise(t, PyExc_TypeError, "property() takes at most 4 arguments (" + std::to_string(a.args.size()) + " given)");
  for (size_t i = 0; i < 4; i++) {
    parts[i] = i < a.args.size() ? a.args[i] : a.takeKeyword(names[i]);
    if (parts[i] && isReal(parts[i], Py_None)) parts[i] = nullptr;
  }
  noKeywords(a);
  auto* p = t.make<PropertyValue>(&PyProperty_Type, parts[0] ? parts[0] : t.none());
  p->set = parts[1];
  p->del = parts[2];
  p->doc = parts[3];
  return p;
}
// property.getter, .setter, .deleter: a copy with another part.
template <int part>
Value* propertyWith(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  if (a.args[0]->kind != Kind::Property) unsupported(BreakReason::MethodCall, "a new part of " + describe(a.args[0]));
  auto* from = as<PropertyValue>(a.args[0]);
  auto* p = t.make<PropertyValue>(&PyProperty_Type, part == 0 ? a.args[1] : from->get);
  p->set = part == 1 ? a.args[1] : from->set;
  p->del = part == 2 ? a.args[1] : from->del;
  p->doc = from->doc;
  return p;
}
Value* builtinStaticmethod(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.make<PropertyValue>(&PyStaticMethod_Type, a.args[0]);
}
Value* builtinClassmethod(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.make<PropertyValue>(&PyClassMethod_Type, a.args[0]);
}
Value* builtinObjectType(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 0);
  return t.real(checked(PyObject_CallNoArgs(typeObject(PyBaseObject_Type))));
}

Value* builtinGlobals(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 0);
  return t.frame->globalsDict;
}

Value* builtinLocals(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 0);
  if (t.frame->names) return holderOf(t.frame->names);
  DictValue* d = t.dict();
  for (size_t i = 0; i < t.frame->locals.size(); i++) {
    Value* v = t.frame->locals[i];
    if (v && v->kind == Kind::Cell && t.frame->code->isCellOrFree(static_cast<int>(i))) v = t.cellContents(as<CellValue>(v));
    if (v && v->kind != Kind::Unbound) t.dictSet(d, t.keyOf(t.realShared(t.frame->code->localName(static_cast<int>(i)))), v);
  }
  return d;
}

Value* builtinVars(Trace& t, CallArgs& a) {
  if (a.args.empty()) return builtinLocals(t, a);
  expectArgs(a, 1, 1);
  static PyObject* name = PyUnicode_InternFromString("__dict__");
  Value* dict = getAttrOrNull(t, a.args[0], name);
  if (!dict) raise(t, PyExc_TypeError, "vars() argument must have __dict__ attribute");
  return dict;
}

// ---- operator module -------------------------------------------------------------------------------------------------

// concat and iconcat.
template <int op>
Value* operatorConcat(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  auto isSequence = [](PyTypeObject* type) { return type->tp_as_sequence && type->tp_as_sequence->sq_item && !PyType_IsSubtype(type, &PyDict_Type); };
  PyTypeObject* left = t.typeOf(a.args[0]);
  const bool own = left->tp_as_sequence && left->tp_as_sequence->sq_concat;
  if (own && overrides(t, a.args[1], "__radd__")) unsupported(BreakReason::BuiltinCall, "operator.concat with " + describe(a.args[1]));
  const bool byClass = a.args[0]->kind == Kind::Instance || a.args[1]->kind == Kind::Instance;
  if (!own && !(isSequence(left) && isSequence(t.typeOf(a.args[1])) && byClass))
    raise(t, PyExc_TypeError, std::string("'") + left->tp_name + "' object can't be concatenated");
  return binaryOp(t, op, a.args[0], a.args[1]);
}

template <int op>
Value* operatorBinary(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return binaryOp(t, op, a.args[0], a.args[1]);
}
template <int op>
Value* operatorCompare(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return compareOp(t, op, a.args[0], a.args[1]);
}
template <char op>
Value* operatorUnary(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return unaryOp(t, op, a.args[0]);
}
Value* operatorGetitem(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return getItem(t, a.args[0], a.args[1]);
}
Value* operatorSetitem(Trace& t, CallArgs& a) {
  expectArgs(a, 3, 3);
  setItem(t, a.args[0], a.args[1], a.args[2]);
  return t.none();
}
Value* operatorDelitem(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  delItem(t, a.args[0], a.args[1]);
  return t.none();
}
Value* operatorNot(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.boolean(!truth(t, a.args[0]));
}
Value* operatorTruth(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.boolean(truth(t, a.args[0]));
}
Value* operatorIs(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(isSame(t, a.args[0], a.args[1]));
}
Value* operatorIsNot(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(!isSame(t, a.args[0], a.args[1]));
}
Value* operatorContains(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(contains(t, a.args[0], a.args[1]));
}
Value* operatorIndex(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* index = indexValue(t, a.args[0]);
  if (!index) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(a.args[0])->tp_name + "' object cannot be interpreted as an integer");
  // An exact int: of a bool too.
  if (isReal(index) && PyLong_CheckExact(realObject(index))) return index;
  PyObject* c = t.constant(index);
  if (!c) unsupported(BreakReason::BuiltinCall, "operator.index of " + describe(index));
  return t.real(native(t, PyNumber_Index(c)));
}

}  // namespace

void addCoreBuiltins(BuiltinTable& table) {
  table.add("builtins.len", builtinLen);
  table.add("builtins.getattr", builtinGetattr);
  table.add("builtins.hasattr", builtinHasattr);
  table.add("builtins.setattr", builtinSetattr);
  table.add("builtins.delattr", builtinDelattr);
  table.add("builtins.callable", builtinCallable);
  table.add("builtins.int", builtinInt);
  table.add("builtins.float", builtinFloat);
  table.add("builtins.complex", builtinComplex);
  table.add("builtins.bool", builtinBool);
  table.add("builtins.str", builtinStr);
  table.add("builtins.bytes", itemByItem<builtinBytes>);
  table.add("builtins.repr", builtinRepr);
  table.add("builtins.format", builtinFormat);
  table.add("builtins.abs", builtinAbs);
  table.add("builtins.round", builtinRound);
  table.add("builtins.divmod", builtinDivmod);
  table.add("builtins.pow", builtinPow);
  table.add("builtins.hash", builtinHash);
  table.add("builtins.min", itemByItem<builtinMin>);
  table.add("builtins.max", itemByItem<builtinMax>);
  table.add("builtins.sum", itemByItem<builtinSum>);
  table.add("builtins.any", builtinAny);
  table.add("builtins.all", builtinAll);
  table.add("builtins.sorted", builtinSorted);
  table.add("builtins.list", builtinList);
  table.add("builtins.tuple", builtinTuple);
  table.add("builtins.slice", builtinSlice);
  table.add("builtins.range", builtinRange);
  table.add("builtins.property", builtinProperty);
  table.add("builtins.staticmethod", builtinStaticmethod);
  table.add("builtins.classmethod", builtinClassmethod);
  table.add("builtins.vars", builtinVars);
  table.add("builtins.globals", builtinGlobals);
  table.add("builtins.locals", builtinLocals);
  table.add("builtins.__build_class__", buildClass);
  table.add("builtins.property.getter", propertyWith<0>);
  table.add("builtins.property.setter", propertyWith<1>);
  table.add("builtins.property.deleter", propertyWith<2>);
  table.add("builtins.object", builtinObjectType);
  table.add("torch.Size", sizeNew);
  for (const char* pure :
       {"builtins.chr", "builtins.ord", "builtins.bin", "builtins.hex", "builtins.oct", "torch.finfo", "torch.iinfo", "torch.device", "sys.intern",
        "re._compile", "_datetime.date", "_datetime.datetime", "_datetime.time", "_datetime.timedelta", "_datetime.timezone", "types.GenericAlias",
        "json.loads", "builtins.str.maketrans", "builtins.bytes.maketrans"})
    table.addPure(pure);

  table.add("operator.add", operatorBinary<0>);
  table.add("operator.and_", operatorBinary<1>);
  table.add("operator.floordiv", operatorBinary<2>);
  table.add("operator.lshift", operatorBinary<3>);
  table.add("operator.matmul", operatorBinary<4>);
  table.add("operator.mul", operatorBinary<5>);
  table.add("operator.mod", operatorBinary<6>);
  table.add("operator.or_", operatorBinary<7>);
  table.add("operator.pow", operatorBinary<8>);
  table.add("operator.rshift", operatorBinary<9>);
  table.add("operator.sub", operatorBinary<10>);
  table.add("operator.truediv", operatorBinary<11>);
  table.add("operator.xor", operatorBinary<12>);
  table.add("operator.iadd", operatorBinary<13>);
  table.add("operator.iand", operatorBinary<14>);
  table.add("operator.ifloordiv", operatorBinary<15>);
  table.add("operator.ilshift", operatorBinary<16>);
  table.add("operator.imatmul", operatorBinary<17>);
  table.add("operator.imul", operatorBinary<18>);
  table.add("operator.imod", operatorBinary<19>);
  table.add("operator.ior", operatorBinary<20>);
  table.add("operator.ipow", operatorBinary<21>);
  table.add("operator.irshift", operatorBinary<22>);
  table.add("operator.isub", operatorBinary<23>);
  table.add("operator.itruediv", operatorBinary<24>);
  table.add("operator.ixor", operatorBinary<25>);
  table.add("operator.concat", operatorConcat<0>);
  table.add("operator.iconcat", operatorConcat<13>);
  table.add("operator.lt", operatorCompare<Py_LT>);
  table.add("operator.le", operatorCompare<Py_LE>);
  table.add("operator.eq", operatorCompare<Py_EQ>);
  table.add("operator.ne", operatorCompare<Py_NE>);
  table.add("operator.gt", operatorCompare<Py_GT>);
  table.add("operator.ge", operatorCompare<Py_GE>);
  table.add("operator.neg", operatorUnary<'-'>);
  table.add("operator.pos", operatorUnary<'+'>);
  table.add("operator.invert", operatorUnary<'~'>);
  table.add("operator.inv", operatorUnary<'~'>);
  table.add("operator.abs", builtinAbs);
  table.add("operator.getitem", operatorGetitem);
  table.add("operator.setitem", operatorSetitem);
  table.add("operator.delitem", operatorDelitem);
  table.add("operator.not_", operatorNot);
  table.add("operator.truth", operatorTruth);
  table.add("operator.is_", operatorIs);
  table.add("operator.is_not", operatorIsNot);
  table.add("operator.contains", operatorContains);
  table.add("operator.index", operatorIndex);
}

}  // namespace cdynamo
