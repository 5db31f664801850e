// Bodies: parts of a traced graph that become graphs of their own, called by one node of it.
#pragma once
#include "graph/graph.h"

namespace cdynamo {

// Nodes by position, [begin, end). Inputs of the whole graph that were met in between are not part of it.
struct NodeRange {
  size_t begin, end;
  bool has(const Node* node) const {
    return node->op != NodeOp::Placeholder && static_cast<size_t>(node->id) >= begin && static_cast<size_t>(node->id) < end;
  }
};

// What the nodes of a range, and those among `outputs`, use from outside of it: each once, in order of first use, after `found`.
void addFreeNodes(const Graph& graph, NodeRange range, const std::vector<Node*>& outputs, std::vector<Node*>& found);

// Moves the nodes of a range into a graph of their own: a placeholder for each of `inputs` (a node given twice gets two), then
// the nodes, then `outputs`. Every node that is used from outside must be among the inputs. The nodes stay where they were,
// marked as cut.
Graph cutBody(Graph& traced, NodeRange range, const std::vector<Node*>& inputs, const std::vector<Node*>& outputs);

}  // namespace cdynamo
