// functools.lru_cache as its C code has it: what it keeps for which arguments. Plain C, as compat.h. Where the fields of the objects
// are is learned from one that is made for it; where that fails, nothing is known of any.
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

PyTypeObject* lruCacheType(void);  // null: not known

// Borrowed: what it keeps, by key; null for anything but an lru_cache. Each item stands for a result, borrowed too.
PyObject* lruCacheDict(PyObject* cache);
PyObject* lruResult(PyObject* item);

PyObject* lruFunction(PyObject* cache);  // borrowed

// How many results it keeps; -1: any number, -2 with an exception: not known.
Py_ssize_t lruMaxSize(PyObject* cache);

// The key of a call: a new reference. kwargs: a dict, or null.
PyObject* lruKey(PyObject* args, PyObject* kwargs, int typed);

// The call as if the function had given the result (null: had raised), without calling it: counts, order and what is dropped for it are
// those of a call. Returns -1 with an exception.
int lruCalled(PyObject* cache, PyObject* args, PyObject* kwargs, PyObject* result);

#ifdef __cplusplus
}
#endif
