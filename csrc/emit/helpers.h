// C functions that emitted code calls.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// advance(iterator, n) -> iterator, after n calls of next() on it, or fewer where it ends. Borrowed.
PyObject* advanceFunction();
// sequence_iterator(sequence) -> the iterator of the __getitem__ protocol, whatever the type says. Borrowed.
PyObject* sequenceIteratorFunction();

// copy_set(s): a new set that CPython iterates over in the same order.
PyObject* copySetFunction();

}  // namespace cdynamo
