// One capture of one code object that calls can use again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dispatch/replay.h"
#include "emit/resume.h"
#include "guards/program.h"

namespace cdynamo {

struct Entry {
  std::unique_ptr<GuardProgram> guards;
  // Python callable, run as function(graphInputs, objects): two tuples with the values that the guards hand out. The
  // first graphInputCount of them are the graph's inputs, the rest are objects that the code around the graph needs.
  ObjectRef function;
  uint32_t graphInputCount = 0;
  // The capture stands for functions with this __globals__ only. Null: for any.
  ObjectRef globals;
  // Direct: the result is item `directOutput` of what `graph` returns for the inputs, and there is nothing else to do;
  // `function` is not used. With -1 the result is what `graph` returns.
  bool direct = false;
  ObjectRef graph;
  int32_t directOutput = -1;
  // Not empty: the capture ended in a break. The result is a tuple of what these frames, outermost first, carry over: the
  // values of each, then its cells.
  std::vector<ResumeChain::Frame> suspended;
  ReplayPlan replay;        // what to do where the graph fails
  bool eagerAfter = false;  // the rest of the innermost of them is not captured
  // What the front calls this capture, a str such as "0/1" that reports of misses begin with; or null.
  ObjectRef record;
  uint64_t hits = 0;
};

}  // namespace cdynamo
