// A break: the trace is taken back to the start of an instruction, and its frames are described for those who go on there.
#pragma once
#include <vector>

#include "emit/resume.h"
#include "interp/frame.h"

namespace cdynamo {

struct Suspension {
  std::vector<ResumeChain::Frame> frames;  // outermost first
  std::vector<Value*> values;              // what they carry: of each its values, then its cells
  int line = 0;                            // of the instruction that is not captured
};

// The frames that can go on after a break in the innermost one, outermost first. Where C++ code between two frames was
// half way, the inner ones are left out: the instruction of the outer one is then run as a whole.
std::vector<FrameState*> resumableFrames(FrameState* innermost);

// Rolls the trace back to the start of the last frame's current instruction and says what the frames hold there. Throws
// Unsupported where that cannot be said. wholly: with the variables that cannot be read any more.
Suspension suspend(Trace& t, const std::vector<FrameState*>& frames, bool wholly);

// The block in which torch._dynamo would not resume after a break at the frame's current instruction; null: none.
const char* unresumedBlock(const FrameState& f);

// Closes what the graph has opened (grad mode, autocast), so that backends get a balanced graph.
void balanceGraph(Trace& t, bool gradAtEntry);

}  // namespace cdynamo
