// Objects of Python subclasses of int, float, complex, str and bytes: an instance around a plain value, the core. C code of the
// base type works on the core; what the class overrides is traced as for any other class.
#include "cpython/compat.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

PyTypeObject* const kCoreTypes[] = {&PyLong_Type, &PyFloat_Type, &PyComplex_Type, &PyUnicode_Type, &PyBytes_Type};

}  // namespace

PyTypeObject* coreType(PyTypeObject* type) {
  for (PyTypeObject* core : kCoreTypes)
    if (PyType_IsSubtype(type, core)) return core;
  return nullptr;
}

Value* coreOf(Trace& t, Value* v) {
  if (v->kind != Kind::Instance) return nullptr;
  auto* i = as<InstanceValue>(v);
  if (i->core || !i->real || i->lateText) return i->core;
  PyTypeObject* core = coreType(i->type);
  if (!core || !i->source || isEnumMember(i->real.get())) return nullptr;
  if (core != &PyLong_Type && core != &PyFloat_Type) {
    // No attribute gives the plain value: this very object is the constant, and lives as long as the capture.
    if (i->type->tp_finalize || i->type->tp_del)
      unsupported(BreakReason::FinalizerClass, std::string("the value of a ") + i->type->tp_name + ", which has a __del__");
    t.facts.identityIs(i->source, i->real.get());
    PyObject* object = i->real.get();
    ObjectRef plain = core == &PyUnicode_Type ? checked(PyUnicode_FromObject(object))
                      : core == &PyBytes_Type ? checked(PyBytes_FromStringAndSize(PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object)))
                                              : checked(PyComplex_FromCComplex(PyComplex_AsCComplex(object)));
    t.journal.set(i->core, t.real(std::move(plain)));
    return i->core;
  }
  // The attribute `real` of a number is the plain value, unless the class has another.
  static PyObject* name = PyUnicode_InternFromString("real");
  if (lookUp(t, t.typeOf(v), name) != typeLookup(core, name)) return nullptr;
  ObjectRef plain = checked(PyObject_GetAttr(i->real.get(), name));
  t.journal.set(i->core, t.wrap(plain.get(), t.sources.attr(i->source, name)));
  return i->core;
}

bool overrides(Trace& t, Value* v, const char* method) {
  PyObject* name = t.keep(checked(PyUnicode_InternFromString(method)));
  PyObject* found = lookUp(t, t.typeOf(v), name);
  if (!found) return false;
  bool inC = Py_TYPE(found) == &PyWrapperDescr_Type || Py_TYPE(found) == &PyMethodDescr_Type;
  return !inC || !PyType_IsSubtype(t.typeOf(v), reinterpret_cast<PyDescrObject*>(found)->d_type);
}

Value* coreUnless(Trace& t, Value* v, std::initializer_list<const char*> methods) {
  Value* core = coreOf(t, v);
  if (!core) return nullptr;
  for (const char* method : methods)
    if (overrides(t, v, method)) return nullptr;
  return core;
}

}  // namespace cdynamo
