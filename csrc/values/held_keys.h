// Keys of dicts and sets that exist.
#pragma once
#include "torch/bridge.h"
#include "values/trace.h"

namespace cdynamo {

// A key whose hash is C code: a constant, or an object that can change, which the fact about the keys pins.
inline Value* heldKey(Trace& t, PyObject* key) {
  bool object = PyType_HasFeature(Py_TYPE(key), Py_TPFLAGS_HEAPTYPE) && !PyType_Check(key) && !isEnumMember(key) && !isTensor(key);
  return object || isMadeAnew(key) ? t.wrap(key, t.sources.pinned(key)) : t.realShared(key);
}

}  // namespace cdynamo
