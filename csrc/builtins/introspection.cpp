// dir(), and what a program asks about its frames.
#include <set>

#include "base/lookup.h"
#include "base/own_library.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/stand_ins.h"

namespace cdynamo {

namespace {

// The names that the class and its bases have, as they are now and in every call.
void addClassNames(Trace& t, PyTypeObject* type, std::set<std::string>& names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* dict = typeDict(base);
    ObjectRef keys = checked(PySequence_Tuple(dict));
    if (PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && !t.localClass(base)) t.facts.dictKeys(t.sources.pinned(dict), keys.get());
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys.get()); k++) {
      PyObject* name = PyTuple_GET_ITEM(keys.get(), k);
      if (!PyUnicode_Check(name)) unsupported(BreakReason::BuiltinCall, "dir() of an object with attributes that are no names");
      names.insert(textOf(name));
    }
  }
}

void addOwnNames(Trace& t, DictValue* dict, std::set<std::string>& names) {
  if (!dict) return;
  t.complete(dict);
  for (const DictEntry& e : dict->entries) {
    if (!e.value) continue;
    if (!e.key.constant || !PyUnicode_Check(e.key.constant))
      unsupported(BreakReason::BuiltinCall, "dir() of an object with attributes that are no names");
    names.insert(textOf(e.key.constant));
  }
}

// The __dict__ of v; null where it has none. Breaks where that is not modelled.
DictValue* attributesOf(Trace& t, Value* v, PyTypeObject* type) {
  if (!hasInstanceDict(type) || type == partialType()) return nullptr;
  if (v->kind == Kind::Function) return as<FunctionValue>(v)->dict;
  if (v->kind == Kind::Instance) return t.dictOf(as<InstanceValue>(v));
  if (isReal(v) && PyFunction_Check(realObject(v)) && v->source)
    if (PyObject* dict = instanceDict(realObject(v))) return as<DictValue>(t.wrap(dict, t.sources.instanceDict(v->source)));
  unsupported(BreakReason::BuiltinCall, "dir() of " + describe(v));
}

Value* builtinDir(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 1);
  if (a.args.empty()) unsupported(BreakReason::BuiltinCall, "dir() without an argument");
  Value* v = a.args[0];
  PyTypeObject* type = t.typeOf(v);
  static PyObject *own = typeLookup(&PyBaseObject_Type, interned("__dir__")), *ofClass = typeLookup(&PyType_Type, interned("__dir__"));
  PyObject* method = lookUp(t, type, interned("__dir__"));
  if (method && PyFunction_Check(method)) {
    static PyObject* sorted = importedObject("builtins", "sorted");
    return call1(t, t.realShared(sorted), call(t, specialMethod(t, v, "__dir__"), {}));
  }
  bool isClass = method == ofClass && isReal(v) && PyType_Check(realObject(v));
  if ((method != own && !isClass) || v->kind == Kind::BoundMethod || isTensor(v) || isArray(v))
    unsupported(BreakReason::BuiltinCall, "dir() of " + describe(v));
  std::set<std::string> names;  // names sort by bytes as they do by characters
  if (PyTypeObject* other = standsFor(v)) {
    addClassNames(t, other, names);
  } else if (isClass) {
    addClassNames(t, reinterpret_cast<PyTypeObject*>(t.identity(v)), names);
  } else {
    static PyObject* plainClass = typeLookup(&PyBaseObject_Type, interned("__class__"));
    PyObject* read = lookUp(t, type, interned("__getattribute__"));
    if (lookUp(t, type, interned("__class__")) != plainClass || (read && PyFunction_Check(read)))
      unsupported(BreakReason::BuiltinCall, "dir() of an object that shows another class");
    addClassNames(t, type, names);
    addOwnNames(t, attributesOf(t, v, type), names);
  }
  std::vector<Value*> items;
  for (const std::string& name : names)
    items.push_back(t.real(checked(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())))));
  return t.list(std::move(items));
}

// sys._getframemodulename(depth): the __module__ of the function that is depth calls above.
Value* frameModuleName(Trace& t, CallArgs& a) {
  Value* keyword = a.takeKeyword("depth");
  expectArgs(a, 0, keyword ? 0 : 1);
  Value* given = keyword ? keyword : a.args.empty() ? nullptr : a.args[0];
  PyObject* number = given ? t.constant(given) : nullptr;
  if (given && !(number && PyLong_CheckExact(number))) unsupported(BreakReason::BuiltinCall, "sys._getframemodulename with " + describe(given));
  int tooLarge = 0;
  long depth = number ? PyLong_AsLongAndOverflow(number, &tooLarge) : 0;
  const FrameState* f = tooLarge > 0 ? nullptr : callerFrame(t, depth);
  // After a break the frame is run by another function than the program's.
  Value* function = f ? f->function : nullptr;
  PyObject* code = !function                                                    ? nullptr
                   : function->kind == Kind::Function                           ? as<FunctionValue>(function)->code
                   : isReal(function) && PyFunction_Check(realObject(function)) ? PyFunction_GET_CODE(realObject(function))
                                                                                : nullptr;
  if (!code || code != reinterpret_cast<PyObject*>(f->code->pyCode()))
    unsupported(BreakReason::BuiltinCall, "sys._getframemodulename of a frame outside the capture");
  return getAttr(t, function, "__module__");
}

}  // namespace

const FrameState* callerFrame(const Trace& t, long long depth) {
  const FrameState* f = t.frame;
  for (; f; f = f->parent)
    if (!isOwnLibrary(f->globals, "__name__") && depth-- <= 0) break;
  return f;
}

void addIntrospection(BuiltinTable& table) {
  table.add("builtins.dir", builtinDir);
  table.add("sys._getframemodulename", frameModuleName);
}

}  // namespace cdynamo
