#include "cpython/classes.h"

// As in Objects/descrobject.c; the first fields are the same in 3.11 and 3.12.
typedef struct {
  PyObject_HEAD PyObject* get;
  PyObject* set;
  PyObject* del;
  PyObject* doc;
  PyObject* name;
} PropertyFields;

PyObject* propertyName(PyObject* property) {
  if (!PyObject_TypeCheck(property, &PyProperty_Type)) return NULL;
  PyObject* name = ((PropertyFields*)property)->name;
  return name && PyUnicode_Check(name) ? name : NULL;
}

void hideFromBases(PyTypeObject* type) {
  PyObject *bases = type->tp_bases, *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  PyObject* key = PyLong_FromVoidPtr(type);
  for (Py_ssize_t i = 0; key && bases && i < PyTuple_GET_SIZE(bases); i++) {
    PyTypeObject* base = (PyTypeObject*)PyTuple_GET_ITEM(bases, i);
#if PY_VERSION_HEX >= 0x030C0000
    // Those of static types are kept by the interpreter.
    if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) continue;
#endif
    PyObject* known = (PyObject*)base->tp_subclasses;
    if (known && PyDict_Check(known) && PyDict_DelItem(known, key) < 0) PyErr_Clear();
  }
  Py_XDECREF(key);
  PyErr_Restore(kind, value, trace);
}

int setNameErrorIsWrapped(void) { return PY_VERSION_HEX < 0x030C0000; }
