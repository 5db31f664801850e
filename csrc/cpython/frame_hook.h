// PEP 523: frames that are about to run, handed to the engine. Plain C; needs the GIL.
#pragma once
#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// A function's frame before its first instruction. Everything is borrowed and stays alive until the frame is finished.
typedef struct StartingFrame {
  PyObject* function;
  PyCodeObject* code;
  // In order of co_varnames. Parameters come first and are bound; no cell has been made yet.
  PyObject* const* locals;
  // For runFrame and finishFrame.
  PyThreadState* thread;
  void* frame;
} StartingFrame;

// Answers with what runFrame or finishFrame returned; exactly one of them must be called, once. Never sees frames of generators
// and coroutines that go on, nor those with a namespace of their own (modules, class bodies, exec).
typedef PyObject* (*FrameEvaluator)(const StartingFrame* frame);

// Whether CPython will soon refuse calls that go through an evaluator, though plain ones could still be made.
int callsAreNearlyRefused(const StartingFrame* frame);
// How much deeper Python code may call Python code before CPython raises RecursionError.
int callsLeft(void);
// From now on it may be so many calls less deep.
void reserveCalls(int count);
// How many such calls a function of Python takes that is called by one of C, and that calls a function of C.
int callsOfCarrier(void);
// Lets CPython run the frame.
PyObject* runFrame(const StartingFrame* frame);
// Ends the frame without running it. `result` is taken over; null: the call fails with the Python error that is set, and the frame
// leaves no line in its traceback.
PyObject* finishFrame(const StartingFrame* frame, PyObject* result);

// From now on every Python call of the interpreter comes to `evaluator`. CPython runs frames by whatever evaluator was set before.
void installFrameHook(FrameEvaluator evaluator);
// Puts the evaluator of before back, unless somebody has set another one on top of ours; ours then passes all frames on.
void removeFrameHook(void);
// Whether ours is the interpreter's evaluator.
int frameHookInstalled(void);

// Room for one pointer in every code object. Negative where CPython has no more; `release` is called when a code object dies.
Py_ssize_t requestCodeSlot(freefunc release);
// Null where none was set.
void* codeSlot(PyCodeObject* code, Py_ssize_t slot);
// Negative with a Python error set on failure.
int setCodeSlot(PyCodeObject* code, Py_ssize_t slot, void* value);

#ifdef __cplusplus
}
#endif
