// Operations that write to a tensor while they read another part of its memory: torch refuses them.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// Whether an operand is the first one's memory seen through another view.
bool readsOwnViews(const CallArgs& args);
// The same where torch would refuse to write to the first operand.
bool writesWhatItReads(const CallArgs& args);

}  // namespace cdynamo
