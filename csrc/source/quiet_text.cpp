#include "source/quiet_text.h"

#include "cpython/compat.h"

namespace cdynamo {

namespace {

constexpr int kDeepest = 20;

// Enums show their members by Python code that is the library's own.
bool isShownByProgram(PyObject* object) {
  static PyObject* name = PyUnicode_InternFromString("__repr__");
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  PyObject* method = typeLookup(type, name);
  if (!method || !PyFunction_Check(method)) return false;
  PyObject* module = reinterpret_cast<PyFunctionObject*>(method)->func_module;
  return !module || !PyUnicode_Check(module) || PyUnicode_CompareWithASCIIString(module, "enum") != 0;
}

std::string show(PyObject* object, int depth) {
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    bool tuple = PyTuple_CheckExact(object);
    Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    if (depth > kDeepest) return "...";
    std::string text = tuple ? "(" : "[";
    for (Py_ssize_t i = 0; i < size; i++) text += (i ? ", " : "") + show(PySequence_Fast_GET_ITEM(object, i), depth + 1);
    if (tuple && size == 1) text += ",";
    return text + (tuple ? ")" : "]");
  }
  ObjectRef text = ObjectRef::steal(isShownByProgram(object) ? PyBaseObject_Type.tp_repr(object) : PyObject_Repr(object));
  if (const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr) return utf8;
  PyErr_Clear();
  return "<unprintable>";
}

}  // namespace

std::string quietRepr(PyObject* object) { return show(object, 0); }

}  // namespace cdynamo
