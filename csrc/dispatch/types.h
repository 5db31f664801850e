// The room's entry into the extension module.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Adds CompiledFunction, CompiledModuleCall and
//   configure(*, stance, recompile_limit, accumulated_limit, strict, break_every, on_miss, on_recompile, on_limit, on_engine_error): sets what is
//       given (None clears a callback); stance is "default", "force_eager", "eager_on_recompile", "fail_on_recompile" or "eager_then_compile".
//       Returns a dict with the settings of before, which configure(**dict) restores
//   reset_caches(): forgets every capture, at any time
//   cache_count(): number of code caches that exist
//   eager_depth(change=0) -> int: adds to this thread's depth of "run compiled functions eagerly", returns the new depth
//   _set_test_capture(hook or None): a Python capture hook for tests, see dispatch/test_api.h
// Throws PythonError.
void addDispatchTypes(PyObject* module);

}  // namespace cdynamo
