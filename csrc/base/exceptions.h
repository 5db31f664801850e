// The pending Python exception as one object.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Takes the pending exception, normalised and with its traceback set; null where none is pending.
ObjectRef takeException();
// Makes the exception pending again, with the traceback that it has; null: nothing.
void restoreException(PyObject* exception);

}  // namespace cdynamo
