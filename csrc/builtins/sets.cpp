// Methods and operators of set and frozenset. Where everything is constant CPython does them, on sets with the same table, so that the order
// of what comes out is CPython's; else they are done item by item, and the order is not known.
#include "builtins/table.h"
#include "cpython/compat.h"
#include "cpython/set_layout.h"
#include "interp/local_classes.h"

namespace cdynamo {

namespace {

SetValue* selfSet(Trace& t, CallArgs& a) {
  SetValue* s = a.args.empty() ? nullptr : asSet(a.args[0]);
  if (!s) unsupported(BreakReason::MethodCall, "a method of set on " + (a.args.empty() ? "nothing" : describe(a.args[0])));
  t.load(s);
  return s;
}

PyObject* methodOf(PyTypeObject& type, const char* name) {
  ObjectRef text = checked(PyUnicode_InternFromString(name));
  return typeLookup(&type, text.get());
}

// The set itself, where it is a frozenset that a real object stands for.
ObjectRef layoutOf(Trace& t, Value* v) {
  if (SetValue* s = asSet(v)) return t.setLayout(s);
  if (isReal(v) && PyAnySet_Check(realObject(v)) && t.constant(v)) return ObjectRef::share(realObject(v));
  return nullptr;
}

bool isSetLike(Value* v) { return asSet(v) || (isReal(v) && PyAnySet_Check(realObject(v))); }

// An argument as sets see it: a real object with constants, where there is one, and the items.
struct Operand {
  ObjectRef real;
  std::vector<Value*> items;
};

// A dict with these keys, in CPython's order; null where one is no constant.
ObjectRef dictOfKeys(Trace& t, DictValue* d, bool values) {
  t.complete(d);
  ObjectRef made = checked(PyDict_New());
  for (const DictEntry& e : d->entries) {
    if (!e.value) continue;
    PyObject* key = e.key.value ? t.constant(e.key.value) : e.key.constant;
    PyObject* value = values ? t.constant(e.value) : Py_None;
    if (!key || !value) return nullptr;
    checkedStatus(PyDict_SetItem(made.get(), key, value));
  }
  return made;
}

bool isUnhashable(Trace& t, Value* v) { return t.typeOf(v)->tp_hash == PyObject_HashNotImplemented; }

Operand setOperand(Trace& t, Value* v) {
  Operand o;
  if (isSetLike(v)) {
    o.real = layoutOf(t, v);
    o.items = unorderedItems(t, v);
    return o;
  }
  if (v->kind == Kind::Dict && as<DictValue>(v)->type == &PyDict_Type) {
    o.real = dictOfKeys(t, as<DictValue>(v), false);
  } else if (v->kind == Kind::DictView && as<DictViewValue>(v)->what != DictViewValue::Values) {
    bool keys = as<DictViewValue>(v)->what == DictViewValue::Keys;
    ObjectRef dict = dictOfKeys(t, as<DictValue>(as<DictViewValue>(v)->owner), !keys);
    if (dict) o.real = checked(PyObject_CallMethod(dict.get(), keys ? "keys" : "items", nullptr));
  }
  o.items = itemsOf(t, v);
  if (o.real) return o;
  ObjectRef list = checked(PyList_New(0));
  for (Value* item : o.items) {
    PyObject* c = isUnhashable(t, item) ? nullptr : t.constant(item);
    if (!c) return o;
    checkedStatus(PyList_Append(list.get(), c));
  }
  o.real = std::move(list);
  return o;
}

SetValue* emptySet(Trace& t, PyTypeObject* type) {
  auto* s = t.make<SetValue>();
  s->type = type;
  return s;
}

SetValue* setOfItems(Trace& t, const std::vector<Value*>& items) {
  SetValue* s = emptySet(t, &PySet_Type);
  for (Value* v : items) t.setAdd(s, t.keyOf(v));
  return s;
}

// left OP right, item by item.
SetValue* combined(Trace& t, int op, PyTypeObject* type, const std::vector<DictKey>& left, const std::vector<Value*>& right) {
  SetValue* other = setOfItems(t, right);
  SetValue* own = emptySet(t, &PySet_Type);
  for (const DictKey& k : left) t.setAdd(own, k);
  SetValue* out = emptySet(t, type);
  out->replayable = false;
  for (const DictKey& k : left) {
    bool both = t.setHas(other, k);
    if (op == 7 || (op == 1 && both) || ((op == 10 || op == 12) && !both)) t.setAdd(out, k);
  }
  if (op == 7 || op == 12)
    for (const DictKey& k : other->items)
      if (op == 7 || !t.setHas(own, k)) t.setAdd(out, k);
  return out;
}

// s becomes what `now` holds.
void assign(Trace& t, SetValue* s, const SetValue* now) {
  t.journal.set(s->replayable, false);
  auto before = s->items;
  SetValue* kept = emptySet(t, &PySet_Type);
  for (const DictKey& k : now->items) t.setAdd(kept, k);
  for (const DictKey& k : before)
    if (!t.setHas(kept, k)) t.setDiscard(s, k);
  for (const DictKey& k : kept->items) t.setAdd(s, k);
}

PyTypeObject* baseType(const SetValue* s) { return PyType_IsSubtype(s->type, &PyFrozenSet_Type) ? &PyFrozenSet_Type : &PySet_Type; }

// set.update of one argument: a set or dict is merged as a whole, everything else is added as it comes.
void updateFrom(Trace& t, SetValue* s, Value* source) {
  bool whole = isSetLike(source) || (source->kind == Kind::Dict && as<DictValue>(source)->type == &PyDict_Type);
  if (!whole) {
    Value* it = iterate(t, source);
    while (Value* v = next(t, it)) t.setAdd(s, t.keyOf(v));
    return;
  }
  Operand o = setOperand(t, source);
  static PyObject* update = methodOf(PySet_Type, "update");
  if (o.real && baseType(s) == &PySet_Type && t.setLayout(s)) {
    t.setCall(s, update, {o.real.get()});
    return;
  }
  for (Value* v : o.items) t.setAdd(s, t.keyOf(v));
  if (o.items.size() > 1) t.journal.set(s->replayable, false);
}

Value* makeSet(Trace& t, CallArgs& a, PyTypeObject* type) {
  expectArgs(a, 0, 1);
  if (a.args.empty()) return emptySet(t, type);
  Value* source = a.args[0];
  if (type == &PyFrozenSet_Type && t.typeOf(source) == &PyFrozenSet_Type) return source;
  bool whole = isSetLike(source) || (source->kind == Kind::Dict && as<DictValue>(source)->type == &PyDict_Type);
  if (whole)
    if (Operand o = setOperand(t, source); o.real) return t.setMade(checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), o.real.get())));
  SetValue* s = emptySet(t, type);
  updateFrom(t, s, source);
  return s;
}
Value* builtinSet(Trace& t, CallArgs& a) { return makeSet(t, a, &PySet_Type); }
Value* builtinFrozenset(Trace& t, CallArgs& a) { return makeSet(t, a, &PyFrozenSet_Type); }

void clear(Trace& t, SetValue* s) {
  static PyObject* method = methodOf(PySet_Type, "clear");
  if (t.setLayout(s)) {
    t.setCall(s, method, {});
    return;
  }
  while (!s->items.empty()) t.setDiscard(s, DictKey(s->items.back()));
}

Value* setInit(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  expectArgs(a, 1, 2);
  if (!s->items.empty()) clear(t, s);
  if (a.args.size() > 1) updateFrom(t, s, a.args[1]);
  return t.none();
}
Value* setAdd(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  t.setAdd(s, t.keyOf(a.args[1]));
  return t.none();
}

Value* setDiscard(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  t.setDiscard(s, keyToFind(t, a.args[1]));
  return t.none();
}
Value* setRemove(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  if (!t.setDiscard(s, keyToFind(t, a.args[1]))) keyError(t, a.args[1]);
  return t.none();
}
Value* setContains(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(t.setHas(selfSet(t, a), keyToFind(t, a.args[1])));
}
Value* setPop(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  if (s->items.empty()) raise(t, PyExc_KeyError, "pop from an empty set");
  static PyObject* method = methodOf(PySet_Type, "pop");
  ObjectRef layout = t.setLayout(s);
  if (!layout) {
    if (s->items.size() > 1) unsupported(BreakReason::UnknownOrder, "set.pop, whose order is not known");
    Value* v = s->items[0].value;
    t.setDiscard(s, DictKey(s->items[0]));
    return v;
  }
  ObjectRef first = checked(PySet_Pop(layout.get()));
  Value* v = s->items[s->index.find(t.keyOf(t.real(first)))->second].value;
  t.setCall(s, method, {});
  return v;
}
Value* setUpdate(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  for (size_t i = 1; i < a.args.size(); i++) updateFrom(t, s, a.args[i]);
  return t.none();
}
Value* setClear(Trace& t, CallArgs& a) {
  clear(t, selfSet(t, a));
  return t.none();
}
Value* setCopy(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  if (s->type == &PyFrozenSet_Type) return a.args[0];
  if (a.args[0]->kind == Kind::Instance) unsupported(BreakReason::MethodCall, "copying " + describe(a.args[0]));
  if (ObjectRef layout = t.setLayout(s)) return t.setMade(checked(PyObject_CallMethod(layout.get(), "copy", nullptr)));
  return combined(t, 7, &PySet_Type, s->items, {});
}

// A generator may look at the set while its items are taken.
bool isTakenSingly(const Value* v) { return v->kind == Kind::Iterator || v->kind == Kind::Generator || v->kind == Kind::Instance; }

template <int op, bool inplace>
Value* setMethod(Trace& t, CallArgs& a);

Value* differenceUpdate(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  for (size_t i = 1; i < a.args.size(); i++) {
    if (CallArgs one{{a.args[0], a.args[i]}, {}}; isSetLike(a.args[i]) || !isTakenSingly(a.args[i])) {
      setMethod<10, true>(t, one);
      continue;
    }
    Value* it = iterate(t, a.args[i]);
    while (Value* v = next(t, it)) t.setDiscard(s, t.keyOf(v));
  }
  return t.none();
}

constexpr const char* methodName(int op) { return op == 7 ? "union" : op == 1 ? "intersection" : op == 10 ? "difference" : "symmetric_difference"; }

// union, intersection, difference, symmetric_difference, and the forms that change the set.
template <int op, bool inplace>
Value* setMethod(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a);
  if (inplace && op == 10 && (a.args.size() > 2 || std::any_of(a.args.begin() + 1, a.args.end(), isTakenSingly))) return differenceUpdate(t, a);
  std::vector<Operand> operands;
  for (size_t i = 1; i < a.args.size(); i++) {
    operands.push_back(setOperand(t, a.args[i]));
    for (Value* item : operands.back().items)
      if (isUnhashable(t, item)) t.keyOf(item);  // raises, before the next operand is looked at
  }
  ObjectRef self = t.setLayout(s);
  bool constant = static_cast<bool>(self);
  std::vector<PyObject*> real;
  for (const Operand& o : operands) {
    constant = constant && o.real;
    real.push_back(o.real.get());
  }
  static PyObject* method = methodOf(PySet_Type, inplace ? (std::string(methodName(op)) + "_update").c_str() : methodName(op));
  static PyObject* frozenMethod = methodOf(PyFrozenSet_Type, methodName(op));
  if (constant && inplace) {
    t.setCall(s, method, real);
    return t.none();
  }
  if (constant) {
    real.insert(real.begin(), self.get());
    return t.setMade(native(t, PyObject_Vectorcall(baseType(s) == &PySet_Type ? method : frozenMethod, real.data(), real.size(), nullptr)));
  }
  SetValue* out = combined(t, 7, baseType(s), s->items, {});
  for (const Operand& o : operands) out = combined(t, op, baseType(s), out->items, o.items);
  if (!inplace) return out;
  assign(t, s, out);
  return t.none();
}

// isdisjoint, issuperset of what is no set: up to the first item that tells.
template <int op>
Value* askEach(Trace& t, SetValue* s, Value* iterable) {
  Value* it = iterate(t, iterable);
  while (Value* v = next(t, it))
    if (t.setHas(s, t.keyOf(v)) != (op >= 0)) return t.boolean(false);
  return t.boolean(true);
}

template <int op>
Value* setRelation(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  SetValue* s = selfSet(t, a);
  if (op != Py_LE && !isSetLike(a.args[1])) return askEach<op>(t, s, a.args[1]);
  SetValue* other = setOfItems(t, unorderedItems(t, a.args[1]));
  if (op >= 0) return compareOp(t, op, combined(t, 7, &PySet_Type, s->items, {}), other);
  for (const DictKey& k : s->items)
    if (t.setHas(other, k)) return t.boolean(false);
  return t.boolean(true);
}

// s.__and__(other) and its like, as a method: what is no set is NotImplemented.
template <int op, bool reflected>
Value* setSlot(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  SetValue* s = selfSet(t, a);
  if (!isSetLike(a.args[1])) return t.realShared(Py_NotImplemented);
  Value* other = asSet(a.args[1]) ? asSet(a.args[1]) : a.args[1];
  return reflected ? setOperator(t, op, other, s) : setOperator(t, op, s, other);
}

Value* operateOnSets(Trace& t, int base, bool inplace, Value* a, Value* b) {
  Operand left = setOperand(t, a), right = setOperand(t, b);
  if (inplace && isSetLike(b) && left.real && right.real) {
    static PyObject* methods[] = {methodOf(PySet_Type, "__iand__"), methodOf(PySet_Type, "__ior__"), methodOf(PySet_Type, "__isub__"),
                                  methodOf(PySet_Type, "__ixor__")};
    t.setCall(as<SetValue>(a), methods[base == 1 ? 0 : base == 7 ? 1 : base == 10 ? 2 : 3], {right.real.get()});
    return a;
  }
  if (left.real && right.real) {
    PyObject *x = left.real.get(), *y = right.real.get();
    return t.setMade(native(t, base == 1    ? PyNumber_And(x, y)
                               : base == 7  ? PyNumber_Or(x, y)
                               : base == 10 ? PyNumber_Subtract(x, y)
                                            : PyNumber_Xor(x, y)));
  }
  SetValue* own = setOfItems(t, left.items);
  SetValue* out = combined(t, base, asSet(a) ? baseType(asSet(a)) : &PySet_Type, own->items, right.items);
  if (!inplace) return out;
  assign(t, as<SetValue>(a), out);
  return a;
}

}  // namespace

DictKey keyToFind(Trace& t, Value* v) {
  // A set stands for the frozenset of its items, unless its class can be hashed.
  static PyObject* hashName = PyUnicode_InternFromString("__hash__");
  if (SetValue* s = asSet(v); s && baseType(s) == &PySet_Type && lookUp(t, t.typeOf(v), hashName) == Py_None) {
    ObjectRef frozen = checked(PyFrozenSet_New(nullptr));
    t.load(s);
    for (const DictKey& k : s->items) {
      if (!k.constant) unsupported(BreakReason::HashOrCompare, "looking for a set of objects in a set");
      checkedStatus(PySet_Add(frozen.get(), k.constant));
    }
    return t.keyOf(t.real(std::move(frozen)));
  }
  return t.keyOf(v);
}

Value* setOperator(Trace& t, int op, Value* a, Value* b) {
  int base = op % 13;
  bool inplace = op >= 13 && a->kind == Kind::Set && baseType(as<SetValue>(a)) == &PySet_Type;
  auto isView = [](Value* v) { return v->kind == Kind::DictView && as<DictViewValue>(v)->what != DictViewValue::Values; };
  if (!(isSetLike(a) && isSetLike(b)) && !isView(a) && !isView(b)) return nullptr;
  return itemByItem(t, {a, b}, [&] { return operateOnSets(t, base, inplace, a, b); });
}

void addSetMethods(BuiltinTable& table) {
  struct Row {
    const char* name;
    BuiltinHandler handler;
  };
  const Row rows[] = {{"__init__", setInit},
                      {"add", setAdd},
                      {"discard", setDiscard},
                      {"remove", setRemove},
                      {"__contains__", setContains},
                      {"pop", setPop},
                      {"update", setUpdate},
                      {"clear", setClear},
                      {"copy", setCopy},
                      {"union", itemByItem<setMethod<7, false>>},
                      {"intersection", itemByItem<setMethod<1, false>>},
                      {"difference", itemByItem<setMethod<10, false>>},
                      {"symmetric_difference", itemByItem<setMethod<12, false>>},
                      {"intersection_update", itemByItem<setMethod<1, true>>},
                      {"difference_update", itemByItem<setMethod<10, true>>},
                      {"symmetric_difference_update", itemByItem<setMethod<12, true>>},
                      {"issubset", itemByItem<setRelation<Py_LE>>},
                      {"issuperset", itemByItem<setRelation<Py_GE>>},
                      {"isdisjoint", itemByItem<setRelation<-1>>},
                      {"__and__", setSlot<1, false>},
                      {"__or__", setSlot<7, false>},
                      {"__sub__", setSlot<10, false>},
                      {"__xor__", setSlot<12, false>},
                      {"__rand__", setSlot<1, true>},
                      {"__ror__", setSlot<7, true>},
                      {"__rsub__", setSlot<10, true>},
                      {"__rxor__", setSlot<12, true>}};
  for (PyTypeObject* type : {&PySet_Type, &PyFrozenSet_Type})
    for (const Row& r : rows) {
      ObjectRef name = checked(PyUnicode_InternFromString(r.name));
      if (PyDict_GetItemWithError(typeDict(type), name.get())) table.addType(type, r.name, r.handler);
    }
  const Row changing[] = {
      {"__iand__", setSlot<14, false>}, {"__ior__", setSlot<20, false>}, {"__isub__", setSlot<23, false>}, {"__ixor__", setSlot<25, false>}};
  for (const Row& r : changing) table.addType(&PySet_Type, r.name, r.handler);
  table.add("builtins.set", itemByItem<builtinSet>);
  table.add("builtins.frozenset", itemByItem<builtinFrozenset>);
}

}  // namespace cdynamo
