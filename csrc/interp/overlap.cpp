#include "interp/overlap.h"

#include "shapes/layout.h"

namespace cdynamo {

namespace {

bool isOtherView(TensorValue* self, TensorValue* other) {
  return self != other && rootOf(self) == rootOf(other) &&
         !(self->meta.sizes == other->meta.sizes && self->meta.strides == other->meta.strides &&
           self->meta.storageOffset == other->meta.storageOffset);
}

// Elements of the storage behind the last one of a dense tensor.
int64_t endOf(const TensorMeta& meta) {
  int64_t count = 1;
  for (int64_t size : meta.sizes) count *= size;
  return meta.storageOffset + count;
}

// As torch sees it: where one of them is not dense it does not ask.
bool overlaps(const TensorMeta& a, const TensorMeta& b) {
  if (!isNonOverlappingDense(a) || !isNonOverlappingDense(b)) return false;
  return a.storageOffset < endOf(b) && b.storageOffset < endOf(a);
}

template <typename Test>
bool anyOther(const CallArgs& args, Test&& test) {
  if (args.args.empty() || !isTensor(args.args[0])) return false;
  auto* self = as<TensorValue>(args.args[0]);
  for (Value* v : args.args)
    if (isTensor(v) && isOtherView(self, as<TensorValue>(v)) && test(self->meta, as<TensorValue>(v)->meta)) return true;
  for (const auto& [name, v] : args.kwargs)
    if (isTensor(v) && isOtherView(self, as<TensorValue>(v)) && test(self->meta, as<TensorValue>(v)->meta)) return true;
  return false;
}

}  // namespace

bool readsOwnViews(const CallArgs& args) {
  return anyOther(args, [](const TensorMeta&, const TensorMeta&) { return true; });
}

bool writesWhatItReads(const CallArgs& args) { return anyOther(args, overlaps); }

}  // namespace cdynamo
