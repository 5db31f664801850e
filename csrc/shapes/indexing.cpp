#include <algorithm>

#include "shapes/rules.h"

namespace cdynamo {

namespace {

// One item of an index expression.
struct Index {
  enum Kind : uint8_t { Integer, Slice, NewAxis, Ellipsis, Tensor } kind = Integer;
  int64_t value = 0;                    // Integer
  int64_t least = 0, most = 0;          // Tensor made of a list: what it holds
  bool has[3] = {false, false, false};  // Slice: start, stop, step given
  int64_t part[3] = {0, 0, 1};
  TensorMeta tensor;  // Tensor
};

bool sliceParts(const Arg* parts, Index& out) {
  out.kind = Index::Slice;
  for (int i = 0; i < 3; i++) {
    if (isNone(parts[i])) continue;
    if (!readInt(parts[i], out.part[i])) return false;
    out.has[i] = true;
  }
  return true;
}

Arg constant(PyObject* object) {
  Arg arg;
  arg.object = ObjectRef::share(object);
  return arg;
}

bool readIndex(const Arg& arg, DeviceTag device, Index& out) {
  if (const TensorMeta* t = tensorOf(arg)) {
    out.kind = Index::Tensor;
    out.tensor = *t;
    return true;
  }
  if (arg.kind == Arg::Slice) return sliceParts(arg.items.data(), out);
  Dims list;
  if ((arg.kind == Arg::List || (arg.kind == Arg::Constant && PyList_CheckExact(arg.object.get()))) && readInts(arg, list)) {
    if (list.empty()) return false;
    out.kind = Index::Tensor;
    out.tensor.dtype = DType::Int64;
    out.tensor.device = device;
    out.tensor.sizes = {static_cast<int64_t>(list.size())};
    out.tensor.strides = {1};
    out.least = *std::min_element(list.begin(), list.end());
    out.most = *std::max_element(list.begin(), list.end());
    return true;
  }
  if (arg.kind != Arg::Constant) return false;
  PyObject* object = arg.object.get();
  if (object == Py_None) return out.kind = Index::NewAxis, true;
  if (object == Py_Ellipsis) return out.kind = Index::Ellipsis, true;
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    Arg parts[3] = {constant(slice->start), constant(slice->stop), constant(slice->step)};
    return sliceParts(parts, out);
  }
  return readInt(arg, out.value);
}

bool readIndices(const Arg& arg, DeviceTag device, std::vector<Index>& out) {
  auto one = [&](const Arg& item) { return readIndex(item, device, out.emplace_back()); };
  if (arg.kind == Arg::Tuple) {
    if (arg.object) return false;
    for (const Arg& item : arg.items)
      if (!one(item)) return false;
    return true;
  }
  if (arg.kind == Arg::Constant && PyTuple_CheckExact(arg.object.get())) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arg.object.get()); i++)
      if (!one(constant(PyTuple_GET_ITEM(arg.object.get(), i)))) return false;
    return true;
  }
  return one(arg);
}

// A view after the basic items of an index, and the tensors that index its dimensions.
struct Indexed {
  Dims sizes, strides;
  int64_t offset = 0;
  struct At {
    uint32_t dim;
    const TensorMeta* index;
  };
  std::vector<At> tensors;
};

bool applyBasic(const TensorMeta& x, const std::vector<Index>& indices, Indexed& out) {
  out.sizes = x.sizes;
  out.strides = x.strides;
  out.offset = x.storageOffset;
  int64_t consumed = 0;
  bool ellipsis = false;
  for (const Index& index : indices) {
    if (index.kind == Index::Ellipsis) {
      if (ellipsis) return false;
      ellipsis = true;
    } else if (index.kind == Index::Tensor) {
      consumed += index.tensor.dtype == DType::Bool || index.tensor.dtype == DType::UInt8 ? index.tensor.dim() : 1;
    } else if (index.kind != Index::NewAxis) {
      consumed++;
    }
  }
  if (consumed > x.dim()) return false;
  uint32_t dim = 0;
  for (const Index& index : indices) {
    switch (index.kind) {
      case Index::Ellipsis: dim += static_cast<uint32_t>(x.dim() - consumed); break;
      case Index::NewAxis: {
        int64_t stride = dim >= out.sizes.size() ? 1 : out.sizes[dim] * out.strides[dim];
        out.sizes.insert(dim, 1);
        out.strides.insert(dim, stride);
        dim++;
        break;
      }
      case Index::Integer: {
        int64_t size = out.sizes[dim], at = index.value < 0 ? index.value + size : index.value;
        if (at < 0 || at >= size) return false;
        out.offset += at * out.strides[dim];
        out.sizes.erase(dim);
        out.strides.erase(dim);
        break;
      }
      case Index::Slice: {
        int64_t size = out.sizes[dim], step = index.part[2];
        if (step <= 0) return false;
        int64_t start = index.has[0] ? index.part[0] : 0, stop = index.has[1] ? index.part[1] : size;
        if (start < 0) start += size;
        if (stop < 0) stop += size;
        start = std::clamp<int64_t>(start, 0, size);
        stop = std::clamp<int64_t>(stop, start, size);
        out.offset += start * out.strides[dim];
        out.sizes[dim] = (stop - start + step - 1) / step;
        out.strides[dim] *= step;
        dim++;
        break;
      }
      case Index::Tensor: {
        if (index.most >= out.sizes[dim] + (index.most == 0) || index.least < -out.sizes[dim]) return false;
        out.tensors.push_back({dim, &index.tensor});
        bool mask = index.tensor.dtype == DType::Bool || index.tensor.dtype == DType::UInt8;
        dim += mask ? static_cast<uint32_t>(index.tensor.dim()) : 1;
        break;
      }
    }
  }
  return true;
}

// The shape and strides of gathering with integer index tensors, as aten::index allocates it.
bool applyTensors(const TensorMeta& x, const Indexed& view, Dims& sizes, Dims& strides) {
  Dims shape;
  for (const auto& at : view.tensors) {
    if (!isIntegral(at.index->dtype, false) || at.index->dtype == DType::UInt8) return false;
    if (at.index->dtype != DType::Int64 && at.index->dtype != DType::Int32) return false;
    if (!(at.index->device == x.device) && at.index->device.type != 0) return false;
    if (view.sizes[at.dim] == 0 || !broadcastInto(shape, at.index->sizes)) return false;
    if (x.device.type != 0 && view.tensors.size() > 1 && !isContiguous(*at.index)) return false;
  }
  bool adjacent = true;
  for (size_t i = 1; i < view.tensors.size(); i++) adjacent = adjacent && view.tensors[i].dim == view.tensors[i - 1].dim + 1;
  uint32_t front = adjacent ? view.tensors[0].dim : 0, seen = 0;
  TensorMeta source;
  auto isIndexed = [&](uint32_t d) { return std::any_of(view.tensors.begin(), view.tensors.end(), [&](const auto& at) { return at.dim == d; }); };
  auto placeIndices = [&] {
    for (int64_t size : shape) {
      source.sizes.push_back(size);
      source.strides.push_back(0);
    }
  };
  for (uint32_t d = 0; d < view.sizes.size(); d++) {
    if (seen == front && d == front) placeIndices();
    if (isIndexed(d)) continue;
    if (seen < front) seen++;
    source.sizes.push_back(view.sizes[d]);
    source.strides.push_back(view.strides[d]);
  }
  uint32_t after = source.sizes.size() - front - shape.size();
  std::vector<TensorMeta> metas;
  metas.reserve(view.tensors.size());
  std::vector<const TensorMeta*> operands{&source};
  for (const auto& at : view.tensors) {
    TensorMeta expanded, reshaped;
    if (!expandTo(*at.index, shape, expanded.sizes, expanded.strides)) return false;
    for (uint32_t i = 0; i < front; i++) reshaped.sizes.push_back(1);
    for (int64_t size : shape) reshaped.sizes.push_back(size);
    for (uint32_t i = 0; i < after; i++) reshaped.sizes.push_back(1);
    if (!viewStrides(expanded, reshaped.sizes, reshaped.strides)) reshaped.strides = contiguousStrides(reshaped.sizes);
    metas.push_back(std::move(reshaped));
  }
  for (const TensorMeta& meta : metas) operands.push_back(&meta);
  sizes = source.sizes;
  strides = elementwiseStrides(operands.data(), operands.size(), sizes);
  return true;
}

bool getitem(Call& call, ResultMeta& out) {
  const Arg *self = call.arg(0, "input"), *key = call.arg(1, "key");
  if (self == nullptr || key == nullptr || self->kind != Arg::NodeRef) return false;
  const ResultMeta& container = self->node->result;
  if (container.kind == ResultMeta::Tuple || container.kind == ResultMeta::List || container.kind == ResultMeta::NamedTuple) {
    int64_t at = 0, count = static_cast<int64_t>(container.items.size());
    if (!readInt(*key, at) || at < -count || at >= count) return false;
    out = container.items[static_cast<size_t>(at < 0 ? at + count : at)];
    call.isSelf = true;
    return true;
  }
  if (container.kind != ResultMeta::Tensor) return false;
  const TensorMeta& x = container.tensor;
  std::vector<Index> indices;
  Indexed view;
  if (!readIndices(*key, x.device, indices) || !applyBasic(x, indices, view)) return false;
  if (view.tensors.empty()) return giveView(call, out, x, view.sizes, view.strides, view.offset);
  for (const auto& at : view.tensors)
    if (at.index->sizes.empty()) return false;  // read as a number: where the view starts depends on data
  Dims sizes, strides;
  return applyTensors(x, view, sizes, strides) && giveTensor(out, x.dtype, x.device, sizes, strides);
}

bool setitem(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  const Arg* key = call.arg(1, "key");
  Operand value = call.operand(2, "value");
  std::vector<Index> indices;
  Indexed view;
  if (call.bad() || !readIndices(*key, x.device, indices) || !applyBasic(x, indices, view)) return false;
  if (value.tensor != nullptr && !sameDevice(*value.tensor, x) && !value.tensor->sizes.empty()) return false;
  Dims shape = view.sizes;
  if (!view.tensors.empty()) {
    if (value.tensor != nullptr && value.tensor->dtype != x.dtype) return false;
    Dims strides;
    const TensorMeta& mask = *view.tensors[0].index;
    if (view.tensors.size() == 1 && mask.dtype == DType::Bool) {
      for (uint32_t d = 0; d < mask.sizes.size(); d++)
        if (mask.sizes[d] != view.sizes[view.tensors[0].dim + d]) return false;
      if (mask.sizes.empty() || (value.tensor != nullptr && value.tensor->numel() != 1)) return false;
      shape.clear();
    } else {
      for (const auto& at : view.tensors)
        if (at.index->sizes.empty()) return false;
      if (!applyTensors(x, view, shape, strides)) return false;
    }
  }
  if (value.tensor != nullptr && value.tensor->numel() != 1) {
    Dims given = value.tensor->sizes, sum = shape;
    while (given.size() > shape.size() && given[0] == 1) given.erase(0);
    if (!broadcastInto(sum, given) || !(sum == shape)) return false;
  }
  out.kind = ResultMeta::None;
  return true;
}

}  // namespace

void addIndexingRules(RuleTable& table) {
  table.add({"getitem", "__getitem__"}, getitem, InOperator, AutocastSafe);
  table.add({"__getitem__"}, getitem, AsMethod, AutocastSafe);
  table.add({"setitem", "__setitem__"}, setitem, InOperator, Inplace);
  table.add({"__setitem__"}, setitem, AsMethod, Inplace);
}

}  // namespace cdynamo
