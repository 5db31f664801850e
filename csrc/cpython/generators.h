// The state of CPython's generators: read where they stand, and put where the trace left them. Plain C, as compat.h.
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of a generator that has not started, or waits at a yield.
typedef struct GeneratorFrame {
  PyCodeObject* code;  // all borrowed
  PyObject* function;
  PyObject* globals;
  int started;
  int unit;          // code unit of the YIELD_VALUE; not started: of the RETURN_GENERATOR
  PyObject** slots;  // locals, cells and free variables; null: unbound
  int slotCount;
  PyObject** stack;
  int stackDepth;
  PyObject* handled;  // the exception that it handles; or null
} GeneratorFrame;

// 0 where the generator runs or has ended.
int readGenerator(PyObject* generator, GeneratorFrame* out);

// How many slots its frame has, the stack not counted.
int generatorSlots(PyObject* generator);

// A new generator of the function that has not started, made with None for every argument. Null with an error set.
PyObject* blankGenerator(PyObject* function);
// Lets the generator stand at the YIELD_VALUE with these values (shared; null: unbound); stack and slots fit its code.
void setGenerator(PyObject* generator, int unit, PyObject* const* slots, PyObject* const* stack, int stackDepth, PyObject* handled);
// It runs, and holds nothing: its frame is somewhere else.
void setGeneratorRunning(PyObject* generator);
// Raises StopIteration with a generator's result.
void setStopIteration(PyObject* result);
// It has ended. -1 with an error set.
int finishGenerator(PyObject* generator);

// Whether throw(type, value) warns.
int oldThrowWarns(void);

#ifdef __cplusplus
}
#endif
