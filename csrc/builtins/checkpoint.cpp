// torch.utils.checkpoint and hooks of tensors: calls with one body.
#include <algorithm>

#include "base/lookup.h"
#include "builtins/table.h"
#include "graph/executable.h"
#include "interp/bodies.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "shapes/layout.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

[[noreturn]] void refuse(const std::string& what) { unsupported(BreakReason::Checkpoint, "torch.utils.checkpoint.checkpoint: " + what); }

Value* checkpointed(Trace& t, CallArgs& a) {
  if (a.args.empty()) refuse("there is no function");
  std::vector<std::pair<ObjectRef, Arg>> options;
  ObjectRef reentrantFlag;
  for (const char* name : {"use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state"}) {
    Value* v = a.takeKeyword(name);
    if (!v) continue;
    bool function = std::string(name) == "context_fn";
    PyObject* given = function ? (isReal(v) ? t.identity(v) : nullptr) : t.constant(v);
    if (!given) refuse(std::string(name) + " that is " + describe(v));
    if (options.empty() && std::string(name) == "use_reentrant") reentrantFlag = ObjectRef::share(given);
    options.emplace_back(checked(PyUnicode_InternFromString(name)), constantArg(ObjectRef::share(given)));
  }
  if (!reentrantFlag || !PyBool_Check(reentrantFlag.get())) refuse("without use_reentrant=True or False");
  bool reentrant = reentrantFlag.get() == Py_True;
  if (reentrant && (options.size() > 2 || !a.kwargs.empty())) refuse("more arguments than use_reentrant=True takes");
  Value* function = a.args[0];
  CallArgs given{{a.args.begin() + 1, a.args.end()}, a.kwargs};
  if (!gradEnabled()) return call(t, function, std::move(given));
  auto needsGrad = [&](Value* v) {
    if (!isTensor(v)) return false;
    t.observe(as<TensorValue>(v));
    return as<TensorValue>(v)->meta.requiresGrad;
  };
  if (reentrant && std::none_of(given.args.begin(), given.args.end(), needsGrad))
    refuse("use_reentrant=True and no argument that requires a gradient");

  Value* result = nullptr;
  NodeRange range{};
  {
    BodyScope scope(t);
    try {
      result = call(t, function, std::move(given));
    } catch (Raised&) {
      refuse("the function raises an exception");
    }
    if (scope.wroteOutside()) refuse("the function changes objects that exist outside of it");
    range = scope.range();
  }
  std::vector<TensorValue*> results, made;
  if (!collectTensors(t, result, results)) refuse("the function returns " + describe(result));
  for (TensorValue* v : results) {
    if (v->node && range.has(v->node))
      made.push_back(v);
    else if (reentrant)
      refuse("the function returns a tensor that it did not make");
  }
  if (made.empty()) return result;
  std::vector<Node*> outs, inputs;
  std::vector<TensorMeta> metas;
  for (TensorValue* v : made) {
    outs.push_back(v->node);
    TensorMeta meta = v->meta;
    if (reentrant) {
      meta.requiresGrad = isFloating(meta.dtype) || isComplex(meta.dtype);
      meta.isLeaf = !meta.requiresGrad;
    }
    metas.push_back(std::move(meta));
  }
  addFreeNodes(t.graph, range, outs, inputs);
  ObjectRef body = makeGraphProgram(cutBody(t.graph, range, inputs, outs), t.sources);
  std::vector<Arg> args;
  args.push_back(nodeArg(addBody(t, "wrap_body", body.get())));
  for (Node* node : inputs) args.push_back(nodeArg(node));
  std::vector<TensorMeta> after = metas;
  std::vector<Node*> items =
      addBodyCall(t, importedObject("cdynamo._higher_order", "tag_activation_checkpoint"), std::move(args), std::move(options), std::move(metas));
  for (size_t i = 0; i < made.size(); i++) {
    t.journal.set(made[i]->node, items[i]);
    t.journal.set(made[i]->meta, after[i]);
  }
  return result;
}

// ---- hooks -----------------------------------------------------------------------------------------------------------

TensorValue* hookedTensor(Trace& t, const CallArgs& a) {
  if (a.args.size() != 2 || !isTensor(a.args[0]) || !a.kwargs.empty()) unsupported(BreakReason::AutogradMethod, "a hook with unknown arguments");
  auto* tensor = as<TensorValue>(a.args[0]);
  t.observe(tensor);
  if (tensor->type != tensorType() && !tensor->source) unsupported(BreakReason::AutogradMethod, "a hook of a tensor subclass");
  return tensor;
}

// A hook of a tensor that exists outside: registered after the graph, in the order of the program.
Value* registerLater(Trace& t, const char* method, TensorValue* tensor, Value* hook) {
  Value* handle = call(t, pinnedValue(t, importedObject("cdynamo.polyfills", "PendingHandle")), {});
  t.readLater(tensor);
  LateCall late;
  late.callable = importedObject("cdynamo._higher_order", "register_on");
  late.args = {handle, tensor, t.string(method), hook};
  t.defer(std::move(late), false);
  return handle;
}

bool resultIsDropped(const Trace& t) {
  const FrameState& f = *t.frame;
  return f.nextIp < f.code->size() && f.code->at(f.nextIp).op == Op::PopTop;
}

// A hook of a tensor that the graph makes: a body that the graph calls with the gradient. Nobody may ask for its handle.
Value* registerInGraph(Trace& t, TensorValue* tensor, Value* hook) {
  auto refuseHook = [](const char* what) {
    unsupported(BreakReason::AutogradMethod, std::string("a hook of a tensor made in the function ") + what);
  };
  if (!resultIsDropped(t)) refuseHook("whose handle is kept");
  TensorMeta meta = tensor->meta;
  meta.strides = contiguousStrides(meta.sizes);
  meta.storageOffset = 0;
  meta.requiresGrad = false;
  meta.isLeaf = true;
  Value* result = nullptr;
  NodeRange range{};
  std::vector<Node*> inputs;
  {
    BodyScope scope(t);
    TraceGradMode grad(t, false);
    Node* input = t.graph.add(NodeOp::Placeholder, {}, {}, {});
    input->cut = true;
    input->place = t.place;
    input->result.kind = ResultMeta::Tensor;
    input->result.tensor = meta;
    inputs.push_back(input);
    std::vector<Arg> self;
    self.push_back(nodeArg(input));
    Node* node = t.graph.add(NodeOp::CallMethod, checked(PyUnicode_InternFromString("contiguous")), std::move(self), {});
    node->place = t.place;
    node->result = input->result;
    try {
      result = call1(t, hook, tensorOf(t, node, meta));
    } catch (Raised&) {
      refuseHook("that raises an exception");
    }
    if (scope.hasEffects()) refuseHook("that does more than to compute a gradient");
    range = scope.range();
  }
  bool changes = isTensor(result);
  if (!changes && !isReal(result, Py_None)) refuseHook("that returns something else than a gradient");
  std::vector<Node*> outs;
  if (changes) outs.push_back(t.nodeOf(as<TensorValue>(result)));
  addFreeNodes(t.graph, range, outs, inputs);
  ObjectRef body = makeGraphProgram(cutBody(t.graph, range, inputs, outs), t.sources);
  setOutputTree(body.get(), changes ? checked(PyLong_FromLong(0)) : ObjectRef::share(Py_None));
  if (!changes) return t.none();
  std::vector<Arg> args;
  args.push_back(nodeArg(t.nodeOf(tensor)));
  args.push_back(nodeArg(addBody(t, "hook_body", body.get())));
  for (size_t i = 1; i < inputs.size(); i++) args.push_back(nodeArg(inputs[i]));
  Node* node = t.graph.add(NodeOp::CallFunction, ObjectRef::share(importedObject("cdynamo._higher_order", "register_hook")), std::move(args), {});
  node->place = t.place;
  node->result.kind = ResultMeta::Tensor;
  node->result.tensor = tensor->meta;
  t.journal.set(tensor->node, node);
  return t.none();
}

Value* registerHook(Trace& t, CallArgs& a) {
  TensorValue* tensor = hookedTensor(t, a);
  if (!tensor->meta.requiresGrad) raise(t, PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
  if (tensor->source && tensor->real) return registerLater(t, "register_hook", tensor, a.args[1]);
  return registerInGraph(t, tensor, a.args[1]);
}

Value* registerPostAccumulateHook(Trace& t, CallArgs& a) {
  TensorValue* tensor = hookedTensor(t, a);
  if (!tensor->source || !tensor->real || !tensor->meta.requiresGrad || !tensor->meta.isLeaf)
    unsupported(BreakReason::AutogradMethod, "register_post_accumulate_grad_hook of a tensor made in the function");
  return registerLater(t, "register_post_accumulate_grad_hook", tensor, a.args[1]);
}

Value* attributeOfHandle(Trace&, CallArgs&) { unsupported(BreakReason::AutogradMethod, "the use of a hook's handle before the hook is registered"); }

}  // namespace

void addCheckpointBuiltins(BuiltinTable& table) {
  table.add("cdynamo.polyfills.attribute_of_handle", attributeOfHandle);
  table.add("torch.utils.checkpoint.checkpoint", checkpointed);
  table.addType(tensorType(), "register_hook", registerHook);
  table.addType(tensorType(), "register_post_accumulate_grad_hook", registerPostAccumulateHook);
}

}  // namespace cdynamo
