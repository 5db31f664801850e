#include "builtins/table.h"

#include <cstddef>
#include <cstring>

#include "base/lookup.h"
#include "base/warning_watch.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/intrinsics.h"
#include "interp/pending.h"
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
  if (object && Py_TYPE(object.get()) == &PyStaticMethod_Type) object = ObjectRef::steal(PyObject_GetAttrString(object.get(), "__func__"));
  return object;
}

}  // namespace

BuiltinTable& BuiltinTable::get() {
  static BuiltinTable table = [] {
    BuiltinTable made;
    addCoreBuiltins(made);
    addContainerMethods(made);
    addDequeMethods(made);
    addSetMethods(made);
    addTypeBuiltins(made);
    addObjectBuiltins(made);
    addIteratorBuiltins(made);
    addTorchBuiltins(made);
    addTorchState(made);
    addFunctorchBuiltins(made);
    addLruCaches(made);
    addOutputBuiltins(made);
    addAutogradBuiltins(made);
    addCheckpointBuiltins(made);
    addRandomBuiltins(made);
    addNumberBuiltins(made);
    addExceptionBuiltins(made);
    addImportBuiltins(made);
    addTorchFunctionBuiltins(made);
    addSlotMethods(made);
    addLibraryFunctions(made);
    addClassChecks(made);
    addIntrospection(made);
    addWeakReferences(made);
    addContextVariables(made);
    addStandIns(made);
    addEvaluation(made);
    addLazyModules(made);
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
  CD_CHECK(polyfills_.emplace(object.release(), function.release()).second, path);
}

void expectArgs(const CallArgs& args, size_t least, size_t most) {
  if (!args.kwargs.empty() || args.args.size() < least || args.args.size() > most) throw WrongArguments{};
}

void noKeywords(const CallArgs& args) {
  if (!args.kwargs.empty()) throw WrongArguments{};
}

namespace {

PyMethodDef* methodDef(PyObject* callable) {
  PyTypeObject* kind = Py_TYPE(callable);
  if (kind == &PyMethodDescr_Type || kind == &PyClassMethodDescr_Type) return reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
  return PyCFunction_Check(callable) ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml : nullptr;
}

// What can be said of a call before its handler runs: self is of the method's type, and how many arguments it takes at all.
bool fits(Trace& t, PyObject* callable, const CallArgs& args) {
  PyTypeObject* kind = Py_TYPE(callable);
  bool method = kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type;
  if (method && args.args.empty()) return false;
  if (method && !PyType_IsSubtype(t.typeOf(args.args[0]), reinterpret_cast<PyDescrObject*>(callable)->d_type)) return false;
  PyMethodDef* def = methodDef(callable);
  if (!def) return true;
  size_t n = args.args.size() - (method || kind == &PyClassMethodDescr_Type);
  if (!(def->ml_flags & METH_KEYWORDS) && !args.kwargs.empty()) return false;
  return !((def->ml_flags & METH_NOARGS) && n != 0) && !((def->ml_flags & METH_O) && n != 1);
}

// An object of a builtin type to show its methods to; null where none can be made of nothing.
ObjectRef emptyObject(PyTypeObject* type) {
  ObjectRef made = ObjectRef::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type)));
  if (!made) PyErr_Clear();
  return made;
}

// The TypeError of a call whose arguments do not fit, in CPython's words. Arguments that are no constants are shown as None: they are
// counted before they are looked at.
[[noreturn]] void raiseBadCall(Trace& t, PyObject* callable, const CallArgs& args) {
  PyTypeObject* kind = Py_TYPE(callable);
  if (PyFunction_Check(callable)) unsupported(BreakReason::UnknownFunction, "a call with arguments that are not modelled");
  std::vector<PyObject*> arguments;
  auto show = [&](Value* v) {
    PyObject* copy = isTensor(v) ? nullptr : t.snapshot(v);
    arguments.push_back(copy ? copy : Py_None);
  };
  for (Value* v : args.args) show(v);
  size_t count = arguments.size();
  ObjectRef keywords = args.kwargs.empty() ? ObjectRef() : checked(PyTuple_New(static_cast<Py_ssize_t>(args.kwargs.size())));
  for (size_t i = 0; i < args.kwargs.size(); i++) {
    show(args.kwargs[i].second);
    PyTuple_SET_ITEM(keywords.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(args.kwargs[i].first).release());
  }
  ObjectRef self;
  if ((kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type) && count) {
    PyTypeObject *type = reinterpret_cast<PyDescrObject*>(callable)->d_type, *selfType = t.typeOf(args.args[0]);
    if (!PyType_IsSubtype(selfType, type)) {
      const char* words = kind == &PyMethodDescr_Type ? "descriptor '%U' for '%s' objects doesn't apply to a '%s' object"
                                                      : "descriptor '%U' requires a '%s' object but received a '%s'";
      ObjectRef text = checked(PyUnicode_FromFormat(words, reinterpret_cast<PyDescrObject*>(callable)->d_name, type->tp_name, selfType->tp_name));
      throw Raised{t.real(checked(PyObject_CallOneArg(PyExc_TypeError, text.get())))};
    }
    self = emptyObject(type);
    if (!self) unsupported(BreakReason::UnknownFunction, std::string("a call of a method of ") + type->tp_name + " with wrong arguments");
    arguments[0] = self.get();
  } else if (kind == &PyClassMethodDescr_Type && count) {
    // A class of the program is named in the message; it is shown only where nothing of it can be called.
    bool named = isReal(args.args[0]) && PyType_Check(realObject(args.args[0])) && (methodDef(callable)->ml_flags & METH_NOARGS);
    arguments[0] = named ? realObject(args.args[0]) : reinterpret_cast<PyObject*>(reinterpret_cast<PyDescrObject*>(callable)->d_type);
  }
  ObjectRef answer = ObjectRef::steal(PyObject_Vectorcall(callable, arguments.data(), count, keywords.get()));
  if (!answer && PyErr_ExceptionMatches(PyExc_TypeError)) raiseCurrent(t);
  PyErr_Clear();
  unsupported(BreakReason::UnknownFunction, "a builtin called with arguments that it does not take");
}

}  // namespace

namespace {

// A match that reads a bytearray, which may change, each time that it is asked.
bool readsArray(PyObject* object) {
  static PyObject* match = importedObject("re", "Match");
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != match) return false;
  return PyByteArray_Check(checked(PyObject_GetAttrString(object, "string")).get());
}

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
  if (PyTuple_CheckExact(o) && !t.models.empty()) {
    std::vector<Value*> items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) items.push_back(lift(t, ObjectRef::share(PyTuple_GET_ITEM(o, i))));
    return t.tuple(std::move(items));
  }
  if (PyAnySet_CheckExact(o)) return t.setMade(std::move(object));
  if (readsArray(o) || (PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) && readsArray(PyTuple_GET_ITEM(o, 0))))
    unsupported(BreakReason::UnknownFunction, "a match in a bytearray");
  if (PyIter_Check(o) || PyByteArray_Check(o) || Py_TYPE(o) == &PyDictProxy_Type)
    unsupported(BreakReason::UnknownFunction, std::string("a C function that gives a ") + Py_TYPE(o)->tp_name);
  return t.real(std::move(object));
}

}  // namespace

namespace {

// The plain value that C code works on where it is given an object of a subclass of int, str, ...: null where that class says something
// else about what C code asks of its arguments. Of the object whose method it is nothing is asked.
Value* nativeArgument(Trace& t, PyObject* callable, Value* v, bool first) {
  if (v->kind != Kind::Instance) return coreOf(t, v);
  PyTypeObject* kind = Py_TYPE(callable);
  const bool method = kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type;
  if (method && first) return coreOf(t, v);
  const bool text = method && (reinterpret_cast<PyDescrObject*>(callable)->d_type == &PyUnicode_Type);
  if (text && coreType(t.typeOf(v)) == &PyUnicode_Type) {
    // Of a text nothing is asked either, but where it is formatted, or given back.
    PyObject* name = reinterpret_cast<PyDescrObject*>(callable)->d_name;
    auto isNamed = [&](const char* one) { return PyUnicode_CompareWithASCIIString(name, one) == 0; };
    if (isNamed("partition") || isNamed("rpartition")) return nullptr;
    if (!isNamed("__mod__") && !isNamed("__rmod__") && !isNamed("format") && !isNamed("format_map")) return coreOf(t, v);
  }
  if (text && !coreUnless(t, v, {"__str__", "__repr__", "__format__"})) return nullptr;
  return coreUnless(t, v,
                    {"__index__", "__int__", "__float__", "__complex__", "__bytes__", "__bool__", "__len__", "__iter__", "__getitem__",
                     "__contains__", "__hash__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"});
}

// A text that has nothing to be formatted is its own result, of whatever class it is.
bool givesItselfBack(PyObject* callable) {
  if (Py_TYPE(callable) != &PyMethodDescr_Type && Py_TYPE(callable) != &PyWrapperDescr_Type) return false;
  auto* descriptor = reinterpret_cast<PyDescrObject*>(callable);
  auto isNamed = [&](const char* name) { return PyUnicode_CompareWithASCIIString(descriptor->d_name, name) == 0; };
  return descriptor->d_type == &PyUnicode_Type && (isNamed("format_map") || isNamed("__mod__"));
}

// Breaks where a text is encoded or decoded by a codec, or an error handler, that the program registered.
void checkCodec(const Trace& t, PyObject* callable, const std::vector<PyObject*>& values, PyObject* names) {
  auto is = [](PyObject* text, const char* name) { return PyUnicode_CompareWithASCIIString(text, name) == 0; };
  bool converts = callable == reinterpret_cast<PyObject*>(&PyUnicode_Type) || callable == reinterpret_cast<PyObject*>(&PyBytes_Type);
  if (Py_TYPE(callable) == &PyMethodDescr_Type) {
    auto* descriptor = reinterpret_cast<PyDescrObject*>(callable);
    converts = is(descriptor->d_name, descriptor->d_type == &PyUnicode_Type ? "encode" : "decode");
  }
  if (!converts) return;
  static PyObject* search = importedObject("encodings", "search_function");
  const size_t positional = values.size() - static_cast<size_t>(PyTuple_GET_SIZE(names));
  for (size_t i = 1; i < values.size(); i++) {
    if (!PyUnicode_Check(values[i])) continue;
    if (i >= positional ? is(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i - positional)), "errors") : i == 2) {
      bool known = false;
      for (const char* handler :
           {"strict", "ignore", "replace", "xmlcharrefreplace", "backslashreplace", "namereplace", "surrogateescape", "surrogatepass"})
        known |= is(values[i], handler);
      if (!known) unsupported(BreakReason::UnsupportedText, std::string("the error handler ") + PyUnicode_AsUTF8(values[i]));
      continue;
    }
    ObjectRef lower = checked(PyObject_CallMethod(values[i], "lower", nullptr));
    bool common = false;
    for (const char* name : {"utf-8", "utf8", "ascii", "latin-1"}) common |= is(lower.get(), name);
    ObjectRef codec = common ? nullptr : ObjectRef::steal(PyObject_CallOneArg(search, lower.get()));
    PyErr_Clear();
    if (common || (codec && codec.get() != Py_None)) continue;
    // Nobody has it, whatever the program did before.
    codec = isPending(t) ? nullptr : ObjectRef::steal(PyObject_CallOneArg(importedObject("_codecs", "lookup"), values[i]));
    const bool isMissing = !codec && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_LookupError);
    PyErr_Clear();
    if (!isMissing) unsupported(BreakReason::UnsupportedText, "an encoding that CPython does not bring");
  }
}

}  // namespace

Value* callNative(Trace& t, PyObject* callable, const CallArgs& args) {
  std::vector<PyObject*> values;
  bool cores = false;
  for (size_t i = 0; i < args.args.size(); i++) {
    Value* v = args.args[i];
    if (Value* core = nativeArgument(t, callable, v, i == 0)) v = core, cores |= i > 0 || PyCFunction_Check(callable) || PyType_Check(callable);
    PyObject* c = t.snapshot(v);
    // C code must not run what only stands for the methods of a class that the trace made.
    if (!c || t.localClass(c)) return nullptr;
    values.push_back(c);
  }
  ObjectRef names = checked(PyTuple_New(static_cast<Py_ssize_t>(args.kwargs.size())));
  for (size_t i = 0; i < args.kwargs.size(); i++) {
    PyObject* c = t.snapshot(args.kwargs[i].second);
    if (!c) return nullptr;
    values.push_back(c);
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(args.kwargs[i].first).release());
  }
  if (values.size() > 1) checkCodec(t, callable, values, names.get());
  WarningWatch watch;
  ObjectRef given = ObjectRef::steal(PyObject_Vectorcall(callable, values.data(), args.args.size(), args.kwargs.empty() ? nullptr : names.get()));
  if (watch.takeWarning()) unsupported(BreakReason::Output, "a warning of C code");
  if (given && givesItselfBack(callable) && !args.args.empty() && args.args[0]->kind == Kind::Instance && given.get() == values[0])
    unsupported(BreakReason::BuiltinCall, "a text of a class of its own, which is given back");
  if (given) return lift(t, std::move(given));
  return cores ? onCores(t, [&] { return lift(t, native(t, nullptr)); }) : lift(t, native(t, nullptr));
}

namespace {

bool isPureType(PyTypeObject* type) {
  return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBytes_Type || type == &PyTuple_Type ||
         type == &PyRange_Type || type == &PyFrozenSet_Type || type == sizeType() || type == &PyComplex_Type || type == &PyBool_Type ||
         type == &PySlice_Type;
}

// Immutable types of the library whose methods only look at constants. Their class methods may ask for the time.
bool hasPureMethods(PyTypeObject* type) {
  static const std::vector<PyObject*> types = [] {
    std::vector<PyObject*> found;
    for (auto [module, name] : {std::pair{"re", "Pattern"},
                                {"re", "Match"},
                                {"_datetime", "date"},
                                {"_datetime", "time"},
                                {"_datetime", "datetime"},
                                {"_datetime", "timedelta"},
                                {"struct", "Struct"}})
      found.push_back(importedObject(module, name));
    return found;
  }();
  for (PyObject* one : types)
    if (one == reinterpret_cast<PyObject*>(type)) return true;
  return false;
}

// True where an argument is a function that the C code would call.
bool givesCallable(Trace& t, const CallArgs& args) {
  for (size_t i = 1; i < args.args.size(); i++)
    if (args.args[i]->kind == Kind::Function || args.args[i]->kind == Kind::BoundMethod || t.typeOf(args.args[i])->tp_call) return true;
  for (auto& [name, v] : args.kwargs)
    if (v->kind == Kind::Function || v->kind == Kind::BoundMethod || t.typeOf(v)->tp_call) return true;
  return false;
}

// x.__add__(y), x.__lt__(y) where x is a number or text and y nothing that its type knows: NotImplemented.
bool isForeignOperand(Trace& t, PyObject* callable, const CallArgs& args) {
  if (Py_TYPE(callable) != &PyWrapperDescr_Type || args.args.size() != 2 || !args.kwargs.empty()) return false;
  auto* descriptor = reinterpret_cast<PyDescrObject*>(callable);
  PyTypeObject *type = descriptor->d_type, *other = t.typeOf(args.args[1]);
  auto isNumber = [](PyTypeObject* one) {
    return PyType_IsSubtype(one, &PyLong_Type) || PyType_IsSubtype(one, &PyFloat_Type) || PyType_IsSubtype(one, &PyComplex_Type);
  };
  bool number = isNumber(type), text = type == &PyUnicode_Type || type == &PyBytes_Type;
  if (number ? isNumber(other) : PyType_IsSubtype(other, type)) return false;
  const wrapperbase* base = reinterpret_cast<PyWrapperDescrObject*>(callable)->d_base;
  for (const char* alone : {"__neg__", "__pos__", "__abs__", "__bool__", "__invert__", "__int__", "__float__", "__index__"})
    if (std::strcmp(base->name, alone) == 0) return false;
  bool comparison = base->offset == offsetof(PyHeapTypeObject, ht_type.tp_richcompare);
  bool numeric = base->offset >= static_cast<int>(offsetof(PyHeapTypeObject, as_number)) &&
                 base->offset < static_cast<int>(offsetof(PyHeapTypeObject, as_number) + sizeof(PyNumberMethods));
  return (number && (comparison || numeric)) || (text && comparison);
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

// re._compile(pattern, re.DEBUG)
bool printsPattern(Trace& t, PyObject* callable, const CallArgs& args) {
  static PyObject* compile = importedObject("re", "_compile");
  PyObject* flags = callable == compile && args.args.size() == 2 ? t.constant(args.args[1]) : nullptr;
  static const long debug = PyLong_AsLong(importedObject("re", "DEBUG"));
  return flags && PyLong_Check(flags) && (PyLong_AsLong(flags) & debug) != 0;
}

// struct.pack_into(format, buffer, ...): the buffer is written to.
bool writesIntoBuffer(PyObject* callable) {
  const char* name = nullptr;
  if (PyCFunction_Check(callable)) name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  if (Py_TYPE(callable) == &PyMethodDescr_Type) name = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method->ml_name;
  return name && !std::strcmp(name, "pack_into");
}

// C functions of these modules have no effects.
bool isPureModule(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return false;
  PyObject* module = PyCFunction_GET_SELF(callable);
  if (!module || !PyModule_Check(module)) return false;
  const char* name = PyModule_GetName(module);
  return name && (!std::strcmp(name, "math") || !std::strcmp(name, "cmath") || !std::strcmp(name, "_struct") || !std::strcmp(name, "binascii") ||
                  !std::strcmp(name, "unicodedata"));
}

}  // namespace

void checkPolyfillCall(Trace& t, PyObject* callable, PyObject* polyfill, const CallArgs& args) {
  if (!PyFunction_Check(polyfill)) return;
  // Methods of async generators drive a body that the trace runs.
  if (!args.args.empty() && isReal(args.args[0]) && PyAsyncGen_CheckExact(realObject(args.args[0])))
    unsupported(BreakReason::AsyncCode, "a method of an async generator that exists");
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(polyfill));
  if (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) return;
  auto* defaults = PyFunction_GET_DEFAULTS(polyfill);
  size_t most = static_cast<size_t>(code->co_argcount), n = args.args.size();
  size_t least = most - (defaults ? static_cast<size_t>(PyTuple_GET_SIZE(defaults)) : 0);
  bool fit = n <= most && n + args.kwargs.size() >= least;
  ObjectRef names = checked(PyCode_GetVarnames(code));
  for (auto& [name, v] : args.kwargs) {
    bool found = false;
    for (int i = code->co_posonlyargcount; i < code->co_argcount + code->co_kwonlyargcount; i++)
      found |= PyUnicode_Compare(PyTuple_GET_ITEM(names.get(), i), name) == 0;
    fit &= found;
  }
  if (!fit) raiseBadCall(t, callable, args);
}

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
    size_t count = args.args.size();
    CallArgs given;
    if (!args.kwargs.empty()) given = args;
    try {
      if (fits(t, callable, args)) return handler(t, args);
    } catch (WrongArguments&) {
    }
    if (given.kwargs.empty()) {
      args.args.resize(count);
      given = std::move(args);
    }
    if (Value* v = callOfStandIn(t, callable, given)) return v;
    raiseBadCall(t, callable, given);
  }
  if (PyObject* polyfill = table.polyfill(callable)) {
    known = true;
    if (callableValue && callableValue->source) t.identity(callableValue);
    checkPolyfillCall(t, callable, polyfill, args);
    return call(t, pinnedValue(t, polyfill), args);
  }
  if (Value* v = callTorch(t, callable, callableValue, args, known); known) return v;
  if (Value* v = callNumpy(t, callable, callableValue, args, known); known) return v;
  PyTypeObject* kind = Py_TYPE(callable);
  bool pure = table.isPure(callable) || isPureModule(callable);
  if (!pure && (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type))
    pure = isPureType(reinterpret_cast<PyDescrObject*>(callable)->d_type) ||
           (kind == &PyMethodDescr_Type && hasPureMethods(reinterpret_cast<PyDescrObject*>(callable)->d_type) && !givesCallable(t, args));
  if (!pure && PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    pure = self && ((PyType_Check(self) && isPureType(reinterpret_cast<PyTypeObject*>(self))) || isPureType(Py_TYPE(self)) ||
                    (hasPureMethods(Py_TYPE(self)) && !givesCallable(t, args)));
  }
  pure = pure && !writesIntoBuffer(callable);
  if (pure && (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type) && !args.args.empty() &&
      !PyType_IsSubtype(t.typeOf(args.args[0]), reinterpret_cast<PyDescrObject*>(callable)->d_type))
    raiseBadCall(t, callable, args);
  if (pure && kind == &PyWrapperDescr_Type && knowsNothingOf(t, callable, args)) {
    known = true;
    return t.realShared(Py_NotImplemented);
  }
  if (pure && kind == &PyClassMethodDescr_Type && !args.args.empty() && isReal(args.args[0]) && PyType_Check(realObject(args.args[0])) &&
      PyType_HasFeature(reinterpret_cast<PyTypeObject*>(realObject(args.args[0])), Py_TPFLAGS_HEAPTYPE)) {
    // bytes.fromhex and its like: a Python class is called with what they make for the builtin one.
    Value* cls = args.args[0];
    if (args.args.size() == 2 && PyUnicode_CompareWithASCIIString(reinterpret_cast<PyDescrObject*>(callable)->d_name, "__class_getitem__") == 0) {
      known = true;
      return getItem(t, cls, args.args[1]);
    }
    CallArgs plain = args;
    plain.args[0] = t.realShared(reinterpret_cast<PyObject*>(reinterpret_cast<PyDescrObject*>(callable)->d_type));
    Value* made = onCores(t, [&] { return callNative(t, callable, plain); });
    known = made != nullptr;
    return made ? call1(t, cls, made) : nullptr;
  }
  if (pure) {
    if (callableValue && callableValue->source) t.identity(callableValue);
    if (printsPattern(t, callable, args)) unsupported(BreakReason::Output, "a pattern that shows itself");
    Value* v = roundedByItself(t, callable, args);
    if (!v) v = callNative(t, callable, args);
    if (!v && convertNumbers(t, callable, args)) v = callNative(t, callable, args);
    if (v) {
      known = true;
      return v;
    }
    if (!fits(t, callable, args)) raiseBadCall(t, callable, args);
    if (isForeignOperand(t, callable, args)) {
      known = true;
      return t.realShared(Py_NotImplemented);
    }
  }
  Value* v = callOfStandIn(t, callable, args);
  known = v != nullptr;
  return v;
}

}  // namespace cdynamo
