// A small extension of these rooms alone, for the tests: see build_rooms.py.
#include "base/error.h"
#include "bytecode/python_api.h"

PyMODINIT_FUNC PyInit_bytecode_rooms() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bytecode_rooms", nullptr, -1, nullptr, nullptr, nullptr, nullptr,
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
