// Places where a frame goes on after a break, and the code for it.
//
// A ResumePoint says which of a frame's values are carried over: a list of values in the order locals (by slot), stack
// (bottom first), the exception being handled. Cells and free variables travel apart, as the closure of the function
// that goes on: so all frames and inner functions keep sharing the same cells.
//
//   continuation   a function of the carried values that goes on at the point: run where the capture of what follows is
//                  refused
//   step           a function of the carried values that runs the one instruction at the point, in the original scope of
//                  exception handlers, and returns what is carried to the next point
#pragma once
#include <memory>
#include <vector>

#include "base/ref.h"
#include "bytecode/code.h"
#include "values/return_to.h"

namespace cdynamo {

struct ResumePoint;
struct PointsOfCode;
// Keeps all points of its code alive: edges between them are plain pointers.
using PointRef = std::shared_ptr<const ResumePoint>;

// From one point to another: item i of the target's values is values[take[i]], or one of the new values (-1, -2, ...).
struct ResumeEdge {
  const ResumePoint* to = nullptr;
  std::vector<int> take;
};

// One instruction run by CPython. It returns a tuple: the stack, the locals, and last the number of the exit taken.
struct ResumeStep {
  Ref<PyCodeObject> code;
  std::vector<const ResumePoint*> exits;
};

struct ResumePoint {
  std::shared_ptr<const Code> code;
  InstrIndex index = 0;
  std::vector<int> locals;      // plain slots that are carried
  std::vector<bool> stack;      // by slot: carried, or (false) the mark of an unbound local
  bool handled = false;         // an exception is being handled that was not when the frame started
  size_t stackValues = 0;       // carried stack slots
  size_t cells = 0;             // how many travel apart
  PointsOfCode* all = nullptr;  // where it lives

  size_t valueCount() const { return locals.size() + stackValues + handled; }
  // The code of a function of valueCount() parameters, then one that it calls first (from there on the frame alone holds the values), and
  // as many free variables as the code has cells.
  PyCodeObject* continuation() const;
  const ResumeStep& step() const;
  // Where a call made by the instruction returned (new value -1: the result). The carried stack is without the operands.
  const ResumeEdge& returnEdge(ReturnTo action) const;
  // Where it raised (-1: the exception, -2: the place, an int); null where the frame has no handler there.
  const ResumeEdge* raiseEdge() const;
  // Where the instruction goes on when the generator that it resumed has returned (-1: what it returned; Next: a loop ends, also where
  // an iterator's __next__ raised StopIteration). Next and Sent only.
  const ResumeEdge& exhaustedEdge(ReturnTo action) const;
  // The frame is a generator's: the generator object belongs to it, apart from the values.
  bool isGenerator() const { return (code->flags() & CO_GENERATOR) != 0; }
  // A function f(callee) that only calls it: its frame has the name and line of this one's instruction.
  PyCodeObject* carrier() const;
  // The reflected method of the binary operator at the point, after the left operand's gave NotImplemented. A new reference.
  PyObject* reflectedOperator(PyObject* left, PyObject* right) const;

 private:
  mutable Ref<PyCodeObject> carrier_;
  mutable Ref<PyCodeObject> continuation_;
  mutable std::unique_ptr<ResumeStep> step_;
  mutable std::unique_ptr<ResumeEdge> return_[kReturnToCount], raise_, exhausted_, sent_;
};

enum class LocalState : uint8_t { Unbound, Bound, Kept };

// The point for this state, always the same object for the same state while anyone holds a point of the code. `locals` and `stack` are by slot. A
// bound local that cannot be read any more is not carried, unless it is kept for its object's sake: eager would not let that die here.
PointRef resumePoint(const Code& code, InstrIndex index, const std::vector<LocalState>& locals, std::vector<bool> stack, bool handled);
// The same point with more locals carried, which cannot be read any more.
const ResumePoint* keeping(const ResumePoint& point, const std::vector<int>& slots);
// What is said about a code object is forgotten: it dies.
void forgetTraits(PyCodeObject* code);
// An object whose death runs code or is seen by a weak reference.
bool isDeathVisible(PyObject* object);
// An object of a C type of some library, or of a class below one: what its death does nobody knows (a file is closed, a decimal.Context
// takes the memory of its flags with it).
bool isForeign(PyObject* object);
// Frames that go on together in one capture: the innermost first at its point, the others when the one inside returns.
struct ResumeChain {
  struct Frame {
    PointRef at;
    ReturnTo returnTo = ReturnTo::Native;  // what the frame's result does in the one outside it
    ObjectRef globals;
  };
  ResumeChain() = default;
  ~ResumeChain();
  ResumeChain(const ResumeChain&) = delete;
  ResumeChain& operator=(const ResumeChain&) = delete;
  std::vector<Frame> frames;  // outermost first
  // Never run: parameters for all carried values (and a generator's object), free variables for all cells, frame by frame.
  Ref<PyCodeObject> signature;
};
// The chain of these frames, always the same object while anyone holds it.
std::shared_ptr<const ResumeChain> resumeChain(std::vector<ResumeChain::Frame> frames);
// The chain whose signature this code is; null for all other code.
const ResumeChain* resumeChainOf(PyObject* code);
// False where code that runs apart from its frame would see the difference.
bool isResumable(const Code& code);
// True where CPython's stack at every yield is as the normal form has it: no yield is among the arguments of a call.
bool hasPlainYields(const Code& code);
// Of torch itself.
bool isLibraryCode(const Code& code);
// The slots that hold cells, in the order of the continuation's closure.
std::vector<int> cellSlots(const Code& code);

}  // namespace cdynamo
