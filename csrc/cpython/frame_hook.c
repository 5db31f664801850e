#define Py_BUILD_CORE 1
#include "cpython/frame_hook.h"

#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#include "opcode.h"

typedef struct _PyInterpreterFrame InterpreterFrame;

static _PyFrameEvalFunction evaluatorBefore = NULL;
// Null while the hook is off; ours may still be called then, where somebody else's evaluator calls the one of before.
static FrameEvaluator hookEvaluator = NULL;
// Somebody else's evaluator was on top when the hook went off.
static int covered = 0;

static PyObject* evaluateFrame(PyThreadState* thread, InterpreterFrame* frame, int throwing) {
  if (hookEvaluator == NULL || throwing || frame->owner != FRAME_OWNED_BY_THREAD || frame->f_locals != NULL)
    return evaluatorBefore(thread, frame, throwing);
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* function = frame->f_funcobj;
#else
  PyObject* function = (PyObject*)frame->f_func;
#endif
  StartingFrame starting = {function, frame->f_code, frame->localsplus, thread, frame};
  return hookEvaluator(&starting);
}

int callsAreNearlyRefused(const StartingFrame* frame) {
#if PY_VERSION_HEX >= 0x030C0000
  // 3.12 counts calls from C, and as such these, apart from calls of Python by Python: 1500 units at first, later more.
  return frame->thread->c_recursion_remaining < 400;
#else
  (void)frame;
  return 0;
#endif
}

int callsLeft(void) {
#if PY_VERSION_HEX >= 0x030C0000
  return PyThreadState_Get()->py_recursion_remaining;
#else
  return PyThreadState_Get()->recursion_remaining;
#endif
}

void reserveCalls(int count) {
#if PY_VERSION_HEX >= 0x030C0000
  PyThreadState_Get()->py_recursion_remaining -= count;
#else
  PyThreadState_Get()->recursion_remaining -= count;
#endif
}

int callsOfCarrier(void) {
#if PY_VERSION_HEX >= 0x030C0000
  return 1;
#else
  return 2;
#endif
}

PyObject* runFrame(const StartingFrame* frame) { return evaluatorBefore(frame->thread, (InterpreterFrame*)frame->frame, 0); }

PyObject* finishFrame(const StartingFrame* starting, PyObject* result) {
#if PY_VERSION_HEX >= 0x030C0000
  // From 3.12 on the evaluator clears and pops the frame, which no exported function does: so it runs one instruction.
  static _Py_CODEUNIT leave[2] = {{.op.code = NOP, .op.arg = 0}, {.op.code = RETURN_VALUE, .op.arg = 0}};
  InterpreterFrame* frame = (InterpreterFrame*)starting->frame;
  if (result == NULL) {
    // A frame before its first instruction has no line for the traceback and no handler. It has not started for tracers either.
    starting->thread->tracing++;
    PyObject* nothing = _PyEval_EvalFrameDefault(starting->thread, frame, 1);
    starting->thread->tracing--;
    return nothing;
  }
  _PyFrame_StackPush(frame, result);
  frame->prev_instr = &leave[0];
  return _PyEval_EvalFrameDefault(starting->thread, frame, 0);
#else
  // In 3.11 the caller of the evaluator clears the frame.
  (void)starting;
  return result;
#endif
}

int frameHookInstalled(void) { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == evaluateFrame; }

void installFrameHook(FrameEvaluator evaluator) {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  hookEvaluator = evaluator;
  // One that was set on top of ours may call ours: it must not become the one that we call.
  if (now == evaluateFrame || (covered && now != _PyEval_EvalFrameDefault)) return;
  covered = 0;
  evaluatorBefore = now;
  _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluateFrame);
}

void removeFrameHook(void) {
  hookEvaluator = NULL;
  covered = !frameHookInstalled();
  if (!covered) _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluatorBefore);
}

#if PY_VERSION_HEX >= 0x030C0000
#define GET_EXTRA PyUnstable_Code_GetExtra
#define SET_EXTRA PyUnstable_Code_SetExtra
#define REQUEST_EXTRA PyUnstable_Eval_RequestCodeExtraIndex
#else
#define GET_EXTRA _PyCode_GetExtra
#define SET_EXTRA _PyCode_SetExtra
#define REQUEST_EXTRA _PyEval_RequestCodeExtraIndex
#endif

Py_ssize_t requestCodeSlot(freefunc release) { return REQUEST_EXTRA(release); }

void* codeSlot(PyCodeObject* code, Py_ssize_t slot) {
  void* value = NULL;
  return GET_EXTRA((PyObject*)code, slot, &value) < 0 ? NULL : value;
}

int setCodeSlot(PyCodeObject* code, Py_ssize_t slot, void* value) { return SET_EXTRA((PyObject*)code, slot, value); }
