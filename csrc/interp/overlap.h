// Operations that write to a tensor while they read another part of its memory: torch refuses them.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// Whether an operand is the memory of the first one, or of out=, seen through another view.
bool readsOwnViews(const CallArgs& args);
// Whether one may be: both came from outside, and no guard says how their memory lies.
bool readsOtherInputs(const CallArgs& args);
// readsOwnViews, where torch would refuse to write to it.
bool writesWhatItReads(const CallArgs& args);

}  // namespace cdynamo
