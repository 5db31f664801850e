#include "interp/op_names.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace cdynamo {

namespace {

template <size_t N>
bool hasPart(const std::string& name, const std::string_view (&parts)[N]) {
  return std::any_of(std::begin(parts), std::end(parts), [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

}  // namespace

std::string opName(PyObject* target, bool isMethod) {
  ObjectRef owned = isMethod ? ObjectRef::share(target) : ObjectRef::steal(PyObject_GetAttrString(target, "__name__"));
  const char* name = owned && PyUnicode_Check(owned.get()) ? PyUnicode_AsUTF8(owned.get()) : nullptr;
  PyErr_Clear();
  return name ? name : "";
}

bool givesSelf(const std::string& name) {
  return name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_' && name != "and_" && name != "or_" && name != "not_" && name != "is_";
}

// clang-format off
bool mayGiveView(const std::string& name) {
  static const std::unordered_set<std::string_view> names = {
      "getitem", "getattr", "view", "view_as", "reshape", "reshape_as", "t", "transpose", "permute", "unsqueeze", "squeeze", "expand",
      "expand_as", "flatten", "ravel", "narrow", "select", "unfold", "chunk", "split", "split_with_sizes", "unbind", "tensor_split",
      "hsplit", "vsplit", "dsplit", "swapaxes", "swapdims", "movedim", "moveaxis", "diagonal", "real", "imag", "view_as_real",
      "view_as_complex", "unflatten", "as_strided", "broadcast_to", "adjoint", "alias", "contiguous", "detach", "to", "type_as", "numpy_T",
      "broadcast_tensors", "meshgrid", "unsafe_chunk", "unsafe_split", "values", "indices"};
  return names.count(name) != 0;
}

bool mayFailOnData(const std::string& name) {
  static constexpr std::string_view parts[] = {
      "embedding", "gather", "scatter", "index", "take", "put", "nll_loss", "cross_entropy", "ctc_loss", "cholesky", "inv", "solve", "eig",
      "svd", "qr", "lstsq", "det", "matrix", "linalg", "one_hot", "multinomial", "bernoulli", "poisson", "assert", "check", "bincount",
      "hist", "getitem", "setitem", "floor_div", "remainder", "mod", "binary_cross_entropy", "repeat_interleave", "segment", "searchsorted",
      "masked", "unpool"};
  return hasPart(name, parts);
}

bool drawsRandomNumbers(const std::string& name) {
  static constexpr std::string_view parts[] = {
      "rand", "dropout", "bernoulli", "multinomial", "normal", "uniform", "exponential", "cauchy", "geometric", "poisson", "rrelu",
      "gumbel", "sample", "fractional", "attention", "init"};
  return hasPart(name, parts);
}
// clang-format on

}  // namespace cdynamo
