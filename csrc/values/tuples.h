// Which tuples are modelled as tuples, and which as objects around one.
#pragma once
#include <Python.h>

namespace cdynamo {

// A tuple, or an object of a subclass that has nothing of its own but names for its items: a named tuple, a struct sequence, torch.Size.
bool isPlainTuple(PyTypeObject* type);

}  // namespace cdynamo
