// Weak references that the trace made of existing objects.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// Whether an existing weak reference is the one that CPython has for the object of one that the trace made. `known`: one of each is asked.
bool isSameReference(Trace& t, Value* a, Value* b, bool& known);

}  // namespace cdynamo
