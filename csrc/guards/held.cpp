#include "guards/held.h"

#include "base/error.h"

namespace cdynamo {

namespace {

// Whether the names of `path` lead from the module to the object, without running any code.
bool isAt(PyObject* module, PyObject* path, PyObject* object) {
  if (!module || !PyUnicode_CheckExact(module) || !path || !PyUnicode_Check(path)) return false;
  PyObject* at = PyDict_GetItemWithError(PyImport_GetModuleDict(), module);
  PyObject* names = at && PyModule_Check(at) ? PyModule_GetDict(at) : nullptr;
  Py_ssize_t length = PyUnicode_GET_LENGTH(path);
  for (Py_ssize_t begin = 0; names && begin <= length;) {
    Py_ssize_t end = PyUnicode_FindChar(path, '.', begin, length, 1);
    if (end < 0) end = length;
    ObjectRef name = checked(PyUnicode_Substring(path, begin, end));
    at = PyDict_GetItemWithError(names, name.get());
    if (end == length) return at == object;
    names = at && PyType_Check(at) ? reinterpret_cast<PyTypeObject*>(at)->tp_dict : nullptr;
    begin = end + 1;
  }
  return false;
}

// What is found by its name in a module stays. What was made by a call may be another one in every call.
bool staysAlive(PyObject* object) {
  static PyObject* moduleName = PyUnicode_InternFromString("__module__");
  if (PyType_Check(object)) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return true;
    return isAt(PyDict_GetItemWithError(type->tp_dict, moduleName), reinterpret_cast<PyHeapTypeObject*>(object)->ht_qualname, object);
  }
  if (PyFunction_Check(object)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    return isAt(function->func_module, function->func_qualname, object);
  }
  // Of a text that exec() was given.
  PyObject* file = reinterpret_cast<PyCodeObject*>(object)->co_filename;
  return PyUnicode_GET_LENGTH(file) == 0 || PyUnicode_READ_CHAR(file, 0) != '<';
}

bool heldStrongly(PyObject* object) {
  if (PyType_Check(object) || PyFunction_Check(object) || PyCode_Check(object)) return staysAlive(object);
  return PyModule_Check(object) || PyCFunction_Check(object);
}

}  // namespace

Held Held::strong(PyObject* objectOrNull) {
  Held held;
  held.ref_ = ObjectRef::share(objectOrNull);
  held.raw_ = objectOrNull;
  return held;
}

Held Held::watched(PyObject* object) {
  Held held;
  held.raw_ = object;
  return held;
}

Held Held::identity(PyObject* objectOrNull) {
  if (objectOrNull == nullptr || heldStrongly(objectOrNull) || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(objectOrNull))) return strong(objectOrNull);
  Held held;
  held.ref_ = ObjectRef::steal(PyWeakref_NewRef(objectOrNull, nullptr));
  if (!held.ref_) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
    PyErr_Clear();
    return strong(objectOrNull);
  }
  held.raw_ = held.ref_.get();
  held.weak_ = true;
  return held;
}

}  // namespace cdynamo
