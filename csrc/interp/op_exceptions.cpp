// with, raise, except, and the rare ops of modules and type parameters.
#include "base/lookup.h"
#include "interp/handlers.h"
#include "interp/intrinsics.h"
#include "interp/protocol.h"

namespace cdynamo {

void handleBeforeWith(Trace& t, FrameState& f, const Instr&) {
  Value* manager = f.pop();
  Value* enter = specialMethod(t, manager, "__enter__");
  Value* exit = enter ? specialMethod(t, manager, "__exit__") : nullptr;
  if (!enter || !exit)
    raise(t, PyExc_TypeError,
          std::string("'") + t.typeOf(manager)->tp_name + "' object does not support the context manager protocol" +
              (enter ? " (missed __exit__ method)" : ""));
  f.push(exit);
  t.tail = ReturnTo::Push;
  f.push(call(t, enter, {}));
}

void handleWithExceptStart(Trace& t, FrameState& f, const Instr&) {
  Value* exception = f.top(1);
  Value* exit = f.top(4);
  Value* type = t.realShared(reinterpret_cast<PyObject*>(t.typeOf(exception)));
  Value* traceback = t.tracebackOf(exception);
  t.tail = ReturnTo::Push;
  f.push(call(t, exit, {{type, exception, traceback}, {}}));
}

void handlePushExcInfo(Trace& t, FrameState& f, const Instr&) {
  Value* exception = f.pop();
  f.push(t.handledException ? t.handledException : t.none());
  f.push(exception);
  t.journal.set(t.handledException, exception);
}

void handlePopExcept(Trace& t, FrameState& f, const Instr&) {
  Value* previous = f.pop();
  t.journal.set(t.handledException, isReal(previous, Py_None) ? nullptr : previous);
}

namespace {

void checkExceptionTypes(Trace& t, Value* types) {
  auto bad = [&](Value* v) { return !isReal(v) || !PyType_Check(realObject(v)) || !PyExceptionClass_Check(realObject(v)); };
  bool wrong = false;
  if (asTuple(types) || (isReal(types) && PyTuple_Check(realObject(types)))) {
    for (Value* v : itemsOf(t, types)) wrong |= bad(v);
  } else {
    wrong = bad(types);
  }
  if (wrong) raise(t, PyExc_TypeError, "catching classes that do not inherit from BaseException is not allowed");
}

}  // namespace

void handleCheckExcMatch(Trace& t, FrameState& f, const Instr&) {
  Value* types = f.pop();
  Value* exception = f.top();
  checkExceptionTypes(t, types);
  bool match = false;
  auto one = [&](Value* v) { return isSubtype(t, t.typeOf(exception), reinterpret_cast<PyTypeObject*>(t.identity(v))); };
  if (isReal(types) && PyType_Check(realObject(types)))
    match = one(types);
  else
    for (Value* v : itemsOf(t, types)) match = match || one(v);
  f.push(t.boolean(match));
}

// What these do is traced Python: a group may have a split() or derive() of its own.
void handleCheckEgMatch(Trace& t, FrameState& f, const Instr&) {
  Value* types = f.pop();
  Value* exception = f.pop();
  checkExceptionTypes(t, types);
  static PyObject* match = importedObject("cdynamo.polyfills", "match_group");
  Value* pair = call(t, pinnedValue(t, match), {{exception, types}, {}});
  auto parts = itemsOf(t, pair);
  f.push(parts.at(0));
  f.push(parts.at(1));
  if (!isReal(parts[1], Py_None)) t.journal.set(t.handledException, parts[1]);
}

void handlePrepReraiseStar(Trace& t, FrameState& f, const Instr&) {
  Value* raised = f.pop();
  Value* original = f.pop();
  static PyObject* rest = importedObject("cdynamo.polyfills", "rest_of_group");
  f.push(call(t, pinnedValue(t, rest), {{original, raised}, {}}));
}

void handleReraise(Trace&, FrameState& f, const Instr&) { throw Raised{f.pop(), nullptr, true}; }

namespace {

bool isExceptionClass(Value* v) { return isReal(v) && PyExceptionClass_Check(realObject(v)); }

// The instance that `raise v` raises.
Value* exceptionFrom(Trace& t, Value* v) {
  if (isExceptionClass(v)) return call(t, v, {});
  PyTypeObject* type = t.typeOf(v);
  if (!PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS)) raise(t, PyExc_TypeError, "exceptions must derive from BaseException");
  return v;
}

void link(Trace& t, Value* exception, const char* name, Value* other) {
  if (exception->source) unsupported(BreakReason::UnsupportedMutation, std::string("setting ") + name + " of an existing exception");
  genericSetAttr(t, exception, t.keep(checked(PyUnicode_InternFromString(name))), other);
}

}  // namespace

void handleRaiseVarargs(Trace& t, FrameState& f, const Instr& in) {
  if (in.arg == 0) {
    if (!t.topmostHandled()) raise(t, PyExc_RuntimeError, "No active exception to reraise");
    throw Raised{t.topmostHandled(), nullptr, true};
  }
  Value* cause = in.arg == 2 ? f.pop() : nullptr;
  Value* exception = exceptionFrom(t, f.pop());
  if (cause) {
    if (isSame(t, cause, t.none())) {
      link(t, exception, "__cause__", t.none());
    } else {
      if (!isExceptionClass(cause) && !PyType_FastSubclass(t.typeOf(cause), Py_TPFLAGS_BASE_EXC_SUBCLASS))
        raise(t, PyExc_TypeError, "exception causes must derive from BaseException");
      link(t, exception, "__cause__", exceptionFrom(t, cause));
    }
  }
  linkContext(t, exception);
  throw Raised{exception, nullptr, true};
}

void linkContext(Trace& t, Value* exception) {
  Value* handled = t.topmostHandled();
  if (!handled || isSame(t, handled, exception)) return;
  // No cycle is made: where it is in the chain behind the handled one, that link is cut.
  std::vector<Value*> passed;
  for (Value* behind = handled;;) {
    Value* context = getAttr(t, behind, "__context__");
    if (isReal(context, Py_None)) break;
    if (isSame(t, context, exception)) {
      link(t, behind, "__context__", t.none());
      break;
    }
    for (Value* known : passed)
      if (isSame(t, known, context)) return link(t, exception, "__context__", handled);
    passed.push_back(context);
    behind = context;
  }
  link(t, exception, "__context__", handled);
}

bool isA(Trace& t, Value* exception, PyObject* type) { return isSubtype(t, t.typeOf(exception), reinterpret_cast<PyTypeObject*>(type)); }

Value* causedBy(Trace& t, PyObject* type, const std::string& message, Value* cause) {
  ObjectRef text = checked(PyUnicode_FromString(message.c_str()));
  Value* made = t.real(checked(PyObject_CallOneArg(type, text.get())));
  link(t, made, "__cause__", cause);
  link(t, made, "__context__", cause);
  return made;
}

void raiseFrom(Trace& t, PyObject* type, const std::string& message, Value* cause) { throw Raised{causedBy(t, type, message, cause), nullptr, true}; }

void handleStopIterationError(Trace& t, FrameState& f, const Instr&) {
  Value* exception = f.pop();
  const int flags = f.code->flags();
  const char* kind = flags & CO_COROUTINE ? "coroutine" : flags & CO_ASYNC_GENERATOR ? "async generator" : "generator";
  if (isA(t, exception, PyExc_StopIteration)) return f.push(causedBy(t, PyExc_RuntimeError, std::string(kind) + " raised StopIteration", exception));
  if ((flags & CO_ASYNC_GENERATOR) && isA(t, exception, PyExc_StopAsyncIteration))
    return f.push(causedBy(t, PyExc_RuntimeError, std::string(kind) + " raised StopAsyncIteration", exception));
  f.push(exception);
}

// ---- rare ops --------------------------------------------------------------------------------------------------------

#define CD_REFUSED(name, text) \
  void handle##name(Trace&, FrameState&, const Instr&) { unsupported(BreakReason::UnsupportedOpcode, text); }
CD_REFUSED(ImportStar, "import *")
CD_REFUSED(PrintExpr, "the interactive print of an expression")
CD_REFUSED(TypeVar, "a type parameter")
CD_REFUSED(ParamSpec, "a type parameter")
CD_REFUSED(TypeVarTuple, "a type parameter")
CD_REFUSED(SubscriptGeneric, "a type parameter")
CD_REFUSED(TypeAlias, "a type alias statement")
CD_REFUSED(TypeVarWithBound, "a type parameter")
CD_REFUSED(TypeVarWithConstraints, "a type parameter")
CD_REFUSED(SetFunctionTypeParams, "a type parameter")
#undef CD_REFUSED

}  // namespace cdynamo
