#include "shapes/rules.h"

#include <unordered_map>

#include "torch/bridge.h"

namespace cdynamo {

namespace {

const TensorMeta kNoTensor{};

bool isExactInt(PyObject* object) { return PyLong_CheckExact(object); }

bool intFromObject(PyObject* object, int64_t& out) {
  if (!isExactInt(object)) return false;
  int overflow = 0;
  out = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

// The items of a list or tuple object (torch.Size included), or -1.
Py_ssize_t sequenceLength(PyObject* object) {
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object);
  if (PyList_CheckExact(object)) return PyList_GET_SIZE(object);
  return -1;
}

PyObject* sequenceItem(PyObject* object, Py_ssize_t i) { return PyTuple_Check(object) ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i); }

}  // namespace

DType Scalar::dtype() const {
  switch (kind) {
    case Bool: return DType::Bool;
    case Int: return DType::Int64;
    default: return defaultDType();
  }
}

bool readInt(const Arg& arg, int64_t& out) { return arg.kind == Arg::Constant && arg.object && intFromObject(arg.object.get(), out); }

bool readInts(const Arg& arg, Dims& out) {
  out.clear();
  int64_t value = 0;
  if (arg.kind == Arg::List || arg.kind == Arg::Tuple) {
    for (const Arg& item : arg.items) {
      if (!readInt(item, value)) return false;
      out.push_back(value);
    }
    return true;
  }
  if (arg.kind != Arg::Constant || !arg.object) return false;
  Py_ssize_t length = sequenceLength(arg.object.get());
  for (Py_ssize_t i = 0; i < length; i++) {
    if (!intFromObject(sequenceItem(arg.object.get(), i), value)) return false;
    out.push_back(value);
  }
  return length >= 0;
}

const TensorMeta* tensorOf(const Arg& arg) {
  if (arg.kind != Arg::NodeRef || arg.node->result.kind != ResultMeta::Tensor) return nullptr;
  return &arg.node->result.tensor;
}

bool isNone(const Arg& arg) { return arg.kind == Arg::Constant && arg.object.get() == Py_None; }

const Arg* Call::arg(unsigned position, const char* name) {
  if (position < op_.args.size()) {
    unsigned from = position;
    if (rule.flags & Reflected && position < 2 && op_.args.size() >= 2) from = 1 - position;
    readPositional_ |= uint64_t{1} << position;
    return &op_.args[from];
  }
  if (op_.kwargs.empty()) return nullptr;
  for (size_t i = 0; i < op_.kwargs.size(); i++) {
    if (PyUnicode_CompareWithASCIIString(op_.kwargs[i].first.get(), name) == 0) {
      readKeywords_ |= uint64_t{1} << i;
      return &op_.kwargs[i].second;
    }
  }
  if (position == 0 && std::string_view(name) == "input") return arg(0, "self");
  return nullptr;
}

bool Call::has(unsigned position, const char* name) {
  uint64_t positional = readPositional_, keywords = readKeywords_;
  const Arg* found = arg(position, name);
  readPositional_ = positional;
  readKeywords_ = keywords;
  return found != nullptr && !isNone(*found);
}

bool Call::allRead() const {
  if (op_.args.size() > 63 || op_.kwargs.size() > 63) return false;
  return readPositional_ == (uint64_t{1} << op_.args.size()) - 1 && readKeywords_ == (uint64_t{1} << op_.kwargs.size()) - 1;
}

const TensorMeta& Call::tensor(unsigned position, const char* name) {
  const Arg* found = arg(position, name);
  const TensorMeta* meta = found != nullptr ? tensorOf(*found) : nullptr;
  if (meta == nullptr) fail();
  return meta != nullptr ? *meta : kNoTensor;
}

const TensorMeta* Call::tensorOrNull(unsigned position, const char* name) {
  const Arg* found = arg(position, name);
  if (found == nullptr || isNone(*found)) return nullptr;
  const TensorMeta* meta = tensorOf(*found);
  if (meta == nullptr) fail();
  return meta;
}

int64_t Call::integer(unsigned position, const char* name, int64_t otherwise) {
  const Arg* found = arg(position, name);
  if (found == nullptr || isNone(*found)) return otherwise;
  int64_t value = otherwise;
  if (!readInt(*found, value)) fail();
  return value;
}

Scalar Call::scalar(unsigned position, const char* name) {
  const Arg* found = arg(position, name);
  Scalar value;
  if (found == nullptr || isNone(*found)) return value;
  PyObject* object = found->kind == Arg::Constant ? found->object.get() : nullptr;
  if (object != nullptr && PyBool_Check(object)) {
    value.kind = Scalar::Bool;
    value.i = object == Py_True;
    value.f = static_cast<double>(value.i);
  } else if (object != nullptr && PyFloat_CheckExact(object)) {
    value.kind = Scalar::Float;
    value.f = PyFloat_AS_DOUBLE(object);
  } else if (object != nullptr && intFromObject(object, value.i)) {
    value.kind = Scalar::Int;
    value.f = static_cast<double>(value.i);
  } else {
    fail();
  }
  return value;
}

double Call::number(unsigned position, const char* name, double otherwise) {
  Scalar value = scalar(position, name);
  return value.kind == Scalar::Absent ? otherwise : value.f;
}

bool Call::boolean(unsigned position, const char* name, bool otherwise) {
  const Arg* found = arg(position, name);
  if (found == nullptr || isNone(*found)) return otherwise;
  if (found->kind != Arg::Constant || !PyBool_Check(found->object.get())) return fail();
  return found->object.get() == Py_True;
}

Operand Call::operand(unsigned position, const char* name) {
  Operand result;
  const Arg* found = arg(position, name);
  if (found == nullptr) return fail(), result;
  result.tensor = tensorOf(*found);
  if (result.tensor == nullptr && found->kind == Arg::NodeRef && found->node->result.kind == ResultMeta::Number) {
    PyObject* type = found->node->result.object.get();
    result.scalar.known = false;
    result.scalar.kind = type == reinterpret_cast<PyObject*>(&PyFloat_Type)  ? Scalar::Float
                         : type == reinterpret_cast<PyObject*>(&PyBool_Type) ? Scalar::Bool
                                                                             : Scalar::Int;
  } else if (result.tensor == nullptr) {
    result.scalar = scalar(position, name);
    if (result.scalar.kind == Scalar::Absent) fail();
  }
  return result;
}

DType Call::dtype(unsigned position, const char* name, DType otherwise) {
  const Arg* found = arg(position, name);
  if (found == nullptr || isNone(*found)) return otherwise;
  DType value = otherwise;
  if (found->kind != Arg::Constant || !dtypeFrom(found->object.get(), value)) fail();
  return value;
}

int8_t Call::memoryFormat(unsigned position, const char* name, int8_t otherwise) {
  const Arg* found = arg(position, name);
  if (found == nullptr || isNone(*found)) return otherwise;
  int8_t value = otherwise;
  if (found->kind != Arg::Constant || !memoryFormatFrom(found->object.get(), value)) fail();
  return value;
}

Dims Call::ints(unsigned position, const char* name, bool* single) {
  Dims values;
  const Arg* found = arg(position, name);
  if (found == nullptr) return fail(), values;
  int64_t value = 0;
  if (readInt(*found, value)) {
    if (single != nullptr) *single = true;
    values.push_back(value);
  } else if (!readInts(*found, values)) {
    fail();
  }
  return values;
}

Dims Call::restInts(unsigned position, const char* name) {
  int64_t value = 0;
  if (position < op_.args.size() && readInt(op_.args[position], value)) {
    Dims values;
    for (size_t i = position; i < op_.args.size(); i++) {
      const Arg* item = arg(static_cast<unsigned>(i), name);
      if (!readInt(*item, value)) fail();
      values.push_back(value);
    }
    return values;
  }
  if (position == op_.args.size() && arg(position, name) == nullptr) return fail(), Dims();
  return ints(position, name);
}

std::vector<const TensorMeta*> Call::tensors(unsigned position, const char* name) {
  std::vector<const TensorMeta*> metas;
  const Arg* found = arg(position, name);
  if (found != nullptr && found->kind == Arg::NodeRef &&
      (found->node->result.kind == ResultMeta::Tuple || found->node->result.kind == ResultMeta::List)) {
    for (const ResultMeta& item : found->node->result.items) {
      if (item.kind != ResultMeta::Tensor) return fail(), metas;
      metas.push_back(&item.tensor);
    }
    return metas;
  }
  if (found == nullptr || (found->kind != Arg::List && found->kind != Arg::Tuple)) return fail(), metas;
  metas.reserve(found->items.size());
  for (const Arg& item : found->items) {
    const TensorMeta* meta = tensorOf(item);
    if (meta == nullptr) return fail(), metas;
    metas.push_back(meta);
  }
  return metas;
}

std::string_view Call::text(unsigned position, const char* name, std::string_view otherwise) {
  const Arg* found = arg(position, name);
  if (found == nullptr || isNone(*found)) return otherwise;
  if (found->kind != Arg::Constant || !PyUnicode_CheckExact(found->object.get())) return fail(), otherwise;
  Py_ssize_t length = 0;
  const char* data = PyUnicode_AsUTF8AndSize(found->object.get(), &length);
  if (data == nullptr) {
    PyErr_Clear();
    return fail(), otherwise;
  }
  return {data, static_cast<size_t>(length)};
}

TensorMeta makeMeta(DType dtype, DeviceTag device, const Dims& sizes) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.device = device;
  meta.sizes = sizes;
  meta.strides = contiguousStrides(sizes);
  return meta;
}

bool giveTensor(ResultMeta& out, DType dtype, DeviceTag device, const Dims& sizes, const Dims& strides) {
  out.kind = ResultMeta::Tensor;
  out.tensor.dtype = dtype;
  out.tensor.device = device;
  out.tensor.sizes = sizes;
  out.tensor.strides = strides;
  return true;
}

bool giveTensor(ResultMeta& out, DType dtype, DeviceTag device, const Dims& sizes) {
  return giveTensor(out, dtype, device, sizes, contiguousStrides(sizes));
}

bool giveView(Call& call, ResultMeta& out, const TensorMeta& base, const Dims& sizes, const Dims& strides, int64_t offset) {
  giveTensor(out, base.dtype, base.device, sizes, strides);
  out.tensor.storageOffset = offset;
  call.aliases = true;
  return true;
}

bool giveSelf(Call& call, ResultMeta& out, const TensorMeta& self) {
  out.kind = ResultMeta::Tensor;
  out.tensor = self;
  call.isSelf = true;
  return true;
}

bool giveNamedTuple(ResultMeta& out, const char* className, std::initializer_list<TensorMeta> items) {
  static auto* known = new std::unordered_map<std::string_view, ObjectRef>;
  ObjectRef& type = (*known)[className];
  if (!type) {
    ObjectRef module = ObjectRef::steal(PyImport_ImportModule("torch.return_types"));
    if (module) type = ObjectRef::steal(PyObject_GetAttrString(module.get(), className));
    if (!type) return PyErr_Clear(), false;
  }
  out.kind = ResultMeta::NamedTuple;
  out.object = type;
  out.items.reserve(items.size());
  for (const TensorMeta& item : items) {
    ResultMeta& made = out.items.emplace_back();
    made.kind = ResultMeta::Tensor;
    made.tensor = item;
  }
  return true;
}

bool sameDevice(const TensorMeta& a, const TensorMeta& b) { return a.device == b.device; }

}  // namespace cdynamo
