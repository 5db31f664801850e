// Code objects that the program has dropped (functions made by exec, by dataclass, in an interactive session): decoded forms, captures and
// places to go on from hold them, and go with them.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Frees what belongs to code objects that only the engine still holds. Not while anything is being captured.
void forgetDeadCodes();

// Does so after each full collection of the garbage collector. Throws PythonError.
void watchCollections();

}  // namespace cdynamo
