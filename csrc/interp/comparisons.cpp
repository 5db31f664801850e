// Comparisons, identity and truth of symbolic values.
#include <cmath>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"
#include "interp/operator_parts.h"
#include "interp/protocol.h"
#include "interp/ranges.h"
#include "interp/references.h"
#include "interp/special_methods.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

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

namespace {

// Whether the C code of a container compares it with the other: that one is not asked then.
bool knowsInC(Trace& t, int op, Value* container, Value* other) {
  auto isA = [&](PyTypeObject* type) { return PyType_IsSubtype(t.typeOf(other), type) != 0; };
  if (SetValue* s = asSet(container)) return s && (isA(&PySet_Type) || isA(&PyFrozenSet_Type));
  if (asDict(container)) return (op == Py_EQ || op == Py_NE) && isA(&PyDict_Type);
  if (ListValue* l = asList(container)) return isA(l->type == dequeType() ? dequeType() : &PyList_Type);
  return asTuple(container) && isA(&PyTuple_Type);
}

[[noreturn]] void notOrdered(Trace& t, int op, Value* a, Value* b) {
  raise(t, PyExc_TypeError,
        std::string("'") + kCompareSymbol[op] + "' not supported between instances of '" + t.typeOf(a)->tp_name + "' and '" + t.typeOf(b)->tp_name +
            "'");
}

// Neither operand knows the other: equal by identity, and not ordered.
Value* compareUnrelated(Trace& t, int op, Value* a, Value* b) {
  if (op == Py_EQ || op == Py_NE) return t.boolean(isSame(t, a, b) == (op == Py_EQ));
  notOrdered(t, op, a, b);
}

}  // namespace

Value* compareOp(Trace& t, int op, Value* a, Value* b) {
  if (isTensor(a) || isTensor(b))
    if (Value* v = overriddenBinary(t, kCompareMethod[op], kCompareMethod[kSwapped[op]], a, b)) return v;
  if ((isArray(a) || isArray(b)) && a->kind != Kind::Instance && b->kind != Kind::Instance) return arrayOperator(t, kCompareFunction[op], {a, b});
  if (isTensor(b)) a = plainNumber(t, a, false);
  if ((isTensor(a) || isTensor(b)) && a->kind != Kind::Instance && b->kind != Kind::Instance) {
    Value* other = isTensor(a) ? b : a;
    if ((op == Py_EQ || op == Py_NE) && !isTensor(other) && !isOpen(other) && !isNumber(other) && !t.isConstant(other)) return t.boolean(op == Py_NE);
    if ((op == Py_EQ || op == Py_NE) && isReal(other) && !PyNumber_Check(realObject(other))) return t.boolean(op == Py_NE);
    return recordOp(t, importedObject("operator", kCompareFunction[op]), false, {{a, b}, {}});
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
  // An exception that exists has the methods of its class too.
  auto hasClass = [](Value* v) { return v->kind == Kind::Instance || (isReal(v) && PyExceptionInstance_Check(realObject(v))); };
  if (hasClass(a) || hasClass(b)) {
    PyTypeObject *ta = t.typeOf(a), *tb = t.typeOf(b);
    auto overrides = [&](Value* v, int o) {
      if (!hasClass(v)) return false;
      static PyObject* names[6] = {};
      if (!names[o]) names[o] = PyUnicode_InternFromString(kCompareMethod[o]);
      PyObject* d = lookUp(t, t.typeOf(v), names[o]);
      bool plain = d && Py_TYPE(d) == &PyWrapperDescr_Type && PyType_IsSubtype(t.typeOf(v), reinterpret_cast<PyDescrObject*>(d)->d_type);
      return d && (!plain || polyfillOf(d));
    };
    auto isOfObject = [&](Value* v, int o) {
      PyObject* d = lookUp(t, t.typeOf(v), t.keep(checked(PyUnicode_InternFromString(kCompareMethod[o]))));
      return d && Py_TYPE(d) == &PyWrapperDescr_Type && reinterpret_cast<PyDescrObject*>(d)->d_type == &PyBaseObject_Type;
    };
    // v's answer; object.__ne__ asks for v's __eq__. Null: none.
    auto ask = [&](Value* v, int o, Value* other) -> Value* {
      if (overrides(v, o)) return trySpecial(t, v, kCompareMethod[o], other);
      if (o != Py_NE || !overrides(v, Py_EQ) || comparesInC(t, v, "__ne__") || coreOf(t, v)) return nullptr;
      if (!isOfObject(v, Py_NE)) return nullptr;  // a container has a __ne__ in C
      Value* equal = trySpecial(t, v, "__eq__", other);
      return equal ? t.boolean(!truth(t, equal)) : nullptr;
    };
    bool reflectedFirst = ta != tb && isSubtype(t, tb, ta);
    if (reflectedFirst) {
      if (Value* v = ask(b, kSwapped[op], a)) return v;
      if (!overrides(b, kSwapped[op]) && !isOfObject(b, kSwapped[op]) && knowsInC(t, kSwapped[op], b, a)) {
        std::swap(a, b);
        op = kSwapped[op];
      }
    }
    if (Value* y = takesInC(t, -1, a, b) ? coreOf(t, b) : nullptr) return compareOp(t, op, a, y);
    // What C code of the left operand's builtin base compares is not asked of the right one.
    if (Value* x = coreOf(t, a), *y = coreOf(t, b); x && (y || isReal(b)) && !overrides(a, op) && !(op == Py_NE && overrides(a, Py_EQ))) try {
        return compareOp(t, op, x, y ? y : b);
      } catch (Raised& raised) {
        // The builtin types know nothing of each other.
        if (!isA(t, raised.exception, PyExc_TypeError)) throw;
        if (Value* v = reflectedFirst ? nullptr : ask(b, kSwapped[op], a)) return v;
        notOrdered(t, op, a, b);
      }
    if (a->kind == Kind::Instance && !overrides(a, op) && comparesInC(t, a, kCompareMethod[op]))
      unsupported(BreakReason::UnsupportedComparison, "comparing " + describe(a));
    if (overrides(a, op) || isOfObject(a, op) || !knowsInC(t, op, a, b)) {
      if (Value* v = ask(a, op, b)) return v;
      if (!reflectedFirst)
        if (Value* v = ask(b, kSwapped[op], a)) return v;
      // Where both have answered, the C code of a builtin base is not asked.
      if (overrides(a, op) && overrides(b, kSwapped[op])) return compareUnrelated(t, op, a, b);
    }
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
    // Whatever their __iter__ says, but for deques, which ask for it.
    auto held = [&](Value* v) {
      if (ListValue* list = asList(v); list && list->type != dequeType()) return itemsOf(t, list);
      return asTuple(v) ? itemsOf(t, asTuple(v)) : itemsOf(t, v);
    };
    auto x = held(a), y = held(b);
    if (x.size() != y.size() && (op == Py_EQ || op == Py_NE)) return t.boolean(op == Py_NE);
    size_t i = 0;
    while (i < x.size() && i < y.size()) {
      uint64_t before = t.writes;
      bool same = equals(t, x[i], y[i]);
      if (t.writes != before) x = held(a), y = held(b);  // a comparison of the program may change both lists
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
    auto held = [&](Value* v) { return unorderedItems(t, asSet(v) ? asSet(v) : v); };
    auto x = held(a), y = held(b);
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
  // With what is neither a set nor a view.
  auto isPlain = [&](Value* v) {
    return isReal(v) && t.isConstant(v) && !PyAnySet_Check(realObject(v)) && !PyType_HasFeature(Py_TYPE(realObject(v)), Py_TPFLAGS_HEAPTYPE);
  };
  if ((isView(a) && isPlain(b)) || (isView(b) && isPlain(a))) {
    return compareUnrelated(t, op, a, b);
  }
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
  if (Value* x = coreOf(t, a), *y = coreOf(t, b); x || y) {
    try {
      return compareOp(t, op, x ? x : a, y ? y : b);
    } catch (Raised& raised) {
      if (isA(t, raised.exception, PyExc_TypeError)) notOrdered(t, op, a, b);
      throw;
    }
  }
  for (Value* v : {a, b})
    if (v->kind == Kind::Instance && coreType(t.typeOf(v))) unsupported(BreakReason::UnsupportedComparison, "comparing " + describe(v));
  // torch.Tensor.shape.__get__ and the like are equal by what they are bound to, and know nothing but each other.
  if ((op == Py_EQ || op == Py_NE) && isReal(a) && isReal(b) && (t.typeOf(a) == &_PyMethodWrapper_Type || t.typeOf(b) == &_PyMethodWrapper_Type))
    return t.real(native(t, PyObject_RichCompare(t.identity(a), t.identity(b), op)));
  // An object of a C type that compares in its own way, with anything that it may know.
  for (Value* v : {a, b})
    if ((a != b || (op != Py_EQ && op != Py_NE)) && comparesInC(t, v)) unsupported(BreakReason::UnsupportedComparison, "comparing " + describe(v));
  const bool equality = op == Py_EQ || op == Py_NE;
  if (equality && isReal(a) && isReal(b) && a->source == nullptr && b->source == nullptr)
    return t.real(native(t, PyObject_RichCompare(realObject(a), realObject(b), op)));
  return compareUnrelated(t, op, a, b);
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

}  // namespace cdynamo
