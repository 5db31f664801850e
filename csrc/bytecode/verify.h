// Checks of finished code, for debug builds and tests.
#pragma once
#include <string>

#include "base/ref.h"
#include "bytecode/code.h"

namespace cdynamo {

// Checks a code object on all paths: depths agree where paths meet, no underflow, NULLs lie where calls want them, the
// exception table's depths exist, co_stacksize is enough. Throws EngineError that says what is wrong.
void verifyCode(PyCodeObject* code);

// The same for a decoded one: instruction depths follow from ops.def, targets and handlers are in range.
void verifyDecoded(const Code& code);

}  // namespace cdynamo
