// Coroutines: await, async for, async with. A coroutine is a generator of another type; what drives it is Send, as in yield from.
#include "base/lookup.h"
#include "interp/handlers.h"
#include "interp/intrinsics.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

bool isGenerator(Value* v, PyTypeObject* type) { return v->kind == Kind::Generator && as<GeneratorValue>(v)->type == type; }

std::string typeName(Trace& t, Value* v) { return t.typeOf(v)->tp_name; }

// The iterator that await drives; null where v is not awaitable.
Value* awaitableIterator(Trace& t, Value* v) {
  if (isGenerator(v, &PyCoro_Type)) return v;
  if (v->kind == Kind::Generator) return as<GeneratorValue>(v)->frame->code->flags() & CO_ITERABLE_COROUTINE ? v : nullptr;
  if (v->kind == Kind::Instance) {
    Value* method = specialMethod(t, v, "__await__");
    if (!method) return nullptr;
    Value* iterator = call(t, method, {});
    if (isGenerator(iterator, &PyCoro_Type)) raise(t, PyExc_TypeError, "__await__() returned a coroutine");
    bool is = iterator->kind == Kind::Iterator || isGenerator(iterator, &PyGen_Type) ||
              (iterator->kind == Kind::Instance && specialMethod(t, iterator, "__next__"));
    if (!is && isReal(iterator) && PyIter_Check(realObject(iterator))) unsupported(BreakReason::AsyncCode, "waiting for " + describe(iterator));
    if (!is) raise(t, PyExc_TypeError, "__await__() returned non-iterator of type '" + typeName(t, iterator) + "'");
    return iterator;
  }
  PyTypeObject* type = t.typeOf(v);
  if (type->tp_as_async && type->tp_as_async->am_await) unsupported(BreakReason::AsyncCode, "await of " + describe(v));
  return nullptr;
}

}  // namespace

void handleGetAwaitable(Trace& t, FrameState& f, const Instr& in) {
  Value* v = f.pop();
  Value* iterator = awaitableIterator(t, v);
  if (!iterator) {
    const char* method = in.arg == 1 ? "__aenter__" : "__aexit__";
    if (in.arg == 0) raise(t, PyExc_TypeError, "object " + typeName(t, v) + " can't be used in 'await' expression");
    raise(t, PyExc_TypeError,
          std::string("'async with' received an object from ") + method + " that does not implement __await__: " + typeName(t, v));
  }
  if (isGenerator(iterator, &PyCoro_Type)) {
    auto* g = as<GeneratorValue>(iterator);
    if (g->started && !g->finished && !g->running) raise(t, PyExc_RuntimeError, "coroutine is being awaited already");
  }
  f.push(iterator);
}

// The value stays as it is: the instruction after this one yields it, and the generator's driver looks there.
void handleAsyncGenWrap(Trace&, FrameState&, const Instr&) {}

void handleGetAiter(Trace& t, FrameState& f, const Instr&) {
  Value* v = f.pop();
  if (isGenerator(v, &PyAsyncGen_Type)) return f.push(v);
  if (v->kind != Kind::Instance) {
    PyTypeObject* type = t.typeOf(v);
    if (type->tp_as_async && type->tp_as_async->am_aiter) unsupported(BreakReason::AsyncCode, "async for over " + describe(v));
  }
  Value* method = v->kind == Kind::Instance ? specialMethod(t, v, "__aiter__") : nullptr;
  if (!method) raise(t, PyExc_TypeError, "'async for' requires an object with __aiter__ method, got " + typeName(t, v));
  Value* iterator = call(t, method, {});
  bool is = isGenerator(iterator, &PyAsyncGen_Type) || (iterator->kind == Kind::Instance && specialMethod(t, iterator, "__anext__"));
  if (!is && isReal(iterator) && Py_TYPE(realObject(iterator))->tp_as_async && Py_TYPE(realObject(iterator))->tp_as_async->am_anext)
    unsupported(BreakReason::AsyncCode, "async for over " + describe(iterator));
  if (!is) raise(t, PyExc_TypeError, "'async for' received an object from __aiter__ that does not implement __anext__: " + typeName(t, iterator));
  f.push(iterator);
}

void handleGetAnext(Trace& t, FrameState& f, const Instr&) {
  Value* iterator = f.top();
  if (isGenerator(iterator, &PyAsyncGen_Type)) return f.push(call(t, getAttr(t, iterator, "__anext__"), {}));
  Value* method = iterator->kind == Kind::Instance ? specialMethod(t, iterator, "__anext__") : nullptr;
  if (!method && iterator->kind != Kind::Instance) unsupported(BreakReason::AsyncCode, "the next item of " + describe(iterator));
  if (!method) raise(t, PyExc_TypeError, "'async for' requires an iterator with __anext__ method, got " + typeName(t, iterator));
  Value* next = call(t, method, {});
  try {
    Value* awaitable = awaitableIterator(t, next);
    if (!awaitable) raise(t, PyExc_TypeError, "object " + typeName(t, next) + " can't be used in 'await' expression");
    f.push(awaitable);
  } catch (Raised& raised) {
    raiseFrom(t, PyExc_TypeError, "'async for' received an invalid object from __anext__: " + typeName(t, next), raised.exception);
  }
}

void handleEndAsyncFor(Trace& t, FrameState& f, const Instr&) {
  Value* exception = f.pop();
  f.pop();
  if (!isA(t, exception, PyExc_StopAsyncIteration)) throw Raised{exception, nullptr, true};
}

void handleBeforeAsyncWith(Trace& t, FrameState& f, const Instr&) {
  Value* manager = f.pop();
  Value* enter = specialMethod(t, manager, "__aenter__");
  Value* exit = enter ? specialMethod(t, manager, "__aexit__") : nullptr;
  if (!enter || !exit)
    raise(t, PyExc_TypeError,
          "'" + typeName(t, manager) + "' object does not support the asynchronous context manager protocol" +
              (enter ? " (missed __aexit__ method)" : ""));
  f.push(exit);
  t.tail = ReturnTo::Push;
  f.push(call(t, enter, {}));
}

PyTypeObject* generatorType(const FrameState& f) {
  const int flags = f.code->flags();
  if (flags & CO_COROUTINE) return &PyCoro_Type;
  if (flags & CO_ASYNC_GENERATOR) return &PyAsyncGen_Type;
  static PyObject* drive = PyFunction_GET_CODE(importedObject("cdynamo.polyfills", "drive_async_generator"));
  static PyObject* close = PyFunction_GET_CODE(importedObject("cdynamo.polyfills", "async_generator_close"));
  auto* code = reinterpret_cast<PyObject*>(f.code->pyCode());
  if (code == close) return &_PyAsyncGenAThrow_Type;
  if (code == drive) return isReal(f.locals[2], Py_None) ? &_PyAsyncGenASend_Type : &_PyAsyncGenAThrow_Type;
  return &PyGen_Type;
}

// anext(iterator): with a default CPython has a type of its own for what is to be awaited.
Value* builtinAnext(Trace& t, CallArgs& a) {
  if (a.args.size() != 1 || !a.kwargs.empty()) unsupported(BreakReason::AsyncCode, "anext() with a default");
  static PyObject* polyfill = importedObject("cdynamo.polyfills", "anext");
  return call(t, pinnedValue(t, polyfill), a);
}

// async_generator_resume(generator, sent, thrown): (True, item) where it yielded, (False, item) where it waits for something
// and gave that out, None where it has ended.
Value* resumeAsyncGenerator(Trace& t, CallArgs& a) {
  auto* g = as<GeneratorValue>(a.args.at(0));
  Value* thrown = isReal(a.args.at(2), Py_None) ? nullptr : a.args[2];
  Value* item = nullptr;
  try {
    item = resumeGenerator(t, g, thrown ? nullptr : a.args.at(1), thrown);
  } catch (Raised& raised) {
    if (isA(t, raised.exception, PyExc_StopAsyncIteration))
      raiseFrom(t, PyExc_RuntimeError, "async generator raised StopAsyncIteration", raised.exception);
    throw;
  }
  if (!item) return t.none();
  const FrameState& f = *g->frame;
  bool yielded = f.ip > 0 && f.code->at(f.ip - 1).op == Op::AsyncGenWrap;
  return t.tuple({t.boolean(yielded), item});
}

}  // namespace cdynamo
