// torch.autograd.Function: forward and backward are traced, each into a body of one call.
#include <algorithm>

#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "graph/executable.h"
#include "interp/bodies.h"
#include "interp/intrinsics.h"
#include "shapes/layout.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

[[noreturn]] void refuse(PyTypeObject* cls, const std::string& what) {
  unsupported(BreakReason::AutogradFunction, std::string(cls->tp_name) + ".apply: " + what);
}

bool isDifferentiable(DType d) {
  return d == DType::Float16 || d == DType::Float32 || d == DType::Float64 || d == DType::BFloat16 || d == DType::ComplexHalf ||
         d == DType::Complex64 || d == DType::Complex128 || static_cast<int>(d) > 22;
}

// One call of apply.
class Application {
 public:
  Application(Trace& t, PyTypeObject* cls, std::vector<Value*> args) : t(t), cls(cls), args_(std::move(args)) {
    std::vector<Value*> needs;
    for (Value* v : args_) {
      bool wanted = false;
      if (isTensor(v)) {
        auto* tensor = as<TensorValue>(v);
        t.observe(tensor);
        if (tensor->type != tensorType() && !tensor->source) refuse(cls, "an argument that is " + describe(v));
        wanted = tensor->meta.requiresGrad;
        slots_.push_back(tensor);
      }
      tracked_ = tracked_ || wanted;
      needs.push_back(t.boolean(wanted));
    }
    tracked_ = tracked_ && gradEnabled();
    needs_ = t.tuple(std::move(needs));
  }

  Value* run() { return tracked_ ? runTracked() : runUntracked(); }

 private:
  // An attribute of the class that differs from the base class's own.
  Value* overridden(const char* name) {
    static auto* base = reinterpret_cast<PyTypeObject*>(importedObject("torch.autograd.function", "_SingleLevelFunction"));
    ObjectRef key = checked(PyUnicode_InternFromString(name));
    PyObject* text = t.keep(std::move(key));
    PyObject* found = lookUp(t, cls, text);
    return found && found != typeLookup(base, text) ? getTypeAttr(t, cls, text) : nullptr;
  }

  Value* context() {
    if (!context_) context_ = call1(t, pinnedValue(t, importedObject("cdynamo.polyfills", "FunctionContext")), needs_);
    return context_;
  }

  std::vector<Value*> listed(const char* attribute) {
    ObjectRef key = checked(PyUnicode_InternFromString(attribute));
    Value* v = getAttrOrNull(t, context(), t.keep(std::move(key)));
    if (!v || isReal(v, Py_None)) return {};
    return itemsOf(t, v);
  }

  // The results of forward, one by one.
  std::vector<Value*> callForward() {
    context();
    Value* forward = overridden("forward");
    if (!forward) refuse(cls, "there is no forward");
    Value* setup = overridden("setup_context");
    CallArgs given{args_, {}};
    if (!setup) given.args.insert(given.args.begin(), context());
    Value* result = call(t, forward, std::move(given));
    if (setup) call(t, setup, {{context(), t.tuple(args_), result}, {}});
    single_ = !asTuple(result);
    if (single_) return {result};
    return itemsOf(t, result);
  }

  Value* packed(std::vector<Value*> outs) { return single_ ? outs[0] : t.tuple(std::move(outs)); }

  bool isSlot(Value* v) const { return std::find(slots_.begin(), slots_.end(), v) != slots_.end(); }
  static bool has(const std::vector<Value*>& values, Value* v) { return std::find(values.begin(), values.end(), v) != values.end(); }

  // An argument that is returned as it came is a view of it.
  Value* viewOfSelf(Value* v) {
    ObjectRef name = checked(PyUnicode_InternFromString("view_as"));
    return recordOp(t, t.keep(std::move(name)), true, {{v, v}, {}});
  }

  // Nothing here asks for a gradient: forward alone, without grad mode.
  Value* runUntracked() {
    PyObject* setter = importedObject("torch._C", "_set_grad_enabled");
    bool before = gradEnabled();
    auto set = [&](bool on) {
      if (!before) return;
      ObjectRef args = checked(PyTuple_Pack(1, on ? Py_True : Py_False));
      setGradEnabled(on);
      t.journal.onRollback([before] { setGradEnabled(before); });
      t.record({ObjectRef::share(setter), std::move(args), {}});
    };
    set(false);
    try {
      std::vector<Value*> outs = callForward();
      for (Value*& v : outs) {
        if (!isTensor(v)) continue;
        if (as<TensorValue>(v)->meta.requiresGrad && !isSlot(v)) refuse(cls, "forward turns grad mode on");
        if (isSlot(v) && !has(listed("dirty_tensors"), v)) v = viewOfSelf(v);
      }
      set(true);
      return packed(std::move(outs));
    } catch (Raised&) {
      set(true);
      throw;
    }
  }

  struct Output {
    TensorValue* inner;  // as forward made it
    bool dirty = false, differentiable = false;
    TensorMeta meta;
  };

  Value* runTracked() {
    for (TensorValue* slot : slots_) slotNodes_.push_back(t.nodeOf(slot));
    std::vector<Value*> results;
    {
      BodyScope scope(t);
      TraceGradMode grad(t, false);
      try {
        results = callForward();
        describeOutputs(results, scope.range().begin);
      } catch (Raised&) {
        refuse(cls, "forward raises an exception");
      }
      if (scope.wroteOutside()) refuse(cls, "forward changes objects that exist outside of it");
      forward_ = scope.range();
    }
    traceBackward();
    std::vector<Node*> items = emit();
    size_t at = 0;
    for (Value*& v : results) {
      if (!isTensor(v)) continue;
      const Output& out = outputs_[at];
      v = out.dirty ? giveBack(out) : give(out, items[at]);
      at++;
    }
    return packed(std::move(results));
  }

  void describeOutputs(std::vector<Value*>& results, size_t begin) {
    std::vector<Value*> dirty = listed("dirty_tensors"), fixed = listed("non_differentiable");
    for (size_t i = 0; i < results.size(); i++) {
      Value*& v = results[i];
      if (!isTensor(v)) {
        plain_.push_back(i);
        std::vector<TensorValue*> inside;
        if (!collectTensors(t, v, inside) || !inside.empty()) refuse(cls, "forward returns tensors inside of " + describe(v));
        continue;
      }
      Output out;
      out.dirty = has(dirty, v);
      out.differentiable = !has(fixed, v) && isDifferentiable(as<TensorValue>(v)->meta.dtype);
      if (out.dirty && !isSlot(v)) refuse(cls, "mark_dirty of a tensor that is no argument");
      if (!out.dirty && isSlot(v)) v = viewOfSelf(v);
      out.inner = as<TensorValue>(v);
      bool made = out.inner->node && static_cast<size_t>(out.inner->node->id) >= begin && out.inner->node->op != NodeOp::Placeholder;
      if (!out.dirty && !made) refuse(cls, "forward returns a tensor from outside");
      if (out.inner->type != tensorType() || !out.inner->attrs.empty()) refuse(cls, "forward returns " + describe(v));
      for (const Output& other : outputs_)
        if (other.inner == out.inner) refuse(cls, "forward returns one tensor twice");
      out.meta = out.inner->meta;
      out.meta.requiresGrad = out.differentiable;
      out.meta.isLeaf = !out.differentiable;
      if (out.dirty && (out.inner->base || out.inner->viewed || (slotMeta(v).requiresGrad && slotMeta(v).isLeaf)))
        refuse(cls, "mark_dirty of a leaf, a view or the base of one");
      outputs_.push_back(std::move(out));
    }
    for (Value* v : dirty)
      if (!std::any_of(outputs_.begin(), outputs_.end(), [&](const Output& o) { return o.inner == v; }))
        refuse(cls, "mark_dirty of what is not returned");
    Value* materialize = getAttr(t, context(), "materialize_grads");
    if (!truth(t, materialize)) refuse(cls, "set_materialize_grads(False)");
    saved_ = listed("to_save");
    for (Value* v : saved_)
      if (!isTensor(v) && !isReal(v, Py_None)) refuse(cls, "save_for_backward of " + describe(v));
  }

  static const TensorMeta& slotMeta(Value* v) { return as<TensorValue>(v)->meta; }

  // What forward returned, as it is outside: with a gradient of its own.
  Value* give(const Output& out, Node* node) {
    TensorValue* v = tensorOf(t, node, out.meta);
    TensorValue* base = out.inner->base;
    while (base && base->node && forward_.has(base->node)) base = base->base;
    if (base) {
      v->base = base;
      if (!base->viewed) t.journal.set(base->viewed, true);
    }
    return v;
  }

  // An argument that forward wrote to is what comes back.
  Value* giveBack(const Output& out) {
    TensorValue* v = out.inner;
    t.noteTensorWrite(v);
    t.journal.set(v->meta, out.meta);
    if (v->node) t.journal.set(v->node->result.tensor, out.meta);
    return v;
  }

  // ---- backward ----

  Value* gradOf(const Output& out) {
    TensorMeta meta = out.meta;
    meta.strides = contiguousStrides(meta.sizes);
    meta.storageOffset = 0;
    meta.requiresGrad = false;
    meta.isLeaf = true;
    meta.isConj = meta.isNeg = false;
    Node* input = t.graph.add(NodeOp::Placeholder, {}, {}, {});
    input->cut = true;
    input->place = t.place;
    input->result.kind = ResultMeta::Tensor;
    input->result.tensor = meta;
    gradInputs_.push_back(input);
    // Gradients come in any layout; what is captured here holds for contiguous ones.
    std::vector<Arg> self;
    self.push_back(nodeArg(input));
    Node* node = t.graph.add(NodeOp::CallMethod, checked(PyUnicode_InternFromString("contiguous")), std::move(self), {});
    node->place = t.place;
    node->result = input->result;
    return tensorOf(t, node, meta);
  }

  void traceBackward() {
    Value* backward = overridden("backward");
    if (!backward) backward = overridden("vjp");
    if (!backward) refuse(cls, "there is no backward");
    if (Value* boxed = overridden("boxed_grads_call"); boxed && truth(t, boxed)) refuse(cls, "boxed_grads_call");
    if (isReal(backward) && PyFunction_Check(realObject(backward))) {
      ObjectRef name = checked(PyObject_GetAttrString(reinterpret_cast<PyFunctionObject*>(realObject(backward))->func_code, "co_qualname"));
      once_ = PyUnicode_CompareWithASCIIString(name.get(), "once_differentiable.<locals>.wrapper") == 0;
    }
    BodyScope scope(t);
    TraceGradMode grad(t, false);
    Value* result = nullptr;
    try {
      CallArgs given{{context()}, {}};
      for (const Output& out : outputs_) given.args.push_back(gradOf(out));
      insertNone(given.args);
      result = call(t, backward, std::move(given));
    } catch (Raised&) {
      refuse(cls, "backward raises an exception");
    }
    if (scope.hasEffects()) refuse(cls, "backward does more than to compute gradients");
    backward_ = scope.range();
    std::vector<Value*> grads{result};
    if (asTuple(result)) grads = itemsOf(t, result);
    if (grads.size() < args_.size()) refuse(cls, "backward returns too few gradients");
    for (size_t i = 0; i < grads.size(); i++) {
      bool tensor = isTensor(grads[i]);
      if (!tensor && !isReal(grads[i], Py_None)) refuse(cls, "backward returns " + describe(grads[i]));
      if (i >= args_.size() && tensor) refuse(cls, "backward returns too many gradients");
      if (i >= args_.size() || !isTensor(args_[i])) continue;
      bool wanted = tensor && as<TensorValue>(args_[i])->meta.requiresGrad;
      gradNodes_.push_back(wanted ? t.nodeOf(as<TensorValue>(grads[i])) : nullptr);
    }
  }

  // Results that are no tensors have None as their gradient.
  void insertNone(std::vector<Value*>& grads) {
    for (size_t at : plain_) grads.insert(grads.begin() + static_cast<std::ptrdiff_t>(at + 1), t.none());
  }

  // ---- the nodes ----

  static ObjectRef indices(const std::vector<Py_ssize_t>& values) {
    ObjectRef list = checked(PyList_New(0));
    for (Py_ssize_t v : values) checkedStatus(PyList_Append(list.get(), checked(PyLong_FromSsize_t(v)).get()));
    return list;
  }

  std::vector<Node*> emit() {
    std::vector<Node*> gradOutputs;
    for (Node* node : gradNodes_)
      if (node) gradOutputs.push_back(node);
    // What backward uses of forward and of the rest: handed over by the context.
    std::vector<Node*> savedNodes = gradInputs_;
    for (Value* v : saved_)
      if (isTensor(v) && std::find(savedNodes.begin(), savedNodes.end(), t.nodeOf(as<TensorValue>(v))) == savedNodes.end())
        savedNodes.push_back(t.nodeOf(as<TensorValue>(v)));
    size_t checkedSaves = savedNodes.size() - gradInputs_.size();
    addFreeNodes(t.graph, backward_, gradOutputs, savedNodes);
    ObjectRef bwd = makeGraphProgram(cutBody(t.graph, backward_, savedNodes, gradOutputs), t.sources);
    savedNodes.erase(savedNodes.begin(), savedNodes.begin() + static_cast<std::ptrdiff_t>(gradInputs_.size()));

    std::vector<Node*> outs;
    for (const Output& out : outputs_) outs.push_back(t.nodeOf(out.inner));
    outs.insert(outs.end(), savedNodes.begin(), savedNodes.end());
    std::vector<Node*> inputs = slotNodes_, freeNodes = slotNodes_;
    addFreeNodes(t.graph, forward_, outs, freeNodes);
    inputs.insert(inputs.end(), freeNodes.begin() + static_cast<std::ptrdiff_t>(slotNodes_.size()), freeNodes.end());
    ObjectRef fwd = makeGraphProgram(cutBody(t.graph, forward_, inputs, outs), t.sources);
    describeTrees(fwd.get(), bwd.get(), savedNodes.size(), inputs.size());

    std::vector<Arg> args;
    args.push_back(nodeArg(addBody(t, "fwd_body", fwd.get())));
    args.push_back(nodeArg(addBody(t, "bwd_body", bwd.get())));
    for (Node* node : inputs) args.push_back(nodeArg(node));
    std::vector<Py_ssize_t> fixed, dirty, kept;
    std::vector<TensorMeta> metas;
    for (size_t i = 0; i < outputs_.size(); i++) {
      if (!outputs_[i].differentiable) fixed.push_back(static_cast<Py_ssize_t>(i));
      if (outputs_[i].dirty) dirty.push_back(static_cast<Py_ssize_t>(i));
      metas.push_back(outputs_[i].meta);
    }
    for (size_t i = 0; i < checkedSaves; i++) kept.push_back(static_cast<Py_ssize_t>(i));
    std::vector<std::pair<ObjectRef, Arg>> kwargs;
    auto add = [&](const char* name, const std::vector<Py_ssize_t>& values) {
      kwargs.emplace_back(checked(PyUnicode_InternFromString(name)), constantArg(indices(values)));
    };
    add("non_differentiable_idx", fixed);
    add("saved_for_backward_idx", kept);
    if (!dirty.empty()) add("dirty_idx", dirty);
    return addBodyCall(t, importedObject("cdynamo._higher_order", "autograd_function_apply"), std::move(args), std::move(kwargs), std::move(metas));
  }

  void describeTrees(PyObject* fwd, PyObject* bwd, size_t savedCount, size_t inputCount) {
    auto range = [](size_t begin, size_t end) {
      ObjectRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(end - begin)));
      for (size_t i = begin; i < end; i++) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i - begin), checked(PyLong_FromSize_t(i)).release());
      return tuple;
    };
    ObjectRef outs = range(0, outputs_.size()), saved = range(outputs_.size(), outputs_.size() + savedCount);
    setOutputTree(fwd, checked(PyTuple_Pack(2, outs.get(), saved.get())));
    ObjectRef grads = checked(PyTuple_New(static_cast<Py_ssize_t>(inputCount)));
    size_t at = 0;
    for (size_t i = 0; i < inputCount; i++) {
      bool given = i < gradNodes_.size() && gradNodes_[i];
      PyTuple_SET_ITEM(grads.get(), static_cast<Py_ssize_t>(i),
                       given ? checked(PyLong_FromSize_t(at++)).release() : ObjectRef::share(Py_None).release());
    }
    setOutputTree(bwd, std::move(grads));
    ObjectRef name = checked(PyUnicode_FromString(cls->tp_name));
    checkedStatus(PyObject_SetAttrString(fwd, "function_name", name.get()));
    checkedStatus(PyObject_SetAttrString(bwd, "once_differentiable", once_ ? Py_True : Py_False));
  }

  Trace& t;
  PyTypeObject* cls;
  std::vector<Value*> args_;
  std::vector<TensorValue*> slots_;  // the tensors among them
  std::vector<Node*> slotNodes_;
  Value* needs_ = nullptr;
  Value* context_ = nullptr;
  bool tracked_ = false, single_ = false, once_ = false;
  std::vector<Output> outputs_;
  std::vector<size_t> plain_;  // positions of results that are no tensors
  std::vector<Value*> saved_;
  NodeRange forward_{}, backward_{};
  std::vector<Node*> gradInputs_;
  std::vector<Node*> gradNodes_;  // by slot; null: None
};

Value* applyFunction(Trace& t, CallArgs& a) {
  if (a.args.empty() || !isReal(a.args[0]) || !PyType_Check(realObject(a.args[0])))
    unsupported(BreakReason::AutogradFunction, "apply of something that is no class");
  auto* cls = reinterpret_cast<PyTypeObject*>(t.identity(a.args[0]));
  if (!a.kwargs.empty()) refuse(cls, "keyword arguments");
  if (t.vmapLevel) refuse(cls, "inside of a transform of torch.func");
  return Application(t, cls, {a.args.begin() + 1, a.args.end()}).run();
}

// Wrappers of torch.func's transforms never get into a trace.
Value* itself(Trace&, CallArgs& a) {
  expectArgs(a, 1, 1);
  return a.args[0];
}

}  // namespace

void addAutogradBuiltins(BuiltinTable& table) {
  table.addPolyfill("torch.autograd.Function.apply.__func__", "function_apply");
  table.add("torch._C._FunctionBase.apply", applyFunction);
  table.add("torch._C._functorch.unwrap_if_dead", itself);
}

}  // namespace cdynamo
