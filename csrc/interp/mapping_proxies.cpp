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

}  // namespace cdynamo
