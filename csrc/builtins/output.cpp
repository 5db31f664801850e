// print(), logging and warnings.warn: put off until after the graph where nobody can see the difference, else a break.
#include <cstring>

#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

[[noreturn]] void refuse(const std::string& what) { unsupported(BreakReason::Output, what); }

// A set of torch._dynamo.config that is not empty; null else. torch._dynamo is not imported for this.
ObjectRef configuredSet(const char* name) {
  PyObject* config = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._dynamo.config");
  if (!config) return nullptr;
  ObjectRef found = ObjectRef::steal(PyObject_GetAttrString(config, name));
  if (!found) PyErr_Clear();
  return found && PyAnySet_Check(found.get()) && PySet_GET_SIZE(found.get()) > 0 ? found : nullptr;
}

const OutputRules& rules(Trace& t) {
  if (t.output.known) return t.output;
  t.output.known = true;
  ObjectRef defer = checked(PyObject_GetAttrString(importedObject("cdynamo._config", "config"), "defer_output"));
  t.output.defer = PyObject_IsTrue(defer.get()) == 1;
  t.output.reorderable = configuredSet("reorderable_logging_functions");
  t.output.ignored = configuredSet("ignore_logging_functions");
  if (!t.output.ignored) t.output.ignored = configuredSet("ignore_logger_methods");
  return t.output;
}

// Whether the set names this call: the callable itself, or a method bound to its first argument.
bool lists(const ObjectRef& set, PyObject* callable, const CallArgs& args) {
  if (!set) return false;
  int found = PySet_Contains(set.get(), callable);
  if (found < 0) PyErr_Clear();
  if (found > 0) return true;
  PyObject* self = args.args.empty() ? nullptr : existing(args.args[0]);
  if (!self || !PyFunction_Check(callable)) return false;
  ObjectRef method = checked(PyMethod_New(callable, self));
  found = PySet_Contains(set.get(), method.get());
  if (found < 0) PyErr_Clear();
  return found > 0;
}

void requireDeferral(Trace& t, const char* what) {
  if (!rules(t).defer) refuse(std::string(what) + " while config.defer_output is off");
}

// ---- streams ---------------------------------------------------------------------------------------------------------

bool isIoMethod(PyObject* descriptor) {
  if (!descriptor || Py_TYPE(descriptor) != &PyMethodDescr_Type) return false;
  return std::strncmp(reinterpret_cast<PyDescrObject*>(descriptor)->d_type->tp_name, "_io.", 4) == 0;
}

// What is written to it goes through C code only: it can neither see nor change anything that the trace knows.
bool writesText(Trace& t, Value* stream) {
  PyObject* object = existing(stream);
  if (!object || !stream->source) return false;
  PyTypeObject* type = t.typeOf(stream);
  static PyObject* names[] = {PyUnicode_InternFromString("write"), PyUnicode_InternFromString("flush")};
  for (PyObject* name : names) {
    if (!isIoMethod(lookUp(t, type, name))) return false;
    ObjectRef method = ObjectRef::steal(PyObject_GetAttr(object, name));
    if (!method) PyErr_Clear();
    if (!method || !PyCFunction_Check(method.get()) || PyCFunction_GET_SELF(method.get()) != object) return false;
  }
  return true;
}

// The stream of that name in module sys; a break where the trace itself has replaced it.
Value* standardStream(Trace& t, const char* name) {
  Value* stream = getAttr(t, pinnedValue(t, t.keep(checked(PyImport_ImportModule("sys")))), name);
  if (existing(stream) != PySys_GetObject(name)) refuse(std::string("output while sys.") + name + " is replaced");
  return stream;
}

Value* polyfillWritesText(Trace& t, CallArgs& a) { return t.boolean(writesText(t, a.args.at(0))); }

// ---- print -----------------------------------------------------------------------------------------------------------

PyObject* keyword(Trace& t, const char* name) { return t.keep(checked(PyUnicode_InternFromString(name))); }

Value* textToPrint(Trace& t, Value* v) {
  if (isOpen(v)) return t.typeOf(v), v;
  if (isTensor(v) && canReadLater(t, v)) return v;
  Value* text = str(t, v);
  PyObject* c = t.constant(text);
  if (!(c && PyUnicode_Check(c)) && !isLateText(text)) refuse("printing " + describe(v));
  return text;
}

void deferPrint(Trace& t, CallArgs& a, bool anyStream) {
  LateCall late;
  late.callable = importedObject("builtins", "print");
  for (const char* name : {"sep", "end"}) {
    Value* v = a.takeKeyword(name);
    if (!v) continue;
    PyObject* c = t.constant(v);
    if (!(c && (c == Py_None || PyUnicode_Check(c))) && !isLateText(v)) refuse(std::string("print() with ") + name + " that is " + describe(v));
    late.kwargs.emplace_back(keyword(t, name), v);
  }
  Value* file = a.takeKeyword("file");
  bool given = file && !isReal(file, Py_None);
  Value* stream = given ? file : standardStream(t, "stdout");
  if (isSame(t, stream, t.none())) return;  // nothing to print to
  if (!writesText(t, stream) && !(anyStream && existing(stream))) refuse("print() to a stream that runs other code");
  if (given) late.kwargs.emplace_back(keyword(t, "file"), file);
  if (Value* flush = a.takeKeyword("flush")) late.kwargs.emplace_back(keyword(t, "flush"), t.boolean(truth(t, flush)));
  if (!a.kwargs.empty()) refuse("print() with an unknown keyword");
  for (Value* v : a.args) late.args.push_back(textToPrint(t, v));
  t.defer(std::move(late), false);
}

Value* print(Trace& t, CallArgs& a) {
  requireDeferral(t, "print()");
  deferPrint(t, a, false);
  return t.none();
}

// ---- logging ---------------------------------------------------------------------------------------------------------

Value* callPolyfill(Trace& t, const char* name, CallArgs args) {
  return call(t, pinnedValue(t, importedObject("cdynamo.polyfills", name)), std::move(args));
}

// What a log record may hold: constants, tensors, late texts, copies of containers of constants.
Value* loggable(Trace& t, Value* v) {
  if (isOpen(v)) return t.typeOf(v), v;
  if (canReadLater(t, v)) return v;
  if (PyObject* copy = t.snapshot(v)) return t.realShared(copy);
  refuse("logging " + describe(v));
}

// Breaks where the program changed what decides about the record: the call would come before that, or after a later change.
void checkLoggingUnchanged(const Trace& t, Value* logger) {
  auto* instance = logger->kind == Kind::Instance ? as<InstanceValue>(logger) : nullptr;
  if (t.mutated().empty() || !instance || !instance->real) return;
  ObjectRef parts = checked(PyObject_CallOneArg(importedObject("cdynamo.polyfills", "parts_of_logging"), instance->real.get()));
  for (const HeapValue* changed : t.mutated())
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts.get()); i++)
      if (changed->real.get() == PyList_GET_ITEM(parts.get(), i)) refuse("logging with a logger or handler that was changed before");
}

// A call of one of logging's functions or of a logger's methods, which `a` holds in full.
Value* deferLog(Trace& t, PyObject* callable, Value* logger, Value* level, CallArgs& a, size_t messageAt) {
  if (!isReal(level) || !PyLong_Check(realObject(level))) refuse("logging at a computed level");
  if (!truth(t, call(t, getAttr(t, logger, "isEnabledFor"), {{level}, {}}))) return t.none();
  requireDeferral(t, "logging");
  checkLoggingUnchanged(t, logger);
  if (!truth(t, callPolyfill(t, "logs_plainly", {{logger}, {}}))) refuse("logging with handlers or filters that run other code");
  LateCall late;
  late.callable = callable;
  for (size_t i = 0; i < a.args.size(); i++) {
    Value* v = a.args[i];
    if (v == logger && i < messageAt) {
      late.args.push_back(v);
    } else if (i == messageAt && !t.isConstant(v)) {
      late.args.push_back(textToPrint(t, v));
    } else {
      late.args.push_back(loggable(t, v));
    }
  }
  for (auto& [name, v] : a.kwargs) {
    bool now = PyUnicode_CompareWithASCIIString(name, "exc_info") == 0 || PyUnicode_CompareWithASCIIString(name, "stack_info") == 0;
    if (now && truth(t, v)) refuse("logging the current exception or stack");
    late.kwargs.emplace_back(name, loggable(t, v));
  }
  t.defer(std::move(late), false);
  return t.none();
}

PyTypeObject* loggingType(const char* name) { return reinterpret_cast<PyTypeObject*>(importedObject("logging", name)); }

// Logger.info(self, msg, *args, **kwargs) and its like; which = -1: Logger.log(self, level, msg, ...).
template <int which>
Value* loggerMethod(Trace& t, CallArgs& a) {
  static const char* names[] = {"debug", "info", "warning", "warn", "error", "critical", "fatal"};
  static const int levels[] = {10, 20, 30, 30, 40, 50, 50};
  size_t messageAt = which < 0 ? 2 : 1;
  if (a.args.size() <= messageAt) refuse("logging without a message");
  PyTypeObject* type = t.typeOf(a.args[0]);
  if (type != loggingType("Logger") && type != loggingType("RootLogger")) refuse(std::string("logging with a ") + type->tp_name);
  ObjectRef method = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(loggingType("Logger")), which < 0 ? "log" : names[which]));
  Value* level = which < 0 ? a.args[1] : t.integer(levels[which]);
  return deferLog(t, t.keep(std::move(method)), a.args[0], level, a, messageAt);
}

Value* loggerException(Trace&, CallArgs&) { refuse("logging the current exception"); }

template <int which>
Value* loggingFunction(Trace& t, CallArgs& a) {
  static const char* names[] = {"debug", "info", "warning", "warn", "error", "critical", "fatal"};
  static const int levels[] = {10, 20, 30, 30, 40, 50, 50};
  size_t messageAt = which < 0 ? 1 : 0;
  if (a.args.size() <= messageAt) refuse("logging without a message");
  Value* root = getAttr(t, pinnedValue(t, t.keep(checked(PyImport_ImportModule("logging")))), "root");
  // Without handlers it installs one first.
  if (!truth(t, getAttr(t, root, "handlers"))) refuse("the first call of a function of logging");
  PyObject* function = importedObject("logging", which < 0 ? "log" : names[which]);
  return deferLog(t, function, root, which < 0 ? a.args[0] : t.integer(levels[which]), a, messageAt);
}

// ---- warnings --------------------------------------------------------------------------------------------------------

// Who shows warnings is the module itself, or a list that catch_warnings(record=True) made.
bool showsPlainly(Trace& t) {
  Value* module = pinnedValue(t, t.keep(checked(PyImport_ImportModule("warnings"))));
  if (!isSame(t, getAttr(t, module, "showwarning"), getAttr(t, module, "_showwarning_orig"))) return false;
  Value* shows = getAttr(t, module, "_showwarnmsg_impl");
  PyTypeObject* type = t.typeOf(shows);
  if (type == &PyCFunction_Type) return true;
  if (type != &PyFunction_Type || !isReal(shows)) return false;
  PyObject* home = reinterpret_cast<PyFunctionObject*>(t.identity(shows))->func_globals;
  return home == PyModule_GetDict(realObject(module)) && writesText(t, standardStream(t, "stderr"));
}

void deferWarning(Trace& t, CallArgs& a) {
  LateCall late;
  late.callable = importedObject("warnings", "warn");
  for (Value* v : a.args) {
    // An exception that the trace made from constants is made again after the graph.
    bool made = v->kind == Kind::Instance && as<InstanceValue>(v)->exceptionArgs && !as<InstanceValue>(v)->real &&
                canReadLater(t, as<InstanceValue>(v)->exceptionArgs);
    if (!made && !canReadLater(t, v)) refuse("a warning about " + describe(v));
    late.args.push_back(v);
  }
  for (auto& [name, v] : a.kwargs) {
    if (!canReadLater(t, v)) refuse("a warning about " + describe(v));
    late.kwargs.emplace_back(name, v);
  }
  t.defer(std::move(late), true);
}

Value* warn(Trace& t, CallArgs& a) {
  requireDeferral(t, "warnings.warn()");
  // One that is turned into an error would have to arrive there.
  if (isInsideTry(t)) refuse("warnings.warn() inside try or with");
  if (!showsPlainly(t)) refuse("warnings.warn() shown by other code");
  deferWarning(t, a);
  return t.none();
}

// What catch_warnings and simplefilter call after each change; a warning in between breaks.
Value* filtersMutated(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 0);
  LateCall late;
  late.callable = importedObject("_warnings", "_filters_mutated");
  t.defer(std::move(late), false);
  return t.none();
}

}  // namespace

Value* callOutput(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known) {
  const OutputRules& output = rules(t);
  known = false;
  if (!output.reorderable && !output.ignored) return nullptr;
  if (lists(output.ignored, callable, args)) {
    known = true;
    if (callableValue && callableValue->source) t.identity(callableValue);
    return t.none();
  }
  if (!lists(output.reorderable, callable, args)) return nullptr;
  known = true;
  if (callableValue && callableValue->source) t.identity(callableValue);
  if (callable == importedObject("builtins", "print")) {
    deferPrint(t, args, true);
    return t.none();
  }
  LateCall late;
  late.callable = t.keep(ObjectRef::share(callable));
  for (Value* v : args.args) late.args.push_back(existing(v) && v->source ? v : loggable(t, v));
  for (auto& [name, v] : args.kwargs) late.kwargs.emplace_back(name, loggable(t, v));
  t.defer(std::move(late), false);
  return t.none();
}

void addOutputBuiltins(BuiltinTable& table) {
  table.add("builtins.print", print);
  table.add("warnings.warn", warn);
  table.add("_warnings._filters_mutated", filtersMutated);
  const BuiltinHandler methods[] = {loggerMethod<0>, loggerMethod<1>, loggerMethod<2>, loggerMethod<3>,
                                    loggerMethod<4>, loggerMethod<5>, loggerMethod<6>};
  const BuiltinHandler functions[] = {loggingFunction<0>, loggingFunction<1>, loggingFunction<2>, loggingFunction<3>,
                                      loggingFunction<4>, loggingFunction<5>, loggingFunction<6>};
  const char* names[] = {"debug", "info", "warning", "warn", "error", "critical", "fatal"};
  for (size_t i = 0; i < std::size(names); i++) {
    table.add((std::string("logging.Logger.") + names[i]).c_str(), methods[i]);
    table.add((std::string("logging.") + names[i]).c_str(), functions[i]);
  }
  table.add("logging.Logger.log", loggerMethod<-1>);
  table.add("logging.log", loggingFunction<-1>);
  table.add("logging.Logger.exception", loggerException);
  table.add("logging.exception", loggerException);
  table.addPolyfill("logging.Logger.isEnabledFor", "is_enabled_for");
  table.add("cdynamo.polyfills.writes_text", polyfillWritesText);
}

}  // namespace cdynamo
