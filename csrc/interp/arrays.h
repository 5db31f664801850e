// NumPy arrays in the trace: tensors of the graph, with NumPy's operations. What cdynamo._numpy does not know, or knows to differ, breaks.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// A function of numpy, or a method of numpy.ndarray; `known` false where it is none, or has nothing to do with arrays here.
Value* callNumpy(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known);
// x.numpy().
Value* arrayOf(Trace& t, TensorValue* tensor);
Value* arrayAttr(Trace& t, ArrayValue* array, PyObject* name);
// By its name in module operator: add, iadd, lt, neg, getitem, setitem, ... An in-place operator gives `args[0]` back.
Value* arrayOperator(Trace& t, const std::string& name, std::vector<Value*> args);
Py_ssize_t arrayLength(ArrayValue* array);

}  // namespace cdynamo
