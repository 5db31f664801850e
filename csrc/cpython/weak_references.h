// Weak references that the program made to an object. Plain C.
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// From now on weak references with this callback are the engine's own: they do not count here, nor for hasWeakReferences().
void setOwnWeakCallback(PyCFunction callback);

// Whether a weak reference that has a callback points to the object.
int hasWeakCallbacks(PyObject* object);

#ifdef __cplusplus
}
#endif
