// What classes and properties keep to themselves.
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// The name that a property was given by its class (borrowed), or null.
PyObject* propertyName(PyObject* property);
// Takes `type` out of what its bases give as __subclasses__(). Never raises.
void hideFromBases(PyTypeObject* type);
// An exception of __set_name__ is the cause of a RuntimeError (until 3.11); later it gets a note.
int setNameErrorIsWrapped(void);

#ifdef __cplusplus
}
#endif
