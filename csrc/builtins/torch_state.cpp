// Torch's state: grad mode, autocast, inference mode, settings, profilers. Changed for real while tracing, and by nodes of the graph.
#include <utility>

#include "base/lookup.h"
#include "builtins/table.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

Value* isGradEnabled(Trace& t, CallArgs&) { return t.boolean(gradEnabled()); }

Value* setGradMode(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  PyObject* wanted = t.constant(a.args[0]);
  if (!wanted) unsupported(BreakReason::UnsupportedContextManager, "_set_grad_enabled with " + describe(a.args[0]));
  bool before = gradEnabled();
  ObjectRef args = checked(PyTuple_Pack(1, wanted));
  PyObject* function = importedObject("torch._C", "_set_grad_enabled");
  native(t, PyObject_Call(function, args.get(), nullptr));
  // Torch's own managers leave no node where they change nothing.
  static PyObject* managers = PyModule_GetDict(checked(PyImport_ImportModule("torch.autograd.grad_mode")).get());
  if (gradEnabled() == before && t.frame->globals == managers) return t.none();
  t.record({ObjectRef::share(function), std::move(args), {}});
  t.journal.onRollback([before] { setGradEnabled(before); });
  return t.none();
}

// ---- settings --------------------------------------------------------------------------------------------------------

ObjectRef ask(const char* module, const char* getter) { return checked(PyObject_CallNoArgs(importedObject(module, getter))); }

SettingCall callOf(const char* module, const char* setter, ObjectRef args, ObjectRef kwargs = {}) {
  return {ObjectRef::share(importedObject(module, setter)), std::move(args), std::move(kwargs)};
}

// Sets it now, for what follows in the trace, and in the graph.
Value* changeSetting(Trace& t, const char* name, SettingCall before, PyObject* setter, const CallArgs& a) {
  auto constant = [&](Value* v) {
    PyObject* c = t.snapshot(v);
    if (!c) unsupported(BreakReason::UnsupportedContextManager, std::string(name) + " with " + describe(v));
    return ObjectRef::share(c);
  };
  SettingCall now{ObjectRef::share(setter), checked(PyTuple_New(static_cast<Py_ssize_t>(a.args.size()))), {}};
  for (size_t i = 0; i < a.args.size(); i++) PyTuple_SET_ITEM(now.args.get(), static_cast<Py_ssize_t>(i), constant(a.args[i]).release());
  if (!a.kwargs.empty()) now.kwargs = checked(PyDict_New());
  for (auto& [key, v] : a.kwargs) checkedStatus(PyDict_SetItem(now.kwargs.get(), key, constant(v).get()));
  native(t, PyObject_Call(now.function.get(), now.args.get(), now.kwargs.get()));
  t.record(now);
  t.settings.change(name, std::move(before), std::move(now));
  return t.none();
}

// Settings of one value: its getter gives what its setter takes.
struct Flag {
  const char* setter;
  const char* getter;
};
constexpr Flag kFlags[] = {{"_set_sdp_use_flash", "_get_flash_sdp_enabled"},
                           {"_set_sdp_use_mem_efficient", "_get_mem_efficient_sdp_enabled"},
                           {"_set_sdp_use_math", "_get_math_sdp_enabled"},
                           {"_set_sdp_use_cudnn", "_get_cudnn_sdp_enabled"},
                           {"_set_sdp_use_overrideable", "_get_overrideable_sdp_enabled"},
                           {"_set_sdp_priority_order", "_get_sdp_priority_order"}};

template <size_t i>
Value* setFlag(Trace& t, CallArgs& a) {
  ObjectRef args = checked(PyTuple_Pack(1, ask("torch._C", kFlags[i].getter).get()));
  return changeSetting(t, kFlags[i].setter, callOf("torch._C", kFlags[i].setter, std::move(args)), importedObject("torch._C", kFlags[i].setter), a);
}

template <size_t... i>
void addFlags(BuiltinTable& table, std::index_sequence<i...>) {
  (table.add((std::string("torch._C.") + kFlags[i].setter).c_str(), setFlag<i>), ...);
  (table.addPure((std::string("torch._C.") + kFlags[i].getter).c_str()), ...);
}

Value* setDeterministic(Trace& t, CallArgs& a) {
  ObjectRef args = checked(PyTuple_Pack(1, ask("torch._C", "_get_deterministic_algorithms").get()));
  ObjectRef kwargs = checked(PyDict_New());
  checkedStatus(PyDict_SetItemString(kwargs.get(), "warn_only", ask("torch._C", "_get_deterministic_algorithms_warn_only").get()));
  return changeSetting(t, "_set_deterministic_algorithms", callOf("torch._C", "_set_deterministic_algorithms", std::move(args), std::move(kwargs)),
                       importedObject("torch._C", "_set_deterministic_algorithms"), a);
}

// Whether default hooks for saved tensors may be set: enabled, or disabled with a message.
Value* allowSavedHooks(Trace& t, CallArgs& a, const char* setter) {
  ObjectRef message = ask("torch._C._autograd", "_saved_tensors_hooks_get_disabled_error_message");
  SettingCall before = message.get() == Py_None
                           ? callOf("torch._C._autograd", "_saved_tensors_hooks_enable", checked(PyTuple_New(0)))
                           : callOf("torch._C._autograd", "_saved_tensors_hooks_disable", checked(PyTuple_Pack(1, message.get())));
  return changeSetting(t, "saved tensors hooks", std::move(before), importedObject("torch._C._autograd", setter), a);
}
Value* disableSavedHooks(Trace& t, CallArgs& a) { return allowSavedHooks(t, a, "_saved_tensors_hooks_disable"); }
Value* enableSavedHooks(Trace& t, CallArgs& a) { return allowSavedHooks(t, a, "_saved_tensors_hooks_enable"); }

// ---- context managers ------------------------------------------------------------------------------------------------

// Context managers of torch that change its state: entered for real while tracing, and a pair of nodes in the graph, as
// torch's own front end records them.
struct StateManager {
  const char* module;
  const char* enter;
  const char* exit;
  std::vector<const char*> fields;  // of the manager object: the arguments of `enter`
};
const StateManager kAutocast = {
    "torch.amp.autocast_mode", "_enter_autocast", "_exit_autocast", {"device", "fast_dtype", "_enabled", "_cache_enabled"}};
const StateManager kInference = {"torch.autograd.grad_mode", "_enter_inference_mode", "_exit_inference_mode", {"mode"}};

Value* enterManager(Trace& t, CallArgs& a, const StateManager& kind) {
  auto* self = a.args.at(0)->kind == Kind::Instance ? as<InstanceValue>(a.args[0]) : nullptr;
  if (!self) unsupported(BreakReason::UnsupportedContextManager, std::string(kind.enter) + " of an unknown object");
  std::vector<Arg> operands;
  std::vector<PyObject*> constants;
  for (const char* field : kind.fields) {
    PyObject* c = t.constant(getAttr(t, self, field));
    if (!c) unsupported(BreakReason::UnsupportedContextManager, std::string(kind.enter) + " with computed arguments");
    Arg arg;
    arg.object = ObjectRef::share(c);
    operands.push_back(std::move(arg));
    constants.push_back(c);
  }
  ObjectRef module = checked(PyImport_ImportModule(kind.module));
  ObjectRef enter = checked(PyObject_GetAttrString(module.get(), kind.enter));
  ObjectRef exit = checked(PyObject_GetAttrString(module.get(), kind.exit));
  bool gradBefore = gradEnabled();
  ObjectRef mode = native(t, PyObject_Vectorcall(enter.get(), constants.data(), constants.size(), nullptr));
  Node* node = t.graph.add(NodeOp::CallFunction, std::move(enter), std::move(operands), {});
  node->place = t.place;
  node->switchesMode = true;
  t.enterState(self, std::move(mode), std::move(exit), node, gradBefore);
  return self;
}

Value* exitManager(Trace& t, CallArgs& a, const StateManager& kind) {
  Node* entered = nullptr;
  if (a.args.at(0)->kind != Kind::Instance || !t.leaveState(as<InstanceValue>(a.args[0]), entered))
    unsupported(BreakReason::UnsupportedContextManager, std::string(kind.exit) + " of what was entered outside the function");
  ObjectRef module = checked(PyImport_ImportModule(kind.module));
  std::vector<Arg> operands(1);
  operands[0].kind = Arg::NodeRef;
  operands[0].node = entered;
  Node* node = t.graph.add(NodeOp::CallFunction, checked(PyObject_GetAttrString(module.get(), kind.exit)), std::move(operands), {});
  node->place = t.place;
  node->switchesMode = true;
  return t.boolean(false);
}

Value* autocastEnter(Trace& t, CallArgs& a) { return enterManager(t, a, kAutocast); }
Value* autocastExit(Trace& t, CallArgs& a) { return exitManager(t, a, kAutocast); }
Value* inferenceEnter(Trace& t, CallArgs& a) {
  enterManager(t, a, kInference);
  return t.none();
}
Value* inferenceExit(Trace& t, CallArgs& a) {
  exitManager(t, a, kInference);
  return t.none();
}

// ---- profilers: nothing happens in a graph that a label could be put around ---------------------------------------------

Value* recordFunctionEnter(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  if (a.args[0]->kind != Kind::Instance) unsupported(BreakReason::UnsupportedContextManager, "record_function of an unknown object");
  // Entered for real by the code after a break.
  t.enterState(as<InstanceValue>(a.args[0]), {}, {}, nullptr, gradEnabled());
  return a.args[0];
}

Value* recordFunctionExit(Trace& t, CallArgs& a) {
  Node* none = nullptr;
  if (a.args.at(0)->kind != Kind::Instance || !t.leaveState(as<InstanceValue>(a.args[0]), none))
    unsupported(BreakReason::UnsupportedContextManager, "the end of a record_function that was entered outside the graph");
  return t.none();
}

// `with profile():` of which nobody can ask for results is left out; any other is made and entered by CPython.
template <const char* const& module>
Value* makeProfile(Trace& t, CallArgs& a) {
  const FrameState& f = *t.frame;
  const Code& code = *f.code;
  bool unseen = f.nextIp + 1 < code.size() && code.at(f.nextIp).op == Op::BeforeWith && code.at(f.nextIp + 1).op == Op::PopTop;
  // Made once for the sake of its arguments' checks; those that are not constants may be asked for by others.
  if (!unseen || !callNative(t, importedObject(module, "profile"), a))
    unsupported(BreakReason::UnsupportedContextManager, std::string(module) + ".profile whose results can be read");
  return call(t, pinnedValue(t, importedObject("contextlib", "nullcontext")), {});
}
constexpr const char* kProfiler = "torch.profiler";
constexpr const char* kAutogradProfiler = "torch.autograd.profiler";

}  // namespace

bool isConfigModule(PyObject* module) {
  PyTypeObject* type = Py_TYPE(module);
  if (type == &PyModule_Type || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  static auto* base = reinterpret_cast<PyTypeObject*>(importedObject("torch.utils._config_module", "ConfigModule"));
  return PyType_IsSubtype(type, base) != 0;
}

namespace {

std::string configName(PyObject* module, PyObject* name) {
  const char *owner = PyModule_GetName(module), *attribute = PyUnicode_AsUTF8(name);
  if (!owner || !attribute) throw PythonError{};
  return std::string(owner) + "." + attribute;
}

}  // namespace

Value* configAttr(Trace& t, PyObject* module, PyObject* name) {
  ObjectRef held = ObjectRef::steal(PyObject_GetAttr(module, name));
  if (!held) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) raiseCurrent(t);
    PyErr_Clear();
    return nullptr;
  }
  if (t.settings.isChanged(configName(module, name))) return t.real(std::move(held));
  PyObject* kept = t.keep(std::move(held));
  return t.wrap(kept, t.sources.attr(t.sources.pinned(module), name));
}

void setConfigAttr(Trace& t, PyObject* module, PyObject* name, Value* value) {
  PyObject* wanted = t.snapshot(value);
  if (!wanted) unsupported(BreakReason::AttributeWrite, "setting " + configName(module, name) + " to " + describe(value));
  ObjectRef before = native(t, PyObject_GetAttr(module, name));
  ObjectRef setter = ObjectRef::share(importedObject("builtins", "setattr"));
  SettingCall undo{setter, checked(PyTuple_Pack(3, module, name, before.get())), {}};
  SettingCall now{setter, checked(PyTuple_Pack(3, module, name, wanted)), {}};
  native(t, PyObject_Call(setter.get(), now.args.get(), nullptr));
  t.settings.change(configName(module, name), std::move(undo), std::move(now), false);
}

void addTorchState(BuiltinTable& table) {
  table.add("torch.is_grad_enabled", isGradEnabled);
  table.add("torch._C._set_grad_enabled", setGradMode);
  table.add("torch.autocast.__enter__", autocastEnter);
  table.add("torch.autocast.__exit__", autocastExit);
  table.add("torch.inference_mode.__enter__", inferenceEnter);
  table.add("torch.inference_mode.__exit__", inferenceExit);
  addFlags(table, std::make_index_sequence<std::size(kFlags)>());
  table.add("torch._C._set_deterministic_algorithms", setDeterministic);
  table.addPure("torch._C._get_deterministic_algorithms");
  table.addPure("torch._C._get_deterministic_algorithms_warn_only");
  table.addPure("torch._C._autograd._saved_tensors_hooks_get_disabled_error_message");
  table.add("torch._C._autograd._saved_tensors_hooks_disable", disableSavedHooks);
  table.add("torch._C._autograd._saved_tensors_hooks_enable", enableSavedHooks);
  table.add("torch.autograd.profiler.record_function.__enter__", recordFunctionEnter);
  table.add("torch.autograd.profiler.record_function.__exit__", recordFunctionExit);
  table.add("torch.profiler.profile", makeProfile<kProfiler>);
  table.add("torch.autograd.profiler.profile", makeProfile<kAutogradProfiler>);
}

}  // namespace cdynamo
