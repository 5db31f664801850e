// C functions that emitted code calls.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// advance(iterator, n) -> iterator, after n calls of next() on it, or fewer where it ends. Borrowed.
PyObject* advanceFunction();
// with_numbers(inputs, *numbers) -> the inputs and the numbers as tensors in one tuple. Borrowed.
PyObject* withNumbersFunction();
// sequence_iterator(sequence) -> the iterator of the __getitem__ protocol, whatever the type says. Borrowed.
PyObject* sequenceIteratorFunction();

}  // namespace cdynamo
