// Runs a finished graph node by node, as the user's own code would have done.
#pragma once
#include <memory>
#include <vector>

#include "graph/program.h"

namespace cdynamo {

// The program as a list of steps over a small register file. Made once; running it changes nothing here, so that
// calls may nest and threads may share it.
class Plan {
 public:
  // Borrows the program, which must live as long. Throws EngineError where a node uses a later one.
  explicit Plan(const Program& program);

  // Calls every node in order and returns the tuple of outputs. Values are released after their last use.
  // Throws PythonError; the traceback then has an entry for each level of the user's stack at the failing node.
  ObjectRef run(PyObject* const* inputs, size_t inputCount) const;

  int traverse(visitproc visit, void* arg) const;

 private:
  struct Operand {
    int32_t reg = -1;              // >= 0: that register
    PyObject* constant = nullptr;  // else, where not null: a ready object (owned by the program or by constants_)
    const Arg* tree = nullptr;     // else: a container that is built anew for each call
  };
  struct Step {
    const Node* node = nullptr;
    uint32_t firstOperand = 0;
    uint32_t operandCount = 0;  // positional and keyword operands together
    uint32_t keywordCount = 0;
    ObjectRef keywordNames;     // tuple of str, or null
    int32_t result = -1;        // register; -1: nobody reads it
    uint32_t firstRelease = 0;  // registers that die here
    uint32_t releaseCount = 0;
  };
  struct RunState;

  Operand operandOf(const Arg& arg);
  void addStep(const Node& node);
  ObjectRef call(const Step& step, RunState& state) const;
  ObjectRef build(const Arg& arg, const RunState& state) const;
  void noteUserStack(const Node& node) const;
  // After a failure: the steps that switch modes (grad mode, autocast, settings) are done to the end, which is where the graph
  // leaves them as they were. The error stays set.
  void leaveModes(size_t failed, RunState& state) const;

  const Program& program_;
  std::vector<Step> steps_;
  std::vector<Operand> operands_;
  std::vector<int32_t> releases_;
  std::vector<int32_t> registerOf_;       // by node id, -1: none
  std::vector<int32_t> inputRegisters_;   // by placeholder, -1: unused
  std::vector<int32_t> outputRegisters_;  // by output
  std::vector<ObjectRef> constants_;
  size_t registerCount_ = 0;
  size_t mostOperands_ = 0;
};

}  // namespace cdynamo
