#include <algorithm>

#include "base/torch_version.h"
#include "shapes/rules.h"

namespace cdynamo {

namespace {

bool embedding(Call& call, ResultMeta& out) {
  const TensorMeta &index = call.tensor(0), &weight = call.tensor(1, "weight");
  call.ignore(2, "padding_idx");
  if (call.has(3, "max_norm")) return false;
  call.ignore(3, "max_norm");
  call.number(4, "norm_type", 2);
  call.boolean(5, "scale_grad_by_freq", false);
  if (call.boolean(6, "sparse", false)) return false;
  if (weight.dim() != 2 || (index.dtype != DType::Int64 && index.dtype != DType::Int32) || !sameDevice(index, weight)) return false;
  if (call.has(2, "padding_idx")) {
    int64_t padding = call.integer(2, "padding_idx", 0);
    if (padding < -weight.sizes[0] || padding >= weight.sizes[0]) return false;
  }
  Dims sizes = index.sizes;
  sizes.push_back(weight.sizes[1]);
  return giveTensor(out, weight.dtype, weight.device, sizes);
}

bool normalizedFits(const TensorMeta& x, const Dims& shape, const TensorMeta* weight, const TensorMeta* bias) {
  if (shape.empty() || static_cast<int64_t>(shape.size()) > x.dim() || !isFloating(x.dtype)) return false;
  for (uint32_t i = 0; i < shape.size(); i++)
    if (x.sizes[x.sizes.size() - shape.size() + i] != shape[i]) return false;
  for (const TensorMeta* t : {weight, bias})
    if (t != nullptr && (!(t->sizes == shape) || t->dtype != x.dtype || !sameDevice(*t, x))) return false;
  return true;
}

bool layerNorm(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims shape = call.ints(1, "normalized_shape");
  const TensorMeta *weight = call.tensorOrNull(2, "weight"), *bias = call.tensorOrNull(3, "bias");
  call.number(4, "eps", 1e-5);
  call.ignore(5, "cudnn_enable");
  return normalizedFits(x, shape, weight, bias) && giveTensor(out, x.dtype, x.device, x.sizes);
}

bool rmsNorm(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims shape = call.ints(1, "normalized_shape");
  const TensorMeta* weight = call.tensorOrNull(2, "weight");
  call.ignore(3, "eps");
  return isContiguous(x) && x.numel() > 0 && normalizedFits(x, shape, weight, nullptr) && giveTensor(out, x.dtype, x.device, x.sizes);
}

// Each given per-channel tensor has one element per channel and suits the input.
bool perChannel(const TensorMeta& x, std::initializer_list<const TensorMeta*> all) {
  if (x.dim() < 2 || !isFloating(x.dtype) || !isContiguous(x) || suggestsChannelsLast(x.sizes, x.strides) || x.numel() == 0) return false;
  for (const TensorMeta* t : all)
    if (t != nullptr && (t->dim() != 1 || t->sizes[0] != x.sizes[1] || t->dtype != x.dtype || !sameDevice(*t, x) || !isContiguous(*t))) return false;
  return true;
}

bool groupNorm(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t groups = call.integer(1, "num_groups", 0);
  const TensorMeta *weight = call.tensorOrNull(2, "weight"), *bias = call.tensorOrNull(3, "bias");
  call.number(4, "eps", 1e-5);
  if (groups <= 0 || !perChannel(x, {weight, bias}) || x.sizes[1] % groups != 0) return false;
  int64_t each = x.numel() / x.sizes[1] / x.sizes[0] * (x.sizes[1] / groups);
  return x.sizes[0] * each > 1 && giveTensor(out, x.dtype, x.device, x.sizes);
}

bool batchNorm(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  const TensorMeta *mean = call.tensorOrNull(1, "running_mean"), *variance = call.tensorOrNull(2, "running_var");
  const TensorMeta *weight = call.tensorOrNull(3, "weight"), *bias = call.tensorOrNull(4, "bias");
  bool training = call.boolean(5, "training", false);
  call.number(6, "momentum", 0.1);
  call.number(7, "eps", 1e-5);
  if (!perChannel(x, {mean, variance, weight, bias}) || (!training && (mean == nullptr || variance == nullptr))) return false;
  if (training && x.numel() / x.sizes[1] <= 1) return false;
  return giveTensor(out, x.dtype, x.device, x.sizes);
}

bool dropout(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  bool functional = call.rule.detail;
  double p = call.number(1, "p", 0.5);
  const char* flag = functional ? "training" : "train";
  if (!functional && !call.has(2, flag)) return false;
  bool training = call.boolean(2, flag, true);
  if (functional && call.boolean(3, "inplace", false)) return false;
  if (!(p >= 0 && p <= 1)) return false;
  if (!training) return giveSelf(call, out, x);
  if (p == 0 || x.numel() == 0) return x.device.type == 0 && giveSelf(call, out, x);
  if (p == 1 || !isFloating(x.dtype) || x.device.type != 0) return false;
  TensorMeta noise = x;
  noise.strides = preservedStrides(x);
  const TensorMeta* operands[] = {&x, &noise};
  return giveTensor(out, x.dtype, x.device, x.sizes, elementwiseStrides(operands, 2, x.sizes));
}

// A parameter given as one int or one per dimension.
bool perDimension(Call& call, unsigned position, const char* name, uint32_t rank, int64_t otherwise, Dims& out) {
  if (!call.has(position, name)) {
    call.ignore(position, name);
    out = Dims(rank, otherwise);
    return true;
  }
  out = call.ints(position, name);
  if (out.size() == 1 && rank > 1) out = Dims(rank, out[0]);
  return !call.bad() && out.size() == rank;
}

// conv1d, conv2d, conv3d: (input, weight, bias, stride, padding, dilation, groups)
bool convolution(Call& call, ResultMeta& out) {
  uint32_t rank = static_cast<uint32_t>(call.rule.detail);
  const TensorMeta &x = call.tensor(0), &weight = call.tensor(1, "weight");
  const TensorMeta* bias = call.tensorOrNull(2, "bias");
  Dims stride, padding, dilation;
  if (!perDimension(call, 3, "stride", rank, 1, stride) || !perDimension(call, 4, "padding", rank, 0, padding) ||
      !perDimension(call, 5, "dilation", rank, 1, dilation))
    return false;
  int64_t groups = call.integer(6, "groups", 1);
  bool batched = x.sizes.size() == rank + 2;
  if ((!batched && x.sizes.size() != rank + 1) || weight.sizes.size() != rank + 2 || groups <= 0) return false;
  if (!isFloating(x.dtype) || x.dtype != weight.dtype || !sameDevice(x, weight) || !isContiguous(x) || !isContiguous(weight)) return false;
  if (suggestsChannelsLast(x.sizes, x.strides) || suggestsChannelsLast(weight.sizes, weight.strides)) return false;
  uint32_t channel = batched ? 1 : 0;
  if (x.numel() == 0 || x.sizes[channel] != weight.sizes[1] * groups || weight.sizes[0] % groups != 0 || weight.sizes[0] == 0) return false;
  if (bias != nullptr && (bias->dim() != 1 || bias->sizes[0] != weight.sizes[0] || bias->dtype != x.dtype)) return false;
  Dims sizes;
  if (batched) sizes.push_back(x.sizes[0]);
  sizes.push_back(weight.sizes[0]);
  for (uint32_t d = 0; d < rank; d++) {
    int64_t kernel = dilation[d] * (weight.sizes[d + 2] - 1) + 1, span = x.sizes[channel + 1 + d] + 2 * padding[d] - kernel;
    if (stride[d] <= 0 || dilation[d] <= 0 || padding[d] < 0 || span < 0 || weight.sizes[d + 2] == 0) return false;
    sizes.push_back(span / stride[d] + 1);
  }
  return giveTensor(out, x.dtype, x.device, sizes);
}

int64_t pooledSize(int64_t size, int64_t kernel, int64_t padding, int64_t stride, int64_t dilation, bool ceil) {
  int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1 + (ceil ? stride - 1 : 0);
  int64_t count = (span >= 0 ? span / stride : -((-span + stride - 1) / stride)) + 1;
  if (ceil && (count - 1) * stride >= size + padding) count--;
  return count;
}

// max_poolNd: (input, kernel_size, stride, padding, dilation, ceil_mode, return_indices);
// avg_poolNd: (input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
bool pool(Call& call, ResultMeta& out) {
  bool average = call.rule.detail < 0;
  auto rank = static_cast<uint32_t>(std::abs(call.rule.detail));
  const TensorMeta& x = call.tensor(0);
  Dims kernel, stride, padding, dilation(rank, 1);
  if (!call.has(1, "kernel_size") || !perDimension(call, 1, "kernel_size", rank, 1, kernel)) return false;
  if (const Arg* given = call.arg(2, "stride"); given == nullptr || isNone(*given))
    stride = kernel;
  else if (!perDimension(call, 2, "stride", rank, 1, stride))
    return false;
  if (!perDimension(call, 3, "padding", rank, 0, padding)) return false;
  if (!average && !perDimension(call, 4, "dilation", rank, 1, dilation)) return false;
  bool ceil = call.boolean(average ? 4 : 5, "ceil_mode", false);
  if (average) {
    call.boolean(5, "count_include_pad", true);
    if (call.has(6, "divisor_override")) return false;
    call.ignore(6, "divisor_override");
  } else if (call.boolean(6, "return_indices", false)) {
    return false;
  }
  if ((x.sizes.size() != rank + 2 && x.sizes.size() != rank + 1) || !isFloating(x.dtype) || !isContiguous(x) || x.numel() == 0) return false;
  if (suggestsChannelsLast(x.sizes, x.strides) || (average && rank == 3 && x.sizes.size() == 4)) return false;
  Dims sizes = x.sizes;
  uint32_t first = sizes.size() - rank;
  for (uint32_t d = 0; d < rank; d++) {
    if (kernel[d] <= 0 || stride[d] <= 0 || dilation[d] <= 0 || padding[d] < 0 || padding[d] * 2 > kernel[d]) return false;
    sizes[first + d] = pooledSize(x.sizes[first + d], kernel[d], padding[d], stride[d], dilation[d], ceil);
    if (sizes[first + d] < 1) return false;
  }
  return giveTensor(out, x.dtype, x.device, sizes);
}

bool adaptivePool(Call& call, ResultMeta& out) {
  auto rank = static_cast<uint32_t>(call.rule.detail);
  const TensorMeta& x = call.tensor(0);
  Dims wanted;
  if (!call.has(1, "output_size") || !perDimension(call, 1, "output_size", rank, 1, wanted)) return false;
  if ((x.sizes.size() != rank + 2 && x.sizes.size() != rank + 1) || !isFloating(x.dtype) || !isContiguous(x) || x.numel() == 0) return false;
  if (suggestsChannelsLast(x.sizes, x.strides)) return false;
  Dims sizes = x.sizes;
  for (uint32_t d = 0; d < rank; d++) {
    if (wanted[d] <= 0) return false;
    sizes[sizes.size() - rank + d] = wanted[d];
  }
  return giveTensor(out, x.dtype, x.device, sizes);
}

bool pad(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims amounts = call.ints(1, "pad"), sizes = x.sizes;
  if (call.text(2, "mode", "constant") != "constant") return false;
  Scalar value = call.scalar(3, "value");
  if (value.kind == Scalar::Float && !isFloating(x.dtype)) return false;
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > x.sizes.size() || amounts.empty()) return false;
  bool grows = false;
  for (uint32_t i = 0; i < amounts.size(); i++) {
    if (amounts[i] < 0) return false;
    grows = grows || amounts[i] > 0;
    sizes[sizes.size() - 1 - i / 2] += amounts[i];
  }
  if (!isContiguous(x) && (!grows || x.dim() >= 4)) return false;
  if (suggestsChannelsLast(x.sizes, x.strides)) return false;
  if (!grows) return giveTensor(out, x.dtype, x.device, sizes, preservedStrides(x));
  return x.numel() > 0 && giveTensor(out, x.dtype, x.device, sizes);
}

// Losses of two equal-sized floats: a number for "mean" and "sum".
bool pairLoss(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &target = call.tensor(1, "target");
  for (const char* name : {"beta", "delta"}) call.ignore(99, name);
  std::string_view reduction = call.text(99, "reduction", "mean");
  if (!(x.sizes == target.sizes) || x.dtype != target.dtype || !isFloating(x.dtype) || !sameDevice(x, target)) return false;
  return (reduction == "mean" || reduction == "sum") && giveTensor(out, x.dtype, x.device, {});
}

// cross_entropy and nll_loss with class indices, reduced to a number
bool classLoss(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &target = call.tensor(1, "target");
  const TensorMeta* weight = call.tensorOrNull(2, "weight");
  call.integer(99, "ignore_index", -100);
  std::string_view reduction = call.text(99, "reduction", "mean");
  if (call.rule.detail) call.number(99, "label_smoothing", 0);
  if (target.dtype != DType::Int64 || !isFloating(x.dtype) || !sameDevice(x, target) || x.dim() < 1) return false;
  if (reduction != "mean" && reduction != "sum") return false;
  Dims expected = x.sizes;
  int64_t classes = x.sizes[x.dim() == 1 ? 0 : 1];
  expected.erase(x.dim() == 1 ? 0 : 1);
  if (!(target.sizes == expected) || x.numel() == 0) return false;
  if (weight != nullptr && (weight->dtype != x.dtype || weight->dim() != 1 || weight->sizes[0] != classes)) return false;
  return giveTensor(out, x.dtype, x.device, {});
}

// scaled_dot_product_attention on the CPU, for what its flash kernel surely takes. The result is laid out like the query from
// torch 2.13 on; before, as (batch, length, heads, size).
bool attention(Call& call, ResultMeta& out) {
  const TensorMeta &query = call.tensor(0, "query"), &key = call.tensor(1, "key"), &value = call.tensor(2, "value");
  const TensorMeta* mask = call.tensorOrNull(3, "attn_mask");
  double p = call.number(4, "dropout_p", 0);
  bool causal = call.boolean(5, "is_causal", false);
  call.number(99, "scale", 0);
  if (p != 0 || call.boolean(99, "enable_gqa", false)) return false;
  for (const TensorMeta* t : {&query, &key, &value}) {
    if (t->dim() != 4 || t->dtype != query.dtype || t->strides[3] != 1 || t->numel() == 0) return false;
    if (t->sizes[0] != query.sizes[0] || t->sizes[1] != query.sizes[1] || t->sizes[3] != query.sizes[3]) return false;
  }
  if (query.dtype != DType::Float32 && query.dtype != DType::BFloat16) return false;
  if (key.sizes[2] != value.sizes[2] || (causal && query.sizes[2] != key.sizes[2])) return false;
  int64_t batch = query.sizes[0], heads = query.sizes[1], length = query.sizes[2], size = query.sizes[3];
  if (mask != nullptr) {
    if (causal || mask->requiresGrad || (mask->dtype != DType::Bool && mask->dtype != query.dtype)) return false;
    if ((mask->dim() != 2 && mask->dim() != 4) || mask->strides[mask->dim() - 1] != 1) return false;
    Dims full{batch, heads, length, key.sizes[2]}, shape = full;
    if (!broadcastInto(shape, mask->sizes) || !(shape == full)) return false;
    if (mask->sizes[mask->dim() - 1] != full[3] || mask->sizes[mask->dim() - 2] != full[2]) return false;
  }
  Dims strides = preservedStrides(query), older{length * heads * size, size, heads * size, 1};
  return (!torchIsOlderThan(13) || strides == older) && giveTensor(out, query.dtype, query.device, query.sizes, strides);
}

}  // namespace

void addNNRules(RuleTable& table) {
  table.add({"embedding"}, embedding, InFunctional, AutocastSafe);
  table.add({"layer_norm"}, layerNorm, InFunctional | InTorch, 0);
  table.add({"rms_norm"}, rmsNorm, InFunctional | InTorch, CpuOnly);
  table.add({"group_norm"}, groupNorm, InFunctional, CpuOnly);
  table.add({"batch_norm"}, batchNorm, InFunctional, CpuOnly);
  table.add({"dropout"}, dropout, InFunctional, AutocastSafe, 1);
  table.add({"dropout"}, dropout, InTorch, AutocastSafe, 0);
  table.add({"conv1d"}, convolution, InFunctional | InTorch, CpuOnly, 1);
  table.add({"conv2d"}, convolution, InFunctional | InTorch, CpuOnly, 2);
  table.add({"conv3d"}, convolution, InFunctional | InTorch, CpuOnly, 3);
  table.add({"max_pool1d"}, pool, InFunctional | InTorch, CpuOnly, 1);
  table.add({"max_pool2d"}, pool, InFunctional | InTorch, CpuOnly, 2);
  table.add({"max_pool3d"}, pool, InFunctional | InTorch, CpuOnly, 3);
  table.add({"avg_pool1d"}, pool, InFunctional | InTorch, CpuOnly, -1);
  table.add({"avg_pool2d"}, pool, InFunctional | InNN, CpuOnly, -2);
  table.add({"avg_pool3d"}, pool, InFunctional | InNN, CpuOnly, -3);
  table.add({"adaptive_avg_pool1d"}, adaptivePool, InFunctional | InTorch, CpuOnly, 1);
  table.add({"adaptive_avg_pool2d"}, adaptivePool, InFunctional | InNN, CpuOnly, 2);
  table.add({"adaptive_avg_pool3d"}, adaptivePool, InFunctional | InNN, CpuOnly, 3);
  table.add({"pad"}, pad, InFunctional, AutocastSafe);
  table.add({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}, pairLoss, InFunctional);
  table.add({"cross_entropy"}, classLoss, InFunctional, 0, 1);
  table.add({"nll_loss"}, classLoss, InFunctional, 0, 0);
  table.add({"scaled_dot_product_attention"}, attention, InFunctional | InNN, CpuOnly);
}

}  // namespace cdynamo
