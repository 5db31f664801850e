// What the traced program did that has not happened yet.
#pragma once
#include "values/trace.h"

namespace cdynamo {

// Whether code that runs now could find the world other than the program left it: something was written, printed or drawn.
inline bool isPending(const Trace& t) { return !t.effects().empty() || !t.mutated().empty() || !t.earlyCalls().empty(); }

}  // namespace cdynamo
