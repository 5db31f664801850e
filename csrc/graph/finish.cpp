// From the trace's node list to the graph that a backend sees: inputs first, in order of first use; what nobody needs is gone.
#include <optional>
#include <unordered_map>

#include "base/lookup.h"
#include "graph/graph.h"

namespace cdynamo {

namespace {

template <typename F>
void forEachNode(const Arg& arg, F&& f) {
  if (arg.kind == Arg::NodeRef) f(arg.node);
  for (const Arg& item : arg.items) forEachNode(item, f);
}

template <typename F>
void forEachOperand(const Node& node, F&& f) {
  for (const Arg& arg : node.args) forEachNode(arg, f);
  for (const auto& [name, arg] : node.kwargs) forEachNode(arg, f);
}

void remap(Arg& arg, const std::unordered_map<const Node*, Node*>& to) {
  if (arg.kind == Arg::NodeRef) arg.node = to.at(arg.node);
  for (Arg& item : arg.items) remap(item, to);
}

// An item of a result that is no tensor, or the number in a tensor: reading it does nothing else.
bool isReading(const Node& node, PyObject* getitem) {
  static PyObject* item = PyUnicode_InternFromString("item");
  if (node.op == NodeOp::CallMethod) return node.target.get() == item && node.args.size() == 1;
  return node.op == NodeOp::CallFunction && node.target.get() == getitem && node.args.size() == 2 && node.args[1].kind == Arg::Constant &&
         PyLong_CheckExact(node.args[1].object.get()) && node.args[0].kind == Arg::NodeRef && node.args[0].node->result.kind != ResultMeta::Tensor;
}

// A grad mode that the next call changes again. The last node is left out: it stands for the end of a with statement after a break.
void dropIdleModes(const Graph& graph, std::vector<bool>& dead) {
  PyObject* setter = importedObject("torch._C", "_set_grad_enabled");
  std::optional<size_t> last;
  for (size_t i = 0; i + 1 < dead.size(); i++) {
    const Node& node = graph.nodes()[i];
    if (dead[i] || node.op == NodeOp::Placeholder) continue;
    bool sets = node.op == NodeOp::CallFunction && node.target.get() == setter;
    if (sets && last) dead[*last] = true;
    last = sets ? std::optional(i) : std::nullopt;
  }
}

}  // namespace

Graph finishGraph(Graph&& traced, PyObject* getitem) {
  std::vector<int> uses(traced.nodes().size(), 0);
  for (const Node& node : traced.nodes())
    if (!node.cut) forEachOperand(node, [&](const Node* n) { uses[static_cast<size_t>(n->id)]++; });
  for (Node* out : traced.outputs) uses[static_cast<size_t>(out->id)]++;
  std::vector<bool> dead(uses.size(), false);
  for (size_t i = uses.size(); i-- > 0;) {
    const Node& node = traced.nodes()[i];
    if (node.cut) {
      dead[i] = true;
      continue;
    }
    const bool removable = node.op == NodeOp::Placeholder || isReading(node, getitem);
    if (uses[i] || !removable) continue;
    dead[i] = true;
    forEachOperand(node, [&](const Node* n) { uses[static_cast<size_t>(n->id)]--; });
  }
  dropIdleModes(traced, dead);
  Graph done;
  std::unordered_map<const Node*, Node*> to;
  auto rank = [](const Node& node) { return node.op != NodeOp::Placeholder ? 2 : node.earlyCall >= 0 ? 1 : 0; };
  for (int now : {0, 1, 2}) {
    for (size_t i = 0; i < dead.size(); i++) {
      Node& node = traced.nodes()[i];
      if (dead[i] || rank(node) != now) continue;
      Node* moved = done.add(node.op, std::move(node.target), std::move(node.args), std::move(node.kwargs));
      moved->nameHint = std::move(node.nameHint);
      moved->result = std::move(node.result);
      moved->place = node.place;
      moved->switchesMode = node.switchesMode;
      moved->source = node.source;
      moved->earlyCall = node.earlyCall;
      moved->example = node.example;
      to[&node] = moved;
      for (Arg& arg : moved->args) remap(arg, to);
      for (auto& [name, arg] : moved->kwargs) remap(arg, to);
    }
  }
  for (Node* out : traced.outputs) done.outputs.push_back(to.at(out));
  return done;
}

}  // namespace cdynamo
