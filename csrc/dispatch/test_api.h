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
// None gives the hook of before back. Throws PythonError.
void addDispatchTestFunctions(PyObject* module);

}  // namespace cdynamo
