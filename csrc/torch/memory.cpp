#include "torch/memory.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/python_variable.h>

namespace cdynamo {

namespace {

inline const c10::TensorImpl* implOf(PyObject* tensor) { return THPVariable_Unpack(tensor).unsafeGetTensorImpl(); }

inline const void* storageOf(const c10::TensorImpl* impl) { return impl->has_storage() ? impl->unsafe_storage().unsafeGetStorageImpl() : nullptr; }

}  // namespace

MemoryExtent memoryOf(PyObject* tensor) {
  const c10::TensorImpl* impl = implOf(tensor);
  MemoryExtent extent{storageOf(impl), 0, 0};
  if (!extent.storage || impl->numel() == 0) return extent;
  at::IntArrayRef sizes = impl->sizes(), strides = impl->strides();
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); i++) last += (sizes[i] - 1) * strides[i];
  auto width = static_cast<int64_t>(impl->itemsize());
  extent.begin = impl->storage_offset() * width;
  extent.end = extent.begin + (last + 1) * width;
  return extent;
}

int64_t versionOf(PyObject* tensor) {
  const at::Tensor& self = THPVariable_Unpack(tensor);
  return self.is_inference() ? -1 : self._version();
}

bool requiresGrad(PyObject* tensor) { return THPVariable_Unpack(tensor).requires_grad(); }

bool isLeaf(PyObject* tensor) { return THPVariable_Unpack(tensor).is_leaf(); }

size_t firstMoved(PyObject* const* values, const uint32_t* registers, const void* const* storages, size_t from, size_t count) {
  for (size_t i = from; i < count; i++)
    if (storageOf(implOf(values[registers[i]])) != storages[i]) return i;
  return count;
}

}  // namespace cdynamo
