// The captured graph: our own IR, turned into torch.fx once at the end and only when someone looks at it.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/ref.h"
#include "shapes/tensor_meta.h"
#include "source/place.h"

namespace cdynamo {

struct Node;

// What an operation returns, without running it.
struct ResultMeta {
  enum Kind : uint8_t { None, Tensor, Tuple, List, NamedTuple, Dict, Constant, Number } kind = None;
  TensorMeta tensor;              // Tensor
  std::vector<ResultMeta> items;  // Tuple, List, NamedTuple, Dict (its values)
  ObjectRef object;  // NamedTuple: its class (torch.return_types.max, ...); Dict: tuple of its keys; Constant: the object itself; Number: int, float
                     // or bool
};

// An operand: a node, a Python constant, or a container of operands.
struct Arg {
  enum Kind : uint8_t { NodeRef, Constant, List, Tuple, Dict, Slice } kind = Constant;
  Node* node = nullptr;
  ObjectRef object;        // Constant: the object; Dict: tuple of keys; Tuple of a namedtuple class: the class
  std::vector<Arg> items;  // List, Tuple, Dict values, Slice (3 items)
};

enum class NodeOp : uint8_t { Placeholder, CallFunction, CallMethod, GetAttr, Output };

struct Node {
  NodeOp op;
  int32_t id = 0;    // position in the graph
  ObjectRef target;  // callable, or str for CallMethod/GetAttr/Placeholder
  std::vector<Arg> args;
  std::vector<std::pair<ObjectRef, Arg>> kwargs;
  std::string nameHint;  // name of the user's variable it was stored to, may be empty
  ResultMeta result;
  const TracePlace* place = nullptr;
  bool switchesMode = false;       // a call that only changes torch's state (grad mode, autocast)
  bool writesHidden = false;       // to running statistics, weights or lists of tensors, without telling autograd
  bool cut = false;                // moved to a body (graph/body.h), or the input of one: no node of this graph any more
  const Source* source = nullptr;  // Placeholder
  int32_t earlyCall = -1;          // Placeholder without a source: number of the call whose result it is
  PyObject* example = nullptr;     // Placeholder: the real input, borrowed, valid during the capture only
};

// Append-only with truncation, so that a checkpoint is a position.
class Graph {
 public:
  Node* add(NodeOp op, ObjectRef target, std::vector<Arg> args, std::vector<std::pair<ObjectRef, Arg>> kwargs);
  size_t position() const { return nodes_.size(); }
  void truncate(size_t position);
  const std::deque<Node>& nodes() const { return nodes_; }
  std::deque<Node>& nodes() { return nodes_; }
  size_t callCount() const;  // nodes that are calls
  bool hasWork() const;      // whether one of them does more than switch modes

  // Filled by emission: which nodes the compiled code reads back, in order.
  std::vector<Node*> outputs;

 private:
  std::deque<Node> nodes_;
};

// The graph as a backend sees it: placeholders first, in order of first use, those of early calls last; unused placeholders and unused items of
// tuples (calls of `getitem`) dropped; every other call kept. Consumes the traced graph.
Graph finishGraph(Graph&& traced, PyObject* getitem);

}  // namespace cdynamo
