#include "graph/body.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"

namespace cdynamo {

namespace {

using NodeMap = std::unordered_map<const Node*, Node*>;

void collect(const Arg& arg, NodeRange range, std::vector<Node*>& found) {
  if (arg.kind == Arg::NodeRef && !range.has(arg.node) && std::find(found.begin(), found.end(), arg.node) == found.end()) found.push_back(arg.node);
  for (const Arg& item : arg.items) collect(item, range, found);
}

void remap(Arg& arg, const NodeMap& to) {
  if (arg.kind == Arg::NodeRef) {
    auto known = to.find(arg.node);
    CD_CHECK(known != to.end(), "a body uses a node that is none of its inputs");
    arg.node = known->second;
  }
  for (Arg& item : arg.items) remap(item, to);
}

}  // namespace

void addFreeNodes(const Graph& graph, NodeRange range, const std::vector<Node*>& outputs, std::vector<Node*>& found) {
  for (size_t i = range.begin; i < range.end; i++) {
    const Node& node = graph.nodes()[i];
    if (node.cut || !range.has(&node)) continue;
    for (const Arg& arg : node.args) collect(arg, range, found);
    for (const auto& [name, arg] : node.kwargs) collect(arg, range, found);
  }
  for (Node* out : outputs)
    if (!range.has(out) && std::find(found.begin(), found.end(), out) == found.end()) found.push_back(out);
}

Graph cutBody(Graph& traced, NodeRange range, const std::vector<Node*>& inputs, const std::vector<Node*>& outputs) {
  Graph body;
  NodeMap to;
  for (Node* input : inputs) {
    Node* placeholder = body.add(NodeOp::Placeholder, {}, {}, {});
    placeholder->result = input->result;
    placeholder->place = input->place;
    to.emplace(input, placeholder);
  }
  for (size_t i = range.begin; i < range.end; i++) {
    Node& node = traced.nodes()[i];
    if (node.cut || !range.has(&node)) continue;
    Node* moved = body.add(node.op, std::move(node.target), std::move(node.args), std::move(node.kwargs));
    moved->nameHint = std::move(node.nameHint);
    moved->result = node.result;
    moved->place = node.place;
    moved->switchesMode = node.switchesMode;
    for (Arg& arg : moved->args) remap(arg, to);
    for (auto& [name, arg] : moved->kwargs) remap(arg, to);
    to.emplace(&node, moved);
    node.cut = true;
  }
  for (Node* out : outputs) {
    auto known = to.find(out);
    CD_CHECK(known != to.end(), "a body returns a node that it does not have");
    body.outputs.push_back(known->second);
  }
  return body;
}

}  // namespace cdynamo
