#include "shapes/rules.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// How an elementwise op's dtype follows from its operands.
enum Promotion : int32_t {
  Keep,              // the common dtype
  ToFloat,           // integers become the default dtype
  ToBool,            // always bool
  FloatOnly,         // not defined for integers
  NoBool,            // the common dtype, not defined for bool
  IntegralOnly,      // not defined for floats
  ExactFloat,        // floats only, and both operands of the same dtype
  TensorsOnly = 64,  // or-ed: numbers are refused
  LikeInput = 128,   // or-ed: allocated with empty_like
};

bool applyPromotion(Promotion how, DType common, DType& out) {
  out = common;
  switch (how) {
    case Keep: return true;
    case ToFloat:
      if (isIntegral(common, true)) out = defaultDType();
      return true;
    case ToBool: out = DType::Bool; return true;
    case FloatOnly:
    case ExactFloat: return isFloating(common);
    case NoBool: return common != DType::Bool;
    case IntegralOnly: return isIntegral(common, true);
    default: return false;
  }
}

// Common shape, device and dtype of tensors and numbers.
class Elementwise {
 public:
  void add(const TensorMeta& t) {
    if (count_ == kMost) {
      fits_ = false;
      return;
    }
    tensors_[count_++] = &t;
    promotion_.addTensor(t);
    if (count_ == 1)
      shape_ = t.sizes;
    else
      fits_ = fits_ && broadcastInto(shape_, t.sizes);
  }
  void add(const Operand& operand) {
    if (operand.tensor != nullptr) return add(*operand.tensor);
    promotion_.addScalar(operand.scalar.dtype());
    // A wrapped number takes part in TensorIterator as a tensor without dimensions.
    if (count_ < kMost) tensors_[count_++] = &number_;
    if (count_ > 1) return;
    firstIsNumber_ = true;
  }
  DType common() const { return promotion_.result(); }

  // The device all agree on: tensors without dimensions on the CPU go along with any.
  bool device(DeviceTag& out) const {
    const TensorMeta* first = nullptr;
    for (size_t i = 0; i < count_; i++) {
      if (tensors_[i] == &number_) continue;
      if (first == nullptr || (first->sizes.empty() && first->device.type == 0)) first = tensors_[i];
    }
    if (first == nullptr) return false;
    out = first->device;
    for (size_t i = 0; i < count_; i++) {
      const TensorMeta& t = *tensors_[i];
      if (&t != &number_ && !(t.device == out) && !(t.sizes.empty() && t.device.type == 0)) return false;
    }
    return true;
  }

  bool give(ResultMeta& out, DType dtype) {
    DeviceTag device;
    if (!fits_ || !this->device(device)) return false;
    if (firstIsNumber_)
      for (size_t i = 1; i < count_; i++)
        if (!broadcastInto(shape_, tensors_[i]->sizes)) return false;
    return giveTensor(out, dtype, device, shape_, elementwiseStrides(tensors_, count_, shape_));
  }
  bool give(ResultMeta& out, Promotion how) {
    DType dtype;
    return applyPromotion(how, common(), dtype) && give(out, dtype);
  }

 private:
  static constexpr size_t kMost = 4;
  const TensorMeta* tensors_[kMost];
  size_t count_ = 0;
  TensorMeta number_;
  Dims shape_;
  TypePromotion promotion_;
  bool fits_ = true;
  bool firstIsNumber_ = false;
};

bool giveUnary(const TensorMeta& x, ResultMeta& out, Promotion how) {
  DType dtype;
  const TensorMeta* operands[] = {&x};
  return applyPromotion(how, x.dtype, dtype) && giveTensor(out, dtype, x.device, x.sizes, elementwiseStrides(operands, 1, x.sizes));
}

// Ops that allocate with empty_like instead of TensorIterator.
bool preserved(const TensorMeta& x, ResultMeta& out, Promotion how) {
  DType dtype;
  return applyPromotion(how, x.dtype, dtype) && giveTensor(out, dtype, x.device, x.sizes, preservedStrides(x));
}

bool likeInput(Call& call, ResultMeta& out) { return preserved(call.tensor(0), out, static_cast<Promotion>(call.rule.detail)); }

bool finiteness(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  return isFloating(x.dtype) ? giveUnary(x, out, ToBool) : preserved(x, out, ToBool);
}

bool unary(Call& call, ResultMeta& out) { return giveUnary(call.tensor(0), out, static_cast<Promotion>(call.rule.detail)); }

// Activations of torch.nn.functional: numbers and flags after the input do not change the metadata, but `inplace` does.
bool activation(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  for (const char* name :
       {"negative_slope", "alpha", "scale", "input_scale", "min_val", "max_val", "beta", "threshold", "value", "lambd", "lower", "upper"})
    call.ignore(99, name);
  call.writes = call.boolean(99, "inplace", false);
  for (unsigned i = 1; i < call.positional(); i++) {
    const Arg* arg = call.arg(i, "");
    if (arg->kind == Arg::Constant && PyBool_Check(arg->object.get()))
      call.writes |= call.boolean(i, "", false);
    else
      call.scalar(i, "");
  }
  auto how = static_cast<Promotion>(call.rule.detail & ~LikeInput);
  return (call.rule.detail & LikeInput) ? preserved(x, out, how) : giveUnary(x, out, how);
}

bool gelu(Call& call, ResultMeta& out) {
  call.text(1, "approximate", "none");
  return giveUnary(call.tensor(0), out, FloatOnly);
}

bool roundOp(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  if (call.integer(99, "decimals", 0) != 0 && !isFloating(x.dtype)) return false;
  return giveUnary(x, out, NoBool);
}

bool nanToNum(Call& call, ResultMeta& out) {
  call.ignore(1, "nan");
  call.ignore(2, "posinf");
  call.ignore(3, "neginf");
  return preserved(call.tensor(0), out, Keep);
}

bool binary(Call& call, ResultMeta& out) {
  Elementwise op;
  Operand first = call.operand(0, "input"), second = call.operand(1, "other");
  if ((call.rule.detail & TensorsOnly) && (first.tensor == nullptr || second.tensor == nullptr)) return false;
  op.add(first);
  op.add(second);
  return op.give(out, static_cast<Promotion>(call.rule.detail & ~TensorsOnly));
}

// add and sub: bools cannot be subtracted; `alpha` must suit the dtype.
bool addSub(Call& call, ResultMeta& out) {
  Elementwise op;
  Operand first = call.operand(0, "input"), second = call.operand(1, "other");
  op.add(first);
  op.add(second);
  Scalar alpha = call.scalar(99, "alpha");
  if (alpha.kind == Scalar::Float && isIntegral(op.common(), true)) return false;
  if (alpha.kind == Scalar::Bool) return false;
  if (call.rule.detail) {
    auto isBool = [](const Operand& o) { return o.tensor != nullptr ? o.tensor->dtype == DType::Bool : o.scalar.kind == Scalar::Bool; };
    if (isBool(first) || isBool(second)) return false;
  }
  return op.give(out, Keep);
}

bool divide(Call& call, ResultMeta& out) {
  Operand first = call.operand(0, "input"), second = call.operand(1, "other");
  std::string_view mode = call.text(99, "rounding_mode", "");
  if (first.tensor == nullptr && second.tensor != nullptr) {
    if (!giveUnary(*second.tensor, out, ToFloat)) return false;
    TensorMeta inverse = out.tensor;
    Elementwise op;
    op.add(inverse);
    op.add(first);
    return op.give(out, ToFloat);
  }
  Elementwise op;
  op.add(first);
  op.add(second);
  if (mode.empty()) return op.give(out, ToFloat);
  if (mode != "floor" && mode != "trunc") return false;
  return op.give(out, NoBool);
}

bool power(Call& call, ResultMeta& out) {
  Operand base = call.operand(0, "input"), exponent = call.operand(1, "exponent");
  Elementwise op;
  op.add(base);
  op.add(exponent);
  DType common = op.common();
  if (common == DType::Bool) return false;
  if (exponent.tensor != nullptr)
    return base.tensor != nullptr ? op.give(out, Keep) : giveTensor(out, common, exponent.tensor->device, exponent.tensor->sizes);
  if (base.tensor == nullptr) return false;
  if (isIntegral(base.tensor->dtype, true) && exponent.scalar.kind == Scalar::Int && (!exponent.scalar.known || exponent.scalar.i < 0)) return false;
  TensorMeta converted = *base.tensor;
  if (converted.dtype != common) converted.strides = preservedStrides(converted);
  converted.dtype = common;
  return giveUnary(converted, out, Keep);
}

// What it gives is left to the fake tensors; the rule says that it writes.
bool writes(Call&, ResultMeta&) { return false; }

bool clampOp(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  bool both = call.rule.detail == 0;
  auto bound = [&](unsigned position, const char* name) {
    return call.has(position, name) ? call.operand(position, name) : (call.ignore(position, name), Operand());
  };
  Operand low = call.rule.detail != 2 ? bound(1, "min") : Operand(), high = call.rule.detail != 1 ? bound(both ? 2 : 1, "max") : Operand();
  auto given = [](const Operand& o) { return o.tensor != nullptr || o.scalar.kind != Scalar::Absent; };
  if (!given(low) && !given(high)) return false;
  if ((low.tensor != nullptr && high.scalar.kind != Scalar::Absent) || (high.tensor != nullptr && low.scalar.kind != Scalar::Absent)) return false;
  Elementwise op;
  op.add(x);
  if (low.tensor == nullptr && high.tensor == nullptr) {
    if (given(low)) op.add(low);
    if (given(high)) op.add(high);
    DType common = op.common();
    return common != DType::Bool &&
           giveTensor(out, common, x.device, x.sizes, elementwiseStrides(std::initializer_list<const TensorMeta*>{&x}.begin(), 1, x.sizes));
  }
  if (given(low)) op.add(low);
  if (given(high)) op.add(high);
  return op.give(out, NoBool);
}

bool where(Call& call, ResultMeta& out) {
  const TensorMeta* condition;
  Operand yes, no;
  if (call.rule.where & AsMethod) {  // x.where(condition, other)
    condition = &call.tensor(1, "condition");
    yes = call.operand(0, "self");
    no = call.operand(2, "other");
  } else {
    condition = &call.tensor(0, "condition");
    yes = call.operand(1, "input");
    no = call.operand(2, "other");
  }
  if (condition->dtype != DType::Bool) return false;
  // Only the two values take part in the promotion; all three in the shape.
  TypePromotion promotion;
  for (const Operand* o : {&yes, &no}) {
    if (o->tensor != nullptr)
      promotion.addTensor(*o->tensor);
    else
      promotion.addScalar(o->scalar.dtype());
  }
  DType common = promotion.result();
  TensorMeta first, second;
  auto converted = [&](const Operand& o, TensorMeta& storage) -> const TensorMeta* {
    if (o.tensor != nullptr && o.tensor->dtype == common) return o.tensor;
    if (o.tensor != nullptr) {
      storage = *o.tensor;
      storage.strides = preservedStrides(storage);
    } else {
      storage.device = condition->device;
    }
    return &storage;
  };
  Elementwise op;
  op.add(*condition);
  op.add(*converted(yes, first));
  op.add(*converted(no, second));
  return op.give(out, common);
}

bool lerpOp(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &end = call.tensor(1, "end");
  Operand weight = call.operand(2, "weight");
  if (!isFloating(x.dtype) || x.dtype != end.dtype || (weight.tensor != nullptr && weight.tensor->dtype != x.dtype)) return false;
  Elementwise op;
  op.add(x);
  op.add(end);
  if (weight.tensor != nullptr) op.add(weight);
  return op.give(out, x.dtype);
}

bool addcmul(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &first = call.tensor(1, "tensor1"), &second = call.tensor(2, "tensor2");
  Scalar value = call.scalar(99, "value");
  Elementwise op;
  op.add(x);
  op.add(first);
  op.add(second);
  DType common = op.common();
  if (!isFloating(common)) return false;
  (void)value;
  return op.give(out, common);
}

bool maskedFill(Call& call, ResultMeta& out) {
  const TensorMeta &x = call.tensor(0), &mask = call.tensor(1, "mask");
  Operand value = call.operand(2, "value");
  if (mask.dtype != DType::Bool || !sameDevice(x, mask)) return false;
  if (value.tensor != nullptr && (!value.tensor->sizes.empty() || value.tensor->dtype != x.dtype)) return false;
  if (value.tensor == nullptr && value.scalar.kind == Scalar::Float && isIntegral(x.dtype, true)) return false;
  Dims shape = x.sizes;
  if (!broadcastInto(shape, mask.sizes)) return false;
  if (call.rule.flags & Inplace) return giveTensor(out, x.dtype, x.device, shape, x.strides);
  return giveTensor(out, x.dtype, x.device, shape);
}

// x.copy_(source), x.fill_(value), x.zero_(), x.uniform_(): x keeps its metadata.
bool overwrite(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  if (call.rule.detail == 1) {
    const TensorMeta& source = call.tensor(1, "src");
    call.boolean(2, "non_blocking", false);
    Dims shape = x.sizes;
    if (!broadcastInto(shape, source.sizes) || !(shape == x.sizes)) return false;
  } else {
    for (unsigned i = 1; i < call.positional(); i++) call.scalar(i, "");
    for (const char* name : {"value", "from", "to", "mean", "std", "p", "generator"}) call.ignore(99, name);
    if (call.rule.detail == 2 && !isFloating(x.dtype)) return false;
  }
  return giveTensor(out, x.dtype, x.device, x.sizes, x.strides);
}

bool positive(Call& call, ResultMeta& out) {
  const TensorMeta& x = call.tensor(0);
  return x.dtype != DType::Bool && giveSelf(call, out, x);
}

}  // namespace

void addPointwiseRules(RuleTable& table) {
  constexpr uint16_t everywhere = TorchAndMethod, safe = AutocastSafe;
  table.add({"sin", "cos", "sinh", "atan", "asinh", "tanh", "erf", "sigmoid", "arctan", "arcsinh"}, unary, everywhere, HasInplace | safe, ToFloat);
  table.add({"tan",  "asin",  "acos", "acosh",  "atanh",      "cosh",   "exp",     "exp2",  "expm1", "log",    "log2",   "log10",   "log1p",
             "sqrt", "rsqrt", "erfc", "erfinv", "reciprocal", "lgamma", "digamma", "logit", "i0",    "arcsin", "arccos", "arccosh", "arctanh"},
            unary, everywhere, HasInplace, ToFloat);
  table.add({"expit", "erf", "erfc", "exp2", "expm1", "log1p"}, unary, InSpecial, 0, ToFloat);
  table.add({"neg", "negative", "sgn"}, unary, everywhere, HasInplace | safe, NoBool);
  table.add({"abs", "absolute", "floor", "ceil", "trunc", "fix", "square"}, unary, everywhere, HasInplace | safe, NoBool);
  table.add({"sign"}, unary, everywhere, HasInplace | safe, Keep);
  table.add({"rad2deg", "deg2rad"}, likeInput, everywhere, HasInplace | safe, ToFloat);
  table.add({"frac"}, unary, everywhere, HasInplace | safe, FloatOnly);
  table.add({"round"}, roundOp, everywhere, HasInplace | safe);
  table.add({"relu"}, unary, everywhere, HasInplace | safe, NoBool);
  table.add({"selu", "celu"}, activation, everywhere, HasInplace | safe, FloatOnly);
  table.add({"isinf", "isfinite"}, finiteness, everywhere, NotDifferentiable | safe);
  table.add({"isnan", "isposinf", "isneginf", "signbit"}, unary, everywhere, NotDifferentiable | safe, ToBool);
  table.add({"logical_not"}, unary, everywhere, HasInplace | NotDifferentiable | safe, ToBool);
  table.add({"bitwise_not"}, unary, everywhere, HasInplace | safe, IntegralOnly);
  table.add({"nan_to_num"}, nanToNum, everywhere, HasInplace | safe);
  table.add({"neg", "__neg__"}, unary, InOperator, safe, NoBool);
  table.add({"abs", "__abs__"}, unary, InOperator, safe, NoBool);
  table.add({"__neg__", "__abs__"}, unary, AsMethod, safe, NoBool);
  table.add({"invert", "inv", "__invert__"}, unary, InOperator, safe, IntegralOnly);
  table.add({"__invert__"}, unary, AsMethod, safe, IntegralOnly);
  table.add({"positive"}, positive, everywhere, safe);
  table.add({"pos"}, positive, InOperator, safe);

  table.add({"relu"}, activation, InFunctional, safe, NoBool);
  table.add({"leaky_relu", "elu", "hardsigmoid", "hardswish", "silu", "mish", "selu", "celu"}, activation, InFunctional, safe, FloatOnly);
  table.add({"hardtanh", "relu6"}, activation, InFunctional | InNN | InAten, safe, NoBool | LikeInput);
  table.add({"softplus"}, activation, InFunctional | InNN, 0, FloatOnly);
  table.add({"tanh", "sigmoid"}, unary, InFunctional, safe, ToFloat);
  table.add({"leaky_relu", "elu", "silu", "mish", "hardswish", "hardsigmoid"}, activation, InNN | InAten, safe, FloatOnly);
  table.add({"leaky_relu_", "elu_", "hardtanh_", "relu6_", "silu_", "mish_", "hardswish_", "hardsigmoid_"}, activation, InNN | InFunctional,
            safe | Inplace, FloatOnly);
  table.add({"threshold"}, activation, InFunctional, safe, FloatOnly);
  table.add({"gelu"}, gelu, InFunctional | InNN | InAten, safe);

  table.add({"add", "__add__"}, addSub, everywhere, HasInplace | safe, 0);
  table.add({"sub", "subtract"}, addSub, everywhere, HasInplace | safe, 1);
  table.add({"rsub"}, addSub, everywhere, safe | Reflected, 1);
  table.add({"add", "__add__"}, addSub, InOperator, safe, 0);
  table.add({"iadd"}, addSub, InOperator, safe | Inplace, 0);
  table.add({"__radd__"}, addSub, AsMethod, safe | Reflected, 0);
  table.add({"__iadd__"}, addSub, AsMethod, safe | Inplace, 0);
  table.add({"sub"}, addSub, InOperator, safe, 1);
  table.add({"isub"}, addSub, InOperator, safe | Inplace, 1);
  table.add({"__sub__"}, addSub, AsMethod, safe, 1);
  table.add({"__rsub__"}, addSub, AsMethod, safe | Reflected, 1);
  table.add({"__isub__"}, addSub, AsMethod, safe | Inplace, 1);
  table.add({"mul", "multiply"}, binary, everywhere, HasInplace | safe, Keep);
  table.add({"mul"}, binary, InOperator, safe, Keep);
  table.add({"imul"}, binary, InOperator, safe | Inplace, Keep);
  table.add({"__mul__"}, binary, AsMethod, safe, Keep);
  table.add({"__rmul__"}, binary, AsMethod, safe | Reflected, Keep);
  table.add({"__imul__"}, binary, AsMethod, safe | Inplace, Keep);
  table.add({"div", "divide", "true_divide"}, divide, everywhere, HasInplace | safe);
  table.add({"truediv"}, divide, InOperator, safe);
  table.add({"itruediv"}, divide, InOperator, safe | Inplace);
  table.add({"__truediv__", "__div__"}, divide, AsMethod, safe);
  table.add({"__rtruediv__", "__rdiv__"}, divide, AsMethod, safe | Reflected);
  table.add({"__itruediv__"}, divide, AsMethod, safe | Inplace);
  table.add({"floor_divide", "remainder"}, binary, everywhere, HasInplace | safe, NoBool);
  table.add({"fmod"}, binary, everywhere, HasInplace | safe, NoBool);
  table.add({"floordiv", "mod"}, binary, InOperator, safe, NoBool);
  table.add({"ifloordiv", "imod"}, binary, InOperator, safe | Inplace, NoBool);
  table.add({"__floordiv__", "__mod__"}, binary, AsMethod, safe, NoBool);
  table.add({"__rfloordiv__", "__rmod__"}, binary, AsMethod, safe | Reflected, NoBool);
  table.add({"__ifloordiv__", "__imod__"}, binary, AsMethod, safe | Inplace, NoBool);
  table.add({"pow"}, power, everywhere, HasInplace);
  table.add({"pow"}, power, InOperator);
  table.add({"__pow__"}, power, AsMethod);
  table.add({"__rpow__"}, power, AsMethod, Reflected);
  table.add({"ipow"}, power, InOperator, Inplace);
  table.add({"__ipow__"}, power, AsMethod, Inplace);
  table.add({"ilshift", "irshift"}, writes, InOperator, Inplace);
  table.add({"__ilshift__", "__irshift__", "__idiv__"}, writes, AsMethod, Inplace);
  table.add({"atan2", "arctan2"}, binary, everywhere, HasInplace, ToFloat | TensorsOnly);
  table.add({"maximum", "minimum", "fmax", "fmin"}, binary, everywhere, safe, Keep | TensorsOnly);
  table.add({"hypot"}, binary, everywhere, safe, ExactFloat | TensorsOnly);
  table.add({"logaddexp", "logaddexp2"}, binary, everywhere, safe, FloatOnly | TensorsOnly);
  table.add({"xlogy"}, binary, everywhere, safe, ToFloat);
  table.add({"eq", "ne", "lt", "le", "gt", "ge", "greater", "greater_equal", "less", "less_equal", "not_equal"}, binary, everywhere,
            NotDifferentiable | safe, ToBool);
  table.add({"eq", "ne", "lt", "le", "gt", "ge"}, binary, InOperator, NotDifferentiable | safe, ToBool);
  table.add({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}, binary, AsMethod, NotDifferentiable | safe, ToBool);
  table.add({"logical_and", "logical_or", "logical_xor"}, binary, everywhere, HasInplace | NotDifferentiable | safe, ToBool | TensorsOnly);
  table.add({"bitwise_and", "bitwise_or", "bitwise_xor"}, binary, everywhere, HasInplace | safe, IntegralOnly);
  table.add({"and_", "or_", "xor"}, binary, InOperator, safe, IntegralOnly);
  table.add({"iand", "ior", "ixor"}, binary, InOperator, safe | Inplace, IntegralOnly);
  table.add({"__and__", "__or__", "__xor__"}, binary, AsMethod, safe, IntegralOnly);
  table.add({"__rand__", "__ror__", "__rxor__"}, binary, AsMethod, safe | Reflected, IntegralOnly);
  table.add({"__iand__", "__ior__", "__ixor__"}, binary, AsMethod, safe | Inplace, IntegralOnly);

  table.add({"clamp", "clip"}, clampOp, everywhere, HasInplace | safe, 0);
  table.add({"clamp_min"}, clampOp, everywhere, HasInplace | safe, 1);
  table.add({"clamp_max"}, clampOp, everywhere, HasInplace | safe, 2);
  table.add({"where"}, where, InTorch | InAten, safe);
  table.add({"where"}, where, AsMethod, safe);
  table.add({"lerp"}, lerpOp, everywhere, HasInplace | safe);
  table.add({"addcmul", "addcdiv"}, addcmul, everywhere, HasInplace);
  table.add({"masked_fill"}, maskedFill, everywhere, HasInplace | safe);
  table.add({"copy_"}, overwrite, AsMethod | InAten, Inplace | safe, 1);
  table.add({"fill_", "zero_"}, overwrite, AsMethod | InAten, Inplace | safe, 0);
  table.add({"uniform_", "normal_"}, overwrite, AsMethod | InAten, Inplace | safe, 2);
}

}  // namespace cdynamo
