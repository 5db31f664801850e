// contextvars: what a variable is set to is an input. Setting one is left to CPython.
#include "builtins/table.h"
#include "cpython/iterators.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

// variable.get(), variable.get(default)
Value* contextGet(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 2);
  Value* v = a.args[0];
  PyObject* variable = isReal(v) ? t.identity(v) : nullptr;
  if (!variable || !PyContextVar_CheckExact(variable)) unsupported(BreakReason::UnknownFunction, "ContextVar.get of " + describe(v));
  const Source* source = t.sources.iteratorPart(v->source ? v->source : t.sources.pinned(variable), kContextValue);
  PyObject* held = t.keep(checked(iteratorPart(variable, kContextValue)));
  PyObject* missing = contextMissing();
  if (!missing) throw PythonError{};
  if (held != missing) return t.wrap(held, source);
  t.facts.identityIs(source, missing);
  if (a.args.size() == 2) return a.args[1];
  PyObject* own = nullptr;  // the variable's own default, which never changes
  checkedStatus(PyContextVar_Get(variable, nullptr, &own));
  ObjectRef kept = ObjectRef::steal(own);
  if (kept) return pinnedValue(t, t.keep(std::move(kept)));
  PyErr_SetObject(PyExc_LookupError, variable);
  raiseCurrent(t);
}

}  // namespace

void addContextVariables(BuiltinTable& table) { table.addType(&PyContextVar_Type, "get", contextGet); }

}  // namespace cdynamo
