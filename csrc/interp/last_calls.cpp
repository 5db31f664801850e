#include "interp/last_calls.h"

#include "base/lookup.h"
#include "base/own_library.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "interp/lifetimes.h"
#include "interp/operator_parts.h"

namespace cdynamo {

namespace {

Value* polyfill(Trace& t, const char* name) { return pinnedValue(t, importedObject("cdynamo.polyfills", name)); }

LastCall around(Trace& t, const char* name, std::vector<Value*> args) { return {polyfill(t, name), {std::move(args), {}}}; }

struct Builtins {
  PyObject *len = importedObject("builtins", "len"), *boolean = importedObject("builtins", "bool"), *iter = importedObject("builtins", "iter"),
           *next = importedObject("builtins", "next"), *str = importedObject("builtins", "str"), *repr = importedObject("builtins", "repr"),
           *format = importedObject("builtins", "format"), *getattr = importedObject("builtins", "getattr"),
           *setattr = typeLookup(&PyBaseObject_Type, PyUnicode_InternFromString("__setattr__")),
           *delattr = typeLookup(&PyBaseObject_Type, PyUnicode_InternFromString("__delattr__"));
};

// The descriptor's Python function under a name of its type, or null.
PyObject* pythonPart(Trace& t, PyObject* descriptor, PyObject* part) {
  PyObject* found = typeLookup(Py_TYPE(descriptor), part);
  return found && PyFunction_Check(found) ? lookUp(t, Py_TYPE(descriptor), part) : nullptr;
}

// The call that reads an attribute found as `d` on the type; empty where no Python code is called.
LastCall readDescriptor(Trace& t, Value* object, PyTypeObject* type, PyObject* d, PyObject* name) {
  static PyObject* getName = PyUnicode_InternFromString("__get__");
  if (Py_TYPE(d) == &PyProperty_Type) {
    ObjectRef getter = checked(PyObject_GetAttrString(d, "fget"));
    if (!PyFunction_Check(getter.get())) return {};
    lookUp(t, type, name);
    return {pinnedValue(t, getter.get()), {{object}, {}}};
  }
  PyObject* getter = PyType_HasFeature(Py_TYPE(d), Py_TPFLAGS_HEAPTYPE) ? pythonPart(t, d, getName) : nullptr;
  if (!getter) return {};
  lookUp(t, type, name);
  bool data = Py_TYPE(d)->tp_descr_set != nullptr;
  if (!data) {
    DictValue* dict = type->tp_dictoffset == 0 ? nullptr : t.dictOf(as<InstanceValue>(object));
    if (dict && t.dictGetName(dict, name)) return {};
  }
  return {pinnedValue(t, getter), {{pinnedValue(t, d), object, pinnedValue(t, reinterpret_cast<PyObject*>(type))}, {}}};
}

}  // namespace

LastCall lastRead(Trace& t, Value* object, PyObject* name) {
  if (object->kind != Kind::Instance) return {};
  static PyObject* getattributeName = PyUnicode_InternFromString("__getattribute__");
  static PyObject* getattrName = PyUnicode_InternFromString("__getattr__");
  static PyObject* moduleHook = typeLookup(reinterpret_cast<PyTypeObject*>(importedObject("torch.nn", "Module")), getattrName);
  PyTypeObject* type = as<InstanceValue>(object)->type;
  if (type->tp_getattro == PyObject_GenericGetAttr) {
    PyObject* d = typeLookup(type, name);
    return d && Py_TYPE(d)->tp_descr_get ? readDescriptor(t, object, type, d, name) : LastCall{};
  }
  PyObject* custom = typeLookup(type, getattributeName);
  PyObject* hook = typeLookup(type, getattrName);
  LastCall read;
  if (custom && PyFunction_Check(custom)) {
    read = {bindDescriptor(t, lookUp(t, t.typeOf(object), getattributeName), object, type, getattributeName), {{t.realShared(name)}, {}}};
  } else if (!custom || Py_TYPE(custom) != &PyWrapperDescr_Type) {
    return {};
  } else if (PyObject* d = typeLookup(type, name)) {
    if (Py_TYPE(d)->tp_descr_get) read = readDescriptor(t, object, type, d, name);
  } else if (hook && PyFunction_Check(hook) && hook != moduleHook) {
    DictValue* dict = type->tp_dictoffset == 0 ? nullptr : t.dictOf(as<InstanceValue>(object));
    if (dict && t.dictGetName(dict, name)) return {};
    lookUp(t, t.typeOf(object), name);
    return {bindDescriptor(t, lookUp(t, type, getattrName), object, type, getattrName), {{t.realShared(name)}, {}}};
  }
  if (!read || !hook) return read;
  Value* bound = bindDescriptor(t, lookUp(t, t.typeOf(object), getattrName), object, type, getattrName);
  return around(t, "attribute_or_hook", {read.callable, t.tuple(std::move(read.args.args)), bound, t.realShared(name)});
}

LastCall lastOperator(Trace& t, int op, Value* left, Value* right) {
  if (left->kind == Kind::Instance) {
    const char* inPlace = inplaceMethod(op);
    Value* method = inPlace ? pythonMethod(t, left, inPlace) : nullptr;
    if (!method) return {};
    return around(t, "in_place", {method, left, right, t.realShared(operatorFunction(op))});
  }
  // "..." % v is formatting, whatever v is.
  PyTypeObject* type = t.typeOf(left);
  if (op % 13 == 6 && (PyType_FastSubclass(type, Py_TPFLAGS_UNICODE_SUBCLASS) || PyType_FastSubclass(type, Py_TPFLAGS_BYTES_SUBCLASS))) return {};
  if (takesInC(t, op % 13, left, right)) return {};
  Value* method = pythonMethod(t, right, reflectedMethod(op));
  constexpr int kInPlaceAdd = 13;
  if (!method) return op == kInPlaceAdd ? lastInPlaceConcat(t, left, right) : LastCall{};
  return around(t, "reflected", {method, left, right, t.string(operatorSymbol(op))});
}

LastCall lastComparison(Trace& t, int op, Value* left, Value* right) {
  Value* method = pythonMethod(t, left, compareMethod(op));
  if (!method) return {};
  PyTypeObject *a = t.typeOf(left), *b = t.typeOf(right);
  if (a != b && isSubtype(t, b, a)) return {};
  // Values of builtin types know nothing about objects of Python classes.
  bool askRight = right->kind == Kind::Instance || isTensor(right) || isReal(right) || as<InstanceValue>(left)->contents;
  if (PyObject* plain = askRight && isReal(right) ? t.constant(right) : nullptr) askRight = PyType_Check(plain) || coreType(a);
  Value* swapped = askRight ? t.string(compareMethod(swappedComparison(op))) : t.none();
  return around(t, "compared", {method, left, right, t.string(compareSymbol(op)), swapped});
}

LastCall lastTruth(Trace& t, Value* v) {
  if (v->kind != Kind::Instance) return {};
  if (Value* method = pythonMethod(t, v, "__bool__")) return around(t, "truth", {method});
  Value* method = specialMethod(t, v, "__bool__") ? nullptr : pythonMethod(t, v, "__len__");
  return method ? around(t, "length", {method}) : LastCall{};
}

LastCall lastIterator(Trace& t, Value* v) {
  Value* method = pythonMethod(t, v, "__iter__");
  return method && !as<InstanceValue>(v)->contents ? around(t, "iterator", {method}) : LastCall{};
}

LastCall lastFormat(Trace& t, Value* v, Value* spec) {
  if (v->kind != Kind::Instance) return {};
  if (Value* method = pythonMethod(t, v, "__format__"))
    return around(t, "text", {method, t.string("__format__"), t.tuple({spec ? spec : t.string("")})});
  static PyObject* formatName = PyUnicode_InternFromString("__format__");
  static PyObject* plain = typeLookup(&PyBaseObject_Type, formatName);
  if (spec || lookUp(t, t.typeOf(v), formatName) != plain) return {};
  Value* method = pythonMethod(t, v, "__str__");
  return method ? around(t, "text", {method, t.string("__str__"), t.tuple({})}) : LastCall{};
}

LastCall lastWrite(Trace& t, Value* object, PyObject* name, Value* value) {
  if (!name || object->kind != Kind::Instance) return {};
  PyTypeObject* type = as<InstanceValue>(object)->type;
  PyObject* d = typeLookup(type, name);
  if (!d || !Py_TYPE(d)->tp_descr_set) return {};
  std::vector<Value*> args{object};
  if (value) args.push_back(value);
  if (Py_TYPE(d) == &PyProperty_Type) {
    ObjectRef setter = checked(PyObject_GetAttrString(d, value ? "fset" : "fdel"));
    if (!PyFunction_Check(setter.get())) return {};
    lookUp(t, t.typeOf(object), name);
    return {pinnedValue(t, setter.get()), {std::move(args), {}}};
  }
  if (!PyType_HasFeature(Py_TYPE(d), Py_TPFLAGS_HEAPTYPE)) return {};
  PyObject* setter = pythonPart(t, d, PyUnicode_InternFromString(value ? "__set__" : "__delete__"));
  if (!setter) return {};
  lookUp(t, t.typeOf(object), name);
  args.insert(args.begin(), pinnedValue(t, d));
  return {pinnedValue(t, setter), {std::move(args), {}}};
}

namespace {

// The attribute's name as an interned str; null where the value is none.
PyObject* nameOf(Trace& t, Value* v) {
  PyObject* name = isReal(v) ? t.constant(v) : nullptr;
  if (!name || !PyUnicode_CheckExact(name)) return nullptr;
  PyObject* interned = ObjectRef::share(name).release();
  PyUnicode_InternInPlace(&interned);
  return t.keep(ObjectRef::steal(interned));
}

}  // namespace

LastCall lastBuiltin(Trace& t, PyObject* callable, const CallArgs& args) {
  if (args.args.empty() || !args.kwargs.empty()) return {};
  Value* v = args.args[0];
  const size_t count = args.args.size();
  static const Builtins known;
  if (callable == known.next && count <= 2) {
    if (count == 2 && v->kind == Kind::Generator) return around(t, "next_item_or_default", args.args);
    LastCall last = lastNext(t, v);
    if (!last || count == 1) return last;
    return around(t, "call_or_default", {last.callable, t.tuple(std::move(last.args.args)), args.args[1]});
  }
  if (v->kind != Kind::Instance) return {};
  if ((callable == known.setattr && count == 3) || (callable == known.delattr && count == 2)) {
    LastCall write = lastWrite(t, v, nameOf(t, args.args[1]), count == 3 ? args.args[2] : nullptr);
    return write ? around(t, "call_for_effect", {write.callable, t.tuple(std::move(write.args.args))}) : LastCall{};
  }
  if (count == 1) {
    if (callable == known.len) {
      Value* method = pythonMethod(t, v, "__len__");
      return method ? around(t, "length", {method}) : LastCall{};
    }
    if (callable == known.boolean) {
      Value* method = pythonMethod(t, v, "__bool__");
      return method ? around(t, "truth", {method}) : LastCall{};
    }
    if (callable == known.iter) return lastIterator(t, v);
    if (callable == known.str || callable == known.repr) {
      const char* name = callable == known.str ? "__str__" : "__repr__";
      Value* method = pythonMethod(t, v, name);
      return method ? around(t, "text", {method, t.string(name), t.tuple({})}) : LastCall{};
    }
    if (callable == known.format) return lastFormat(t, v, nullptr);
  }
  if (callable == known.format && count == 2) return lastFormat(t, v, args.args[1]);
  if (callable == known.getattr && (count == 2 || count == 3)) {
    PyObject* name = nameOf(t, args.args[1]);
    if (!name) return {};
    LastCall read = lastRead(t, v, name);
    if (!read) return read;
    if (count == 2) return around(t, "named_attribute", {read.callable, t.tuple(std::move(read.args.args)), v, args.args[1]});
    return around(t, "attribute_or_default", {read.callable, t.tuple(std::move(read.args.args)), args.args[2]});
  }
  return {};
}

void refuseEarlyItems() { unsupported(BreakReason::BuiltinCall, "an error while items are taken from a generator"); }

Value* callLast(Trace& t, LastCall last, ReturnTo to) {
  t.tail = to;
  if (!last.early) return call(t, last.callable, std::move(last.args));
  StandsHere here(t);
  try {
    return call(t, last.callable, std::move(last.args));
  } catch (const Unsupported&) {
    // Not in the program's code, but in what is done with the items.
    if (t.failedFrame && isOwnLibrary(t.failedFrame->globals, "__name__")) here.breakHere();
    throw;
  } catch (const Raised&) {
  }
  refuseEarlyItems();
}

}  // namespace cdynamo
