// PyTorch's Python types that the interpreter knows by name. Borrowed, alive as long as torch is.
#pragma once
#include "base/ref.h"

namespace cdynamo {

PyTypeObject* tensorType();                  // torch.Tensor
PyTypeObject* sizeType();                    // torch.Size
PyTypeObject* generatorType();               // torch.Generator
PyTypeObject* ndarrayType();                 // numpy.ndarray; null where numpy is not loaded
bool isNumpyScalarType(PyTypeObject* type);  // numpy.float32, int64, bool_, ...: immutable numbers
bool isNumpyDtypeType(PyTypeObject* type);   // of numpy.dtype objects
// torch.dtype, device, layout, memory_format, finfo, iinfo, qscheme: immutable, compared by value, no Python code.
bool isTorchConstantType(PyTypeObject* type);
// torch._ops.OpOverload, OpOverloadPacket: callables that are one operation.
bool isTorchOperatorType(PyTypeObject* type);

}  // namespace cdynamo
