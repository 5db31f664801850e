// Operations that take a number and are given a tensor of no dimension (optimizers do, while compiling): eager reads
// its value, a graph computes with the tensor itself, in the order of the kernel.
#include "builtins/scalar_tensors.h"

#include <algorithm>
#include <unordered_map>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "shapes/layout.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

Value* method(Trace& t, const char* name, Value* self, Value* other) {
  return recordOp(t, t.keep(checked(PyUnicode_InternFromString(name))), true, {{self, other}, {}});
}

bool isScalarTensor(Value* v) { return v && isTensor(v) && as<TensorValue>(v)->meta.sizes.size() == 0; }

bool isFloatingTensor(Value* v) { return isTensor(v) && isFloating(as<TensorValue>(v)->meta.dtype); }

// self + value * first (*|/) second
template <bool divides, bool inPlace>
Value* sumWithProduct(Trace& t, Value* self, Value* first, Value* second, Value* value) {
  Value* scaled = method(t, "mul", first, value);
  Value* product = method(t, divides ? "div" : "mul", scaled, second);
  return method(t, inPlace ? "add_" : "add", self, product);
}

template <bool divides, bool inPlace>
Value* addProduct(Trace& t, const CallArgs& a) {
  if (a.args.size() != 3 || a.kwargs.size() != 1 || !isScalarTensor(a.keyword("value"))) return nullptr;
  for (Value* v : a.args)
    if (!isFloatingTensor(v)) return nullptr;
  return sumWithProduct<divides, inPlace>(t, a.args[0], a.args[1], a.args[2], a.keyword("value"));
}

// The same of lists, with a tensor of as many values.
template <bool divides>
Value* foreachAddProduct(Trace& t, const CallArgs& a) {
  if (a.args.size() != 4 || !a.kwargs.empty() || !isTensor(a.args[3])) return nullptr;
  std::vector<Value*> lists[3];
  for (size_t i = 0; i < 3; i++) lists[i] = itemsOf(t, a.args[i]);
  const Dims& sizes = as<TensorValue>(a.args[3])->meta.sizes;
  if (sizes.size() != 1 || static_cast<size_t>(sizes[0]) != lists[0].size()) return nullptr;
  for (const auto& list : lists)
    if (list.size() != lists[0].size() || !std::all_of(list.begin(), list.end(), isFloatingTensor)) return nullptr;
  std::vector<Value*> values = itemsOf(t, recordOp(t, t.keep(checked(PyUnicode_InternFromString("unbind"))), true, {{a.args[3]}, {}}));
  for (size_t i = 0; i < values.size(); i++) sumWithProduct<divides, true>(t, lists[0][i], lists[1][i], lists[2][i], values[i]);
  return a.args[0];
}

Value* foreachPow(Trace& t, const CallArgs& a) {
  if (a.args.size() != 2 || !a.kwargs.empty() || !isScalarTensor(a.args[0])) return nullptr;
  std::vector<Value*> powers;
  for (Value* exponent : itemsOf(t, a.args[1])) powers.push_back(recordOp(t, importedObject("torch", "pow"), false, {{a.args[0], exponent}, {}}));
  return t.tuple(std::move(powers));
}

using Form = Value* (*)(Trace&, const CallArgs&);

// By the callable: never destroyed, as torch's functions are not.
const std::unordered_map<PyObject*, Form>& forms() {
  static const std::unordered_map<PyObject*, Form>* made = [] {
    auto* map = new std::unordered_map<PyObject*, Form>();
    ObjectRef torch = checked(PyImport_ImportModule("torch"));
    auto add = [&](const char* name, Form form) {
      ObjectRef text = checked(PyUnicode_InternFromString(name));
      if (PyObject* descriptor = typeLookup(tensorType(), text.get())) map->emplace(descriptor, form);
      ObjectRef function = ObjectRef::steal(PyObject_GetAttrString(torch.get(), name));
      if (!function) PyErr_Clear();
      if (function) map->emplace(function.release(), form);
    };
    add("addcdiv", addProduct<true, false>);
    add("addcdiv_", addProduct<true, true>);
    add("addcmul", addProduct<false, false>);
    add("addcmul_", addProduct<false, true>);
    add("_foreach_pow", foreachPow);
    add("_foreach_addcdiv_", foreachAddProduct<true>);
    add("_foreach_addcmul_", foreachAddProduct<false>);
    return map;
  }();
  return *made;
}

}  // namespace

Value* computeWithScalarTensors(Trace& t, PyObject* callable, const CallArgs& args) {
  auto found = forms().find(callable);
  return found == forms().end() ? nullptr : found->second(t, args);
}

}  // namespace cdynamo
