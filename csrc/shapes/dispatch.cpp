// Finds the rule for a call and applies what all rules have in common: which operands they may see, requires_grad, in-place forms.
#include <deque>
#include <string>
#include <unordered_map>

#include "shapes/rules.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

struct Tables {
  std::deque<Rule> rules;
  std::deque<std::string> names;
  std::unordered_map<PyObject*, const Rule*> callables;  // keys are owned: never released, as torch's functions live as long
  std::unordered_map<std::string_view, const Rule*> methods;
  std::unordered_map<std::string_view, const Rule*> aten;
  std::unordered_map<std::string_view, const Rule*> attributes;
  PyObject* getattr = nullptr;
  bool built = false;
};

Tables& tables() {
  static Tables* instance = new Tables;
  return *instance;
}

void addCallable(Tables& all, PyObject* holder, const char* name, const Rule* rule) {
  PyObject* found = PyObject_GetAttrString(holder, name);
  if (found == nullptr) return PyErr_Clear();
  if (PyCallable_Check(found) && all.callables.emplace(found, rule).second) return;
  ObjectRef::steal(found);
}

struct Holders {
  ObjectRef torch, tensor, functional, nn, special, operators, linalg;
};

const Holders& holders() {
  static Holders* instance = nullptr;
  if (instance == nullptr) {
    auto* made = new Holders;
    made->torch = checked(PyImport_ImportModule("torch"));
    made->tensor = checked(PyObject_GetAttrString(made->torch.get(), "Tensor"));
    made->functional = checked(PyImport_ImportModule("torch.nn.functional"));
    made->nn = checked(PyImport_ImportModule("torch._C._nn"));
    made->special = checked(PyImport_ImportModule("torch.special"));
    made->operators = checked(PyImport_ImportModule("operator"));
    made->linalg = checked(PyImport_ImportModule("torch.linalg"));
    instance = made;
  }
  return *instance;
}

void build(Tables& all) {
  all.built = true;
  RuleTable table;
  addPointwiseRules(table);
  addReductionRules(table);
  addMatmulRules(table);
  addViewRules(table);
  addIndexingRules(table);
  addJoiningRules(table);
  addFactoryRules(table);
  addNNRules(table);
  ObjectRef builtins = checked(PyImport_ImportModule("builtins"));
  all.getattr = checked(PyObject_GetAttrString(builtins.get(), "getattr")).release();
}

// torch.ops.aten.add and torch.ops.aten.add.Tensor: by their name, remembered for the object.
const Rule* findOperator(Tables& all, PyObject* target) {
  std::string_view type = Py_TYPE(target)->tp_name;
  if (type != "OpOverload" && type != "OpOverloadPacket") return nullptr;
  ObjectRef name;
  if (type == "OpOverload") {
    ObjectRef schema = ObjectRef::steal(PyObject_GetAttrString(target, "_schema"));
    if (schema) name = ObjectRef::steal(PyObject_GetAttrString(schema.get(), "name"));
  } else {
    name = ObjectRef::steal(PyObject_GetAttrString(target, "_qualified_op_name"));
  }
  const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  const Rule* rule = nullptr;
  if (text == nullptr) {
    PyErr_Clear();
  } else if (std::string_view(text).starts_with("aten::")) {
    auto found = all.aten.find(std::string_view(text).substr(6));
    if (found != all.aten.end()) rule = found->second;
  }
  all.callables.emplace(ObjectRef::share(target).release(), rule);
  return rule;
}

const Rule* findRule(const OpCall& op) {
  Tables& all = tables();
  if (!all.built) build(all);
  if (!op.isMethod && op.target != all.getattr) {
    auto found = all.callables.find(op.target);
    return found != all.callables.end() ? found->second : findOperator(all, op.target);
  }
  PyObject* name = op.target;
  if (!op.isMethod) {
    if (op.args.size() < 2 || op.args[1].kind != Arg::Constant) return nullptr;
    name = op.args[1].object.get();
  }
  if (!PyUnicode_Check(name)) return nullptr;
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &length);
  if (text == nullptr) return PyErr_Clear(), nullptr;
  auto& map = op.isMethod ? all.methods : all.attributes;
  auto found = map.find(std::string_view(text, static_cast<size_t>(length)));
  return found != map.end() ? found->second : nullptr;
}

// What the operands are together.
struct Survey {
  bool requiresGrad = false;
  bool complex = false;
  bool odd = false;  // conj, neg, layouts
  bool inference = false;
  bool otherDevice = false;  // not CPU
  bool unusualDevice = false;
};

void surveyTensor(const TensorMeta& t, Survey& s) {
  s.requiresGrad |= t.requiresGrad;
  s.complex |= isComplex(t.dtype);
  s.odd |= t.isConj || t.isNeg || t.layout != 0;
  s.inference |= t.isInference;
  s.otherDevice |= t.device.type != 0;
  s.unusualDevice |= t.device.type > 1;
}

void surveyResult(const ResultMeta& result, Survey& s) {
  if (result.kind == ResultMeta::Tensor) return surveyTensor(result.tensor, s);
  for (const ResultMeta& item : result.items) surveyResult(item, s);
}

void survey(const Arg& arg, Survey& s) {
  if (arg.kind == Arg::NodeRef) return surveyResult(arg.node->result, s);
  for (const Arg& item : arg.items) survey(item, s);
}

Survey surveyCall(const OpCall& op) {
  Survey s;
  for (const Arg& arg : op.args) survey(arg, s);
  for (const auto& [name, arg] : op.kwargs) survey(arg, s);
  return s;
}

// `requires_`: the results require grad; `recorded`: grad mode is on, so that they then are no leaves. The two differ for views
// that are made under no_grad: they require grad as their base does.
void markGrad(ResultMeta& result, bool requires_, bool recorded, bool inference) {
  if (result.kind == ResultMeta::Tensor) {
    TensorMeta& t = result.tensor;
    t.requiresGrad = requires_ && (isFloating(t.dtype) || isComplex(t.dtype));
    t.isLeaf = !(t.requiresGrad && recorded);
    t.isInference = inference;
    return;
  }
  for (ResultMeta& item : result.items) markGrad(item, requires_, recorded, inference);
}

// The first operand after it was written; false where eager would refuse the write.
bool writeTo(const TensorMeta& self, bool grad, bool gradMode, TensorMeta& out) {
  if (hasOverlap(self)) return false;
  if (gradMode && self.requiresGrad && self.isLeaf) return false;
  out = self;
  if (grad && (isFloating(self.dtype) || isComplex(self.dtype))) {
    out.requiresGrad = true;
    out.isLeaf = false;
  }
  return true;
}

}  // namespace

void RuleTable::add(const Rule& given) {
  Tables& all = tables();
  const Rule* rule = &all.rules.emplace_back(given);
  const Holders& from = holders();
  if (rule->where & InTorch) addCallable(all, from.torch.get(), rule->name, rule);
  if (rule->where & AsMethod) {
    addCallable(all, from.tensor.get(), rule->name, rule);
    all.methods.emplace(rule->name, rule);
  }
  if (rule->where & InFunctional) addCallable(all, from.functional.get(), rule->name, rule);
  if (rule->where & InNN) addCallable(all, from.nn.get(), rule->name, rule);
  if (rule->where & InSpecial) addCallable(all, from.special.get(), rule->name, rule);
  if (rule->where & InOperator) addCallable(all, from.operators.get(), rule->name, rule);
  if (rule->where & InLinalg) addCallable(all, from.linalg.get(), rule->name, rule);
  if (rule->where & InAten) all.aten.emplace(rule->name, rule);
  if (rule->where & AsAttribute) all.attributes.emplace(rule->name, rule);
  if (rule->flags & HasInplace) {
    Rule inplace = *rule;
    inplace.name = all.names.emplace_back(std::string(rule->name) + "_").c_str();
    inplace.flags = static_cast<uint16_t>((rule->flags & ~HasInplace) | Inplace);
    add(inplace);
  }
}

bool inferByRule(const OpCall& op, ResultMeta& out) {
  const Rule* rule = findRule(op);
  if (rule == nullptr) return false;
  if (!(rule->flags & AutocastSafe) && anyAutocastEnabled()) return false;
  if ((rule->flags & IsFactory) && torchFunctionModes() > 0) return false;
  Survey s = surveyCall(op);
  if (s.unusualDevice || (s.otherDevice && (rule->flags & CpuOnly)) || (s.complex && !(rule->flags & AnyDType))) return false;
  bool inference = inferenceModeEnabled();
  if (s.odd || (s.inference && !inference) || (inference && s.requiresGrad)) return false;

  Call call(op, *rule);
  call.grad = op.gradEnabled && s.requiresGrad;
  out = ResultMeta();
  if (!rule->function(call, out) || call.bad()) return false;
  bool attribute = !op.isMethod && op.target == tables().getattr;
  if (attribute ? op.args.size() != 2 || !op.kwargs.empty() : !call.allRead()) return false;

  if (call.isSelf) return true;
  const TensorMeta* self = op.args.empty() ? nullptr : tensorOf(op.args[0]);
  if ((rule->flags & Inplace) || call.writes) {
    bool grad = call.grad && !(rule->flags & NotDifferentiable);
    if (self == nullptr) return false;
    if (out.kind != ResultMeta::Tensor) return out.kind == ResultMeta::None && writeTo(*self, grad, op.gradEnabled, out.tensor);
    if (!(out.tensor.sizes == self->sizes) || !canCast(out.tensor.dtype, self->dtype) || !(out.tensor.device == self->device)) return false;
    return writeTo(*self, grad, op.gradEnabled, out.tensor);
  }
  bool requires_ = !(rule->flags & NotDifferentiable) && (call.aliases && self != nullptr ? self->requiresGrad : call.grad);
  markGrad(out, requires_, op.gradEnabled, call.aliases && self != nullptr ? self->isInference : inference);
  return true;
}

bool writesSelf(const OpCall& op) {
  if (op.args.empty() || tensorOf(op.args[0]) == nullptr) return false;
  const Rule* rule = findRule(op);
  bool writes = rule != nullptr && (rule->flags & Inplace);
  if (!writes && op.isMethod) {
    const char* text = PyUnicode_AsUTF8(op.target);
    if (text == nullptr) PyErr_Clear();
    std::string_view name = text != nullptr ? text : "";
    writes = name.ends_with("_") && !name.ends_with("__");
  }
  for (const auto& [key, value] : op.kwargs)
    writes |= PyUnicode_CompareWithASCIIString(key.get(), "inplace") == 0 && value.kind == Arg::Constant && value.object.get() == Py_True;
  return writes;
}

std::optional<TensorMeta> selfAfter(const OpCall& op) {
  if (!writesSelf(op)) return std::nullopt;
  ResultMeta result;
  if (findRule(op) != nullptr && inferByRule(op, result)) return result.tensor;
  TensorMeta after;
  if (!writeTo(*tensorOf(op.args[0]), op.gradEnabled && surveyCall(op).requiresGrad, op.gradEnabled, after)) return std::nullopt;
  return after;
}

}  // namespace cdynamo
