#include "interp/ranges.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/lookup.h"

namespace cdynamo {

namespace {

struct Range {
  double low, high;  // both may be reached
};

constexpr std::array kComparisons = {"lt", "le", "gt", "ge"};
enum Comparison { Less, AtMost, Greater, AtLeast };
constexpr std::array kMirrored = {Greater, AtLeast, Less, AtMost};

bool readsNode(const Arg& arg, const Node* node) {
  if (arg.kind == Arg::NodeRef) return arg.node == node;
  for (const Arg& item : arg.items)
    if (readsNode(item, node)) return true;
  return false;
}

bool readsNode(const Node& reader, const Node* node) {
  for (const Arg& arg : reader.args)
    if (readsNode(arg, node)) return true;
  for (const auto& [name, arg] : reader.kwargs)
    if (readsNode(arg, node)) return true;
  return false;
}

// Whether nothing but `reader` took the node: whoever else did may have written to it, or hold a view of it.
bool readOnlyBy(const Graph& graph, const Node* node, const Node* reader) {
  for (size_t i = node->id + 1; i < graph.position(); ++i) {
    const Node& other = graph.nodes()[i];
    if (&other != reader && readsNode(other, node)) return false;
  }
  return true;
}

std::optional<Comparison> comparisonOf(const Node& node) {
  if (node.args.size() != 2 || !node.kwargs.empty()) return std::nullopt;
  if (node.op != NodeOp::CallFunction && node.op != NodeOp::CallMethod) return std::nullopt;
  for (size_t i = 0; i < kComparisons.size(); ++i) {
    const char* name = kComparisons[i];
    bool named = node.op == NodeOp::CallMethod
                     ? PyUnicode_CompareWithASCIIString(node.target.get(), name) == 0
                     : node.target.get() == importedObject("operator", name) || node.target.get() == importedObject("torch", name);
    if (named) return static_cast<Comparison>(i);
  }
  return std::nullopt;
}

std::optional<Range> rangeOf(const Graph& graph, const Arg& arg, const Node* reader) {
  if (arg.kind == Arg::Constant) {
    PyObject* object = arg.object.get();
    if (PyFloat_CheckExact(object)) {
      double value = PyFloat_AS_DOUBLE(object);
      if (std::isnan(value)) return std::nullopt;
      return Range{value, value};
    }
    if (!PyLong_CheckExact(object)) return std::nullopt;
    int overflow = 0;
    long value = PyLong_AsLongAndOverflow(object, &overflow);
    if (overflow || std::abs(value) > (1L << 53)) return std::nullopt;
    return Range{static_cast<double>(value), static_cast<double>(value)};
  }
  if (arg.kind != Arg::NodeRef) return std::nullopt;
  const Node& node = *arg.node;
  if (node.op != NodeOp::CallFunction || !readOnlyBy(graph, &node, reader)) return std::nullopt;
  for (const auto& [name, value] : node.kwargs)
    if (value.kind == Arg::NodeRef) return std::nullopt;  // out=
  // One is left out in eager, but a compiled kernel may round up to it.
  if (node.target.get() == importedObject("torch", "rand") || node.target.get() == importedObject("torch", "rand_like")) return Range{0, 1};
  return std::nullopt;
}

}  // namespace

std::optional<bool> provenTruth(const Graph& graph, const Node* condition) {
  if (!condition || condition->result.kind != ResultMeta::Tensor || condition->result.tensor.numel() != 1) return std::nullopt;
  std::optional<Comparison> comparison = comparisonOf(*condition);
  if (!comparison || !readOnlyBy(graph, condition, nullptr)) return std::nullopt;
  std::optional<Range> left = rangeOf(graph, condition->args[0], condition);
  std::optional<Range> right = rangeOf(graph, condition->args[1], condition);
  if (!left || !right) return std::nullopt;
  if (*comparison == Greater || *comparison == AtLeast) {
    std::swap(left, right);
    comparison = kMirrored[*comparison];
  }
  if (*comparison == Less) {
    if (left->high < right->low) return true;
    if (left->low >= right->high) return false;
  } else {
    if (left->high <= right->low) return true;
    if (left->low > right->high) return false;
  }
  return std::nullopt;
}

}  // namespace cdynamo
