#define Py_BUILD_CORE 1
#include "cpython/tracebacks.h"

#include "frameobject.h"
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"

PyObject* newTraceback(PyObject* next, PyCodeObject* code, PyObject* globals, int offset, int leftAt, PyObject* const* slots) {
  PyFrameObject* frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
  if (!frame) return NULL;
  frame->f_frame->prev_instr = _PyCode_CODE(code) + leftAt / (int)sizeof(_Py_CODEUNIT);
  frame->f_frame->previous = NULL;
  frame->f_frame->stacktop = 0;
  for (int i = 0; slots && i < code->co_nlocalsplus; i++) {
    PyObject* held = Py_XNewRef(slots[i]);
    // CPython looks into the cells of free variables without asking whether there is one.
    if ((_PyLocals_GetKind(code->co_localspluskinds, i) & CO_FAST_FREE) && !(held && PyCell_Check(held))) {
      PyObject* cell = PyCell_New(held);
      Py_XDECREF(held);
      held = cell;
      if (!held) {
        Py_DECREF(frame);
        return NULL;
      }
    }
    frame->f_frame->localsplus[i] = held;
    frame->f_frame->stacktop = i + 1;
  }
  PyObject* made = PyObject_CallFunction((PyObject*)&PyTraceBack_Type, "OOii", next, frame, offset, PyCode_Addr2Line(code, offset));
  Py_DECREF(frame);
  return made;
}

void addTracebackEntry(PyObject* exception, const char* function, const char* file, int line) {
  Py_INCREF(Py_TYPE(exception));
  Py_INCREF(exception);
  PyErr_Restore((PyObject*)Py_TYPE(exception), exception, PyException_GetTraceback(exception));
  _PyTraceback_Add(function, file, line);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (traceback != NULL && value != NULL) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}
