// Modules that take the sizes of their parameters from their first input (torch.nn.modules.lazy). The parameters are made while tracing,
// and the capture starts over with a module that has them: as if the program had called the module once before.
#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/op_names.h"
#include "interp/pending.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// Whether nothing that the program has done so far could be seen by code that runs now, or would be seen in another order.
bool isUnseen(Trace& t) {
  if (isPending(t)) return false;
  for (const Node& node : t.graph.nodes())
    if (node.op != NodeOp::Placeholder && drawsRandomNumbers(opName(node.target.get(), node.op == NodeOp::CallMethod))) return false;
  return true;
}

// torch's own modules look at sizes only.
bool looksAtSizesOnly(PyTypeObject* type) {
  PyObject* method = typeLookup(type, interned("initialize_parameters"));
  if (!method || !PyFunction_Check(method)) return false;
  PyObject* module = PyDict_GetItemString(PyFunction_GET_GLOBALS(method), "__name__");
  const char* name = module ? PyUnicode_AsUTF8(module) : nullptr;
  return name && std::string_view(name).starts_with("torch.nn.modules.");
}

// An operand as an object; null where there is none yet.
ObjectRef realOperand(Trace& t, Value* v, bool sizesOnly) {
  if (isTensor(v)) {
    auto* tensor = as<TensorValue>(v);
    if (tensor->real && !tensor->written) return ObjectRef::share(tensor->real);
    if (!sizesOnly) return nullptr;
    ObjectRef like = checked(makeMetaTensor(tensor->meta)), device = checked(deviceObject(tensor->meta.device));
    ObjectRef keywords = checked(Py_BuildValue("{s:O}", "device", device.get())), args = checked(PyTuple_Pack(1, like.get()));
    return checked(PyObject_Call(importedObject("torch", "empty_like"), args.get(), keywords.get()));
  }
  if (auto* heap = dynamic_cast<HeapValue*>(v); heap && heap->real && heap->source && !heap->mutated) return heap->real;
  if (PyObject* constant = t.constant(v)) return ObjectRef::share(constant);
  PyTypeObject* type = t.typeOf(v);
  if (type == &PyTuple_Type || type == &PyList_Type) {
    ObjectRef made = checked(PyList_New(0));
    for (Value* held : itemsOf(t, v)) {
      ObjectRef item = realOperand(t, held, sizesOnly);
      if (!item) return nullptr;
      checkedStatus(PyList_Append(made.get(), item.get()));
    }
    return type == &PyList_Type ? made : checked(PyList_AsTuple(made.get()));
  }
  if (v->kind == Kind::Dict && type == &PyDict_Type) {
    ObjectRef made = checked(PyDict_New());
    t.complete(as<DictValue>(v));
    for (const DictEntry& e : as<DictValue>(v)->entries) {
      if (!e.value) continue;
      ObjectRef item = e.key.constant ? realOperand(t, e.value, sizesOnly) : nullptr;
      if (!item) return nullptr;
      checkedStatus(PyDict_SetItem(made.get(), e.key.constant, item.get()));
    }
    return made;
  }
  return nullptr;
}

// Whether nn.Module's own code calls its hooks now: it will not find this one again.
bool isCalledAsHook(const Trace& t) {
  static PyObject* globals = PyModule_GetDict(checked(PyImport_ImportModule("torch.nn.modules.module")).release());
  return t.frame && t.frame->globals == globals;
}

// LazyModuleMixin._infer_parameters(self, module, args, kwargs=None), a hook that the module calls before its first forward.
Value* inferParameters(Trace& t, CallArgs& a) {
  static PyObject* function =
      checked(PyObject_GetAttrString(importedObject("torch.nn.modules.lazy", "LazyModuleMixin"), "_infer_parameters")).release();
  auto* module = a.args.size() >= 3 && a.args[1]->kind == Kind::Instance ? as<InstanceValue>(a.args[1]) : nullptr;
  bool plain = module && module->real && a.args[0] == module && a.args.size() <= 4 && a.kwargs.empty() && isCalledAsHook(t);
  // A capture that starts at the hook's call, of use for no other module.
  for (const ObjectRef& done : t.done) {
    if (!plain || done.get() != module->real.get()) continue;
    if (module->source) t.facts.identityIs(module->source, module->real.get());
    return t.none();
  }
  ObjectRef args;
  if (plain && !module->mutated && isUnseen(t)) {
    const bool sizesOnly = looksAtSizesOnly(module->type);
    args = checked(PyTuple_New(static_cast<Py_ssize_t>(a.args.size())));
    for (size_t i = 0; i < a.args.size() && args; i++) {
      ObjectRef operand = i < 2 ? module->real : realOperand(t, a.args[i], sizesOnly);
      if (operand)
        PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), operand.release());
      else
        args = nullptr;
    }
  }
  if (!args) return inlineFunction(t, pinnedValue(t, function), std::move(a));
  if (ObjectRef::steal(PyObject_Call(function, args.get(), nullptr))) throw StartOver{module->real};
  PyErr_Clear();
  unsupported(BreakReason::TensorConstruction, "the parameters of a lazy module");
}

}  // namespace

void addLazyModules(BuiltinTable& table) { table.add("torch.nn.modules.lazy.LazyModuleMixin._infer_parameters", inferParameters); }

}  // namespace cdynamo
