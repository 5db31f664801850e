// Whether a call whose graph fails can be made again by CPython, and what must be kept for it.
#pragma once
#include "dispatch/replay.h"
#include "values/trace.h"

namespace cdynamo {

// graph: the finished one, before it is handed over. leavesState: the function leaves torch's settings changed.
ReplayPlan planReplay(Trace& t, const Graph& graph, bool leavesState);

}  // namespace cdynamo
