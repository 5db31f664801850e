// Runs a call to its end, over all its breaks.
//
// A capture that ended in a break returns what its frames carry over. The driver then runs the instruction that was not
// captured, enters the continuation of the innermost frame, hands its result (or exception) to the frame outside it, and so
// on: the frames of the user's program are a list here, so that a loop with a break in it does not nest deeper.
#pragma once
#include <memory>

#include "dispatch/cache.h"

namespace cdynamo {

// As CodeCache::call, but the value is the function's own result.
PyObject* callToEnd(const std::shared_ptr<CodeCache>& cache, const FrameInputs& inputs, int recompileLimit);

}  // namespace cdynamo
