#include "shapes/layout.h"

#include <algorithm>
#include <utility>

namespace cdynamo {

namespace {

using Order = SmallVector<int32_t, 8>;

// ATen's insertion sort with ambiguous comparisons, starting from the last dimension.
template <typename Compare>
Order sortedDims(uint32_t rank, Compare&& shouldSwap) {
  Order order(rank, 0);
  for (uint32_t i = 0; i < rank; i++) order[i] = static_cast<int32_t>(rank - 1 - i);
  for (uint32_t i = 1; i < rank; i++) {
    int dim1 = static_cast<int>(i);
    for (int dim0 = dim1 - 1; dim0 >= 0; dim0--) {
      int comparison = shouldSwap(order[dim0], order[dim1]);
      if (comparison > 0) {
        std::swap(order[dim0], order[dim1]);
        dim1 = dim0;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  return order;
}

bool matchesOrder(const TensorMeta& t, std::initializer_list<int> order) {
  int64_t expected = 1;
  for (int d : order) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] != expected) return false;
    expected *= t.sizes[d];
  }
  return true;
}

}  // namespace

Dims contiguousStrides(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (int i = static_cast<int>(sizes.size()) - 2; i >= 0; i--) strides[i] = strides[i + 1] * std::max<int64_t>(sizes[i + 1], 1);
  return strides;
}

Dims channelsLastStrides(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  int64_t next = 1;
  auto place = [&](uint32_t d) {
    strides[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  };
  place(1);
  for (uint32_t d = sizes.size() - 1; d >= 2; d--) place(d);
  place(0);
  return strides;
}

bool isContiguous(const TensorMeta& t) {
  if (t.numel() == 0) return true;
  int64_t expected = 1;
  for (int i = static_cast<int>(t.sizes.size()) - 1; i >= 0; i--) {
    if (t.sizes[i] == 1) continue;
    if (t.strides[i] != expected) return false;
    expected *= t.sizes[i];
  }
  return true;
}

bool isChannelsLast(const TensorMeta& t) {
  if (t.sizes.size() == 4) return matchesOrder(t, {1, 3, 2, 0});
  if (t.sizes.size() == 5) return matchesOrder(t, {1, 4, 3, 2, 0});
  return false;
}

bool suggestsChannelsLast(const Dims& sizes, const Dims& strides) {
  uint32_t rank = sizes.size();
  if ((rank != 4 && rank != 5) || strides[1] == 0) return false;
  int64_t least = 0;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t d = i == 0 ? 1 : (i == rank - 1 ? 0 : rank - i);
    if (sizes[d] == 0 || strides[d] < least || (d == 0 && least == strides[1])) return false;
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  return true;
}

bool isNonOverlappingDense(const TensorMeta& t) {
  if (isContiguous(t) || isChannelsLast(t)) return true;
  uint32_t rank = t.sizes.size();
  if (rank == 1) return t.sizes[0] < 2 || t.strides[0] == 1;
  Order order(rank, 0);
  for (uint32_t i = 0; i < rank; i++) order[i] = static_cast<int32_t>(i);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (t.sizes[a] < 2) return false;
    if (t.sizes[b] < 2) return true;
    return t.strides[a] < t.strides[b];
  });
  int64_t expected = 1;
  for (int32_t d : order) {
    if (t.sizes[d] < 2) return true;
    if (t.strides[d] != expected) return false;
    expected *= t.sizes[d];
  }
  return true;
}

bool hasOverlap(const TensorMeta& t) {
  for (uint32_t i = 0; i < t.sizes.size(); i++)
    if (t.strides[i] == 0 && t.sizes[i] > 1) return true;
  return false;
}

Dims preservedStrides(const TensorMeta& t) {
  if (isNonOverlappingDense(t)) return t.strides;
  uint32_t rank = t.sizes.size();
  if (rank <= 1) return Dims(rank, 1);
  Order order = sortedDims(rank, [&](int32_t a, int32_t b) {
    int64_t first = t.strides[a], second = t.strides[b];
    if (first == 0 || second == 0) return 0;
    if (first != second) return first < second ? -1 : 1;
    return t.sizes[a] > t.sizes[b] ? 1 : 0;
  });
  Dims strides(rank, 0);
  int64_t next = 1;
  for (int32_t d : order) {
    strides[d] = next;
    next *= std::max<int64_t>(t.sizes[d], 1);
  }
  return strides;
}

bool stridesFor(int8_t format, const TensorMeta& t, Dims& out) {
  switch (format) {
    case MemoryFormat::Contiguous: out = contiguousStrides(t.sizes); return true;
    case MemoryFormat::Preserve: out = preservedStrides(t); return true;
    case MemoryFormat::ChannelsLast:
    case MemoryFormat::ChannelsLast3d:
      if (t.sizes.size() != (format == MemoryFormat::ChannelsLast ? 4u : 5u)) return false;
      out = channelsLastStrides(t.sizes);
      return true;
    default: return false;
  }
}

bool broadcastInto(Dims& shape, const Dims& other) {
  if (shape == other) return true;
  while (shape.size() < other.size()) shape.insert(0, 1);
  uint32_t offset = shape.size() - other.size();
  for (uint32_t i = 0; i < other.size(); i++) {
    int64_t& size = shape[offset + i];
    if (size == other[i] || other[i] == 1) continue;
    if (size != 1) return false;
    size = other[i];
  }
  return true;
}

Dims elementwiseStrides(const TensorMeta* const* operands, size_t count, const Dims& shape) {
  bool sameShape = true, contiguous = true, channelsLast = true, dense = true, sameStrides = true;
  for (size_t i = 0; i < count && sameShape; i++) {
    const TensorMeta& t = *operands[i];
    sameShape = t.sizes == shape;
    if (!sameShape) break;
    contiguous = contiguous && isContiguous(t);
    channelsLast = channelsLast && t.sizes.size() == 4 && isChannelsLast(t);
    sameStrides = sameStrides && t.strides == operands[0]->strides;
    dense = dense && (contiguous || isNonOverlappingDense(t));
  }
  if (sameShape) {
    if (contiguous) return contiguousStrides(shape);
    if (channelsLast) return channelsLastStrides(shape);
    if (dense && sameStrides) return operands[0]->strides;
  }
  uint32_t rank = shape.size();
  if (rank <= 1) return Dims(rank, 1);
  // The stride of operand i in dimension d of the broadcast shape.
  auto stride = [&](size_t i, int32_t d) -> int64_t {
    const TensorMeta& t = *operands[i];
    int32_t own = d - static_cast<int32_t>(rank - t.sizes.size());
    if (own < 0 || (t.sizes[own] == 1 && shape[d] != 1)) return 0;
    return t.strides[own];
  };
  Order order = sortedDims(rank, [&](int32_t a, int32_t b) {
    for (size_t i = 0; i < count; i++) {
      int64_t first = stride(i, a), second = stride(i, b);
      if (first == 0 || second == 0) continue;
      if (first != second) return first < second ? -1 : 1;
      if (shape[a] > shape[b]) return 1;
    }
    return 0;
  });
  bool inverted = true;
  for (uint32_t i = 0; i < rank; i++) inverted = inverted && order[i] == static_cast<int32_t>(rank - 1 - i);
  if (inverted) return contiguousStrides(shape);
  Dims strides(rank, 0);
  int64_t next = 1;
  for (int32_t d : order) {
    strides[d] = next;
    next *= shape[d];
  }
  return strides;
}

bool viewStrides(const TensorMeta& t, const Dims& shape, Dims& out) {
  uint32_t oldRank = t.sizes.size(), newRank = shape.size();
  if (oldRank == 0) {
    out = Dims(newRank, 1);
    return true;
  }
  int64_t numel = t.numel();
  if (numel == 0 && t.sizes == shape) {
    out = t.strides;
    return true;
  }
  if (numel == 0) {
    out = contiguousStrides(shape);
    return true;
  }
  out = Dims(newRank, 0);
  int viewDim = static_cast<int>(newRank) - 1;
  int64_t base = t.strides[oldRank - 1], tensorCount = 1, viewCount = 1;
  for (int d = static_cast<int>(oldRank) - 1; d >= 0; d--) {
    tensorCount *= t.sizes[d];
    if (d != 0 && (t.sizes[d - 1] == 1 || t.strides[d - 1] == tensorCount * base)) continue;
    while (viewDim >= 0 && (viewCount < tensorCount || shape[viewDim] == 1)) {
      out[viewDim] = viewCount * base;
      viewCount *= shape[viewDim];
      viewDim--;
    }
    if (viewCount != tensorCount) return false;
    if (d > 0) {
      base = t.strides[d - 1];
      tensorCount = viewCount = 1;
    }
  }
  return viewDim == -1;
}

bool expandTo(const TensorMeta& t, const Dims& sizes, Dims& outSizes, Dims& outStrides) {
  int rank = static_cast<int>(sizes.size()), own = static_cast<int>(t.sizes.size());
  if (own > rank) return false;
  outSizes = sizes;
  outStrides = Dims(sizes.size(), 0);
  for (int i = rank - 1; i >= 0; i--) {
    int d = i - (rank - own);
    int64_t size = d >= 0 ? t.sizes[d] : 1, stride = d >= 0 ? t.strides[d] : (own > 0 ? outSizes[i + 1] * outStrides[i + 1] : 0);
    if (sizes[i] == -1 && d < 0) return false;
    int64_t wanted = sizes[i] == -1 ? size : sizes[i];
    if (wanted < 0) return false;
    if (size != wanted) {
      if (size != 1) return false;
      stride = 0;
    }
    outSizes[i] = wanted;
    outStrides[i] = stride;
  }
  return true;
}

bool inferShape(Dims& shape, int64_t numel) {
  int hole = -1;
  int64_t known = 1;
  for (uint32_t i = 0; i < shape.size(); i++) {
    if (shape[i] == -1) {
      if (hole >= 0) return false;
      hole = static_cast<int>(i);
    } else if (shape[i] < 0) {
      return false;
    } else {
      known *= shape[i];
    }
  }
  if (hole < 0) return known == numel;
  if (known == 0 || numel % known != 0) return false;
  shape[hole] = numel / known;
  return true;
}

bool wrapDim(int64_t& dim, int64_t rank) {
  if (rank == 0) rank = 1;
  if (dim < -rank || dim >= rank) return false;
  if (dim < 0) dim += rank;
  return true;
}

DType promoteTypes(DType a, DType b) {
  if (a == DType::Undefined) return b;
  if (b == DType::Undefined || a == b) return a;
  if (isFloating(a) && isFloating(b)) {
    if (a == DType::Float64 || b == DType::Float64) return DType::Float64;
    return DType::Float32;  // unequal halves, or a half and a float
  }
  if (isFloating(a)) return a;
  if (isFloating(b)) return b;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (a == DType::UInt8 || b == DType::UInt8) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  return std::max(a, b);
}

bool canCast(DType from, DType to) {
  if (isComplex(from) && !isComplex(to)) return false;
  if (isFloating(from) && isIntegral(to, true)) return false;
  if (from != DType::Bool && to == DType::Bool) return false;
  return true;
}

DType TypePromotion::combine(DType higher, DType lower) {
  if (isFloating(higher)) return higher;
  if (higher == DType::Bool || isFloating(lower)) return promoteTypes(higher, lower);
  return higher != DType::Undefined ? higher : lower;
}

}  // namespace cdynamo
