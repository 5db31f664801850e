// The room seen from Python, for tests.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Adds infer_result, read_tensor_meta, tensor_guard_check, ... to the module. On failure the Python error indicator is set.
void addShapeFunctions(PyObject* module);

}  // namespace cdynamo
