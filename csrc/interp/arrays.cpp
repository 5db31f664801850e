#include "interp/arrays.h"

#include <functional>

#include "base/lookup.h"
#include "interp/intrinsics.h"
#include "shapes/infer.h"
#include "shapes/layout.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// cdynamo._numpy.table(): by callable, by attribute, by operator.
enum Table { Callables, Attributes, Operators };

// Borrowed; null where it is not known.
PyObject* callOf(Table which, PyObject* key) {
  static PyObject* tables = checked(PyObject_CallNoArgs(importedObject("cdynamo._numpy", "table"))).release();
  PyObject* found = PyDict_GetItemWithError(PyTuple_GET_ITEM(tables, which), key);
  if (!found) PyErr_Clear();
  return found;
}

void checkSetting() {
  ObjectRef on = checked(PyObject_GetAttrString(importedObject("cdynamo._config", "config"), "trace_numpy"));
  if (PyObject_IsTrue(on.get()) != 1) unsupported(BreakReason::NumpyCall, "NumPy with trace_numpy=False");
}

// Whether an array, or what holds one, is among the arguments.
bool hasArray(Value* v) {
  if (isArray(v)) return true;
  if (v->kind == Kind::List && as<ListValue>(v)->loaded)
    for (Value* item : as<ListValue>(v)->items)
      if (hasArray(item)) return true;
  if (v->kind == Kind::Tuple && as<TupleValue>(v)->loaded)
    for (Value* item : as<TupleValue>(v)->items)
      if (hasArray(item)) return true;
  return false;
}

// Classes and dtypes are named by text: graphs can be written down as code.
ObjectRef dtypeName(PyObject* object) {
  ObjectRef dtype = ObjectRef::steal(PyObject_CallOneArg(importedObject("numpy", "dtype"), object));
  if (!dtype) {
    PyErr_Clear();
    unsupported(BreakReason::NumpyCall, "a class that is no dtype");
  }
  return checked(PyObject_GetAttrString(dtype.get(), "name"));
}

Value* record(Trace& t, PyObject* call, const CallArgs& args);

// A NumPy scalar that is a constant, as a node: an array of no dimension made of its number.
Arg scalarOperand(Trace& t, PyObject* scalar) {
  static PyObject* dtypeKeyword = PyUnicode_InternFromString("dtype");
  PyObject* call = callOf(Callables, importedObject("numpy", "array"));
  CD_CHECK(call != nullptr, "numpy.array is not known");
  Value* number = t.real(checked(PyObject_CallMethod(scalar, "item", nullptr)));
  auto* array = as<ArrayValue>(record(t, call, {{number}, {{dtypeKeyword, t.real(dtypeName(reinterpret_cast<PyObject*>(Py_TYPE(scalar))))}}}));
  array->tensor->node->result.object = ObjectRef::share(reinterpret_cast<PyObject*>(Py_TYPE(scalar)));
  return operandOf(t, array->tensor);
}

Arg arrayOperand(Trace& t, Value* v) {
  Arg arg;
  if (isArray(v)) return operandOf(t, as<ArrayValue>(v)->tensor);
  if (v->kind == Kind::List || (v->kind == Kind::Tuple && as<TupleValue>(v)->type == &PyTuple_Type)) {
    arg.kind = v->kind == Kind::List ? Arg::List : Arg::Tuple;
    for (Value* item : itemsOf(t, v)) arg.items.push_back(arrayOperand(t, item));
    return arg;
  }
  if (v->kind == Kind::Slice) {
    auto* s = as<SliceValue>(v);
    arg.kind = Arg::Slice;
    for (Value* part : {s->start, s->stop, s->step}) arg.items.push_back(arrayOperand(t, part));
    return arg;
  }
  PyObject* c = isTensor(v) || isNumber(v) ? nullptr : t.constant(v);
  if (!c) unsupported(BreakReason::NumpyCall, "a NumPy operation on " + describe(v));
  PyTypeObject* type = Py_TYPE(c);
  if (isNumpyScalarType(type)) return scalarOperand(t, c);
  if (PyType_Check(c) || PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(importedObject("numpy", "dtype")))) {
    arg.object = dtypeName(c);
  } else {
    bool plain = c == Py_None || c == Py_Ellipsis || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
                 type == &PyComplex_Type || type == &PyUnicode_Type || type == &PyRange_Type;
    if (!plain && !PyTuple_Check(c) && !PySlice_Check(c)) unsupported(BreakReason::NumpyCall, "a NumPy operation on " + describe(v));
    arg.object = ObjectRef::share(c);
  }
  return arg;
}

void collectTensors(Value* v, std::vector<TensorValue*>& out) {
  if (isArray(v)) out.push_back(as<ArrayValue>(v)->tensor);
  if (v->kind == Kind::List)
    for (Value* item : as<ListValue>(v)->items) collectTensors(item, out);
  if (v->kind == Kind::Tuple)
    for (Value* item : as<TupleValue>(v)->items) collectTensors(item, out);
}

ArrayValue* makeArray(Trace& t, TensorValue* tensor, PyTypeObject* type) {
  auto* array = t.make<ArrayValue>(tensor);
  array->type = type;
  t.keep(ObjectRef::share(type));
  return array;
}

// The value of a result; `classes` has (class, whether it shares an operand's memory) for each array in it, from `at` on.
Value* arrayValueOf(Trace& t, Node* node, PyObject* classes, Py_ssize_t& at, TensorValue* base) {
  if (node->result.kind == ResultMeta::None) return t.none();
  if (node->result.kind == ResultMeta::Tensor) {
    CD_CHECK(at < PyTuple_GET_SIZE(classes), "an array without a class");
    PyObject* leaf = PyTuple_GET_ITEM(classes, at++);
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(leaf, 0));
    bool shares = PyTuple_GET_ITEM(leaf, 1) == Py_True, scalar = type != ndarrayType();
    auto* tensor = t.make<TensorValue>();
    tensor->node = node;
    tensor->meta = node->result.tensor;
    tensor->type = tensorType();
    tensor->observed = true;
    if (shares && scalar) {
      static PyObject* clone = PyUnicode_InternFromString("clone");
      tensor = as<TensorValue>(recordOp(t, clone, true, {{tensor}, {}}));
    } else if (shares && base) {
      tensor->base = base;
      t.journal.set(base->viewed, true);
    }
    if (scalar) tensor->node->result.object = ObjectRef::share(reinterpret_cast<PyObject*>(type));
    return makeArray(t, tensor, type);
  }
  static PyObject* getitem = importedObject("operator", "getitem");
  std::vector<Value*> items;
  for (size_t i = 0; i < node->result.items.size(); i++) {
    std::vector<Arg> args(2);
    args[0].kind = Arg::NodeRef;
    args[0].node = node;
    args[1].object = checked(PyLong_FromSize_t(i));
    Node* item = t.graph.add(NodeOp::CallFunction, ObjectRef::share(getitem), std::move(args), {});
    item->result = node->result.items[i];
    item->place = t.place;
    items.push_back(arrayValueOf(t, item, classes, at, base));
  }
  if (node->result.kind == ResultMeta::List) return t.list(std::move(items));
  CD_CHECK(node->result.kind == ResultMeta::Tuple, "an unknown result of a NumPy operation");
  return t.tuple(std::move(items));
}

Value* record(Trace& t, PyObject* call, const CallArgs& args) {
  checkSetting();
  std::vector<Arg> operands;
  for (Value* v : args.args) operands.push_back(arrayOperand(t, v));
  std::vector<std::pair<ObjectRef, Arg>> keywords;
  for (auto& [name, v] : args.kwargs) {
    if (PyUnicode_CompareWithASCIIString(name, "out") == 0) unsupported(BreakReason::NumpyCall, "out= of a NumPy operation");
    keywords.emplace_back(ObjectRef::share(name), arrayOperand(t, v));
  }
  ResultMeta result;
  ObjectRef classes;
  try {
    result = inferArrays({call, false, operands, keywords, false}, classes);
  } catch (ShapeError& error) {
    throw Raised{t.real(error.exception)};
  } catch (ShapeUnknown& unknown) {
    ObjectRef name = checked(PyObject_GetAttrString(call, "__name__"));
    unsupported(BreakReason::NumpyCall, std::string(PyUnicode_AsUTF8(name.get())) + ": " + unknown.reason);
  }
  std::vector<TensorValue*> tensors;
  for (Value* v : args.args) collectTensors(v, tensors);
  for (auto& [name, v] : args.kwargs) collectTensors(v, tensors);
  Node* node = t.graph.add(NodeOp::CallFunction, ObjectRef::share(call), std::move(operands), std::move(keywords));
  node->place = t.place;
  node->result = std::move(result);
  Py_ssize_t at = 0;
  return arrayValueOf(t, node, classes.get(), at, tensors.empty() ? nullptr : tensors[0]);
}

// np.sqrt(2.0), np.prod(x.shape): made by NumPy of constants, a scalar or a small array. Null where an argument is none.
Value* fold(Trace& t, PyObject* callable, const CallArgs& args) {
  auto constantOf = [&](Value* v) -> ObjectRef {
    bool plain = isReal(v) || v->kind == Kind::List || v->kind == Kind::Tuple;
    return plain ? snapshot(t, v) : ObjectRef();
  };
  ObjectRef values = checked(PyTuple_New(static_cast<Py_ssize_t>(args.args.size()))), keywords = checked(PyDict_New());
  for (size_t i = 0; i < args.args.size(); i++) {
    ObjectRef c = constantOf(args.args[i]);
    if (!c) return nullptr;
    PyTuple_SET_ITEM(values.get(), static_cast<Py_ssize_t>(i), c.release());
  }
  for (auto& [name, v] : args.kwargs) {
    ObjectRef c = constantOf(v);
    if (!c) return nullptr;
    checkedStatus(PyDict_SetItem(keywords.get(), name, c.get()));
  }
  PyObject* folded = importedObject("cdynamo._numpy", "fold");
  ObjectRef result = checked(PyObject_CallFunctionObjArgs(folded, callable, values.get(), keywords.get(), nullptr));
  if (isNumpyScalarType(Py_TYPE(result.get()))) return t.real(std::move(result));
  if (!PyTuple_Check(result.get())) return nullptr;
  static PyObject* dtypeKeyword = PyUnicode_InternFromString("dtype");
  PyObject* call = callOf(Callables, importedObject("numpy", "array"));
  CD_CHECK(call != nullptr, "numpy.array is not known");
  return record(t, call, {{t.realShared(PyTuple_GET_ITEM(result.get(), 0))}, {{dtypeKeyword, t.realShared(PyTuple_GET_ITEM(result.get(), 1))}}});
}

}  // namespace

Value* callNumpy(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known) {
  known = false;
  if (!ndarrayType()) return nullptr;
  // The table holds a few kinds of objects; it is not asked about others, whose hash may be Python code.
  PyTypeObject* kind = Py_TYPE(callable);
  bool asked = kind == &PyCFunction_Type || kind == &PyFunction_Type || kind == &PyMethodDescr_Type ||
               kind == reinterpret_cast<PyTypeObject*>(importedObject("numpy", "ufunc")) || kind == Py_TYPE(importedObject("numpy", "sum"));
  PyObject* call = asked ? callOf(Callables, callable) : nullptr;
  if (!call) return nullptr;
  bool arrays = false;
  for (Value* v : args.args) arrays = arrays || hasArray(v);
  for (auto& [name, v] : args.kwargs) arrays = arrays || hasArray(v);
  ObjectRef makes = checked(PyObject_GetAttrString(call, "makes"));
  bool linspace = callable == importedObject("numpy", "linspace");  // torch's rounds otherwise
  Value* folded = !arrays && (makes.get() != Py_True || linspace) ? fold(t, callable, args) : nullptr;
  if (!arrays && makes.get() != Py_True && !folded) return nullptr;
  known = true;
  if (callableValue && callableValue->source) t.identity(callableValue);
  return folded ? folded : record(t, call, args);
}

Value* arrayOf(Trace& t, TensorValue* tensor) {
  checkSetting();
  t.observe(tensor);
  const TensorMeta& m = tensor->meta;
  bool plain = m.device.type == 0 && !m.requiresGrad && !m.isConj && !m.isNeg && m.layout == 0 && m.dtype != DType::BFloat16;
  if (!plain || tensor->type != tensorType() || t.vmapLevel != 0) unsupported(BreakReason::TensorToNumpy, ".numpy() of a tensor that is not plain");
  return makeArray(t, tensor, ndarrayType());
}

Py_ssize_t arrayLength(ArrayValue* array) {
  if (array->tensor->meta.dim() == 0) unsupported(BreakReason::NumpyCall, "the length of a NumPy scalar");
  return array->tensor->meta.sizes[0];
}

Value* arrayAttr(Trace& t, ArrayValue* array, PyObject* name) {
  t.observe(array->tensor);
  t.typeOf(array);
  const TensorMeta& m = array->tensor->meta;
  auto is = [&](const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; };
  if (is("ndim")) return t.integer(m.dim());
  if (is("size")) return t.integer(m.numel());
  if (is("itemsize")) return t.integer(itemSize(m.dtype));
  if (is("nbytes")) return t.integer(m.numel() * itemSize(m.dtype));
  if (is("__class__")) return t.wrap(reinterpret_cast<PyObject*>(array->type), t.sources.pinned(reinterpret_cast<PyObject*>(array->type)));
  if (is("shape")) {
    std::vector<Value*> sizes;
    for (int64_t n : m.sizes) sizes.push_back(t.integer(n));
    return t.tuple(std::move(sizes));
  }
  if (is("dtype")) {
    ObjectRef torchs = ObjectRef::steal(dtypeObject(m.dtype));
    return t.real(checked(PyObject_CallOneArg(importedObject("cdynamo._numpy", "dtype_of"), torchs.get())));
  }
  if (PyObject* call = callOf(Attributes, name)) return record(t, call, {{array}, {}});
  PyObject* method = PyDict_GetItemWithError(ndarrayType()->tp_dict, name);
  if (method && callOf(Callables, method)) return t.make<BoundMethodValue>(t.realShared(method), array);
  PyErr_Clear();
  const char* text = PyUnicode_AsUTF8(name);
  unsupported(BreakReason::NumpyCall, std::string("attribute '") + (text ? text : "?") + "' of a NumPy array");
}

namespace {

// NumPy reads what overlaps with the target before it writes; torch refuses to.
void copyOverlaps(Trace& t, std::vector<Value*>& args) {
  static PyObject* clone = PyUnicode_InternFromString("clone");
  TensorValue* target = as<ArrayValue>(args[0])->tensor;
  for (size_t i = 1; i < args.size(); i++) {
    if (!isArray(args[i]) || as<ArrayValue>(args[i])->tensor == target || rootOf(as<ArrayValue>(args[i])->tensor) != rootOf(target)) continue;
    auto* copy = as<TensorValue>(recordOp(t, clone, true, {{as<ArrayValue>(args[i])->tensor}, {}}));
    args[i] = makeArray(t, copy, as<ArrayValue>(args[i])->type);
  }
}

}  // namespace

Value* arrayOperator(Trace& t, const std::string& name, std::vector<Value*> args) {
  if ((name == "getitem" || name == "setitem") && isReal(args[1]) && isNumpyScalarType(Py_TYPE(realObject(args[1]))))
    args[1] = t.real(checked(PyObject_CallMethod(t.constant(args[1]), "item", nullptr)));
  bool writes = name == "setitem" || (name[0] == 'i' && name != "invert");
  bool scalar = isArray(args[0]) && as<ArrayValue>(args[0])->type != ndarrayType();
  ObjectRef key = checked(PyUnicode_FromString(writes && scalar && name != "setitem" ? name.c_str() + 1 : name.c_str()));
  PyObject* call = callOf(Operators, key.get());
  if (!call || (scalar && name == "setitem")) unsupported(BreakReason::NumpyCall, "operator." + name + " on a NumPy array");
  Value* self = args[0];
  if (writes && !scalar && isArray(self)) {
    t.noteTensorWrite(as<ArrayValue>(self)->tensor);
    copyOverlaps(t, args);
    record(t, call, {std::move(args), {}});
    return self;
  }
  return record(t, call, {std::move(args), {}});
}

}  // namespace cdynamo
