// The flat loop: one case per op, each calling its handler. Handlers are declared from ops.def: a missing one does not link.
#include <utility>

#include "base/stack_room.h"
#include "interp/frame.h"
#include "interp/handlers.h"
#include "interp/intrinsics.h"
#include "interp/lifetimes.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

void setPlace(Trace& t, FrameState& f, int line) {
  if (line <= 0 || (f.place && f.place->line == line)) return;
  TracePlace* p = t.makePlace();
  if (f.place) *p = *f.place;
  p->line = line;
  f.place = p;
  t.place = p;
}

// False for what only moves a frame's own state: no break ever happens there, and CPython could not run it apart from its frame.
bool canBreakAt(Op op) {
  switch (op) {
    case Op::Nop:
    case Op::Resume:
    case Op::MakeCell:
    case Op::CopyFreeVars:
    case Op::LoadClosure:
    case Op::LoadFastAndClear:
    case Op::ReturnValue:
    case Op::ReturnGenerator:
    case Op::YieldValue:
    case Op::Send:
    case Op::EndSend:
    case Op::CleanupThrow:
    case Op::PushExcInfo:
    case Op::PopExcept: return false;
    default: return true;
  }
}

// Long loops that compute no tensor are CPython's to run: captured, each turn takes memory and gains nothing.
constexpr int kQuietInstructions = 200'000;
constexpr int kManyTurns = 100;

void checkProgress(Trace& t, FrameState& innermost) {
  t.quietInstructions = 0;
  if (t.graph.position() != t.quietSince) {
    t.quietSince = t.graph.position();
    return;
  }
  FrameState* looping = &innermost;
  for (FrameState* f = &innermost; f; f = f->parent)
    if (f->turns >= kManyTurns) looping = f;
  t.failedFrame = looping;
  t.failedPlace = looping->place;
  unsupported(BreakReason::LongLoop, std::to_string(kQuietInstructions) + " instructions without an operation on tensors");
}

void runInstructions(Trace& t, FrameState& f) {
  const auto instrs = f.code->instrs();
  while (f.signal == Signal::Running) {
    f.ip = f.nextIp;
    const Instr& in = instrs[static_cast<size_t>(f.ip)];
    f.nextIp = f.ip + 1;
    f.beginInstruction();
    f.atInstruction = t.checkpoint();
    t.tail = ReturnTo::Native;
    setPlace(t, f, in.pos.line);
    if (++t.quietInstructions > kQuietInstructions && canBreakAt(in.op)) checkProgress(t, f);
    if (t.untilBreak > 1)
      t.untilBreak--;
    else if (t.untilBreak == 1 && canBreakAt(in.op))
      unsupported(BreakReason::UserBreak, "config.break_every");
    switch (in.op) {
#define CD_OP(name, pops, pushes, operand) \
  case Op::name:                           \
    handle##name(t, f, in);                \
    break;
#include "bytecode/ops.def"
#undef CD_OP
    }
  }
}

// Enters the handler of the current instruction. False where there is none. What was on the stack above it is let go of.
bool enterHandler(FrameState& f, Trace& t, Value* exception) {
  const Handler* h = f.code->handlerOf(f.ip);
  if (h == nullptr) return false;
  const int32_t at = raisedAt(f);
  const auto depth = static_cast<size_t>(h->depth);
  std::vector<Value*> gone = f.popMany(f.stack.size() > depth ? f.stack.size() - depth : 0);
  f.stack.resize(depth);  // what throw() comes in the place of was never sent
  if (h->lasti) f.push(t.integer(at / static_cast<int32_t>(sizeof(_Py_CODEUNIT))));
  f.push(exception);
  f.nextIp = h->target;
  for (; !gone.empty(); gone.pop_back())
    if (gone.back()) letGo(t, gone.back());
  return true;
}

// What raises again as it was leaves the traceback of its own frame alone.
bool addsPlace(const Instr& in) { return in.op != Op::Reraise && in.op != Op::CleanupThrow && !(in.op == Op::RaiseVarargs && in.arg == 0); }

// An exception that exists outside gets its traceback from CPython, which then must raise it.
void checkRaisable(const FrameState& f, const Value* exception) {
  if (!exception->source || (f.code->handlerOf(f.ip) && !addsPlace(f.code->at(f.ip)))) return;
  unsupported(BreakReason::UnsupportedMutation, "raising an existing exception");
}

// True where an exception raised by the frame's current instruction meets no handler on its way out of the traced function.
bool leavesAllFrames(Trace& t, const FrameState& innermost, Value* exception) {
  bool endsLoops = isA(t, exception, PyExc_StopIteration);
  for (const FrameState* f = &innermost; f; f = f->parent) {
    if (f->code->handlerOf(f->ip)) return false;
    endsLoops = endsLoops && !f->generator;  // a generator makes a RuntimeError of it
    if (f->parent && (f->returnTo == ReturnTo::Native || (f->returnTo == ReturnTo::Next && endsLoops))) return false;
  }
  return true;
}

// The frame whose instruction CPython runs for an exception that leaves all frames: the one that raised it. But an AttributeError of code
// that a load of an attribute runs (__getattr__, a property) gets its name and object from that load.
FrameState* raisingFrame(Trace& t, FrameState& innermost, Value* exception) {
  FrameState* f = &innermost;
  if (!isA(t, exception, PyExc_AttributeError)) return f;
  auto loads = [](const FrameState& frame) {
    Op op = frame.code->at(frame.ip).op;
    return !frame.awaiting && (op == Op::LoadAttr || op == Op::LoadMethod);
  };
  while (f->parent && loads(*f->parent)) f = f->parent;
  return f;
}

struct FrameScope {
  FrameScope(Trace& trace, FrameState& f) : t(trace), frame(trace.frame), place(trace.place) {
    f.parent = t.frame;
    t.frame = &f;
    if (f.place) t.place = f.place;
    t.depth++;
  }
  ~FrameScope() {
    t.frame = frame;
    t.place = place;
    t.depth--;
  }
  Trace& t;
  FrameState* frame;
  const TracePlace* place;
};

}  // namespace

namespace {

// thrown: raised before the first instruction, at the place where the frame stands.
Signal run(Trace& t, FrameState& f, Value* thrown) {
  FrameScope scope(t, f);
  if (t.depth > t.options.maxInlineDepth)
    unsupported(BreakReason::RecursionLimit, "calls nested more than " + std::to_string(t.options.maxInlineDepth) + " deep");
  if (stackIsNearlyFull()) unsupported(BreakReason::RecursionLimit, "calls nested too deep for the thread's stack");
  f.signal = Signal::Running;
  // Such a place has no instruction that can be left to CPython.
  const Value* const here = thrown;
  bool entering = thrown != nullptr;
  for (;;) {
    try {
      if (thrown) throw Raised{std::exchange(thrown, nullptr), nullptr, true};
      runInstructions(t, f);
      if (f.signal == Signal::Returned) t.noteLeft(f, f.code->at(f.ip).offset.value);
      return f.signal;
    } catch (Raised& raised) {
      if (std::exchange(entering, false) && f.generator && !f.code->handlerOf(f.ip)) {
        // The instruction that threw it into the generator is what raises it.
        t.addTraceback(raised.exception, f);
        throw;
      }
      const bool isNew = !raised.place;
      if (isNew) {
        raised.place = t.place;
        if (leavesAllFrames(t, f, raised.exception)) {
          // Where nothing catches it, CPython raises it: the instruction is run there, with a traceback of its own.
          t.failedFrame = raisingFrame(t, f, raised.exception);
          throw Uncaught{raised.exception, raised.place};
        }
      }
      bool handled = false;
      try {
        if (isNew) {
          if (raised.exception != here) checkRaisable(f, raised.exception);
          if (!raised.linked) linkContext(t, raised.exception);
        }
        if (addsPlace(f.code->at(f.ip))) t.addTraceback(raised.exception, f);
        handled = enterHandler(f, t, raised.exception);
      } catch (Unsupported&) {
        t.failedPlace = t.place;
        t.failedFrame = &f;
        throw;
      }
      if (!handled) {
        t.noteLeft(f, raisedAt(f));
        throw;
      }
      f.awaiting = false;
    } catch (Unsupported&) {
      if (!t.failedFrame) {
        t.failedPlace = t.place;
        t.failedFrame = &f;
      }
      throw;
    }
    t.frame = &f;
    t.place = f.place;
  }
}

}  // namespace

bool isInsideTry(const Trace& t) {
  for (const FrameState* f = t.frame; f; f = f->parent)
    if (f->code->isInsideTry(f->ip)) return true;
  return false;
}

Signal runFrame(Trace& t, FrameState& f) { return run(t, f, nullptr); }
Signal throwInto(Trace& t, FrameState& f, Value* exception) { return run(t, f, exception); }

// ---- frames of a trace -----------------------------------------------------------------------------------------------

FrameState* Trace::makeFrame() {
  if (!freeFrames_.empty()) {
    FrameState* f = freeFrames_.back();
    freeFrames_.pop_back();
    auto locals = std::move(f->locals);
    auto stack = std::move(f->stack);
    auto popped = std::move(f->popped);
    *f = FrameState{};
    locals.clear();
    stack.clear();
    popped.clear();
    f->locals = std::move(locals);
    f->stack = std::move(stack);
    f->popped = std::move(popped);
    return f;
  }
  frames_.push_back(std::make_unique<FrameState>());
  return frames_.back().get();
}

void Trace::recycleFrame(FrameState* frame) { freeFrames_.push_back(frame); }

}  // namespace cdynamo
