// types.MappingProxyType that exists: its mapping is read as any other object.
#include "cpython/iterators.h"
#include "interp/attribute_parts.h"

namespace cdynamo {

Value* mappingOfProxy(Trace& t, Value* v) {
  if (!isReal(v) || !v->source || Py_TYPE(realObject(v)) != &PyDictProxy_Type) return nullptr;
  t.typeOf(v);
  ObjectRef mapping = ObjectRef::steal(iteratorPart(realObject(v), kProxyMapping));
  return t.wrap(t.keep(std::move(mapping)), t.sources.iteratorPart(v->source, kProxyMapping));
}

Value* compareProxies(Trace& t, int op, Value* a, Value* b) {
  auto isProxy = [](Value* v) { return isReal(v) && Py_TYPE(realObject(v)) == &PyDictProxy_Type; };
  if (!isProxy(a) && !isProxy(b)) return nullptr;
  Value *left = mappingOfProxy(t, a), *right = mappingOfProxy(t, b);
  if ((left || right) && (op == Py_EQ || op == Py_NE)) return compareOp(t, op, left ? left : a, right ? right : b);
  auto real = [&](Value* v) { return isProxy(v) && !v->source ? realObject(v) : isTensor(v) ? nullptr : t.snapshot(v); };
  PyObject *one = real(a), *other = one ? real(b) : nullptr;
  if (!other) unsupported(BreakReason::UnsupportedComparison, "comparing " + describe(a) + " with " + describe(b));
  return t.real(native(t, PyObject_RichCompare(one, other, op)));
}

}  // namespace cdynamo
