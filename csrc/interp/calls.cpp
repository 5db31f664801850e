// Calls: dispatch on what is called, argument binding, inlining of Python functions, instantiation.
#include <cstring>
#include <utility>

#include "base/lookup.h"
#include "base/own_library.h"
#include "base/stack_room.h"
#include "cpython/compat.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/last_calls.h"
#include "interp/lifetimes.h"
#include "interp/protocol.h"
#include "torch/bridge.h"
#include "torch/types.h"
#include "values/namespaces.h"

namespace cdynamo {

Value* CallArgs::takeKeyword(const char* name) {
  for (size_t i = 0; i < kwargs.size(); i++)
    if (PyUnicode_CompareWithASCIIString(kwargs[i].first, name) == 0) {
      Value* v = kwargs[i].second;
      kwargs.erase(kwargs.begin() + static_cast<ptrdiff_t>(i));
      return v;
    }
  return nullptr;
}

Value* CallArgs::keyword(const char* name) const {
  for (const auto& [key, v] : kwargs)
    if (PyUnicode_CompareWithASCIIString(key, name) == 0) return v;
  return nullptr;
}

namespace {

std::string text(PyObject* str) {
  const char* utf8 = PyUnicode_AsUTF8(str);
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "?";
}

// The parts of a function that a call needs, read from a real function or one that the trace made.
struct FunctionParts {
  PyObject* code;
  PyObject* globals;
  Value* defaults = nullptr;    // tuple or null
  Value* kwdefaults = nullptr;  // dict or null
  Value* closure = nullptr;     // TupleValue of cells or null
  PyObject* qualname = nullptr;
};

FunctionParts partsOf(Trace& t, Value* function) {
  if (function->kind == Kind::Function) {
    auto* fn = as<FunctionValue>(function);
    static PyObject* qualname = PyUnicode_InternFromString("__qualname__");
    Value* renamed = fn->names ? t.dictGetName(fn->names, qualname) : nullptr;
    PyObject* name = renamed ? t.constant(renamed) : nullptr;
    return {fn->code, fn->globals, fn->defaults, fn->kwdefaults, fn->closure, name ? name : reinterpret_cast<PyCodeObject*>(fn->code)->co_qualname};
  }
  PyObject* real = realObject(function);
  auto* fn = reinterpret_cast<PyFunctionObject*>(real);
  const Source* s = function->source;
  if (s && fn->func_builtins != ownBuiltins()) t.facts.functionIs(s, real);
  const Source* base = s ? s : t.sources.owned(real);
  FunctionParts parts{fn->func_code, fn->func_globals};
  parts.qualname = fn->func_qualname;
  auto attr = [&](const char* name) {
    PyObject* key = PyUnicode_InternFromString(name);
    return t.sources.attr(base, t.keep(ObjectRef::steal(key)));
  };
  if (fn->func_defaults) parts.defaults = t.wrap(fn->func_defaults, attr("__defaults__"));
  if (fn->func_kwdefaults) parts.kwdefaults = t.wrap(fn->func_kwdefaults, attr("__kwdefaults__"));
  if (fn->func_closure) {
    bool root = s && s->kind == SourceKind::Function;
    const Source* tuple = root ? nullptr : attr("__closure__");
    std::vector<Value*> cells;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fn->func_closure); i++) {
      const Source* cell = root ? t.sources.closureCell(static_cast<int32_t>(i)) : t.sources.sequenceItem(tuple, static_cast<int32_t>(i));
      cells.push_back(t.wrap(PyTuple_GET_ITEM(fn->func_closure, i), cell));
    }
    parts.closure = t.tuple(std::move(cells));
  }
  return parts;
}

std::vector<Value*> defaultsOf(Trace& t, Value* defaults) {
  if (!defaults) return {};
  return itemsOf(t, defaults);
}

std::string joinNames(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); i++) {
    if (i) out += i + 1 == names.size() ? (names.size() > 2 ? ", and " : " and ") : ", ";
    out += "'" + names[i] + "'";
  }
  return out;
}

// C code that our own library stands for has words of its own.
[[noreturn]] void refuseCall(Trace& t, const FrameState& f, const std::string& words) {
  if (isOwnLibrary(f.globals, "__name__")) unsupported(BreakReason::UnknownFunction, "a call of C code with arguments that it does not take");
  raise(t, PyExc_TypeError, words);
}

[[noreturn]] void missing(Trace& t, const FrameState& f, const std::string& fn, const char* kind, const std::vector<std::string>& names) {
  refuseCall(t, f,
             fn + "() missing " + std::to_string(names.size()) + " required " + kind + " argument" + (names.size() == 1 ? "" : "s") + ": " +
                 joinNames(names));
}

// CPython's argument binding, messages included.
void bind(Trace& t, FrameState& f, const FunctionParts& parts, CallArgs& args) {
  const Code& code = *f.code;
  auto fn = [&] { return text(parts.qualname); };
  size_t argc = static_cast<size_t>(code.argcount()), kwonly = static_cast<size_t>(code.kwOnlyCount()),
         posonly = static_cast<size_t>(code.posOnlyCount());
  size_t total = argc + kwonly;
  size_t given = args.args.size();
  for (size_t i = 0; i < std::min(given, argc); i++) f.locals[i] = args.args[i];
  size_t next = total;
  if (code.hasVarArgs()) {
    std::vector<Value*> rest;
    for (size_t i = argc; i < given; i++) rest.push_back(args.args[i]);
    f.locals[next++] = t.tuple(std::move(rest));
  }
  DictValue* kwDict = nullptr;
  if (code.hasVarKeywords()) f.locals[next++] = kwDict = t.dict();
  std::vector<std::string> positionalOnlyAsKeyword;
  for (auto& [name, v] : args.kwargs) {
    size_t slot = total;
    for (size_t i = posonly; i < total; i++)
      if (code.localName(static_cast<int>(i)) == name) {
        slot = i;
        break;
      }
    if (slot == total)
      for (size_t i = posonly; i < total; i++)
        if (PyUnicode_Compare(code.localName(static_cast<int>(i)), name) == 0) {
          slot = i;
          break;
        }
    if (slot == total) {
      if (kwDict) {
        t.dictSet(kwDict, t.keyOf(t.realShared(name)), v);
        continue;
      }
      for (size_t i = 0; i < posonly; i++)
        if (PyUnicode_Compare(code.localName(static_cast<int>(i)), name) == 0) positionalOnlyAsKeyword.push_back(text(name));
      if (!positionalOnlyAsKeyword.empty()) continue;
      refuseCall(t, f, fn() + "() got an unexpected keyword argument '" + text(name) + "'");
    }
    if (f.locals[slot]) refuseCall(t, f, fn() + "() got multiple values for argument '" + text(name) + "'");
    f.locals[slot] = v;
  }
  if (!positionalOnlyAsKeyword.empty()) {
    std::string names;
    for (auto& n : positionalOnlyAsKeyword) names += (names.empty() ? "" : ", ") + n;
    refuseCall(t, f, fn() + "() got some positional-only arguments passed as keyword arguments: '" + names + "'");
  }
  std::vector<Value*> defaults = defaultsOf(t, parts.defaults);
  if (given > argc && !code.hasVarArgs()) {
    size_t nd = defaults.size();
    std::string takes = nd ? "from " + std::to_string(argc - nd) + " to " + std::to_string(argc) : std::to_string(argc);
    size_t kwGiven = 0;
    for (size_t i = argc; i < total; i++) kwGiven += f.locals[i] != nullptr;
    std::string extra = kwGiven ? " positional argument" + std::string(given == 1 ? "" : "s") + " (and " + std::to_string(kwGiven) +
                                      " keyword-only argument" + (kwGiven == 1 ? "" : "s") + ")"
                                : "";
    refuseCall(t, f,
               fn() + "() takes " + takes + " positional argument" + (argc == 1 && !nd ? "" : "s") + " but " + std::to_string(given) + extra +
                   (given == 1 && !kwGiven ? " was given" : " were given"));
  }
  std::vector<std::string> missingNames;
  for (size_t i = 0; i < argc; i++) {
    if (f.locals[i]) continue;
    if (i + defaults.size() >= argc)
      f.locals[i] = defaults[i + defaults.size() - argc];
    else
      missingNames.push_back(text(code.localName(static_cast<int>(i))));
  }
  if (!missingNames.empty()) missing(t, f, fn(), "positional", missingNames);
  DictValue* kwdefaults = parts.kwdefaults ? asDict(parts.kwdefaults) : nullptr;
  for (size_t i = argc; i < total; i++) {
    if (f.locals[i]) continue;
    Value* v = kwdefaults ? t.dictGetName(kwdefaults, code.localName(static_cast<int>(i))) : nullptr;
    if (v)
      f.locals[i] = v;
    else
      missingNames.push_back(text(code.localName(static_cast<int>(i))));
  }
  if (!missingNames.empty()) missing(t, f, fn(), "keyword-only", missingNames);
}

}  // namespace

FrameState* newFrame(Trace& t, const Code& code, Value* function, PyObject* globals, Value* closure) {
  auto* f = t.makeFrame();
  f->code = &code;
  f->locals.assign(static_cast<size_t>(code.localsplusCount()), nullptr);
  f->stack.reserve(static_cast<size_t>(code.maxDepth()) + 4);
  f->handledAtEntry = t.handledException;
  f->function = function;
  f->globals = globals;
  f->closure = closure;
  static PyObject* builtinsName = PyUnicode_InternFromString("__builtins__");
  PyObject* builtins = PyDict_GetItemWithError(globals, builtinsName);
  if (builtins && PyModule_Check(builtins)) builtins = PyModule_GetDict(builtins);
  if (!builtins) builtins = PyEval_GetBuiltins();
  f->builtins = builtins;
  if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins)) unsupported(BreakReason::UnsupportedAttribute, "globals that are no plain dict");
  f->globalsDict = as<DictValue>(t.wrap(globals, t.sources.pinned(globals)));
  f->builtinsDict = as<DictValue>(t.wrap(builtins, t.sources.pinned(builtins)));
  TracePlace* place = t.makePlace();
  place->code = reinterpret_cast<PyObject*>(code.pyCode());
  place->line = code.firstLine();
  place->caller = t.place;
  f->place = place;
  return f;
}

Value* inlineFunction(Trace& t, Value* function, CallArgs args) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  FunctionParts parts = partsOf(t, function);
  if (parts.closure)
    if (Value* v = callKnownCode(t, parts.code, parts.closure, args)) return v;
  const Code& code = decode(reinterpret_cast<PyCodeObject*>(parts.code));
  FrameState* f = newFrame(t, code, function, parts.globals, parts.closure);
  bind(t, *f, parts, args);
  noteModuleFrame(t, *f);
  if (code.flags() & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) {
    auto* g = t.make<GeneratorValue>();
    g->type = generatorType(*f);
    g->frame = f;
    if (g->type == &PyCoro_Type) t.journal.onRollback([g] { g->finished = true; });  // was never made
    g->function = function;
    f->generator = g;
    return g;
  }
  f->returnTo = tail;
  runFrame(t, *f);
  Value* result = f->result;
  t.recycleFrame(f);
  return result;
}

// ---- instances -------------------------------------------------------------------------------------------------------

InstanceValue* makeInstance(Trace& t, PyTypeObject* type) {
  static PyObject* abstract = PyUnicode_InternFromString("__abstractmethods__");
  if (Py_TYPE(type) != &PyType_Type) lookUp(t, type, abstract);
  if (PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT) && type->tp_basicsize >= PyBaseObject_Type.tp_basicsize) {
    // What object.__new__ says names the methods that are missing.
    ObjectRef nothing = checked(PyTuple_New(0));
    native(t, PyBaseObject_Type.tp_new(type, nothing.get(), nullptr));
  }
  static PyObject* finalizer = PyUnicode_InternFromString("__del__");
  if (lookUp(t, type, finalizer)) unsupported(BreakReason::FinalizerClass, std::string("making a ") + type->tp_name + ", which has a __del__");
  auto* i = t.make<InstanceValue>();
  i->type = type;
  t.keep(ObjectRef::share(type));
  auto adopt = [&](auto* contents) {
    contents->type = type;
    contents->holder = i;
    i->contents = contents;
  };
  if (PyType_FastSubclass(type, Py_TPFLAGS_DICT_SUBCLASS))
    adopt(t.make<DictValue>());
  else if (PyType_FastSubclass(type, Py_TPFLAGS_LIST_SUBCLASS))
    adopt(t.make<ListValue>());
  else if (PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS))
    adopt(t.make<TupleValue>());
  else if (PyType_IsSubtype(type, &PySet_Type) || PyType_IsSubtype(type, &PyFrozenSet_Type))
    adopt(t.make<SetValue>());
  return i;
}

namespace {

// Of exceptions whose C code looks at its arguments, not all of which are constants: what it would refuse breaks. The class of what is
// made: OSError(2, [...]) is a FileNotFoundError.
PyTypeObject* checkedException(Trace& t, PyTypeObject* type, PyObject* init, const CallArgs& args) {
  const bool isInC = !init || !PyFunction_Check(init);
  auto isOf = [&](PyObject* base) { return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base)) != 0; };
  if (isOf(PyExc_UnicodeEncodeError) || isOf(PyExc_UnicodeDecodeError) || isOf(PyExc_UnicodeTranslateError) ||
      (isInC && isOf(PyExc_SyntaxError) && args.args.size() == 2) || (isInC && isOf(PyExc_OSError) && args.args.size() > 2))
    unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name + " of other than constants");
  if (!isInC || reinterpret_cast<PyObject*>(type) != PyExc_OSError || args.args.size() != 2) return type;
  PyObject* number = t.constant(args.args[0]);
  if (!number) return type;
  return Py_TYPE(checked(PyObject_CallFunction(PyExc_OSError, "Os", number, "")).get());
}

}  // namespace

Value* construct(Trace& t, PyTypeObject* type, Value* typeValue, CallArgs args) {
  bool pushed = std::exchange(t.tail, ReturnTo::Native) == ReturnTo::Push;
  static PyObject* newName = PyUnicode_InternFromString("__new__");
  static PyObject* initName = PyUnicode_InternFromString("__init__");
  static PyObject* objectNew = typeLookup(&PyBaseObject_Type, newName);
  static PyObject* objectInit = typeLookup(&PyBaseObject_Type, initName);
  PyObject* newMethod = lookUp(t, type, newName);
  PyObject* initMethod = lookUp(t, type, initName);
  Value* made = nullptr;
  if (PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) && (!newMethod || !PyFunction_Check(newMethod))) {
    if (Py_TYPE(newMethod) == &PyStaticMethod_Type) unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name);
    // All arguments constant and nothing written in Python: made for real.
    // Types that keep more than args (a value, a name, an errno) are; the others are the trace's own, with attributes.
    PyTypeObject* base = type;
    while (PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
    bool group = PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup)) != 0;
    bool plain = !(initMethod && PyFunction_Check(initMethod)) && !group && !t.localClass(type) &&
                 base->tp_basicsize != reinterpret_cast<PyTypeObject*>(PyExc_BaseException)->tp_basicsize;
    std::vector<PyObject*> constants;
    for (Value* a : args.args) {
      PyObject* c = plain ? t.constant(a) : nullptr;
      if (!c) plain = false;
      constants.push_back(c);
    }
    ObjectRef names = checked(PyTuple_New(static_cast<Py_ssize_t>(args.kwargs.size())));
    for (size_t i = 0; plain && i < args.kwargs.size(); i++) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(args.kwargs[i].first).release());
      constants.push_back(t.constant(args.kwargs[i].second));
      plain = constants.back() != nullptr;
    }
    if (plain)
      return t.real(native(t, PyObject_Vectorcall(reinterpret_cast<PyObject*>(type), constants.data(), args.args.size(),
                                                  args.kwargs.empty() ? nullptr : names.get())));
    // Its __init__ looks at its arguments.
    auto isOf = [base](PyObject* kind) { return PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(kind)) != 0; };
    if (isOf(PyExc_UnicodeDecodeError) || isOf(PyExc_UnicodeEncodeError) || isOf(PyExc_UnicodeTranslateError) ||
        (isOf(PyExc_SyntaxError) && args.args.size() > 1))
      unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name);
    if (group) type = groupClass(t, type, args);
    type = checkedException(t, type, initMethod, args);
    InstanceValue* i = makeInstance(t, type);
    i->exceptionArgs = t.tuple(args.args);
    made = i;
    if (!(initMethod && PyFunction_Check(initMethod))) {
      if (!args.kwargs.empty()) unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name + " with keywords");
      return made;
    }
  } else if (newMethod == objectNew) {
    if (!args.empty() && type->tp_new != PyBaseObject_Type.tp_new)
      raise(t, PyExc_TypeError, "object.__new__() takes exactly one argument (the type to instantiate)");
    if (initMethod == objectInit && !args.empty()) raise(t, PyExc_TypeError, std::string(type->tp_name) + "() takes no arguments");
    made = makeInstance(t, type);
  } else if (Py_TYPE(newMethod) == &PyStaticMethod_Type || PyFunction_Check(newMethod)) {
    Value* fn = bindDescriptor(t, newMethod, nullptr, type, newName);
    CallArgs newArgs = args;
    newArgs.args.insert(newArgs.args.begin(), typeValue);
    made = call(t, fn, std::move(newArgs));
    PyTypeObject* madeType = t.typeOf(made);
    if (!PyType_IsSubtype(madeType, type)) return made;
    // What is made may be of a subclass, whose __init__ is called.
    if (madeType != type) initMethod = lookUp(t, type = madeType, initName);
  } else {
    // A C __new__: those of the containers start empty and leave the filling to __init__.
    CallArgs newArgs = args;
    newArgs.args.insert(newArgs.args.begin(), typeValue);
    bool known = false;
    Value* v = callBuiltin(t, newMethod, nullptr, newArgs, known);
    if (!known) unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name + " object");
    made = v;
  }
  if (initMethod && initMethod != objectInit) {
    CallArgs initArgs = std::move(args);
    initArgs.args.insert(initArgs.args.begin(), made);
    if (Py_TYPE(initMethod) == &PyWrapperDescr_Type) {
      bool known = false;
      callBuiltin(t, initMethod, nullptr, initArgs, known);
      if (!known) unsupported(BreakReason::ObjectConstruction, std::string("initialising a ") + type->tp_name + " object");
    } else {
      initArgs.args.erase(initArgs.args.begin());
      Value* init = bindDescriptor(t, initMethod, made, type, initName);
      // The new object waits on the caller's stack, where a break in __init__ finds it.
      if (pushed) t.frame->push(made);
      t.tail = pushed ? ReturnTo::Init : ReturnTo::Native;
      Value* result = call(t, init, std::move(initArgs));
      if (pushed) t.frame->pop();
      if (!isReal(result, Py_None)) raise(t, PyExc_TypeError, "__init__() should return None, not '" + std::string(t.typeOf(result)->tp_name) + "'");
    }
  }
  return made;
}

// ---- calls -----------------------------------------------------------------------------------------------------------

namespace {

// torch.return_types.max((values, indices)) and other types with named items made in C.
Value* structSequence(Trace& t, PyTypeObject* type, const CallArgs& args) {
  ObjectRef count = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "n_sequence_fields"));
  std::vector<Value*> items;
  if (args.args.size() == 1 && args.kwargs.empty()) items = itemsOf(t, args.args[0]);
  if (items.empty() || static_cast<long>(items.size()) != PyLong_AsLong(count.get()))
    unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name + " object of other than its items");
  t.keep(ObjectRef::share(type));
  return t.tuple(std::move(items), type);
}

Value* callType(Trace& t, PyTypeObject* type, Value* typeValue, CallArgs args) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  bool known = false;
  Value* v = callBuiltin(t, reinterpret_cast<PyObject*>(type), typeValue, args, known);
  if (known) return v;
  PyTypeObject* meta = Py_TYPE(type);
  static PyObject* callName = PyUnicode_InternFromString("__call__");
  PyObject* metaCall = lookUp(t, meta, callName);
  static PyObject* plainCall = typeLookup(&PyType_Type, callName);
  if (metaCall && metaCall != plainCall) {
    Value* bound = Py_TYPE(metaCall)->tp_descr_get ? bindDescriptor(t, metaCall, typeValue, meta, callName) : pinnedValue(t, metaCall);
    t.tail = tail;
    return call(t, bound, std::move(args));
  }
  if (!type->tp_new) raise(t, PyExc_TypeError, std::string("cannot create '") + type->tp_name + "' instances");
  if (PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS) && PyDict_GetItemString(typeDict(type), "n_sequence_fields"))
    return structSequence(t, type, args);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) && type != namespaceType()) {
    // A C type that the table does not know: real construction, where everything is constant and nothing is shared.
    unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name + " object");
  }
  t.tail = tail;
  return construct(t, type, typeValue, std::move(args));
}

PyObject* autogradOperation(const Trace& t);

// send, throw, __next__ of generators.
bool isGeneratorMethod(PyObject* object) {
  static PyObject* const methods[] = {typeLookup(&PyGen_Type, PyUnicode_InternFromString("send")),
                                      typeLookup(&PyGen_Type, PyUnicode_InternFromString("throw")),
                                      typeLookup(&PyGen_Type, PyUnicode_InternFromString("__next__"))};
  return object == methods[0] || object == methods[1] || object == methods[2];
}

// The descriptor on its object's type that a bound C method was made of; borrowed, or null.
PyObject* boundDescriptor(PyObject* object) {
  PyObject* self = PyCFunction_CheckExact(object) ? PyCFunction_GET_SELF(object) : nullptr;
  if (!self || PyModule_Check(self) || PyType_Check(self)) return nullptr;
  PyMethodDef* method = reinterpret_cast<PyCFunctionObject*>(object)->m_ml;
  ObjectRef name = checked(PyUnicode_InternFromString(method->ml_name));
  PyObject* found = typeLookup(Py_TYPE(self), name.get());
  return found && Py_TYPE(found) == &PyMethodDescr_Type && reinterpret_cast<PyMethodDescrObject*>(found)->d_method == method ? found : nullptr;
}

Value* callReal(Trace& t, Value* callable, CallArgs args) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  PyObject* object = realObject(callable);
  bool known = false;
  if (Value* v = callByUsersRules(t, object, callable, args, known); known) return v;
  if (PyObject* descriptor = callable->source ? boundDescriptor(object) : nullptr) {
    // A bound method is new each time: its name, and what it is bound to, are looked at.
    static PyObject* selfName = PyUnicode_InternFromString("__self__");
    static PyObject* nameName = PyUnicode_InternFromString("__name__");
    t.typeOf(callable);
    t.constant(t.wrap(reinterpret_cast<PyDescrObject*>(descriptor)->d_name, t.sources.attr(callable->source, nameName)));
    Value* self = t.wrap(PyCFunction_GET_SELF(object), t.sources.attr(callable->source, selfName));
    t.typeOf(self);
    args.args.insert(args.args.begin(), self);
    t.tail = tail;
    return call(t, t.realShared(descriptor), std::move(args));
  }
  if (PyType_Check(object)) {
    t.identity(callable);
    if (tail == ReturnTo::Push) {
      LastCall last = lastBuiltin(t, object, args);
      if (!last) last = lastConsumer(t, object, callable, args);
      if (last) return callLast(t, std::move(last));
    }
    t.tail = tail;
    return callType(t, reinterpret_cast<PyTypeObject*>(object), callable, std::move(args));
  }
  if (PyObject* polyfill = polyfillOf(object)) {
    t.identity(callable);
    checkPolyfillCall(t, object, polyfill, args);
    t.tail = tail;
    return call(t, pinnedValue(t, polyfill), std::move(args));
  }
  if (tail == ReturnTo::Push) {
    LastCall last = lastBuiltin(t, object, args);
    if (!last) last = lastConsumer(t, object, callable, args);
    if (last) {
      t.identity(callable);
      return callLast(t, std::move(last));
    }
  }
  // A partial object's call is a call of what it holds; a generator is resumed as the last act.
  static PyObject* partialCall = typeLookup(partialType(), PyUnicode_InternFromString("__call__"));
  static PyObject* nextFunction = importedObject("builtins", "next");
  bool resumes =
      !args.args.empty() && args.args[0]->kind == Kind::Generator && (object == nextFunction ? args.args.size() == 1 : isGeneratorMethod(object));
  t.tail = object == partialCall || resumes ? tail : ReturnTo::Native;
  if (Value* v = callBuiltin(t, object, callable, args, known); known) return v;
  if (PyFunction_Check(object)) {
    t.tail = tail;
    return inlineFunction(t, callable, std::move(args));
  }
  if (Py_TYPE(object) == &_PyMethodWrapper_Type) {
    ObjectRef self = checked(PyObject_GetAttrString(object, "__self__")), name = checked(PyObject_GetAttrString(object, "__name__"));
    ObjectRef definer = checked(PyObject_GetAttrString(object, "__objclass__"));
    // A new object each time, as a bound method is: what it was made of is looked at.
    const bool looked = callable->source && !PyType_Check(self.get()) && Py_TYPE(self.get()) != &PyGetSetDescr_Type;
    auto part = [&](const char* attribute, PyObject* value) {
      return t.wrap(value, t.sources.attr(callable->source, checked(PyUnicode_InternFromString(attribute)).get()));
    };
    if (looked) {
      t.typeOf(callable);
      t.constant(part("__name__", name.get()));
      t.identity(part("__objclass__", definer.get()));
    } else if (callable->source) {
      t.identity(callable);
    }
    // torch.Tensor.shape.__get__, as __torch_function__ gets it.
    bool reads = Py_TYPE(self.get()) == &PyGetSetDescr_Type && PyUnicode_CompareWithASCIIString(name.get(), "__get__") == 0;
    if (reads && args.args.size() == 1 && isTensor(args.args[0]))
      return getAttr(t, args.args[0], reinterpret_cast<PyDescrObject*>(self.get())->d_name);
    PyObject* slot = PyDict_GetItemWithError(typeDict(reinterpret_cast<PyTypeObject*>(definer.get())), name.get());
    if (slot && Py_TYPE(slot) == &PyWrapperDescr_Type) {
      args.args.insert(args.args.begin(), looked ? part("__self__", self.get()) : pinnedValue(t, self.get()));
      return call(t, t.realShared(slot), std::move(args));
    }
    if (PyErr_Occurred()) throw PythonError();
  }
  if (PyMethod_Check(object)) {
    static PyObject* funcName = PyUnicode_InternFromString("__func__");
    static PyObject* selfName = PyUnicode_InternFromString("__self__");
    Value* fn = getAttr(t, callable, funcName);
    Value* self = getAttr(t, callable, selfName);
    args.args.insert(args.args.begin(), self);
    t.tail = tail;
    return call(t, fn, std::move(args));
  }
  if (Py_TYPE(object) == &Py_GenericAliasType) {
    // list[int](...): its origin is called, and what is made remembers the alias where it can.
    t.identity(callable);
    ObjectRef origin = checked(PyObject_GetAttrString(object, "__origin__"));
    Value* made = call(t, pinnedValue(t, origin.get()), std::move(args));
    // Builtin types have no room for it.
    if (!PyType_HasFeature(t.typeOf(made), Py_TPFLAGS_HEAPTYPE)) return made;
    static PyObject* origClass = PyUnicode_InternFromString("__orig_class__");
    try {
      setAttr(t, made, origClass, callable);
    } catch (Raised& raised) {
      if (!isA(t, raised.exception, PyExc_AttributeError) && !isA(t, raised.exception, PyExc_TypeError)) throw;
    }
    return made;
  }
  if (PyObject* descriptor = boundDescriptor(object)) {
    // Without a source: those with one were called above.
    args.args.insert(args.args.begin(), pinnedValue(t, PyCFunction_GET_SELF(object)));
    Value* v = callBuiltin(t, descriptor, nullptr, args, known);
    if (known) return v;
  }
  if (PyWeakref_CheckRefExact(object)) {
    static PyObject* referent = typeLookup(&_PyWeakref_RefType, PyUnicode_InternFromString("__call__"));
    args.args.insert(args.args.begin(), callable);
    return callBuiltin(t, referent, nullptr, args, known);
  }
  if (PyObject* operation = PyCFunction_Check(object) ? autogradOperation(t) : nullptr) return recordOpaque(t, operation, std::move(args));
  if (!PyCallable_Check(object)) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(callable)->tp_name + "' object is not callable");
  unsupported(BreakReason::UnknownFunction, "calling " + describe(callable));
}

// The operation of torch's compiled autograd whose __call__ runs now: C++ functions of the autograd engine, of which
// torch._dynamo.compiled_autograd makes graphs. Null elsewhere.
PyObject* autogradOperation(const Trace& t) {
  const FrameState* f = t.frame;
  PyObject* module = f ? PyDict_GetItemString(f->globals, "__name__") : nullptr;
  if (!module || !PyUnicode_Check(module) || PyUnicode_CompareWithASCIIString(module, "torch._dynamo.compiled_autograd") != 0) return nullptr;
  Value* self = f->locals.empty() ? nullptr : f->locals[0];
  bool op = self && self->kind == Kind::Instance && as<InstanceValue>(self)->real && std::strcmp(as<InstanceValue>(self)->type->tp_name, "Op") == 0;
  return op ? as<InstanceValue>(self)->real.get() : nullptr;
}

// What a compiled callable stands for: inside a capture it is traced like any other code. Null for everything else.
Value* originalOfCompiled(Trace& t, InstanceValue* v) {
  static PyObject* scripted = importedObject("torch.jit", "ScriptFunction");
  if (v->real && reinterpret_cast<PyObject*>(v->type) == scripted && PyObject_HasAttrString(v->real.get(), "_torchdynamo_inline"))
    return getAttr(t, v, "_torchdynamo_inline");
  if (!v->real || std::strncmp(v->type->tp_name, "cdynamo._C.Compiled", 19) != 0) return nullptr;
  return getAttr(t, v, std::strcmp(v->type->tp_name, "cdynamo._C.CompiledModuleCall") == 0 ? "module" : "_torchdynamo_orig_callable");
}

}  // namespace

Value* call(Trace& t, Value* callable, CallArgs args) {
  if (stackIsNearlyFull()) unsupported(BreakReason::RecursionLimit, "calls that use up the C stack");
  switch (callable->kind) {
    case Kind::Function: return inlineFunction(t, callable, std::move(args));
    case Kind::BoundMethod: {
      auto* m = as<BoundMethodValue>(callable);
      args.args.insert(args.args.begin(), m->self);
      return call(t, m->function, std::move(args));
    }
    case Kind::Real: return callReal(t, callable, std::move(args));
    case Kind::Instance: {
      ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
      Value* target = originalOfCompiled(t, as<InstanceValue>(callable));
      if (!target) target = moduleForward(t, as<InstanceValue>(callable));
      if (!target) target = specialMethod(t, callable, "__call__");
      t.tail = tail;
      if (target) return call(t, target, std::move(args));
      raise(t, PyExc_TypeError, std::string("'") + t.typeOf(callable)->tp_name + "' object is not callable");
    }
    case Kind::Property:
      if (as<PropertyValue>(callable)->type == &PyStaticMethod_Type) return call(t, as<PropertyValue>(callable)->get, std::move(args));
      [[fallthrough]];
    default: raise(t, PyExc_TypeError, std::string("'") + t.typeOf(callable)->tp_name + "' object is not callable");
  }
}

// ---- generators ------------------------------------------------------------------------------------------------------

Value* resumeGenerator(Trace& t, GeneratorValue* g, Value* sent, Value* thrown) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  FrameState& f = frameOf(t, g);
  const std::string kind = g->type == &PyCoro_Type ? "coroutine" : g->type == &PyAsyncGen_Type ? "async generator" : "generator";
  if (g->running) raise(t, PyExc_ValueError, kind + " already executing");
  if (g->finished) {
    if (g->type == &PyCoro_Type) raise(t, PyExc_RuntimeError, "cannot reuse already awaited coroutine");
    if (thrown) throw Raised{thrown, nullptr, true};
    t.journal.set(f.result, nullptr);
    return nullptr;
  }
  if (!g->started && sent && !isReal(sent, Py_None)) raise(t, PyExc_TypeError, "can't send non-None value to a just-started " + kind);
  t.touch(g);
  // The frame changes as it runs: what a rollback needs is a copy of its moving parts.
  t.journal.onRollback([&t, below = t.handledBelow.size(), handling = t.handledException, g, &f, locals = f.locals, stack = f.stack, ip = f.ip,
                        nextIp = f.nextIp, result = f.result, started = g->started, finished = g->finished, own = g->handled] {
    f.locals = locals;
    f.stack = stack;
    f.ip = ip;
    f.nextIp = nextIp;
    f.result = result;
    g->started = started;
    g->finished = finished;
    g->running = false;
    g->handled = own;
    t.handledException = handling;
    t.handledBelow.resize(below);
  });
  if (!g->started && thrown) {
    g->finished = true;
    t.addTraceback(thrown, f);
    throw Raised{thrown, nullptr, true};
  }
  if (g->started && !thrown) {
    f.push(sent);
  } else if (thrown && thrown->source && f.code->handlerOf(f.ip)) {
    // Its traceback gets an entry, which CPython has to make.
    unsupported(BreakReason::ExceptionTraceback, "throwing an exception that exists into a generator that may catch it");
  }
  g->started = true;
  g->running = true;
  f.returnTo = tail;
  f.handledAtEntry = t.handledException;
  // A generator handles exceptions of its own, above those of whoever resumes it.
  t.handledBelow.push_back(std::exchange(t.handledException, g->handled));
  auto leave = [&] {
    g->handled = std::exchange(t.handledException, t.handledBelow.back());
    t.handledBelow.pop_back();
  };
  Signal signal;
  try {
    signal = thrown ? throwToDelegate(t, f, thrown) : Signal::Running;
    // What is thrown at it has the context of what the generator handles, not of what its caller does.
    if (thrown && g->handled) linkContext(t, thrown);
    if (signal != Signal::Yielded) signal = thrown ? throwInto(t, f, thrown) : runFrame(t, f);
  } catch (Raised& raised) {
    g->running = false;
    g->finished = true;
    leave();
    f.result = nullptr;
    if (isA(t, raised.exception, PyExc_StopIteration)) raiseFrom(t, PyExc_RuntimeError, kind + " raised StopIteration", raised.exception);
    throw;
  }
  leave();
  g->running = false;
  if (signal == Signal::Yielded) return f.result;
  // What dies with its frame dies here: CPython has to resume it.
  for (Value* v : f.locals)
    if (v && v != f.result) checkLetGo(t, v, &f);
  g->finished = true;
  return nullptr;
}

}  // namespace cdynamo
