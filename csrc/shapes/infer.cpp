#include "shapes/infer.h"

#include <cstring>
#include <string>
#include <unordered_map>

#include "shapes/layout.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// ---- memo -------------------------------------------------------------------------------------------------------------

struct Remembered {
  ResultMeta result;
  ObjectRef target;  // keeps the address in the key from being used again
};

constexpr size_t kMemoLimit = 65536;

std::unordered_map<std::string, Remembered>& memo() {
  static auto* instance = new std::unordered_map<std::string, Remembered>;
  return *instance;
}

// The signature of a call as bytes. Each add... returns false where an operand cannot be part of a signature.
class Signature {
 public:
  std::string bytes;

  template <typename T>
  void raw(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void dims(const Dims& values) {
    raw(values.size());
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  }
  void tensor(const TensorMeta& t) {
    bytes += 'T';
    raw(t.dtype);
    raw(t.device.type);
    raw(t.device.index);
    raw(t.layout);
    raw(static_cast<uint8_t>(t.requiresGrad | t.isLeaf << 1 | t.isInference << 2 | t.isConj << 3 | t.isNeg << 4));
    dims(t.sizes);
    dims(t.strides);
    raw(t.storageOffset);
  }
  bool result(const ResultMeta& r) {
    if (r.kind == ResultMeta::Tensor) return tensor(r.tensor), true;
    if (r.kind == ResultMeta::Number) {
      bytes += 'N';
      raw(r.object.get());
      return true;
    }
    if (r.kind == ResultMeta::Constant || r.kind == ResultMeta::None) return false;
    bytes += 'R';
    raw(r.kind);
    raw(r.items.size());
    for (const ResultMeta& item : r.items)
      if (!result(item)) return false;
    return true;
  }
  bool text(PyObject* object) {
    Py_ssize_t length = 0;
    const char* data = PyUnicode_AsUTF8AndSize(object, &length);
    if (data == nullptr) return PyErr_Clear(), false;
    bytes += 's';
    raw(length);
    bytes.append(data, static_cast<size_t>(length));
    return true;
  }
  bool constant(PyObject* object) {
    if (object == Py_None || object == Py_True || object == Py_False || object == Py_Ellipsis) {
      bytes += 'p';
      raw(object);
      return true;
    }
    if (PyLong_CheckExact(object)) {
      int overflow = 0;
      long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
      bytes += 'i';
      raw(value);
      return overflow == 0;
    }
    if (PyFloat_CheckExact(object)) {
      bytes += 'f';
      raw(PyFloat_AS_DOUBLE(object));
      return true;
    }
    if (PyUnicode_CheckExact(object)) return text(object);
    bool tuple = PyTuple_Check(object);
    if (tuple || PyList_CheckExact(object)) {
      Py_ssize_t length = tuple ? PyTuple_GET_SIZE(object) : PyList_GET_SIZE(object);
      bytes += tuple ? '(' : '[';
      raw(Py_TYPE(object));
      raw(length);
      for (Py_ssize_t i = 0; i < length; i++)
        if (!constant(tuple ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i))) return false;
      return true;
    }
    if (PySlice_Check(object)) {
      auto* slice = reinterpret_cast<PySliceObject*>(object);
      bytes += ':';
      return constant(slice->start) && constant(slice->stop) && constant(slice->step);
    }
    DType dtype;
    DeviceTag device;
    int8_t format;
    if (dtypeFrom(object, dtype)) return bytes += 'd', raw(dtype), true;
    if (deviceFrom(object, device)) return bytes += 'v', raw(device.type), raw(device.index), true;
    if (memoryFormatFrom(object, format)) return bytes += 'm', raw(format), true;
    if (isStridedLayout(object)) return bytes += 'l', true;
    return false;
  }
  bool arg(const Arg& a) {
    if (a.kind == Arg::NodeRef) {
      auto [place, isNew] = seen_.emplace(a.node, seen_.size());
      bytes += 'n';
      raw(place->second);  // the same node twice is not two equal nodes
      return !isNew || result(a.node->result);
    }
    if (a.kind == Arg::Constant) return constant(a.object.get());
    bytes += 'A';
    raw(a.kind);
    raw(a.items.size());
    if (a.object && a.kind == Arg::Dict && !constant(a.object.get())) return false;
    if (a.object && a.kind != Arg::Dict) return false;
    for (const Arg& item : a.items)
      if (!arg(item)) return false;
    return true;
  }
  bool call(const OpCall& op) {
    bytes.reserve(256);
    GlobalState state = captureGlobalState();
    if (state.functionModes != 0 || state.dispatchModes != 0 || state.functionState != 0) return false;
    raw(static_cast<uint8_t>(op.gradEnabled | state.inferenceMode << 1 | state.autocastCpu << 2 | state.autocastCuda << 3 | state.deterministic << 4 |
                             op.isMethod << 5));
    raw(state.autocastCpuDType);
    raw(state.autocastCudaDType);
    raw(state.defaultDType);
    if (op.isMethod) {
      if (!text(op.target)) return false;
    } else {
      raw(op.target);
    }
    raw(op.args.size());
    for (const Arg& a : op.args)
      if (!arg(a)) return false;
    for (const auto& [name, a] : op.kwargs)
      if (!text(name.get()) || !arg(a)) return false;
    return true;
  }

 private:
  std::unordered_map<const Node*, size_t> seen_;
};

// ---- FakeTensor -------------------------------------------------------------------------------------------------------

ObjectRef& fakeInfer() {
  static auto* instance = new ObjectRef;
  return *instance;
}

ObjectRef& fakeModule() {
  static auto* instance = new ObjectRef;
  if (!*instance) *instance = checked(PyImport_ImportModule("cdynamo._fake"));
  return *instance;
}

// Builds the Python operands; tensors become cdynamo._fake.Described, one object per node.
class Describer {
 public:
  ObjectRef arg(const Arg& a) {
    switch (a.kind) {
      case Arg::NodeRef: return node(a.node);
      case Arg::Constant: return constant(a.object.get());
      case Arg::List: {
        ObjectRef list = checked(PyList_New(static_cast<Py_ssize_t>(a.items.size())));
        for (size_t i = 0; i < a.items.size(); i++) PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), arg(a.items[i]).release());
        return list;
      }
      case Arg::Tuple: {
        ObjectRef items = tuple(a.items);
        return a.object ? checked(PyObject_CallObject(a.object.get(), items.get())) : items;
      }
      case Arg::Dict: {
        ObjectRef dict = checked(PyDict_New());
        for (size_t i = 0; i < a.items.size(); i++)
          checkedStatus(PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(a.object.get(), static_cast<Py_ssize_t>(i)), arg(a.items[i]).get()));
        return dict;
      }
      case Arg::Slice: {
        ObjectRef parts = tuple(a.items);
        return checked(PySlice_New(PyTuple_GET_ITEM(parts.get(), 0), PyTuple_GET_ITEM(parts.get(), 1), PyTuple_GET_ITEM(parts.get(), 2)));
      }
    }
    throw EngineError("unknown kind of operand");
  }
  ObjectRef tuple(const std::vector<Arg>& items) {
    ObjectRef result = checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    for (size_t i = 0; i < items.size(); i++) PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), arg(items[i]).release());
    return result;
  }
  // The node whose description `object` is, or null.
  const TensorMeta* metaOf(PyObject* object) const {
    auto found = metas_.find(object);
    return found != metas_.end() ? found->second : nullptr;
  }

 private:
  ObjectRef node(const Node* node) {
    ObjectRef& known = nodes_[node];
    if (!known) known = result(node->result);
    return known;
  }
  ObjectRef constant(PyObject* object) {
    if (!isTensor(object)) return ObjectRef::share(object);
    TensorOddity oddity;
    constants_.push_back(std::make_unique<TensorMeta>());
    if (!readTensorMeta(object, *constants_.back(), &oddity)) throw ShapeUnknown{describeOddity(oddity)};
    return describe(*constants_.back());
  }
  ObjectRef result(const ResultMeta& r) {
    switch (r.kind) {
      case ResultMeta::None: return ObjectRef::share(Py_None);
      case ResultMeta::Constant: return r.object;
      case ResultMeta::Tensor: {
        ObjectRef made = describe(r.tensor);
        if (r.object) checkedStatus(PyObject_SetAttrString(made.get(), "is_scalar", Py_True));
        return made;
      }
      case ResultMeta::Number: {
        ObjectRef made = checked(PyObject_GetAttrString(fakeModule().get(), "Number"));
        return checked(PyObject_CallOneArg(made.get(), r.object.get()));
      }
      default: break;
    }
    bool list = r.kind == ResultMeta::List;
    auto count = static_cast<Py_ssize_t>(r.items.size());
    ObjectRef items = checked(list ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; i++) {
      ObjectRef item = result(r.items[static_cast<size_t>(i)]);
      if (list)
        PyList_SET_ITEM(items.get(), i, item.release());
      else
        PyTuple_SET_ITEM(items.get(), i, item.release());
    }
    return items;
  }
  ObjectRef describe(const TensorMeta& t) {
    ObjectRef meta = checked(makeMetaTensor(t)), device = checked(deviceObject(t.device));
    if (!describedClass_) describedClass_ = checked(PyObject_GetAttrString(fakeModule().get(), "Described"));
    ObjectRef made = checked(PyObject_CallFunction(describedClass_.get(), "OOOOOOO", meta.get(), device.get(), t.requiresGrad ? Py_True : Py_False,
                                                   t.isLeaf ? Py_True : Py_False, t.isInference ? Py_True : Py_False, t.isConj ? Py_True : Py_False,
                                                   t.isNeg ? Py_True : Py_False));
    metas_.emplace(made.get(), &t);
    keep_.push_back(made);
    return made;
  }

  std::unordered_map<const Node*, ObjectRef> nodes_;
  std::unordered_map<PyObject*, const TensorMeta*> metas_;
  std::vector<std::unique_ptr<TensorMeta>> constants_;
  std::vector<ObjectRef> keep_;
  ObjectRef describedClass_;
};

Dims dimsOf(PyObject* tuple) {
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    int64_t value = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (value == -1 && PyErr_Occurred()) throw PythonError{};
    dims.push_back(value);
  }
  return dims;
}

// Reads the description tree of cdynamo._fake: tuples whose first item is a tag.
ResultMeta parse(PyObject* tree, const Describer& describer) {
  CD_CHECK(PyTuple_Check(tree) && PyTuple_GET_SIZE(tree) >= 1, "cdynamo._fake returned no description");
  const char* tag = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tree, 0));
  if (tag == nullptr) throw PythonError{};
  std::string_view kind = tag;
  auto item = [&](Py_ssize_t i) {
    CD_CHECK(i < PyTuple_GET_SIZE(tree), "a description of cdynamo._fake is too short");
    return PyTuple_GET_ITEM(tree, i);
  };
  ResultMeta result;
  if (kind == "none") return result;
  if (kind == "unknown") {
    const char* reason = PyUnicode_AsUTF8(item(1));
    if (reason == nullptr) throw PythonError{};
    throw ShapeUnknown{reason};
  }
  if (kind == "raise") throw ShapeError{ObjectRef::share(item(1))};
  if (kind == "const") {
    result.kind = ResultMeta::Constant;
    result.object = ObjectRef::share(item(1));
    return result;
  }
  if (kind == "number") {
    result.kind = ResultMeta::Number;
    result.object = ObjectRef::share(item(1));
    return result;
  }
  if (kind == "same") {
    const TensorMeta* meta = describer.metaOf(item(1));
    CD_CHECK(meta != nullptr, "cdynamo._fake returned an operand that it was not given");
    result.kind = ResultMeta::Tensor;
    result.tensor = *meta;
    return result;
  }
  if (kind == "tensor") {
    result.kind = ResultMeta::Tensor;
    TensorMeta& t = result.tensor;
    if (!dtypeFrom(item(1), t.dtype)) throw ShapeUnknown{"the result has an uncommon dtype"};
    CD_CHECK(deviceFrom(item(2), t.device), "a description without a device");
    if (!isStridedLayout(item(3))) throw ShapeUnknown{"the result's layout is not strided"};
    t.requiresGrad = item(4) == Py_True;
    t.isLeaf = item(5) == Py_True;
    t.isInference = item(6) == Py_True;
    t.isConj = item(7) == Py_True;
    t.isNeg = item(8) == Py_True;
    t.sizes = dimsOf(item(9));
    t.strides = dimsOf(item(10));
    t.storageOffset = PyLong_AsLongLong(item(11));
    if (PyErr_Occurred()) throw PythonError{};
    return result;
  }
  Py_ssize_t first = 1;
  if (kind == "namedtuple") {
    result.kind = ResultMeta::NamedTuple;
    result.object = ObjectRef::share(item(1));
    first = 2;
  } else if (kind == "dict") {
    result.kind = ResultMeta::Dict;
    result.object = ObjectRef::share(item(1));
    first = 2;
  } else {
    result.kind = kind == "list" ? ResultMeta::List : ResultMeta::Tuple;
  }
  for (Py_ssize_t i = first; i < PyTuple_GET_SIZE(tree); i++) result.items.push_back(parse(item(i), describer));
  return result;
}

}  // namespace

ResultMeta inferByFake(const OpCall& op) {
  if (!fakeInfer()) fakeInfer() = checked(PyObject_GetAttrString(fakeModule().get(), "infer"));
  Describer describer;
  ObjectRef args = describer.tuple(op.args), kwargs = checked(PyDict_New());
  for (const auto& [name, value] : op.kwargs) checkedStatus(PyDict_SetItem(kwargs.get(), name.get(), describer.arg(value).get()));
  ObjectRef tree = checked(PyObject_CallFunction(fakeInfer().get(), "OOOOO", op.target, op.isMethod ? Py_True : Py_False, args.get(), kwargs.get(),
                                                 op.gradEnabled ? Py_True : Py_False));
  return parse(tree.get(), describer);
}

ResultMeta inferArrays(const OpCall& op, ObjectRef& classes) {
  static PyObject* infer = checked(PyObject_GetAttrString(checked(PyImport_ImportModule("cdynamo._numpy")).get(), "infer")).release();
  Describer describer;
  ObjectRef args = describer.tuple(op.args), kwargs = checked(PyDict_New());
  for (const auto& [name, value] : op.kwargs) checkedStatus(PyDict_SetItem(kwargs.get(), name.get(), describer.arg(value).get()));
  ObjectRef answer = checked(PyObject_CallFunctionObjArgs(infer, op.target, args.get(), kwargs.get(), nullptr));
  CD_CHECK(PyTuple_Check(answer.get()) && PyTuple_GET_SIZE(answer.get()) == 2, "cdynamo._numpy returned no description");
  classes = ObjectRef::share(PyTuple_GET_ITEM(answer.get(), 1));
  return parse(PyTuple_GET_ITEM(answer.get(), 0), describer);
}

ResultMeta inferResult(const OpCall& op, InferPath* path) {
  auto took = [&](InferPath which) {
    if (path != nullptr) *path = which;
  };
  ResultMeta result;
  if (inferByRule(op, result)) return took(InferPath::Rule), result;
  Signature signature;
  bool memoizable = signature.call(op);
  if (memoizable) {
    auto known = memo().find(signature.bytes);
    if (known != memo().end()) return took(InferPath::Memo), known->second.result;
  }
  took(InferPath::Fake);
  result = inferByFake(op);
  if (memoizable) {
    if (memo().size() >= kMemoLimit) memo().clear();
    memo().emplace(std::move(signature.bytes), Remembered{result, ObjectRef::share(op.target)});
  }
  return result;
}

void clearInferMemo() { memo().clear(); }

}  // namespace cdynamo
