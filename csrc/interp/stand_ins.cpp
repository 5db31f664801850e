#include "interp/stand_ins.h"

#include <unordered_map>

#include "base/own_library.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

using StandIns = std::unordered_map<PyTypeObject*, PyTypeObject*>;

StandIns allStandIns() {
  StandIns found;
  for (const char* module : {"cdynamo.polyfills", "cdynamo._stand_ins"}) {
    PyObject *dict = PyModule_GetDict(checked(PyImport_ImportModule(module)).get()), *name, *held;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &held);) {
      PyObject* other = PyType_Check(held) ? PyDict_GetItemString(typeDict(reinterpret_cast<PyTypeObject*>(held)), "stands_for") : nullptr;
      if (other && PyType_Check(other)) found.emplace(reinterpret_cast<PyTypeObject*>(held), reinterpret_cast<PyTypeObject*>(other));
    }
  }
  return found;
}

}  // namespace

PyTypeObject* standsFor(const Value* v) {
  static const StandIns all = allStandIns();
  if (v->kind != Kind::Instance) return nullptr;
  auto found = all.find(static_cast<const InstanceValue*>(v)->type);
  return found == all.end() ? nullptr : found->second;
}

PyTypeObject* shownType(Trace& t, Value* v) {
  PyTypeObject* other = standsFor(v);
  return other ? other : t.typeOf(v);
}

bool isSeenByProgram(const Trace& t) { return t.frame && !isOwnLibrary(t.frame->globals, "__name__"); }

Value* standInAttr(Trace& t, Value* v, PyTypeObject* type, PyObject* name, bool& known) {
  PyObject *real = typeLookup(type, name), *own = typeLookup(t.typeOf(v), name);
  known = !real || !Py_TYPE(real)->tp_descr_get;
  if (known) return real ? pinnedValue(t, real) : nullptr;
  const bool modelled = own == real || PyDict_GetItemWithError(typeDict(t.typeOf(v)), name) || t.dictGetName(t.dictOf(as<InstanceValue>(v)), name);
  if (!modelled) unsupported(BreakReason::UnsupportedAttribute, std::string("attribute '") + textOf(name) + "' of a " + type->tp_name + " object");
  return nullptr;
}

}  // namespace cdynamo
