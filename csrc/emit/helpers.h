// C functions that emitted code calls.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// advance(iterator, n) -> iterator, after n calls of next() on it, or fewer where it ends. Borrowed.
PyObject* advanceFunction();
// advance_number(enumerate, n) -> enumerate: the number of its next item grows by n, and no item is taken. Borrowed.
PyObject* advanceNumberFunction();
// with_numbers(inputs, *numbers) -> the inputs and the numbers as tensors in one tuple. Borrowed.
PyObject* withNumbersFunction();
// sequence_iterator(sequence) -> the iterator of the __getitem__ protocol, whatever the type says. Borrowed.
PyObject* sequenceIteratorFunction();

// store_hashed(dict, key, value, hash): dict[key] = value, without asking the key for its hash. Borrowed.
PyObject* storeHashedFunction();

// assign_items(sequence, list): sequence[i] = list[i] for all of the list's items. Borrowed.
PyObject* assignItemsFunction();

// copy_set(s): a new set that CPython iterates over in the same order.
PyObject* copySetFunction();

// set_grad_mode(bool): no torch-function mode sees it. Borrowed.
PyObject* setGradModeFunction();

}  // namespace cdynamo
