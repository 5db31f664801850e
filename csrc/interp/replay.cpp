#include "interp/replay.h"

#include <algorithm>
#include <unordered_set>

#include "bytecode/code.h"
#include "interp/op_names.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

std::string textAttribute(PyObject* object, const char* attribute) {
  ObjectRef value = ObjectRef::steal(PyObject_GetAttrString(object, attribute));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "";
}

// Whether code of the user's runs in the graph, which may do more than compute tensors.
bool runsUserCode(const Node& node, const std::string& name) {
  PyObject* target = node.target.get();
  if (PyUnicode_Check(target)) return false;
  if (isTorchOperatorType(Py_TYPE(target))) {
    std::string space = textAttribute(target, "namespace");
    return space != "aten" && space != "prims" && space != "prim";
  }
  if (PyFunction_Check(target)) return textAttribute(target, "__module__").compare(0, 5, "torch") != 0;
  return name == "apply";
}

// Whether a handler could see the error: some frame of the operation's has one somewhere.
bool isInsideTry(const Node& node) {
  for (const TracePlace* at = node.place; at; at = at->caller)
    if (at->code && decode(reinterpret_cast<PyCodeObject*>(at->code)).hasTry()) return true;
  return false;
}

}  // namespace

ReplayPlan planReplay(Trace& t, const Graph& graph, bool leavesState) {
  ReplayPlan plan;
  const auto& nodes = graph.nodes();
  auto isCall = [](const Node& node) { return node.op == NodeOp::CallFunction || node.op == NodeOp::CallMethod; };
  plan.wanted = leavesState || !t.effects().empty() || !t.mutated().empty() || !t.enteredStates().empty() ||
                std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) { return isCall(node) && isInsideTry(node); });
  if (!plan.wanted) return plan;
  std::unordered_set<const Source*> written;
  for (const TensorValue* tensor : t.writtenTensors()) written.insert(tensor->source);
  uint32_t input = 0;
  for (const Node& node : nodes) {
    if (node.op == NodeOp::Placeholder) {
      if (node.source && written.count(node.source)) plan.written.push_back(input);
      input++;
    } else if (isCall(node)) {
      std::string name = opName(node.target.get(), node.op == NodeOp::CallMethod);
      if (runsUserCode(node, name)) return {};
      plan.draws |= drawsRandomNumbers(name);
      plan.saves |= mayFailOnData(name);
      plan.hidden |= node.writesHidden;
    }
  }
  plan.saves |= t.writesWithGrad;
  plan.saves &= !plan.written.empty();
  plan.drawsInPython = !t.earlyCalls().empty();
  return plan;
}

}  // namespace cdynamo
