#include "base/own_library.h"

#include <initializer_list>

#include "base/lookup.h"

namespace cdynamo {

bool isOwnLibrary(PyObject* globalsOrTypeDict, const char* key) {
  PyObject* module = PyDict_GetItemString(globalsOrTypeDict, key);
  if (!module || !PyUnicode_Check(module)) return false;
  for (const char* name : {"cdynamo.polyfills", "cdynamo._consumers", "cdynamo._library", "cdynamo._stand_ins", "cdynamo._torch_library"})
    if (PyUnicode_CompareWithASCIIString(module, name) == 0) return true;
  return false;
}

PyObject* ownBuiltins() {
  static PyObject* builtins = importedObject("cdynamo._own_builtins", "__builtins__");
  return builtins;
}

}  // namespace cdynamo
