// Torch's functions: which go into the graph, which are answered from metadata, which are refused.
#include <cstring>
#include <unordered_set>

#include "base/lookup.h"
#include "builtins/scalar_tensors.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "cpython/lru_cache.h"
#include "interp/intrinsics.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

enum class TorchKind : uint8_t {
  No,
  Operation,
  Method,
  PythonOperation,
  PythonMethod,
  CompilingTrue,
  False,
  GraphBreak,
  SkipFrame,
  StepUnsupported,
  GetErrorOnBreak,
  SetErrorOnBreak,
  Disabled,
  LruCache,
  ManualSeed,
  Nothing
};

std::string attrText(PyObject* object, const char* name) {
  ObjectRef v = ObjectRef::steal(PyObject_GetAttrString(object, name));
  PyErr_Clear();
  if (!v || !PyUnicode_Check(v.get())) return "";
  return PyUnicode_AsUTF8(v.get());
}

// Methods written in Python on torch.Tensor that are operations.
const std::unordered_set<std::string>& pythonTensorMethods() {
  static const std::unordered_set<std::string> names = {
      "norm",         "split",        "unflatten", "stft",     "istft",         "unique",   "unique_consecutive", "lu",          "__rsub__",
      "__rdiv__",     "__rtruediv__", "__pow__",   "__rpow__", "__rfloordiv__", "__rmod__", "__rmatmul__",        "__rlshift__", "__rrshift__",
      "__floordiv__", "__idiv__",     "__ipow__",  "align_to", "symeig",        "is_shared"};
  return names;
}

PyTypeObject* tensorBase() {
  static PyTypeObject* base = tensorType()->tp_base;
  return base;
}

TorchKind classify(PyObject* callable) {
  PyTypeObject* kind = Py_TYPE(callable);
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type) {
    PyTypeObject* owner = reinterpret_cast<PyDescrObject*>(callable)->d_type;
    return owner == tensorBase() || owner == tensorType() ? TorchKind::Method : TorchKind::No;
  }
  if (kind == lruCacheType()) return TorchKind::LruCache;
  if (isTorchOperatorType(kind)) return TorchKind::Operation;
  if (PyCFunction_Check(callable)) {
    // The functions of torch are static methods: GET_SELF would hide the class that they belong to.
    PyObject* self = reinterpret_cast<PyCFunctionObject*>(callable)->m_self;
    if (!self) return TorchKind::No;
    std::string owner = PyModule_Check(self) ? std::string(PyModule_GetName(self))
                        : PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self)->tp_name
                                             : Py_TYPE(self)->tp_name;
    if (owner.find("_VariableFunctions") != std::string::npos) return TorchKind::Operation;
    for (const char* m : {"torch._C._nn", "torch._C._linalg", "torch._C._fft", "torch._C._special", "torch._C._sparse", "torch._C._nested"})
      if (owner == m) return TorchKind::Operation;
    return TorchKind::No;
  }
  if (!PyFunction_Check(callable)) return TorchKind::No;
  ObjectRef disabled = ObjectRef::steal(PyObject_GetAttrString(callable, "_torchdynamo_disable"));
  PyErr_Clear();
  if (disabled && disabled.get() == Py_True) return TorchKind::Disabled;
  std::string module = attrText(callable, "__module__");
  bool ours = module == "cdynamo._decorators";
  if (!ours && module.compare(0, 5, "torch") != 0) return TorchKind::No;
  std::string name = attrText(callable, "__name__");
  if (module == "torch.random" && name == "manual_seed") return TorchKind::ManualSeed;  // torch._dynamo puts a wrapper in its place
  if (ours || module.compare(0, 13, "torch._dynamo") == 0) {
    if (name == "graph_break") return TorchKind::GraphBreak;
    if (name == "skip_frame") return TorchKind::SkipFrame;
    if (name == "step_unsupported") return TorchKind::StepUnsupported;
    if (name == "_get_error_on_graph_break") return TorchKind::GetErrorOnBreak;
    if (name == "_set_error_on_graph_break") return TorchKind::SetErrorOnBreak;
    if (name == "mark_static") return TorchKind::Nothing;
    if (name == "is_compiling") return TorchKind::CompilingTrue;
  }
  if (name == "is_compiling" || name == "is_dynamo_compiling") return TorchKind::CompilingTrue;
  if (module == "torch.compiler" && name == "is_exporting") return TorchKind::False;
  // The reference's own bookkeeping in a patched nn.Module.__init__.
  if (module == "torch._dynamo.mutation_guard" && (name == "tag" || name == "mark_class_dynamic")) return TorchKind::Nothing;
  if (module == "torch.nn.functional" || module == "torch.functional") return name[0] == '_' ? TorchKind::No : TorchKind::PythonOperation;
  if (module == "torch._tensor" && pythonTensorMethods().count(name)) return TorchKind::PythonMethod;
  return TorchKind::No;
}

// Functions of modules and of static types: not a bound method, which would keep its object alive, nor a function of the program.
bool livesForever(PyObject* callable, TorchKind kind) {
  if (!PyCFunction_Check(callable)) return kind != TorchKind::No && kind != TorchKind::Disabled && kind != TorchKind::LruCache;
  PyObject* self = reinterpret_cast<PyCFunctionObject*>(callable)->m_self;
  if (!self || PyModule_Check(self)) return true;
  return PyType_Check(self) && !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(self), Py_TPFLAGS_HEAPTYPE);
}

TorchKind cachedKind(PyObject* callable) {
  // Callables live as long as the table: a map from an address alone could meet a new object at an old one.
  static std::unordered_map<PyObject*, TorchKind> known;
  auto found = known.find(callable);
  if (found != known.end()) return found->second;
  TorchKind kind = classify(callable);
  if (livesForever(callable, kind)) known.emplace(ObjectRef::share(callable).release(), kind);
  return kind;
}

PyObject* methodName(PyObject* descr) {
  PyObject* name = reinterpret_cast<PyDescrObject*>(descr)->d_name;
  return name;
}

// Functions of torch.nn.functional whose argument is not a tensor, or that take callables: traced like user code.
bool takesCallable(const CallArgs& a) {
  auto callable = [](Value* v) { return v->kind == Kind::Function || v->kind == Kind::BoundMethod; };
  for (Value* v : a.args)
    if (callable(v)) return true;
  for (auto& [n, v] : a.kwargs)
    if (callable(v)) return true;
  return false;
}

// What the user said about a break that is asked for.
std::string messageOf(Trace& t, const CallArgs& a) {
  Value* given = a.args.empty() ? a.keyword("msg") : a.args[0];
  PyObject* text = given ? t.constant(given) : nullptr;
  const char* utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (utf8 == nullptr) PyErr_Clear();
  return utf8 ? std::string(". Message: ") + utf8 : "";
}

// nn.Module's own call leaves out the hooks that are always to be called where it is told that it is being compiled.
bool forgetsHooksWhileCompiling(const Trace& t) {
  static PyObject* code = [] {
    ObjectRef function = checked(PyObject_GetAttrString(importedObject("torch.nn", "Module"), "_call_impl"));
    return PyFunction_Check(function.get()) ? PyFunction_GET_CODE(function.get()) : nullptr;
  }();
  return t.frame && reinterpret_cast<PyObject*>(t.frame->code->pyCode()) == code;
}

}  // namespace

bool isControl(PyObject* callable) {
  TorchKind kind = cachedKind(callable);
  return kind == TorchKind::GraphBreak || kind == TorchKind::SkipFrame || kind == TorchKind::StepUnsupported;
}

Value* callTorch(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known) {
  TorchKind kind = cachedKind(callable);
  known = true;
  bool isOperation =
      kind == TorchKind::Operation || kind == TorchKind::Method || kind == TorchKind::PythonOperation || kind == TorchKind::PythonMethod;
  if (isOperation && isOverridden(t, args)) {
    if (callableValue && callableValue->source) t.identity(callableValue);
    return callTorchFunction(t, callable, args);
  }
  auto pin = [&] {
    if (callableValue && callableValue->source) t.identity(callableValue);
  };
  if (isOperation)
    if (Value* computed = computeWithScalarTensors(t, callable, args)) {
      pin();
      return computed;
    }
  switch (kind) {
    case TorchKind::No: known = false; return nullptr;
    case TorchKind::Operation: pin(); return recordOp(t, callable, false, args);
    case TorchKind::Method: {
      if (args.args.empty() || !isTensor(args.args[0])) break;
      pin();
      return recordOp(t, methodName(callable), true, args);
    }
    case TorchKind::PythonOperation:
      if (!hasTensor(args) || takesCallable(args)) break;
      pin();
      return recordOp(t, callable, false, args);
    case TorchKind::PythonMethod: {
      if (args.args.empty() || !isTensor(args.args[0])) break;
      pin();
      return recordOp(t, reinterpret_cast<PyFunctionObject*>(callable)->func_name, true, args);
    }
    case TorchKind::CompilingTrue: pin(); return t.boolean(!forgetsHooksWhileCompiling(t));
    case TorchKind::False: pin(); return t.boolean(false);
    case TorchKind::GraphBreak: unsupported(BreakReason::UserBreak, "torch._dynamo.graph_break()" + messageOf(t, args));
    case TorchKind::SkipFrame: unsupported(BreakReason::UserSkip, "torch._dynamo.skip_frame()" + messageOf(t, args));
    case TorchKind::StepUnsupported: unsupported(BreakReason::UserStep, "torch._dynamo.step_unsupported()" + messageOf(t, args));
    case TorchKind::GetErrorOnBreak: pin(); return t.boolean(t.options.errorOnBreak);
    case TorchKind::SetErrorOnBreak:
      pin();
      t.journal.set(t.options.errorOnBreak, truth(t, args.args.at(0)));
      return t.none();
    case TorchKind::Disabled: {
      std::string why = attrText(callable, "_torchdynamo_disable_msg");
      unsupported(BreakReason::Disabled, "calling " + describe(t.realShared(callable)) +
                                             ", which is wrapped with torch.compiler.disable (reason: " + (why.empty() ? "None" : why) + ")");
    }
    case TorchKind::Nothing: pin(); return t.none();
    case TorchKind::LruCache: return callLruCache(t, callable, callableValue, args);
    case TorchKind::ManualSeed: pin(); return manualSeed(t, args);
  }
  known = false;
  return nullptr;
}

namespace {

TensorValue* selfTensor(Trace& t, CallArgs& a, const char* name) {
  if (a.args.empty() || !isTensor(a.args[0])) raise(t, PyExc_TypeError, std::string(name) + "(): argument 'input' (position 1) must be Tensor");
  auto* tensor = as<TensorValue>(a.args[0]);
  t.observe(tensor);
  return tensor;
}

// The same where it takes nothing else.
TensorValue* onlyTensor(Trace& t, CallArgs& a, const char* name) {
  expectArgs(a, 1, 1);
  return selfTensor(t, a, name);
}

Value* dims(Trace& t, CallArgs& a, const Dims& values, PyTypeObject* type, const char* name) {
  Value* dim = a.takeKeyword("dim");
  expectArgs(a, 1, dim ? 1 : 2);
  if (a.args.size() > 1) dim = a.args[1];
  if (dim && !isReal(dim, Py_None)) {
    std::optional<long long> d = asInteger(t, dim);
    if (!d) unsupported(BreakReason::TensorAsIndex, std::string(name) + " of a computed dimension");
    long long n = static_cast<long long>(values.size());
    long long i = *d < 0 ? *d + n : *d;
    if (i < 0 || i >= n)
      raise(t, PyExc_IndexError,
            n == 0 ? "Dimension specified as " + std::to_string(*d) + " but tensor has no dimensions"
                   : "Dimension out of range (expected to be in range of [" + std::to_string(-n) + ", " + std::to_string(n - 1) + "], but got " +
                         std::to_string(*d) + ")");
    return t.integer(values[static_cast<uint32_t>(i)]);
  }
  std::vector<Value*> items;
  for (int64_t v : values) items.push_back(t.integer(v));
  return t.tuple(std::move(items), type);
}

Value* tensorSize(Trace& t, CallArgs& a) { return dims(t, a, selfTensor(t, a, "size")->meta.sizes, sizeType(), "size"); }
Value* tensorStride(Trace& t, CallArgs& a) { return dims(t, a, selfTensor(t, a, "stride")->meta.strides, &PyTuple_Type, "stride"); }
Value* tensorDim(Trace& t, CallArgs& a) { return t.integer(onlyTensor(t, a, "dim")->meta.dim()); }
Value* tensorNumel(Trace& t, CallArgs& a) { return t.integer(onlyTensor(t, a, "numel")->meta.numel()); }
Value* tensorOffset(Trace& t, CallArgs& a) { return t.integer(onlyTensor(t, a, "storage_offset")->meta.storageOffset); }

bool isFloat(DType d) {
  return d == DType::Float16 || d == DType::Float32 || d == DType::Float64 || d == DType::BFloat16 || static_cast<int>(d) > 22;
}
bool isComplexType(DType d) { return d == DType::ComplexHalf || d == DType::Complex64 || d == DType::Complex128; }

Value* tensorIsFloating(Trace& t, CallArgs& a) { return t.boolean(isFloat(onlyTensor(t, a, "is_floating_point")->meta.dtype)); }
Value* tensorIsComplex(Trace& t, CallArgs& a) { return t.boolean(isComplexType(onlyTensor(t, a, "is_complex")->meta.dtype)); }
Value* tensorIsInference(Trace& t, CallArgs& a) { return t.boolean(onlyTensor(t, a, "is_inference")->meta.isInference); }

Value* tensorElementSize(Trace& t, CallArgs& a) {
  auto* tensor = onlyTensor(t, a, "element_size");
  static PyObject* name = PyUnicode_InternFromString("itemsize");
  return tensorAttr(t, tensor, name);
}

Value* tensorGetDevice(Trace& t, CallArgs& a) {
  auto* tensor = onlyTensor(t, a, "get_device");
  return t.integer(tensor->meta.device.type == 0 ? -1 : tensor->meta.device.index);
}

Value* tensorIsContiguous(Trace& t, CallArgs& a) {
  auto* tensor = selfTensor(t, a, "is_contiguous");
  enum : int8_t { kContiguous, kPreserveFormat, kChannelsLast, kChannelsLast3d };  // c10::MemoryFormat
  int8_t format = kContiguous;
  if (a.args.size() > 1 || !a.kwargs.empty()) {
    Value* f = a.args.size() > 1 ? a.args[1] : a.keyword("memory_format");
    PyObject* c = f ? t.constant(f) : nullptr;
    if (!c || !memoryFormatFrom(c, format) || format == kPreserveFormat)
      unsupported(BreakReason::TensorMethod, "is_contiguous with a memory format that is none of a tensor's");
  }
  const TensorMeta& m = tensor->meta;
  const uint32_t dims = m.sizes.size();
  if ((format == kChannelsLast && dims != 4) || (format == kChannelsLast3d && dims != 5)) return t.boolean(false);
  int64_t expected = 1;
  bool contiguous = true;
  for (uint32_t i = 0; i < dims; i++) {
    // From the innermost dimension on; channels, the second one, come first where they are last in memory.
    const uint32_t d = format == kContiguous ? dims - 1 - i : i == 0 ? 1 : i + 1 < dims ? dims - i : 0;
    if (m.sizes[d] == 1) continue;
    if (m.strides[d] != expected) contiguous = false;
    expected *= m.sizes[d];
  }
  return t.boolean(contiguous || (format == kContiguous && m.numel() == 0));
}

template <int which>
Value* refuseRead(Trace&, CallArgs&) {
  static const char* names[] = {".data_ptr()", "index of a tensor", "whether two tensors have the same memory"};
  static const BreakReason reasons[] = {BreakReason::DataPointer, BreakReason::TensorAsIndex, BreakReason::TensorMethod};
  unsupported(reasons[which], names[which]);
}
Value* refuseMutation(Trace&, CallArgs&) { unsupported(BreakReason::AutogradMethod, "an autograd method of a tensor"); }

Value* requiresGrad_(Trace& t, CallArgs& a) {
  auto* tensor = selfTensor(t, a, "requires_grad_");
  Value* flag = a.args.size() > 1 ? a.args[1] : a.keyword("requires_grad");
  if (a.args.size() + a.kwargs.size() > (flag ? 2u : 1u) || (flag && t.typeOf(flag) != &PyBool_Type))
    unsupported(BreakReason::TensorMethod, "requires_grad_() with other arguments than a bool");
  bool want = !flag || truth(t, flag);
  if (tensor->meta.requiresGrad == want) return tensor;
  unsupported(BreakReason::RequiresGradChange, "requires_grad_() that changes a tensor");
}

Value* tensorNew(Trace&, CallArgs&) { unsupported(BreakReason::TensorConstruction, "making a tensor with its class"); }
Value* tensorIter(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return iterate(t, a.args[0]);
}
Value* tensorLen(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  return t.integer(length(t, a.args[0]));
}
Value* tensorGetitem(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return getItem(t, a.args[0], a.args[1]);
}
Value* tensorSetitem(Trace& t, CallArgs& a) {
  expectArgs(a, 3, 3);
  setItem(t, a.args.at(0), a.args.at(1), a.args.at(2));
  return t.none();
}
Value* tensorHash(Trace& t, CallArgs& a) {
  (void)t;
  (void)a;
  unsupported(BreakReason::TensorKey, "the hash of a tensor");
}

// ---- questions -------------------------------------------------------------------------------------------------------

Value* nothing(Trace& t, CallArgs&) { return t.none(); }

Value* isTorchTensor(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  t.typeOf(a.args[0]);
  return t.boolean(isTensor(a.args[0]) || (isReal(a.args[0]) && isTensor(realObject(a.args[0]))));
}

// compile(function) in a function that is compiled itself: what it gives is traced as the function.
Value* compileInside(Trace& t, CallArgs& a) {
  Value* model = a.args.size() == 1 ? a.args[0] : nullptr;
  if (model && (model->kind == Kind::Function || model->kind == Kind::BoundMethod || (isReal(model) && PyFunction_Check(realObject(model)))))
    return model;
  static PyObject* function = importedObject("cdynamo._compile", "compile_with");
  return inlineFunction(t, pinnedValue(t, function), std::move(a));
}

}  // namespace

void addTorchBuiltins(BuiltinTable& table) {
  table.add("cdynamo._compile.compile_with", compileInside);
  struct Row {
    const char* name;
    BuiltinHandler handler;
  };
  const Row methods[] = {{"size", tensorSize},
                         {"stride", tensorStride},
                         {"dim", tensorDim},
                         {"ndimension", tensorDim},
                         {"numel", tensorNumel},
                         {"nelement", tensorNumel},
                         {"storage_offset", tensorOffset},
                         {"is_floating_point", tensorIsFloating},
                         {"is_complex", tensorIsComplex},
                         {"is_inference", tensorIsInference},
                         {"element_size", tensorElementSize},
                         {"get_device", tensorGetDevice},
                         {"is_contiguous", tensorIsContiguous},
                         {"data_ptr", refuseRead<0>},
                         {"const_data_ptr", refuseRead<0>},
                         {"is_set_to", refuseRead<2>},
                         {"__index__", refuseRead<1>},
                         {"backward", refuseMutation},
                         {"retain_grad", refuseMutation},
                         {"requires_grad_", requiresGrad_},
                         {"__iter__", tensorIter},
                         {"__len__", tensorLen},
                         {"__getitem__", tensorGetitem},
                         {"__setitem__", tensorSetitem},
                         {"__hash__", tensorHash},
                         {"set_", refuseMutation},
                         {"share_memory_", refuseMutation}};
  for (const Row& r : methods) table.addType(tensorType(), r.name, r.handler);
  table.add("torch.Tensor", tensorNew);
  table.add("torch.nn.Parameter", tensorNew);
  table.add("torch.is_floating_point", tensorIsFloating);
  table.add("torch.is_complex", tensorIsComplex);
  table.add("torch.numel", tensorNumel);
  table.add("torch.is_tensor", isTorchTensor);
  table.add("torch._C._log_api_usage_once", nothing);
  table.add("torch._C._log_api_usage_metadata", nothing);
  for (const char* pure : {"torch._C._get_tracing_state",
                           "torch._C._is_tracing",
                           "torch.is_inference_mode_enabled",
                           "torch._C._is_torch_function_enabled",
                           "torch.is_autocast_enabled",
                           "torch._C._is_any_autocast_enabled",
                           "torch.is_autocast_cpu_enabled",
                           "torch.get_autocast_dtype",
                           "torch.get_autocast_gpu_dtype",
                           "torch.get_autocast_cpu_dtype",
                           "torch.is_autocast_cache_enabled",
                           "torch._C._is_autocast_available",
                           "torch.get_default_dtype",
                           "torch.promote_types",
                           "torch.can_cast",
                           "torch._C._get_cudnn_enabled",
                           "torch._C._get_mkldnn_enabled",
                           "torch._C._get_privateuse1_backend_name",
                           "torch._C._get_accelerator",
                           "torch._C._get_nested_int",
                           "torch._C._are_functorch_transforms_active",
                           "torch._C._len_torch_dispatch_stack",
                           "torch._C._cuda_getDeviceCount",
                           "torch._C._has_cuda",
                           "torch.is_deterministic_algorithms_warn_only_enabled",
                           "torch._C._is_flash_attention_available",
                           "torch._C._dispatch_isTensorSubclassLike"})
    table.addPure(pure);
}

}  // namespace cdynamo
