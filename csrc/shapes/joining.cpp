// Rules that put tensors together, repeat them, or pick from them.
#include <algorithm>
#include <deque>

#include "shapes/rules.h"

namespace cdynamo {

namespace {

bool cat(Call& call, ResultMeta& out) {
  std::vector<const TensorMeta*> all = call.tensors(0, "tensors");
  int64_t dim = call.integer(1, "dim", 0);
  TypePromotion promotion;
  const TensorMeta* first = nullptr;
  bool channelsLast = true;
  int64_t total = 0;
  if (all.empty()) return false;
  for (const TensorMeta* t : all) {
    if (t->dim() == 0 || !sameDevice(*t, *all[0])) return false;
    promotion.addTensor(*t);
    channelsLast = channelsLast && suggestsChannelsLast(t->sizes, t->strides);
    if (t->dim() == 1 && t->sizes[0] == 0) continue;  // legacy: fits anything
    if (first == nullptr) {
      first = t;
      if (!wrapDim(dim, t->dim())) return false;
    }
    if (t->dim() != first->dim()) return false;
    for (int64_t d = 0; d < t->dim(); d++)
      if (d != dim && t->sizes[d] != first->sizes[d]) return false;
    total += t->sizes[dim];
  }
  if (first == nullptr) return false;
  Dims sizes = first->sizes;
  sizes[dim] = total;
  return giveTensor(out, promotion.result(), first->device, sizes, channelsLast ? channelsLastStrides(sizes) : contiguousStrides(sizes));
}

bool stack(Call& call, ResultMeta& out) {
  std::vector<const TensorMeta*> all = call.tensors(0, "tensors");
  int64_t dim = call.integer(1, "dim", 0);
  if (all.empty() || !wrapDim(dim, all[0]->dim() + 1)) return false;
  TypePromotion promotion;
  for (const TensorMeta* t : all) {
    if (!(t->sizes == all[0]->sizes) || !sameDevice(*t, *all[0])) return false;
    if (t->dim() >= 3 && !isContiguous(*t)) return false;  // may become channels last
    promotion.addTensor(*t);
  }
  Dims sizes = all[0]->sizes;
  sizes.insert(static_cast<uint32_t>(dim), static_cast<int64_t>(all.size()));
  return giveTensor(out, promotion.result(), all[0]->device, sizes);
}

// repeat(*sizes) and tile(*dims)
bool repeat(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims times = call.restInts(1, call.rule.detail ? "dims" : "repeats"), sizes = x.sizes;
  if (call.rule.detail)
    while (times.size() < sizes.size()) times.insert(0, 1);
  if (times.size() < sizes.size()) return false;
  while (sizes.size() < times.size()) sizes.insert(0, 1);
  for (uint32_t i = 0; i < sizes.size(); i++) {
    if (times[i] < 0) return false;
    sizes[i] *= times[i];
  }
  return giveTensor(out, x.dtype, x.device, sizes);
}

bool repeatInterleave(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t times = call.integer(1, "repeats", -1);
  bool along = call.has(2, "dim");
  int64_t dim = call.integer(2, "dim", 0);
  call.ignore(99, "output_size");
  if (times < 0 || call.has(99, "output_size")) return false;
  if (!along) return giveTensor(out, x.dtype, x.device, {x.numel() * times});
  if (x.dim() == 0 || !wrapDim(dim, x.dim())) return false;
  Dims sizes = x.sizes;
  sizes[dim] *= times;
  return giveTensor(out, x.dtype, x.device, sizes);
}

bool roll(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims shifts = call.ints(1, "shifts"), dims = call.has(2, "dims") ? call.ints(2, "dims") : Dims();
  call.ignore(2, "dims");
  if (!isContiguous(x) || suggestsChannelsLast(x.sizes, x.strides) || x.numel() == 0 ||
      (dims.empty() ? shifts.size() != 1 : shifts.size() != dims.size()))
    return false;
  for (int64_t d : dims)
    if (x.dim() == 0 || !wrapDim(d, x.dim())) return false;
  return giveTensor(out, x.dtype, x.device, x.sizes);
}

bool flip(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  uint64_t seen = 0;
  for (int64_t d : call.restInts(1, "dims")) {
    if (!wrapDim(d, x.dim()) || (seen >> d & 1)) return false;
    seen |= uint64_t{1} << d;
  }
  return giveTensor(out, x.dtype, x.device, x.sizes, preservedStrides(x));
}

bool triangle(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  call.integer(1, "diagonal", 0);
  return x.dim() >= 2 && giveTensor(out, x.dtype, x.device, x.sizes);
}

bool indexFits(const TensorMeta& x, const TensorMeta& index) { return index.dtype == DType::Int64 && sameDevice(x, index); }

bool gather(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99);
  const TensorMeta& index = call.tensor(2, "index");
  call.boolean(99, "sparse_grad", false);
  if (!wrapDim(dim, x.dim()) || !indexFits(x, index) || index.dim() != x.dim()) return false;
  for (int64_t d = 0; d < x.dim(); d++)
    if (d != dim && index.sizes[d] > x.sizes[d]) return false;
  return index.numel() > 0 && giveTensor(out, x.dtype, x.device, index.sizes);
}

bool indexSelect(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99);
  const TensorMeta& index = call.tensor(2, "index");
  if (x.dim() == 0 || !wrapDim(dim, x.dim()) || !sameDevice(x, index) || index.dim() > 1) return false;
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32) return false;
  Dims sizes = x.sizes;
  sizes[dim] = index.numel();
  return x.numel() > 0 && giveTensor(out, x.dtype, x.device, sizes);
}

// scatter(input, dim, index, src or value), scatter_add(input, dim, index, src): like the input
bool scatter(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99);
  const TensorMeta& index = call.tensor(2, "index");
  Operand source = call.operand(3, call.has(99, "value") ? "value" : "src");
  if (call.rule.detail && source.tensor == nullptr) return false;
  if (source.tensor == nullptr && source.scalar.kind == Scalar::Float && !isFloating(x.dtype)) return false;
  if (!wrapDim(dim, x.dim()) || !indexFits(x, index) || index.dim() != x.dim() || x.dim() == 0) return false;
  if (source.tensor != nullptr && (source.tensor->dtype != x.dtype || source.tensor->dim() != x.dim())) return false;
  for (int64_t d = 0; d < x.dim(); d++) {
    if (d != dim && index.sizes[d] > x.sizes[d]) return false;
    if (source.tensor != nullptr && index.sizes[d] > source.tensor->sizes[d]) return false;
  }
  if (!(call.rule.flags & Inplace) && !isContiguous(x)) return false;
  return giveTensor(out, x.dtype, x.device, x.sizes, (call.rule.flags & Inplace) ? x.strides : contiguousStrides(x.sizes));
}

// index_add(input, dim, index, source), index_copy: like the input
bool indexWrite(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99);
  const TensorMeta &index = call.tensor(2, "index"), &source = call.tensor(3, "source");
  if (call.rule.detail) call.scalar(99, "alpha");
  if (x.dim() == 0 || !wrapDim(dim, x.dim()) || !indexFits(x, index) || index.dim() != 1 || source.dtype != x.dtype) return false;
  Dims sizes = x.sizes;
  sizes[dim] = index.sizes[0];
  if (!(source.sizes == sizes) || (!(call.rule.flags & Inplace) && !isContiguous(x))) return false;
  return giveTensor(out, x.dtype, x.device, x.sizes, (call.rule.flags & Inplace) ? x.strides : contiguousStrides(x.sizes));
}

bool takeAlong(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &index = call.tensor(1, "indices");
  if (!indexFits(x, index) || index.dim() != x.dim()) return false;
  int64_t dim = call.integer(2, "dim", 99);
  if (x.dim() == 0 || !wrapDim(dim, x.dim())) return false;
  Dims shape = x.sizes, other = index.sizes;
  shape[dim] = other[dim];
  if (!broadcastInto(shape, other)) return false;
  return giveTensor(out, x.dtype, x.device, shape);
}

}  // namespace

void addJoiningRules(RuleTable& table) {
  constexpr uint16_t both = TorchAndMethod, safe = AutocastSafe;
  table.add({"cat", "concat", "concatenate"}, cat, InTorch | InAten);
  table.add({"stack"}, stack, InTorch | InAten);
  table.add({"repeat"}, repeat, AsMethod | InAten, safe, 0);
  table.add({"tile"}, repeat, both, safe, 1);
  table.add({"repeat_interleave"}, repeatInterleave, InTorch | AsMethod, safe);
  table.add({"roll"}, roll, both, safe);
  table.add({"flip"}, flip, both, safe);
  table.add({"tril", "triu"}, triangle, both, safe | HasInplace);
  table.add({"gather"}, gather, both, safe);
  table.add({"index_select"}, indexSelect, both, safe);
  table.add({"scatter"}, scatter, both, HasInplace, 0);
  table.add({"scatter_add"}, scatter, both, HasInplace, 1);
  table.add({"index_add"}, indexWrite, both, HasInplace, 1);
  table.add({"index_copy"}, indexWrite, both, HasInplace, 0);
  table.add({"take_along_dim"}, takeAlong, both);
}

}  // namespace cdynamo
