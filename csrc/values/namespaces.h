// types.SimpleNamespace: a C class whose objects are nothing but their attributes. They are instances like those of Python classes.
#pragma once
#include "base/lookup.h"

namespace cdynamo {

inline PyTypeObject* namespaceType() {
  static auto* type = reinterpret_cast<PyTypeObject*>(importedObject("types", "SimpleNamespace"));
  return type;
}

}  // namespace cdynamo
