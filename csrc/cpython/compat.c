#define Py_BUILD_CORE 1
#include "cpython/compat.h"

#include "internal/pycore_object.h"

unsigned peekTypeVersion(PyTypeObject* type) { return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0; }

unsigned typeVersion(PyTypeObject* type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) {
#if PY_VERSION_HEX >= 0x030C0000
    if (!PyUnstable_Type_AssignVersionTag(type)) return 0;
#else
    // A lookup through the method cache gives the type a version; any interned name does.
    static PyObject* anyName = NULL;
    if (anyName == NULL) anyName = PyUnicode_InternFromString("__class__");
    if (anyName == NULL) {
      PyErr_Clear();
      return 0;
    }
    (void)_PyType_Lookup(type, anyName);
#endif
  }
  return peekTypeVersion(type);
}

PyObject* typeLookup(PyTypeObject* type, PyObject* name) { return _PyType_Lookup(type, name); }

PyObject* typeDict(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* dict = PyType_GetDict(type);  // the type keeps it alive
  Py_XDECREF(dict);
  return dict;
#else
  return type->tp_dict;
#endif
}

PyObject* peekInstanceDict(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyType_Check(object)) return typeDict((PyTypeObject*)object);
  if (PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
#if PY_VERSION_HEX >= 0x030C0000
    PyDictOrValues held = *_PyObject_DictOrValuesPointer(object);
    return _PyDictOrValues_IsValues(held) ? NULL : _PyDictOrValues_GetDict(held);
#else
    return *_PyObject_ManagedDictPointer(object);
#endif
  }
  if (type->tp_dictoffset > 0) return *(PyObject**)((char*)object + type->tp_dictoffset);
  if (type->tp_dictoffset == 0) return NULL;
  PyObject** slot = _PyObject_GetDictPtr(object);
  return slot == NULL ? NULL : *slot;
}

PyObject* instanceDict(PyObject* object) {
  if (PyType_Check(object)) return typeDict((PyTypeObject*)object);
  PyObject* dict = peekInstanceDict(object);
  if (dict != NULL) return dict;
  if (Py_TYPE(object)->tp_dictoffset == 0 && !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_MANAGED_DICT)) return NULL;
  dict = PyObject_GenericGetDict(object, NULL);
  if (dict == NULL) {
    PyErr_Clear();
    return NULL;
  }
  Py_DECREF(dict);  // the object keeps it alive
  return dict;
}
