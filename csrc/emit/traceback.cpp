#include "emit/traceback.h"

#include "base/error.h"
#include "cpython/tracebacks.h"

namespace cdynamo {

namespace {

PyObject* makeTraceback(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 5 || !PyCode_Check(args[1]) || !PyDict_Check(args[2]))
    return PyErr_Format(PyExc_TypeError, "new_traceback(tb_next, code, globals, offset, left_at)");
  int offset = static_cast<int>(PyLong_AsLong(args[3])), leftAt = static_cast<int>(PyLong_AsLong(args[4]));
  if (PyErr_Occurred()) return nullptr;
  return newTraceback(args[0], reinterpret_cast<PyCodeObject*>(args[1]), args[2], offset, leftAt, nullptr);
}

PyMethodDef definition = {"new_traceback", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(makeTraceback)), METH_FASTCALL, nullptr};

}  // namespace

PyObject* tracebackMaker() {
  static PyObject* function = checked(PyCFunction_New(&definition, nullptr)).release();
  return function;
}

}  // namespace cdynamo
