// "..." % values
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// format: the constant that `formatValue` is.
Value* percentText(Trace& t, PyObject* format, Value* formatValue, Value* values);

}  // namespace cdynamo
