#include "torch/types.h"

#include "base/error.h"

namespace cdynamo {

namespace {

PyTypeObject* torchType(const char* name) {
  ObjectRef module = checked(PyImport_ImportModule("torch"));
  return reinterpret_cast<PyTypeObject*>(checked(PyObject_GetAttrString(module.get(), name)).release());
}

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

bool isTorchConstantType(PyTypeObject* type) {
  static PyTypeObject* known[] = {torchType("dtype"), torchType("device"), torchType("layout"), torchType("memory_format"),
                                  torchType("finfo"), torchType("iinfo"),  torchType("qscheme")};
  for (PyTypeObject* k : known)
    if (type == k) return true;
  return false;
}

bool isTorchOperatorType(PyTypeObject* type) {
  static PyObject* const* known = [] {
    static PyObject* types[2];
    ObjectRef module = checked(PyImport_ImportModule("torch._ops"));
    types[0] = checked(PyObject_GetAttrString(module.get(), "OpOverload")).release();
    types[1] = checked(PyObject_GetAttrString(module.get(), "OpOverloadPacket")).release();
    return types;
  }();
  return reinterpret_cast<PyObject*>(type) == known[0] || reinterpret_cast<PyObject*>(type) == known[1];
}

}  // namespace cdynamo
