#define Py_BUILD_CORE 1
#include "cpython/generators.h"

#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#include "opcode.h"

static _PyInterpreterFrame* frameOf(PyGenObject* g) { return (_PyInterpreterFrame*)g->gi_iframe; }

int readGenerator(PyObject* generator, GeneratorFrame* out) {
  PyGenObject* g = (PyGenObject*)generator;
  if (!PyGen_CheckExact(generator) || (g->gi_frame_state != FRAME_SUSPENDED && g->gi_frame_state != FRAME_CREATED)) return 0;
  _PyInterpreterFrame* f = frameOf(g);
  out->started = g->gi_frame_state == FRAME_SUSPENDED;
  out->code = f->f_code;
#if PY_VERSION_HEX >= 0x030C0000
  out->function = f->f_funcobj;
#else
  out->function = (PyObject*)f->f_func;
#endif
  out->globals = f->f_globals;
  out->unit = (int)(f->prev_instr - _PyCode_CODE(f->f_code));
  out->slots = f->localsplus;
  out->slotCount = f->f_code->co_nlocalsplus;
  out->stack = f->localsplus + out->slotCount;
  out->stackDepth = f->stacktop - out->slotCount;
  out->handled = g->gi_exc_state.exc_value == Py_None ? NULL : g->gi_exc_state.exc_value;
  return out->function != NULL;
}

PyObject* blankGenerator(PyObject* function) {
  PyCodeObject* code = (PyCodeObject*)PyFunction_GET_CODE(function);
  Py_ssize_t positional = code->co_argcount, named = code->co_kwonlyargcount;
  PyObject* names = NULL;
  if (named) {
    PyObject* all = PyCode_GetVarnames(code);
    names = all ? PyTuple_GetSlice(all, positional, positional + named) : NULL;
    Py_XDECREF(all);
    if (!names) return NULL;
  }
  PyObject** args = PyMem_New(PyObject*, (size_t)(positional + named) + 1);
  if (!args) {
    Py_XDECREF(names);
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < positional + named; i++) args[i] = Py_None;
  PyObject* made = PyObject_Vectorcall(function, args, (size_t)positional, names);
  PyMem_Free(args);
  Py_XDECREF(names);
  return made;
}

// Moves what the frame holds into `out`, which has room for it; how many there are.
static int takeAll(PyGenObject* g, PyObject** out) {
  _PyInterpreterFrame* f = frameOf(g);
  int count = 0;
  for (int i = 0; i < f->stacktop; i++) {
    if (f->localsplus[i]) out[count++] = f->localsplus[i];
    f->localsplus[i] = NULL;
  }
  if (g->gi_exc_state.exc_value) out[count++] = g->gi_exc_state.exc_value;
  g->gi_exc_state.exc_value = NULL;
  f->stacktop = f->f_code->co_nlocalsplus;
  return count;
}

void setGenerator(PyObject* generator, int unit, PyObject* const* slots, PyObject* const* stack, int stackDepth, PyObject* handled) {
  PyGenObject* g = (PyGenObject*)generator;
  _PyInterpreterFrame* f = frameOf(g);
  PyCodeObject* code = f->f_code;
  PyObject** old = PyMem_New(PyObject*, (size_t)(code->co_nlocalsplus + code->co_stacksize) + 1);
  if (!old) Py_FatalError("no memory for a generator's frame");
  int count = takeAll(g, old);
  for (int i = 0; i < code->co_nlocalsplus; i++) f->localsplus[i] = Py_XNewRef(slots[i]);
  for (int i = 0; i < stackDepth; i++) f->localsplus[code->co_nlocalsplus + i] = Py_XNewRef(stack[i]);
  f->stacktop = code->co_nlocalsplus + stackDepth;
  f->prev_instr = _PyCode_CODE(code) + unit;
  g->gi_exc_state.exc_value = Py_XNewRef(handled);
  g->gi_frame_state = FRAME_SUSPENDED;
  for (int i = 0; i < count; i++) Py_DECREF(old[i]);
  PyMem_Free(old);
}

void setGeneratorRunning(PyObject* generator) {
  PyGenObject* g = (PyGenObject*)generator;
  _PyInterpreterFrame* f = frameOf(g);
  PyObject** old = PyMem_New(PyObject*, (size_t)(f->f_code->co_nlocalsplus + f->f_code->co_stacksize) + 1);
  if (!old) Py_FatalError("no memory for a generator's frame");
  int count = takeAll(g, old);
  f->prev_instr = _PyCode_CODE(f->f_code);
  g->gi_frame_state = FRAME_EXECUTING;
  for (int i = 0; i < count; i++) Py_DECREF(old[i]);
  PyMem_Free(old);
}

int finishGenerator(PyObject* generator) {
  PyGenObject* g = (PyGenObject*)generator;
  if (g->gi_frame_state >= FRAME_COMPLETED) return 0;
  setGeneratorRunning(generator);
  // As if it had not started: CPython then closes it without running any of its code.
  _PyInterpreterFrame* f = frameOf(g);
  _Py_CODEUNIT* at = _PyCode_CODE(f->f_code);
  while (_Py_OPCODE(*at) != RETURN_GENERATOR) at++;
  f->prev_instr = at;
  g->gi_frame_state = FRAME_CREATED;
  PyObject* none = PyObject_CallMethod(generator, "close", NULL);
  Py_XDECREF(none);
  return none ? 0 : -1;
}

void setStopIteration(PyObject* result) { _PyGen_SetStopIterationValue(result); }

int generatorSlots(PyObject* generator) {
#if PY_VERSION_HEX >= 0x030C0000
  return frameOf((PyGenObject*)generator)->f_code->co_nlocalsplus;  // kept until the generator dies
#else
  return ((PyGenObject*)generator)->gi_code->co_nlocalsplus;
#endif
}

int oldThrowWarns(void) { return PY_VERSION_HEX >= 0x030C0000; }
