// weakref: what existing references point to.
#include "builtins/table.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

// reference()
Value* weakReferent(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* v = a.args[0];
  auto* heap = dynamic_cast<HeapValue*>(v);
  PyObject* reference = isReal(v) ? realObject(v) : heap ? heap->real.get() : nullptr;
  if (!reference || !PyWeakref_CheckRef(reference) || !v->source) unsupported(BreakReason::UnknownFunction, "calling a weak reference");
  t.typeOf(v);
  ObjectRef object = ObjectRef::share(PyWeakref_GET_OBJECT(reference));
  return t.wrap(t.keep(object), t.sources.weakReferent(v->source));
}

}  // namespace

void addWeakReferences(BuiltinTable& table) { table.addType(&_PyWeakref_RefType, "__call__", weakReferent); }

}  // namespace cdynamo
