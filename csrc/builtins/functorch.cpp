// torch.vmap: the nesting and batch-dimension calls become nodes; inside, tensors are traced with their logical shapes.
#include "base/lookup.h"
#include "builtins/table.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

PyObject* predispatch(const char* name) { return importedObject("torch._functorch.predispatch", name); }

Node* addNode(Trace& t, const char* name, const std::vector<Value*>& args) {
  std::vector<Arg> operands;
  for (Value* v : args) {
    Arg arg;
    if (isTensor(v)) {
      arg.kind = Arg::NodeRef;
      arg.node = t.nodeOf(as<TensorValue>(v));
    } else {
      PyObject* c = t.constant(v);
      if (!c) unsupported(BreakReason::FunctorchOperand, std::string(name) + " with " + describe(v));
      arg.object = ObjectRef::share(c);
    }
    operands.push_back(std::move(arg));
  }
  Node* node = t.graph.add(NodeOp::CallFunction, ObjectRef::share(predispatch(name)), std::move(operands), {});
  node->place = t.place;
  return node;
}

Value* tensorResult(Trace& t, Node* node, TensorMeta meta) {
  node->result.kind = ResultMeta::Tensor;
  node->result.tensor = meta;
  auto* v = t.make<TensorValue>();
  v->node = node;
  v->meta = std::move(meta);
  v->type = tensorType();
  v->observed = true;
  return v;
}

long long integerArgument(Trace& t, Value* v, const char* what) {
  std::optional<long long> n = asInteger(t, v);
  if (!n) unsupported(BreakReason::TensorAsIndex, std::string("vmap with a computed ") + what);
  return *n;
}

Value* loadDecompositions(Trace& t, CallArgs&) {
  // Registers kernels once per process; nothing of the traced program sees it.
  native(t, PyObject_CallNoArgs(predispatch("lazy_load_decompositions")));
  return t.none();
}

Value* incrementNesting(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  addNode(t, "_vmap_increment_nesting", a.args);
  t.journal.set(t.vmapLevel, t.vmapLevel + 1);
  return t.integer(t.vmapLevel);
}

Value* decrementNesting(Trace& t, CallArgs&) {
  addNode(t, "_vmap_decrement_nesting", {});
  Value* level = t.integer(t.vmapLevel);
  t.journal.set(t.vmapLevel, t.vmapLevel - 1);
  return level;
}

Value* addBatchDim(Trace& t, CallArgs& a) {
  expectArgs(a, 3, 3);
  if (!isTensor(a.args[0])) unsupported(BreakReason::FunctorchOperand, "vmap over " + describe(a.args[0]));
  auto* tensor = as<TensorValue>(a.args[0]);
  t.observe(tensor);
  TensorMeta meta = tensor->meta;
  long long dim = integerArgument(t, a.args[1], "dimension");
  if (dim < 0) dim += meta.dim();
  Node* node = addNode(t, "_add_batch_dim", a.args);
  meta.sizes.erase(static_cast<uint32_t>(dim));
  meta.strides.erase(static_cast<uint32_t>(dim));
  meta.isLeaf = !meta.requiresGrad;
  return tensorResult(t, node, std::move(meta));
}

Value* removeBatchDim(Trace& t, CallArgs& a) {
  expectArgs(a, 4, 4);
  if (!isTensor(a.args[0])) unsupported(BreakReason::FunctorchOperand, "a vmap result that is " + describe(a.args[0]));
  auto* tensor = as<TensorValue>(a.args[0]);
  t.observe(tensor);
  TensorMeta meta = tensor->meta;
  long long size = integerArgument(t, a.args[2], "batch size"), dim = integerArgument(t, a.args[3], "output dimension");
  if (dim < 0) dim += meta.dim() + 1;
  Node* node = addNode(t, "_remove_batch_dim", a.args);
  // The batch dimension lies outermost in memory.
  int64_t span = 1;
  for (uint32_t i = 0; i < meta.sizes.size(); i++) span += (meta.sizes[i] - 1) * meta.strides[i];
  meta.sizes.insert(static_cast<uint32_t>(dim), size);
  meta.strides.insert(static_cast<uint32_t>(dim), meta.numel() == 0 ? 1 : span);
  meta.storageOffset = 0;
  return tensorResult(t, node, std::move(meta));
}

}  // namespace

void addFunctorchBuiltins(BuiltinTable& table) {
  table.add("torch._functorch.predispatch.lazy_load_decompositions", loadDecompositions);
  table.add("torch._functorch.predispatch._vmap_increment_nesting", incrementNesting);
  table.add("torch._functorch.predispatch._vmap_decrement_nesting", decrementNesting);
  table.add("torch._functorch.predispatch._add_batch_dim", addBatchDim);
  table.add("torch._functorch.predispatch._remove_batch_dim", removeBatchDim);
}

}  // namespace cdynamo
