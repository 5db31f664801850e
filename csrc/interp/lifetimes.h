// When objects that exist outside of the trace die.
#pragma once
#include "values/trace.h"

namespace cdynamo {

// The type of the object, or of an item where it is a tuple, that may run code when it dies; null: there is none.
PyTypeObject* finalizedType(PyObject* object);

// Breaks where the program lets go of an existing object that may run code when it dies: it must die here, not when the captured code
// has ended. old: null where nothing is let go of.
void checkOverwritten(Trace& t, Value* old);

// Breaks where a variable is about to be changed that alone holds such an object, itself or in a container that the trace made, or one whose
// death a callback sees.
void checkVariable(Trace& t, Value*& variable);

// A variable of the traced program: no container is known to hold what it refers to.
bool isVariable(const Source* s);

// Whether a variable or stack of the traced program leads to the value. Not all ways are followed: false is no proof.
bool isReachable(const Trace& t, const Value* v);

// The same where frame f returns to another one of the trace and v is a local of it: an existing generator, or an iterator over one.
void checkLeft(Trace& t, Value* v, const FrameState& f);

// The same where v was on a stack, or (dyingFrame) is a local of an inlined frame that returns: breaks only where the frames held nothing
// but that.
void checkLetGo(Trace& t, Value* v, const FrameState* dyingFrame = nullptr);

// Puts the interpreter back to where it stood, also after what was thrown out of calls.
class StandsHere {
 public:
  explicit StandsHere(Trace& t) : t_(t), frame_(t.frame), place_(t.place) {}
  ~StandsHere() {
    t_.frame = frame_;
    t_.place = place_;
  }
  StandsHere(const StandsHere&) = delete;
  StandsHere& operator=(const StandsHere&) = delete;
  // The break that is under way is one of the current instruction, which is left to CPython.
  void breakHere() const { t_.failedFrame = nullptr, t_.failedPlace = nullptr; }

 private:
  Trace& t_;
  FrameState* frame_;
  const TracePlace* place_;
};

// v was on the stack and is no more: a generator that nothing else holds is closed, what cannot die here breaks.
void letGo(Trace& t, Value* v);

}  // namespace cdynamo
