#include <cmath>

#include "shapes/rules.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// dtype, device and the other keywords that every factory takes.
struct Options {
  DType dtype = DType::Undefined;
  DeviceTag device;
  bool hasDevice = false;
};

bool readOptions(Call& call, Options& out) {
  out.dtype = call.dtype(99, "dtype", DType::Undefined);
  if (const Arg* device = call.arg(99, "device"); device != nullptr && !isNone(*device)) {
    if (device->kind != Arg::Constant || !deviceFrom(device->object.get(), out.device)) return false;
    bool known = out.device.type == 0 ? out.device.index < 0 : out.device.index >= 0;
    if (!known || out.device.type > 1) return false;
    out.hasDevice = true;
  }
  if (const Arg* layout = call.arg(99, "layout"); layout != nullptr && !isNone(*layout))
    if (layout->kind != Arg::Constant || !isStridedLayout(layout->object.get())) return false;
  if (call.boolean(99, "requires_grad", false) || call.boolean(99, "pin_memory", false)) return false;
  return out.dtype == DType::Undefined || !isComplex(out.dtype);
}

DType orDefault(DType dtype) { return dtype == DType::Undefined ? defaultDType() : dtype; }

bool allPositive(const Dims& sizes) {
  for (int64_t size : sizes)
    if (size < 0) return false;
  return true;
}

// zeros, ones, empty, rand, randn: (*size)
bool filled(Call& call, ResultMeta& out) {
  Options options;
  Dims sizes = call.restInts(0, "size");
  bool random = call.rule.detail;
  if (random) call.ignore(99, "generator");
  if (!readOptions(call, options) || !allPositive(sizes)) return false;
  DType dtype = orDefault(options.dtype);
  return (!random || isFloating(dtype)) && giveTensor(out, dtype, options.device, sizes);
}

DType fillType(const Scalar& value, DType wanted) {
  if (wanted != DType::Undefined) return wanted;
  return value.dtype();
}

bool full(Call& call, ResultMeta& out) {
  Options options;
  Dims sizes = call.ints(0, "size");
  Scalar value = call.scalar(1, "fill_value");
  if (!readOptions(call, options) || value.kind == Scalar::Absent || !allPositive(sizes)) return false;
  return giveTensor(out, fillType(value, options.dtype), options.device, sizes);
}

// zeros_like, ones_like, empty_like, rand_like, randn_like, full_like
bool like(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Options options;
  Dims strides;
  if (call.rule.detail == 2 && call.scalar(1, "fill_value").kind == Scalar::Absent) return false;
  if (!readOptions(call, options) || !stridesFor(call.memoryFormat(99, "memory_format", MemoryFormat::Preserve), x, strides)) return false;
  DType dtype = options.dtype == DType::Undefined ? x.dtype : options.dtype;
  if (call.rule.detail == 1 && !isFloating(dtype)) return false;
  return giveTensor(out, dtype, options.hasDevice ? options.device : x.device, x.sizes, strides);
}

// new_zeros, new_ones, new_empty, new_full
bool newLike(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  Options options;
  bool isFull = call.rule.detail;
  Dims sizes = isFull ? call.ints(1, "size") : call.restInts(1, "size");
  if (isFull && call.scalar(2, "fill_value").kind == Scalar::Absent) return false;
  if (!readOptions(call, options) || !allPositive(sizes)) return false;
  return giveTensor(out, options.dtype == DType::Undefined ? x.dtype : options.dtype, options.hasDevice ? options.device : x.device, sizes);
}

bool arange(Call& call, ResultMeta& out) {
  Options options;
  Scalar start, end, step;
  if (call.positional() >= 2) {
    start = call.scalar(0, "start");
    end = call.scalar(1, "end");
    step = call.scalar(2, "step");
  } else if (call.has(99, "start")) {
    start = call.scalar(99, "start");
    end = call.scalar(99, "end");
    step = call.scalar(99, "step");
  } else {
    end = call.scalar(0, "end");
    step = call.scalar(99, "step");
  }
  if (!readOptions(call, options) || end.kind == Scalar::Absent || start.kind == Scalar::Bool || end.kind == Scalar::Bool) return false;
  if (step.kind == Scalar::Absent) step = {Scalar::Int, 1, 1.0};
  bool floats = start.kind == Scalar::Float || end.kind == Scalar::Float || step.kind == Scalar::Float;
  DType dtype = options.dtype != DType::Undefined ? options.dtype : (floats ? defaultDType() : DType::Int64);
  if (step.f == 0 || (end.f - start.f) / step.f < 0 || (floats && isIntegral(dtype, true)) || dtype == DType::Bool) return false;
  int64_t count;
  if (!floats) {
    int64_t span = end.i - start.i, sign = step.i > 0 ? 1 : -1;
    count = (span + step.i - sign) / step.i;
  } else {
    count = static_cast<int64_t>(std::ceil((end.f - start.f) / step.f));
  }
  return giveTensor(out, dtype, options.device, {count});
}

bool linspace(Call& call, ResultMeta& out) {
  Options options;
  Scalar start = call.scalar(0, "start"), end = call.scalar(1, "end");
  int64_t steps = call.integer(2, "steps", -1);
  if (!readOptions(call, options) || steps < 0 || start.kind == Scalar::Absent || end.kind == Scalar::Absent) return false;
  return giveTensor(out, orDefault(options.dtype), options.device, {steps});
}

bool eye(Call& call, ResultMeta& out) {
  Options options;
  int64_t rows = call.integer(0, "n", -1), columns = call.integer(1, "m", rows);
  if (!readOptions(call, options) || rows < 0 || columns < 0) return false;
  return giveTensor(out, orDefault(options.dtype), options.device, {rows, columns});
}

bool randint(Call& call, ResultMeta& out) {
  Options options;
  int64_t low = 0, high = 0, ignored;
  unsigned sizeAt = 2;
  if (call.positional() >= 2 && readInt(*call.arg(1, ""), ignored)) {
    low = call.integer(0, "low", 0);
    high = call.integer(1, "high", 0);
  } else if (call.has(99, "low")) {
    low = call.integer(99, "low", 0);
    high = call.integer(99, "high", 0);
  } else {
    high = call.integer(0, "high", 0);
    sizeAt = 1;
  }
  const Arg* size = call.arg(sizeAt, "size");
  Dims sizes;
  call.ignore(99, "generator");
  if (size == nullptr || !readInts(*size, sizes) || !readOptions(call, options) || low >= high || !allPositive(sizes)) return false;
  return giveTensor(out, options.dtype == DType::Undefined ? DType::Int64 : options.dtype, options.device, sizes);
}

bool randperm(Call& call, ResultMeta& out) {
  Options options;
  int64_t count = call.integer(0, "n", -1);
  call.ignore(99, "generator");
  if (!readOptions(call, options) || count < 0 || options.dtype != DType::Undefined) return false;
  return giveTensor(out, DType::Int64, options.device, {count});
}

// The shape of nested lists of numbers, and what kinds of numbers they hold.
bool nested(PyObject* data, uint32_t depth, Dims& sizes, DType& dtype) {
  bool list = PyList_CheckExact(data), tuple = PyTuple_CheckExact(data);
  if (!list && !tuple) {
    if (depth != sizes.size()) return false;
    DType own = PyBool_Check(data)         ? DType::Bool
                : PyLong_CheckExact(data)  ? DType::Int64
                : PyFloat_CheckExact(data) ? defaultDType()
                                           : DType::Undefined;
    if (own == DType::Undefined) return false;
    dtype = promoteTypes(dtype, own);
    return true;
  }
  Py_ssize_t count = list ? PyList_GET_SIZE(data) : PyTuple_GET_SIZE(data);
  if (count == 0) return false;
  if (depth == sizes.size()) {
    if (dtype != DType::Undefined) return false;
    sizes.push_back(count);
  } else if (sizes[depth] != count) {
    return false;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if (!nested(list ? PyList_GET_ITEM(data, i) : PyTuple_GET_ITEM(data, i), depth + 1, sizes, dtype)) return false;
  return true;
}

// torch.tensor(data), x.new_tensor(data) for numbers and nested lists of numbers
bool tensorOfData(Call& call, ResultMeta& out) {
  bool method = call.rule.detail;
  const TensorMeta* x = method ? &call.tensor(0) : nullptr;
  const Arg* data = call.arg(method ? 1 : 0, "data");
  Options options;
  if (data == nullptr || data->kind != Arg::Constant || !readOptions(call, options)) return false;
  Dims sizes;
  DType dtype = DType::Undefined;
  if (!nested(data->object.get(), 0, sizes, dtype)) return false;
  if (method) dtype = x->dtype;
  if (options.dtype != DType::Undefined) dtype = options.dtype;
  return giveTensor(out, dtype, method && !options.hasDevice ? x->device : options.device, sizes);
}

}  // namespace

void addFactoryRules(RuleTable& table) {
  constexpr uint16_t flags = NotDifferentiable | AutocastSafe | IsFactory;
  table.add({"zeros", "ones", "empty"}, filled, InTorch, flags, 0);
  table.add({"rand", "randn"}, filled, InTorch, flags, 1);
  table.add({"full"}, full, InTorch, flags);
  table.add({"zeros_like", "ones_like", "empty_like"}, like, InTorch, flags, 0);
  table.add({"rand_like", "randn_like"}, like, InTorch, flags, 1);
  table.add({"full_like"}, like, InTorch, flags, 2);
  table.add({"new_zeros", "new_ones", "new_empty"}, newLike, AsMethod, flags, 0);
  table.add({"new_full"}, newLike, AsMethod, flags, 1);
  table.add({"arange"}, arange, InTorch, flags);
  table.add({"linspace"}, linspace, InTorch, flags);
  table.add({"eye"}, eye, InTorch, flags);
  table.add({"randint"}, randint, InTorch, flags);
  table.add({"randperm"}, randperm, InTorch, flags);
  table.add({"tensor"}, tensorOfData, InTorch, flags, 0);
  table.add({"new_tensor"}, tensorOfData, AsMethod, flags, 1);
}

}  // namespace cdynamo
