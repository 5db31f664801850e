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
  Value* out = args.keyword("out");
  Value* written = out && isTensor(out) ? out : args.args.empty() ? nullptr : args.args[0];
  if (!written || !isTensor(written)) return false;
  auto* self = as<TensorValue>(written);
  for (Value* v : args.args)
    if (isTensor(v) && test(self, as<TensorValue>(v))) return true;
  for (const auto& [name, v] : args.kwargs)
    if (isTensor(v) && test(self, as<TensorValue>(v))) return true;
  return false;
}

}  // namespace

bool readsOwnViews(const CallArgs& args) { return anyOther(args, isOtherView); }

bool readsOtherInputs(const CallArgs& args) {
  return anyOther(
      args, [](TensorValue* self, TensorValue* other) { return rootOf(self) != rootOf(other) && rootOf(self)->source && rootOf(other)->source; });
}

bool writesWhatItReads(const CallArgs& args) {
  return anyOther(args, [](TensorValue* self, TensorValue* other) { return isOtherView(self, other) && overlaps(self->meta, other->meta); });
}

}  // namespace cdynamo
