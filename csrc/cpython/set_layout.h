// Sets as CPython lays them out: the order of iteration depends on the table, not on the items alone.
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// A new set (or frozenset) with the same table as the given one, which may be of a subclass: same order, same room. Null with an exception
// set where it fails.
PyObject* cloneSet(PyObject* set);

#ifdef __cplusplus
}
#endif
