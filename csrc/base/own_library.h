// Python code of our own that the interpreter traces in the place of C code: it has no counterpart in the user's program.
#pragma once
#include <Python.h>

namespace cdynamo {

// globalsOrTypeDict[key] ("__name__" or "__module__") names one of its modules.
bool isOwnLibrary(PyObject* globalsOrTypeDict, const char* key);

// The builtins that its functions have, whatever the program makes of those of its own. Borrowed.
PyObject* ownBuiltins();

}  // namespace cdynamo
