#include "torch/tensor_row.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

namespace cdynamo {

namespace {

constexpr uint32_t kImplsAhead = 6;

inline const c10::TensorImpl* implOf(PyObject* tensor) { return THPVariable_Unpack(tensor).unsafeGetTensorImpl(); }

inline bool requiresGrad(const c10::TensorImpl* impl) {
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(const_cast<c10::TensorImpl*>(impl)->autograd_meta());
  // A view made under no_grad has what its base has.
  return meta && (meta->requires_grad_ || meta->grad_fn_ || (meta->is_view_ && impl->requires_grad()));
}

// A negative wanted number stands for any.
inline bool dimsMatch(at::IntArrayRef actual, const int64_t* wanted, size_t count) {
  if (actual.size() != count) return false;
  const int64_t* values = actual.data();
  for (size_t i = 0; i < count; i++)
    if (values[i] != wanted[i] && wanted[i] >= 0) return false;
  return true;
}

// A tensor's metadata lies in more than one cache line.
inline void fetch(const c10::TensorImpl* impl) {
  const char* start = reinterpret_cast<const char*>(impl);
  for (size_t offset = 0; offset < sizeof(c10::TensorImpl); offset += 64) __builtin_prefetch(start + offset);
}

}  // namespace

uint32_t checkTensors(PyObject* const* values, const TensorGuard* guards, const TensorCheck* checks, uint32_t count) {
  for (uint32_t i = 0; i < count;) {
    // A run of checks with one guard: what the guard says stays in registers of the processor.
    const uint32_t number = checks[i].guard;
    const TensorGuard& guard = guards[number];
    const int64_t* sizes = guard.sizes.data();
    const int64_t* strides = guard.strides.data();
    const size_t rank = guard.sizes.size(), strideCount = guard.strides.size();
    for (; i < count && checks[i].guard == number; i++) {
      if (i + kImplsAhead < count) {
        PyObject* next = values[checks[i + kImplsAhead].value];
        if (Py_TYPE(next) == guard.type) fetch(implOf(next));
      }
      PyObject* value = values[checks[i].value];
      if (Py_TYPE(value) != guard.type) return i;
      const c10::TensorImpl* impl = implOf(value);
      // The key set tells conj, neg, inference and subclass tensors apart.
      if (impl->key_set().raw_repr() != guard.keySet) return i;
      if (static_cast<DType>(c10::typeMetaToScalarType(impl->dtype())) != guard.dtype) return i;
      c10::Device device = impl->device();
      if (static_cast<int8_t>(device.type()) != guard.device.type || static_cast<int8_t>(device.index()) != guard.device.index) return i;
      if (!dimsMatch(impl->sizes(), sizes, rank) || !dimsMatch(impl->strides(), strides, strideCount)) return i;
      if (requiresGrad(impl) != guard.requiresGrad) return i;
    }
  }
  return count;
}

}  // namespace cdynamo
