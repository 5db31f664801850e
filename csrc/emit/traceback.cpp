#include "emit/traceback.h"

#include "base/error.h"
#include "cpython/compat.h"

namespace cdynamo {

namespace {

PyObject* addTraceback(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyExceptionInstance_Check(args[0]) || !PyTuple_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "add_traceback(exception, places)");
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); i++) {
    const char *function, *file;
    int line;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(args[1], i), "ssi", &function, &file, &line)) return nullptr;
    addTracebackEntry(args[0], function, file, line);
  }
  return ObjectRef::share(Py_None).release();
}

PyMethodDef addTracebackDef = {"add_traceback", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(addTraceback)), METH_FASTCALL, nullptr};

}  // namespace

PyObject* tracebackAdder() {
  static PyObject* function = checked(PyCFunction_New(&addTracebackDef, nullptr)).release();
  return function;
}

ObjectRef tracebackPlaces(const std::vector<const TracePlace*>& places) {
  ObjectRef rows = checked(PyTuple_New(static_cast<Py_ssize_t>(places.size())));
  for (size_t i = 0; i < places.size(); i++) {
    auto* code = reinterpret_cast<PyCodeObject*>(places[i]->code);
    PyTuple_SET_ITEM(rows.get(), static_cast<Py_ssize_t>(i),
                     checked(Py_BuildValue("(OOi)", code->co_name, code->co_filename, places[i]->line)).release());
  }
  return rows;
}

}  // namespace cdynamo
