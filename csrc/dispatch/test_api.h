// Hooks for the tests of the dispatcher.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Adds to the extension module:
//   _set_test_capture(hook or None): hook(function, locals, options), locals being a tuple (... for an unbound slot), returns
//       None or a str                skip, remembered, with that reason
//       ("once", str)                skip this call only
//       dict(facts=[...], wanted=(...), graph_inputs=n, function=f)   an entry; facts and wanted as in _TestGuards
//       dict(..., graph=g, output=k) a direct entry
//   _bind(function, args tuple, kwargs dict) -> list of slots, or None where binding fails
//   _call_with_hook(options, callable, *args, **kwargs): the call, with the frame hook on
//   _frame_hook_installed() -> whether the interpreter has the frame hook now
//   _skip_code(code): frames of it are never offered
// None gives the hook of before back. Throws PythonError.
void addDispatchTestFunctions(PyObject* module);

}  // namespace cdynamo
