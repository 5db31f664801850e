// What exceptions keep besides their arguments.
#include "base/lookup.h"
#include "interp/intrinsics.h"

namespace cdynamo {

// What the setters of BaseException's parts refuse.
void checkExceptionPart(Trace& t, const std::string& name, Value* value) {
  bool cause = name == "__cause__";
  if (!cause && name != "__context__" && name != "args") return;
  if (!value) raise(t, PyExc_TypeError, name + " may not be deleted");
  if (name == "args" || isReal(value, Py_None) || PyType_FastSubclass(t.typeOf(value), Py_TPFLAGS_BASE_EXC_SUBCLASS)) return;
  raise(t, PyExc_TypeError, std::string("exception ") + (cause ? "cause" : "context") + " must be None or derive from BaseException");
}

Value* exceptionField(Trace& t, InstanceValue* exception, PyTypeObject* holder, const std::string& name) {
  if (PyType_HasFeature(holder, Py_TPFLAGS_HEAPTYPE)) return nullptr;
  // Set by keywords only, which no exception that the trace made has got.
  auto is = [&](PyObject* type) { return reinterpret_cast<PyObject*>(holder) == type; };
  if (is(PyExc_AttributeError) || is(PyExc_NameError)) return t.none();
  unsupported(BreakReason::UnsupportedAttribute, "attribute '" + name + "' of " + describe(exception));
}

void noteAttribute(Trace& t, Value* error, Value* object, PyObject* name) {
  static PyObject *nameName = PyUnicode_InternFromString("name"), *objName = PyUnicode_InternFromString("obj");
  if (error->source) return;
  for (PyObject* field : {nameName, objName})
    if (Value* known = getAttrOrNull(t, error, field); !known || !isReal(known, Py_None)) return;
  genericSetAttr(t, error, nameName, t.realShared(name));
  genericSetAttr(t, error, objName, object);
}

}  // namespace cdynamo
