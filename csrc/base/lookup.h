// Objects of importable modules that the engine needs by name.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// `from module import name`, looked up once and kept for the life of the process. Borrowed. Throws PythonError.
PyObject* importedObject(const char* module, const char* name);

}  // namespace cdynamo
