#include "source/quiet_text.h"

#include "cpython/compat.h"

namespace cdynamo {

namespace {

constexpr int kDeepest = 20;
constexpr size_t kLongest = 1000;

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

// Adds what shows the object, and stops where the text is long: what holds itself on many ways would never end.
void show(PyObject* object, int depth, std::string& text) {
  if (text.size() > kLongest) return;
  const bool tuple = PyTuple_CheckExact(object), list = PyList_CheckExact(object);
  if (tuple || list || PyDict_CheckExact(object)) {
    if (depth > kDeepest) {
      text += "...";
      return;
    }
    text += tuple ? '(' : list ? '[' : '{';
    const char* comma = "";
    PyObject *key, *value;
    if (tuple || list) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
      for (Py_ssize_t i = 0; i < size && text.size() <= kLongest; i++, comma = ", ")
        show(PySequence_Fast_GET_ITEM(object, i), depth + 1, text += comma);
      if (tuple && size == 1) text += ',';
    } else {
      for (Py_ssize_t at = 0; text.size() <= kLongest && PyDict_Next(object, &at, &key, &value); comma = ", ") {
        show(key, depth + 1, text += comma);
        show(value, depth + 1, text += ": ");
      }
    }
    text += tuple ? ')' : list ? ']' : '}';
    return;
  }
  ObjectRef shown = ObjectRef::steal(isShownByProgram(object) ? PyBaseObject_Type.tp_repr(object) : PyObject_Repr(object));
  const char* utf8 = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
  if (!utf8) PyErr_Clear();
  text += utf8 ? utf8 : "<unprintable>";
}

}  // namespace

std::string quietRepr(PyObject* object) {
  std::string text;
  show(object, 0, text);
  if (text.size() > kLongest) text.resize(kLongest), text += "...";
  return text;
}

}  // namespace cdynamo
