#define Py_BUILD_CORE 1
#include "cpython/compat.h"
#include "frameobject.h"
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"

PyObject* newTraceback(PyObject* next, PyCodeObject* code, PyObject* globals, int offset, int leftAt) {
  PyFrameObject* frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
  if (!frame) return NULL;
  // As a frame that has ended and was cleared: it stands at the instruction and has no locals.
  frame->f_frame->prev_instr = _PyCode_CODE(code) + leftAt / (int)sizeof(_Py_CODEUNIT);
  frame->f_frame->previous = NULL;
  frame->f_frame->stacktop = 0;
  PyObject* made = PyObject_CallFunction((PyObject*)&PyTraceBack_Type, "OOii", next, frame, offset, PyCode_Addr2Line(code, offset));
  Py_DECREF(frame);
  return made;
}
