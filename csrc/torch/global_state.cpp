#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include "torch/bridge.h"

namespace cdynamo {

namespace {

using FunctionTLS = at::impl::PythonTorchFunctionTLS;
using DispatchTLS = c10::impl::TorchDispatchModeTLS;

// TF32 or not, for CUDA products: a setting that was never made means IEEE.
uint8_t matmulPrecision(const at::Context& context) {
  at::Float32Precision precision = context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL);
  return static_cast<uint8_t>(precision == at::Float32Precision::NONE ? at::Float32Precision::IEEE : precision);
}

uint8_t attentionKernels(const at::Context& context) {
  return static_cast<uint8_t>(context.userEnabledFlashSDP() | context.userEnabledMemEfficientSDP() << 1 | context.userEnabledMathSDP() << 2 |
                              context.userEnabledCuDNNSDP() << 3 | context.userEnabledOverrideableSDP() << 4);
}

uint64_t savedHooksMessage() {
  const std::optional<std::string>& message = at::SavedTensorDefaultHooks::get_disabled_error_message();
  return message ? std::hash<std::string>()(*message) | 1 : 0;
}

// Calls `visit(field name, field of the state, current value)` for each part of the state; stops where it returns false.
template <typename State, typename Visit>
bool forEachPart(State& state, Visit&& visit) {
  const at::Context& context = at::globalContext();
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  return visit("grad_mode", state.gradMode, c10::GradMode::is_enabled()) &&
         visit("inference_mode", state.inferenceMode, c10::InferenceMode::is_enabled()) &&
         visit("included dispatch keys", state.includedKeys, keys.included_.raw_repr()) &&
         visit("excluded dispatch keys", state.excludedKeys, keys.excluded_.raw_repr()) &&
         visit("torch_function", state.functionState, static_cast<uint8_t>(FunctionTLS::get_disabled_state())) &&
         visit("torch_function modes", state.functionModes, static_cast<int32_t>(FunctionTLS::stack_len())) &&
         visit("torch_dispatch modes", state.dispatchModes, static_cast<int32_t>(DispatchTLS::stack_len())) &&
         visit("default_dtype", state.defaultDType, static_cast<DType>(c10::get_default_dtype_as_scalartype())) &&
         visit("autocast_cpu", state.autocastCpu, at::autocast::is_autocast_enabled(at::kCPU)) &&
         visit("autocast_cuda", state.autocastCuda, at::autocast::is_autocast_enabled(at::kCUDA)) &&
         visit("autocast_cache", state.autocastCache, at::autocast::is_autocast_cache_enabled()) &&
         visit("autocast_cpu_dtype", state.autocastCpuDType, static_cast<DType>(at::autocast::get_autocast_dtype(at::kCPU))) &&
         visit("autocast_cuda_dtype", state.autocastCudaDType, static_cast<DType>(at::autocast::get_autocast_dtype(at::kCUDA))) &&
         visit("deterministic_algorithms", state.deterministic, context.deterministicAlgorithms()) &&
         visit("deterministic_algorithms_warn_only", state.deterministicWarnOnly, context.deterministicAlgorithmsWarnOnly()) &&
         visit("float32_matmul_precision", state.float32Matmul, matmulPrecision(context)) &&
         visit("float32_conv_precision", state.float32Conv,
               static_cast<uint8_t>(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV))) &&
         visit("allow_fp16_reduced_precision_reduction", state.fp16Reduction, static_cast<uint8_t>(context.allowFP16ReductionCuBLAS())) &&
         visit("allow_bf16_reduced_precision_reduction", state.bf16Reduction, static_cast<uint8_t>(context.allowBF16ReductionCuBLAS())) &&
         visit("allow_fp16_accumulation", state.fp16Accumulation, context.allowFP16AccumulationCuBLAS()) &&
         visit("attention kernels", state.attention, attentionKernels(context)) && visit("cudnn", state.cudnn, context.userEnabledCuDNN()) &&
         visit("mkldnn", state.mkldnn, context.userEnabledMkldnn()) && visit("saved tensors hooks", state.savedHooks, savedHooksMessage()) &&
         visit("num_threads", state.threads, static_cast<int32_t>(at::get_num_threads()));
}

}  // namespace

GlobalState captureGlobalState() {
  GlobalState state;
  forEachPart(state, [](const char*, auto& field, auto now) {
    field = now;
    return true;
  });
  return state;
}

bool globalStateMatches(const GlobalState& expected) {
  return forEachPart(expected, [](const char*, const auto& field, auto now) { return field == now; });
}

std::string explainGlobalStateMismatch(const GlobalState& expected) {
  std::string text;
  forEachPart(expected, [&](const char* name, const auto& field, auto now) {
    if (field != now) {
      if (!text.empty()) text += ", ";
      text += std::string(name) + " changed from " + std::to_string(static_cast<int64_t>(field)) + " to " + std::to_string(static_cast<int64_t>(now));
    }
    return true;
  });
  return text.empty() ? text : "GLOBAL_STATE changed: " + text;
}

bool gradEnabled() { return c10::GradMode::is_enabled(); }
void setGradEnabled(bool enabled) { c10::GradMode::set_enabled(enabled); }
bool inferenceModeEnabled() { return c10::InferenceMode::is_enabled(); }
bool anyAutocastEnabled() { return at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA); }
int64_t torchFunctionModes() { return at::impl::torch_function_mode_enabled() ? FunctionTLS::stack_len() : 0; }
DType defaultDType() { return static_cast<DType>(c10::get_default_dtype_as_scalartype()); }

}  // namespace cdynamo
