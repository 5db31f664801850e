#include "dispatch/bind.h"

namespace cdynamo {

namespace {

// The slot that a keyword names among [first, end), -1: none, -2: the comparison failed.
Py_ssize_t slotOf(PyObject* names, PyObject* keyword, Py_ssize_t first, Py_ssize_t end) {
  for (Py_ssize_t i = first; i < end; i++)
    if (PyTuple_GET_ITEM(names, i) == keyword) return i;
  for (Py_ssize_t i = first; i < end; i++) {
    int equal = PyObject_RichCompareBool(PyTuple_GET_ITEM(names, i), keyword, Py_EQ);
    if (equal < 0) PyErr_Clear();
    if (equal != 0) return equal < 0 ? -2 : i;
  }
  return -1;
}

bool bindKeywords(PyCodeObject* code, PyObject* const* values, PyObject* kwnames, BoundFrame& out) {
  Py_ssize_t end = code->co_argcount + code->co_kwonlyargcount;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
    PyObject* keyword = PyTuple_GET_ITEM(kwnames, k);
    if (!PyUnicode_Check(keyword)) return false;
    Py_ssize_t slot = slotOf(code->co_localsplusnames, keyword, code->co_posonlyargcount, end);
    if (slot == -2) return false;
    if (slot >= 0) {
      PyObject*& place = out.slots[static_cast<uint32_t>(slot)];
      if (place != nullptr) return false;
      place = values[k];
    } else {
      if (!out.extraKeywords) return false;
      if (PyDict_SetItem(out.extraKeywords.get(), keyword, values[k]) < 0) {
        PyErr_Clear();
        return false;
      }
    }
  }
  return true;
}

bool fillDefaults(PyFunctionObject* function, PyCodeObject* code, BoundFrame& out) {
  PyObject* defaults = function->func_defaults;
  Py_ssize_t positional = code->co_argcount;
  Py_ssize_t firstDefault = positional - (defaults ? PyTuple_GET_SIZE(defaults) : 0);
  for (Py_ssize_t i = 0; i < positional; i++) {
    PyObject*& place = out.slots[static_cast<uint32_t>(i)];
    if (place != nullptr) continue;
    if (i < firstDefault) return false;
    place = PyTuple_GET_ITEM(defaults, i - firstDefault);
  }
  for (Py_ssize_t i = positional; i < positional + code->co_kwonlyargcount; i++) {
    PyObject*& place = out.slots[static_cast<uint32_t>(i)];
    if (place != nullptr) continue;
    if (function->func_kwdefaults == nullptr) return false;
    place = PyDict_GetItemWithError(function->func_kwdefaults, PyTuple_GET_ITEM(code->co_localsplusnames, i));
    if (place == nullptr) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

}  // namespace

bool bindArguments(PyObject* functionObject, PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames, BoundFrame& out) {
  auto* function = reinterpret_cast<PyFunctionObject*>(functionObject);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  const Py_ssize_t given = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t shift = self ? 1 : 0;
  const Py_ssize_t positional = code->co_argcount;
  const Py_ssize_t named = positional + code->co_kwonlyargcount;
  const bool takesExtra = code->co_flags & CO_VARARGS;
  const bool takesKeywords = code->co_flags & CO_VARKEYWORDS;
  const bool plain = given + shift == positional && named == positional && !kwnames && !takesExtra && !takesKeywords;
  out.slots.resize(static_cast<uint32_t>(named + takesExtra + takesKeywords), nullptr);
  PyObject** slots = out.slots.data();

  if (given + shift > positional && !takesExtra) return false;
  const Py_ssize_t direct = given + shift < positional ? given + shift : positional;
  if (self && direct > 0) slots[0] = self;
  for (Py_ssize_t i = shift; i < direct; i++) slots[i] = args[i - shift];
  if (plain) return true;

  if (takesExtra) {
    Py_ssize_t extra = given + shift - direct;
    out.extraPositional = ObjectRef::steal(PyTuple_New(extra));
    if (!out.extraPositional) {
      PyErr_Clear();
      return false;
    }
    for (Py_ssize_t i = 0; i < extra; i++) {
      Py_ssize_t from = direct + i - shift;
      PyTuple_SET_ITEM(out.extraPositional.get(), i, ObjectRef::share(from < 0 ? self : args[from]).release());
    }
    slots[named] = out.extraPositional.get();
  }
  if (takesKeywords) {
    out.extraKeywords = ObjectRef::steal(PyDict_New());
    if (!out.extraKeywords) {
      PyErr_Clear();
      return false;
    }
    slots[named + takesExtra] = out.extraKeywords.get();
  }
  if (kwnames && !bindKeywords(code, args + given, kwnames, out)) return false;
  return fillDefaults(function, code, out);
}

}  // namespace cdynamo
