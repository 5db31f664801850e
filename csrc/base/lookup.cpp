#include "base/lookup.h"

#include <string>
#include <unordered_map>

#include "base/error.h"

namespace cdynamo {

PyObject* importedObject(const char* module, const char* name) {
  static std::unordered_map<std::string, PyObject*>& known = *new std::unordered_map<std::string, PyObject*>;
  std::string key = std::string(module) + ":" + name;
  auto found = known.find(key);
  if (found != known.end()) return found->second;
  // Not by builtins.__import__, which may be the program's.
  ObjectRef itself = checked(Py_BuildValue("(s)", name)), imported = checked(PyImport_ImportModuleLevel(module, nullptr, nullptr, itself.get(), 0));
  ObjectRef object = checked(PyObject_GetAttrString(imported.get(), name));
  return known[key] = object.release();
}

}  // namespace cdynamo
