// Captures of functions that are called from code that runs eagerly (PEP 523).
//
// The hook slows every Python call down, so the interpreter has it only while some thread runs such code. What is on or off is
// the thread's own affair:
//
//   FrameHookScope   eager part ─► callee: offered to its code's cache under these options, else run by CPython with the hook on
//     FrameHookPause   a capture, a backend, a graph, emitted code: nothing below is offered
//       FrameHookScope   an eager part between two graphs: on again
//
// Objects of both classes nest strictly, live on one thread's stack and need the GIL at both ends.
#pragma once
#include "base/ref.h"

namespace cdynamo {

struct FrameHookState {
  PyObject* options = nullptr;  // borrowed from the scope; null: off
  int recompileLimit = -1;
  PyObject* eagerCode = nullptr;  // only compared; null when its frame has started
};

class FrameHookScope {
 public:
  // eagerCode: the code of a call that is known to run eagerly, or null. Its first frame is not offered.
  explicit FrameHookScope(PyObject* options, int recompileLimit = -1, PyObject* eagerCode = nullptr);
  ~FrameHookScope();
  FrameHookScope(const FrameHookScope&) = delete;
  FrameHookScope& operator=(const FrameHookScope&) = delete;

 private:
  ObjectRef options_;
  FrameHookState before_;
};

class FrameHookPause {
 public:
  FrameHookPause();
  ~FrameHookPause();
  FrameHookPause(const FrameHookPause&) = delete;
  FrameHookPause& operator=(const FrameHookPause&) = delete;

 private:
  FrameHookState before_;
};

// Whether this thread is in an eager part whose callees are offered.
bool frameHookIsOn();

// Frames of this code are never offered; what they call still is. For emitted functions, continuations and single steps. Throws
// PythonError.
void skipCode(PyObject* code);

}  // namespace cdynamo
