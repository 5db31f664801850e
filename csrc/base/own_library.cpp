#include "base/own_library.h"

#include <initializer_list>

namespace cdynamo {

bool isOwnLibrary(PyObject* globalsOrTypeDict, const char* key) {
  PyObject* module = PyDict_GetItemString(globalsOrTypeDict, key);
  if (!module || !PyUnicode_Check(module)) return false;
  for (const char* name : {"cdynamo.polyfills", "cdynamo._consumers", "cdynamo._library", "cdynamo._stand_ins", "cdynamo._torch_library"})
    if (PyUnicode_CompareWithASCIIString(module, name) == 0) return true;
  return false;
}

}  // namespace cdynamo
