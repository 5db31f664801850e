// The state of one interpreted frame, and the loop that runs it.
#pragma once
#include <vector>

#include "bytecode/code.h"
#include "values/trace.h"

namespace cdynamo {

enum class Signal : uint8_t { Running, Returned, Yielded };

struct FrameState {
  const Code* code = nullptr;
  InstrIndex ip = 0;  // the instruction being run
  InstrIndex nextIp = 0;
  std::vector<Value*> locals;  // localsplus; null: unbound
  std::vector<Value*> stack;
  FrameState* parent = nullptr;          // who runs it now
  ReturnTo returnTo = ReturnTo::Native;  // what its caller's instruction does with its result
  Value* handledAtEntry = nullptr;       // Trace::handledException when the frame started
  bool awaiting = false;                 // after a break: its call was made before this trace, so that its instruction cannot be run again
  Value* function = nullptr;
  GeneratorValue* generator = nullptr;  // whose body it is; null: of a plain call
  PyObject* globals = nullptr;          // borrowed
  PyObject* builtins = nullptr;         // borrowed
  DictValue* globalsDict = nullptr;     // twin of globals
  DictValue* builtinsDict = nullptr;
  Value* closure = nullptr;    // tuple of cells, or null
  DictValue* names = nullptr;  // class bodies: the namespace
  TracePlace* place = nullptr;
  std::vector<PyObject*> tracebacks;  // entries for this frame in tracebacks that the trace made. Borrowed
  Signal signal = Signal::Running;
  Value* result = nullptr;   // returned or yielded
  Checkpoint atInstruction;  // state before the current instruction
  int turns = 0;             // of its loops
  // Values popped by the current instruction from below `lowWater`, latest last: what a rollback pushes back.
  std::vector<Value*> popped;
  size_t lowWater = 0;

  Value* pop() {
    Value* v = stack.back();
    stack.pop_back();
    if (stack.size() < lowWater) {
      lowWater = stack.size();
      popped.push_back(v);
    }
    return v;
  }
  void push(Value* v) { stack.push_back(v); }
  Value*& top(size_t n = 1) { return stack[stack.size() - n]; }
  std::vector<Value*> popMany(size_t n) {
    std::vector<Value*> items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    return items;
  }
  void beginInstruction() {
    lowWater = stack.size();
    popped.clear();
  }
  // Gives the stack back as it was before the current instruction.
  void restoreStack() {
    stack.resize(lowWater);
    while (!popped.empty()) {
      stack.push_back(popped.back());
      popped.pop_back();
    }
    lowWater = stack.size();
  }
};

// Runs until the frame returns or yields. Throws Raised where an exception leaves the frame.
Signal runFrame(Trace& t, FrameState& f);

// Raises an exception at the point where a suspended frame stands, and goes on.
Signal throwInto(Trace& t, FrameState& f, Value* exception);

// The offset in bytes of the instruction at which an exception is raised that comes from the current one: what is raised again behind a
// finally clause or a with block puts the frame back to where it was raised.
int32_t raisedAt(const FrameState& f);

// Whether some frame that runs now stands inside try or with.
bool isInsideTry(const Trace& t);

// Where the frame is a forward() of an nn.Module: notes the module for nn_module_stack.
void noteModuleFrame(Trace& t, FrameState& f);

// A frame for a function's code with its arguments bound. The frame lives as long as the trace.
FrameState* newFrame(Trace& t, const Code& code, Value* function, PyObject* globals, Value* closure);

}  // namespace cdynamo
