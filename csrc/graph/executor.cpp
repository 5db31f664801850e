#include "graph/executor.h"

#include <algorithm>

#include "base/error.h"
#include "base/exceptions.h"
#include "cpython/tracebacks.h"

namespace cdynamo {

namespace {

void lastUses(const Arg& arg, int32_t user, std::vector<int32_t>& lastUse) {
  if (arg.kind == Arg::NodeRef) lastUse[arg.node->id] = user;
  for (const Arg& item : arg.items) lastUses(item, user, lastUse);
}

// Whether one object can serve every call: nothing in it is a node, and nobody can change it.
bool isFixed(const Arg& arg) {
  switch (arg.kind) {
    case Arg::Constant: return true;
    case Arg::Slice:
    case Arg::Tuple: return std::all_of(arg.items.begin(), arg.items.end(), isFixed);
    default: return false;
  }
}

// A tuple of the given class from plain items: namedtuples take them one by one, torch.Size and torch.return_types whole.
ObjectRef makeTupleOfClass(PyObject* cls, const ObjectRef& items) {
  if (PyObject_HasAttrString(cls, "_fields")) return checked(PyObject_CallObject(cls, items.get()));
  return checked(PyObject_CallOneArg(cls, items.get()));
}

template <typename ItemOf>
ObjectRef buildArg(const Arg& arg, const ItemOf& valueOf) {
  switch (arg.kind) {
    case Arg::NodeRef: return ObjectRef::share(valueOf(arg.node));
    case Arg::Constant: return arg.object;
    case Arg::List: {
      ObjectRef list = checked(PyList_New(static_cast<Py_ssize_t>(arg.items.size())));
      for (size_t i = 0; i < arg.items.size(); i++)
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), buildArg(arg.items[i], valueOf).release());
      return list;
    }
    case Arg::Tuple: {
      ObjectRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(arg.items.size())));
      for (size_t i = 0; i < arg.items.size(); i++)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), buildArg(arg.items[i], valueOf).release());
      return arg.object ? makeTupleOfClass(arg.object.get(), tuple) : tuple;
    }
    case Arg::Dict: {
      ObjectRef dict = checked(PyDict_New());
      CD_CHECK(PyTuple_GET_SIZE(arg.object.get()) == static_cast<Py_ssize_t>(arg.items.size()), "a dict operand without its keys");
      for (size_t i = 0; i < arg.items.size(); i++) {
        ObjectRef value = buildArg(arg.items[i], valueOf);
        checkedStatus(PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(arg.object.get(), static_cast<Py_ssize_t>(i)), value.get()));
      }
      return dict;
    }
    case Arg::Slice: {
      CD_CHECK(arg.items.size() == 3, "a slice operand has three items");
      ObjectRef start = buildArg(arg.items[0], valueOf), stop = buildArg(arg.items[1], valueOf), step = buildArg(arg.items[2], valueOf);
      return checked(PySlice_New(start.get(), stop.get(), step.get()));
    }
  }
  throw EngineError("an operand of unknown kind");
}

// Adds an entry to the traceback of the error that is set. Failure to do so is not reported: the error matters more.
void addPlace(PyCodeObject* code, int line) {
  ObjectRef error = takeException();
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* name = file ? PyUnicode_AsUTF8(code->co_name) : nullptr;
  if (name && error)
    addTracebackEntry(error.get(), name, file, line);
  else
    PyErr_Clear();
  restoreException(error.get());
}

}  // namespace

// What one run needs besides the plan.
struct Plan::RunState {
  explicit RunState(const Plan& plan) : registers(plan.registerCount_), scratch(plan.mostOperands_ + 1) {}
  std::vector<ObjectRef> registers;
  std::vector<PyObject*> scratch;     // operands of the current call, after one free slot for vectorcall
  std::vector<ObjectRef> containers;  // built for the current call
};

Plan::Plan(const Program& program) : program_(program) {
  const std::deque<Node>& nodes = program.graph.nodes();
  // Position of the last reader of each node; the number of nodes for outputs, -1 for values nobody reads.
  std::vector<int32_t> lastUse(nodes.size(), -1);
  for (const Node& node : nodes) {
    if (node.op == NodeOp::GetAttr) continue;
    for (const Arg& arg : node.args) lastUses(arg, node.id, lastUse);
    for (const auto& entry : node.kwargs) lastUses(entry.second, node.id, lastUse);
  }
  for (const Node* output : program.graph.outputs) lastUse[output->id] = static_cast<int32_t>(nodes.size());

  std::vector<std::vector<int32_t>> dying(nodes.size());
  for (size_t id = 0; id < nodes.size(); id++) {
    if (lastUse[id] < 0 || lastUse[id] >= static_cast<int32_t>(nodes.size())) continue;
    CD_CHECK(lastUse[id] > static_cast<int32_t>(id), "a node is used before it is made");
    dying[lastUse[id]].push_back(static_cast<int32_t>(id));
  }

  registerOf_.assign(nodes.size(), -1);
  std::vector<int32_t> freeRegisters;
  auto takeRegister = [&](const Node& node) {
    if (lastUse[node.id] < 0) return;
    if (freeRegisters.empty()) freeRegisters.push_back(static_cast<int32_t>(registerCount_++));
    registerOf_[node.id] = freeRegisters.back();
    freeRegisters.pop_back();
  };
  // Inputs first: they are all there before the first step.
  for (const Node* placeholder : program.placeholders) {
    takeRegister(*placeholder);
    inputRegisters_.push_back(registerOf_[placeholder->id]);
  }
  for (const Node& node : nodes) {
    if (node.op == NodeOp::Placeholder || node.op == NodeOp::Output) continue;
    addStep(node);
    Step& step = steps_.back();
    step.firstRelease = static_cast<uint32_t>(releases_.size());
    for (int32_t id : dying[node.id]) releases_.push_back(registerOf_[id]);
    step.releaseCount = static_cast<uint32_t>(releases_.size()) - step.firstRelease;
    // The result may take the place of an operand that dies in this very step.
    for (uint32_t i = 0; i < step.releaseCount; i++) freeRegisters.push_back(releases_[step.firstRelease + i]);
    takeRegister(node);
    step.result = registerOf_[node.id];
  }
  for (const Node* output : program.graph.outputs) outputRegisters_.push_back(registerOf_[output->id]);
}

void Plan::addStep(const Node& node) {
  Step& step = steps_.emplace_back();
  step.node = &node;
  step.firstOperand = static_cast<uint32_t>(operands_.size());
  if (node.op == NodeOp::GetAttr) {
    CD_CHECK(node.args.size() == 1 && node.args[0].kind == Arg::Constant, "a get_attr node carries its object");
    operands_.push_back(operandOf(node.args[0]));
    step.operandCount = 1;
    return;
  }
  if (node.op == NodeOp::CallMethod) CD_CHECK(!node.args.empty(), "a method call without its object");
  for (const Arg& arg : node.args) operands_.push_back(operandOf(arg));
  if (!node.kwargs.empty()) {
    step.keywordNames = checked(PyTuple_New(static_cast<Py_ssize_t>(node.kwargs.size())));
    Py_ssize_t i = 0;
    for (const auto& [name, arg] : node.kwargs) {
      PyTuple_SET_ITEM(step.keywordNames.get(), i++, ObjectRef(name).release());
      operands_.push_back(operandOf(arg));
    }
  }
  step.keywordCount = static_cast<uint32_t>(node.kwargs.size());
  step.operandCount = static_cast<uint32_t>(operands_.size()) - step.firstOperand;
  mostOperands_ = std::max<size_t>(mostOperands_, step.operandCount);
}

Plan::Operand Plan::operandOf(const Arg& arg) {
  Operand operand;
  if (arg.kind == Arg::NodeRef) {
    operand.reg = registerOf_[arg.node->id];
    CD_CHECK(operand.reg >= 0, "a node is used before it is made");
  } else if (arg.kind == Arg::Constant) {
    operand.constant = arg.object.get();
  } else if (isFixed(arg)) {
    constants_.push_back(buildArg(arg, [](const Node*) -> PyObject* { return nullptr; }));
    operand.constant = constants_.back().get();
  } else {
    operand.tree = &arg;
  }
  return operand;
}

ObjectRef Plan::build(const Arg& arg, const RunState& state) const {
  return buildArg(arg, [&](const Node* node) { return state.registers[registerOf_[node->id]].get(); });
}

ObjectRef Plan::call(const Step& step, RunState& state) const {
  PyObject** args = state.scratch.data() + 1;
  for (uint32_t i = 0; i < step.operandCount; i++) {
    const Operand& operand = operands_[step.firstOperand + i];
    if (operand.reg >= 0) {
      args[i] = state.registers[operand.reg].get();
    } else if (operand.constant) {
      args[i] = operand.constant;
    } else {
      state.containers.push_back(build(*operand.tree, state));
      args[i] = state.containers.back().get();
    }
  }
  if (step.node->op == NodeOp::GetAttr) return ObjectRef::share(args[0]);
  size_t flags = (step.operandCount - step.keywordCount) | PY_VECTORCALL_ARGUMENTS_OFFSET;
  PyObject* target = step.node->target.get();
  PyObject* names = step.keywordNames.get();
  PyObject* result =
      step.node->op == NodeOp::CallMethod ? PyObject_VectorcallMethod(target, args, flags, names) : PyObject_Vectorcall(target, args, flags, names);
  state.containers.clear();
  return checked(result);
}

ObjectRef Plan::run(PyObject* const* inputs, size_t inputCount) const {
  if (inputCount != inputRegisters_.size()) {
    PyErr_Format(PyExc_TypeError, "the graph takes %zu inputs, %zu were given", inputRegisters_.size(), inputCount);
    throw PythonError{};
  }
  RunState state(*this);
  for (size_t i = 0; i < inputCount; i++) {
    if (inputRegisters_[i] >= 0) state.registers[inputRegisters_[i]] = ObjectRef::share(inputs[i]);
  }
  for (const Step& step : steps_) {
    ObjectRef result;
    try {
      result = call(step, state);
    } catch (const PythonError&) {
      noteUserStack(*step.node);
      leaveModes(static_cast<size_t>(&step - steps_.data()), state);
      throw;
    }
    for (uint32_t i = 0; i < step.releaseCount; i++) state.registers[releases_[step.firstRelease + i]].reset();
    if (step.result >= 0) state.registers[step.result] = std::move(result);
  }
  ObjectRef outputs = checked(PyTuple_New(static_cast<Py_ssize_t>(outputRegisters_.size())));
  for (size_t i = 0; i < outputRegisters_.size(); i++)
    PyTuple_SET_ITEM(outputs.get(), static_cast<Py_ssize_t>(i), ObjectRef(state.registers[outputRegisters_[i]]).release());
  return outputs;
}

void Plan::leaveModes(size_t failed, RunState& state) const {
  ObjectRef error = takeException();
  for (size_t i = failed + 1; i < steps_.size(); i++) {
    const Step& step = steps_[i];
    if (!step.node->switchesMode) continue;
    try {
      ObjectRef result = call(step, state);
      if (step.result >= 0) state.registers[step.result] = std::move(result);
    } catch (const PythonError&) {
      PyErr_Clear();
    }
  }
  restoreException(error.get());
}

void Plan::noteUserStack(const Node& node) const {
  int32_t at = static_cast<size_t>(node.id) < program_.placeOf.size() ? program_.placeOf[node.id] : -1;
  for (; at >= 0; at = program_.places[at].caller) {
    const ProgramPlace& place = program_.places[at];
    if (place.code) addPlace(reinterpret_cast<PyCodeObject*>(place.code.get()), place.line);
  }
}

int Plan::traverse(visitproc visit, void* arg) const {
  for (const ObjectRef& constant : constants_) Py_VISIT(constant.object());
  for (const Step& step : steps_) Py_VISIT(step.keywordNames.object());
  return 0;
}

}  // namespace cdynamo
