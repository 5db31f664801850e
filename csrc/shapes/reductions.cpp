#include <algorithm>

#include "shapes/rules.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// Sizes after reducing `dims` (all where empty); false where a dimension is out of range or given twice.
bool reducedSizes(const TensorMeta& x, const Dims& dims, bool keep, Dims& out, uint64_t* chosen = nullptr) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    if (!wrapDim(d, x.dim()) || (mask >> d & 1)) return false;
    mask |= uint64_t{1} << d;
  }
  if (dims.empty()) mask = ~uint64_t{0};
  out.clear();
  for (int64_t d = 0; d < x.dim(); d++) {
    if (!(mask >> d & 1))
      out.push_back(x.sizes[d]);
    else if (keep)
      out.push_back(1);
  }
  if (chosen != nullptr) *chosen = mask;
  return true;
}

Dims optionalDims(Call& call, unsigned position, const char* name) {
  if (call.has(position, name)) return call.ints(position, name);
  call.ignore(position, name);
  return {};
}

enum SumKind : int32_t { Sum, Mean, Nansum };

// sum and mean: (input, dim=None, keepdim=False, *, dtype=None)
bool sum(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims sizes;
  Dims dims = optionalDims(call, 1, "dim");
  if (!reducedSizes(x, dims, call.boolean(2, "keepdim", false), sizes)) return false;
  DType dtype = call.dtype(99, "dtype", DType::Undefined);
  if (dtype == DType::Undefined) dtype = isIntegral(x.dtype, true) && call.rule.detail == Sum ? DType::Int64 : x.dtype;
  if (call.rule.detail != Sum && (!isFloating(dtype) || !isFloating(x.dtype))) return false;
  return !isComplex(dtype) && giveTensor(out, dtype, x.device, sizes);
}

bool prod(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims sizes;
  Dims dims = call.has(1, "dim") ? Dims{call.integer(1, "dim", 0)} : Dims();
  if (!reducedSizes(x, dims, call.boolean(2, "keepdim", false), sizes)) return false;
  DType dtype = call.dtype(99, "dtype", isIntegral(x.dtype, true) ? DType::Int64 : x.dtype);
  return !isComplex(dtype) && giveTensor(out, dtype, x.device, sizes);
}

bool anyZero(const TensorMeta& x, uint64_t chosen) {
  for (int64_t d = 0; d < x.dim(); d++)
    if (x.sizes[d] == 0 && (chosen >> d & 1)) return true;
  return false;
}

bool extreme(Call& call, ResultMeta& out) {  // amax, amin
  const TensorMeta& x = call.tensor(0);
  Dims sizes, dims = optionalDims(call, 1, "dim");
  uint64_t chosen = 0;
  if (!reducedSizes(x, dims, call.boolean(2, "keepdim", false), sizes, &chosen)) return false;
  return !anyZero(x, chosen) && giveTensor(out, x.dtype, x.device, sizes);
}

bool giveMaximum(Call& call, ResultMeta& out, const TensorMeta& x, const TensorMeta& other) {
  TypePromotion promotion;
  promotion.addTensor(x);
  promotion.addTensor(other);
  const TensorMeta* operands[] = {&x, &other};
  Dims shape = x.sizes;
  call.ignore(1, "other");
  return sameDevice(x, other) && broadcastInto(shape, other.sizes) &&
         giveTensor(out, promotion.result(), x.device, shape, elementwiseStrides(operands, 2, shape));
}

// max and min: of all, along a dimension, or of two tensors.
bool maximum(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  bool along = call.has(1, "dim");
  if (const Arg* second = call.arg(1, "other"); second != nullptr && tensorOf(*second) != nullptr)
    return giveMaximum(call, out, x, *tensorOf(*second));
  if (!along) return x.numel() > 0 && giveTensor(out, x.dtype, x.device, {});
  Dims sizes;
  uint64_t chosen = 0;
  int64_t dim = call.integer(1, "dim", 0);
  if (!reducedSizes(x, {dim}, call.boolean(2, "keepdim", false), sizes, &chosen) || anyZero(x, chosen)) return false;
  static const char* const classes[] = {"max", "min", "median", "mode"};
  return giveNamedTuple(out, classes[call.rule.detail], {makeMeta(x.dtype, x.device, sizes), makeMeta(DType::Int64, x.device, sizes)});
}

bool argExtreme(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims sizes, dims = call.has(1, "dim") ? Dims{call.integer(1, "dim", 0)} : Dims();
  call.ignore(1, "dim");
  uint64_t chosen = 0;
  if (!reducedSizes(x, dims, call.boolean(2, "keepdim", false), sizes, &chosen)) return false;
  return x.dtype != DType::Bool && !anyZero(x, chosen) && giveTensor(out, DType::Int64, x.device, sizes);
}

bool anyAll(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims sizes, dims;
  if (call.has(1, "dim")) {
    dims = call.ints(1, "dim");
    if (dims.empty()) return false;
  }
  call.ignore(1, "dim");
  if (!reducedSizes(x, dims, call.boolean(2, "keepdim", false), sizes)) return false;
  return giveTensor(out, x.dtype == DType::UInt8 ? DType::UInt8 : DType::Bool, x.device, sizes);
}

// var and std: (input, dim=None, *, correction=1, keepdim=False) and (input, dim, unbiased, keepdim)
bool variance(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims sizes, dims = optionalDims(call, 1, "dim");
  call.boolean(2, "unbiased", true);
  call.scalar(99, "correction");
  if (!isFloating(x.dtype) || !reducedSizes(x, dims, call.boolean(3, "keepdim", false), sizes)) return false;
  if (call.rule.detail < 0) return giveTensor(out, x.dtype, x.device, sizes);
  TensorMeta item = makeMeta(x.dtype, x.device, sizes);
  out.kind = ResultMeta::Tuple;
  for (int i = 0; i < 2; i++) {
    out.items.emplace_back();
    giveTensor(out.items.back(), item.dtype, item.device, item.sizes);
  }
  return true;
}

// norm(input, p="fro", dim=None, keepdim=False), vector_norm(input, ord=2, dim=None, keepdim=False)
bool norm(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  const char* name = call.rule.detail ? "ord" : "p";
  if (const Arg* p = call.arg(1, name); p != nullptr && p->kind == Arg::Constant && PyUnicode_Check(p->object.get())) {
    if (call.text(1, name, "") != "fro") return false;
  } else if (call.scalar(1, name).kind == Scalar::Bool) {
    return false;
  }
  Dims sizes, dims = optionalDims(call, 2, "dim");
  if (x.numel() == 0 || !isFloating(x.dtype)) return false;
  return reducedSizes(x, dims, call.boolean(3, "keepdim", false), sizes) && giveTensor(out, x.dtype, x.device, sizes);
}

bool logsumexp(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims sizes, dims = call.ints(1, "dim");
  if (dims.empty() || !isFloating(x.dtype)) return false;
  return reducedSizes(x, dims, call.boolean(2, "keepdim", false), sizes) && giveTensor(out, x.dtype, x.device, sizes);
}

// cumsum, cumprod: (input, dim, *, dtype=None)
bool cumulative(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99);
  DType dtype = call.dtype(99, "dtype", isIntegral(x.dtype, true) ? DType::Int64 : x.dtype);
  return wrapDim(dim, x.dim()) && !isComplex(dtype) && giveTensor(out, dtype, x.device, x.sizes);
}

// torch.softmax(input, dim, dtype), F.softmax(input, dim, _stacklevel, dtype)
bool softmax(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  bool functional = call.rule.detail;
  int64_t dim = call.integer(1, "dim", 99);
  if (functional) call.integer(2, "_stacklevel", 3);
  DType dtype = call.dtype(functional ? 3 : 2, "dtype", x.dtype);
  return wrapDim(dim, x.dim()) && isFloating(dtype) && giveTensor(out, dtype, x.device, x.sizes);
}

bool topk(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t k = call.integer(1, "k", -1), dim = call.integer(2, "dim", -1);
  call.boolean(3, "largest", true);
  call.boolean(4, "sorted", true);
  if (!wrapDim(dim, x.dim()) || x.dtype == DType::Bool || k < 0 || k > (x.dim() > 0 ? x.sizes[dim] : 1)) return false;
  Dims sizes = x.sizes;
  if (x.dim() > 0) sizes[dim] = k;
  return giveNamedTuple(out, "topk", {makeMeta(x.dtype, x.device, sizes), makeMeta(DType::Int64, x.device, sizes)});
}

bool sort(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", -1);
  call.boolean(2, "descending", false);
  call.boolean(99, "stable", false);
  if (!wrapDim(dim, x.dim())) return false;
  TensorMeta values = makeMeta(x.dtype, x.device, x.sizes), indices = makeMeta(DType::Int64, x.device, x.sizes);
  values.strides = indices.strides = preservedStrides(x);
  if (call.rule.detail) return giveTensor(out, DType::Int64, x.device, x.sizes, indices.strides);
  return giveNamedTuple(out, "sort", {values, indices});
}

}  // namespace

void addReductionRules(RuleTable& table) {
  constexpr uint16_t both = TorchAndMethod;
  table.add({"sum"}, sum, both, 0, Sum);
  table.add({"nansum"}, sum, both, 0, Nansum);
  table.add({"mean"}, sum, both, AutocastSafe, Mean);
  table.add({"prod"}, prod, both);
  table.add({"amax", "amin"}, extreme, both, AutocastSafe);
  table.add({"max"}, maximum, both, AutocastSafe, 0);
  table.add({"min"}, maximum, both, AutocastSafe, 1);
  table.add({"argmax", "argmin"}, argExtreme, both, NotDifferentiable | AutocastSafe);
  table.add({"any", "all"}, anyAll, both, NotDifferentiable | AutocastSafe);
  table.add({"var", "std"}, variance, both, 0, -1);
  table.add({"var_mean", "std_mean"}, variance, InTorch, 0, 0);
  table.add({"norm"}, norm, InTorch | AsMethod, 0, 0);
  table.add({"vector_norm"}, norm, InLinalg, 0, 1);
  table.add({"logsumexp"}, logsumexp, both);
  table.add({"cumsum", "cumprod"}, cumulative, both);
  table.add({"softmax", "log_softmax"}, softmax, both, 0, 0);
  table.add({"softmax", "log_softmax"}, softmax, InSpecial, 0, 0);
  table.add({"softmax", "log_softmax"}, softmax, InFunctional, 0, 1);
  table.add({"topk"}, topk, both, AutocastSafe);
  table.add({"sort"}, sort, both, AutocastSafe, 0);
  table.add({"argsort"}, sort, both, NotDifferentiable | AutocastSafe, 1);
}

}  // namespace cdynamo
