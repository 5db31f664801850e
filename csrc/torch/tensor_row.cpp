#include "torch/tensor_row.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

namespace cdynamo {

namespace {

// A tensor is three steps of memory: the Python object, the implementation, its autograd metadata.
constexpr uint32_t kObjectsAhead = 24;
constexpr uint32_t kImplsAhead = 16;
constexpr uint32_t kMetasAhead = 8;

inline const c10::TensorImpl* implOf(PyObject* tensor) { return THPVariable_Unpack(tensor).unsafeGetTensorImpl(); }

inline const torch::autograd::AutogradMeta* metaOf(const c10::TensorImpl* impl) {
  return static_cast<const torch::autograd::AutogradMeta*>(const_cast<c10::TensorImpl*>(impl)->autograd_meta());
}

inline bool requiresGrad(const c10::TensorImpl* impl) {
  const auto* meta = metaOf(impl);
  return meta && (meta->requires_grad_ || meta->grad_fn_);
}

inline bool dimsMatch(at::IntArrayRef actual, const Dims& expected) {
  if (actual.size() != expected.size()) return false;
  const int64_t* wanted = expected.data();
  for (size_t i = 0; i < actual.size(); i++)
    if (actual[i] != wanted[i] && wanted[i] >= 0) return false;
  return true;
}

inline bool holds(const c10::TensorImpl* impl, const TensorGuard& guard) {
  // The key set has the device's type in it, and tells conj, neg, inference and subclass tensors apart.
  return impl->key_set().raw_repr() == guard.keySet && static_cast<DType>(c10::typeMetaToScalarType(impl->dtype())) == guard.dtype &&
         static_cast<int8_t>(impl->device().index()) == guard.device.index &&
         static_cast<int8_t>(impl->device().type()) == guard.device.type && dimsMatch(impl->sizes(), guard.sizes) &&
         dimsMatch(impl->strides(), guard.strides) && requiresGrad(impl) == guard.requiresGrad;
}

// A tensor's metadata lies in more than one cache line.
inline void fetch(const c10::TensorImpl* impl) {
  const char* start = reinterpret_cast<const char*>(impl);
  for (size_t offset = 0; offset < sizeof(c10::TensorImpl); offset += 64) __builtin_prefetch(start + offset);
}

}  // namespace

uint32_t checkTensors(PyObject* const* values, const TensorGuard* guards, const TensorCheck* checks, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i + kObjectsAhead < count) __builtin_prefetch(values[checks[i + kObjectsAhead].value]);
    if (i + kImplsAhead < count) {
      const TensorCheck& next = checks[i + kImplsAhead];
      if (Py_TYPE(values[next.value]) == guards[next.guard].type) fetch(implOf(values[next.value]));
    }
    if (i + kMetasAhead < count) {
      const TensorCheck& next = checks[i + kMetasAhead];
      if (Py_TYPE(values[next.value]) == guards[next.guard].type) {
        const auto* meta = metaOf(implOf(values[next.value]));
        if (meta) __builtin_prefetch(&meta->requires_grad_);
      }
    }
    const TensorGuard& guard = guards[checks[i].guard];
    PyObject* value = values[checks[i].value];
    if (Py_TYPE(value) != guard.type || !holds(implOf(value), guard)) return i;
  }
  return count;
}

}  // namespace cdynamo
