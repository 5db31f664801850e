// Parts of the traced program whose operations become a graph of their own, called by one node: what torch calls higher-order operators.
#pragma once
#include "graph/body.h"
#include "interp/protocol.h"

namespace cdynamo {

// While it lives, what the trace records belongs to a body.
class BodyScope {
 public:
  explicit BodyScope(Trace& t);
  ~BodyScope();
  NodeRange range() const { return {begin_, t_.graph.position()}; }
  // Whether the program has changed objects that existed before the body began.
  bool wroteOutside() const { return t_.wroteOutsideBody; }
  // Whether it did anything that is not in the body's graph: such changes, output that is put off, or writes to the graph's inputs.
  bool hasEffects() const;

 private:
  Trace& t_;
  size_t begin_, effects_, written_;
  int32_t outerSerial_;
  bool outerWrote_;
};

// Changes grad mode for the trace alone; no node says so.
class TraceGradMode {
 public:
  TraceGradMode(Trace& t, bool enabled);
  ~TraceGradMode();

 private:
  bool before_;
};

// The tensors inside lists, tuples, dicts and objects of v, each once. False: something inside cannot be looked into.
bool collectTensors(Trace& t, Value* v, std::vector<TensorValue*>& found);

// A GraphProgram as an attribute of the graph, named prefix_0, prefix_1, ...
Node* addBody(Trace& t, const char* prefix, PyObject* program);
Arg nodeArg(Node* node);
Arg constantArg(ObjectRef object);
// A call of a function with bodies among its arguments: its items, one node each.
std::vector<Node*> addBodyCall(Trace& t, PyObject* target, std::vector<Arg> args, std::vector<std::pair<ObjectRef, Arg>> kwargs,
                               std::vector<TensorMeta> results);
// Sets program.output_tree, which says how torch.fx shows the outputs: positions, None, and tuples of these.
void setOutputTree(PyObject* program, ObjectRef tree);
TensorValue* tensorOf(Trace& t, Node* node, const TensorMeta& meta);

}  // namespace cdynamo
