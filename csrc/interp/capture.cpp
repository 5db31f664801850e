#include "interp/capture.h"

#include <chrono>
#include <unordered_set>

#include "base/exceptions.h"
#include "base/lookup.h"
#include "bytecode/code.h"
#include "dispatch/cache.h"
#include "dispatch/dead_codes.h"
#include "dispatch/settings.h"
#include "emit/emitter.h"
#include "emit/generator_code.h"
#include "graph/executable.h"
#include "guards/filter.h"
#include "interp/break_reasons.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/protocol.h"
#include "interp/replay.h"
#include "interp/suspend.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// The Python front's callbacks: compile_graph, on_event, unsupported, filter_guards, wants_guards.
ObjectRef& frontCallbacks() {
  // Never destroyed: the interpreter is gone when static destructors run.
  static ObjectRef& callbacks = *new ObjectRef;
  return callbacks;
}

PyObject* frontCallback(const char* name) { return frontCallbacks() ? PyDict_GetItemString(frontCallbacks().get(), name) : nullptr; }

// What the front answers; null where there is no front.
ObjectRef sendEvent(const char* kind, ObjectRef payload) {
  PyObject* callback = frontCallback("on_event");
  if (!callback) return {};
  ObjectRef kindText = checked(PyUnicode_FromString(kind));
  return checked(PyObject_CallFunctionObjArgs(callback, kindText.get(), payload.get(), nullptr));
}

ObjectRef listOf(const std::vector<std::string>& texts) {
  ObjectRef list = checked(PyList_New(0));
  for (const std::string& text : texts) {
    ObjectRef line = checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    checkedStatus(PyList_Append(list.get(), line.get()));
  }
  return list;
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

// What C code raises while tracing gets its context from the trace, not from the thread.
class NothingHandled {
 public:
  NothingHandled() : before_(ObjectRef::steal(PyErr_GetHandledException())) { PyErr_SetHandledException(nullptr); }
  ~NothingHandled() { PyErr_SetHandledException(before_.get()); }
  NothingHandled(const NothingHandled&) = delete;
  NothingHandled& operator=(const NothingHandled&) = delete;

 private:
  ObjectRef before_;
};

// Whether eager code of torch.func.grad, vmap and their like calls us: its tensors are wrapped for one level.
bool insideTransform() {
  ObjectRef level = checked(PyObject_CallNoArgs(importedObject("torch._C._functorch", "peek_interpreter_stack")));
  return level.get() != Py_None;
}

// How the memory of tensors that the graph writes to overlaps with that of its other inputs, and of tensors that the code around it is given.
void guardMemory(Trace& t, const std::vector<const Source*>& objects) {
  if (t.writtenTensors().empty()) return;
  const std::unordered_set<const Source*> given(objects.begin(), objects.end());
  MemoryGuard memory;
  std::vector<PyObject*> tensors;
  std::vector<const Source*> sources;
  for (TensorValue* tensor : t.inputTensors()) {
    if (!tensor->source || !(tensor->node || tensor->written || (tensor->observed && given.count(tensor->source)))) continue;
    memory.add(static_cast<uint32_t>(tensors.size()), tensor->written);
    tensors.push_back(tensor->real);
    sources.push_back(tensor->source);
  }
  for (TensorValue* written : t.writtenTensors()) t.facts.written(written->source);
  for (const MemoryGuard::Overlap& overlap : memory.overlaps(tensors.data()))
    t.facts.overlap(sources[overlap.first], sources[overlap.second], overlap.distance);
}

// The torch-function modes that are active around the call: out of the way while tracing, where the trace itself asks them.
class ModesAround {
 public:
  explicit ModesAround(const GlobalState& globals) {
    for (int32_t i = 0; i < globals.functionModes; i++)
      modes_.push_back(checked(PyObject_CallNoArgs(importedObject("torch._C", "_pop_torch_function_stack"))));
  }
  ModesAround(const ModesAround&) = delete;
  ~ModesAround() {
    ObjectRef error = takeException();
    for (size_t i = modes_.size(); i-- > 0;) {
      ObjectRef done = ObjectRef::steal(PyObject_CallOneArg(importedObject("torch._C", "_push_on_torch_function_stack"), modes_[i].get()));
      if (!done) PyErr_Clear();
    }
    restoreException(error.get());
  }
  bool empty() const { return modes_.empty(); }

  // Enters them in the trace, the outermost first; each is reached by its place on torch's stack. False: one is no ordinary mode.
  bool enter(Trace& t) const {
    PyObject* stack = importedObject("cdynamo._higher_order", "mode_stack");
    for (size_t i = 0; i < modes_.size(); i++) {
      ObjectRef name = checked(PyUnicode_FromFormat("mode_%zu", i));
      Value* mode = t.wrap(modes_[modes_.size() - 1 - i].get(), t.sources.attr(t.sources.pinned(stack), t.keep(std::move(name))));
      if (mode->kind != Kind::Instance) return false;
      t.typeOf(mode);
      t.enterState(as<InstanceValue>(mode), {}, {}, nullptr, gradEnabled());
    }
    return true;
  }

 private:
  std::vector<ObjectRef> modes_;  // the innermost first
};

// Two inputs that were distinct must still be, where one of them is written to.
void guardAliasing(Trace& t, const std::vector<const Source*>& objects) {
  std::unordered_set<const void*> written, types;  // objects; their types, dict for every kind of dict
  std::unordered_set<Kind> kinds;
  auto typeOf = [](const HeapValue* v) { return v->kind == Kind::Dict ? &PyDict_Type : v->type; };
  for (const HeapValue* v : t.mutated()) {
    if (!v->source || !written.insert(v->real.get()).second) continue;
    t.facts.distinct(v->source, true);
    types.insert(typeOf(v));
    kinds.insert(v->kind);
  }
  for (const auto& value : t.arena()) {
    if (written.empty()) break;
    const auto* other = value->source && kinds.count(value->kind) ? static_cast<const HeapValue*>(value.get()) : nullptr;
    if (!other || !other->real || written.count(other->real.get()) || !types.count(typeOf(other))) continue;
    if (other->kind == Kind::List && !as<ListValue>(value.get())->loaded) continue;
    t.facts.distinct(other->source, false);
  }
  guardMemory(t, objects);
}

// The tensors that are made of arrays in each call do not say whose memory they share: a backend that relies on it would be wrong.
void refuseSharedArrays(Trace& t) {
  auto isArray = [](TensorValue* v) { return v->source->kind == SourceKind::ArrayTensor; };
  for (TensorValue* written : t.writtenTensors())
    for (TensorValue* other : t.inputTensors())
      if (other != written && other->node && other->source && (isArray(written) || isArray(other)))
        unsupported(BreakReason::NumpyCall, "a write to one of several inputs that may share memory, as one of them is a NumPy array");
}

class Capture {
 public:
  Capture(PyObject* function, const FrameInputs& inputs, PyObject* options, const std::set<std::string>& openNames)
      : function_(function),
        inputs_(inputs),
        options_(options),
        openNames_(openNames),
        code_(reinterpret_cast<PyFunctionObject*>(function)->func_code),
        chain_(resumeChainOf(code_)),
        userCode_(chain_ ? reinterpret_cast<PyObject*>(chain_->frames.back().at->code->pyCode()) : code_) {}

  CaptureOutcome run() {
    fullgraph_ = boolOption(options_, "fullgraph");
    ObjectRef line = resumedAt();
    record_ = sendEvent("start", checked(Py_BuildValue("{s:O,s:O,s:O}", "code", userCode_, "frame", code_, "resumed_at", line.get())));
    for (;;) {
      try {
        return attempt();
      } catch (StartOver& again) {
        done_.push_back(std::move(again.done));
        setGradEnabled(gradAtStart_);
        halfWay_ = eagerAfter_ = false;
      }
    }
  }

 private:
  CaptureOutcome attempt() {
    auto start = std::chrono::steady_clock::now();
    const Code& code = decode(reinterpret_cast<PyCodeObject*>(code_));
    if (code.flags() & (CO_COROUTINE | CO_ASYNC_GENERATOR)) return skip(nullptr, BreakReason::AsyncCode, "an async function");
    if (code.flags() & CO_GENERATOR) return skip(nullptr, BreakReason::GeneratorFrame, "a generator function");
    std::vector<std::string> names;
    for (int i = 0; i < code.parameterCount(); i++) {
      const char* name = PyUnicode_AsUTF8(code.localName(i));
      names.push_back(name ? name : "?");
    }
    GlobalState globals = captureGlobalState();
    GradModeScope gradScope;
    auto* fn = reinterpret_cast<PyFunctionObject*>(function_);
    Trace t(names, fn->func_globals);
    setOpenNumbers(t);
    t.done = done_;
    t.handledOutside = inputs_.handledException();
    t.options.errorOnBreak = errorOnBreakNow();
    t.options.fullgraph = fullgraph_;
    t.options.captureScalars = fullgraph_ || boolOption(importedObject("cdynamo._config", "config"), "capture_scalar_outputs");
    if (!fullgraph_) t.untilBreak = dispatchSettings().breakEvery;
    if (insideTransform()) return skip(&t, BreakReason::FunctorchOperand, "a transform of torch.func is active", false);
    if (globals.dispatchModes > 0 || (globals.functionModes > 0 && globals.functionState != 0))
      return skip(&t, BreakReason::ActiveMode, "a torch-function or torch-dispatch mode is active", false);
    ModesAround modes(globals);
    if (!modes.enter(t)) return skip(&t, BreakReason::ActiveMode, "a torch-function mode of an unknown kind is active", false);
    try {
      Value* result = trace(t, code);
      Emitted emitted = emitReturn(t, reinterpret_cast<PyCodeObject*>(userCode_), result, gradScope.before);
      return finish(t, std::move(emitted), {}, "return_value", globals, gradScope.before, start);
    } catch (Unsupported& problem) {
      if (isFrameReason(t, problem.reason) || refusesBreaks(t)) return skip(&t, problem.reason, problem.what);
      return breakOff(t, problem, globals, gradScope.before, start);
    } catch (Uncaught&) {
      return breakOff(t, {BreakReason::UncaughtException, ""}, globals, gradScope.before, start);
    } catch (Raised& raised) {
      // Seen by code of the library on its way: CPython runs the outermost frame's instruction.
      t.failedFrame = root_;
      t.failedPlace = raised.place;
      return breakOff(t, {BreakReason::UncaughtException, ""}, globals, gradScope.before, start);
    }
  }

  // dynamic=True: int arguments are open from the start; False: nothing ever is.
  void setOpenNumbers(Trace& t) const {
    ObjectRef dynamic = ObjectRef::steal(PyObject_GetAttrString(options_, "dynamic"));
    if (!dynamic) PyErr_Clear();
    t.options.openArguments = dynamic.get() == Py_True;
    if (dynamic.get() != Py_False && !openNames_.empty()) t.options.openNames = &openNames_;
  }

  Value* trace(Trace& t, const Code& code) {
    NothingHandled nothing;
    Value* function = t.wrap(function_, t.sources.function());
    auto* fn = reinterpret_cast<PyFunctionObject*>(function_);
    Value* closure = nullptr;
    if (fn->func_closure) {
      std::vector<Value*> cells;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fn->func_closure); i++)
        cells.push_back(t.wrap(PyTuple_GET_ITEM(fn->func_closure, i), t.sources.closureCell(static_cast<int32_t>(i))));
      closure = t.tuple(std::move(cells));
    }
    auto input = [&](int i) { return i < inputs_.localCount && inputs_.locals[i] ? t.wrap(inputs_.locals[i], t.sources.local(i)) : nullptr; };
    if (chain_) return traceChain(t, function, closure ? as<TupleValue>(closure)->items : std::vector<Value*>{}, input);
    root_ = newFrame(t, code, function, fn->func_globals, closure);
    for (int i = 0; i < code.parameterCount(); i++) root_->locals[static_cast<size_t>(i)] = input(i);
    noteModuleFrame(t, *root_);
    runFrame(t, *root_);
    return root_->result;
  }

  // Sets up frames as they stand after a break and runs them, the innermost first.
  template <typename Input>
  Value* traceChain(Trace& t, Value* function, const std::vector<Value*>& cells, Input&& input) {
    std::vector<FrameState*> frames;
    int next = 0;
    size_t cell = 0;
    for (const ResumeChain::Frame& described : chain_->frames) {
      const ResumePoint& at = *described.at;
      FrameState* f = newFrame(t, *at.code, function, described.globals.get(), nullptr);
      for (int slot : at.locals) f->locals[static_cast<size_t>(slot)] = input(next++);
      for (bool carried : at.stack) f->push(carried ? input(next++) : t.unbound());
      Value* handled = at.handled ? input(next++) : nullptr;
      // What the frame inside starts with; for the innermost, what holds now.
      f->handledAtEntry = t.handledException;
      if (at.isGenerator()) {
        f->generator = as<GeneratorValue>(input(next++));
        f->generator->frame = f;
        f->generator->started = f->generator->running = true;
        t.handledBelow.push_back(t.handledException);
        t.touch(f->generator);
      }
      t.handledException = handled;
      for (int slot : cellSlots(*at.code)) f->locals[static_cast<size_t>(slot)] = cells.at(cell++);
      f->nextIp = f->ip = at.index;
      f->returnTo = described.returnTo;
      f->parent = t.frame;
      f->awaiting = frames.size() + 1 < chain_->frames.size();
      f->place->line = at.code->lineOf(at.index);
      noteModuleFrame(t, *f);
      t.frame = f;
      t.place = f->place;
      frames.push_back(f);
    }
    root_ = frames.front();
    return runChain(t, frames);
  }

  Value* runChain(Trace& t, const std::vector<FrameState*>& frames) {
    Value *result = nullptr, *thrown = nullptr;
    for (size_t i = frames.size(); i-- > 0;) {
      FrameState& f = *frames[i];
      t.frame = f.parent;
      t.place = f.parent ? f.parent->place : nullptr;
      try {
        GeneratorValue* inner = i + 1 < frames.size() ? frames[i + 1]->generator : nullptr;
        if (f.awaiting && !thrown && inner && inner->finished) {
          thrown = acceptEnd(t, f, frames[i + 1]->returnTo, result);
        } else if (f.awaiting && thrown && !inner && frames[i + 1]->returnTo == ReturnTo::Next && isStopIteration(t, thrown)) {
          thrown = nullptr;
          dropIterator(t, f);
          f.nextIp = f.code->at(f.ip).target;
        } else if (f.awaiting && thrown && frames[i + 1]->returnTo == ReturnTo::Attribute && isA(t, thrown, PyExc_AttributeError)) {
          noteAttribute(t, thrown, f.top(), f.code->at(f.ip).object);
        } else if (f.awaiting && !thrown) {
          thrown = acceptOrRaise(t, f, frames[i + 1]->returnTo, result);
        }
        f.awaiting = thrown != nullptr;  // until a handler is found: the instruction that made the call cannot be run again
        thrown ? throwInto(t, f, std::exchange(thrown, nullptr)) : runFrame(t, f);
        result = f.result;
        if (f.generator) leaveGenerator(t, f.generator, f.signal == Signal::Returned);
      } catch (Raised& raised) {
        if (i == 0) throw;
        thrown = raised.exception;
        if (f.generator) leaveGenerator(t, f.generator, true);
        if (f.generator && isStopIteration(t, thrown)) thrown = causedBy(t, PyExc_RuntimeError, "generator raised StopIteration", thrown);
      } catch (Unsupported&) {
        if (!t.failedFrame) t.failedFrame = &f;
        throw;
      }
    }
    return result;
  }

  static bool isStopIteration(Trace& t, Value* exception) { return isA(t, exception, PyExc_StopIteration); }

  // The generator whose body has run is left as resumeGenerator() leaves it.
  static void leaveGenerator(Trace& t, GeneratorValue* g, bool finished) {
    g->running = false;
    g->finished = finished;
    g->handled = std::exchange(t.handledException, t.handledBelow.back());
    t.handledBelow.pop_back();
  }

  // The loop over the iterator on top of the stack has ended.
  void dropIterator(Trace& t, FrameState& f) {
    halfWay_ = true;
    checkDropped(t, f.top());
    halfWay_ = false;
    f.pop();
  }

  // The same as acceptResult where the instruction has resumed a generator that returned. Gives what is raised instead, or null.
  Value* acceptEnd(Trace& t, FrameState& f, ReturnTo action, Value* result) {
    if (action == ReturnTo::Next) dropIterator(t, f);
    if (action == ReturnTo::Sent) f.push(result);
    f.nextIp = f.code->at(f.ip).target;
    if (action == ReturnTo::Next || action == ReturnTo::Sent) return nullptr;
    Value* raised = stopIterationWith(t, result);
    linkContext(t, raised);
    return raised;
  }

  // The same as acceptResult; gives what that raises in the frame, or null.
  Value* acceptOrRaise(Trace& t, FrameState& f, ReturnTo action, Value* result) {
    Value* raised = nullptr;
    halfWay_ = true;
    try {
      acceptResult(t, f, action, result);
    } catch (Raised& error) {
      raised = error.exception;
      if (!error.place && !error.linked) linkContext(t, raised);
    }
    halfWay_ = false;
    return raised;
  }

  // What the instruction that made a call does with its result, and where the frame goes on.
  static void acceptResult(Trace& t, FrameState& f, ReturnTo action, Value* result) {
    f.nextIp = action == ReturnTo::Redo ? f.ip : f.ip + 1;
    switch (action) {
      case ReturnTo::Discard: return;
      case ReturnTo::Init:
        if (!isReal(result, Py_None))
          raise(t, PyExc_TypeError, "__init__() should return None, not '" + std::string(t.typeOf(result)->tp_name) + "'");
        return;
      case ReturnTo::Attribute: f.pop(); return f.push(result);
      case ReturnTo::Operator: {
        Value *right = f.pop(), *left = f.pop();
        return f.push(isReal(result, Py_NotImplemented) ? binaryOp(t, f.code->at(f.ip).arg, left, right, true) : result);
      }
      case ReturnTo::Truth:
      case ReturnTo::Falsehood: return f.push(t.boolean(truth(t, result) == (action == ReturnTo::Truth)));
      default: return f.push(result);
    }
  }

  // Reasons for which the frame as a whole is left to CPython.
  bool isFrameReason(const Trace& t, BreakReason reason) const {
    // A skip in a function that was inlined is a break in its caller.
    return reason == BreakReason::RecursionLimit || (reason == BreakReason::UserSkip && (!t.failedFrame || !t.failedFrame->parent));
  }
  bool refusesBreaks(const Trace& t) const { return fullgraph_ || t.options.errorOnBreak; }

  // A loop that goes on after a break asks its real iterator once per turn: nothing that the user could do about it.
  bool isTold(BreakReason reason, const FrameState& innermost) const {
    if (chain_ && reason == BreakReason::UnsupportedNext && innermost.code->at(innermost.ip).op == Op::ForIter) return false;
    return reason != BreakReason::UncaughtException;
  }

  // Ends the capture before the instruction that cannot be captured; the driver goes on from there.
  CaptureOutcome breakOff(Trace& t, const Unsupported& problem, const GlobalState& globals, bool gradAtEntry,
                          std::chrono::steady_clock::time_point start) {
    if (halfWay_) return skip(&t, problem.reason, problem.what + " (not resumed: the instruction that made the call is half way)");
    FrameState* innermost = t.failedFrame ? t.failedFrame : root_;
    if (problem.reason == BreakReason::UserSkip) innermost = innermost->parent;
    std::vector<FrameState*> frames = resumableFrames(innermost);
    const TracePlace* place = t.failedPlace ? t.failedPlace : t.place;
    if (dispatchSettings().skipBlocks && problem.reason != BreakReason::UncaughtException && !frames.empty()) {
      frames.erase(frames.begin() + 1, frames.end());
      const char* block = frames[0]->awaiting ? nullptr : unresumedBlock(*frames[0]);
      if (block) return skip(&t, problem.reason, problem.what + ", in " + block + ": the frame is skipped (config.break_in_blocks)");
    }
    std::string refused;
    // The traceback of an exception shows all variables. Where one cannot be made, those that nobody reads any more are left out.
    bool wholly = problem.reason == BreakReason::UncaughtException;
    while (!frames.empty() && !frames.back()->awaiting) {
      try {
        t.graph.outputs.clear();
        Suspension suspension = suspend(t, frames, wholly);
        Emitted emitted = emitSuspend(t, reinterpret_cast<PyCodeObject*>(userCode_), suspension.line, suspension.values, gradAtEntry);
        if (isTold(problem.reason, *frames.back())) sendEvent("break", breakPayload(userCode_, problem.reason, problem.what, place));
        eagerAfter_ = problem.reason == BreakReason::UserStep || problem.reason == BreakReason::LongLoop;
        return finish(t, std::move(emitted), std::move(suspension.frames), "graph_break", globals, gradAtEntry, start);
      } catch (Unsupported& second) {
        refused = second.what;
      } catch (Raised&) {
        refused = "an exception while the frame was described";
      }
      if (!wholly) frames.pop_back();
      wholly = false;
    }
    if (problem.reason == BreakReason::UncaughtException) return skip(&t, problem.reason, "the function raises", false);
    return skip(&t, problem.reason, refused.empty() ? problem.what : problem.what + " (not resumed: " + refused + ")");
  }

  CaptureOutcome finish(Trace& t, Emitted emitted, std::vector<ResumeChain::Frame> suspended, const char* why, const GlobalState& globals,
                        bool gradAtEntry, std::chrono::steady_clock::time_point start) {
    const bool leavesState = gradEnabled() != gradAtEntry || !t.settings.changed().empty();
    balanceGraph(t, gradAtEntry);
    ObjectRef backend = ObjectRef::steal(PyObject_GetAttrString(options_, "backend"));
    if (!backend) PyErr_Clear();
    if (backend && !boolOption(backend.get(), "runs_program")) refuseSharedArrays(t);
    guardAliasing(t, emitted.objects);
    guardExistingIterators(t);
    setGradEnabled(gradAtEntry);
    t.settings.restore();
    auto entry = std::make_unique<Entry>();
    auto* fn = reinterpret_cast<PyFunctionObject*>(function_);
    entry->globals = ObjectRef::share(fn->func_globals);
    entry->record = record_;
    entry->suspended = std::move(suspended);
    entry->eagerAfter = eagerAfter_;
    std::vector<const Source*> wanted;
    ObjectRef program = ObjectRef::share(Py_None);
    if (t.graph.hasWork()) {
      Graph graph = finishGraph(std::move(t.graph), importedObject("operator", "getitem"));
      ObjectRef examples = checked(PyList_New(0));
      for (const Node& node : graph.nodes()) {
        if (node.op != NodeOp::Placeholder) continue;
        if (node.source) wanted.push_back(node.source);
        checkedStatus(PyList_Append(examples.get(), node.example));
      }
      entry->replay = planReplay(t, graph, leavesState);
      program = makeGraphProgram(std::move(graph), t.sources);
      PyObject* compile = frontCallback("compile_graph");
      ObjectRef compiled = compile ? checked(PyObject_CallFunctionObjArgs(compile, program.get(), examples.get(), options_, nullptr)) : program;
      if (entry->replay.wanted && compiled.get() != program.get()) entry->replay.program = program;
      // What the modes around do was traced.
      if (globals.functionModes > 0) compiled = checked(PyObject_CallOneArg(importedObject("cdynamo._backends", "without_modes"), compiled.get()));
      ObjectRef run = entry->replay.wanted ? watchedGraph(compiled) : compiled;
      if (PyList_SetItem(emitted.graphBox.get(), 0, run.release()) < 0) throw PythonError{};
      entry->graph = std::move(compiled);
    }
    entry->graphInputCount = static_cast<uint32_t>(wanted.size());
    wanted.insert(wanted.end(), emitted.objects.begin(), emitted.objects.end());
    bool guardGlobals = filterGuards(t);
    entry->guards = GuardProgram::build(t.facts, t.sources, std::move(wanted), globals, guardGlobals, objectsOfModels(t));
    if (emitted.code) {
      entry->function = checked(PyFunction_New(emitted.code.object(), fn->func_globals));
    } else {
      entry->direct = true;
      entry->directOutput = emitted.direct;
    }
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    long texts = wantedGuardTexts();
    ObjectRef guards = listOf(texts > 0 ? entry->guards->describe() : std::vector<std::string>());
    ObjectRef tree = listOf(texts > 1 ? entry->guards->describeTree() : std::vector<std::string>());
    ObjectRef line = resumedAt();
    PyObject* emittedCode = emitted.code ? emitted.code.object() : Py_None;
    sendEvent("capture", checked(Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:O,s:d,s:s,s:n}", "code", userCode_, "resumed_at", line.get(), "graph",
                                               program.get(), "guards", guards.get(), "guard_tree", tree.get(), "emitted", emittedCode, "seconds",
                                               seconds, "reason", why, "guard_count", static_cast<Py_ssize_t>(entry->guards->size()))));
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

  // The line where the capture goes on after a break, or None.
  ObjectRef resumedAt() const {
    if (!chain_) return ObjectRef::share(Py_None);
    const ResumePoint& at = *chain_->frames.back().at;
    return checked(PyLong_FromLong(at.code->lineOf(at.index)));
  }

  // 0: nobody looks at the texts of guards, 1: the list is wanted, 2: the tree too.
  static long wantedGuardTexts() {
    PyObject* wants = frontCallback("wants_guards");
    if (!wants) return 1;
    ObjectRef answer = checked(PyObject_CallNoArgs(wants));
    long wanted = PyLong_AsLong(answer.get());
    if (wanted == -1 && PyErr_Occurred()) throw PythonError{};
    return wanted;
  }

  CaptureOutcome skip(Trace* t, BreakReason reason, const std::string& what, bool remember = true) {
    if (t) setGradEnabled(gradAtStart_);
    const TracePlace* place = t ? (t->failedPlace ? t->failedPlace : t->place) : nullptr;
    ObjectRef payload = breakPayload(userCode_, reason, what, place);
    if ((t ? refusesBreaks(*t) : fullgraph_) && reason != BreakReason::UncaughtException) {
      PyObject* make = frontCallback("unsupported");
      if (make) {
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
  const std::set<std::string>& openNames_;
  PyObject* code_;
  const ResumeChain* chain_;  // not null: frames that go on after a break
  PyObject* userCode_;        // the code that the user wrote
  FrameState* root_ = nullptr;
  bool halfWay_ = false;     // an instruction takes the result of the call that it made
  bool eagerAfter_ = false;  // the user asked that nothing after the break is captured
  bool fullgraph_ = false;
  ObjectRef record_;  // what the front calls this capture
  bool gradAtStart_ = gradEnabled();
  std::vector<ObjectRef> done_;
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
  clearGeneratorCodes();
  forgetDeadCodes();
  return ObjectRef::share(Py_None).release();
}

PyMethodDef functions[] = {
    {"set_front", setFront, METH_O, "set_front(callbacks): whom the engine calls in Python"},
    {"reset", resetAll, METH_NOARGS, "Forgets every capture."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

CaptureOutcome captureFrame(PyObject* function, const FrameInputs& inputs, PyObject* options, const std::set<std::string>& openNames) {
  return Capture(function, inputs, options, openNames).run();
}

void addCaptureFunctions(PyObject* module) {
  checkedStatus(PyModule_AddFunctions(module, functions));
  setCaptureHook(captureFrame);
}

}  // namespace cdynamo
