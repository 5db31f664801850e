// Arithmetic on sizes and strides, as ATen does it. Plain data, no Python.
#pragma once
#include <initializer_list>

#include "shapes/tensor_meta.h"

namespace cdynamo {

enum MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };

Dims contiguousStrides(const Dims& sizes);
// Strides of a dense tensor in channels-last order; `sizes` has 4 (ChannelsLast) or 5 (ChannelsLast3d) dimensions.
Dims channelsLastStrides(const Dims& sizes);
bool isContiguous(const TensorMeta& t);
// Also for 5 dimensions (channels last 3d); false for other ranks.
bool isChannelsLast(const TensorMeta& t);
bool isNonOverlappingDense(const TensorMeta& t);
// Whether torch would suggest channels last for this tensor (the strides need not be dense).
bool suggestsChannelsLast(const Dims& sizes, const Dims& strides);
// A dimension longer than 1 with stride 0: eager refuses to write to such a tensor.
bool hasOverlap(const TensorMeta& t);
// Strides of `empty_like(t)`: kept where the tensor is dense, else dense in the same order of dimensions.
Dims preservedStrides(const TensorMeta& t);
// Strides that `format` asks for on a new tensor like `t`; false where the rank does not fit the format.
bool stridesFor(int8_t format, const TensorMeta& t, Dims& out);

// Shape of broadcasting both; false where they do not fit.
bool broadcastInto(Dims& shape, const Dims& other);
// Strides of the output that TensorIterator allocates for these inputs of broadcast shape `shape`.
Dims elementwiseStrides(const TensorMeta* const* operands, size_t count, const Dims& shape);
// Strides of a view of `t` with sizes `shape`; false where only a copy can have them.
bool viewStrides(const TensorMeta& t, const Dims& shape, Dims& out);
// `t.expand(sizes)`, -1 keeping a size; false where it does not fit.
bool expandTo(const TensorMeta& t, const Dims& sizes, Dims& outSizes, Dims& outStrides);
// Replaces a single -1 in `shape` by what makes the element counts equal; false where that cannot be.
bool inferShape(Dims& shape, int64_t numel);
// Turns a dimension that may be negative into 0..rank-1 (rank 0 counts as 1); false where it is out of range.
bool wrapDim(int64_t& dim, int64_t rank);

// ---- dtypes ----
constexpr bool isFloating(DType d) { return d == DType::Float16 || d == DType::Float32 || d == DType::Float64 || d == DType::BFloat16; }
constexpr bool isComplex(DType d) { return d == DType::ComplexHalf || d == DType::Complex64 || d == DType::Complex128; }
constexpr bool isIntegral(DType d, bool withBool) { return (d >= DType::UInt8 && d <= DType::Int64) || (withBool && d == DType::Bool); }
constexpr int itemSize(DType d) {
  switch (d) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Bool: return 1;
    case DType::Int16:
    case DType::Float16:
    case DType::BFloat16: return 2;
    case DType::Int32:
    case DType::Float32:
    case DType::ComplexHalf: return 4;
    case DType::Complex128: return 16;
    default: return 8;
  }
}
// torch.promote_types; Undefined is neutral. Not for complex dtypes.
DType promoteTypes(DType a, DType b);
// torch.can_cast(from, to).
bool canCast(DType from, DType to);

// torch.result_type, fed with one operand after the other.
class TypePromotion {
 public:
  void addTensor(const TensorMeta& t) {
    DType& slot = t.sizes.empty() ? zeroDim_ : withDims_;
    slot = promoteTypes(slot, t.dtype);
  }
  // Bool, Int64, or the default dtype for a Python float.
  void addScalar(DType d) { scalar_ = promoteTypes(scalar_, d); }
  DType result() const { return combine(withDims_, combine(zeroDim_, scalar_)); }

 private:
  static DType combine(DType higher, DType lower);
  DType withDims_ = DType::Undefined, zeroDim_ = DType::Undefined, scalar_ = DType::Undefined;
};

}  // namespace cdynamo
