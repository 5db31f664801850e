// Tracebacks of exceptions that the trace raised and caught.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// The function new_traceback(tb_next, code, globals, offset, left_at, slot, local, slot, local, ...). Borrowed.
PyObject* tracebackMaker();

}  // namespace cdynamo
