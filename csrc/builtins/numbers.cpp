// Reading tensors as Python numbers, and checks on such numbers.
#include "base/lookup.h"
#include "builtins/table.h"
#include "interp/arrays.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// Longer lists are made by .tolist() itself, after a break: each item is a node of its own.
constexpr int64_t kLongestList = 256;

TensorValue* tensorArgument(Trace& t, CallArgs& a, BreakReason reason, const char* what) {
  if (a.args.size() != 1 || !a.kwargs.empty() || !isTensor(a.args[0]) || !t.options.captureScalars) unsupported(reason, what);
  return as<TensorValue>(a.args[0]);
}

Value* tensorItem(Trace& t, CallArgs& a) { return itemOf(t, tensorArgument(t, a, BreakReason::ScalarRead, ".item()")); }

template <PyTypeObject* type>
Value* tensorAs(Trace& t, CallArgs& a) {
  TensorValue* tensor = tensorArgument(t, a, BreakReason::ScalarRead,
                                       type == &PyLong_Type    ? "int() of a tensor"
                                       : type == &PyFloat_Type ? "float() of a tensor"
                                                               : "bool() of a tensor");
  return convertNumber(t, as<NumberValue>(itemOf(t, tensor)), type);
}

Value* listOf(Trace& t, TensorValue* tensor) {
  if (tensor->meta.dim() == 0) return itemOf(t, tensor);
  std::vector<Value*> items;
  for (int64_t i = 0; i < tensor->meta.sizes[0]; i++) items.push_back(listOf(t, as<TensorValue>(getItem(t, tensor, t.integer(i)))));
  return t.list(std::move(items));
}

Value* tensorToList(Trace& t, CallArgs& a) {
  TensorValue* tensor = tensorArgument(t, a, BreakReason::TensorToList, ".tolist()");
  t.observe(tensor);
  if (tensor->meta.numel() > kLongestList || tensor->type != tensorType())
    unsupported(BreakReason::TensorToList, ".tolist() of a large tensor, or of a subclass");
  return listOf(t, tensor);
}

// ---- numpy -----------------------------------------------------------------------------------------------------------

Value* tensorToNumpy(Trace& t, CallArgs& a) {
  if (a.args.size() != 1 || !a.kwargs.empty() || !isTensor(a.args[0]) || !ndarrayType()) unsupported(BreakReason::TensorToNumpy, ".numpy()");
  return arrayOf(t, as<TensorValue>(a.args[0]));
}

// torch.from_numpy, as_tensor and tensor of an array: a tensor on its memory, or with a copy.
template <bool copies>
Value* tensorOfArray(Trace& t, CallArgs& a, const char* name) {
  auto* array = as<ArrayValue>(a.args[0]);
  t.typeOf(array);
  if (array->type != ndarrayType() || a.args.size() != 1)
    unsupported(BreakReason::NumpyCall, std::string("torch.") + name + " of a NumPy scalar, or with more arguments");
  Value* dtype = a.takeKeyword("dtype");
  if (!a.kwargs.empty()) unsupported(BreakReason::NumpyCall, std::string("torch.") + name + " of an array with a device, or another keyword");
  static PyObject* method = PyUnicode_InternFromString(copies ? "clone" : "detach");
  static PyObject* convert = PyUnicode_InternFromString("to");
  Value* made = recordOp(t, method, true, {{array->tensor}, {}});
  return dtype && !isReal(dtype, Py_None) ? recordOp(t, convert, true, {{made, dtype}, {}}) : made;
}

Value* fromNumpy(Trace& t, CallArgs& a) {
  if (a.args.empty() || !isArray(a.args[0])) unsupported(BreakReason::NumpyCall, "torch.from_numpy");
  return tensorOfArray<false>(t, a, "from_numpy");
}
Value* asTensor(Trace& t, CallArgs& a) {
  if (!a.args.empty() && isArray(a.args[0])) return tensorOfArray<false>(t, a, "as_tensor");
  return recordOp(t, importedObject("torch", "as_tensor"), false, a);
}
Value* newTensor(Trace& t, CallArgs& a) {
  if (!a.args.empty() && isArray(a.args[0])) return tensorOfArray<true>(t, a, "tensor");
  return recordOp(t, importedObject("torch", "tensor"), false, a);
}

// numpy.finfo and iinfo: made by NumPy, which keeps them.
template <bool integers>
Value* limitsOf(Trace& t, CallArgs& a) {
  PyObject* type = importedObject("numpy", integers ? "iinfo" : "finfo");
  PyObject* dtype = a.args.size() == 1 && a.kwargs.empty() ? t.constant(a.args[0]) : nullptr;
  if (!dtype) unsupported(BreakReason::NumpyCall, "numpy.finfo or iinfo of what is no constant");
  PyObject* made = t.keep(native(t, PyObject_CallOneArg(type, dtype)));
  return t.wrap(made, t.sources.owned(made));
}

// ---- torch._check ----------------------------------------------------------------------------------------------------

// The message of a check, where it is text that is known now; null where there is none.
Value* messageOf(Trace& t, Value* message) {
  if (!message || isReal(message, Py_None)) return nullptr;
  size_t nodes = t.graph.position(), writes = t.mutated().size(), effects = t.effects().size(), draws = t.earlyCalls().size();
  Value* text = str(t, call(t, message, {}));
  bool quiet = nodes == t.graph.position() && writes == t.mutated().size() && effects == t.effects().size() && draws == t.earlyCalls().size();
  if (!quiet || !t.isConstant(text)) unsupported(BreakReason::NumberValue, "a message of torch._check that needs more than constants");
  return text;
}

// Where the check fails, the graph raises: nothing that came before may be missed, and no handler may wait for it.
bool maySeeFailure(const Trace& t) {
  if (t.options.fullgraph) return false;
  return isInsideTry(t) || !t.mutated().empty() || !t.effects().empty() || !t.earlyCalls().empty() || !t.settings.changed().empty();
}

void recordCheck(Trace& t, PyObject* target, const std::vector<Value*>& operands) {
  std::vector<Arg> args;
  for (Value* v : operands) args.push_back(operandOf(t, v));
  t.graph.add(NodeOp::CallFunction, ObjectRef::share(target), std::move(args), {})->place = t.place;
}

PyObject* assertOperator() {
  static PyObject* op =
      checked(PyObject_GetAttrString(checked(PyObject_GetAttrString(importedObject("torch.ops", "aten"), "_assert_scalar")).get(), "default"))
          .release();
  return op;
}

constexpr const char* kChecks[] = {"_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented"};

template <size_t which>
Value* check(Trace& t, CallArgs& a) {
  PyObject* function = importedObject("torch", kChecks[which]);
  Value* condition = a.args.empty() ? a.keyword("cond") : a.args[0];
  Value* message = a.args.size() > 1 ? a.args[1] : a.keyword("message");
  if (!condition || !isNumber(condition) || t.typeOf(condition) != &PyBool_Type) return inlineFunction(t, pinnedValue(t, function), a);
  if (maySeeFailure(t)) t.constant(condition);
  Value* text = messageOf(t, message);
  if (text)
    recordCheck(t, importedObject("cdynamo.polyfills", "check_with_text"), {t.string(kChecks[which]), condition, text});
  else
    recordCheck(t, function, {condition});
  // Backends that trace the graph take a check as a fact about the number. This operation they keep.
  recordCheck(t, assertOperator(), {condition, text ? text : t.string("Runtime assertion failed")});
  return t.none();
}

template <size_t... which>
void addChecks(BuiltinTable& table, std::index_sequence<which...>) {
  (table.add((std::string("torch.") + kChecks[which]).c_str(), check<which>), ...);
}

}  // namespace

void addNumberBuiltins(BuiltinTable& table) {
  table.addType(tensorType(), "item", tensorItem);
  table.addType(tensorType(), "tolist", tensorToList);
  table.addType(tensorType(), "__int__", tensorAs<&PyLong_Type>);
  table.addType(tensorType(), "__float__", tensorAs<&PyFloat_Type>);
  table.addType(tensorType(), "__bool__", tensorAs<&PyBool_Type>);
  table.addType(tensorType(), "numpy", tensorToNumpy);
  table.add("torch.from_numpy", fromNumpy);
  table.add("torch.as_tensor", asTensor);
  table.add("torch.tensor", newTensor);
  table.add("numpy.finfo", limitsOf<false>);
  table.add("numpy.iinfo", limitsOf<true>);
  for (const char* name : {"dtype", "issubdtype", "promote_types", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                           "float16", "float32", "float64", "complex64", "complex128"})
    table.addPure((std::string("numpy.") + name).c_str());
  for (const char* method : {"item", "tolist", "astype", "round"}) table.addPure((std::string("numpy.generic.") + method).c_str());
  addChecks(table, std::make_index_sequence<std::size(kChecks)>());
}

}  // namespace cdynamo
