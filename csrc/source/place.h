// Where in the user's program the trace stands.
#pragma once
#include "source/source.h"

namespace cdynamo {

// A chain from the innermost frame outwards, owned by the trace. A new line is a new place.
struct TracePlace {
  PyObject* code = nullptr;  // PyCodeObject, borrowed from the trace
  int32_t line = 0;
  const TracePlace* caller = nullptr;
  // The nn.Module whose forward this frame runs, or null: (path such as L['self'].layer[0], type), for nn_module_stack.
  const Source* module = nullptr;
  PyObject* moduleType = nullptr;  // borrowed
};

}  // namespace cdynamo
