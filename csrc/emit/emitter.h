// Bytecode out: calls the graph, rebuilds the values that leave the frame, replays the effects.
//
// The emitted function takes (graph inputs, objects): what the guard program read from the frame's inputs.
#pragma once
#include <vector>

#include "bytecode/assembler.h"
#include "values/trace.h"

namespace cdynamo {

struct Emitted {
  Ref<PyCodeObject> code;  // null: direct, the result is graph output number `direct`
  int32_t direct = -1;
  std::vector<const Source*> objects;  // what the second tuple holds
  ObjectRef graphBox;                  // a list: item 0 must be set to the graph's callable before the code runs
};

// Code for a frame that returned `result`. Fills trace.graph.outputs. Throws Unsupported(Unreconstructable).
Emitted emitReturn(Trace& t, PyCodeObject* like, Value* result, bool gradAtEntry);

// Code for a capture that ends in the middle of its frames: it returns a tuple of `values`. The same otherwise.
Emitted emitSuspend(Trace& t, PyCodeObject* like, int line, const std::vector<Value*>& values, bool gradAtEntry);

}  // namespace cdynamo
