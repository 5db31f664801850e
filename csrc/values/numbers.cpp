// Open numbers: ints and floats of the inputs whose value the capture does not rely on.
#include <algorithm>

#include "torch/bridge.h"
#include "values/trace.h"

namespace cdynamo {

namespace {

bool fitsInt64(PyObject* object) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

// An argument, or an item of one that is a list, tuple or dict.
bool isArgument(const Source* s) {
  while (s->kind == SourceKind::SequenceItem || s->kind == SourceKind::DictItem) s = s->base;
  return s->kind == SourceKind::Local;
}

// The constant operand of an operation on ints; null where it has none.
PyObject* constantInt(const Source* s) { return s->kind == SourceKind::Pinned && PyLong_CheckExact(s->object) ? s->object : nullptr; }

using Wide = __int128;
Wide floorDivide(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
Wide ceilDivide(Wide a, Wide b) { return -floorDivide(-a, b); }

}  // namespace

bool Trace::startsOpen(PyObject* object, const Source* source) const {
  if (!source || (!options.openArguments && !options.openNames)) return false;
  if (PyLong_CheckExact(object) && !fitsInt64(object)) return false;
  if (options.openArguments && PyLong_CheckExact(object) && isArgument(source)) return true;
  return options.openNames && options.openNames->count(sources.name(source)) != 0;
}

// Every input that the number was computed from.
void Trace::specialise(const Source* source) {
  if (source->kind == SourceKind::Pinned) return;
  if (source->kind == SourceKind::Arithmetic) {
    specialise(source->base);
    specialise(source->other);
  } else {
    constant(bySource_.at(source));
  }
}

Value* Trace::computed(Arithmetic op, RealValue* left, RealValue* right) {
  ObjectRef result = compute(op, left->object.get(), right->object.get());
  if (!result || (PyLong_CheckExact(result.get()) && !fitsInt64(result.get()))) return nullptr;
  auto sourceOf = [&](RealValue* v) {
    if (!v->open) return sources.pinned(constant(v));
    typeOf(v);
    return v->source;
  };
  const Source *a = sourceOf(left), *b = sourceOf(right);
  if (!left->open && (op == Arithmetic::Add || op == Arithmetic::Mul) && PyLong_CheckExact(result.get())) std::swap(a, b);
  // n - 3 and n + 1 + 1 as one sum with a constant, so that a counter does not grow a chain.
  if (PyObject* subtrahend = op == Arithmetic::Sub ? constantInt(b) : nullptr) {
    op = Arithmetic::Add;
    b = sources.pinned(keep(checked(PyNumber_Negative(subtrahend))));
  }
  if (op == Arithmetic::Add && constantInt(b) && a->kind == SourceKind::Arithmetic && a->index == static_cast<int32_t>(Arithmetic::Add) &&
      constantInt(a->other)) {
    b = sources.pinned(keep(checked(PyNumber_Add(a->other->object, b->object))));
    a = a->base;
  }
  auto* made = make<RealValue>(std::move(result));
  made->source = sources.arithmetic(op, a, b);
  made->open = true;
  return made;
}

// As a fact about the input itself where it can be solved for it.
void Trace::observeRange(const Source* s, int64_t lower, int64_t upper) {
  constexpr Wide kLowest = INT64_MIN, kHighest = INT64_MAX;
  bool below = lower == INT64_MIN, above = upper == INT64_MAX;  // no bound there
  Wide low = lower, high = upper;
  while (s->kind == SourceKind::Arithmetic) {
    auto op = static_cast<Arithmetic>(s->index);
    PyObject *left = constantInt(s->base), *right = constantInt(s->other);
    PyObject* operand = right ? right : left;
    if (!operand || !fitsInt64(operand)) break;
    Wide c = PyLong_AsLongLong(operand), newLow = 0, newHigh = 0;
    bool flips = false;
    if (op == Arithmetic::Add && right) {
      newLow = low - c;
      newHigh = high - c;
    } else if (op == Arithmetic::Sub && left) {
      flips = true;
      newLow = c - high;
      newHigh = c - low;
    } else if (op == Arithmetic::Mul && right && c != 0) {
      flips = c < 0;
      newLow = ceilDivide(flips ? high : low, c);
      newHigh = floorDivide(flips ? low : high, c);
    } else {
      break;
    }
    bool newBelow = flips ? above : below, newAbove = flips ? below : above;
    if ((!newBelow && newLow <= kLowest) || (!newAbove && newHigh >= kHighest)) break;
    below = newBelow;
    above = newAbove;
    low = below ? kLowest : newLow;
    high = above ? kHighest : newHigh;
    s = right ? s->base : s->other;
  }
  facts.intRange(s, static_cast<int64_t>(low), static_cast<int64_t>(high));
}

Node* Trace::nodeOf(RealValue* number) {
  auto known = numberNodes_.find(number->source);
  if (known != numberNodes_.end()) return known->second;
  typeOf(number);
  const Source* source = sources.numberTensor(number->source);
  PyObject* example = keep(ObjectRef::steal(makeNumberTensor(realObject(number))));
  CD_CHECK(example != nullptr, "an open number that no tensor can hold");
  Node* node = graph.add(NodeOp::Placeholder, checked(PyUnicode_FromString(sources.name(source).c_str())), {}, {});
  node->source = source;
  node->example = example;
  node->result.kind = ResultMeta::Tensor;
  CD_CHECK(readTensorMeta(example, node->result.tensor), "the tensor of a number is not plain");
  node->place = place;
  numberNodes_.emplace(number->source, node);
  journal.onRollback([this, key = number->source] { numberNodes_.erase(key); });
  return node;
}

namespace {

ResultMeta numberResult(PyTypeObject* type) {
  ResultMeta result;
  result.kind = ResultMeta::Number;
  result.object = ObjectRef::share(reinterpret_cast<PyObject*>(type));
  return result;
}

}  // namespace

Value* Trace::callEarly(LateCall call, PyTypeObject* type) {
  earlyCalls_.push_back(std::move(call));
  journal.onRollback([this] { earlyCalls_.pop_back(); });
  if (!type) return none();
  auto* number = make<NumberValue>(type);
  number->earlyCall = static_cast<int32_t>(earlyCalls_.size() - 1);
  return number;
}

Node* Trace::nodeOf(NumberValue* number) {
  if (number->node) return number->node;
  bool real = number->type == &PyFloat_Type;
  ObjectRef one = checked(real ? PyFloat_FromDouble(0.5) : PyLong_FromLong(1));
  PyObject* example = keep(checked(makeNumberTensor(one.get())));
  std::string name = "random_value_" + std::to_string(number->earlyCall);
  Node* input = graph.add(NodeOp::Placeholder, checked(PyUnicode_FromString(name.c_str())), {}, {});
  input->earlyCall = number->earlyCall;
  input->example = example;
  input->result.kind = ResultMeta::Tensor;
  CD_CHECK(readTensorMeta(example, input->result.tensor), "the tensor of a number is not plain");
  input->place = place;
  Arg operand;
  operand.kind = Arg::NodeRef;
  operand.node = input;
  Node* node = graph.add(NodeOp::CallMethod, checked(PyUnicode_InternFromString("item")), {operand}, {});
  node->result = numberResult(number->type);
  node->place = place;
  journal.set(number->node, node);
  return node;
}

}  // namespace cdynamo
