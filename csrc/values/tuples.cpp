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
  return !type->tp_as_number || !type->tp_as_number->nb_bool;
}

}  // namespace cdynamo
