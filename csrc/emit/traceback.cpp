#include "emit/traceback.h"

#include <vector>

#include "base/error.h"
#include "cpython/tracebacks.h"

namespace cdynamo {

namespace {

PyObject* makeTraceback(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 5 || count % 2 == 0 || !PyCode_Check(args[1]) || !PyDict_Check(args[2]))
    return PyErr_Format(PyExc_TypeError, "new_traceback(tb_next, code, globals, offset, left_at, slot, local, ...)");
  int offset = static_cast<int>(PyLong_AsLong(args[3])), leftAt = static_cast<int>(PyLong_AsLong(args[4]));
  if (PyErr_Occurred()) return nullptr;
  auto* code = reinterpret_cast<PyCodeObject*>(args[1]);
  std::vector<PyObject*> slots(static_cast<size_t>(code->co_nlocalsplus), nullptr);
  for (Py_ssize_t i = 5; i < count; i += 2) {
    const size_t slot = PyLong_AsSize_t(args[i]);
    if (PyErr_Occurred()) return nullptr;
    if (slot >= slots.size()) return PyErr_Format(PyExc_IndexError, "new_traceback: the code has no variable %zu", slot);
    slots[slot] = args[i + 1];
  }
  return newTraceback(args[0], code, args[2], offset, leftAt, slots.data());
}

PyMethodDef definition = {"new_traceback", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(makeTraceback)), METH_FASTCALL, nullptr};

}  // namespace

PyObject* tracebackMaker() {
  static PyObject* function = checked(PyCFunction_New(&definition, nullptr)).release();
  return function;
}

}  // namespace cdynamo
