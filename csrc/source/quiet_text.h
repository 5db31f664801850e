// Objects in texts about a capture.
#pragma once
#include <string>

#include "base/ref.h"

namespace cdynamo {

// As repr(), but no code of the program is run: what has a __repr__ in Python is shown as object.__repr__ does. Never raises.
// A long text ends in dots.
std::string quietRepr(PyObject* object);

}  // namespace cdynamo
