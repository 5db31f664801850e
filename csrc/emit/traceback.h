// Tracebacks of exceptions that the trace raised and caught.
#pragma once
#include <vector>

#include "base/ref.h"
#include "graph/graph.h"

namespace cdynamo {

// The function add_traceback(exception, places), where places is what tracebackPlaces() makes. Borrowed.
PyObject* tracebackAdder();
// A tuple of (function, file, line), innermost first.
ObjectRef tracebackPlaces(const std::vector<const TracePlace*>& places);

}  // namespace cdynamo
