#include <ATen/ATen.h>
#include <torch/csrc/autograd/python_variable.h>

#include "torch/bridge.h"

namespace cdynamo {

namespace {

const char* nameOf(DType dtype) { return c10::toString(static_cast<at::ScalarType>(dtype)); }

std::string nameOf(DeviceTag device) { return at::Device(static_cast<at::DeviceType>(device.type), device.index).str(); }

bool matchesDims(at::IntArrayRef actual, const Dims& expected) {
  if (actual.size() != expected.size()) return false;
  const int64_t* wanted = expected.data();
  for (size_t i = 0; i < actual.size(); i++)
    if (actual[i] != wanted[i] && wanted[i] >= 0) return false;
  return true;
}

}  // namespace

bool makeTensorGuard(PyObject* object, TensorGuard& out) {
  TensorMeta meta;
  if (!readTensorMeta(object, meta)) return false;
  out.type = Py_TYPE(object);
  out.keySet = THPVariable_Unpack(object).key_set().raw_repr();
  out.dtype = meta.dtype;
  out.device = meta.device;
  out.requiresGrad = meta.requiresGrad;
  out.sizes = meta.sizes;
  out.strides = meta.strides;
  return true;
}

bool checkTensor(PyObject* object, const TensorGuard& guard) {
  if (Py_TYPE(object) != guard.type) return false;
  const at::Tensor& tensor = THPVariable_Unpack(object);
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (impl->key_set().raw_repr() != guard.keySet) return false;
  if (static_cast<DType>(c10::typeMetaToScalarType(impl->dtype())) != guard.dtype) return false;
  c10::Device device = impl->device();
  if (static_cast<int8_t>(device.type()) != guard.device.type || device.index() != guard.device.index) return false;
  if (impl->requires_grad() != guard.requiresGrad) return false;
  return matchesDims(impl->sizes(), guard.sizes) && matchesDims(impl->strides(), guard.strides);
}

std::string explainTensorMismatch(PyObject* object, const TensorGuard& guard, const std::string& name) {
  std::string subject = "tensor '" + name + "' ";
  if (Py_TYPE(object) != guard.type)
    return "expected type of '" + name + "' to be a tensor type, '" + guard.type->tp_name + "' but found '" + Py_TYPE(object)->tp_name + "'";
  const at::Tensor& tensor = THPVariable_Unpack(object);
  DType dtype = static_cast<DType>(tensor.scalar_type());
  if (dtype != guard.dtype) return subject + "dtype mismatch. expected " + nameOf(guard.dtype) + ", actual " + nameOf(dtype);
  DeviceTag device{static_cast<int8_t>(tensor.device().type()), static_cast<int8_t>(tensor.device().index())};
  if (!(device == guard.device)) return subject + "device mismatch. expected " + nameOf(guard.device) + ", actual " + nameOf(device);
  if (tensor.key_set().raw_repr() != guard.keySet)
    return subject + "dispatch key set mismatch. expected " + c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, guard.keySet)) +
           ", actual " + c10::toString(tensor.key_set());
  if (tensor.requires_grad() != guard.requiresGrad)
    return subject + "requires_grad mismatch. expected requires_grad=" + (guard.requiresGrad ? "1" : "0");
  at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  if (sizes.size() != guard.sizes.size())
    return subject + "rank mismatch. expected " + std::to_string(guard.sizes.size()) + ", actual " + std::to_string(sizes.size());
  for (uint32_t i = 0; i < guard.sizes.size(); i++)
    if (guard.sizes[i] >= 0 && sizes[i] != guard.sizes[i])
      return subject + "size mismatch at index " + std::to_string(i) + ". expected " + std::to_string(guard.sizes[i]) + ", actual " +
             std::to_string(sizes[i]);
  for (uint32_t i = 0; i < guard.strides.size(); i++)
    if (guard.strides[i] >= 0 && strides[i] != guard.strides[i])
      return subject + "stride mismatch at index " + std::to_string(i) + ". expected " + std::to_string(guard.strides[i]) + ", actual " +
             std::to_string(strides[i]);
  return {};
}

}  // namespace cdynamo
