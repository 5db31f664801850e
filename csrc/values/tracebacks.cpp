// Which exception is being handled, and where exceptions of the traced program have passed.
#include "base/lookup.h"
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

const void* raisedKey(const Value* exception) {
  return isReal(exception) ? static_cast<const void*>(realObject(exception)) : exception;
}

}  // namespace

const std::vector<const TracePlace*>* Trace::placesOf(const Value* exception) const {
  auto found = tracebacks_.find(raisedKey(exception));
  return found == tracebacks_.end() || found->second.empty() ? nullptr : &found->second;
}

void Trace::addPlace(const Value* exception, const TracePlace* at) {
  const void* key = raisedKey(exception);
  tracebacks_[key].push_back(at);
  journal.onRollback([this, key] { tracebacks_[key].pop_back(); });
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
  const auto* places = placesOf(exception);
  if (!places) return none();
  for (auto& [known, what] : tracebackValues_)
    if (raisedKey(what.exception) == raisedKey(exception) && what.count == places->size()) return const_cast<Value*>(known);
  // Not None, and refused where anything but that is asked.
  static PyObject* some = importedObject("cdynamo.polyfills", "some_traceback");
  Value* made = make<RealValue>(ObjectRef::share(some));
  tracebackValues_[made] = {exception, places->size()};
  return made;
}

bool Trace::setTraceback(Value* exception, Value* traceback) {
  std::vector<const TracePlace*> places;
  if (const Traceback* known = asTraceback(traceback)) {
    const auto& all = tracebacks_[raisedKey(known->exception)];
    places.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(known->count));
  } else if (!isReal(traceback, Py_None)) {
    return false;
  }
  const void* key = raisedKey(exception);
  journal.onRollback([this, key, before = tracebacks_[key]] { tracebacks_[key] = before; });
  tracebacks_[key] = std::move(places);
  return true;
}

const Trace::Traceback* Trace::asTraceback(const Value* v) const {
  auto found = tracebackValues_.find(v);
  return found == tracebackValues_.end() ? nullptr : &found->second;
}

}  // namespace cdynamo
