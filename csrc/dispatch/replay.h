// A graph that fails while it runs: what the program did before is not done yet (effects come after the graph), so that CPython
// can run the call from its start, where handlers, effects and output are the program's own.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ref.h"

namespace cdynamo {

// Decided when the capture is made.
struct ReplayPlan {
  bool wanted = false;            // something would be lost if the error went straight to the caller
  bool saves = false;             // an operation may fail on data after a write: inputs that the graph writes to are copied before it, if small
  bool hidden = false;            // some write cannot be told by a tensor's version
  bool draws = false;             // the graph draws random numbers of torch
  bool drawsInPython = false;     // the code before the graph draws some of module random
  std::vector<uint32_t> written;  // graph inputs that the graph writes to
  ObjectRef program;              // the graph as it was captured, where a backend has made something else of it
};

// What the graph may change, as it is before it runs. Nothing throws.
class BeforeGraph {
 public:
  BeforeGraph(const ReplayPlan& plan, PyObject* const* inputs);
  // With the graph's error set: puts everything back and clears the error where the call can be made again from its start; else
  // leaves the error as it is. An error that the captured graph does not raise on these inputs is the backend's, and stays.
  void undo(PyObject* const* inputs, size_t inputCount);

 private:
  bool putBack();
  bool programFails(PyObject* const* inputs, size_t inputCount);

  struct Written {
    ObjectRef tensor, copy;
    int64_t version = -1;
    bool requiresGrad = false, isLeaf = false;
  };
  const ReplayPlan& plan_;
  std::vector<Written> written_;
  ObjectRef torchState_, pythonState_;
  bool complete_ = true;
};

// A callable that runs the graph and notes its failure.
ObjectRef watchedGraph(const ObjectRef& graph);
// Whether the error that is set is one that a watched graph has raised on this thread.
bool isGraphFailure();

}  // namespace cdynamo
