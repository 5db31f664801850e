// checkTensor() of bridge.h for many tensors at once: no calls per tensor, memory fetched ahead.
#pragma once
#include <cstdint>

#include "torch/bridge.h"

namespace cdynamo {

struct TensorCheck {
  uint32_t value;  // number in `values`
  uint32_t guard;  // number in `guards`
};

// The number of the first check that does not hold, or `count`. The values must be live objects of any type.
uint32_t checkTensors(PyObject* const* values, const TensorGuard* guards, const TensorCheck* checks, uint32_t count);

}  // namespace cdynamo
