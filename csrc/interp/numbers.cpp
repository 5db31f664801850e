// Numbers that differ from call to call: operators, comparisons, and their use as operands of tensor operations.
#include <unordered_map>
#include <unordered_set>

#include "base/lookup.h"
#include "interp/protocol.h"
#include "shapes/layout.h"

namespace cdynamo {

namespace {

// One of the two is open, and both are exact ints or floats.
bool areOpenNumbers(Value* a, Value* b) {
  if (!isOpen(a) && !isOpen(b)) return false;
  auto isNumber = [](Value* v) { return isReal(v) && (PyLong_CheckExact(realObject(v)) || PyFloat_CheckExact(realObject(v))); };
  return isNumber(a) && isNumber(b);
}

// Operations on a tensor and a number for which a tensor of no dimension gives what the number gives, bit for bit. Not
// among them: powers (the exponent's value chooses the kernel), and n / x (x.reciprocal() * n in eager mode).
bool takesNumberTensor(PyObject* target, bool isMethod) {
  if (isMethod) {
    static const std::unordered_set<std::string> names = {"add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "lt",  "le",
                                                          "eq",  "ne",  "gt",  "ge",  "add_",        "sub_",         "mul_",      "div_"};
    const char* name = PyUnicode_AsUTF8(target);
    return name && names.count(name) != 0;
  }
  static const std::unordered_set<PyObject*> functions = [] {
    std::unordered_set<PyObject*> made;
    for (const char* name : {"add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "eq", "ne", "gt", "ge", "iadd", "isub", "imul",
                             "itruediv", "ifloordiv", "imod"})
      made.insert(importedObject("operator", name));
    for (const char* name : {"add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "lt", "le", "eq", "ne", "gt", "ge"})
      made.insert(importedObject("torch", name));
    return made;
  }();
  return functions.count(target) != 0;
}

// Any comparison of numbers: a fact that it comes out as now.
Value* decided(Trace& t, int op, Value* a, Value* b) {
  Value* answer = t.computed(static_cast<Arithmetic>(static_cast<int>(Arithmetic::Less) + op), as<RealValue>(a), as<RealValue>(b));
  if (answer) t.facts.identityIs(answer->source, realObject(answer));
  return answer ? t.boolean(realObject(answer) == Py_True) : nullptr;
}

}  // namespace

Value* openNumberOp(Trace& t, int base, Value* a, Value* b) {
  if (!areOpenNumbers(a, b)) return nullptr;
  constexpr std::pair<int, Arithmetic> known[] = {{0, Arithmetic::Add}, {2, Arithmetic::FloorDiv}, {5, Arithmetic::Mul},
                                                  {6, Arithmetic::Mod}, {10, Arithmetic::Sub},     {11, Arithmetic::TrueDiv}};
  for (auto [number, op] : known)
    if (number == base) return t.computed(op, as<RealValue>(a), as<RealValue>(b));
  return nullptr;
}

Value* openNumberCompare(Trace& t, int op, Value* a, Value* b) {
  constexpr int swapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
  if (!areOpenNumbers(a, b)) return nullptr;
  if (!PyLong_CheckExact(realObject(a)) || !PyLong_CheckExact(realObject(b))) return decided(t, op, a, b);
  if (!isOpen(a)) return openNumberCompare(t, swapped[op], b, a);
  Value* difference = a;
  PyObject* limit = nullptr;
  if (isOpen(b)) {
    difference = t.computed(Arithmetic::Sub, as<RealValue>(a), as<RealValue>(b));
    if (!difference) return decided(t, op, a, b);
  } else {
    t.typeOf(a);
    limit = t.constant(b);
  }
  int overflow = 0;
  int64_t n = PyLong_AsLongLong(realObject(difference)), c = limit ? PyLong_AsLongLongAndOverflow(limit, &overflow) : 0;
  // The ends of int64 are no bounds.
  if (overflow || c <= INT64_MIN + 1 || c >= INT64_MAX - 1) return decided(t, op, a, b);
  bool less = n < c;
  bool more = n > c;
  if (op == Py_EQ || op == Py_NE) {
    if (!less && !more && a->source->kind != SourceKind::Arithmetic && limit) {
      t.constant(a);
    } else {
      t.observeRange(difference->source, less ? INT64_MIN : more ? c + 1 : c, less ? c - 1 : more ? INT64_MAX : c);
    }
    return t.boolean((less || more) == (op == Py_NE));
  }
  bool upTo = op == Py_LE || op == Py_GT;  // the boundary belongs to the lower side
  bool low = upTo ? !more : less;
  if (low)
    t.observeRange(difference->source, INT64_MIN, upTo ? c : c - 1);
  else
    t.observeRange(difference->source, upTo ? c + 1 : c, INT64_MAX);
  return t.boolean(low == (op == Py_LT || op == Py_LE));
}

RealValue* openOperand(PyObject*& target, bool isMethod, CallArgs& args) {
  if (args.args.size() != 2 || !(isOpen(args.args[0]) || isOpen(args.args[1])) || !args.kwargs.empty()) return nullptr;
  if (!takesNumberTensor(target, isMethod)) return nullptr;
  bool onLeft = isOpen(args.args[0]);
  Value* tensor = args.args[onLeft ? 1 : 0];
  auto* number = as<RealValue>(args.args[onLeft ? 0 : 1]);
  if (!isTensor(tensor)) return nullptr;
  const TensorMeta& meta = as<TensorValue>(tensor)->meta;
  if (meta.dim() == 0 || meta.dtype == DType::Bool || (PyFloat_CheckExact(number->object.get()) && isIntegral(meta.dtype, false))) return nullptr;
  if (!onLeft) return number;
  static const std::unordered_map<PyObject*, const char*> swapped = [] {
    std::unordered_map<PyObject*, const char*> made;
    for (auto [name, other] :
         {std::pair{"add", "add"}, {"mul", "mul"}, {"lt", "gt"}, {"gt", "lt"}, {"le", "ge"}, {"ge", "le"}, {"eq", "eq"}, {"ne", "ne"}})
      made[importedObject("operator", name)] = other;
    return made;
  }();
  static const std::unordered_set<PyObject*> ordered = {importedObject("operator", "sub"), importedObject("operator", "floordiv"),
                                                        importedObject("operator", "mod")};
  if (ordered.count(target)) return number;
  auto found = swapped.find(target);
  if (found == swapped.end()) return nullptr;
  target = importedObject("operator", found->second);
  std::swap(args.args[0], args.args[1]);
  return number;
}

}  // namespace cdynamo
