#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// What the operation gives where it takes a number and has a tensor of no dimension instead; null where that is not so.
Value* computeWithScalarTensors(Trace& t, PyObject* callable, const CallArgs& args);

}  // namespace cdynamo
