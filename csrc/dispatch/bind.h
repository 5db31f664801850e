// Arguments of a call to the slots of the callee's frame, as CPython binds them.
#pragma once
#include "base/ref.h"
#include "base/small_vector.h"

namespace cdynamo {

// Slots in the order of co_varnames: positional, keyword-only, *args, **kwargs. Values are borrowed from the caller's
// arguments and from the function's defaults; the tuple and the dict that binding makes are owned here.
struct BoundFrame {
  SmallVector<PyObject*, 16> slots;
  ObjectRef extraPositional;
  ObjectRef extraKeywords;
};

// Binds a call of a Python function. `self`, if not null, comes before the positional arguments. False where the arguments
// do not fit (or memory ends): no error is set, and the caller lets CPython make the call and say what is wrong.
bool bindArguments(PyObject* function, PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames, BoundFrame& out);

}  // namespace cdynamo
