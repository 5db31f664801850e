// __torch_function__: torch operations on tensor subclasses and under torch-function modes go to the user's own code.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

bool isMode(Value* v);  // a TorchFunctionMode
// Whether a source reaches one of the torch-function modes around the call (interp/capture.cpp).
bool isModeAround(const Source* source);
// Whether the class's __torch_function__ takes part: of a subclass of torch.Tensor that has not disabled it, or of any other class.
bool overridesTorch(PyTypeObject* type);
bool isOverridden(Trace& t, Value* v);
// Whether an operation with these arguments goes to somebody's __torch_function__.
bool isOverridden(Trace& t, const CallArgs& args);
// Asks the modes and the arguments' classes in torch's order. `function` is what they are told to be called.
Value* callTorchFunction(Trace& t, PyObject* function, const CallArgs& args);
// An attribute of such a tensor; null where it is no attribute of torch.Tensor's own.
Value* overriddenAttr(Trace& t, TensorValue* tensor, PyObject* name);
// a OP b by the tensors' own methods; null where none of them is overridden.
Value* overriddenBinary(Trace& t, const char* method, const char* reflected, Value* a, Value* b);

}  // namespace cdynamo
