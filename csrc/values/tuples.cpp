#include "values/tuples.h"

#include "cpython/compat.h"

namespace cdynamo {

bool isPlainTuple(PyTypeObject* type) {
  if (!PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS)) return false;
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return true;
  static PyObject* const fields = PyUnicode_InternFromString("_fields");
  if (type->tp_dictoffset != 0 && !typeLookup(type, fields)) return false;
  if (type->tp_call || type->tp_getattro != PyObject_GenericGetAttr) return false;
  // What the class says itself about what the model answers for a tuple.
  static PyObject* const asked[] = {PyUnicode_InternFromString("__len__"), PyUnicode_InternFromString("__getitem__"),
                                    PyUnicode_InternFromString("__iter__"), PyUnicode_InternFromString("__contains__")};
  for (PyObject* name : asked)
    if (PyObject* found = typeLookup(type, name); !found || Py_TYPE(found) != &PyWrapperDescr_Type) return false;
  if (type->tp_richcompare != PyTuple_Type.tp_richcompare || type->tp_hash != PyTuple_Type.tp_hash) return false;
  const auto* operators = reinterpret_cast<void* const*>(type->tp_as_number);
  for (size_t i = 0; operators && i < sizeof(PyNumberMethods) / sizeof(void*); i++)
    if (operators[i]) return false;
  return true;
}

}  // namespace cdynamo
