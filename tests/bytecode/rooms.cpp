// A small extension of these rooms alone, for the tests: see build_rooms.py. It also shows parts of cpython/ to Python.
#include "base/error.h"
#include "bytecode/python_api.h"
#include "cpython/compat.h"
#include "cpython/dict_access.h"

namespace {

PyObject* orNone(PyObject* borrowed) {
  PyObject* result = borrowed != nullptr ? borrowed : Py_None;
  Py_INCREF(result);
  return result;
}

PyObject* pyDictVersion(PyObject*, PyObject* dict) { return PyLong_FromUnsignedLongLong(dictVersionInline(dict)); }
PyObject* pyTypeVersion(PyObject*, PyObject* type) {
  return PyLong_FromUnsignedLong(typeVersion(reinterpret_cast<PyTypeObject*>(type)));
}
PyObject* pyPeekTypeVersion(PyObject*, PyObject* type) {
  return PyLong_FromUnsignedLong(peekTypeVersion(reinterpret_cast<PyTypeObject*>(type)));
}
PyObject* pyInstanceDict(PyObject*, PyObject* object) { return orNone(instanceDict(object)); }
PyObject* pyPeekInstanceDict(PyObject*, PyObject* object) { return orNone(peekInstanceDict(object)); }
PyObject* pyTypeLookup(PyObject*, PyObject* arguments) {
  PyObject* type = nullptr;
  PyObject* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "O!U", &PyType_Type, &type, &name)) return nullptr;
  return orNone(typeLookup(reinterpret_cast<PyTypeObject*>(type), name));
}

PyMethodDef kProbes[] = {
    {"dict_version", pyDictVersion, METH_O, nullptr},
    {"type_version", pyTypeVersion, METH_O, nullptr},
    {"peek_type_version", pyPeekTypeVersion, METH_O, nullptr},
    {"instance_dict", pyInstanceDict, METH_O, nullptr},
    {"peek_instance_dict", pyPeekInstanceDict, METH_O, nullptr},
    {"type_lookup", pyTypeLookup, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyMODINIT_FUNC PyInit_bytecode_rooms() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bytecode_rooms", nullptr, -1, kProbes, nullptr, nullptr, nullptr,
                                   nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  try {
    cdynamo::addBytecodeFunctions(module);
  } catch (const cdynamo::PythonError&) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
