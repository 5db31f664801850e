#include "graph/graph.h"

namespace cdynamo {

Node* Graph::add(NodeOp op, ObjectRef target, std::vector<Arg> args, std::vector<std::pair<ObjectRef, Arg>> kwargs) {
  Node& node = nodes_.emplace_back();
  node.op = op;
  node.id = static_cast<int32_t>(nodes_.size() - 1);
  node.target = std::move(target);
  node.args = std::move(args);
  node.kwargs = std::move(kwargs);
  return &node;
}

void Graph::truncate(size_t position) {
  while (nodes_.size() > position) nodes_.pop_back();
}

size_t Graph::callCount() const {
  size_t n = 0;
  for (const Node& node : nodes_) n += !node.cut && (node.op == NodeOp::CallFunction || node.op == NodeOp::CallMethod);
  return n;
}

bool Graph::hasWork() const {
  for (const Node& node : nodes_)
    if ((node.op == NodeOp::CallFunction || node.op == NodeOp::CallMethod) && !node.switchesMode && !node.cut) return true;
  return false;
}

}  // namespace cdynamo
