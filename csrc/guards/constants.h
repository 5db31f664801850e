// Values compared as a guard compares them: exact types, nothing written in Python is called, nothing raises.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Same exact type and same value. Floats and complex numbers are compared bit for bit; tuples, slices, ranges and
// frozensets by item; other objects by identity, or by == where the type is one of torch's constants (dtype, device, Size).
bool equalsConstant(PyObject* value, PyObject* constant);

// An exact int between the two; the ends of int64 mean no bound.
bool intIsWithin(PyObject* value, int64_t lower, int64_t upper);

// bool(value) of an exact builtin scalar, str, bytes or None: 0 or 1; -1 for anything else.
int constantTruth(PyObject* value);

// The dict's keys are exactly those of the tuple in that order (an OrderedDict is read in its own order).
bool dictKeysAre(PyObject* dict, PyObject* keysTuple);

// The set (or frozenset, or subclass) has exactly the items that are keys and values of the dict (1 is not True here).
bool setItemsAre(PyObject* set, PyObject* itemsDict);
// The set gives exactly the items of the tuple in that order.
bool setOrderIs(PyObject* set, PyObject* itemsTuple);

// True where comparing with items of this constant set or key can call an __eq__ written in Python.
bool compareMayRunPython(PyObject* constant);

}  // namespace cdynamo
