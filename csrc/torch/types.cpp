#include "torch/types.h"

#include "base/lookup.h"

namespace cdynamo {

namespace {

PyTypeObject* torchType(const char* name) { return reinterpret_cast<PyTypeObject*>(importedObject("torch", name)); }

}  // namespace

PyTypeObject* tensorType() {
  static PyTypeObject* type = torchType("Tensor");
  return type;
}
PyTypeObject* sizeType() {
  static PyTypeObject* type = torchType("Size");
  return type;
}
PyTypeObject* generatorType() {
  static PyTypeObject* type = torchType("Generator");
  return type;
}

PyTypeObject* ndarrayType() {
  static PyTypeObject* type = nullptr;
  if (type == nullptr)
    if (PyDict_GetItemString(PyImport_GetModuleDict(), "numpy")) type = reinterpret_cast<PyTypeObject*>(importedObject("numpy", "ndarray"));
  return type;
}

namespace {

PyTypeObject* numpyType(const char* name) { return reinterpret_cast<PyTypeObject*>(importedObject("numpy", name)); }

}  // namespace

bool isNumpyScalarType(PyTypeObject* type) {
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || type->tp_base == &PyBaseObject_Type || !ndarrayType()) return false;
  static PyTypeObject *number = numpyType("number"), *boolean = numpyType("bool_");
  return PyType_IsSubtype(type, number) || PyType_IsSubtype(type, boolean);
}

bool isNumpyDtypeType(PyTypeObject* type) {
  if (!ndarrayType()) return false;
  static PyTypeObject* dtype = numpyType("dtype");
  return PyType_IsSubtype(type, dtype);
}

bool isTorchConstantType(PyTypeObject* type) {
  static PyTypeObject* known[] = {torchType("dtype"), torchType("device"), torchType("layout"), torchType("memory_format"),
                                  torchType("finfo"), torchType("iinfo"),  torchType("qscheme")};
  for (PyTypeObject* k : known)
    if (type == k) return true;
  return false;
}

bool isTorchOperatorType(PyTypeObject* type) {
  static PyObject* known[] = {importedObject("torch._ops", "OpOverload"), importedObject("torch._ops", "OpOverloadPacket")};
  return reinterpret_cast<PyObject*>(type) == known[0] || reinterpret_cast<PyObject*>(type) == known[1];
}

}  // namespace cdynamo
