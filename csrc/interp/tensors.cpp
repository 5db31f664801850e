// Tensors in the trace: recording operations, attributes, operands.
#include <cstring>
#include <functional>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "interp/op_names.h"
#include "interp/overlap.h"
#include "interp/protocol.h"
#include "interp/view_writes.h"
#include "shapes/infer.h"
#include "shapes/layout.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// Containers that hold themselves have no end.
constexpr int kDeepestOperand = 100;

void checkDepth(int depth) {
  if (depth > kDeepestOperand) unsupported(BreakReason::OperandKind, "containers nested more than " + std::to_string(kDeepestOperand) + " deep");
}

bool hasTensorInside(Value* v, int depth) {
  checkDepth(depth);
  auto hasTensor = [depth](Value* inner) { return hasTensorInside(inner, depth + 1); };
  switch (v->kind) {
    case Kind::Tensor:
    case Kind::Number: return true;
    case Kind::List:
      if (!as<ListValue>(v)->loaded) return true;
      for (Value* item : as<ListValue>(v)->items)
        if (hasTensor(item)) return true;
      return !as<ListValue>(v)->loaded;
    case Kind::Tuple:
      for (Value* item : as<TupleValue>(v)->items)
        if (hasTensor(item)) return true;
      return !as<TupleValue>(v)->loaded;
    case Kind::Dict:
      for (const DictEntry& e : as<DictValue>(v)->entries)
        if (e.value && hasTensor(e.value)) return true;
      return false;
    case Kind::Slice: return hasTensor(as<SliceValue>(v)->start) || hasTensor(as<SliceValue>(v)->stop) || hasTensor(as<SliceValue>(v)->step);
    default: return false;
  }
}

}  // namespace

bool hasTensor(Value* v) { return hasTensorInside(v, 0); }

bool hasTensor(const CallArgs& args) {
  for (Value* v : args.args)
    if (hasTensor(v)) return true;
  for (const auto& [name, v] : args.kwargs)
    if (hasTensor(v)) return true;
  return false;
}

namespace {

Arg operandInside(Trace& t, Value* v, int depth) {
  checkDepth(depth);
  Arg arg;
  switch (v->kind) {
    case Kind::Number:
      arg.kind = Arg::NodeRef;
      arg.node = t.nodeOf(as<NumberValue>(v));
      return arg;
    case Kind::Tensor:
      arg.kind = Arg::NodeRef;
      arg.node = t.nodeOf(as<TensorValue>(v));
      return arg;
    case Kind::List:
    case Kind::Tuple: {
      if (v->kind == Kind::Tuple && !hasTensor(v)) {
        if (PyObject* c = t.constant(v)) {
          arg.object = ObjectRef::share(c);
          return arg;
        }
      }
      if (v->kind == Kind::List && as<ListValue>(v)->type != &PyList_Type) break;  // a deque is no list for torch
      arg.kind = v->kind == Kind::List ? Arg::List : Arg::Tuple;
      for (Value* item : itemsOf(t, v)) arg.items.push_back(operandInside(t, item, depth + 1));
      return arg;
    }
    case Kind::Dict: {
      arg.kind = Arg::Dict;
      auto* d = as<DictValue>(v);
      t.complete(d);
      ObjectRef keys = checked(PyList_New(0));
      for (const DictEntry& e : d->entries) {
        if (!e.value) continue;
        if (!e.key.constant) unsupported(BreakReason::OperandKind, "an operand that is a dict with computed keys");
        checkedStatus(PyList_Append(keys.get(), e.key.constant));
        arg.items.push_back(operandInside(t, e.value, depth + 1));
      }
      arg.object = checked(PyList_AsTuple(keys.get()));
      return arg;
    }
    case Kind::Slice: {
      auto* s = as<SliceValue>(v);
      if (!hasTensor(v)) break;
      arg.kind = Arg::Slice;
      for (Value* part : {s->start, s->stop, s->step}) arg.items.push_back(operandInside(t, part, depth + 1));
      return arg;
    }
    default: break;
  }
  if (Value* core = coreOf(t, v)) return operandOf(t, core);
  PyObject* c = t.constant(v);
  if (!c) {
    if (v->kind == Kind::Instance && asTuple(v)) return operandInside(t, asTuple(v), depth + 1);
    if (v->kind == Kind::Instance && as<InstanceValue>(v)->real && isEnumMember(as<InstanceValue>(v)->real.get())) {
      c = as<InstanceValue>(v)->real.get();
      if (v->source) t.facts.identityIs(v->source, c);
    } else if (t.typeOf(v) == &PySlice_Type && isReal(v)) {
      return operandInside(t, t.make<SliceValue>(getAttr(t, v, "start"), getAttr(t, v, "stop"), getAttr(t, v, "step")), depth + 1);
    } else if (isReal(v) && Py_TYPE(realObject(v)) == generatorType()) {
      c = t.identity(v);
    } else {
      unsupported(BreakReason::OperandKind, "a torch operation on " + describe(v));
    }
  }
  // Its memory is not that of the tensors that stand for the operands while shapes are asked.
  if (std::strstr(Py_TYPE(c)->tp_name, "Storage")) unsupported(BreakReason::OperandKind, "a torch operation on " + describe(v));
  arg.object = ObjectRef::share(c);
  return arg;
}

}  // namespace

Arg operandOf(Trace& t, Value* v) { return operandInside(t, v, 0); }

namespace {

PyObject* getitemFunction() {
  static PyObject* fn = importedObject("operator", "getitem");
  return fn;
}

Value* valueOf(Trace& t, Node* node, const ResultMeta& result) {
  switch (result.kind) {
    case ResultMeta::None: return t.none();
    case ResultMeta::Constant: return t.real(result.object);
    case ResultMeta::Number: {
      auto* v = t.make<NumberValue>(reinterpret_cast<PyTypeObject*>(result.object.get()));
      v->node = node;
      return v;
    }
    case ResultMeta::Tensor: {
      auto* v = t.make<TensorValue>();
      v->node = node;
      v->meta = result.tensor;
      v->type = tensorType();
      v->observed = true;
      return v;
    }
    default: {
      std::vector<Value*> items;
      for (size_t i = 0; i < result.items.size(); i++) {
        std::vector<Arg> args(2);
        args[0].kind = Arg::NodeRef;
        args[0].node = node;
        args[1].object = result.kind == ResultMeta::Dict ? ObjectRef::share(PyTuple_GET_ITEM(result.object.get(), static_cast<Py_ssize_t>(i)))
                                                         : checked(PyLong_FromSize_t(i));
        Node* item = t.graph.add(NodeOp::CallFunction, ObjectRef::share(getitemFunction()), std::move(args), {});
        item->result = result.items[i];
        item->place = t.place;
        items.push_back(valueOf(t, item, item->result));
      }
      if (result.kind == ResultMeta::Dict) {
        DictValue* dict = t.dict();
        for (size_t i = 0; i < items.size(); i++)
          t.dictSet(dict, t.keyOf(t.realShared(PyTuple_GET_ITEM(result.object.get(), static_cast<Py_ssize_t>(i)))), items[i]);
        return dict;
      }
      if (result.kind == ResultMeta::List) return t.list(std::move(items));
      return t.tuple(std::move(items), result.kind == ResultMeta::NamedTuple ? reinterpret_cast<PyTypeObject*>(result.object.get()) : &PyTuple_Type);
    }
  }
}

void noteViews(Trace& t, Value* result, TensorValue* base) {
  if (result->kind == Kind::Tensor && result != base) {
    as<TensorValue>(result)->base = base;
    if (!base->viewed) t.journal.set(base->viewed, true);
  } else if (result->kind == Kind::List) {
    for (Value* v : as<ListValue>(result)->items) noteViews(t, v, base);
  } else if (result->kind == Kind::Tuple) {
    for (Value* v : as<TupleValue>(result)->items) noteViews(t, v, base);
  }
}

// x.to(its own dtype), x.contiguous() of a contiguous x, and their like give x itself, not a new tensor.
bool givesOperandBack(const std::string& name, const CallArgs& args, const ResultMeta& result) {
  static const std::unordered_map<std::string, bool> names = {
      {"to", true},      {"float", true},      {"double", true},  {"half", true},         {"bfloat16", true},    {"int", true},      {"long", true},
      {"short", true},   {"char", true},       {"byte", true},    {"bool", true},         {"cpu", true},         {"cuda", true},     {"type", true},
      {"type_as", true}, {"contiguous", true}, {"flatten", true}, {"resolve_conj", true}, {"resolve_neg", true}, {"positive", true}, {"pos", true}};
  if (result.kind != ResultMeta::Tensor || args.args.empty() || !isTensor(args.args[0])) return false;
  if (!names.count(name)) return false;
  TensorMeta now = as<TensorValue>(args.args[0])->meta;
  now.requiresGrad = result.tensor.requiresGrad;
  now.isLeaf = result.tensor.isLeaf;
  if (!(now == result.tensor)) return false;
  if (name != "to") return true;
  // to(..., copy=True): by keyword, or the last of the positional flags.
  if (Value* copy = args.keyword("copy"); copy && !isReal(copy, Py_False)) return false;
  size_t flags = 0;
  for (Value* v : args.args) flags += isReal(v, Py_True) || isReal(v, Py_False);
  return flags < 2 || !isReal(args.args.back(), Py_True);
}

}  // namespace

namespace {

// Of an operand, which holds no containers that hold themselves (hasTensor).
void forEachTensor(Value* v, const std::function<void(TensorValue*)>& visit) {
  if (isTensor(v)) visit(as<TensorValue>(v));
  if (v->kind == Kind::List)
    for (Value* item : as<ListValue>(v)->items) forEachTensor(item, visit);
  if (v->kind == Kind::Tuple)
    for (Value* item : as<TupleValue>(v)->items) forEachTensor(item, visit);
}

Value* argument(const CallArgs& args, size_t position, const char* keyword) {
  return position < args.args.size() ? args.args[position] : args.keyword(keyword);
}

// Whether an operation may write to more than its first operand: running statistics, rows of an embedding that are scaled, lists
// of tensors, whatever an operator of torch.ops does.
bool writesHidden(PyObject* target, const std::string& name, const CallArgs& args) {
  auto names = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (isTorchOperatorType(Py_TYPE(target))) {
    ObjectRef schema = ObjectRef::steal(PyObject_GetAttrString(target, "_schema"));
    ObjectRef writes = ObjectRef::steal(schema ? PyObject_GetAttrString(schema.get(), "is_mutable") : nullptr);
    PyErr_Clear();
    return writes.get() != Py_False;
  }
  if (names("batch_norm") || names("instance_norm")) {
    Value* training = argument(args, 5, names("batch_norm") ? "training" : "use_input_stats");
    return !training || !isReal(training, Py_False);
  }
  if (names("embedding")) {
    Value* maxNorm = argument(args, 3, "max_norm");
    return names("renorm") || (maxNorm && !isReal(maxNorm, Py_None));
  }
  return name.compare(0, 6, "_fused") == 0 || (name.compare(0, 8, "_foreach") == 0 && name.back() == '_');
}

void noteHiddenWrites(Trace& t, const CallArgs& args) {
  auto note = [&](TensorValue* tensor) { t.noteTensorWrite(tensor); };
  for (Value* v : args.args) forEachTensor(v, note);
  for (const auto& [key, v] : args.kwargs) forEachTensor(v, note);
}

}  // namespace

namespace {

// The tensor that an operation wrote its result to, resized where it had another shape.
void writeOut(Trace& t, TensorValue* out, const ResultMeta& result) {
  t.noteTensorWrite(out);
  if (result.kind != ResultMeta::Tensor || out->meta.sizes == result.tensor.sizes) return;
  if (out->base || out->viewed) unsupported(BreakReason::ViewMetadataChange, "out= of another shape that is a view or has views");
  TensorMeta after = out->meta;
  after.sizes = result.tensor.sizes;
  after.strides = result.tensor.strides;
  if (out->node) t.journal.set(out->node->result.tensor, after);
  t.journal.set(out->meta, std::move(after));
}

// What an operation with out= returns: the tensors given.
Value* giveOut(Trace& t, Node* node, Value* out) {
  if (isTensor(out)) {
    writeOut(t, as<TensorValue>(out), node->result);
    return out;
  }
  std::vector<Value*> given = itemsOf(t, out);
  Value* made = valueOf(t, node, node->result);
  // Custom operators may return nothing, or a list; they do not resize.
  bool same = made->kind == Kind::Tuple && as<TupleValue>(made)->items.size() == given.size();
  for (size_t i = 0; i < given.size(); i++) {
    if (!isTensor(given[i])) unsupported(BreakReason::OperandKind, "out= with " + describe(given[i]));
    writeOut(t, as<TensorValue>(given[i]), same ? node->result.items[i] : ResultMeta());
  }
  if (!same) return made;
  return t.tuple(std::move(given), as<TupleValue>(made)->type);
}

// x.random_(**{"from": 0}): a name that Python reserves cannot be written in a graph's code; it comes first.
void placeReserved(CallArgs& args) {
  if (args.args.size() != 1) return;
  if (Value* from = args.takeKeyword("from")) args.args.push_back(from);
}

// What backends make of it is random.from(...), which is no Python.
bool hasReservedOverload(PyObject* method, const CallArgs& args) {
  return PyUnicode_CompareWithASCIIString(method, "random_") == 0 && (args.args.size() > 2 || (args.args.size() == 2 && args.keyword("to")));
}

}  // namespace

Value* recordOp(Trace& t, PyObject* target, bool isMethod, CallArgs args) {
  if (isMethod) placeReserved(args);
  if (isMethod && hasReservedOverload(target, args)) unsupported(BreakReason::TensorMethod, "random_ with a range");
  // A symbolic bool is no number to torch's backends.
  for (Value* v : args.args)
    if (isNumber(v) && as<NumberValue>(v)->type == &PyBool_Type) t.constant(v);
  // Their derivatives ask whether it is one.
  for (const char* name : {"alpha", "beta"})
    if (Value* factor = args.keyword(name); factor && isNumber(factor)) t.constant(factor);
  RealValue* number = openOperand(target, isMethod, args);
  std::vector<Arg> operands;
  operands.reserve(args.args.size());
  for (Value* v : args.args) {
    operands.push_back(v == number ? Arg() : operandOf(t, v));
    if (v != number) continue;
    operands.back().kind = Arg::NodeRef;
    operands.back().node = t.nodeOf(number);
  }
  std::vector<std::pair<ObjectRef, Arg>> keywords;
  for (auto& [name, v] : args.kwargs) keywords.emplace_back(ObjectRef::share(name), operandOf(t, v));
  OpCall op{target, isMethod, operands, keywords, gradEnabled()};
  ResultMeta result;
  std::optional<TensorMeta> after;
  try {
    result = inferResult(op);
    after = selfAfter(op);
  } catch (ShapeError& error) {
    // What is said of operands that share memory may be another thing.
    if (readsOwnViews(args) || ((args.keyword("out") || writesSelf(op)) && readsOtherInputs(args)))
      unsupported(BreakReason::ViewMetadataChange, "an operation on a tensor and a view of it that fails");
    throw Raised{t.real(error.exception)};
  } catch (ShapeUnknown& unknown) {
    unsupported(BreakReason::DataDependentShape, unknown.reason);
  }
  std::string name = opName(target, isMethod);
  // An assignment to items writes to a part that it finds itself.
  if (after && name != "setitem" && name != "__setitem__" && writesWhatItReads(args))
    unsupported(BreakReason::ViewMetadataChange, "an in-place operation that reads another part of the memory it writes to");
  bool hidden = writesHidden(target, name, args);
  if (hidden) noteHiddenWrites(t, args);
  if (givesSelf(name) && result.kind == ResultMeta::Tensor) {
    // What it returns is the operand itself, with its new shape.
    if (!after) after = result.tensor;
    after->sizes = result.tensor.sizes;
    after->strides = result.tensor.strides;
  }
  Node* node = t.graph.add(isMethod ? NodeOp::CallMethod : NodeOp::CallFunction, ObjectRef::share(target), std::move(operands), std::move(keywords));
  node->place = t.place;
  node->writesHidden = hidden;
  node->result = std::move(result);
  if (after && !args.args.empty() && isTensor(args.args[0])) {
    auto* self = as<TensorValue>(args.args[0]);
    t.noteTensorWrite(self);
    bool isPart = self->base || self->viewed;
    if (!(self->meta == *after) && !(isPart && spreadGradient(t, self, *after))) {
      if (isPart) unsupported(BreakReason::ViewMetadataChange, "an in-place operation that changes more than the data of a view or its base");
      if (self->meta.requiresGrad != after->requiresGrad && sharesMemory(t, self))
        unsupported(BreakReason::ViewMetadataChange, "an in-place operation that gives an input, and others that share its memory, a gradient");
      t.journal.set(self->meta, *after);
      if (self->node) t.journal.set(self->node->result.tensor, *after);
    }
    if (node->result.kind == ResultMeta::Tensor) return self;
    return t.none();
  }
  if (Value* out = args.keyword("out"); out && !isReal(out, Py_None)) return giveOut(t, node, out);
  if (givesOperandBack(name, args, node->result)) return args.args[0];
  Value* made = valueOf(t, node, node->result);
  if (!args.args.empty() && isTensor(args.args[0]) && mayGiveView(name)) noteViews(t, made, as<TensorValue>(args.args[0]));
  return made;
}

namespace {

bool onlyTensors(const ResultMeta& result) {
  if (result.kind == ResultMeta::Constant) return false;
  for (const ResultMeta& item : result.items)
    if (!onlyTensors(item)) return false;
  return true;
}

}  // namespace

Value* recordNumber(Trace& t, PyObject* target, bool isMethod, CallArgs args, PyTypeObject* type) {
  std::vector<Arg> operands;
  for (Value* v : args.args) operands.push_back(operandOf(t, v));
  Node* node = t.graph.add(isMethod ? NodeOp::CallMethod : NodeOp::CallFunction, ObjectRef::share(target), std::move(operands), {});
  node->place = t.place;
  node->result.kind = ResultMeta::Number;
  node->result.object = ObjectRef::share(reinterpret_cast<PyObject*>(type));
  return valueOf(t, node, node->result);
}

Value* recordOpaque(Trace& t, PyObject* function, CallArgs args) {
  std::vector<Arg> operands;
  for (Value* v : args.args) operands.push_back(operandOf(t, v));
  std::vector<std::pair<ObjectRef, Arg>> keywords;
  for (auto& [name, v] : args.kwargs) keywords.emplace_back(ObjectRef::share(name), operandOf(t, v));
  auto note = [&](TensorValue* tensor) { t.noteTensorWrite(tensor); };
  for (Value* v : args.args) forEachTensor(v, note);
  for (const auto& [name, v] : args.kwargs) forEachTensor(v, note);
  ResultMeta result;
  try {
    result = inferByFake({function, false, operands, keywords, gradEnabled()});
  } catch (ShapeError& error) {
    throw Raised{t.real(error.exception)};
  } catch (ShapeUnknown& unknown) {
    unsupported(BreakReason::DataDependentShape, unknown.reason);
  }
  // A number would be that of a run with fake tensors.
  if (!onlyTensors(result))
    unsupported(BreakReason::UnsupportedCall, describe(t.realShared(function)) + ", which returns more than tensors, in a graph");
  Node* node = t.graph.add(NodeOp::CallFunction, ObjectRef::share(function), std::move(operands), std::move(keywords));
  node->place = t.place;
  node->result = std::move(result);
  return valueOf(t, node, node->result);
}

// ---- attributes ------------------------------------------------------------------------------------------------------

namespace {

enum class Attribute : uint8_t {
  None,
  Shape,
  DTypeOf,
  DeviceOf,
  Ndim,
  RequiresGrad,
  IsLeaf,
  Layout,
  IsCuda,
  IsCpu,
  IsMeta,
  IsSparse,
  IsQuantized,
  Nbytes,
  ItemSize,
  GetattrNode,
  Grad,
  GradFn,
  Class,
  False,
  Name,
  Names
};

Attribute attributeKind(PyObject* name) {
  static const std::unordered_map<std::string, Attribute> table = {
      {"shape", Attribute::Shape},
      {"dtype", Attribute::DTypeOf},
      {"device", Attribute::DeviceOf},
      {"ndim", Attribute::Ndim},
      {"requires_grad", Attribute::RequiresGrad},
      {"is_leaf", Attribute::IsLeaf},
      {"layout", Attribute::Layout},
      {"is_cuda", Attribute::IsCuda},
      {"is_cpu", Attribute::IsCpu},
      {"is_meta", Attribute::IsMeta},
      {"is_sparse", Attribute::False},
      {"is_sparse_csr", Attribute::False},
      {"is_quantized", Attribute::False},
      {"is_nested", Attribute::False},
      {"is_mkldnn", Attribute::False},
      {"is_mps", Attribute::False},
      {"is_xpu", Attribute::False},
      {"is_ipu", Attribute::False},
      {"is_vulkan", Attribute::False},
      {"is_xla", Attribute::False},
      {"is_maia", Attribute::False},
      {"is_mtia", Attribute::False},
      {"is_ort", Attribute::False},
      {"nbytes", Attribute::Nbytes},
      {"itemsize", Attribute::ItemSize},
      {"T", Attribute::GetattrNode},
      {"mT", Attribute::GetattrNode},
      {"H", Attribute::GetattrNode},
      {"mH", Attribute::GetattrNode},
      {"real", Attribute::GetattrNode},
      {"imag", Attribute::GetattrNode},
      {"data", Attribute::GetattrNode},
      {"grad", Attribute::Grad},
      {"grad_fn", Attribute::GradFn},
      {"__class__", Attribute::Class},
      {"name", Attribute::Name},
  };
  const char* text = PyUnicode_AsUTF8(name);
  auto found = table.find(text ? text : "");
  return found == table.end() ? Attribute::None : found->second;
}

PyObject* getattrFunction() {
  static PyObject* fn = importedObject("builtins", "getattr");
  return fn;
}

}  // namespace

Value* tensorAttr(Trace& t, TensorValue* tensor, PyObject* name) {
  Attribute kind = attributeKind(name);
  if (kind == Attribute::None) return nullptr;
  if (kind != Attribute::Class) t.observe(tensor);
  const TensorMeta& m = tensor->meta;
  switch (kind) {
    case Attribute::Shape: {
      std::vector<Value*> sizes;
      for (int64_t s : m.sizes) sizes.push_back(t.integer(s));
      return t.tuple(std::move(sizes), sizeType());
    }
    case Attribute::DTypeOf: return t.real(ObjectRef::steal(dtypeObject(m.dtype)));
    case Attribute::DeviceOf: return t.real(ObjectRef::steal(deviceObject(m.device)));
    case Attribute::Layout: return t.real(ObjectRef::steal(layoutObject(m.layout)));
    case Attribute::Ndim: return t.integer(m.dim());
    case Attribute::RequiresGrad: return t.boolean(m.requiresGrad);
    case Attribute::IsLeaf:
      // Not part of a tensor guard: a fact of its own.
      if (tensor->source) t.constant(t.wrap(m.isLeaf ? Py_True : Py_False, t.sources.attr(tensor->source, name)));
      return t.boolean(m.isLeaf);
    case Attribute::IsCuda: return t.boolean(m.device.type == 1);
    case Attribute::IsCpu: return t.boolean(m.device.type == 0);
    case Attribute::IsMeta: return t.boolean(m.device.type == 14);
    case Attribute::False: return t.boolean(false);
    case Attribute::Nbytes: return t.integer(m.numel() * itemSize(m.dtype));
    case Attribute::ItemSize: return t.integer(itemSize(m.dtype));
    case Attribute::Name: return t.none();
    case Attribute::Class: return t.wrap(reinterpret_cast<PyObject*>(t.typeOf(tensor)), t.sources.pinned(reinterpret_cast<PyObject*>(tensor->type)));
    case Attribute::GetattrNode: return recordOp(t, getattrFunction(), false, {{tensor, t.realShared(name)}, {}});
    case Attribute::Grad: {
      for (auto& [key, v] : tensor->attrs)
        if (key.get() == name) return v;
      if (!tensor->real || !tensor->source) {
        if (!m.requiresGrad) return t.none();
        unsupported(BreakReason::GradRead, "the .grad of a tensor made in the function");
      }
      ObjectRef held = checked(PyObject_GetAttr(tensor->real, name));
      return t.wrap(held.get(), t.sources.attr(tensor->source, name));
    }
    case Attribute::GradFn:
      if (!m.requiresGrad || m.isLeaf) return t.none();
      unsupported(BreakReason::GradRead, "the .grad_fn of a tensor");
    default: return nullptr;
  }
}

namespace {

// x.grad = ... of an existing leaf: done after the graph. False: it cannot be put off.
bool setGrad(Trace& t, TensorValue* tensor, PyObject* name, Value* value) {
  if (PyUnicode_CompareWithASCIIString(name, "grad") != 0 || !tensor->source || !tensor->real || !tensor->meta.isLeaf) return false;
  t.observe(tensor);
  if (isTensor(value)) {
    auto* grad = as<TensorValue>(value);
    t.observe(grad);
    // What torch would refuse is left to it.
    if (!(grad->meta.sizes == tensor->meta.sizes) || grad->meta.dtype != tensor->meta.dtype || !(grad->meta.device == tensor->meta.device))
      return false;
  } else if (!isReal(value, Py_None)) {
    return false;
  }
  LateCall late;
  late.callable = importedObject("builtins", "setattr");
  late.args = {tensor, t.realShared(name), value};
  t.defer(std::move(late), false);
  return true;
}

}  // namespace

void setTensorAttr(Trace& t, TensorValue* tensor, PyObject* name, Value* value) {
  const char* text = PyUnicode_AsUTF8(name);
  PyObject* d = typeLookup(tensor->type, name);
  if (d && Py_TYPE(d)->tp_descr_set && !setGrad(t, tensor, name, value))
    unsupported(BreakReason::TensorAttributeWrite, std::string("setting .") + (text ? text : "?") + " of a tensor");
  if (PyObject* dict = tensor->source && tensor->real && !d ? instanceDict(tensor->real) : nullptr) {
    t.observe(tensor);
    t.dictSet(as<DictValue>(t.wrap(dict, t.sources.instanceDict(tensor->source))), t.keyOf(t.realShared(name)), value);
    return;
  }
  t.journal.onRollback([tensor, old = tensor->attrs] { tensor->attrs = old; });
  for (auto& [key, v] : tensor->attrs)
    if (key.get() == name) {
      v = value;
      return;
    }
  tensor->attrs.emplace_back(ObjectRef::share(name), value);
}

}  // namespace cdynamo
