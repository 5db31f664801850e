#include "interp/capture.h"

#include <chrono>

#include "base/lookup.h"
#include "bytecode/code.h"
#include "dispatch/cache.h"
#include "dispatch/settings.h"
#include "emit/emitter.h"
#include "graph/executable.h"
#include "guards/filter.h"
#include "interp/frame.h"
#include "interp/protocol.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// The Python front's callbacks: compile_graph, on_event, unsupported, internal_error, config.
ObjectRef& frontCallbacks() {
  // Never destroyed: the interpreter is gone when static destructors run.
  static ObjectRef& callbacks = *new ObjectRef;
  return callbacks;
}

PyObject* frontCallback(const char* name) { return frontCallbacks() ? PyDict_GetItemString(frontCallbacks().get(), name) : nullptr; }

// A list of (file, line, function), the outermost frame first.
ObjectRef stackOf(const TracePlace* place) {
  ObjectRef list = checked(PyList_New(0));
  for (; place; place = place->caller) {
    auto* code = reinterpret_cast<PyCodeObject*>(place->code);
    ObjectRef row = checked(Py_BuildValue("(OiO)", code->co_filename, place->line, code->co_name));
    checkedStatus(PyList_Insert(list.get(), 0, row.get()));
  }
  return list;
}

void sendEvent(const char* kind, ObjectRef payload) {
  PyObject* callback = frontCallback("on_event");
  if (!callback) return;
  ObjectRef kindText = checked(PyUnicode_FromString(kind));
  ObjectRef done = checked(PyObject_CallFunctionObjArgs(callback, kindText.get(), payload.get(), nullptr));
}

ObjectRef breakPayload(PyObject* code, const char* reason, const std::string& what, const char* hint, const TracePlace* place) {
  ObjectRef stack = stackOf(place);
  return checked(Py_BuildValue("{s:O,s:s,s:s,s:s,s:[s],s:O}", "code", code, "reason", reason, "explanation", what.c_str(), "context", what.c_str(),
                               "hints", hint, "stack", stack.get()));
}

bool boolOption(PyObject* options, const char* name) {
  ObjectRef value = ObjectRef::steal(PyObject_GetAttrString(options, name));
  if (!value) {
    PyErr_Clear();
    return false;
  }
  return PyObject_IsTrue(value.get()) == 1;
}

// error_on_graph_break as the code around the call has set it, with torch's or with ours.
bool errorOnBreakNow() {
  for (const char* module : {"cdynamo._decorators", "torch._dynamo.utils"}) {
    PyObject* loaded = PyDict_GetItemString(PyImport_GetModuleDict(), module);
    if (!loaded) continue;
    ObjectRef now = ObjectRef::steal(PyObject_CallMethod(loaded, "_get_error_on_graph_break", nullptr));
    if (!now) PyErr_Clear();
    if (now && PyObject_IsTrue(now.get()) == 1) return true;
  }
  return false;
}

// Puts grad mode back as it was, whatever the traced program did to it.
struct GradModeScope {
  bool before = gradEnabled();
  ~GradModeScope() { setGradEnabled(before); }
};

// Two inputs that were distinct must still be, where one of them is written to.
void guardAliasing(Trace& t) {
  for (HeapValue* written : t.mutated()) {
    if (!written->source) continue;
    for (const auto& value : t.arena()) {
      auto* other = value->kind == written->kind ? static_cast<HeapValue*>(value.get()) : nullptr;
      if (!other || other == written || !other->source || !other->real || other->real.get() == written->real.get()) continue;
      if (other->kind != Kind::Dict && other->type != written->type) continue;
      if (other->kind == Kind::List && !other->mutated && !as<ListValue>(other)->loaded) continue;
      if (other->source->kind == SourceKind::Pinned && written->source->kind == SourceKind::Pinned) continue;
      t.facts.distinctObjects(written->source, other->source);
    }
  }
  for (TensorValue* written : t.writtenTensors())
    for (TensorValue* other : t.inputTensors())
      if (other != written && other->node && other->source) t.facts.distinctObjects(written->source, other->source);
}

class Capture {
 public:
  Capture(PyObject* function, const FrameInputs& inputs, PyObject* options)
      : function_(function), inputs_(inputs), options_(options), code_(reinterpret_cast<PyFunctionObject*>(function)->func_code) {}

  CaptureOutcome run() {
    fullgraph_ = boolOption(options_, "fullgraph");
    auto start = std::chrono::steady_clock::now();
    const Code& code = decode(reinterpret_cast<PyCodeObject*>(code_));
    if (code.flags() & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
      return skip(nullptr, BreakReason::GeneratorFrame, "a generator or coroutine function");
    std::vector<std::string> names;
    for (int i = 0; i < code.parameterCount(); i++) {
      const char* name = PyUnicode_AsUTF8(code.localName(i));
      names.push_back(name ? name : "?");
    }
    GlobalState globals = captureGlobalState();
    GradModeScope gradScope;
    auto* fn = reinterpret_cast<PyFunctionObject*>(function_);
    Trace t(names, fn->func_globals);
    t.options.errorOnBreak = errorOnBreakNow();
    if (globals.functionModes > 0 || globals.dispatchModes > 0)
      return skip(&t, BreakReason::TensorSubclass, "a torch-function or torch-dispatch mode is active", false);
    try {
      Value* result = trace(t, code);
      return finish(t, result, globals, gradScope.before, start);
    } catch (Unsupported& problem) {
      // The frames' places are kept by the trace; the innermost one at the throw was noted by whoever unwound last.
      return skip(&t, problem.reason, problem.what);
    } catch (Raised& raised) {
      std::string what = describe(raised.exception);
      if (raised.exception->kind == Kind::Instance && as<InstanceValue>(raised.exception)->exceptionArgs) {
        PyObject* args = t.snapshot(as<InstanceValue>(raised.exception)->exceptionArgs);
        ObjectRef text =
            args ? ObjectRef::steal(PyTuple_GET_SIZE(args) == 1 ? PyObject_Str(PyTuple_GET_ITEM(args, 0)) : PyObject_Repr(args)) : nullptr;
        const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
        PyErr_Clear();
        if (utf8) what = std::string(as<InstanceValue>(raised.exception)->type->tp_name) + ": " + utf8;
      }
      if (isReal(raised.exception)) {
        ObjectRef text = ObjectRef::steal(PyObject_Str(realObject(raised.exception)));
        const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
        PyErr_Clear();
        if (utf8) what = std::string(Py_TYPE(realObject(raised.exception))->tp_name) + ": " + utf8;
      }
      t.failedPlace = raised.place;
      return skip(&t, BreakReason::UncaughtException, what, false);
    }
  }

 private:
  Value* trace(Trace& t, const Code& code) {
    Value* function = t.wrap(function_, t.sources.function());
    auto* fn = reinterpret_cast<PyFunctionObject*>(function_);
    Value* closure = nullptr;
    if (fn->func_closure) {
      std::vector<Value*> cells;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fn->func_closure); i++)
        cells.push_back(t.wrap(PyTuple_GET_ITEM(fn->func_closure, i), t.sources.closureCell(static_cast<int32_t>(i))));
      closure = t.tuple(std::move(cells));
    }
    FrameState* f = newFrame(t, code, function, fn->func_globals, closure);
    for (int i = 0; i < code.parameterCount() && i < inputs_.localCount; i++)
      if (inputs_.locals[i]) f->locals[static_cast<size_t>(i)] = t.wrap(inputs_.locals[i], t.sources.local(i));
    noteModuleFrame(t, *f);
    runFrame(t, *f);
    return f->result;
  }

  CaptureOutcome finish(Trace& t, Value* result, const GlobalState& globals, bool gradAtEntry, std::chrono::steady_clock::time_point start) {
    Emitted emitted = emitReturn(t, reinterpret_cast<PyCodeObject*>(code_), result, gradAtEntry);
    guardAliasing(t);
    setGradEnabled(gradAtEntry);
    auto entry = std::make_unique<Entry>();
    auto* fn = reinterpret_cast<PyFunctionObject*>(function_);
    entry->globals = ObjectRef::share(fn->func_globals);
    std::vector<const Source*> wanted;
    ObjectRef program = ObjectRef::share(Py_None);
    bool hasGraph = t.graph.callCount() > 0;
    if (hasGraph) {
      Graph graph = finishGraph(std::move(t.graph), importedObject("operator", "getitem"));
      ObjectRef examples = checked(PyList_New(0));
      for (const Node& node : graph.nodes()) {
        if (node.op != NodeOp::Placeholder) continue;
        wanted.push_back(node.source);
        checkedStatus(PyList_Append(examples.get(), node.example));
      }
      program = makeGraphProgram(std::move(graph), t.sources);
      PyObject* compile = frontCallback("compile_graph");
      ObjectRef compiled = compile ? checked(PyObject_CallFunctionObjArgs(compile, program.get(), examples.get(), options_, nullptr)) : program;
      if (PyList_SetItem(emitted.graphBox.get(), 0, ObjectRef(compiled).release()) < 0) throw PythonError{};
      entry->graph = std::move(compiled);
    }
    entry->graphInputCount = static_cast<uint32_t>(wanted.size());
    wanted.insert(wanted.end(), emitted.objects.begin(), emitted.objects.end());
    bool guardGlobals = filterGuards(t);
    entry->guards = GuardProgram::build(t.facts, t.sources, std::move(wanted), globals, guardGlobals);
    if (emitted.code) {
      entry->function = checked(PyFunction_New(emitted.code.object(), fn->func_globals));
    } else {
      entry->direct = true;
      entry->directOutput = emitted.direct;
    }
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ObjectRef guards = checked(PyList_New(0));
    if (wantsGuardTexts()) {
      for (const std::string& line : entry->guards->describe()) {
        ObjectRef text = checked(PyUnicode_FromString(line.c_str()));
        checkedStatus(PyList_Append(guards.get(), text.get()));
      }
    }
    sendEvent("capture", checked(Py_BuildValue("{s:O,s:O,s:O,s:d,s:s,s:n}", "code", code_, "graph", program.get(), "guards", guards.get(), "seconds",
                                               seconds, "reason", "return_value", "guard_count", static_cast<Py_ssize_t>(entry->guards->size()))));
    CaptureOutcome outcome;
    outcome.kind = CaptureOutcome::Kind::Install;
    outcome.entry = std::move(entry);
    return outcome;
  }

  // guard_filter_fn of the options drops facts. Whether the global state is still guarded.
  bool filterGuards(Trace& t) {
    ObjectRef filter = ObjectRef::steal(PyObject_GetAttrString(options_, "guard_filter_fn"));
    if (!filter) PyErr_Clear();
    PyObject* ask = filter && filter.get() != Py_None ? frontCallback("filter_guards") : nullptr;
    if (!ask) return true;
    ObjectRef rows = describeFacts(t.facts, t.sources, inputs_);
    ObjectRef flags = checked(PyObject_CallFunctionObjArgs(ask, filter.get(), rows.get(), nullptr));
    return filterFacts(t.facts, flags.get());
  }

  static bool wantsGuardTexts() {
    PyObject* wants = frontCallback("wants_guards");
    if (!wants) return true;
    ObjectRef answer = checked(PyObject_CallNoArgs(wants));
    return PyObject_IsTrue(answer.get()) == 1;
  }

  CaptureOutcome skip(Trace* t, BreakReason reason, const std::string& what, bool remember = true) {
    if (t) setGradEnabled(gradAtStart_);
    const TracePlace* place = t ? (t->failedPlace ? t->failedPlace : t->place) : nullptr;
    ObjectRef payload = breakPayload(code_, breakReasonName(reason), what, breakReasonHint(reason), place);
    if ((fullgraph_ || (t && t->options.errorOnBreak)) && reason != BreakReason::UncaughtException) {
      PyObject* make = frontCallback("unsupported");
      if (make) {
        sendEvent("break", ObjectRef(payload));
        ObjectRef error = checked(PyObject_CallOneArg(make, payload.get()));
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
        CaptureOutcome outcome;
        outcome.kind = CaptureOutcome::Kind::Raise;
        return outcome;
      }
    }
    sendEvent("break", ObjectRef(payload));
    sendEvent("skip", std::move(payload));
    CaptureOutcome outcome;
    outcome.kind = CaptureOutcome::Kind::Skip;
    outcome.reason = std::string(breakReasonName(reason)) + ": " + what;
    outcome.remember = remember;
    return outcome;
  }

  PyObject* function_;
  const FrameInputs& inputs_;
  PyObject* options_;
  PyObject* code_;
  bool fullgraph_ = false;
  bool gradAtStart_ = gradEnabled();
};

PyObject* setFront(PyObject*, PyObject* callbacks) {
  if (!PyDict_Check(callbacks)) {
    PyErr_SetString(PyExc_TypeError, "set_front takes a dict of callbacks");
    return nullptr;
  }
  frontCallbacks() = ObjectRef::share(callbacks);
  return ObjectRef::share(Py_None).release();
}

PyObject* resetAll(PyObject*, PyObject*) {
  CodeCache::resetAll();
  return ObjectRef::share(Py_None).release();
}

PyMethodDef functions[] = {
    {"set_front", setFront, METH_O, "set_front(callbacks): whom the engine calls in Python"},
    {"reset", resetAll, METH_NOARGS, "Forgets every capture."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

CaptureOutcome captureFrame(PyObject* function, const FrameInputs& inputs, PyObject* options) { return Capture(function, inputs, options).run(); }

void addCaptureFunctions(PyObject* module) {
  checkedStatus(PyModule_AddFunctions(module, functions));
  setCaptureHook(captureFrame);
}

}  // namespace cdynamo
