// Operators of symbolic values, and what is taken for an index.
#include <cstring>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/intrinsics.h"
#include "interp/operator_parts.h"
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

// An empty object of the value's type where it is a builtin one whose refusals name types only; null: any other.
ObjectRef blankOf(Trace& t, Value* v) {
  PyTypeObject* type = t.typeOf(v);
  for (PyTypeObject* known :
       {&PyList_Type, &PyTuple_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type, &PyLong_Type, &PyFloat_Type, &PyUnicode_Type})
    if (type == known) return checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type)));
  return type == dequeType() ? checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type))) : ObjectRef();
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
  for (Value* v : {a, b})
    if (isReal(v) && PyExceptionInstance_Check(realObject(v)) && PyType_HasFeature(t.typeOf(v), Py_TPFLAGS_HEAPTYPE))
      unsupported(BreakReason::UnsupportedOperator, std::string(symbol) + " with " + describe(v));
  // Sequences are asked last, and say it in their own words.
  PyTypeObject *left = t.typeOf(a), *right = t.typeOf(b);
  auto repeats = [](PyTypeObject* type) { return type->tp_as_sequence && type->tp_as_sequence->sq_repeat; };
  // In place the right one is asked only where the left one is of a type that knows nothing of sequences.
  if (*symbol == '*' && symbol[1] == 0 && (repeats(left) || (repeats(right) && !(inplace && left->tp_as_sequence))))
    raise(t, PyExc_TypeError, std::string("can't multiply sequence by non-int of type '") + (repeats(left) ? right : left)->tp_name + "'");
  for (PyTypeObject* type : {&PyUnicode_Type, &PyList_Type, &PyTuple_Type})
    if (*symbol == '+' && PyType_IsSubtype(left, type) && !(inplace && type == &PyList_Type))
      raise(t, PyExc_TypeError, std::string("can only concatenate ") + type->tp_name + " (not \"" + right->tp_name + "\") to " + type->tp_name);
  raise(t, PyExc_TypeError,
        std::string("unsupported operand type(s) for ") + operatorSymbol(op) + ": '" + left->tp_name + "' and '" + right->tp_name + "'");
}

}  // namespace

namespace {

// The right operand's class is a subclass of the left one's with another reflected method: that is asked first.
bool overloadsReflected(Trace& t, Value* left, Value* right, const char* reflected) {
  PyTypeObject *a = t.typeOf(left), *b = t.typeOf(right);
  if (a == b || !isSubtype(t, b, a)) return false;
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

// An object of a class derived from a sequence, times what is no index: the sequence is asked last.
void refuseRepetition(Trace& t, int op, Value* a, Value* b) {
  const OperatorNames& names = kBinary[op % kInplace];
  auto isRepeated = [&](Value* v, const char* method) {
    const PyNumberMethods* own = t.typeOf(v)->tp_as_number;
    if (v->kind != Kind::Instance || (own && own->nb_multiply) || overrides(t, v, method)) return false;
    PyTypeObject* core = coreType(t.typeOf(v));
    return asList(v) || asTuple(v) || core == &PyUnicode_Type || core == &PyBytes_Type;
  };
  auto saysNothing = [&](Value* v, const char* method) {
    const PyNumberMethods* number = t.typeOf(v)->tp_as_number;
    return !(number && number->nb_index) && (v->kind != Kind::Instance || !overrides(t, v, method));
  };
  // In place a left operand of a class of its own is asked as a sequence, whatever it is.
  const bool ownNumber = op >= kInplace && a->kind == Kind::Instance && coreType(t.typeOf(a)) && !overrides(t, a, names.method);
  if (const PySequenceMethods* sequence = t.typeOf(b)->tp_as_sequence; ownNumber && sequence && sequence->sq_repeat && b->kind != Kind::Instance)
    badOperands(t, op, a, b);
  if ((isRepeated(a, names.method) && saysNothing(b, names.reflected)) || (isRepeated(b, names.reflected) && saysNothing(a, names.method)))
    badOperands(t, op, a, b);
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
      const PySequenceMethods* methods = isReal(sequence) ? Py_TYPE(realObject(sequence))->tp_as_sequence : nullptr;
      bool repeats = sequence->kind == Kind::List || sequence->kind == Kind::Tuple || (methods && methods->sq_repeat);
      if (sequence->kind == Kind::Instance && (asList(sequence) || asTuple(sequence)))
        repeats = !overrides(t, sequence, "__mul__") && !overrides(t, sequence, "__rmul__");
      const PySequenceMethods* own = side ? t.typeOf(times)->tp_as_sequence : nullptr;
      if (!repeats || (side && inplace) || (own && own->sq_repeat) || times->kind != Kind::Instance ||
          overrides(t, times, side ? "__mul__" : "__rmul__"))
        continue;
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
  if (base == 5) refuseRepetition(t, op, a, b);
  if (Value* v = inheritedOp(t, op, a, b)) return v;
  if (inplace) {
    if (a->kind == Kind::Instance) {
      std::string method = std::string("__i") + (names.method + 2);
      if (Value* v = trySpecial(t, a, method.c_str(), b)) return v;
    }
  }
  if (a->kind == Kind::Instance || b->kind == Kind::Instance) {
    PyTypeObject *ta = t.typeOf(a), *tb = t.typeOf(b);
    if (Value* y = takesInC(t, base, a, b) ? coreOf(t, b) : nullptr) return binaryOp(t, op, a, y);
    bool reflectedFirst = b->kind == Kind::Instance && overloadsReflected(t, a, b, names.reflected);
    if (reflectedFirst)
      if (Value* v = trySpecial(t, b, names.reflected, a)) return v;
    // A sequence joins and repeats after all numbers were asked.
    PyTypeObject* core = coreType(ta);
    const bool isText = core == &PyUnicode_Type || core == &PyBytes_Type;
    const PyNumberMethods* number = ta->tp_as_number;
    const bool isAsked = number && (base == 0 ? number->nb_add : number->nb_multiply);
    const bool sequence =
        a->kind == Kind::Instance && (base == 0 || base == 5) && !isAsked && (asList(a) || asTuple(a) || isText) && !overrides(t, a, names.method);
    if (a->kind == Kind::Instance && !leftAsked && !sequence)
      if (Value* v = trySpecial(t, a, names.method, b)) return v;
    if (b->kind == Kind::Instance && !reflectedFirst && ta != tb && (!sequence || overrides(t, b, names.reflected)))
      if (Value* v = trySpecial(t, b, names.reflected, a)) return v;
    if (sequence && !leftAsked)
      if (Value* v = trySpecial(t, a, names.method, b)) return v;
    if (isTensor(a) || isTensor(b)) return recordOp(t, operatorFunction(names.function), false, {{a, b}, {}});
    // The builtin type's own method answers only where the class has not put another in its place.
    bool leftIsNative = a->kind != Kind::Instance || !overrides(t, a, names.method);
    bool rightIsNative = ta != tb && (b->kind != Kind::Instance || !overrides(t, b, names.reflected));
    if (Value* x = coreOf(t, a), *y = coreOf(t, b); (x || y) && (leftIsNative || rightIsNative)) {
      try {
        return binaryOp(t, op, x ? x : a, y ? y : b);
      } catch (Raised& raised) {
        // The classes are named, not what they derive from.
        const bool formats = base == 6 && x && t.typeOf(x) == &PyUnicode_Type;
        if (!formats && isA(t, raised.exception, PyExc_TypeError)) badOperands(t, op, a, b);
        throw;
      }
    }
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

Value* divideWithRest(Trace& t, Value* a, Value* b) {
  const bool differ = t.typeOf(a) != t.typeOf(b), reflectedFirst = b->kind == Kind::Instance && overloadsReflected(t, a, b, "__rdivmod__");
  if (reflectedFirst)
    if (Value* v = trySpecial(t, b, "__rdivmod__", a)) return v;
  if (a->kind == Kind::Instance)
    if (Value* v = trySpecial(t, a, "__divmod__", b)) return v;
  refuseOwnMethod(t, a, "__divmod__");
  if (b->kind == Kind::Instance && differ && !reflectedFirst)
    if (Value* v = trySpecial(t, b, "__rdivmod__", a)) return v;
  refuseOwnMethod(t, b, "__rdivmod__");
  raise(t, PyExc_TypeError,
        std::string("unsupported operand type(s) for divmod(): '") + t.typeOf(a)->tp_name + "' and '" + t.typeOf(b)->tp_name + "'");
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

bool takesInC(Trace& t, int base, Value* left, Value* right) {
  PyTypeObject* type = isReal(left) ? Py_TYPE(realObject(left)) : nullptr;
  PyTypeObject* core = type && right->kind == Kind::Instance ? coreType(t.typeOf(right)) : nullptr;
  if (!core || PyType_IsSubtype(t.typeOf(right), type)) return false;  // of a derived class: that is asked first
  const bool isInt = core == &PyLong_Type, isFloat = core == &PyFloat_Type;
  if (type == &PyLong_Type || type == &PyBool_Type) return isInt && base != 4;
  auto isAmong = [&](std::initializer_list<int> known) { return base < 0 || std::find(known.begin(), known.end(), base) != known.end(); };
  if (type == &PyFloat_Type) return (isInt || isFloat) && isAmong({0, 2, 5, 6, 8, 10, 11});
  return type == &PyComplex_Type && (isInt || isFloat || core == &PyComplex_Type) && isAmong({0, 5, 8, 10, 11});
}

Value* trySpecial(Trace& t, Value* self, const char* name, Value* other) {
  Value* method = specialMethod(t, self, name);
  if (!method) return nullptr;
  Value* v = call1(t, method, other);
  return isNotImplemented(v) ? nullptr : v;
}

Value* plainNumber(Trace& t, Value* v, bool refuses) {
  PyObject* scalar = isReal(v) && isNumpyScalarType(Py_TYPE(realObject(v))) ? t.constant(v) : nullptr;
  if (!scalar) return v;
  ObjectRef number = checked(PyObject_CallMethod(scalar, "item", nullptr));
  bool known = PyFloat_CheckExact(number.get()) || PyLong_CheckExact(number.get());
  if (refuses || !known) unsupported(BreakReason::NumpyCall, "a NumPy scalar on the left of a tensor");
  return t.real(std::move(number));
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
