#include "shapes/rules.h"

namespace cdynamo {

namespace {

bool agree(const TensorMeta& a, const TensorMeta& b) { return a.dtype == b.dtype && a.dtype != DType::Bool && sameDevice(a, b); }

// Sizes of torch.matmul; false where the operands do not fit.
bool matmulSizes(const TensorMeta& a, const TensorMeta& b, Dims& out) {
  int64_t left = a.dim(), right = b.dim();
  if (left == 0 || right == 0) return false;
  if (a.sizes[left - 1] != b.sizes[right >= 2 ? right - 2 : 0]) return false;
  out.clear();
  Dims rest;
  for (int64_t d = 0; d < left - 2; d++) out.push_back(a.sizes[d]);
  for (int64_t d = 0; d < right - 2; d++) rest.push_back(b.sizes[d]);
  if (!broadcastInto(out, rest)) return false;
  if (left >= 2) out.push_back(a.sizes[left - 2]);
  if (right >= 2) out.push_back(b.sizes[right - 1]);
  return true;
}

bool matmul(Call& call, ResultMeta& out) {
  const TensorMeta &a = call.tensor(0), &b = call.tensor(1, "other");
  Dims sizes;
  return agree(a, b) && matmulSizes(a, b, sizes) && giveTensor(out, a.dtype, a.device, sizes);
}

// mm, bmm, mv, dot: both operands of a fixed rank.
bool product(Call& call, ResultMeta& out) {
  int leftRank = call.rule.detail / 10, rightRank = call.rule.detail % 10;
  const char* second = rightRank == 1 ? (leftRank == 2 ? "vec" : "tensor") : "mat2";
  const TensorMeta &a = call.tensor(0), &b = call.tensor(1, second);
  Dims sizes;
  if (a.dim() != leftRank || b.dim() != rightRank || !agree(a, b)) return false;
  if (leftRank == 3 && a.sizes[0] != b.sizes[0]) return false;
  return matmulSizes(a, b, sizes) && giveTensor(out, a.dtype, a.device, sizes);
}

// addmm, addmv, baddbmm: (input, first, second, *, beta=1, alpha=1)
bool addProduct(Call& call, ResultMeta& out) {
  int leftRank = call.rule.detail / 10, rightRank = call.rule.detail % 10;
  const char* names[2][3] = {{"mat", "vec", ""}, {"mat1", "mat2", ""}};
  bool batched = leftRank == 3;
  const TensorMeta& base = call.tensor(0);
  const TensorMeta& a = call.tensor(1, batched ? "batch1" : names[rightRank == 2][0]);
  const TensorMeta& b = call.tensor(2, batched ? "batch2" : names[rightRank == 2][1]);
  Scalar beta = call.scalar(99, "beta"), alpha = call.scalar(99, "alpha");
  if (isIntegral(base.dtype, true) && (beta.kind == Scalar::Float || alpha.kind == Scalar::Float)) return false;
  Dims sizes;
  if (a.dim() != leftRank || b.dim() != rightRank || !agree(a, b) || !agree(base, a)) return false;
  if (batched && a.sizes[0] != b.sizes[0]) return false;
  if (!matmulSizes(a, b, sizes)) return false;
  Dims shape = sizes;
  if (!broadcastInto(shape, base.sizes) || !(shape == sizes)) return false;
  return giveTensor(out, a.dtype, a.device, sizes);
}

bool linear(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &weight = call.tensor(1, "weight");
  const TensorMeta* bias = call.tensorOrNull(2, "bias");
  if (x.dim() == 0 || weight.dim() != 2 || !agree(x, weight) || x.sizes[x.dim() - 1] != weight.sizes[1]) return false;
  if (bias != nullptr && (!agree(*bias, x) || bias->dim() != 1 || bias->sizes[0] != weight.sizes[0])) return false;
  Dims sizes = x.sizes;
  sizes.back() = weight.sizes[0];
  return giveTensor(out, x.dtype, x.device, sizes);
}

bool outer(Call& call, ResultMeta& out) {
  const TensorMeta &a = call.tensor(0), &b = call.tensor(1, "vec2");
  if (a.dim() != 1 || b.dim() != 1 || !sameDevice(a, b)) return false;
  return giveTensor(out, promoteTypes(a.dtype, b.dtype), a.device, {a.sizes[0], b.sizes[0]});
}

}  // namespace

void addMatmulRules(RuleTable& table) {
  table.add({"matmul"}, matmul, TorchAndMethod);
  table.add({"matmul"}, matmul, InOperator);
  table.add({"__matmul__"}, matmul, AsMethod);
  table.add({"__rmatmul__"}, matmul, AsMethod, Reflected);
  table.add({"mm"}, product, TorchAndMethod, 0, 22);
  table.add({"bmm"}, product, TorchAndMethod, 0, 33);
  table.add({"mv"}, product, TorchAndMethod, 0, 21);
  table.add({"dot"}, product, TorchAndMethod, 0, 11);
  table.add({"addmm"}, addProduct, TorchAndMethod, HasInplace, 22);
  table.add({"baddbmm"}, addProduct, TorchAndMethod, HasInplace, 33);
  table.add({"addmv"}, addProduct, TorchAndMethod, HasInplace, 21);
  table.add({"linear"}, linear, InFunctional | InNN | InAten);
  table.add({"outer", "ger"}, outer, TorchAndMethod);
}

}  // namespace cdynamo
