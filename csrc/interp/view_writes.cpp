#include "interp/view_writes.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "interp/op_names.h"

namespace cdynamo {

namespace {

bool isBasicIndex(PyObject* index) {
  if (PyTuple_CheckExact(index)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
      if (!isBasicIndex(PyTuple_GET_ITEM(index, i))) return false;
    return true;
  }
  return index == Py_None || index == Py_Ellipsis || PyLong_CheckExact(index) || PySlice_Check(index);
}

bool isBasicIndex(const Arg& index) {
  if (index.kind == Arg::Tuple) return std::all_of(index.items.begin(), index.items.end(), [](const Arg& a) { return isBasicIndex(a); });
  if (index.kind == Arg::Slice) return std::all_of(index.items.begin(), index.items.end(), [](const Arg& a) { return a.kind == Arg::Constant; });
  return index.kind == Arg::Constant && isBasicIndex(index.object.get());
}

// Whether what the node gives is a view of its operand in any case, and one that autograd follows.
bool isCertainView(const Node& node) {
  // clang-format off
  static const std::unordered_set<std::string_view> names = {
      "view", "view_as", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "t", "unsqueeze", "squeeze", "expand",
      "expand_as", "narrow", "select", "diagonal", "unflatten", "as_strided", "chunk", "split", "split_with_sizes", "unbind"};
  // clang-format on
  if (node.op != NodeOp::CallFunction && node.op != NodeOp::CallMethod) return false;
  std::string name = opName(node.target.get(), node.op == NodeOp::CallMethod);
  if (name != "getitem") return names.count(name) != 0;
  if (node.args.size() != 2 || node.args[0].kind != Arg::NodeRef) return false;
  const Node& from = *node.args[0].node;
  return from.result.kind == ResultMeta::Tensor ? isBasicIndex(node.args[1]) : isCertainView(from);
}

}  // namespace

bool spreadGradient(Trace& t, TensorValue* self, const TensorMeta& after) {
  TensorMeta before = after;
  before.requiresGrad = self->meta.requiresGrad;
  before.isLeaf = self->meta.isLeaf;
  before.storageOffset = self->meta.storageOffset;  // not every rule tells it
  if (!after.requiresGrad || !(before == self->meta) || t.bodySerial) return false;
  TensorValue* root = rootOf(self);
  // Views of an input may exist outside.
  if (root->real || !root->node || root->node->op == NodeOp::Placeholder) return false;
  // Of a view that was made without gradients autograd has an opinion of its own: all must have been made in the mode of now.
  int32_t lastSwitch = -1;
  for (const Node& node : t.graph.nodes())
    if (node.switchesMode) lastSwitch = node.id;
  std::vector<TensorValue*> family;
  for (const auto& value : t.arena()) {
    if (value->kind != Kind::Tensor) continue;
    auto* tensor = as<TensorValue>(value.get());
    if (rootOf(tensor) != root) continue;
    if (tensor != root && (!tensor->node || tensor->node->id < lastSwitch || !isCertainView(*tensor->node))) return false;
    family.push_back(tensor);
  }
  for (TensorValue* tensor : family) {
    TensorMeta now = tensor->meta;
    now.requiresGrad = true;
    now.isLeaf = false;
    t.journal.set(tensor->meta, now);
    if (tensor->node) t.journal.set(tensor->node->result.tensor, now);
  }
  return true;
}

}  // namespace cdynamo
