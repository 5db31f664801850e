// What the trace knows of a tensor without having it: plain data, no PyTorch header needed.
#pragma once
#include <cstdint>
#include <functional>

#include "base/small_vector.h"

namespace cdynamo {

using Dims = SmallVector<int64_t, 6>;

// c10's numbers, so that the bridge converts by a cast (csrc/torch/ asserts that they agree).
enum class DType : int8_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Float16 = 5,
  Float32 = 6,
  Float64 = 7,
  ComplexHalf = 8,
  Complex64 = 9,
  Complex128 = 10,
  Bool = 11,
  BFloat16 = 15,
  Undefined = -1,
};

struct DeviceTag {
  int8_t type = 0;    // c10::DeviceType; 0 is CPU
  int8_t index = -1;  // -1: none
  bool operator==(const DeviceTag& other) const { return type == other.type && index == other.index; }
};

struct TensorMeta {
  DType dtype = DType::Float32;
  DeviceTag device;
  int8_t layout = 0;  // c10::Layout; 0 is Strided
  bool requiresGrad = false;
  bool isLeaf = true;  // as torch.Tensor.is_leaf would answer
  bool isInference = false;
  bool isConj = false;
  bool isNeg = false;
  Dims sizes;
  Dims strides;  // empty where the layout has none
  int64_t storageOffset = 0;

  int64_t dim() const { return sizes.size(); }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  bool operator==(const TensorMeta& other) const {
    return dtype == other.dtype && device == other.device && layout == other.layout && requiresGrad == other.requiresGrad && isLeaf == other.isLeaf &&
           isInference == other.isInference && isConj == other.isConj && isNeg == other.isNeg && sizes == other.sizes && strides == other.strides &&
           storageOffset == other.storageOffset;
  }
};

}  // namespace cdynamo
