#include <algorithm>

#include "shapes/rules.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

bool giveShape(Call& call, ResultMeta& out, const TensorMeta& x, Dims shape, bool mayCopy) {
  Dims strides;
  if (!inferShape(shape, x.numel())) return false;
  if (viewStrides(x, shape, strides)) return giveView(call, out, x, shape, strides, x.storageOffset);
  return mayCopy && giveTensor(out, x.dtype, x.device, shape);
}

bool givePermuted(Call& call, ResultMeta& out, const TensorMeta& x, const Dims& order) {
  Dims sizes, strides;
  for (int64_t d : order) {
    sizes.push_back(x.sizes[d]);
    strides.push_back(x.strides[d]);
  }
  return giveView(call, out, x, sizes, strides, x.storageOffset);
}

Dims identityOrder(const TensorMeta& x) {
  Dims order;
  for (int64_t d = 0; d < x.dim(); d++) order.push_back(d);
  return order;
}

bool view(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  const Arg* target = call.arg(1, "size");
  DType dtype;
  if (target != nullptr && target->kind == Arg::Constant && dtypeFrom(target->object.get(), dtype)) {
    if (itemSize(dtype) != itemSize(x.dtype) || isComplex(dtype)) return false;
    giveView(call, out, x, x.sizes, x.strides, x.storageOffset);
    out.tensor.dtype = dtype;
    return dtype == x.dtype || !x.requiresGrad;
  }
  return giveShape(call, out, x, call.restInts(1, "size"), false);
}

bool reshape(Call& call, ResultMeta& out) { return giveShape(call, out, call.tensor(0), call.restInts(1, "shape"), true); }

bool viewAs(Call& call, ResultMeta& out) { return giveShape(call, out, call.tensor(0), call.tensor(1, "other").sizes, call.rule.detail); }

bool flatten(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t start = call.integer(1, "start_dim", 0), end = call.integer(2, "end_dim", -1);
  if (!wrapDim(start, x.dim()) || !wrapDim(end, x.dim()) || start > end) return false;
  if (x.dim() == 0) return giveShape(call, out, x, {1}, true);
  if (start == end) return giveSelf(call, out, x);
  Dims shape;
  int64_t merged = 1;
  for (int64_t d = 0; d < x.dim(); d++) {
    if (d < start || d > end)
      shape.push_back(x.sizes[d]);
    else
      merged *= x.sizes[d];
    if (d == end) shape.push_back(merged);
  }
  return giveShape(call, out, x, shape, true);
}

bool ravel(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  if (!isContiguous(x)) return giveTensor(out, x.dtype, x.device, {x.numel()});
  return giveShape(call, out, x, {x.numel()}, false);
}

bool unflatten(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 0);
  Dims parts = call.restInts(2, "sizes"), shape;
  if (x.dim() == 0 || !wrapDim(dim, x.dim()) || parts.empty() || !inferShape(parts, x.sizes[dim])) return false;
  for (int64_t d = 0; d < x.dim(); d++) {
    if (d == dim)
      for (int64_t part : parts) shape.push_back(part);
    else
      shape.push_back(x.sizes[d]);
  }
  return giveShape(call, out, x, shape, false);
}

bool giveTransposed(Call& call, ResultMeta& out, const TensorMeta& x, int64_t first, int64_t second) {
  if (!wrapDim(first, x.dim()) || !wrapDim(second, x.dim())) return false;
  Dims order = identityOrder(x);
  if (x.dim() > 0) std::swap(order[first], order[second]);
  return givePermuted(call, out, x, order);
}

bool transpose(Call& call, ResultMeta& out) {
  const char *first = call.rule.detail ? "axis0" : "dim0", *second = call.rule.detail ? "axis1" : "dim1";
  if (!call.has(1, first) || !call.has(2, second)) return false;
  return giveTransposed(call, out, call.tensor(0), call.integer(1, first, 0), call.integer(2, second, 0));
}

bool matrixTranspose(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  return x.dim() >= 2 && giveTransposed(call, out, x, -1, -2);
}

// t() and x.T: two dimensions at most.
bool transposed(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  if (x.dim() == 2) return giveTransposed(call, out, x, 0, 1);
  return x.dim() < 2 && giveView(call, out, x, x.sizes, x.strides, x.storageOffset);
}

bool permute(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims order = call.restInts(1, "dims");
  if (static_cast<int64_t>(order.size()) != x.dim()) return false;
  uint64_t seen = 0;
  for (int64_t& d : order) {
    if (!wrapDim(d, x.dim()) || (seen >> d & 1)) return false;
    seen |= uint64_t{1} << d;
  }
  return givePermuted(call, out, x, order);
}

bool movedim(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims from = call.ints(1, "source"), to = call.ints(2, "destination");
  if (from.size() != to.size() || x.dim() == 0) return false;
  Dims order(static_cast<uint32_t>(x.dim()), -1);
  uint64_t moved = 0;
  for (uint32_t i = 0; i < from.size(); i++) {
    if (!wrapDim(from[i], x.dim()) || !wrapDim(to[i], x.dim()) || (moved >> from[i] & 1) || order[to[i]] != -1) return false;
    moved |= uint64_t{1} << from[i];
    order[to[i]] = from[i];
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d != -1) continue;
    while (moved >> next & 1) next++;
    d = next++;
  }
  return givePermuted(call, out, x, order);
}

bool squeeze(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims sizes, strides;
  uint64_t chosen = ~uint64_t{0};
  if (call.has(1, "dim")) {
    chosen = 0;
    for (int64_t d : call.ints(1, "dim")) {
      if (!wrapDim(d, x.dim())) return false;
      chosen |= uint64_t{1} << d;
    }
  }
  for (int64_t d = 0; d < x.dim(); d++) {
    if (x.sizes[d] == 1 && (chosen >> d & 1)) continue;
    sizes.push_back(x.sizes[d]);
    strides.push_back(x.strides[d]);
  }
  return giveView(call, out, x, sizes, strides, x.storageOffset);
}

bool unsqueeze(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99);
  if (!wrapDim(dim, x.dim() + 1)) return false;
  Dims sizes = x.sizes, strides = x.strides;
  int64_t stride = dim >= x.dim() ? 1 : x.sizes[dim] * x.strides[dim];
  sizes.insert(static_cast<uint32_t>(dim), 1);
  strides.insert(static_cast<uint32_t>(dim), stride);
  return giveView(call, out, x, sizes, strides, x.storageOffset);
}

bool expand(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims wanted = call.rule.detail == 1 ? call.tensor(1, "other").sizes : call.restInts(1, call.rule.detail == 2 ? "size" : "size");
  Dims sizes, strides;
  return expandTo(x, wanted, sizes, strides) && giveView(call, out, x, sizes, strides, x.storageOffset);
}

bool narrow(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99), start = call.integer(2, "start", 0), length = call.integer(3, "length", -1);
  if (x.dim() == 0 || !wrapDim(dim, x.dim()) || length < 0) return false;
  int64_t size = x.sizes[dim];
  if (start < 0) start += size;
  if (start < 0 || start + length > size) return false;
  Dims sizes = x.sizes;
  sizes[dim] = length;
  return giveView(call, out, x, sizes, x.strides, x.storageOffset + start * x.strides[dim]);
}

bool select(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 99), index = call.integer(2, "index", INT64_MAX);
  if (x.dim() == 0 || !wrapDim(dim, x.dim())) return false;
  int64_t size = x.sizes[dim];
  if (index < -size || index >= size) return false;
  if (index < 0) index += size;
  Dims sizes = x.sizes, strides = x.strides;
  sizes.erase(static_cast<uint32_t>(dim));
  strides.erase(static_cast<uint32_t>(dim));
  return giveView(call, out, x, sizes, strides, x.storageOffset + index * x.strides[dim]);
}

// A tuple of views of `x`, the pieces along `dim`.
bool givePieces(Call& call, ResultMeta& out, const TensorMeta& x, int64_t dim, const Dims& pieces) {
  out.kind = ResultMeta::Tuple;
  int64_t at = 0;
  for (int64_t piece : pieces) {
    Dims sizes = x.sizes;
    sizes[dim] = piece;
    out.items.emplace_back();
    giveView(call, out.items.back(), x, sizes, x.strides, x.storageOffset + at * x.strides[dim]);
    at += piece;
  }
  return true;
}

Dims equalPieces(int64_t size, int64_t piece) {
  Dims pieces;
  if (size == 0) pieces.push_back(0);
  for (int64_t left = size; left > 0; left -= piece) pieces.push_back(std::min(left, piece));
  return pieces;
}

bool split(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  bool single = false;
  const char* name = call.rule.detail ? "split_sizes" : (call.has(99, "split_size") ? "split_size" : "split_size_or_sections");
  Dims pieces = call.ints(1, name, &single);
  int64_t dim = call.integer(2, "dim", 0), total = 0;
  if (x.dim() == 0 || !wrapDim(dim, x.dim())) return false;
  if (single) {
    if (pieces[0] <= 0) return false;
    return givePieces(call, out, x, dim, equalPieces(x.sizes[dim], pieces[0]));
  }
  for (int64_t piece : pieces) {
    if (piece < 0) return false;
    total += piece;
  }
  return total == x.sizes[dim] && givePieces(call, out, x, dim, pieces);
}

bool chunk(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t chunks = call.integer(1, "chunks", 0), dim = call.integer(2, "dim", 0);
  if (x.dim() == 0 || !wrapDim(dim, x.dim()) || chunks <= 0) return false;
  int64_t size = x.sizes[dim];
  if (size == 0) return givePieces(call, out, x, dim, Dims(static_cast<uint32_t>(chunks), 0));
  return givePieces(call, out, x, dim, equalPieces(size, (size + chunks - 1) / chunks));
}

bool tensorSplit(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t sections = call.integer(1, "sections", 0), dim = call.integer(2, "dim", 0);
  if (x.dim() == 0 || !wrapDim(dim, x.dim()) || sections <= 0) return false;
  Dims pieces;
  for (int64_t i = 0; i < sections; i++) pieces.push_back(x.sizes[dim] / sections + (i < x.sizes[dim] % sections ? 1 : 0));
  return givePieces(call, out, x, dim, pieces);
}

bool unbind(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dim", 0);
  if (x.dim() == 0 || !wrapDim(dim, x.dim())) return false;
  Dims sizes = x.sizes, strides = x.strides;
  sizes.erase(static_cast<uint32_t>(dim));
  strides.erase(static_cast<uint32_t>(dim));
  out.kind = ResultMeta::Tuple;
  for (int64_t i = 0; i < x.sizes[dim]; i++) {
    out.items.emplace_back();
    giveView(call, out.items.back(), x, sizes, strides, x.storageOffset + i * x.strides[dim]);
  }
  call.aliases = true;
  return true;
}

bool unfold(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t dim = call.integer(1, "dimension", 99), size = call.integer(2, "size", -1), step = call.integer(3, "step", 0);
  if (x.dim() == 0 || !wrapDim(dim, x.dim()) || size < 0 || step <= 0 || size > x.sizes[dim]) return false;
  Dims sizes = x.sizes, strides = x.strides;
  sizes[dim] = (x.sizes[dim] - size) / step + 1;
  strides[dim] *= step;
  sizes.push_back(size);
  strides.push_back(x.strides[dim]);
  return giveView(call, out, x, sizes, strides, x.storageOffset);
}

bool diagonal(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int64_t shift = call.integer(1, "offset", 0), first = call.integer(2, "dim1", 0), second = call.integer(3, "dim2", 1);
  if (x.dim() < 2 || !wrapDim(first, x.dim()) || !wrapDim(second, x.dim()) || first == second) return false;
  int64_t length = shift >= 0 ? std::min(x.sizes[first], x.sizes[second] - shift) : std::min(x.sizes[first] + shift, x.sizes[second]);
  length = std::max<int64_t>(length, 0);
  int64_t offset = x.storageOffset;
  if (length > 0) offset += shift >= 0 ? shift * x.strides[second] : -shift * x.strides[first];
  Dims sizes, strides;
  for (int64_t d = 0; d < x.dim(); d++) {
    if (d == first || d == second) continue;
    sizes.push_back(x.sizes[d]);
    strides.push_back(x.strides[d]);
  }
  sizes.push_back(length);
  strides.push_back(x.strides[first] + x.strides[second]);
  return giveView(call, out, x, sizes, strides, offset);
}

bool alias(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  return giveView(call, out, x, x.sizes, x.strides, x.storageOffset);
}

bool contiguous(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int8_t format = call.memoryFormat(1, "memory_format", MemoryFormat::Contiguous);
  if (format == MemoryFormat::Preserve) return false;
  if (format == MemoryFormat::Contiguous && isContiguous(x)) return giveSelf(call, out, x);
  Dims strides;
  if (!stridesFor(format, x, strides)) return false;
  if (format != MemoryFormat::Contiguous && isChannelsLast(x)) return giveSelf(call, out, x);
  return giveTensor(out, x.dtype, x.device, x.sizes, strides);
}

bool clone(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Dims strides;
  return stridesFor(call.memoryFormat(99, "memory_format", MemoryFormat::Preserve), x, strides) &&
         giveTensor(out, x.dtype, x.device, x.sizes, strides);
}

// A copy of `x` as asked for, or `x` itself where it already is so.
bool giveConverted(Call& call, ResultMeta& out, const TensorMeta& x, DType dtype, DeviceTag device, bool copy, int8_t format) {
  if (isComplex(dtype) || isComplex(x.dtype)) return false;
  if (device.type != 0 && device.index < 0) return false;
  if (device.type == 0 && device.index >= 0) return false;
  Dims strides;
  if (!stridesFor(format, x, strides)) return false;
  bool fits = format == MemoryFormat::Preserve || suggestsChannelsLast(x.sizes, x.strides) == (format != MemoryFormat::Contiguous);
  if (dtype == x.dtype && device == x.device && !copy && fits) return giveSelf(call, out, x);
  return giveTensor(out, dtype, device, x.sizes, strides);
}

bool to(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  DType dtype = call.dtype(99, "dtype", x.dtype);
  DeviceTag device = x.device;
  if (const Arg* named = call.arg(99, "device"); named != nullptr && !isNone(*named)) {
    if (named->kind != Arg::Constant || !deviceFrom(named->object.get(), device)) return false;
  }
  unsigned next = 1;
  if (const Arg* first = next < call.positional() ? call.arg(1, "") : nullptr) {
    next = 2;
    if (const TensorMeta* other = tensorOf(*first)) {
      dtype = other->dtype;
      device = other->device;
    } else if (first->kind != Arg::Constant) {
      return false;
    } else if (dtypeFrom(first->object.get(), dtype)) {
    } else if (deviceFrom(first->object.get(), device) || isNone(*first)) {
      if (next < call.positional() && !PyBool_Check(call.arg(2, "")->object.get())) dtype = call.dtype(next++, "", dtype);
    } else {
      return false;
    }
  }
  call.boolean(next, "non_blocking", false);
  bool copy = call.boolean(next + 1, "copy", false);
  int8_t format = call.memoryFormat(99, "memory_format", MemoryFormat::Preserve);
  return giveConverted(call, out, x, dtype, device, copy, format);
}

bool castTo(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  int8_t format = call.memoryFormat(99, "memory_format", MemoryFormat::Preserve);
  return giveConverted(call, out, x, static_cast<DType>(call.rule.detail), x.device, false, format);
}

bool toCpu(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  return giveConverted(call, out, x, x.dtype, DeviceTag{}, false, call.memoryFormat(99, "memory_format", MemoryFormat::Preserve));
}

bool typeAs(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &other = call.tensor(1, "other");
  return giveConverted(call, out, x, other.dtype, other.device, false, MemoryFormat::Preserve);
}

bool typeOf(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  if (!call.has(1, "dtype")) return false;
  return giveConverted(call, out, x, call.dtype(1, "dtype", x.dtype), x.device, false, MemoryFormat::Preserve);
}

// Views that only exist for complex tensors return the real tensor itself.
bool realPart(Call& call, ResultMeta& out) { return giveSelf(call, out, call.tensor(0)); }

bool requiresGrad(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  bool wanted = call.boolean(1, "requires_grad", true);
  if (!x.isLeaf || !isFloating(x.dtype)) return false;
  giveSelf(call, out, x);
  out.tensor.requiresGrad = wanted;
  return true;
}

}  // namespace

void addViewRules(RuleTable& table) {
  constexpr uint16_t both = TorchAndMethod, safe = AutocastSafe;
  table.add({"view"}, view, AsMethod | InAten, safe);
  table.add({"reshape"}, reshape, both, safe);
  table.add({"view_as"}, viewAs, AsMethod, safe, 0);
  table.add({"reshape_as"}, viewAs, AsMethod, safe, 1);
  table.add({"flatten"}, flatten, both, safe);
  table.add({"ravel"}, ravel, both, safe);
  table.add({"unflatten"}, unflatten, both, safe);
  table.add({"transpose", "swapdims"}, transpose, both, safe, 0);
  table.add({"swapaxes"}, transpose, both, safe, 1);
  table.add({"t"}, transposed, both, safe);
  table.add({"T", "H"}, transposed, AsAttribute, safe);
  table.add({"mT", "mH"}, matrixTranspose, AsAttribute, safe);
  table.add({"adjoint"}, matrixTranspose, both, safe);
  table.add({"permute"}, permute, both, safe);
  table.add({"movedim", "moveaxis"}, movedim, both, safe);
  table.add({"squeeze"}, squeeze, both, safe);
  table.add({"unsqueeze"}, unsqueeze, both, safe);
  table.add({"expand"}, expand, AsMethod | InAten, safe, 0);
  table.add({"expand_as"}, expand, AsMethod, safe, 1);
  table.add({"broadcast_to"}, expand, both, safe, 2);
  table.add({"narrow"}, narrow, both, safe);
  table.add({"select"}, select, both, safe);
  table.add({"split"}, split, both, safe, 0);
  table.add({"split_with_sizes"}, split, both, safe, 1);
  table.add({"chunk"}, chunk, both, safe);
  table.add({"tensor_split"}, tensorSplit, both, safe);
  table.add({"unbind"}, unbind, both, safe);
  table.add({"unfold"}, unfold, AsMethod | InAten, safe);
  table.add({"diagonal"}, diagonal, both, safe);
  table.add({"alias"}, alias, InAten, safe);
  table.add({"detach"}, alias, both, safe | NotDifferentiable);
  table.add({"data"}, alias, AsAttribute, safe | NotDifferentiable);
  table.add({"real"}, realPart, AsAttribute | InTorch, safe);
  table.add({"conj", "resolve_conj", "resolve_neg"}, realPart, both, safe);
  table.add({"contiguous"}, contiguous, AsMethod | InAten, safe);
  table.add({"clone"}, clone, both, safe);
  table.add({"to"}, to, AsMethod, safe);
  constexpr struct {
    const char* name;
    DType dtype;
  } casts[] = {{"float", DType::Float32}, {"double", DType::Float64}, {"half", DType::Float16}, {"bfloat16", DType::BFloat16}, {"long", DType::Int64},
               {"int", DType::Int32},     {"short", DType::Int16},    {"char", DType::Int8},    {"byte", DType::UInt8},        {"bool", DType::Bool}};
  for (const auto& cast : casts) table.add({cast.name}, castTo, AsMethod, safe, static_cast<int32_t>(cast.dtype));
  table.add({"cpu"}, toCpu, AsMethod, safe);
  table.add({"type_as"}, typeAs, AsMethod, safe);
  table.add({"type"}, typeOf, AsMethod, safe);
  table.add({"requires_grad_"}, requiresGrad, AsMethod, safe | Inplace);
}

}  // namespace cdynamo
