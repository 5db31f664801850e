// Tracebacks made by hand. Plain C, as compat.h.
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// A traceback of one entry before `next` (a traceback or None): for the instruction at that offset (in bytes) of a frame of the code
// that was left at another one. slots: what the frame's locals, cells and free variables hold (shared; null: unbound; what is no cell is
// put into a new one where a free variable must have it), or null for a frame that was cleared. New reference, null with an error set.
PyObject* newTraceback(PyObject* next, PyCodeObject* code, PyObject* globals, int offset, int leftAt, PyObject* const* slots);
// Puts an entry before those that the exception's traceback has. Never raises.
void addTracebackEntry(PyObject* exception, const char* function, const char* file, int line);

#ifdef __cplusplus
}
#endif
