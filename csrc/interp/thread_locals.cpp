// threading.local: each thread has a dict of its own, which is read and written as any other.
#include "base/lookup.h"
#include "interp/attribute_parts.h"

namespace cdynamo {

DictValue* threadDict(Trace& t, Value* object) {
  static auto* local = reinterpret_cast<PyTypeObject*>(importedObject("_thread", "_local"));
  if (!isReal(object) || !object->source || Py_TYPE(realObject(object)) != local) return nullptr;
  t.typeOf(object);
  static PyObject* name = interned("__dict__");
  ObjectRef dict = native(t, PyObject_GetAttr(realObject(object), name));
  return as<DictValue>(t.wrap(t.keep(std::move(dict)), t.sources.attr(object->source, name)));
}

}  // namespace cdynamo
