#include "interp/torch_function.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

PyObject* functionName() {
  static PyObject* name = PyUnicode_InternFromString("__torch_function__");
  return name;
}

bool asks(const char* question) {
  ObjectRef answer = checked(PyObject_CallNoArgs(importedObject("torch._C", question)));
  return answer.get() == Py_True;
}

// The type of an object that may take part; null for everything that cannot.
PyTypeObject* takingType(Value* v) {
  if (isTensor(v)) return as<TensorValue>(v)->type == tensorType() ? nullptr : as<TensorValue>(v)->type;
  if (v->kind == Kind::Instance) return as<InstanceValue>(v)->type;
  return nullptr;
}

// Calls visit(value) for every argument that torch's parser would look at.
template <typename Visit>
void eachArgument(Trace& t, const CallArgs& args, const Visit& visit) {
  auto look = [&](Value* v) {
    visit(v);
    if (v->kind == Kind::List) {
      t.load(as<ListValue>(v));
      for (Value* item : as<ListValue>(v)->items) visit(item);
    }
    if (v->kind == Kind::Tuple) {
      t.load(as<TupleValue>(v));
      for (Value* item : as<TupleValue>(v)->items) visit(item);
    }
  };
  for (Value* v : args.args) look(v);
  for (const auto& [name, v] : args.kwargs) look(v);
}

// The mode that is asked first: entered in the traced program and not left yet.
InstanceValue* innermostMode(Trace& t) {
  if (t.enteredStates().empty()) return nullptr;
  static auto* base = reinterpret_cast<PyTypeObject*>(importedObject("torch.overrides", "TorchFunctionMode"));
  InstanceValue* last = t.enteredStates().back().manager;
  return PyType_IsSubtype(last->type, base) ? last : nullptr;
}

// The name under which a method is reported: Tensor.__add__ as Tensor.add. Asked of torch itself, once.
PyObject* reportedFunction(PyObject* function) {
  if (Py_TYPE(function) != &PyMethodDescr_Type) return function;
  const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyDescrObject*>(function)->d_name);
  if (!name || std::strncmp(name, "__", 2) != 0) return function;
  static std::unordered_map<PyObject*, PyObject*> known;
  PyObject*& reported = known[function];
  if (!reported) reported = checked(PyObject_CallOneArg(importedObject("cdynamo._higher_order", "reported_function"), function)).release();
  return reported;
}

// While it lives, the innermost mode is out of the way.
class WithoutMode {
 public:
  WithoutMode(Trace& t, InstanceValue* mode) : t_(t), mode_(mode), grad_(t.enteredStates().back().gradBefore) {
    Node* none = nullptr;
    t.leaveState(mode, none);
  }
  ~WithoutMode() { t_.enterState(mode_, {}, {}, nullptr, grad_); }

 private:
  Trace& t_;
  InstanceValue* mode_;
  bool grad_;
};

}  // namespace

bool isMode(Value* v) {
  static auto* base = reinterpret_cast<PyTypeObject*>(importedObject("torch.overrides", "TorchFunctionMode"));
  return v->kind == Kind::Instance && PyType_IsSubtype(as<InstanceValue>(v)->type, base);
}

bool isModeAround(const Source* source) {
  return source->kind == SourceKind::Attr && source->base->kind == SourceKind::Pinned &&
         source->base->object == importedObject("cdynamo._higher_order", "mode_stack");
}

bool overridesTorch(PyTypeObject* type) {
  static PyObject* disabled = importedObject("torch._C", "_disabled_torch_function_impl");
  PyObject* found = typeLookup(type, functionName());
  return found && found != disabled;
}

bool isOverridden(Trace& t, Value* v) {
  PyTypeObject* type = takingType(v);
  if (!type || !overridesTorch(type) || !asks("_is_torch_function_enabled")) return false;
  t.typeOf(v);
  return true;
}

bool isOverridden(Trace& t, const CallArgs& args) {
  if (innermostMode(t) && !asks("_is_torch_function_all_disabled")) return true;
  bool found = false;
  eachArgument(t, args, [&](Value* v) { found = found || isOverridden(t, v); });
  return found;
}

Value* callTorchFunction(Trace& t, PyObject* function, const CallArgs& args) {
  std::vector<Value*> takers;
  std::vector<PyTypeObject*> types;
  eachArgument(t, args, [&](Value* v) {
    if (!isOverridden(t, v)) return;
    PyTypeObject* type = t.typeOf(v);
    if (std::find(types.begin(), types.end(), type) != types.end()) return;
    // A subclass is asked before its bases, else the order is that of the arguments.
    size_t at = 0;
    while (at < types.size() && !PyType_IsSubtype(type, types[at])) at++;
    types.insert(types.begin() + static_cast<std::ptrdiff_t>(at), type);
    takers.insert(takers.begin() + static_cast<std::ptrdiff_t>(at), v);
  });
  std::vector<Value*> typeValues;
  for (PyTypeObject* type : types) typeValues.push_back(pinnedValue(t, reinterpret_cast<PyObject*>(type)));
  Value* name = pinnedValue(t, t.keep(ObjectRef::share(reportedFunction(function))));
  auto arguments = [&] {
    CallArgs given{{name, t.tuple(typeValues), t.tuple(args.args)}, {}};
    if (args.kwargs.empty() && !PyFunction_Check(function)) return given;
    DictValue* keywords = t.dict();
    for (const auto& [key, v] : args.kwargs) t.dictSet(keywords, t.keyOf(t.realShared(key)), v);
    given.args.push_back(keywords);
    return given;
  };
  if (InstanceValue* mode = innermostMode(t); mode && !asks("_is_torch_function_all_disabled")) {
    Value* method = getAttr(t, mode, functionName());
    WithoutMode without(t, mode);
    Value* answer = call(t, method, arguments());
    if (!isReal(answer, Py_NotImplemented)) return answer;
    if (takers.empty()) unsupported(BreakReason::TensorSubclass, "a torch-function mode that gives NotImplemented");
  }
  for (Value* v : takers) {
    Value* method = isTensor(v) ? getTypeAttr(t, t.typeOf(v), functionName()) : getAttr(t, v, functionName());
    Value* answer = call(t, method, arguments());
    if (!isReal(answer, Py_NotImplemented)) return answer;
  }
  unsupported(BreakReason::TensorSubclass, "no __torch_function__ that knows the operation");
}

Value* overriddenAttr(Trace& t, TensorValue* tensor, PyObject* name) {
  PyObject* found = typeLookup(tensor->type, name);
  if (!found || Py_TYPE(found) != &PyGetSetDescr_Type || found != typeLookup(tensorType(), name)) return nullptr;
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0 || PyUnicode_CompareWithASCIIString(name, "__dict__") == 0) return nullptr;
  lookUp(t, tensor->type, name);
  ObjectRef getter = checked(PyObject_GetAttrString(found, "__get__"));
  return callTorchFunction(t, t.keep(std::move(getter)), {{tensor}, {}});
}

Value* overriddenBinary(Trace& t, const char* method, const char* reflected, Value* a, Value* b) {
  if (!isOverridden(t, CallArgs{{a, b}, {}})) return nullptr;
  auto attempt = [&](Value* self, const char* name, Value* other) -> Value* {
    Value* bound = isTensor(self) ? specialMethod(t, self, name) : nullptr;
    Value* answer = bound ? call1(t, bound, other) : nullptr;
    return answer && isReal(answer, Py_NotImplemented) ? nullptr : answer;
  };
  auto onType = [](Value* v, const char* name) {
    ObjectRef key = checked(PyUnicode_InternFromString(name));
    return typeLookup(as<TensorValue>(v)->type, key.get());
  };
  bool reflectedFirst = reflected && isTensor(a) && isTensor(b) && as<TensorValue>(a)->type != as<TensorValue>(b)->type &&
                        PyType_IsSubtype(as<TensorValue>(b)->type, as<TensorValue>(a)->type) && onType(a, reflected) != onType(b, reflected);
  if (reflectedFirst)
    if (Value* v = attempt(b, reflected, a)) return v;
  if (Value* v = attempt(a, method, b)) return v;
  if (!reflectedFirst && reflected)
    if (Value* v = attempt(b, reflected, a)) return v;
  unsupported(BreakReason::TensorSubclass, std::string(method) + " of tensors with a __torch_function__");
}

}  // namespace cdynamo
