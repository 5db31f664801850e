// Operations that take a number and are given a tensor of no dimension (optimizers do, while compiling): eager reads
// its value, a graph computes with the tensor itself, in the order of the kernel.
#include "builtins/scalar_tensors.h"

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
Value* addProduct(Trace& t, const CallArgs& a) {
  if (a.args.size() != 3 || a.kwargs.size() != 1 || !isScalarTensor(a.keyword("value"))) return nullptr;
  for (Value* v : a.args)
    if (!isFloatingTensor(v)) return nullptr;
  Value* scaled = method(t, "mul", a.args[1], a.keyword("value"));
  Value* product = method(t, divides ? "div" : "mul", scaled, a.args[2]);
  return method(t, inPlace ? "add_" : "add", a.args[0], product);
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
