// The engine's entry: from a call that no capture fits to a new cache entry.
#pragma once
#include "dispatch/capture_api.h"

namespace cdynamo {

CaptureOutcome captureFrame(PyObject* function, const FrameInputs& inputs, PyObject* options, const std::set<std::string>& openNames);

// Adds set_front(callbacks), reset() and the test helpers of the interpreter to the module, and installs the capture hook.
void addCaptureFunctions(PyObject* module);

}  // namespace cdynamo
