#include "interp/class_attributes.h"

#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

bool isDescriptorType(PyTypeObject* type) { return type->tp_descr_get || type->tp_descr_set; }

// Lookups of the interpreter itself; CPython keeps slots of the class in step with them.
bool isSpecialName(const std::string& name) { return name.size() > 4 && name.starts_with("__") && name.ends_with("__"); }

}  // namespace

DictValue* classDict(Trace& t, PyTypeObject* type) {
  auto* dict = as<DictValue>(pinnedValue(t, typeDict(type)));
  dict->ofClass = type;
  return dict;
}

Value* writtenClassAttr(Trace& t, PyTypeObject* type, PyObject* name) {
  if (t.writtenClasses.empty() || !type->tp_mro) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (t.writtenClasses.count(base)) {
      DictValue* dict = classDict(t, base);
      auto found = dict->index.find(t.keyOf(t.realShared(name)));
      if (found != dict->index.end() && dict->entries[found->second].written) return dict->entries[found->second].value;
    }
    PyObject* held = PyDict_GetItemWithError(typeDict(base), name);
    if (!held && PyErr_Occurred()) PyErr_Clear();
    if (held) return nullptr;
  }
  return nullptr;
}

bool setExistingClassAttr(Trace& t, PyTypeObject* type, PyObject* name, Value* value) {
  PyTypeObject* meta = Py_TYPE(type);
  if (!value || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE)) return false;
  if (meta->tp_setattro != PyType_Type.tp_setattro || meta->tp_getattro != PyType_Type.tp_getattro || isSpecialName(textOf(name))) return false;
  if (PyObject* onMeta = lookUp(t, meta, name); onMeta && isDataDescriptor(onMeta)) return false;
  if (isDescriptorType(t.typeOf(value))) return false;
  if (t.writtenClasses.insert(type).second) t.journal.onRollback([&t, type] { t.writtenClasses.erase(type); });
  t.dictSet(classDict(t, type), t.keyOf(t.realShared(name)), value);
  return true;
}

const Source* changingClassAttr(Trace& t, PyTypeObject* type, PyObject* name, PyObject* found) {
  if (!found || !t.options.openNames || isDescriptorType(Py_TYPE(found)) || Py_TYPE(type)->tp_getattro != PyType_Type.tp_getattro) return nullptr;
  if (typeLookup(Py_TYPE(type), name)) return nullptr;
  const Source* source = t.sources.attr(t.sources.pinned(reinterpret_cast<PyObject*>(type)), name);
  return t.options.openNames->count(t.sources.name(source)) ? source : nullptr;
}

}  // namespace cdynamo
