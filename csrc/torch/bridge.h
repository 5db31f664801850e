// The border to PyTorch's C++ API. Our types and PyObject* only, so that every room may include it.
//
// All functions need the GIL. Those that return `PyObject*` return a new reference and throw PythonError on failure.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/ref.h"
#include "shapes/tensor_meta.h"

namespace cdynamo {

// ---- tensors ----------------------------------------------------------------------------------------------------------

// Any instance of torch.Tensor, subclasses included.
bool isTensor(PyObject* object);

// Why a tensor cannot be described by a TensorMeta.
enum class TensorOddity : uint8_t {
  None,
  NotATensor,
  Undefined,
  Layout,
  Nested,
  Quantized,
  DType,
  SymbolicSizes,
  DispatchSubclass,
  FunctorchWrapper,
  Functional,
  ZeroTensor,
  ForbiddenView,
};
const char* describeOddity(TensorOddity oddity);

// Fills `out`; returns false and says why in `*oddity` (may be null) where the tensor is not a plain strided one.
bool readTensorMeta(PyObject* tensor, TensorMeta& out, TensorOddity* oddity = nullptr);

// An empty tensor on the meta device with the sizes, strides, offset and dtype of `meta`; no requires_grad.
PyObject* makeMetaTensor(const TensorMeta& meta);

// A tensor of no dimension on the CPU from an exact int (int64) or float (float64). Null, no error set, where the int does not fit.
PyObject* makeNumberTensor(PyObject* number);

// A tensor that shares the memory of an exact, writable numpy.ndarray. Null, no error set, where torch has no such tensor.
PyObject* makeArrayTensor(PyObject* array);

// ---- tensor guards ----------------------------------------------------------------------------------------------------

// What a tensor input must still be when the compiled code is called. A negative size or stride is not checked.
struct TensorGuard {
  PyTypeObject* type = nullptr;  // borrowed: the guard's owner keeps it alive
  uint64_t keySet = 0;           // all dispatch keys of the tensor at capture
  DType dtype = DType::Float32;
  DeviceTag device;
  bool requiresGrad = false;
  Dims sizes;
  Dims strides;
};

// Takes the facts of a live tensor; false where readTensorMeta would say no.
bool makeTensorGuard(PyObject* tensor, TensorGuard& out);
// Exact type, key set (hence layout, conj, inference, subclass), dtype, device, requires_grad, sizes, strides. No allocation.
bool checkTensor(PyObject* object, const TensorGuard& guard);
// The first difference in words, `name` being how the source is printed: "tensor 'L['x']' size mismatch at index 0. ...".
// Empty where the guard holds.
std::string explainTensorMismatch(PyObject* object, const TensorGuard& guard, const std::string& name);

// ---- state that changes what ops do -----------------------------------------------------------------------------------

struct GlobalState {
  uint64_t includedKeys = 0;  // thread-local dispatch keys: functorch levels, autocast, python modes
  uint64_t excludedKeys = 0;
  int32_t threads = 0;
  int32_t functionModes = 0;  // torch-function modes, torch.set_default_device among them
  int32_t dispatchModes = 0;
  uint8_t functionState = 0;  // torch function: enabled, subclasses disabled, all disabled
  bool gradMode = true;
  bool inferenceMode = false;
  bool autocastCpu = false;
  bool autocastCuda = false;
  bool autocastCache = true;
  DType autocastCpuDType = DType::BFloat16;
  DType autocastCudaDType = DType::Float16;
  DType defaultDType = DType::Float32;
  bool deterministic = false;
  bool deterministicWarnOnly = false;
  uint8_t float32Matmul = 0;  // c10's Float32Precision for CUDA matmul (TF32)
  uint8_t float32Conv = 0;
  uint8_t fp16Reduction = 0;
  uint8_t bf16Reduction = 0;
  bool fp16Accumulation = false;
  uint8_t attention = 0;  // which kernels scaled_dot_product_attention may use
  bool cudnn = true;      // torch.backends.cudnn.enabled, torch.backends.mkldnn.enabled
  bool mkldnn = true;
  uint64_t savedHooks = 0;  // why default hooks for saved tensors are disabled: a hash of the message, 0 where they are not
};

GlobalState captureGlobalState();
bool globalStateMatches(const GlobalState& expected);
// The names of what changed, each with both values; empty where the state matches.
std::string explainGlobalStateMismatch(const GlobalState& expected);

bool gradEnabled();
void setGradEnabled(bool enabled);
bool inferenceModeEnabled();
bool anyAutocastEnabled();
// Length of the torch-function mode stack; 0 while torch function is disabled for modes.
int64_t torchFunctionModes();
DType defaultDType();

// ---- objects <-> enums ------------------------------------------------------------------------------------------------

// A torch.dtype, or float/int/bool as the builtin types mean in torch; false where it is something else or a dtype we do not know.
bool dtypeFrom(PyObject* object, DType& out);
// A torch.device, a str such as "cuda:1", or an int (an accelerator's index); false otherwise.
bool deviceFrom(PyObject* object, DeviceTag& out);
// 0 contiguous, 1 preserve, 2 channels last, 3 channels last 3d (c10's numbers).
bool memoryFormatFrom(PyObject* object, int8_t& out);
bool isStridedLayout(PyObject* object);
PyObject* dtypeObject(DType dtype);
PyObject* deviceObject(DeviceTag device);
PyObject* layoutObject(int8_t layout);
// A torch.Size.
PyObject* makeSize(const Dims& sizes);

}  // namespace cdynamo
