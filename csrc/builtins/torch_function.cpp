// What programs do with torch function: switch it off, enter modes, make subclasses.
#include "interp/torch_function.h"

#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

Value* setFunctionState(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  if (!isReal(a.args[0])) unsupported(BreakReason::UnsupportedContextManager, "a state of torch function that is " + describe(a.args[0]));
  PyObject* setter = importedObject("torch._C", "_set_torch_function_state");
  ObjectRef before = checked(PyObject_CallNoArgs(importedObject("torch._C", "_get_torch_function_state")));
  SettingCall undo{ObjectRef::share(setter), checked(PyTuple_Pack(1, before.get())), {}};
  SettingCall now{ObjectRef::share(setter), checked(PyTuple_Pack(1, realObject(a.args[0]))), {}};
  native(t, PyObject_Call(setter, now.args.get(), nullptr));
  t.settings.change("torch function", std::move(undo), std::move(now), false);
  return t.none();
}

Value* functionState(Trace& t, CallArgs&) { return t.real(checked(PyObject_CallNoArgs(importedObject("torch._C", "_get_torch_function_state")))); }

// ---- modes -----------------------------------------------------------------------------------------------------------

Value* pushMode(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  if (!isMode(a.args[0])) unsupported(BreakReason::UnsupportedContextManager, "entering " + describe(a.args[0]));
  t.enterState(as<InstanceValue>(a.args[0]), {}, {}, nullptr, gradEnabled());
  return t.none();
}

Value* popMode(Trace& t, CallArgs&) {
  InstanceValue* mode = t.enteredStates().empty() ? nullptr : t.enteredStates().back().manager;
  Node* none = nullptr;
  bool around = mode && mode->source && isModeAround(mode->source);
  if (!mode || around || !isMode(mode) || !t.leaveState(mode, none))
    unsupported(BreakReason::UnsupportedContextManager, "leaving a torch-function mode that was entered elsewhere");
  return mode;
}

Value* modeCount(Trace& t, CallArgs&) {
  long long count = 0;
  for (const auto& state : t.enteredStates()) count += isMode(state.manager);
  return t.integer(count);
}

// ---- subclasses ------------------------------------------------------------------------------------------------------

PyTypeObject* subclassOf(Trace& t, Value* v) {
  PyObject* cls = isReal(v) ? t.identity(v) : nullptr;
  if (!cls || !PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensorType()))
    unsupported(BreakReason::TensorConstruction, "making a tensor of " + describe(v));
  return reinterpret_cast<PyTypeObject*>(cls);
}

Value* withClass(Trace& t, TensorValue* tensor, PyTypeObject* cls) {
  Node* node = t.nodeOf(tensor);
  auto* v = t.make<TensorValue>();
  v->node = node;
  v->meta = tensor->meta;
  v->meta.isLeaf = !v->meta.requiresGrad;
  v->type = cls;
  v->observed = true;
  v->base = tensor;
  if (!tensor->viewed) t.journal.set(tensor->viewed, true);
  t.keep(ObjectRef::share(cls));
  return v;
}

Value* asSubclass(Trace& t, CallArgs& a) {
  if (a.args.size() != 2 || !isTensor(a.args[0])) unsupported(BreakReason::TensorMethod, "as_subclass with unknown arguments");
  return withClass(t, as<TensorValue>(a.args[0]), subclassOf(t, a.args[1]));
}

Value* makeSubclass(Trace& t, CallArgs& a) {
  Value* flag = a.takeKeyword("require_grad");
  if (a.args.size() == 3) flag = a.args[2];
  if (a.args.size() < 2 || a.args.size() > 3 || !a.kwargs.empty() || !isTensor(a.args[1]) || (flag && truth(t, flag)))
    unsupported(BreakReason::TensorConstruction, "_make_subclass with a gradient or unknown arguments");
  PyTypeObject* cls = subclassOf(t, a.args[0]);
  static PyObject* detach = PyUnicode_InternFromString("detach");
  return withClass(t, as<TensorValue>(recordOp(t, detach, true, {{a.args[1]}, {}})), cls);
}

Value* handleTorchFunction(Trace& t, CallArgs& a) {
  if (a.args.size() < 2 || !isReal(a.args[0])) unsupported(BreakReason::TensorSubclass, "handle_torch_function with unknown arguments");
  CallArgs given{{a.args.begin() + 2, a.args.end()}, a.kwargs};
  return callTorchFunction(t, t.identity(a.args[0]), given);
}

// Whether a function is in one of torch's own sets of functions.
template <const char* const& module, const char* const& name>
Value* isListed(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  static PyObject* listed = checked(PyObject_CallNoArgs(importedObject(module, name))).release();
  if (!isReal(a.args[0])) return t.boolean(false);
  return t.boolean(checkedStatus(PySet_Contains(listed, t.identity(a.args[0]))) != 0);
}
constexpr const char *kOverrides = "torch.overrides", *kNowrap = "get_default_nowrap_functions";
constexpr const char *kDevice = "torch.utils._device", *kConstructors = "_device_constructors";

template <int which>
Value* hasTorchFunction(Trace& t, CallArgs& a) {
  CallArgs given;
  if (which == 0 && a.args.size() == 1)
    given.args = itemsOf(t, a.args[0]);
  else
    given.args = a.args;
  return t.boolean(isOverridden(t, given));
}

}  // namespace

void addTorchFunctionBuiltins(BuiltinTable& table) {
  table.add("torch._C._set_torch_function_state", setFunctionState);
  table.add("torch._C._get_torch_function_state", functionState);
  table.addPolyfill("torch._C.DisableTorchFunctionSubclass", "disable_torch_function_subclass");
  table.addPolyfill("torch._C.DisableTorchFunction", "disable_torch_function");
  table.addPolyfill("torch.device.__enter__", "device_enter");
  table.addPolyfill("torch.device.__exit__", "device_exit");
  table.addPolyfill("torch._C._group_tensors_by_device_and_dtype", "group_tensors_by_device_and_dtype");
  table.add("torch._C._push_on_torch_function_stack", pushMode);
  table.add("torch._C._pop_torch_function_stack", popMode);
  table.add("torch._C._len_torch_function_stack", modeCount);
  table.addPolyfill("torch.overrides.get_default_nowrap_functions", "get_default_nowrap_functions");
  table.add("cdynamo.polyfills.is_nowrap_function", isListed<kOverrides, kNowrap>);
  importedObject(kDevice, kConstructors);  // torch itself imports the module when a device is first entered
  table.addPolyfill("torch.utils._device._device_constructors", "device_constructors");
  table.add("cdynamo.polyfills.is_device_constructor", isListed<kDevice, kConstructors>);
  table.addType(tensorType(), "as_subclass", asSubclass);
  table.add("torch.Tensor._make_subclass", makeSubclass);
  table.add("torch.overrides.handle_torch_function", handleTorchFunction);
  table.add("torch._C._has_torch_function", hasTorchFunction<0>);
  table.add("torch._C._has_torch_function_unary", hasTorchFunction<1>);
  table.add("torch._C._has_torch_function_variadic", hasTorchFunction<2>);
}

}  // namespace cdynamo
