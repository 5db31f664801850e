// Calls, functions, jumps, loops, generators.
#include "interp/handlers.h"
#include "interp/intrinsics.h"
#include "interp/last_calls.h"
#include "interp/lifetimes.h"
#include "interp/protocol.h"

namespace cdynamo {

// ---- calls -----------------------------------------------------------------------------------------------------------

void handleCall(Trace& t, FrameState& f, const Instr& in) {
  CallArgs args;
  size_t named = in.object ? static_cast<size_t>(PyTuple_GET_SIZE(in.object)) : 0;
  args.args = f.popMany(static_cast<size_t>(in.arg));
  for (size_t i = 0; i < named; i++)
    args.kwargs.emplace_back(PyTuple_GET_ITEM(in.object, static_cast<Py_ssize_t>(i)), args.args[args.args.size() - named + i]);
  args.args.resize(args.args.size() - named);
  Value* callable = f.pop();
  if (in.flags & kSuperZeroArgs) {
    // super() itself finds its arguments; a shadowed name is called without them.
    if (!isReal(callable, reinterpret_cast<PyObject*>(&PySuper_Type))) args = {};
  }
  t.tail = ReturnTo::Push;
  f.push(call(t, callable, std::move(args)));
}

void handleCallFunctionEx(Trace& t, FrameState& f, const Instr& in) {
  CallArgs args;
  Value* kwargs = (in.arg & 1) ? f.pop() : nullptr;
  Value* positional = f.pop();
  if (!kwargs)
    if (LastCall last = lastItems(t, positional, -1, true)) positional = callLast(t, std::move(last), ReturnTo::Redo);
  Value* callable = f.pop();
  PyTypeObject* type = t.typeOf(positional);
  const bool isSequence = type->tp_as_sequence && type->tp_as_sequence->sq_item && !PyType_IsSubtype(type, &PyDict_Type);
  if (!type->tp_iter && !isSequence) raise(t, PyExc_TypeError, callText(t, callable) + " argument after * must be an iterable, not " + type->tp_name);
  args.args = itemsOf(t, positional);
  if (kwargs) {
    DictValue* d = asDict(kwargs);
    if (!d) unsupported(BreakReason::KeywordUnpacking, "** with " + describe(kwargs));
    t.complete(d);
    for (const DictEntry& e : d->entries) {
      if (!e.value) continue;
      if (!e.key.constant || !PyUnicode_Check(e.key.constant)) {
        if (e.key.value && PyType_IsSubtype(t.typeOf(e.key.value), &PyUnicode_Type))
          unsupported(BreakReason::KeywordUnpacking, "keywords of a class of their own");
        // C code says it in its own words.
        if (callable->kind == Kind::Real && !PyVectorcall_Function(realObject(callable)))
          unsupported(BreakReason::KeywordUnpacking, "keywords that are no names");
        raise(t, PyExc_TypeError, "keywords must be strings");
      }
      PyObject* name = ObjectRef::share(e.key.constant).release();
      PyUnicode_InternInPlace(&name);
      args.kwargs.emplace_back(t.keep(ObjectRef::steal(name)), e.value);
    }
  }
  t.tail = ReturnTo::Push;
  f.push(call(t, callable, std::move(args)));
}

void handleMakeFunction(Trace& t, FrameState& f, const Instr& in) {
  auto* fn = t.make<FunctionValue>();
  fn->type = &PyFunction_Type;
  fn->code = t.constant(f.pop());
  fn->globals = f.globals;
  if (in.arg & 8) fn->closure = t.tuple(itemsOf(t, f.pop()));
  if (in.arg & 4) fn->annotations = f.pop();
  if (in.arg & 2) fn->kwdefaults = f.pop();
  if (in.arg & 1) fn->defaults = f.pop();
  f.push(fn);
}

// ---- jumps -----------------------------------------------------------------------------------------------------------

void handleJump(Trace&, FrameState& f, const Instr& in) { f.nextIp = in.target; }
void handleJumpBackward(Trace&, FrameState& f, const Instr& in) {
  f.nextIp = in.target;
  f.turns++;
}

namespace {

// The truth of the value that the instruction takes from the stack; a __bool__ written in Python can break.
bool truthOfOperand(Trace& t, Value* v) {
  LastCall last = lastTruth(t, v);
  return truth(t, last ? callLast(t, std::move(last), ReturnTo::Redo) : v);
}

}  // namespace

void handleUnaryNot(Trace& t, FrameState& f, const Instr&) { f.push(t.boolean(!truthOfOperand(t, f.pop()))); }

void handlePopJumpIfTrue(Trace& t, FrameState& f, const Instr& in) {
  if (truthOfOperand(t, f.pop())) f.nextIp = in.target;
}
void handlePopJumpIfFalse(Trace& t, FrameState& f, const Instr& in) {
  if (!truthOfOperand(t, f.pop())) f.nextIp = in.target;
}
void handlePopJumpIfNone(Trace& t, FrameState& f, const Instr& in) {
  if (isSame(t, f.pop(), t.none())) f.nextIp = in.target;
}
void handlePopJumpIfNotNone(Trace& t, FrameState& f, const Instr& in) {
  if (!isSame(t, f.pop(), t.none())) f.nextIp = in.target;
}
void handleJumpIfTrueOrPop(Trace& t, FrameState& f, const Instr& in) {
  if (truth(t, f.top()))
    f.nextIp = in.target;
  else
    f.pop();
}
void handleJumpIfFalseOrPop(Trace& t, FrameState& f, const Instr& in) {
  if (!truth(t, f.top()))
    f.nextIp = in.target;
  else
    f.pop();
}

void handleReturnValue(Trace& t, FrameState& f, const Instr&) {
  for (Value* v : f.locals)
    if (v && v != f.top()) checkLeft(t, v, f);
  f.result = f.pop();
  for (Value* v : f.locals) {
    if (v && v != f.result && (v->kind == Kind::Generator || v->kind == Kind::Iterator)) dropped(t, v, &f);
    if (v && f.parent && !f.generator) checkLetGo(t, v, &f);
  }
  f.signal = Signal::Returned;
}

// ---- iteration -------------------------------------------------------------------------------------------------------

void handleGetIter(Trace& t, FrameState& f, const Instr&) {
  Value* v = f.pop();
  LastCall last = lastIterator(t, v);
  f.push(last ? callLast(t, std::move(last)) : iterate(t, v));
}

void handleForIter(Trace& t, FrameState& f, const Instr& in) {
  Value* item = nullptr;
  if (LastCall last = lastNext(t, f.top())) {
    try {
      item = callLast(t, std::move(last), ReturnTo::Next);
    } catch (Raised& raised) {
      if (!isA(t, raised.exception, PyExc_StopIteration)) throw;
    }
  } else {
    if (f.top()->kind == Kind::Generator) t.tail = ReturnTo::Next;
    item = next(t, f.top());
  }
  if (item) return f.push(item);
  checkDropped(t, f.top());
  dropped(t, f.pop());
  f.nextIp = in.target;
}

// ---- generators ------------------------------------------------------------------------------------------------------

void handleReturnGenerator(Trace& t, FrameState& f, const Instr&) {
  // The call that made the frame gives the generator to its caller; the first resume goes on here with the sent None.
  f.push(t.none());
}

void handleYieldValue(Trace&, FrameState& f, const Instr&) {
  f.result = f.pop();
  f.signal = Signal::Yielded;
}

void handleGetYieldFromIter(Trace& t, FrameState& f, const Instr&) {
  auto* g = f.top()->kind == Kind::Generator ? as<GeneratorValue>(f.top()) : nullptr;
  if (g && g->type == &PyCoro_Type && !(f.code->flags() & (CO_COROUTINE | CO_ITERABLE_COROUTINE)))
    raise(t, PyExc_TypeError, "cannot 'yield from' a coroutine object in a non-coroutine generator");
  if (!g || g->type == &PyAsyncGen_Type) f.push(iterate(t, f.pop()));
}

void handleSend(Trace& t, FrameState& f, const Instr& in) {
  Value* sent = f.pop();
  Value* receiver = f.top();
  if (receiver->kind == Kind::Generator) {
    auto* g = as<GeneratorValue>(receiver);
    t.tail = ReturnTo::Sent;
    Value* item = resumeGenerator(t, g, sent, nullptr);
    if (item) return f.push(item);
    f.push(g->frame->result ? g->frame->result : t.none());
    f.nextIp = in.target;
    return;
  }
  const bool value = !isSame(t, sent, t.none());
  if (receiver->kind == Kind::Instance) {
    Value* method = value ? getAttr(t, receiver, "send") : specialMethod(t, receiver, "__next__");
    if (method) {
      try {
        return f.push(call(t, method, value ? CallArgs{{sent}, {}} : CallArgs{}));
      } catch (Raised& raised) {
        if (!isA(t, raised.exception, PyExc_StopIteration)) throw;
        f.push(getAttr(t, raised.exception, "value"));
        f.nextIp = in.target;
        return;
      }
    }
  }
  if (value) unsupported(BreakReason::SendValue, "sending a value into " + describe(receiver));
  Value* item = next(t, receiver);
  if (item) return f.push(item);
  f.push(t.none());
  f.nextIp = in.target;
}

void handleEndSend(Trace&, FrameState& f, const Instr&) {
  Value* result = f.pop();
  f.pop();
  f.push(result);
}

void handleCleanupThrow(Trace& t, FrameState& f, const Instr&) {
  Value* exception = f.pop();
  f.pop();
  f.pop();
  if (isA(t, exception, PyExc_StopIteration)) {
    f.push(t.none());
    f.push(getAttr(t, exception, "value"));
    return;
  }
  throw Raised{exception};
}

}  // namespace cdynamo
