#include "interp/replay.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "bytecode/code.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

std::string nameOf(const Node& node) {
  ObjectRef name = PyUnicode_Check(node.target.get()) ? node.target : ObjectRef::steal(PyObject_GetAttrString(node.target.get(), "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "";
}

template <size_t N>
bool hasPart(const std::string& name, const std::array<const char*, N>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return name.find(part) != std::string::npos; });
}

// Operations whose kernels look at the data and refuse some: indices, labels, matrices that have no inverse, checks.
bool mayFailOnData(const Node& node) {
  static constexpr std::array parts = {"embedding",
                                       "gather",
                                       "scatter",
                                       "index",
                                       "take",
                                       "put",
                                       "nll_loss",
                                       "cross_entropy",
                                       "ctc_loss",
                                       "cholesky",
                                       "inv",
                                       "solve",
                                       "eig",
                                       "svd",
                                       "qr",
                                       "lstsq",
                                       "det",
                                       "matrix",
                                       "linalg",
                                       "one_hot",
                                       "multinomial",
                                       "bernoulli",
                                       "poisson",
                                       "assert",
                                       "check",
                                       "bincount",
                                       "hist",
                                       "getitem",
                                       "setitem",
                                       "floor_div",
                                       "remainder",
                                       "mod",
                                       "binary_cross_entropy",
                                       "repeat_interleave",
                                       "segment",
                                       "searchsorted",
                                       "masked",
                                       "unpool"};
  return hasPart(nameOf(node), parts);
}

// Kernels that write to running statistics, weights or lists of tensors without saying so to autograd.
bool writesUnseen(const Node& node) {
  static constexpr std::array parts = {"batch_norm", "instance_norm", "embedding", "_fused", "_foreach"};
  return hasPart(nameOf(node), parts) || isTorchOperatorType(Py_TYPE(node.target.get()));
}

bool drawsRandomNumbers(const Node& node) {
  static constexpr std::array parts = {"rand",      "dropout", "bernoulli", "multinomial", "normal", "uniform",    "exponential", "cauchy",
                                       "geometric", "poisson", "rrelu",     "gumbel",      "sample", "fractional", "attention",   "init"};
  return hasPart(nameOf(node), parts);
}

std::string textAttribute(PyObject* object, const char* attribute) {
  ObjectRef value = ObjectRef::steal(PyObject_GetAttrString(object, attribute));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "";
}

// Whether code of the user's runs in the graph, which may do more than compute tensors.
bool runsUserCode(const Node& node) {
  PyObject* target = node.target.get();
  if (PyUnicode_Check(target)) return false;
  if (isTorchOperatorType(Py_TYPE(target))) {
    std::string space = textAttribute(target, "namespace");
    return space != "aten" && space != "prims" && space != "prim";
  }
  if (PyFunction_Check(target)) return textAttribute(target, "__module__").compare(0, 5, "torch") != 0;
  return nameOf(node) == "apply";
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
  uint32_t input = 0;
  for (const Node& node : nodes) {
    if (node.op == NodeOp::Placeholder) {
      for (TensorValue* written : t.writtenTensors())
        if (written->source == node.source && node.source) plan.written.push_back(input);
      input++;
    } else if (isCall(node)) {
      plan.draws |= drawsRandomNumbers(node);
      plan.saves |= mayFailOnData(node);
      plan.hidden |= writesUnseen(node);
      if (runsUserCode(node)) return {};
    }
  }
  plan.saves &= !plan.written.empty();
  plan.drawsInPython = !t.earlyCalls().empty();
  return plan;
}

}  // namespace cdynamo
