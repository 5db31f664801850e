#include "dispatch/driver.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/exceptions.h"
#include "base/own_library.h"
#include "cpython/frame_hook.h"
#include "cpython/generators.h"
#include "cpython/tracebacks.h"
#include "dispatch/frame_hook.h"
#include "emit/generator_code.h"

namespace cdynamo {

namespace {

static_assert(sizeof(ObjectRef) == sizeof(PyObject*));

struct ActiveFrame {
  PointRef at;
  ReturnTo returnTo = ReturnTo::Native;
  ObjectRef globals;
  ObjectRef closure;    // tuple of cells, or null
  ObjectRef generator;  // whose body the frame is, running; or null
  std::vector<ObjectRef> values;

  PyObject** data() { return reinterpret_cast<PyObject**>(values.data()); }
};

// The exception that the thread is handling: ours to change while the frames run, put back at the end.
class HandledException {
 public:
  HandledException() : outside_(ObjectRef::steal(PyErr_GetHandledException())) {}
  ~HandledException() { PyErr_SetHandledException(outside_.get()); }
  HandledException(const HandledException&) = delete;
  HandledException& operator=(const HandledException&) = delete;
  PyObject* outside() const { return outside_ ? outside_.get() : Py_None; }
  // As the innermost frame has it. A generator that handles none sees the one of who resumed it.
  void set(const std::vector<ActiveFrame>& frames) {
    size_t i = frames.size() - 1;
    while (i > 0 && frames[i].generator && !frames[i].at->handled) i--;
    PyErr_SetHandledException(frames[i].at->handled ? frames[i].values.back().get() : outside_.get());
  }

 private:
  ObjectRef outside_;
};

// While one lives, so many frames of the driver's count as calls that CPython is in.
class CountedCalls {
 public:
  explicit CountedCalls(int count) : count_(count) { reserveCalls(count_); }
  ~CountedCalls() { reserveCalls(-count_); }
  CountedCalls(const CountedCalls&) = delete;
  CountedCalls& operator=(const CountedCalls&) = delete;

 private:
  int count_;
};

// A call without arguments that makes another one.
struct PendingCall {
  PyObject* function;
  PyObject* const* args;
  size_t count;
};

PyObject* makePendingCall(PyObject* self, PyObject*) {
  auto* pending = static_cast<PendingCall*>(PyCapsule_GetPointer(self, nullptr));
  return pending ? PyObject_Vectorcall(pending->function, pending->args, pending->count, nullptr) : nullptr;
}

PyMethodDef makePendingCallDef = {"call", makePendingCall, METH_NOARGS, nullptr};

// Lets go of the values that a frame has taken over. They stay in their places, as null.
PyObject* releaseValues(PyObject* self, PyObject*) {
  auto* values = static_cast<std::vector<ObjectRef>*>(PyCapsule_GetPointer(self, nullptr));
  if (!values) return nullptr;
  for (ObjectRef& value : *values) value.reset();
  return ObjectRef::share(Py_None).release();
}

PyMethodDef releaseValuesDef = {"release", releaseValues, METH_NOARGS, nullptr};

// Runs a generator to its next yield: the item, or null where it raised; `ended`: it returned that.
struct GeneratorRun {
  PyObject* generator;
  bool ended = false;
};

PyObject* runGenerator(PyObject* self, PyObject*) {
  auto* run = static_cast<GeneratorRun*>(PyCapsule_GetPointer(self, nullptr));
  if (!run) return nullptr;
  PyObject* result = nullptr;
  run->ended = PyIter_Send(run->generator, Py_None, &result) == PYGEN_RETURN;
  return result;
}

PyMethodDef runGeneratorDef = {"run", runGenerator, METH_NOARGS, nullptr};

// Says that the pending exception has left the generator.
void leaveByException(PyObject* generator) {
  ObjectRef exception = takeException();
  if (finishGenerator(generator) < 0) PyErr_WriteUnraisable(generator);
  if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_StopIteration)) return restoreException(exception.get());
  ObjectRef error = checked(PyObject_CallFunction(PyExc_RuntimeError, "s", "generator raised StopIteration"));
  PyException_SetContext(error.get(), ObjectRef(exception).release());
  PyException_SetCause(error.get(), exception.release());
  restoreException(error.get());
}

ObjectRef functionOf(PyCodeObject* code, const ActiveFrame& f) {
  ObjectRef function = checked(PyFunction_New(reinterpret_cast<PyObject*>(code), f.globals.get()));
  if (f.closure) checkedStatus(PyFunction_SetClosure(function.get(), f.closure.get()));
  return function;
}

class Driver {
 public:
  Driver(const std::shared_ptr<CodeCache>& root, int limit) : root_(root), limit_(limit) {}

  PyObject* run(CallOutcome outcome) {
    frames_.emplace_back();
    size_t count = 1;  // innermost frames that the outcome is about
    for (;;) {
      // These frames have ended, or stopped at an instruction that CPython is to run.
      bool goesOn = false;
      bool eagerly = false;
      ReturnTo action = ReturnTo::Native;
      if (outcome.suspended) {
        replaceInnermost(count, *outcome.suspended, ObjectRef::steal(outcome.value));
        eagerly = outcome.suspended->eagerAfter;
        outcome = {};
        if (returns(frames_.back())) {
          // Nothing is left to do but to let go of its locals.
          count = 1;
          outcome.value = frames_.back().values[frames_.back().values.size() - 1 - frames_.back().at->handled].release();
          continue;
        }
        goesOn = !isTooDeep() && runStep(frames_.back());
        if (!goesOn) {
          action = frames_.back().returnTo;
          dropFrames(1);
        }
      } else {
        ObjectRef result = ObjectRef::steal(outcome.value);
        bool ended = std::exchange(generatorEnded_, false);
        action = frames_[frames_.size() - count].returnTo;
        result ? frames_.resize(frames_.size() - count) : dropFrames(count);
        if (result && frames_.empty()) return result.release();
        if (result) {
          goesOn = ended ? endWith(std::move(result), action) : resumeWith(std::move(result), action);
          if (!goesOn) action = ReturnTo::Native;  // raised by the caller's own instruction
        }
      }
      if (!goesOn && !unwind(action)) return nullptr;
      outcome = eagerly ? goOnEagerly(count) : goOn(count);
    }
  }

 private:
  // Our frames count as Python's do. True with the error set.
  bool isTooDeep() const {
    if (frames_.size() < static_cast<size_t>(Py_GetRecursionLimit())) return false;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
    return true;
  }

  static bool returns(const ActiveFrame& f) { return !f.generator && f.at->code->at(f.at->index).op == Op::ReturnValue; }

  // Takes away the innermost frames, which an exception has left.
  void dropFrames(size_t count) {
    for (; count > 0; count--) {
      ObjectRef generator = std::move(frames_.back().generator);
      frames_.pop_back();
      if (generator) leaveByException(generator.get());
    }
  }

  // So many frames at most go on in one capture: in deep recursion the outer ones wait.
  static constexpr size_t kMostTogether = 16;
  // And so many are on Python's stack while an eager part runs.
  static constexpr size_t kMostCarriers = 64;

  // The innermost frames with those they had inlined, from the tuple that the capture's code returned.
  void replaceInnermost(size_t count, const Entry& entry, ObjectRef state) {
    CD_CHECK(PyTuple_CheckExact(state.get()), "a capture that ended in a break gave no state");
    ReturnTo outermost = frames_[frames_.size() - count].returnTo;
    frames_.resize(frames_.size() - count);
    Py_ssize_t next = 0;
    auto take = [&] {
      CD_CHECK(next < PyTuple_GET_SIZE(state.get()), "a capture that ended in a break gave too few values");
      return ObjectRef::share(PyTuple_GET_ITEM(state.get(), next++));
    };
    for (const ResumeChain::Frame& frame : entry.suspended) {
      ActiveFrame& f = frames_.emplace_back();
      f.at = frame.at;
      f.returnTo = &frame == &entry.suspended.front() ? outermost : frame.returnTo;
      f.globals = frame.globals;
      for (size_t i = 0; i < frame.at->valueCount(); i++) f.values.push_back(take());
      if (frame.at->isGenerator()) f.generator = take();
      const size_t cells = frame.at->cells;
      if (cells == 0) continue;
      f.closure = checked(PyTuple_New(static_cast<Py_ssize_t>(cells)));
      for (size_t i = 0; i < cells; i++) PyTuple_SET_ITEM(f.closure.get(), static_cast<Py_ssize_t>(i), take().release());
    }
  }

  // False with an error set where the instruction raised and the frame does not handle it.
  bool runStep(ActiveFrame& f) {
    const ResumeStep& step = f.at->step();
    handled_.set(frames_);
    ObjectRef out = runEagerly(step.code.get(), f);
    if (!out) return false;
    Py_ssize_t size = PyTuple_GET_SIZE(out.get());
    const ResumePoint* to = step.exits.at(PyLong_AsSize_t(PyTuple_GET_ITEM(out.get(), size - 1)));
    std::vector<ObjectRef> values;
    auto item = [&](size_t i) { return ObjectRef::share(PyTuple_GET_ITEM(out.get(), static_cast<Py_ssize_t>(i))); };
    for (size_t i = 0; i < to->locals.size(); i++) values.push_back(item(to->stackValues + i));
    for (size_t i = 0; i < to->stackValues; i++) values.push_back(item(i));
    if (to->handled) values.push_back(f.values.back());
    moveTo(f, to, std::move(values), rebinds(f.at->code->at(f.at->index)));
    return true;
  }

  // The local that the instruction gives another value or none; -1: it leaves all alone.
  static int rebinds(const Instr& in) { return in.op == Op::StoreFast || in.op == Op::DeleteFast || in.op == Op::LoadFastAndClear ? in.arg : -1; }

  // Locals that cannot be read any more are left behind. Not those whose death could be seen, now or by the call that has them on its
  // stack: eager keeps them until the frame ends.
  static void moveTo(ActiveFrame& f, const ResumePoint* to, std::vector<ObjectRef> values, int rebound) {
    auto isOnStack = [&](PyObject* object) {
      if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) return false;
      auto begin = values.begin() + static_cast<ptrdiff_t>(to->locals.size());
      return std::any_of(begin, begin + static_cast<ptrdiff_t>(to->stackValues), [&](const ObjectRef& on) { return on.get() == object; });
    };
    std::vector<int> kept;
    std::vector<ObjectRef> keptValues;
    for (size_t i = 0; i < f.at->locals.size(); i++) {
      int slot = f.at->locals[i];
      if (slot == rebound || std::binary_search(to->locals.begin(), to->locals.end(), slot)) continue;
      if (!isDeathVisible(f.values[i].get()) && !isOnStack(f.values[i].get())) continue;
      kept.push_back(slot);
      keptValues.push_back(f.values[i]);
    }
    if (!kept.empty()) {
      to = keeping(*to, kept);
      for (size_t i = 0; i < kept.size(); i++) {
        auto place = std::lower_bound(to->locals.begin(), to->locals.end(), kept[i]) - to->locals.begin();
        values.insert(values.begin() + place, std::move(keptValues[i]));
      }
    }
    f.at = PointRef(f.at, to);
    std::vector<ObjectRef> left = std::exchange(f.values, std::move(values));
    while (!left.empty()) left.pop_back();  // the top of the stack first
  }

  // Calls what follows: captured for several frames at once, or the innermost frame's rest as it is. That is also where CPython will soon
  // refuse to go deeper, which captured code would not see.
  CallOutcome goOn(size_t& count) {
    {
      CountedCalls counted(static_cast<int>(frames_.size()) - 1);
      CallOutcome outcome = callsLeft() < kCallsOfFront ? CallOutcome{} : goOnCaptured(count);
      if (outcome.value || PyErr_Occurred()) return outcome;
    }
    return goOnEagerly(count);
  }

  CallOutcome goOnCaptured(size_t& count) {
    // The one that resumed a generator goes on together with it.
    count = std::min(frames_.size(), kMostTogether);
    while (frames_[frames_.size() - count].generator) count++;
    std::vector<ResumeChain::Frame> chain;
    std::vector<PyObject*> values, cells;
    for (size_t i = frames_.size() - count; i < frames_.size(); i++) {
      ActiveFrame& f = frames_[i];
      chain.push_back({f.at, chain.empty() ? ReturnTo::Native : f.returnTo, f.globals});
      values.insert(values.end(), f.data(), f.data() + f.values.size());
      if (f.generator) values.push_back(f.generator.get());
      if (f.closure)
        cells.insert(cells.end(), &PyTuple_GET_ITEM(f.closure.get(), 0), &PyTuple_GET_ITEM(f.closure.get(), 0) + PyTuple_GET_SIZE(f.closure.get()));
    }
    ActiveFrame& innermost = frames_.back();
    std::shared_ptr<const ResumeChain> known = resumeChain(std::move(chain));
    ObjectRef function = checked(PyFunction_New(known->signature.object(), innermost.globals.get()));
    if (!cells.empty()) {
      ObjectRef closure = checked(PyTuple_New(static_cast<Py_ssize_t>(cells.size())));
      for (size_t i = 0; i < cells.size(); i++) PyTuple_SET_ITEM(closure.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(cells[i]).release());
      checkedStatus(PyFunction_SetClosure(function.get(), closure.get()));
    }
    handled_.set(frames_);
    FrameInputs inputs{values.data(), static_cast<Py_ssize_t>(values.size()), function.get(), handled_.outside()};
    std::shared_ptr<CodeCache> cache = root_->continuation(known);
    return cache->call(inputs, limit_);
  }

  CallOutcome goOnEagerly(size_t& count) {
    count = 1;
    ActiveFrame& innermost = frames_.back();
    handled_.set(frames_);
    if (innermost.generator) return {goOnInGenerator(innermost).release(), nullptr};
    ObjectRef capsule = checked(PyCapsule_New(&innermost.values, nullptr, nullptr));
    innermost.values.push_back(checked(PyCFunction_New(&releaseValuesDef, capsule.get())));
    return {runEagerly(innermost.at->continuation(), innermost).release(), nullptr};
  }

  // Another generator runs from here to the next yield; ours is then put where that one stands. Its exceptions are taken from
  // the frame as they are.
  ObjectRef goOnInGenerator(ActiveFrame& f) {
    const ResumePoint& at = *f.at;
    SuspendedGenerator state;
    state.at = at.index;
    state.entered = true;
    for (int slot = 0; slot < at.code->localsplusCount(); slot++)
      if (!at.code->isCellOrFree(slot)) state.bound.push_back(std::find(at.locals.begin(), at.locals.end(), slot) != at.locals.end());
    state.stack = at.stack;
    state.handling = at.handled;
    Ref<PyCodeObject> code = generatorCode(*at.code, state, false);
    skipCode(code.object());
    ObjectRef function = functionOf(code.get(), f);
    GeneratorRun run{nullptr};
    ObjectRef other = checked(PyObject_Vectorcall(function.get(), f.data(), f.values.size(), nullptr));
    run.generator = other.get();
    f.values.clear();
    ObjectRef capsule = checked(PyCapsule_New(&run, nullptr, nullptr));
    ObjectRef next = checked(PyCFunction_New(&runGeneratorDef, capsule.get()));
    ObjectRef result = callBelowCarriers({next.get(), nullptr, 0});
    if (!result) return nullptr;
    generatorEnded_ = run.ended;
    if (run.ended)
      checkedStatus(finishGenerator(f.generator.get()));
    else
      placeGenerator(f.generator.get(), *at.code, state, other.get());
    return result;
  }

  // Puts the generator where the other one stands, whose code was made of its own.
  static void placeGenerator(PyObject* generator, const Code& code, const SuspendedGenerator& state, PyObject* other) {
    GeneratorFrame from;
    CD_CHECK(readGenerator(other, &from) && from.started, "a generator that gave an item does not wait");
    const Code& entered = decode(from.code);
    InstrIndex at = yieldOf(code, state, entered, entered.indexOf(UnitOffset{from.unit}.bytes()));
    std::vector<PyObject*> slots;
    for (int slot = 0; slot < code.localsplusCount(); slot++) {
      int there = 0;
      while (there < entered.localsplusCount() && PyUnicode_Compare(entered.localName(there), code.localName(slot)) != 0) there++;
      CD_CHECK(there < entered.localsplusCount(), "a generator's local is missing in the code made of it");
      slots.push_back(from.slots[there]);
    }
    setGenerator(generator, code.at(at).offset.value / 2, slots.data(), from.stack, from.stackDepth, from.handled);
    // The other one dies without closing anything.
    checkedStatus(finishGenerator(other));
  }

  static void follow(ActiveFrame& f, const ResumeEdge& edge, const ObjectRef& first, const ObjectRef& second) {
    std::vector<ObjectRef> values;
    for (int from : edge.take) values.push_back(from >= 0 ? f.values[static_cast<size_t>(from)] : from == -1 ? first : second);
    moveTo(f, edge.to, std::move(values), -1);
  }

  // What the instruction that made the call does with its result. False with an error set.
  static ObjectRef useResult(ActiveFrame& caller, ReturnTo action, ObjectRef result) {
    switch (action) {
      case ReturnTo::Init:
        if (result.get() != Py_None) PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", Py_TYPE(result.get())->tp_name);
        return result.get() == Py_None ? result : nullptr;
      case ReturnTo::Truth:
      case ReturnTo::Falsehood: {
        int truth = PyObject_IsTrue(result.get());
        return truth < 0 ? nullptr : ObjectRef::share((truth != 0) == (action == ReturnTo::Truth) ? Py_True : Py_False);
      }
      case ReturnTo::Operator: {
        if (result.get() != Py_NotImplemented) return result;
        size_t right = caller.values.size() - 1 - caller.at->handled;
        return ObjectRef::steal(caller.at->reflectedOperator(caller.values[right - 1].get(), caller.values[right].get()));
      }
      default: return result;
    }
  }

  bool resumeWith(ObjectRef result, ReturnTo action) {
    ActiveFrame& f = frames_.back();
    if (action != ReturnTo::Push) handled_.set(frames_);
    ObjectRef used = useResult(f, action, std::move(result));
    if (!used) return false;
    follow(f, f.at->returnEdge(action), used, nullptr);
    return true;
  }

  // The same where the instruction resumed a generator that has returned.
  bool endWith(ObjectRef result, ReturnTo action) {
    if (action != ReturnTo::Next && action != ReturnTo::Sent) {
      handled_.set(frames_);
      setStopIteration(result.get());
      return false;
    }
    ActiveFrame& f = frames_.back();
    follow(f, f.at->exhaustedEdge(action), result, nullptr);
    return true;
  }

  // As CPython where an AttributeError leaves a read of an attribute: says which that was, where it says nothing else.
  static void noteAttribute(const ActiveFrame& f, PyObject* exception) {
    if (!PyErr_GivenExceptionMatches(exception, PyExc_AttributeError)) return;
    for (const char* field : {"name", "obj"})
      if (checked(PyObject_GetAttrString(exception, field)).get() != Py_None) return;
    checkedStatus(PyObject_SetAttrString(exception, "name", f.at->code->at(f.at->index).object));
    checkedStatus(PyObject_SetAttrString(exception, "obj", f.values[f.values.size() - 1 - f.at->handled].get()));
  }

  // Takes the pending exception outwards to the first frame that handles it. False where there is none. ended: what the
  // result of the frame that raised it would have done.
  bool unwind(ReturnTo ended) {
    while (!frames_.empty()) {
      ActiveFrame& f = frames_.back();
      if (ended == ReturnTo::Next && PyErr_ExceptionMatches(PyExc_StopIteration)) {
        PyErr_Clear();
        follow(f, f.at->exhaustedEdge(ReturnTo::Next), nullptr, nullptr);
        return true;
      }
      ObjectRef exception = takeException();
      if (ended == ReturnTo::Attribute) noteAttribute(f, exception.get());
      ended = f.returnTo;
      const ResumeEdge* edge = f.at->raiseEdge();
      addTraceback(f, exception.get(), edge == nullptr);
      if (edge) {
        follow(f, *edge, exception, checked(PyLong_FromLong(f.at->code->at(f.at->index).offset.value / 2)));
        return true;
      }
      restoreException(exception.get());
      dropFrames(1);
    }
    return false;
  }

  // Stands for C code, which has no frame.
  static bool isPolyfill(const ActiveFrame& f) { return isOwnLibrary(f.globals.get(), "__name__"); }

  // The entry of this frame in the exception's traceback. Its variables are shown where they stay as they are: the frame is left.
  static void addTraceback(const ActiveFrame& f, PyObject* exception, bool isLeft) {
    if (isPolyfill(f)) return;
    const Code& code = *f.at->code;
    std::vector<PyObject*> slots(static_cast<size_t>(code.localsplusCount()), nullptr);
    if (isLeft) {
      for (size_t i = 0; i < f.at->locals.size(); i++) slots[static_cast<size_t>(f.at->locals[i])] = f.values[i].get();
      Py_ssize_t cell = 0;
      for (int slot : cellSlots(code))
        if (f.closure) slots[static_cast<size_t>(slot)] = PyTuple_GET_ITEM(f.closure.get(), cell++);
    }
    ObjectRef next = ObjectRef::steal(PyException_GetTraceback(exception));
    const int at = code.at(f.at->index).offset.value;
    ObjectRef made = checked(newTraceback(next ? next.get() : Py_None, code.pyCode(), f.globals.get(), at, at, slots.data()));
    PyException_SetTraceback(exception, made.get());
  }

  // A part of the innermost frame that CPython runs, called from frames that look like those outside it. What it calls may
  // be captured.
  ObjectRef runEagerly(PyCodeObject* code, ActiveFrame& f) {
    ensureTraceback(f);
    ObjectRef function = functionOf(code, f);
    skipCode(reinterpret_cast<PyObject*>(code));
    const bool polyfill = isPolyfill(f);
    ObjectRef result = callBelowCarriers({function.get(), f.data(), f.values.size()});
    // A frame that a traceback keeps has its own cells, and lets go of them where it is cleared.
    if (f.closure && Py_REFCNT(function.get()) > 1) checkedStatus(PyFunction_SetClosure(function.get(), Py_None));
    if (!result && polyfill && isShown(code)) dropCarriers(1);
    return result;
  }

  // Whether the pending exception's traceback begins with that code: what is only raised again leaves no entry.
  static bool isShown(PyCodeObject* code) {
    PendingTraceback pending;
    return pending.first() && PendingTraceback::codeOf(pending.first()).get() == code;
  }

  ObjectRef callBelowCarriers(PendingCall call) {
    FrameHookScope hook(root_->options(), limit_);
    const size_t outside = std::min(frames_.size() - 1, kMostCarriers);
    CountedCalls counted(static_cast<int>(frames_.size()) - 1 - static_cast<int>(outside) * callsOfCarrier());
    if (outside == 0) return ObjectRef::steal(PyObject_Vectorcall(call.function, call.args, call.count, nullptr));
    std::vector<PendingCall> pending(outside + 1);
    std::vector<ObjectRef> carriers(outside), callees(outside);
    pending[outside] = call;
    for (size_t i = outside; i-- > 0;) {
      ObjectRef capsule = checked(PyCapsule_New(&pending[i + 1], nullptr, nullptr));
      callees[i] = checked(PyCFunction_New(&makePendingCallDef, capsule.get()));
      carriers[i] = carrierOf(frames_[frames_.size() - 1 - outside + i]);
      pending[i] = {carriers[i].get(), reinterpret_cast<PyObject* const*>(&callees[i]), 1};
    }
    ObjectRef result = ObjectRef::steal(PyObject_Vectorcall(carriers[0].get(), pending[0].args, 1, nullptr));
    if (!result) dropCarriers(outside);
    return result;
  }

  // CPython hands the traceback to __exit__ unasked and crashes where there is none: a real exception that was raised while
  // tracing gets an entry of this frame.
  static void ensureTraceback(const ActiveFrame& f) {
    if (f.at->code->at(f.at->index).op != Op::WithExceptStart) return;
    PyObject* exception = f.values[f.values.size() - 1 - f.at->handled].get();
    if (ObjectRef::steal(PyException_GetTraceback(exception))) return;
    addTraceback(f, exception, false);
  }

  // A function f(callee) that only calls it, in a frame that has the name and line of this one.
  static ObjectRef carrierOf(const ActiveFrame& f) {
    PyObject* code = reinterpret_cast<PyObject*>(f.at->carrier());
    skipCode(code);
    return checked(PyFunction_New(code, f.globals.get()));
  }

  // Takes the entries of the carriers off the pending exception's traceback: unwind() adds them where the exception passes.
  static void dropCarriers(size_t count) {
    PendingTraceback pending;
    for (size_t i = 0; i < count && pending.first(); i++) pending.dropFirst();
  }

  std::shared_ptr<CodeCache> root_;
  int limit_;
  HandledException handled_;
  std::vector<ActiveFrame> frames_;
  bool generatorEnded_ = false;  // the last value that goOnEagerly gave is what a generator returned
};

}  // namespace

PyObject* callToEnd(const std::shared_ptr<CodeCache>& cache, const FrameInputs& inputs, int recompileLimit) {
  CallOutcome outcome = cache->call(inputs, recompileLimit);
  if (!outcome.suspended) [[likely]]
    return outcome.value;
  try {
    return Driver(cache, recompileLimit).run(std::move(outcome));
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "cdynamo: error without an exception set");
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "cdynamo: internal error after a break: %s", error.what());
  }
  return nullptr;
}

}  // namespace cdynamo
