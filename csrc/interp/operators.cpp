// Operators, comparisons and truth of symbolic values.
#include <cmath>
#include <cstring>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"
#include "interp/percent.h"
#include "interp/protocol.h"
#include "interp/ranges.h"
#include "interp/references.h"
#include "interp/special_methods.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

struct OperatorNames {
  const char* function;  // in module operator
  const char* method;
  const char* reflected;
  const char* symbol;
};

// By NB_* number; the in-place forms follow at +13.
constexpr OperatorNames kBinary[] = {
    {"add", "__add__", "__radd__", "+"},
    {"and_", "__and__", "__rand__", "&"},
    {"floordiv", "__floordiv__", "__rfloordiv__", "//"},
    {"lshift", "__lshift__", "__rlshift__", "<<"},
    {"matmul", "__matmul__", "__rmatmul__", "@"},
    {"mul", "__mul__", "__rmul__", "*"},
    {"mod", "__mod__", "__rmod__", "%"},
    {"or_", "__or__", "__ror__", "|"},
    {"pow", "__pow__", "__rpow__", "** or pow()"},
    {"rshift", "__rshift__", "__rrshift__", ">>"},
    {"sub", "__sub__", "__rsub__", "-"},
    {"truediv", "__truediv__", "__rtruediv__", "/"},
    {"xor", "__xor__", "__rxor__", "^"},
};
constexpr int kInplace = 13;

PyObject* operatorFunction(const std::string& name) { return importedObject("operator", name.c_str()); }

PyObject* nativeInplace(int op, PyObject* a, PyObject* b) {
  switch (op - kInplace) {
    case 0: return PyNumber_InPlaceAdd(a, b);
    case 1: return PyNumber_InPlaceAnd(a, b);
    case 2: return PyNumber_InPlaceFloorDivide(a, b);
    case 3: return PyNumber_InPlaceLshift(a, b);
    case 4: return PyNumber_InPlaceMatrixMultiply(a, b);
    case 5: return PyNumber_InPlaceMultiply(a, b);
    case 6: return PyNumber_InPlaceRemainder(a, b);
    case 7: return PyNumber_InPlaceOr(a, b);
    case 8: return PyNumber_InPlacePower(a, b, Py_None);
    case 9: return PyNumber_InPlaceRshift(a, b);
    case 10: return PyNumber_InPlaceSubtract(a, b);
    case 11: return PyNumber_InPlaceTrueDivide(a, b);
    default: return PyNumber_InPlaceXor(a, b);
  }
}

PyObject* nativeBinary(int op, PyObject* a, PyObject* b) {
  switch (op) {
    case 0: return PyNumber_Add(a, b);
    case 1: return PyNumber_And(a, b);
    case 2: return PyNumber_FloorDivide(a, b);
    case 3: return PyNumber_Lshift(a, b);
    case 4: return PyNumber_MatrixMultiply(a, b);
    case 5: return PyNumber_Multiply(a, b);
    case 6: return PyNumber_Remainder(a, b);
    case 7: return PyNumber_Or(a, b);
    case 8: return PyNumber_Power(a, b, Py_None);
    case 9: return PyNumber_Rshift(a, b);
    case 10: return PyNumber_Subtract(a, b);
    case 11: return PyNumber_TrueDivide(a, b);
    case 12: return PyNumber_Xor(a, b);
    default: return nativeInplace(op, a, b);
  }
}

std::string inplaceName(int op) {
  std::string name = kBinary[op % kInplace].function;
  if (name.back() == '_') name.pop_back();
  return "i" + name;
}

bool isNotImplemented(Value* v) { return isReal(v, Py_NotImplemented); }

// The special method found on the type, called with self and other; null where missing or NotImplemented.
Value* trySpecial(Trace& t, Value* self, const char* name, Value* other) {
  Value* method = specialMethod(t, self, name);
  if (!method) return nullptr;
  Value* v = call1(t, method, other);
  return isNotImplemented(v) ? nullptr : v;
}

bool isContainer(Value* v) { return asList(v) || asTuple(v) || asDict(v) || asSet(v); }

std::vector<Value*> repeat(const std::vector<Value*>& items, long long n) {
  std::vector<Value*> out;
  if (!items.empty() && n > static_cast<long long>(kMostItems / items.size()))
    unsupported(BreakReason::UnsupportedOperator, "a sequence repeated to more than a million items");
  for (long long i = 0; i < n; i++) out.insert(out.end(), items.begin(), items.end());
  return out;
}

// Sequence and set operators on symbolic containers of exact builtin types; null where they do not apply.
Value* containerOp(Trace& t, int op, Value* a, Value* b) {
  int base = op % kInplace;
  bool inplace = op >= kInplace;
  auto isDeque = [](Value* v) { return v->kind == Kind::List && as<ListValue>(v)->type == dequeType(); };
  // A new sequence like `like` with these items; a deque keeps its bound.
  auto made = [&](Value* like, std::vector<Value*> items) -> Value* {
    if (like->kind != Kind::List) return t.tuple(std::move(items));
    auto* l = as<ListValue>(like);
    if (l->maxlen >= 0 && static_cast<int64_t>(items.size()) > l->maxlen) items.erase(items.begin(), items.end() - l->maxlen);
    ListValue* out = t.list(std::move(items));
    out->type = l->type == dequeType() ? dequeType() : &PyList_Type;
    out->maxlen = l->maxlen;
    return out;
  };
  if (base == 0) {
    if (a->kind == Kind::List && inplace) {
      call1(t, getAttr(t, a, "extend"), b);
      return a;
    }
    if (a->kind == Kind::List && b->kind == Kind::List && isDeque(a) == isDeque(b)) {
      auto items = itemsOf(t, a);
      auto more = itemsOf(t, b);
      items.insert(items.end(), more.begin(), more.end());
      return made(a, std::move(items));
    }
    auto isTupleLike = [](Value* v) { return asTuple(v) || (isReal(v) && PyTuple_Check(realObject(v))); };
    if (isTupleLike(a) && isTupleLike(b)) {
      auto items = itemsOf(t, a);
      auto more = itemsOf(t, b);
      items.insert(items.end(), more.begin(), more.end());
      bool size = a->kind == Kind::Tuple && as<TupleValue>(a)->type == sizeType() && b->kind == Kind::Tuple && as<TupleValue>(b)->type == sizeType();
      return t.tuple(std::move(items), size ? sizeType() : &PyTuple_Type);
    }
  }
  if (base == 5) {
    for (int side = 0; side < 2; side++) {
      Value* seq = side ? b : a;
      Value* count = side ? a : b;
      if (seq->kind != Kind::List && !asTuple(seq)) continue;
      if (isDeque(seq) && !inplace) t.load(as<ListValue>(seq));
      Value* number = isReal(count) && PyLong_Check(realObject(count)) ? count : nullptr;
      if (!number) continue;
      long long n = std::max(0LL, indexArgument(t, number));
      if (n == 1 && t.typeOf(seq) == &PyTuple_Type) return seq;
      auto own = itemsOf(t, seq);
      if (!own.empty() && n > 10'000'000 / static_cast<long long>(own.size()))
        unsupported(BreakReason::UnsupportedOperator, "a very long sequence made by repetition");
      auto items = repeat(own, n);
      if (inplace && !side && seq->kind == Kind::List) {
        t.setItems(as<ListValue>(seq), as<ListValue>(made(seq, std::move(items)))->items);
        return seq;
      }
      return made(seq, std::move(items));
    }
  }
  if (base == 7 && inplace && a->kind == Kind::Dict && b->kind != Kind::Dict) {
    call1(t, getAttr(t, a, "update"), b);
    return a;
  }
  if (base == 7 && a->kind == Kind::Dict && b->kind == Kind::Dict) {
    DictValue* into = as<DictValue>(a);
    t.complete(as<DictValue>(a));
    t.complete(as<DictValue>(b));
    if (!inplace) {
      // The right operand's type says what is made where it is the more special one.
      auto* like =
          as<DictValue>(as<DictValue>(b)->type != as<DictValue>(a)->type && PyType_IsSubtype(as<DictValue>(b)->type, as<DictValue>(a)->type) ? b : a);
      into = t.dict();
      // A subclass of dict gives a plain one.
      into->type = like->holder ? &PyDict_Type : like->type;
      into->defaultFactory = defaultFactory(t, like);
      for (const DictEntry& e : as<DictValue>(a)->entries)
        if (e.value) t.dictSet(into, e.key, e.value);
    }
    for (const DictEntry& e : as<DictValue>(b)->entries)
      if (e.value) t.dictSet(into, e.key, e.value);
    return into;
  }
  if (base == 1 || base == 7 || base == 10 || base == 12) return setOperator(t, op, a, b);
  return nullptr;
}

// Breaks where C code that is not modelled has the last word: the type's own method of that name, but for plain numbers'.
void refuseOwnMethod(Trace& t, Value* v, const char* name) {
  PyObject* key = t.keep(checked(PyUnicode_InternFromString(name)));
  PyObject* d = typeLookup(t.typeOf(v), key);
  if (!d || Py_TYPE(d) != &PyWrapperDescr_Type) return;
  PyTypeObject* owner = reinterpret_cast<PyDescrObject*>(d)->d_type;
  bool sequence = owner == &PyUnicode_Type || owner == &PyBytes_Type || owner == &PyList_Type || owner == &PyTuple_Type;
  if (sequence && (!std::strcmp(name, "__mul__") || !std::strcmp(name, "__rmul__"))) return;
  if (owner == &PyLong_Type || owner == &PyFloat_Type || owner == &PyBool_Type || owner == &PyComplex_Type || owner == &PyBaseObject_Type) return;
  unsupported(BreakReason::UnsupportedOperator, std::string(name) + " of " + describe(v));
}

// A NumPy scalar on the left of a tensor leaves the operation to the tensor, which takes it for the number that it is.
Value* plainNumber(Trace& t, Value* v, bool refuses) {
  PyObject* scalar = isReal(v) && isNumpyScalarType(Py_TYPE(realObject(v))) ? t.constant(v) : nullptr;
  if (!scalar) return v;
  ObjectRef number = checked(PyObject_CallMethod(scalar, "item", nullptr));
  bool known = PyFloat_CheckExact(number.get()) || PyLong_CheckExact(number.get());
  if (refuses || !known) unsupported(BreakReason::NumpyCall, "a NumPy scalar on the left of a tensor");
  return t.real(std::move(number));
}

// An empty object of the value's type where it is a builtin one whose refusals name types only; null: any other.
ObjectRef blankOf(Trace& t, Value* v) {
  PyTypeObject* type = t.typeOf(v);
  for (PyTypeObject* known :
       {&PyList_Type, &PyTuple_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type, &PyLong_Type, &PyFloat_Type, &PyUnicode_Type})
    if (type == known) return checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type)));
  return {};
}

// [1] + (1,): raises what CPython says of these types.
void refuseByTypes(Trace& t, int op, Value* a, Value* b) {
  ObjectRef left = blankOf(t, a), right = left ? blankOf(t, b) : ObjectRef();
  if (!right || Py_TYPE(left.get()) == Py_TYPE(right.get())) return;
  if (!ObjectRef::steal(nativeBinary(op, left.get(), right.get()))) raiseCurrent(t);
}

[[noreturn]] void badOperands(Trace& t, int op, Value* a, Value* b) {
  const char* symbol = kBinary[op % kInplace].symbol;
  bool inplace = op >= kInplace;
  // Sequences are asked last, and say it in their own words.
  PyTypeObject *left = t.typeOf(a), *right = t.typeOf(b);
  auto repeats = [](PyTypeObject* type) { return type->tp_as_sequence && type->tp_as_sequence->sq_repeat; };
  if (*symbol == '*' && symbol[1] == 0 && (repeats(left) || repeats(right)))
    raise(t, PyExc_TypeError, std::string("can't multiply sequence by non-int of type '") + (repeats(left) ? right : left)->tp_name + "'");
  for (PyTypeObject* type : {&PyUnicode_Type, &PyList_Type, &PyTuple_Type})
    if (*symbol == '+' && PyType_IsSubtype(left, type) && !inplace)
      raise(t, PyExc_TypeError, std::string("can only concatenate ") + type->tp_name + " (not \"" + right->tp_name + "\") to " + type->tp_name);
  raise(t, PyExc_TypeError,
        std::string("unsupported operand type(s) for ") + operatorSymbol(op) + ": '" + left->tp_name + "' and '" + right->tp_name + "'");
}

}  // namespace

namespace {

// The right operand's class is a subclass of the left one's with another reflected method: that is asked first.
bool overloadsReflected(Trace& t, Value* left, Value* right, const char* reflected) {
  PyTypeObject *a = t.typeOf(left), *b = t.typeOf(right);
  if (a == b || !PyType_IsSubtype(b, a)) return false;
  PyObject* name = t.keep(checked(PyUnicode_InternFromString(reflected)));
  PyObject* own = lookUp(t, b, name);
  return own && own != lookUp(t, a, name);
}

}  // namespace

const char* reflectedMethod(int op) { return kBinary[op % kInplace].reflected; }
const char* operatorSymbol(int op) {
  static const auto inplace = [] {
    std::array<std::string, kInplace> made;
    for (size_t i = 0; i < made.size(); i++) made[i] = (i == 8 ? std::string("**") : kBinary[i].symbol) + "=";
    return made;
  }();
  return op < kInplace ? kBinary[op].symbol : inplace[static_cast<size_t>(op - kInplace)].c_str();
}
const char* inplaceMethod(int op) {
  if (op < kInplace) return nullptr;
  static const auto names = [] {
    std::array<std::string, kInplace> made;
    for (size_t i = 0; i < made.size(); i++) made[i] = std::string("__i") + (kBinary[i].method + 2);
    return made;
  }();
  return names[static_cast<size_t>(op - kInplace)].c_str();
}
PyObject* operatorFunction(int op) { return operatorFunction(std::string(kBinary[op % kInplace].function)); }

Value* leftMethod(Trace& t, int op, Value* left, Value* right) {
  if (left->kind != Kind::Instance) return nullptr;
  const OperatorNames& names = kBinary[op % kInplace];
  Value* method = pythonMethod(t, left, names.method);
  if (!method) return nullptr;
  if (op >= kInplace && specialMethod(t, left, inplaceMethod(op))) return nullptr;
  return overloadsReflected(t, left, right, names.reflected) ? nullptr : method;
}

namespace {

// + * | of objects whose classes inherit them from list, tuple or dict; null for all else.
Value* inheritedOp(Trace& t, int op, Value* a, Value* b) {
  const OperatorNames& names = kBinary[op % kInplace];
  auto part = [&](Value* v, const char* method) -> Value* {
    HeapValue* contents = v->kind == Kind::Instance ? as<InstanceValue>(v)->contents : nullptr;
    if (!contents || contents->kind == Kind::Set || PyType_IsSubtype(contents->type, &PyODict_Type)) return v;
    if (overrides(t, v, method) || (op >= kInplace && overrides(t, v, inplaceMethod(op)))) return nullptr;
    return contents;
  };
  Value *x = part(a, names.method), *y = part(b, names.reflected);
  if (!x || !y || (x == a && y == b) || x->kind == Kind::Instance || y->kind == Kind::Instance) return nullptr;
  Value* made = containerOp(t, op, x, y);
  if (made == x) return a;  // in place
  if (made && made->kind == Kind::Dict) as<DictValue>(made)->type = &PyDict_Type;
  return made;
}

}  // namespace

Value* binaryOp(Trace& t, int op, Value* a, Value* b, bool leftAsked) {
  int base = op % kInplace;
  bool inplace = op >= kInplace;
  if (isLateText(a) || (isLateText(b) && base != 6)) {
    if (base == 0 && t.typeOf(a) == &PyUnicode_Type && t.typeOf(b) == &PyUnicode_Type)
      if (Value* late = lateJoin(t, t.string(""), {a, b})) return late;
    unsupported(BreakReason::UnsupportedOperator, "an operator on a text that shows tensors");
  }
  if (isTensor(a)) {
    PyObject* member = b->kind == Kind::Instance ? t.constant(b) : nullptr;  // of an IntEnum or the like
    if (Value* core = coreOf(t, b)) b = core;
    if (member && PyLong_Check(member)) b = t.real(checked(PyLong_Type.tp_as_number->nb_int(member)));
  }
  if (isTensor(b))
    if (Value* core = coreUnless(t, a, {kBinary[base].method})) a = core;
  if ((isArray(a) || isArray(b)) && a->kind != Kind::Instance && b->kind != Kind::Instance)
    return arrayOperator(t, inplace && isArray(a) ? inplaceName(op) : kBinary[base].function, {a, b});
  if (isTensor(b)) a = plainNumber(t, a, base == 4 || isOverridden(t, CallArgs{{a, b}, {}}));
  bool formats = base == 6 && isReal(a) && PyUnicode_Check(realObject(a));  // "%s" % x
  if ((isTensor(a) || isTensor(b)) && !formats) {
    if (inplace && isTensor(a) && isOverridden(t, CallArgs{{a, b}, {}}))
      if (Value* v = overriddenBinary(t, inplaceMethod(op), nullptr, a, b)) return v;
    if (Value* v = overriddenBinary(t, kBinary[base].method, kBinary[base].reflected, a, b)) return v;
    if (a->kind != Kind::Instance && b->kind != Kind::Instance) {
      bool onTensor = inplace && isTensor(a);
      return recordOp(t, operatorFunction(onTensor ? inplaceName(op) : kBinary[base].function), false, {{a, b}, {}});
    }
  }
  if (base == 5)
    for (int side = 0; side < 2; side++) {
      // An index times a sequence.
      Value *sequence = side ? b : a, *&times = side ? a : b;
      bool repeats = sequence->kind == Kind::List || sequence->kind == Kind::Tuple || (isReal(sequence) && PySequence_Check(realObject(sequence)));
      if (!repeats || times->kind != Kind::Instance || overrides(t, times, "__mul__") || overrides(t, times, "__rmul__")) continue;
      if (Value* index = indexValue(t, times)) times = index;
    }
  if (Value* v = openNumberOp(t, base, a, b)) return v;
  if (isNumber(a) || isNumber(b))
    if (Value* v = numberOp(t, base, a, b)) return v;
  PyObject* ca = a->kind == Kind::List || a->kind == Kind::Dict || isNumber(a) ? nullptr : t.constant(a);
  PyObject* cb = ca && !isNumber(b) && !isTensor(b) ? t.constant(b) : nullptr;
  if (ca && cb && (t.localClass(ca) || t.localClass(cb)))
    unsupported(BreakReason::UnsupportedOperator, "an operator on a class that the program made");
  if (ca && cb) {
    // An operand that is its own result stays the object that it is.
    ObjectRef made = native(t, nativeBinary(op, ca, cb));
    return made.get() == ca ? a : made.get() == cb ? b : t.real(std::move(made));
  }
  if (a->kind != Kind::Instance && b->kind != Kind::Instance &&
      (isContainer(a) || isContainer(b) || a->kind == Kind::DictView || b->kind == Kind::DictView)) {
    if (Value* v = containerOp(t, op, a, b)) return v;
  }
  if (base == 6 && ca && PyUnicode_Check(ca)) return percentText(t, ca, a, b);
  const OperatorNames& names = kBinary[base];
  if (Value* v = inheritedOp(t, op, a, b)) return v;
  if (inplace) {
    if (a->kind == Kind::Instance) {
      std::string method = std::string("__i") + (names.method + 2);
      if (Value* v = trySpecial(t, a, method.c_str(), b)) return v;
    }
  }
  if (a->kind == Kind::Instance || b->kind == Kind::Instance) {
    PyTypeObject *ta = t.typeOf(a), *tb = t.typeOf(b);
    bool reflectedFirst = b->kind == Kind::Instance && overloadsReflected(t, a, b, names.reflected);
    if (reflectedFirst)
      if (Value* v = trySpecial(t, b, names.reflected, a)) return v;
    if (a->kind == Kind::Instance && !leftAsked)
      if (Value* v = trySpecial(t, a, names.method, b)) return v;
    if (b->kind == Kind::Instance && !reflectedFirst && ta != tb)
      if (Value* v = trySpecial(t, b, names.reflected, a)) return v;
    if (isTensor(a) || isTensor(b)) return recordOp(t, operatorFunction(names.function), false, {{a, b}, {}});
    // The builtin type's own method answers only where the class has not put another in its place.
    bool leftIsNative = a->kind != Kind::Instance || !overrides(t, a, names.method);
    bool rightIsNative = ta != tb && (b->kind != Kind::Instance || !overrides(t, b, names.reflected));
    if (Value* x = coreOf(t, a), *y = coreOf(t, b); (x || y) && (leftIsNative || rightIsNative)) return binaryOp(t, op, x ? x : a, y ? y : b);
    refuseOwnMethod(t, a, names.method);
    if (base != 5 || b->kind == Kind::Instance) refuseOwnMethod(t, b, names.reflected);
    badOperands(t, op, a, b);
  }
  if (isReal(a) && isReal(b)) unsupported(BreakReason::UnsupportedOperator, std::string(names.symbol) + " on " + describe(a) + " and " + describe(b));
  if (!inplace) refuseByTypes(t, op, a, b);
  refuseOwnMethod(t, a, names.method);
  refuseOwnMethod(t, b, names.reflected);
  badOperands(t, op, a, b);
}

Value* unaryOp(Trace& t, char op, Value* v) {
  if (isNumber(v)) return numberUnary(t, op, as<NumberValue>(v));
  if (isArray(v)) return arrayOperator(t, op == '-' ? "neg" : op == '+' ? "pos" : "invert", {v});
  if (isOpen(v) && PyLong_CheckExact(realObject(v))) {
    if (op == '+') return v;
    if (Value* negated = op == '-' ? openNumberOp(t, 5, v, t.integer(-1)) : nullptr) return negated;
  }
  if (isTensor(v) && isOverridden(t, CallArgs{{v}, {}}))
    return call(t, specialMethod(t, v, op == '-' ? "__neg__" : op == '+' ? "__pos__" : "__invert__"), {});
  if (isTensor(v)) return recordOp(t, operatorFunction(op == '-' ? "neg" : op == '+' ? "pos" : "invert"), false, {{v}, {}});
  if (PyObject* c = t.constant(v)) return t.real(native(t, op == '-' ? PyNumber_Negative(c) : op == '+' ? PyNumber_Positive(c) : PyNumber_Invert(c)));
  const char* name = op == '-' ? "__neg__" : op == '+' ? "__pos__" : "__invert__";
  if (v->kind == Kind::Instance)
    if (Value* method = specialMethod(t, v, name)) return call(t, method, {});
  refuseOwnMethod(t, v, name);
  raise(t, PyExc_TypeError, std::string("bad operand type for unary ") + op + ": '" + t.typeOf(v)->tp_name + "'");
}

// ---- comparison ------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kCompareFunction[] = {"lt", "le", "eq", "ne", "gt", "ge"};
constexpr const char* kCompareMethod[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
constexpr const char* kCompareSymbol[] = {"<", "<=", "==", "!=", ">", ">="};
constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};

bool isSequenceLike(Value* v) { return asList(v) || asTuple(v) || (isReal(v) && (PyTuple_Check(realObject(v)) || PyList_Check(realObject(v)))); }

// list, tuple or deque: only two of one kind compare item by item.
bool sequenceKindMatches(Trace& t, Value* a, Value* b) {
  auto kindOf = [&](Value* v) {
    PyTypeObject* type = t.typeOf(v);
    return PyType_FastSubclass(type, Py_TPFLAGS_LIST_SUBCLASS) ? 0 : PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS) ? 1 : 2;
  };
  return kindOf(a) == kindOf(b);
}

// Whether C code that is not modelled compares v: of a type of its own, or of the builtin type that its class is made of.
bool comparesInC(Trace& t, Value* v, const char* method = "__eq__") {
  switch (v->kind) {
    case Kind::DictView: return true;
    case Kind::Real:
      if (!v->source || t.typeOf(v) == &PySlice_Type || t.isConstant(v)) return false;
      break;
    case Kind::Instance:
      if (as<InstanceValue>(v)->contents || coreType(t.typeOf(v))) return false;
      break;
    default: return false;
  }
  PyObject* d = typeLookup(t.typeOf(v), t.keep(checked(PyUnicode_InternFromString(method))));
  return d && Py_TYPE(d) == &PyWrapperDescr_Type && reinterpret_cast<PyDescrObject*>(d)->d_type != &PyBaseObject_Type && !polyfillOf(d);
}

bool isNan(Trace& t, Value* v) {
  if (!isReal(v) || !PyFloat_CheckExact(realObject(v))) return false;
  PyObject* number = t.constant(v);
  return number && std::isnan(PyFloat_AS_DOUBLE(number));
}

Value* partsOfSlice(Trace& t, Value* slice) { return t.tuple({getAttr(t, slice, "start"), getAttr(t, slice, "stop"), getAttr(t, slice, "step")}); }

}  // namespace

namespace {

// Containers that hold themselves: CPython counts the comparisons that are under way, and raises RecursionError at its limit.
struct DeeperComparison {
  static constexpr int kMost = 200;
  DeeperComparison() {
    if (under >= kMost) unsupported(BreakReason::RecursionLimit, "comparisons of containers nested more than " + std::to_string(kMost) + " deep");
    under++;
  }
  ~DeeperComparison() { under--; }
  static thread_local int under;
};
thread_local int DeeperComparison::under = 0;

}  // namespace

bool equals(Trace& t, Value* a, Value* b) {
  if (a == b) return true;
  DeeperComparison deeper;
  if (isNan(t, a) && isNan(t, b)) return isSame(t, a, b);  // not equal to itself, but containers ask for identity first
  return truth(t, compareOp(t, Py_EQ, a, b));
}

const char* compareMethod(int op) { return kCompareMethod[op]; }
const char* compareSymbol(int op) { return kCompareSymbol[op]; }
int swappedComparison(int op) { return kSwapped[op]; }

Value* compareOp(Trace& t, int op, Value* a, Value* b) {
  if (isTensor(a) || isTensor(b))
    if (Value* v = overriddenBinary(t, kCompareMethod[op], kCompareMethod[kSwapped[op]], a, b)) return v;
  if ((isArray(a) || isArray(b)) && a->kind != Kind::Instance && b->kind != Kind::Instance) return arrayOperator(t, kCompareFunction[op], {a, b});
  if (isTensor(b)) a = plainNumber(t, a, false);
  if ((isTensor(a) || isTensor(b)) && a->kind != Kind::Instance && b->kind != Kind::Instance) {
    Value* other = isTensor(a) ? b : a;
    if ((op == Py_EQ || op == Py_NE) && !isTensor(other) && !isOpen(other) && !isNumber(other) && !t.isConstant(other)) return t.boolean(op == Py_NE);
    if ((op == Py_EQ || op == Py_NE) && isReal(other) && !PyNumber_Check(realObject(other))) return t.boolean(op == Py_NE);
    return recordOp(t, operatorFunction(kCompareFunction[op]), false, {{a, b}, {}});
  }
  if (Value* v = openNumberCompare(t, op, a, b)) return v;
  if (isNumber(a) || isNumber(b))
    if (Value* v = numberCompare(t, op, a, b)) return v;
  // ids of objects that the trace made.
  if (isLateText(a) && isLateText(b) && t.typeOf(a) == &PyLong_Type && t.typeOf(b) == &PyLong_Type && (op == Py_EQ || op == Py_NE))
    return t.boolean((a == b) == (op == Py_EQ));
  PyObject* ca = isNumber(a) ? nullptr : t.constant(a);
  PyObject* cb = ca && !isNumber(b) ? t.constant(b) : nullptr;
  if (ca && cb) return t.real(native(t, PyObject_RichCompare(ca, cb, op)));
  if (Value* v = compareProxies(t, op, a, b)) return v;
  RecursiveCall nested(t, " in comparison");
  if (a == b && isLateText(a)) return t.boolean(op == Py_EQ || op == Py_LE || op == Py_GE);
  if (a->kind == Kind::Instance || b->kind == Kind::Instance) {
    PyTypeObject *ta = t.typeOf(a), *tb = t.typeOf(b);
    auto overrides = [&](Value* v, int o) {
      if (v->kind != Kind::Instance) return false;
      static PyObject* names[6] = {};
      if (!names[o]) names[o] = PyUnicode_InternFromString(kCompareMethod[o]);
      PyObject* d = lookUp(t, t.typeOf(v), names[o]);
      bool plain = d && Py_TYPE(d) == &PyWrapperDescr_Type && PyType_IsSubtype(t.typeOf(v), reinterpret_cast<PyDescrObject*>(d)->d_type);
      return d && (!plain || polyfillOf(d));
    };
    // v's answer; object.__ne__ asks for v's __eq__. Null: none.
    auto ask = [&](Value* v, int o, Value* other) -> Value* {
      if (overrides(v, o)) return trySpecial(t, v, kCompareMethod[o], other);
      if (o != Py_NE || !overrides(v, Py_EQ) || comparesInC(t, v, "__ne__") || coreOf(t, v)) return nullptr;
      Value* equal = trySpecial(t, v, "__eq__", other);
      return equal ? t.boolean(!truth(t, equal)) : nullptr;
    };
    bool reflectedFirst = ta != tb && PyType_IsSubtype(tb, ta);
    if (reflectedFirst)
      if (Value* v = ask(b, kSwapped[op], a)) return v;
    // What C code of the left operand's builtin base compares is not asked of the right one.
    if (Value* x = coreOf(t, a), *y = coreOf(t, b); x && (y || isReal(b)) && !overrides(a, op) && !(op == Py_NE && overrides(a, Py_EQ)))
      return compareOp(t, op, x, y ? y : b);
    if (a->kind == Kind::Instance && !overrides(a, op) && comparesInC(t, a, kCompareMethod[op]))
      unsupported(BreakReason::UnsupportedComparison, "comparing " + describe(a));
    if (Value* v = ask(a, op, b)) return v;
    if (!reflectedFirst)
      if (Value* v = ask(b, kSwapped[op], a)) return v;
  }
  if (a->kind == Kind::Cell && b->kind == Kind::Cell) {
    // By what they hold; an empty one is less than all others.
    Value *x = t.cellContents(as<CellValue>(a)), *y = t.cellContents(as<CellValue>(b));
    return x && y ? compareOp(t, op, x, y) : compareOp(t, op, t.boolean(!y), t.boolean(!x));
  }
  if (a->kind == Kind::BoundMethod && b->kind == Kind::BoundMethod && (op == Py_EQ || op == Py_NE)) {
    auto *x = as<BoundMethodValue>(a), *y = as<BoundMethodValue>(b);
    return t.boolean((isSame(t, x->self, y->self) && equals(t, x->function, y->function)) == (op == Py_EQ));
  }
  if (t.typeOf(a) == &PySlice_Type && t.typeOf(b) == &PySlice_Type) return compareOp(t, op, partsOfSlice(t, a), partsOfSlice(t, b));
  if (isSequenceLike(a) && isSequenceLike(b)) {
    if (!sequenceKindMatches(t, a, b)) {
      if (op == Py_EQ || op == Py_NE) return t.boolean(op == Py_NE);
      raise(t, PyExc_TypeError,
            std::string("'") + kCompareSymbol[op] + "' not supported between instances of '" + t.typeOf(a)->tp_name + "' and '" +
                t.typeOf(b)->tp_name + "'");
    }
    auto x = itemsOf(t, a), y = itemsOf(t, b);
    if (x.size() != y.size() && (op == Py_EQ || op == Py_NE)) return t.boolean(op == Py_NE);
    size_t i = 0;
    while (i < x.size() && i < y.size()) {
      uint64_t before = t.writes;
      bool same = equals(t, x[i], y[i]);
      if (t.writes != before) x = itemsOf(t, a), y = itemsOf(t, b);  // a comparison of the program may change both lists
      if (!same) break;
      i++;
    }
    if (i >= x.size() || i >= y.size()) {
      ObjectRef sx = checked(PyLong_FromSize_t(x.size())), sy = checked(PyLong_FromSize_t(y.size()));
      return t.real(native(t, PyObject_RichCompare(sx.get(), sy.get(), op)));
    }
    if (op == Py_EQ) return t.boolean(false);
    if (op == Py_NE) return t.boolean(true);
    return compareOp(t, op, x[i], y[i]);
  }
  if (asDict(a) && asDict(b) && (op == Py_EQ || op == Py_NE)) {
    DictValue *x = asDict(a), *y = asDict(b);
    t.complete(x);
    t.complete(y);
    bool same = x->live == y->live;
    // Two ordered dicts compare their order too.
    if (same && PyType_IsSubtype(x->type, &PyODict_Type) && PyType_IsSubtype(y->type, &PyODict_Type)) {
      auto left = itemsOf(t, x), right = itemsOf(t, y);
      for (size_t i = 0; same && i < left.size(); i++) same = equals(t, left[i], right[i]);
    }
    for (size_t i = 0; same && i < x->entries.size(); i++) {
      // A comparison of the program may change both dicts.
      DictEntry mine = x->entries[i];
      if (!mine.value) continue;
      Value* other = t.dictGet(y, mine.key);
      same = other && equals(t, mine.value, other);
    }
    return t.boolean(same == (op == Py_EQ));
  }
  auto setLike = [](Value* v) {
    return asSet(v) || (isReal(v) && PyAnySet_Check(realObject(v))) ||
           (v->kind == Kind::DictView && as<DictViewValue>(v)->what == DictViewValue::Keys);
  };
  if (setLike(a) && setLike(b)) {
    auto x = unorderedItems(t, a), y = unorderedItems(t, b);
    size_t common = 0;
    auto* other = t.make<SetValue>();
    for (Value* v : y) t.setAdd(other, t.keyOf(v));
    for (Value* v : x) common += t.setHas(other, t.keyOf(v));
    bool sub = common == x.size(), super = common == y.size();
    switch (op) {
      case Py_EQ: return t.boolean(sub && super);
      case Py_NE: return t.boolean(!(sub && super));
      case Py_LE: return t.boolean(sub);
      case Py_GE: return t.boolean(super);
      case Py_LT: return t.boolean(sub && !super);
      default: return t.boolean(super && !sub);
    }
  }
  auto isView = [](Value* v) { return v->kind == Kind::DictView && as<DictViewValue>(v)->what != DictViewValue::Values; };
  if ((isView(a) && (isView(b) || setLike(b))) || (isView(b) && setLike(a))) {
    auto within = [&](Value* inner, Value* outer) {
      for (Value* v : unorderedItems(t, inner))
        if (!contains(t, outer, v)) return false;
      return true;
    };
    Py_ssize_t x = length(t, a), y = length(t, b);
    switch (op) {
      case Py_EQ: return t.boolean(x == y && within(a, b));
      case Py_NE: return t.boolean(!(x == y && within(a, b)));
      case Py_LE: return t.boolean(x <= y && within(a, b));
      case Py_LT: return t.boolean(x < y && within(a, b));
      case Py_GE: return t.boolean(x >= y && within(b, a));
      default: return t.boolean(x > y && within(b, a));
    }
  }
  if (Value* x = coreOf(t, a), *y = coreOf(t, b); x || y) return compareOp(t, op, x ? x : a, y ? y : b);
  for (Value* v : {a, b})
    if (v->kind == Kind::Instance && coreType(t.typeOf(v))) unsupported(BreakReason::UnsupportedComparison, "comparing " + describe(v));
  // torch.Tensor.shape.__get__ and the like are equal by what they are bound to, and know nothing but each other.
  if ((op == Py_EQ || op == Py_NE) && isReal(a) && isReal(b) && (t.typeOf(a) == &_PyMethodWrapper_Type || t.typeOf(b) == &_PyMethodWrapper_Type))
    return t.real(native(t, PyObject_RichCompare(t.identity(a), t.identity(b), op)));
  // An object of a C type that compares in its own way, with anything that it may know.
  for (Value* v : {a, b})
    if ((a != b || (op != Py_EQ && op != Py_NE)) && comparesInC(t, v)) unsupported(BreakReason::UnsupportedComparison, "comparing " + describe(v));
  if (op == Py_EQ || op == Py_NE) {
    // Different kinds, or objects without their own comparison: identity.
    if (isReal(a) && isReal(b) && a->source == nullptr && b->source == nullptr)
      return t.real(native(t, PyObject_RichCompare(realObject(a), realObject(b), op)));
    return t.boolean(isSame(t, a, b) == (op == Py_EQ));
  }
  raise(t, PyExc_TypeError,
        std::string("'") + kCompareSymbol[op] + "' not supported between instances of '" + t.typeOf(a)->tp_name + "' and '" + t.typeOf(b)->tp_name +
            "'");
}

bool isSame(Trace& t, Value* a, Value* b) {
  if (a == b) return true;
  if (bool known = false, same = isSameReference(t, a, b, known); known) return same;
  if (isNumber(a) || isNumber(b)) {
    // Small ints and the two bools are single objects.
    Value* other = isNumber(a) ? b : a;
    if (isNumber(other) || (isReal(other) && PyNumber_Check(realObject(other))))
      unsupported(BreakReason::NumberValue, "the identity of " + describe(isNumber(a) ? a : b));
    return false;
  }
  // What was computed is another object than any other, but for small ints.
  auto isComputed = [](Value* v) { return isReal(v) && v->source && v->source->kind == SourceKind::Arithmetic; };
  if (isReal(a) && isReal(b) && (isComputed(a) || isComputed(b))) {
    for (Value* v : {a, b})
      if (Value* other = v == a ? b : a; isComputed(v) && PyNumber_Check(realObject(other))) t.constant(v);
    return realObject(a) == realObject(b);
  }
  // Only whether it is None (or another singleton) is looked at.
  for (int side = 0; side < 2; side++) {
    Value* single = side ? a : b;
    Value* other = side ? b : a;
    if (!isReal(single) || single->source) continue;
    PyObject* object = realObject(single);
    if (other->kind == Kind::Real && other->source) {
      if (realObject(other) == object) {
        t.facts.identityIs(other->source, object);
        return true;
      }
      t.facts.identityIsNot(other->source, object);
      return false;
    }
    if (other->kind == Kind::Real) return realObject(other) == object;
    auto* heap = dynamic_cast<HeapValue*>(other);
    if (heap && heap->source) {
      if (heap->real.get() == object) {
        t.facts.identityIs(heap->source, object);
        return true;
      }
      t.facts.identityIsNot(heap->source, object);
      return false;
    }
    if (isTensor(other) && other->source) t.facts.identityIsNot(other->source, object);
    if (other->kind == Kind::Tuple && PyTuple_Check(object) && as<TupleValue>(other)->constant.get() == object) return true;
    return false;
  }
  if (isReal(a) && isReal(b)) {
    bool same = realObject(a) == realObject(b);
    if (same)
      t.facts.sameObject(a->source, b->source);
    else
      t.facts.distinctObjects(a->source, b->source);
    return same;
  }
  if (a->kind == Kind::BoundMethod || b->kind == Kind::BoundMethod) return false;
  if (a->source && b->source) t.facts.distinctObjects(a->source, b->source);
  return false;
}

bool truth(Trace& t, Value* v) {
  switch (v->kind) {
    case Kind::Tensor: {
      if (std::optional<bool> proven = provenTruth(t.graph, as<TensorValue>(v)->node)) return *proven;
      unsupported(BreakReason::DataDependentBranch, "the truth of a tensor");
    }
    case Kind::Array:
    case Kind::Number: unsupported(BreakReason::DataDependentBranch, "the truth of " + describe(v));
    case Kind::Real: {
      PyObject* object = realObject(v);
      PyTypeObject* type = Py_TYPE(object);
      if (object == Py_NotImplemented) unsupported(BreakReason::Output, "the truth of NotImplemented, which CPython warns about");
      if (Value* method = pythonSpecial(t, v, "__bool__")) return truth(t, call(t, method, {}));
      if (pythonSpecial(t, v, "__len__")) return length(t, v) != 0;
      if (!v->source || PyFunction_Check(object) || PyType_Check(object) || PyModule_Check(object)) {
        int answer = PyObject_IsTrue(object);
        if (answer < 0) raiseCurrent(t);
        if (v->source && (object == Py_None))
          t.facts.identityIs(v->source, object);
        else if (v->source)
          t.typeOf(v);
        return answer != 0;
      }
      if (object == Py_None || object == Py_True || object == Py_False) {
        t.facts.identityIs(v->source, object);
        return object == Py_True;
      }
      if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBytes_Type) {
        t.typeOf(v);
        bool answer = PyObject_IsTrue(object) != 0;
        t.facts.truth(v->source, answer);
        return answer;
      }
      if (PyObject* c = t.constant(v)) return PyObject_IsTrue(c) != 0;
      t.typeOf(v);
      if (!type->tp_as_number || !type->tp_as_number->nb_bool) {
        if ((!type->tp_as_mapping || !type->tp_as_mapping->mp_length) && (!type->tp_as_sequence || !type->tp_as_sequence->sq_length)) return true;
      }
      unsupported(BreakReason::UnsupportedTruth, "the truth of " + describe(v));
    }
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
    case Kind::Set:
    case Kind::DictView: return length(t, v) != 0;
    case Kind::Instance: {
      if (PyObject* c = t.constant(v)) return PyObject_IsTrue(c) > 0;
      if (Value* core = coreUnless(t, v, {"__bool__", "__len__"})) return truth(t, core);
      if (Value* method = specialMethod(t, v, "__bool__")) {
        Value* answer = call(t, method, {});
        if (t.typeOf(answer) != &PyBool_Type)
          raise(t, PyExc_TypeError, std::string("__bool__ should return bool, returned ") + t.typeOf(answer)->tp_name);
        return truth(t, answer);
      }
      if (specialMethod(t, v, "__len__")) return length(t, v) != 0;
      return true;
    }
    default: return true;
  }
}

// ---- numbers --------------------------------------------------------------------------------------------------------

std::optional<long long> asInteger(Trace& t, Value* v) {
  if (Value* core = coreOf(t, v)) v = core;
  PyObject* c = isReal(v) || isNumber(v) || v->kind == Kind::Instance ? t.constant(v) : nullptr;
  ObjectRef index;
  if (c && !PyLong_Check(c) && isNumpyScalarType(Py_TYPE(c))) {
    index = ObjectRef::steal(PyNumber_Index(c));
    if (!index) PyErr_Clear();
    c = index.get();
  }
  if (!c || !PyLong_Check(c)) return std::nullopt;
  int overflow = 0;
  long long n = PyLong_AsLongLongAndOverflow(c, &overflow);
  if (overflow) return std::nullopt;
  return n;
}

Value* indexValue(Trace& t, Value* v) {
  if (isReal(v) && (t.typeOf(v) == &PyLong_Type || PyLong_Check(realObject(v)))) return v;
  if (isTensor(v)) unsupported(BreakReason::TensorAsIndex, "a tensor used as an index");
  if (isNumber(v)) t.constant(v);
  // An int is an index by itself; its __index__ is not asked.
  if (Value* core = coreOf(t, v); core && t.typeOf(core) == &PyLong_Type) return core;
  Value* method = v->kind == Kind::Instance ? specialMethod(t, v, "__index__") : nullptr;
  if (!method) return nullptr;
  Value* index = call(t, method, {});
  if (!PyType_FastSubclass(t.typeOf(index), Py_TPFLAGS_LONG_SUBCLASS))
    raise(t, PyExc_TypeError, std::string("__index__ returned non-int (type ") + t.typeOf(index)->tp_name + ")");
  if (t.typeOf(index) != &PyLong_Type) unsupported(BreakReason::BuiltinCall, "__index__ that gives a subclass of int, which warns");
  return index;
}

long long indexArgument(Trace& t, Value* v) {
  Value* index = indexValue(t, v);
  if (!index) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object cannot be interpreted as an integer");
  std::optional<long long> n = asInteger(t, index);
  if (!n) raise(t, PyExc_OverflowError, "cannot fit 'int' into an index-sized integer");
  return *n;
}

long long sliceIndex(Trace& t, Value* v) {
  Value* index = indexValue(t, v);
  if (!index) raise(t, PyExc_TypeError, "slice indices must be integers or have an __index__ method");
  if (std::optional<long long> n = asInteger(t, index)) return *n;
  ObjectRef zero = checked(PyLong_FromLong(0));
  return truth(t, compareOp(t, Py_LT, index, t.real(zero))) ? PY_SSIZE_T_MIN : PY_SSIZE_T_MAX;
}

}  // namespace cdynamo
