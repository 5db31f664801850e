// How much of this thread's C stack is left.
#pragma once

namespace cdynamo {

// True where the C stack is nearly used up, so that nothing deep may be started. False on stacks that are not the thread's own.
bool stackIsNearlyFull();

}  // namespace cdynamo
