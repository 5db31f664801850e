// Which exception is being handled, and where exceptions of the traced program have passed.
#include "cpython/tracebacks.h"

#include "base/lookup.h"
#include "base/own_library.h"
#include "interp/frame.h"
#include "values/trace.h"

namespace cdynamo {

Value* Trace::topmostHandled() {
  if (handledException) return handledException;
  for (size_t i = handledBelow.size(); i-- > 0;)
    if (handledBelow[i]) return handledBelow[i];
  if (!handledOutside) return nullptr;
  const Source* source = sources.handled();
  if (handledOutside.get() == Py_None) {
    facts.identityIs(source, Py_None);
    return nullptr;
  }
  facts.typeIs(source, Py_TYPE(handledOutside.get()));
  return wrap(handledOutside.get(), source);
}

namespace {

const void* raisedKey(const Value* exception) { return isReal(exception) ? static_cast<const void*>(realObject(exception)) : exception; }

}  // namespace

void Trace::addTraceback(Value* exception, FrameState& f) {
  // Our own library stands for C code, which has no frame. What exists outside is raised by CPython, but for what is thrown into a generator.
  if (isOwnLibrary(f.globals, "__name__") || exception->source) return;
  const int32_t at = f.code->at(f.ip).offset.value;
  TracebackEntry entry{reinterpret_cast<PyObject*>(f.code->pyCode()), f.globals, at, at, tracebackOf(exception)};
  PyObject* made = keep(checked(newTraceback(realObject(entry.next), f.code->pyCode(), f.globals, at, at, nullptr)));
  tracebackEntries_[made] = entry;
  f.tracebacks.push_back(made);
  setTraceback(exception, realShared(made));
}

int32_t raisedAt(const FrameState& f) {
  const Instr& in = f.code->at(f.ip);
  if (in.op == Op::Reraise && in.arg > 0)
    if (const Value* unit = f.stack[f.stack.size() - static_cast<size_t>(in.arg)]; isReal(unit) && PyLong_CheckExact(realObject(unit)))
      return static_cast<int32_t>(PyLong_AsLong(realObject(unit)) * static_cast<long>(sizeof(_Py_CODEUNIT)));
  return in.offset.value;
}

void Trace::noteLeft(const FrameState& f, int32_t at) {
  for (PyObject* made : f.tracebacks) {
    TracebackEntry& entry = tracebackEntries_.at(made);
    journal.onRollback([&entry, before = entry] { entry = before; });
    entry.leftAt = at;
    entry.locals = f.locals;
    for (Value*& v : entry.locals)
      if (auto* cell = v && v->kind == Kind::Cell ? as<CellValue>(v) : nullptr) v = cell->loaded ? cell->contents : nullptr;
  }
}

Value* Trace::tracebackOf(Value* exception) {
  if (exception->source) {
    // As it was when the trace began: such an exception is raised by CPython only.
    static PyObject* name = PyUnicode_InternFromString("__traceback__");
    auto* heap = dynamic_cast<HeapValue*>(exception);
    PyObject* object = isReal(exception) ? realObject(exception) : heap ? heap->real.get() : nullptr;
    if (!object) unsupported(BreakReason::ExceptionTraceback, "the traceback of an existing exception");
    ObjectRef held = checked(PyObject_GetAttr(object, name));
    return wrap(held.get(), sources.attr(exception->source, name));
  }
  auto found = tracebacks_.find(raisedKey(exception));
  return found == tracebacks_.end() ? none() : found->second;
}

bool Trace::setTraceback(Value* exception, Value* value) {
  if (!isReal(value) || (realObject(value) != Py_None && typeOf(value) != &PyTraceBack_Type)) return false;
  const void* key = raisedKey(exception);
  auto found = tracebacks_.find(key);
  Value* before = found == tracebacks_.end() ? none() : found->second;
  journal.onRollback([this, key, before] { tracebacks_[key] = before; });
  tracebacks_[key] = value;
  return true;
}

const Trace::TracebackEntry* Trace::asTraceback(const Value* v) const {
  auto found = isReal(v) ? tracebackEntries_.find(realObject(v)) : tracebackEntries_.end();
  return found == tracebackEntries_.end() ? nullptr : &found->second;
}

}  // namespace cdynamo
