#include "builtins/table.h"

#include <cstring>

#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/intrinsics.h"
#include "interp/torch_function.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// The object at a dotted path: the longest importable prefix, then attributes. Types are read by their own dict, so that
// methods come as descriptors. Null where it does not exist.
ObjectRef resolve(const char* path) {
  std::string rest = path;
  std::string module = rest.substr(0, rest.find('.'));
  ObjectRef object = ObjectRef::steal(PyImport_ImportModule(module.c_str()));
  while (object) {
    size_t dot = rest.find('.');
    if (dot == std::string::npos) break;
    rest = rest.substr(dot + 1);
    std::string name = rest.substr(0, rest.find('.'));
    if (PyType_Check(object.get())) {
      ObjectRef key = ObjectRef::steal(PyUnicode_InternFromString(name.c_str()));
      object = ObjectRef::share(typeLookup(reinterpret_cast<PyTypeObject*>(object.get()), key.get()));
    } else {
      ObjectRef inner = ObjectRef::steal(PyObject_GetAttrString(object.get(), name.c_str()));
      if (!inner) {
        PyErr_Clear();
        if (PyModule_Check(object.get())) {
          std::string full = std::string(PyModule_GetName(object.get())) + "." + name;
          ObjectRef known = ObjectRef::share(PyDict_GetItemString(PyImport_GetModuleDict(), full.c_str()));
          inner = std::move(known);
        }
      }
      object = std::move(inner);
    }
  }
  PyErr_Clear();
  return object;
}

}  // namespace

BuiltinTable& BuiltinTable::get() {
  static BuiltinTable table = [] {
    BuiltinTable made;
    addCoreBuiltins(made);
    addContainerMethods(made);
    addTypeBuiltins(made);
    addObjectBuiltins(made);
    addIteratorBuiltins(made);
    addTorchBuiltins(made);
    addTorchState(made);
    addFunctorchBuiltins(made);
    addOutputBuiltins(made);
    addAutogradBuiltins(made);
    addCheckpointBuiltins(made);
    addRandomBuiltins(made);
    addNumberBuiltins(made);
    addExceptionBuiltins(made);
    addImportBuiltins(made);
    addTorchFunctionBuiltins(made);
    return made;
  }();
  return table;
}

void BuiltinTable::add(const char* path, BuiltinHandler handler) {
  ObjectRef object = resolve(path);
  if (object) handlers_[object.release()] = handler;
}

void BuiltinTable::addType(PyTypeObject* type, const char* method, BuiltinHandler handler) {
  ObjectRef name = checked(PyUnicode_InternFromString(method));
  PyObject* d = typeLookup(type, name.get());
  if (d) handlers_[ObjectRef::share(d).release()] = handler;
}

void BuiltinTable::addPure(const char* path) {
  ObjectRef object = resolve(path);
  if (object) pure_[object.release()] = true;
}

void BuiltinTable::addPolyfill(const char* path, const char* polyfill) {
  ObjectRef object = resolve(path);
  if (!object) return;
  ObjectRef module = checked(PyImport_ImportModule("cdynamo.polyfills"));
  ObjectRef function = checked(PyObject_GetAttrString(module.get(), polyfill));
  polyfills_[object.release()] = function.release();
}

void expectArgs(Trace& t, const CallArgs& args, const char* name, size_t least, size_t most) {
  size_t n = args.args.size();
  if (!args.kwargs.empty()) {
    const char* key = PyUnicode_AsUTF8(args.kwargs[0].first);
    raise(t, PyExc_TypeError, std::string(name) + "() got an unexpected keyword argument '" + (key ? key : "?") + "'");
  }
  if (n >= least && n <= most) return;
  if (least == most)
    raise(t, PyExc_TypeError,
          std::string(name) + (least == 1 ? "() takes exactly one argument (" : " expected " + std::to_string(least) + " arguments, got ") +
              std::to_string(n) + (least == 1 ? " given)" : ""));
  raise(t, PyExc_TypeError,
        std::string(name) + " expected at " + (n < least ? "least " + std::to_string(least) : "most " + std::to_string(most)) + " argument" +
            ((n < least ? least : most) == 1 ? "" : "s") + ", got " + std::to_string(n));
}

void noKeywords(Trace& t, const CallArgs& args, const char* name) {
  if (!args.kwargs.empty()) raise(t, PyExc_TypeError, std::string(name) + "() takes no keyword arguments");
}

namespace {

// What C code gave: containers become the trace's own, so that every run of the capture makes new ones.
Value* lift(Trace& t, ObjectRef object) {
  PyObject* o = object.get();
  if (PyList_CheckExact(o)) {
    std::vector<Value*> items;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); i++) items.push_back(lift(t, ObjectRef::share(PyList_GET_ITEM(o, i))));
    return t.list(std::move(items));
  }
  if (PyDict_CheckExact(o)) {
    DictValue* d = t.dict();
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) t.dictSet(d, t.keyOf(t.realShared(key)), lift(t, ObjectRef::share(value)));
    return d;
  }
  if (PySet_CheckExact(o) || PyIter_Check(o) || PyByteArray_Check(o))
    unsupported(BreakReason::UnknownFunction, std::string("a C function that gives a ") + Py_TYPE(o)->tp_name);
  return t.real(std::move(object));
}

}  // namespace

Value* callNative(Trace& t, PyObject* callable, const CallArgs& args) {
  std::vector<PyObject*> values;
  for (Value* v : args.args) {
    if (Value* core = coreOf(t, v)) v = core;
    PyObject* c = t.snapshot(v);
    if (!c) return nullptr;
    values.push_back(c);
  }
  ObjectRef names = checked(PyTuple_New(static_cast<Py_ssize_t>(args.kwargs.size())));
  for (size_t i = 0; i < args.kwargs.size(); i++) {
    PyObject* c = t.snapshot(args.kwargs[i].second);
    if (!c) return nullptr;
    values.push_back(c);
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(args.kwargs[i].first).release());
  }
  return lift(t, native(t, PyObject_Vectorcall(callable, values.data(), args.args.size(), args.kwargs.empty() ? nullptr : names.get())));
}

namespace {

bool isPureType(PyTypeObject* type) {
  return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBytes_Type || type == &PyTuple_Type ||
         type == &PyRange_Type || type == &PyFrozenSet_Type || type == sizeType() || type == &PyComplex_Type || type == &PyBool_Type ||
         type == &PySlice_Type;
}

// int.__eq__(1, instance), str.__lt__("a", instance): a comparison of a number or text with an object of a class of its own.
bool knowsNothingOf(Trace& t, PyObject* descriptor, const CallArgs& args) {
  if (args.args.size() != 2 || !args.kwargs.empty() || args.args[1]->kind != Kind::Instance || !t.constant(args.args[0])) return false;
  const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyDescrObject*>(descriptor)->d_name);
  bool compares = false;
  for (const char* comparison : {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}) compares |= name && std::strcmp(name, comparison) == 0;
  if (!compares) return false;
  PyTypeObject* other = t.typeOf(args.args[1]);
  for (PyTypeObject* base :
       {&PyLong_Type, &PyFloat_Type, &PyComplex_Type, &PyUnicode_Type, &PyBytes_Type, &PyTuple_Type, &PyFrozenSet_Type, &PySet_Type})
    if (PyType_IsSubtype(other, base)) return false;
  return true;
}

// C functions of these modules have no effects.
bool isPureModule(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return false;
  PyObject* module = PyCFunction_GET_SELF(callable);
  if (!module || !PyModule_Check(module)) return false;
  const char* name = PyModule_GetName(module);
  return name && (!std::strcmp(name, "math") || !std::strcmp(name, "cmath") || !std::strcmp(name, "_operator"));
}

}  // namespace

PyObject* polyfillOf(PyObject* callable) {
  const BuiltinTable& table = BuiltinTable::get();
  return table.find(callable) ? nullptr : table.polyfill(callable);
}

Value* callByUsersRules(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known) {
  Value* v = callOutput(t, callable, callableValue, args, known);
  return known ? v : callMarked(t, callable, callableValue, args, known);
}

namespace {

// A method of torch.Tensor that asks for __torch_function__.
bool isTensorMethod(PyObject* callable) {
  PyTypeObject* kind = Py_TYPE(callable);
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type) {
    auto* descriptor = reinterpret_cast<PyDescrObject*>(callable);
    static PyTypeObject* base = tensorType()->tp_base;
    return (descriptor->d_type == base || descriptor->d_type == tensorType()) &&
           PyUnicode_CompareWithASCIIString(descriptor->d_name, "as_subclass") != 0;
  }
  if (kind != &PyFunction_Type) return false;
  static PyObject* globals = PyModule_GetDict(checked(PyImport_ImportModule("torch._tensor")).get());
  return reinterpret_cast<PyFunctionObject*>(callable)->func_globals == globals;
}

}  // namespace

Value* callBuiltin(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known) {
  BuiltinTable& table = BuiltinTable::get();
  if (BuiltinHandler handler = table.find(callable)) {
    known = true;
    if (callableValue && callableValue->source) t.identity(callableValue);
    if (isTensorMethod(callable) && isOverridden(t, args)) return callTorchFunction(t, callable, args);
    return handler(t, args);
  }
  if (PyObject* polyfill = table.polyfill(callable)) {
    known = true;
    if (callableValue && callableValue->source) t.identity(callableValue);
    return call(t, pinnedValue(t, polyfill), args);
  }
  if (Value* v = callTorch(t, callable, callableValue, args, known); known) return v;
  if (Value* v = callNumpy(t, callable, callableValue, args, known); known) return v;
  PyTypeObject* kind = Py_TYPE(callable);
  bool pure = table.isPure(callable) || isPureModule(callable);
  if (!pure && (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type))
    pure = isPureType(reinterpret_cast<PyDescrObject*>(callable)->d_type);
  if (!pure && PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    pure = self && ((PyType_Check(self) && isPureType(reinterpret_cast<PyTypeObject*>(self))) || isPureType(Py_TYPE(self)));
  }
  if (pure && kind == &PyWrapperDescr_Type && knowsNothingOf(t, callable, args)) {
    known = true;
    return t.realShared(Py_NotImplemented);
  }
  if (pure) {
    if (callableValue && callableValue->source) t.identity(callableValue);
    if (Value* v = callNative(t, callable, args)) {
      known = true;
      return v;
    }
    Value* answer = nullptr;
    if (convertNumbers(t, callable, args, answer)) {
      if (!answer) answer = callNative(t, callable, args);
      known = answer != nullptr;
      return answer;
    }
  }
  known = false;
  return nullptr;
}

}  // namespace cdynamo
