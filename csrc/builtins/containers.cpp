// Methods of list, tuple, dict, OrderedDict, set, str.
#include <algorithm>

#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"

namespace cdynamo {

namespace {

// ---- list ------------------------------------------------------------------------------------------------------------

// The list that a method works on, its items not read yet.
ListValue* listOf(CallArgs& a, const char* method) {
  ListValue* l = a.args.empty() ? nullptr : asList(a.args[0]);
  if (!l) unsupported(BreakReason::MethodCall, std::string("list.") + method + " on " + (a.args.empty() ? "nothing" : describe(a.args[0])));
  return l;
}

ListValue* selfList(Trace& t, CallArgs& a, const char* method) {
  ListValue* l = listOf(a, method);
  t.load(l);
  return l;
}

Value* listAppend(Trace& t, CallArgs& a) {
  ListValue* l = listOf(a, "append");
  expectArgs(t, a, "list.append", 2, 2);
  t.append(l, a.args[1]);
  return t.none();
}
Value* listExtend(Trace& t, CallArgs& a) {
  ListValue* l = listOf(a, "extend");
  expectArgs(t, a, "extend", 2, 2);
  for (Value* v : itemsOf(t, a.args[1])) t.append(l, v);
  return t.none();
}
Value* listInsert(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "insert");
  expectArgs(t, a, "insert", 3, 3);
  auto items = l->items;
  long long n = static_cast<long long>(items.size()), i = indexArgument(t, a.args[1]);
  if (i < 0) i = std::max(0LL, i + n);
  items.insert(items.begin() + std::min(i, n), a.args[2]);
  t.setItems(l, std::move(items));
  return t.none();
}
Value* listPop(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "pop");
  expectArgs(t, a, "pop", 1, 2);
  auto items = l->items;
  long long n = static_cast<long long>(items.size()), i = a.args.size() > 1 ? indexArgument(t, a.args[1]) : -1;
  if (n == 0) raise(t, PyExc_IndexError, "pop from empty list");
  if (i < 0) i += n;
  if (i < 0 || i >= n) raise(t, PyExc_IndexError, "pop index out of range");
  Value* v = items[static_cast<size_t>(i)];
  items.erase(items.begin() + i);
  t.setItems(l, std::move(items));
  return v;
}
Value* listRemove(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "remove");
  expectArgs(t, a, "remove", 2, 2);
  auto items = l->items;
  for (size_t i = 0; i < items.size(); i++)
    if (equals(t, items[i], a.args[1])) {
      items.erase(items.begin() + static_cast<ptrdiff_t>(i));
      t.setItems(l, std::move(items));
      return t.none();
    }
  raise(t, PyExc_ValueError, "list.remove(x): x not in list");
}
Value* listClear(Trace& t, CallArgs& a) {
  t.setItems(selfList(t, a, "clear"), {});
  return t.none();
}
Value* listReverse(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "reverse");
  auto items = l->items;
  std::reverse(items.begin(), items.end());
  t.setItems(l, std::move(items));
  return t.none();
}
Value* listSort(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "sort");
  Value* key = a.takeKeyword("key");
  Value* reverse = a.takeKeyword("reverse");
  if (key && isReal(key, Py_None)) key = nullptr;
  t.setItems(l, sortedItems(t, l->items, key, reverse && truth(t, reverse)));
  return t.none();
}
Value* listCopy(Trace& t, CallArgs& a) { return t.list(selfList(t, a, "copy")->items); }
Value* listInit(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "__init__");
  t.setItems(l, a.args.size() > 1 ? itemsOf(t, a.args[1]) : std::vector<Value*>{});
  return t.none();
}

std::vector<Value*> sequenceItems(Trace& t, Value* v) {
  if (ListValue* l = asList(v)) {
    t.load(l);
    return l->items;
  }
  if (TupleValue* tuple = asTuple(v)) {
    t.load(tuple);
    return tuple->items;
  }
  return itemsOf(t, v);
}

Value* sequenceIndex(Trace& t, CallArgs& a) {
  expectArgs(t, a, "index", 2, 4);
  auto items = sequenceItems(t, a.args[0]);
  long long n = static_cast<long long>(items.size());
  auto bound = [&](size_t i, long long fallback) {
    if (a.args.size() <= i) return fallback;
    long long b = asInteger(t, a.args[i]).value_or(fallback);
    return b < 0 ? std::max(0LL, b + n) : b;
  };
  long long stop = std::min(bound(3, n), n);
  for (long long i = bound(2, 0); i < stop; i++)
    if (equals(t, items[static_cast<size_t>(i)], a.args[1])) return t.integer(i);
  if (asTuple(a.args[0]) || isReal(a.args[0])) raise(t, PyExc_ValueError, "tuple.index(x): x not in tuple");
  PyObject* c = t.constant(a.args[1]);
  ObjectRef text = c ? ObjectRef::steal(PyObject_Repr(c)) : nullptr;
  PyErr_Clear();
  raise(t, PyExc_ValueError, std::string(text ? PyUnicode_AsUTF8(text.get()) : "object") + " is not in list");
}
Value* sequenceCount(Trace& t, CallArgs& a) {
  expectArgs(t, a, "count", 2, 2);
  long long n = 0;
  for (Value* v : sequenceItems(t, a.args[0])) n += equals(t, v, a.args[1]);
  return t.integer(n);
}

// ---- deque -----------------------------------------------------------------------------------------------------------

// Cuts a deque to its bound, from the side opposite to the one that grew.
void setDeque(Trace& t, ListValue* d, std::vector<Value*> items, bool grewLeft) {
  if (d->maxlen >= 0 && static_cast<int64_t>(items.size()) > d->maxlen) {
    size_t extra = items.size() - static_cast<size_t>(d->maxlen);
    if (grewLeft)
      items.resize(items.size() - extra);
    else
      items.erase(items.begin(), items.begin() + static_cast<ptrdiff_t>(extra));
  }
  t.setItems(d, std::move(items));
}

Value* makeDeque(Trace& t, CallArgs& a) {
  Value* bound = a.takeKeyword("maxlen");
  Value* iterable = a.takeKeyword("iterable");
  if (!a.args.empty()) iterable = a.args[0];
  if (a.args.size() > 1) bound = a.args[1];
  ListValue* d = t.list({});
  d->type = dequeType();
  if (bound && !isReal(bound, Py_None)) {
    std::optional<long long> n = asInteger(t, bound);
    if (!n) raise(t, PyExc_TypeError, "an integer is required");
    if (*n < 0) raise(t, PyExc_ValueError, "maxlen must be non-negative");
    d->maxlen = *n;
  }
  if (iterable) setDeque(t, d, itemsOf(t, iterable), false);
  return d;
}
Value* dequeAppend(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "append");
  auto items = d->items;
  items.push_back(a.args.at(1));
  setDeque(t, d, std::move(items), false);
  return t.none();
}
Value* dequeAppendleft(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "appendleft");
  auto items = d->items;
  items.insert(items.begin(), a.args.at(1));
  setDeque(t, d, std::move(items), true);
  return t.none();
}
Value* dequeExtend(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "extend");
  auto items = d->items;
  for (Value* v : itemsOf(t, a.args.at(1))) items.push_back(v);
  setDeque(t, d, std::move(items), false);
  return t.none();
}
Value* dequeExtendleft(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "extendleft");
  auto items = d->items;
  for (Value* v : itemsOf(t, a.args.at(1))) items.insert(items.begin(), v);
  setDeque(t, d, std::move(items), true);
  return t.none();
}
Value* dequePop(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "pop");
  if (d->items.empty()) raise(t, PyExc_IndexError, "pop from an empty deque");
  auto items = d->items;
  Value* v = items.back();
  items.pop_back();
  t.setItems(d, std::move(items));
  return v;
}
Value* dequePopleft(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "popleft");
  if (d->items.empty()) raise(t, PyExc_IndexError, "pop from an empty deque");
  auto items = d->items;
  Value* v = items.front();
  items.erase(items.begin());
  t.setItems(d, std::move(items));
  return v;
}
Value* dequeRotate(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "rotate");
  long long n = a.args.size() > 1 ? asInteger(t, a.args[1]).value_or(0) : 1;
  auto items = d->items;
  if (!items.empty()) {
    long long size = static_cast<long long>(items.size());
    n = ((n % size) + size) % size;
    std::rotate(items.begin(), items.end() - n, items.end());
  }
  t.setItems(d, std::move(items));
  return t.none();
}
Value* dequeCopy(Trace& t, CallArgs& a) {
  ListValue* d = selfList(t, a, "copy");
  ListValue* copy = t.list(d->items);
  copy->type = dequeType();
  copy->maxlen = d->maxlen;
  return copy;
}

// Slot wrappers called explicitly, such as list.__getitem__(self, i) from a subclass: the raw operation on the contents.
Value* rawSelf(Trace&, Value* v) {
  if (v->kind == Kind::Instance && as<InstanceValue>(v)->contents) return as<InstanceValue>(v)->contents;
  return v;
}
Value* slotGetitem(Trace& t, CallArgs& a) {
  expectArgs(t, a, "__getitem__", 2, 2);
  return getItem(t, rawSelf(t, a.args[0]), a.args[1]);
}
Value* slotSetitem(Trace& t, CallArgs& a) {
  expectArgs(t, a, "__setitem__", 3, 3);
  Value* self = rawSelf(t, a.args[0]);
  setItem(t, self, a.args[1], a.args[2]);
  return t.none();
}
Value* slotDelitem(Trace& t, CallArgs& a) {
  expectArgs(t, a, "__delitem__", 2, 2);
  delItem(t, rawSelf(t, a.args[0]), a.args[1]);
  return t.none();
}
Value* slotContains(Trace& t, CallArgs& a) {
  expectArgs(t, a, "__contains__", 2, 2);
  return t.boolean(contains(t, rawSelf(t, a.args[0]), a.args[1]));
}
Value* slotLen(Trace& t, CallArgs& a) {
  expectArgs(t, a, "__len__", 1, 1);
  return t.integer(length(t, rawSelf(t, a.args[0])));
}
Value* slotIter(Trace& t, CallArgs& a) {
  expectArgs(t, a, "__iter__", 1, 1);
  return iterate(t, rawSelf(t, a.args[0]));
}
template <int op>
Value* slotCompare(Trace& t, CallArgs& a) {
  expectArgs(t, a, "comparison", 2, 2);
  Value *x = rawSelf(t, a.args[0]), *y = rawSelf(t, a.args[1]);
  return compareOp(t, op, x, y);
}

// ---- dict ------------------------------------------------------------------------------------------------------------

DictValue* selfDict(CallArgs& a, const char* method) {
  DictValue* d = a.args.empty() ? nullptr : asDict(a.args[0]);
  if (!d) unsupported(BreakReason::MethodCall, std::string("dict.") + method + " on " + (a.args.empty() ? "nothing" : describe(a.args[0])));
  return d;
}

Value* dictGet(Trace& t, CallArgs& a) {
  expectArgs(t, a, "get", 2, 3);
  if (isReal(a.args[0]) && Py_TYPE(realObject(a.args[0])) == &PyDictProxy_Type) {
    PyObject* key = t.constant(a.args[1]);
    PyObject* v = key ? PyObject_GetItem(realObject(a.args[0]), key) : nullptr;
    if (v) return t.real(ObjectRef::steal(v));
    PyErr_Clear();
    return a.args.size() > 2 ? a.args[2] : t.none();
  }
  Value* v = t.dictGet(selfDict(a, "get"), t.keyOf(a.args[1]));
  return v ? v : a.args.size() > 2 ? a.args[2] : t.none();
}
Value* view(Trace& t, CallArgs& a, DictViewValue::What what, const char* name) {
  DictValue* d = selfDict(a, name);
  expectArgs(t, a, name, 1, 1);
  return t.make<DictViewValue>(d, what);
}
Value* dictKeys(Trace& t, CallArgs& a) { return view(t, a, DictViewValue::Keys, "keys"); }
Value* dictValues(Trace& t, CallArgs& a) { return view(t, a, DictViewValue::Values, "values"); }
Value* dictItems(Trace& t, CallArgs& a) { return view(t, a, DictViewValue::Items, "items"); }

void dictFill(Trace& t, Value* self, DictValue* d, CallArgs& a, size_t first) {
  auto put = [&](Value* k, Value* v) { t.dictSet(d, t.keyOf(k), v); };
  (void)self;
  if (a.args.size() > first) {
    Value* src = a.args[first];
    if (DictValue* other = mergedAsDict(t, src)) {
      t.complete(other);
      for (size_t i = 0; i < other->entries.size(); i++)
        if (other->entries[i].value) put(other->entries[i].key.value, other->entries[i].value);
    } else if (Value* keys = isReal(src) || src->kind == Kind::List || src->kind == Kind::Tuple
                                 ? nullptr
                                 : getAttrOrNull(t, src, t.keep(checked(PyUnicode_InternFromString("keys"))))) {
      for (Value* k : itemsOf(t, call(t, keys, {}))) put(k, getItem(t, src, k));
    } else if (isReal(src) && Py_TYPE(realObject(src)) == &PyDictProxy_Type) {
      unsupported(BreakReason::MethodCall, "a dict of " + describe(src));
    } else {
      for (Value* pair : itemsOf(t, src)) {
        auto kv = itemsOf(t, pair);
        if (kv.size() != 2)
          raise(t, PyExc_ValueError, "dictionary update sequence element #0 has length " + std::to_string(kv.size()) + "; 2 is required");
        put(kv[0], kv[1]);
      }
    }
  }
  for (auto& [name, v] : a.kwargs) put(t.realShared(name), v);
}

Value* dictUpdate(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "update");
  dictFill(t, a.args[0], d, a, 1);
  return t.none();
}
Value* dictInit(Trace& t, CallArgs& a) { return dictUpdate(t, a); }

Value* makeDict(Trace& t, CallArgs& a, PyTypeObject* type, size_t first) {
  DictValue* d = t.dict();
  d->type = type;
  dictFill(t, d, d, a, first);
  return d;
}
Value* builtinDict(Trace& t, CallArgs& a) { return makeDict(t, a, &PyDict_Type, 0); }
Value* orderedDict(Trace& t, CallArgs& a) { return makeDict(t, a, &PyODict_Type, 0); }
Value* defaultDict(Trace& t, CallArgs& a) {
  static auto* type = reinterpret_cast<PyTypeObject*>(importedObject("collections", "defaultdict"));
  Value* d = makeDict(t, a, type, 1);
  as<DictValue>(d)->defaultFactory = a.args.empty() ? t.none() : a.args[0];
  return d;
}

Value* dictPop(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "pop");
  Value* fallback = a.takeKeyword("default");
  expectArgs(t, a, "pop", 2, 3);
  if (a.args.size() > 2) fallback = a.args[2];
  DictKey k = t.keyOf(a.args[1]);
  Value* v = t.dictGet(d, k);
  if (!v) {
    if (fallback) return fallback;
    keyError(t, a.args[1]);
  }
  t.dictDelete(d, k);
  return v;
}
Value* dictPopitem(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "popitem");
  Value* last = a.takeKeyword("last");
  if (a.args.size() > 1) last = a.args[1];
  t.complete(d);
  bool fromEnd = !last || truth(t, last);
  for (size_t i = 0; i < d->entries.size(); i++) {
    DictEntry& e = d->entries[fromEnd ? d->entries.size() - 1 - i : i];
    if (!e.value) continue;
    Value* pair = t.tuple({e.key.value, e.value});
    t.dictDelete(d, DictKey(e.key));
    return pair;
  }
  raise(t, PyExc_KeyError, d->type == &PyODict_Type ? "dictionary is empty" : "popitem(): dictionary is empty");
}
Value* dictSetdefault(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "setdefault");
  expectArgs(t, a, "setdefault", 2, 3);
  DictKey k = t.keyOf(a.args[1]);
  if (Value* v = t.dictGet(d, k)) return v;
  Value* v = a.args.size() > 2 ? a.args[2] : t.none();
  t.dictSet(d, k, v);
  return v;
}
Value* dictClear(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "clear");
  t.complete(d);
  for (size_t i = 0; i < d->entries.size(); i++)
    if (d->entries[i].value) t.dictDelete(d, DictKey(d->entries[i].key));
  t.touch(d);
  return t.none();
}
Value* dictCopy(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "copy");
  DictValue* copy = t.dict();
  if (a.args[0]->kind == Kind::Dict) copy->type = d->type;
  copy->defaultFactory = d->defaultFactory;
  t.complete(d);
  for (const DictEntry& e : d->entries)
    if (e.value) t.dictSet(copy, e.key, e.value);
  return copy;
}
Value* dictFromkeys(Trace& t, CallArgs& a) {
  expectArgs(t, a, "fromkeys", 2, 3);
  DictValue* d = t.dict();
  if (isReal(a.args[0]) && realObject(a.args[0]) != reinterpret_cast<PyObject*>(&PyDict_Type))
    unsupported(BreakReason::MethodCall, "fromkeys of a dict subclass");
  for (Value* k : itemsOf(t, a.args[1])) t.dictSet(d, t.keyOf(k), a.args.size() > 2 ? a.args[2] : t.none());
  return d;
}
Value* dictMoveToEnd(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "move_to_end");
  Value* last = a.takeKeyword("last");
  if (a.args.size() > 2) last = a.args[2];
  t.complete(d);
  DictKey k = t.keyOf(a.args[1]);
  Value* v = t.dictGet(d, k);
  if (!v) {
    keyError(t, a.args[1]);
  }
  auto toEnd = [&](const DictKey& key, Value* value) {
    t.dictDelete(d, key);
    t.dictSet(d, key, value);
  };
  toEnd(k, v);
  if (last && !truth(t, last)) {
    // To the front: all others go behind it, in their order.
    auto others = d->entries;
    for (const DictEntry& e : others)
      if (e.value && e.value != v)
        toEnd(e.key, e.value);
      else if (e.value && !DictKeyEqual()(e.key, k))
        toEnd(e.key, e.value);
  }
  return t.none();
}

// ---- set -------------------------------------------------------------------------------------------------------------

SetValue* selfSet(Trace& t, CallArgs& a, const char* method) {
  SetValue* s = a.args.empty() ? nullptr : asSet(a.args[0]);
  if (!s) unsupported(BreakReason::MethodCall, std::string("set.") + method + " on " + (a.args.empty() ? "nothing" : describe(a.args[0])));
  t.load(s);
  return s;
}
Value* setAdd(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a, "add");
  t.setAdd(s, t.keyOf(a.args.at(1)));
  return t.none();
}
Value* setDiscard(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a, "discard");
  t.setDiscard(s, t.keyOf(a.args.at(1)));
  return t.none();
}
Value* setRemove(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a, "remove");
  if (!t.setDiscard(s, t.keyOf(a.args.at(1)))) keyError(t, a.args[1]);
  return t.none();
}
Value* setPop(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a, "pop");
  if (s->items.empty()) raise(t, PyExc_KeyError, "pop from an empty set");
  if (s->items.size() > 1) unsupported(BreakReason::UnknownOrder, "set.pop, whose order is not known");
  Value* v = s->items[0].value;
  t.setDiscard(s, DictKey(s->items[0]));
  return v;
}
Value* setUpdate(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a, "update");
  for (size_t i = 1; i < a.args.size(); i++)
    for (Value* v : unorderedItems(t, a.args[i])) t.setAdd(s, t.keyOf(v));
  if (a.args.size() > 1)
    t.journal.set(s->replayable, s->replayable && a.args.size() == 2 && (a.args[1]->kind == Kind::List || a.args[1]->kind == Kind::Tuple));
  return t.none();
}
Value* setInit(Trace& t, CallArgs& a) {
  expectArgs(t, a, "set", 1, 2);
  SetValue* s = selfSet(t, a, "__init__");
  while (!s->items.empty()) t.setDiscard(s, DictKey(s->items.back()));
  return setUpdate(t, a);
}
Value* setClear(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a, "clear");
  while (!s->items.empty()) t.setDiscard(s, DictKey(s->items.back()));
  return t.none();
}
template <int op>
Value* setCombine(Trace& t, CallArgs& a) {
  Value* result = selfSet(t, a, "operation");
  auto* copy = t.make<SetValue>();
  copy->type = as<SetValue>(result)->type;
  copy->replayable = false;
  for (const DictKey& k : as<SetValue>(result)->items) t.setAdd(copy, k);
  result = copy;
  for (size_t i = 1; i < a.args.size(); i++) {
    auto* other = t.make<SetValue>();
    other->type = &PySet_Type;
    for (Value* v : unorderedItems(t, a.args[i])) t.setAdd(other, t.keyOf(v));
    result = binaryOp(t, op, result, other);
  }
  return result;
}
template <int op>
Value* setRelation(Trace& t, CallArgs& a) {
  SetValue* s = selfSet(t, a, "relation");
  auto* other = t.make<SetValue>();
  other->type = &PySet_Type;
  for (Value* v : unorderedItems(t, a.args.at(1))) t.setAdd(other, t.keyOf(v));
  if (op == -1) {
    for (const DictKey& k : s->items)
      if (t.setHas(other, k)) return t.boolean(false);
    return t.boolean(true);
  }
  return compareOp(t, op, s, other);
}
Value* setCopy(Trace& t, CallArgs& a) { return setCombine<7>(t, a); }

// ---- str -------------------------------------------------------------------------------------------------------------

Value* strJoin(Trace& t, CallArgs& a) {
  expectArgs(t, a, "join", 2, 2);
  if (Value* core = coreOf(t, a.args[0])) a.args[0] = core;
  PyObject* sep = t.constant(a.args[0]);
  if (!sep) unsupported(BreakReason::UnsupportedCall, "str.join of " + describe(a.args[0]));
  ObjectRef parts = checked(PyList_New(0));
  std::vector<Value*> items = itemsOf(t, a.args[1]);
  for (Value* v : items) {
    if (Value* core = coreOf(t, v)) v = core;
    PyObject* c = t.constant(v);
    if (!c && isLateText(v))
      if (Value* late = lateJoin(t, a.args[0], items)) return late;
    if (!c) unsupported(BreakReason::UnsupportedText, "str.join with " + describe(v));
    checkedStatus(PyList_Append(parts.get(), c));
  }
  return t.real(native(t, PyUnicode_Join(sep, parts.get())));
}

Value* strFormat(Trace& t, CallArgs& a) {
  PyObject* self = t.constant(a.args.at(0));
  if (!self) unsupported(BreakReason::UnsupportedText, "str.format");
  bool objects = false;
  for (size_t i = 1; i < a.args.size(); i++) objects |= a.args[i]->kind == Kind::Instance && !isLateText(a.args[i]);
  for (auto& [name, v] : a.kwargs) objects |= v->kind == Kind::Instance && !isLateText(v);
  if (objects) {
    // Field by field, as string.Formatter does it.
    DictValue* kwargs = t.dict();
    for (auto& [name, v] : a.kwargs) t.dictSet(kwargs, t.keyOf(t.realShared(name)), v);
    Value* fields = t.real(native(t, PyObject_CallOneArg(importedObject("cdynamo.polyfills", "format_fields"), self)));
    return call(t, pinnedValue(t, importedObject("cdynamo.polyfills", "format_text")),
                {{fields, t.tuple({a.args.begin() + 1, a.args.end()}), kwargs}, {}});
  }
  ObjectRef args = checked(PyTuple_New(static_cast<Py_ssize_t>(a.args.size() - 1)));
  // Real copies, or the text where the fields ask for nothing else.
  std::string pattern = PyUnicode_AsUTF8(self);
  bool late = false;
  auto constantOrText = [&](Value*& v) {
    if (ObjectRef copy = isTensor(v) || isLateText(v) ? nullptr : snapshot(t, v)) {
      v = t.real(copy);
      return copy;
    }
    if (pattern.find_first_of("!:.[") != std::string::npos) unsupported(BreakReason::UnsupportedText, "str.format with " + describe(v));
    v = format(t, v, nullptr, 0);
    PyObject* c = t.constant(v);
    late |= !c;
    return ObjectRef::share(c ? c : Py_None);
  };
  for (size_t i = 1; i < a.args.size(); i++) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i - 1), constantOrText(a.args[i]).release());
  ObjectRef kwargs = checked(PyDict_New());
  for (auto& [name, v] : a.kwargs) checkedStatus(PyDict_SetItem(kwargs.get(), name, constantOrText(v).get()));
  if (late) {
    static PyObject* format = typeLookup(&PyUnicode_Type, PyUnicode_InternFromString("format"));
    Value* text = lateText(t, format, a);
    if (!text) unsupported(BreakReason::UnsupportedCall, "str.format with computed values");
    return text;
  }
  ObjectRef method = checked(PyObject_GetAttrString(self, "format"));
  return t.real(native(t, PyObject_Call(method.get(), args.get(), kwargs.get())));
}

// str methods that take a tuple or list of strings.
Value* strWithTuple(Trace& t, CallArgs& a, const char* name) {
  std::vector<PyObject*> constants;
  for (Value* v : a.args) {
    PyObject* c = t.constant(v);
    if (!c) unsupported(BreakReason::MethodCall, std::string("str.") + name + " with " + describe(v));
    constants.push_back(c);
  }
  ObjectRef method = checked(PyObject_GetAttrString(constants[0], name));
  return t.real(native(t, PyObject_Vectorcall(method.get(), constants.data() + 1, constants.size() - 1, nullptr)));
}
Value* strStartswith(Trace& t, CallArgs& a) { return strWithTuple(t, a, "startswith"); }
Value* strEndswith(Trace& t, CallArgs& a) { return strWithTuple(t, a, "endswith"); }

// Methods whose native result is a list must give a fresh symbolic list.
Value* strToList(Trace& t, CallArgs& a, PyObject* method) {
  Value* v = callNative(t, method, a);
  if (!v) unsupported(BreakReason::MethodCall, "a str method with computed arguments");
  return v;
}
template <int which>
Value* strSplitting(Trace& t, CallArgs& a) {
  static PyObject* method = typeLookup(&PyUnicode_Type, PyUnicode_InternFromString(which == 0 ? "split" : which == 1 ? "rsplit" : "splitlines"));
  return strToList(t, a, method);
}

}  // namespace

void addContainerMethods(BuiltinTable& table) {
  struct Row {
    const char* name;
    BuiltinHandler handler;
  };
  const Row lists[] = {{"append", listAppend}, {"extend", listExtend},   {"insert", listInsert},   {"pop", listPop},
                       {"remove", listRemove}, {"clear", listClear},     {"reverse", listReverse}, {"sort", listSort},
                       {"copy", listCopy},     {"index", sequenceIndex}, {"count", sequenceCount}, {"__init__", listInit}};
  for (const Row& r : lists) table.addType(&PyList_Type, r.name, r.handler);
  const Row deques[] = {{"append", dequeAppend},  {"appendleft", dequeAppendleft}, {"extend", dequeExtend}, {"extendleft", dequeExtendleft},
                        {"pop", dequePop},        {"popleft", dequePopleft},       {"rotate", dequeRotate}, {"copy", dequeCopy},
                        {"clear", listClear},     {"remove", listRemove},          {"insert", listInsert},  {"reverse", listReverse},
                        {"index", sequenceIndex}, {"count", sequenceCount}};
  for (const Row& r : deques) table.addType(dequeType(), r.name, r.handler);
  table.add("collections.deque", makeDeque);
  table.addType(&PyTuple_Type, "index", sequenceIndex);
  table.addType(&PyTuple_Type, "count", sequenceCount);
  const Row slots[] = {{"__getitem__", slotGetitem},   {"__setitem__", slotSetitem},   {"__delitem__", slotDelitem},
                       {"__contains__", slotContains}, {"__len__", slotLen},           {"__iter__", slotIter},
                       {"__eq__", slotCompare<Py_EQ>}, {"__ne__", slotCompare<Py_NE>}, {"__lt__", slotCompare<Py_LT>},
                       {"__le__", slotCompare<Py_LE>}, {"__gt__", slotCompare<Py_GT>}, {"__ge__", slotCompare<Py_GE>}};
  for (PyTypeObject* type : {&PyList_Type, &PyTuple_Type, &PyDict_Type, &PyODict_Type, &PySet_Type, &PyFrozenSet_Type})
    for (const Row& r : slots) {
      ObjectRef name = checked(PyUnicode_InternFromString(r.name));
      if (PyDict_GetItemWithError(typeDict(type), name.get())) table.addType(type, r.name, r.handler);
    }
  const Row dicts[] = {{"get", dictGet},       {"keys", dictKeys}, {"values", dictValues},     {"items", dictItems},
                       {"update", dictUpdate}, {"pop", dictPop},   {"popitem", dictPopitem},   {"setdefault", dictSetdefault},
                       {"clear", dictClear},   {"copy", dictCopy}, {"fromkeys", dictFromkeys}, {"__init__", dictInit}};
  for (PyTypeObject* type : {&PyDict_Type, &PyODict_Type})
    for (const Row& r : dicts) table.addType(type, r.name, r.handler);
  table.addType(&PyODict_Type, "move_to_end", dictMoveToEnd);
  table.addType(&PyDictProxy_Type, "get", dictGet);
  table.add("builtins.dict", builtinDict);
  table.add("collections.OrderedDict", orderedDict);
  table.add("collections.defaultdict", defaultDict);
  table.add("collections.defaultdict.copy", dictCopy);
  const Row sets[] = {{"add", setAdd},
                      {"discard", setDiscard},
                      {"remove", setRemove},
                      {"pop", setPop},
                      {"update", setUpdate},
                      {"__init__", setInit},
                      {"clear", setClear},
                      {"union", setCombine<7>},
                      {"intersection", setCombine<1>},
                      {"difference", setCombine<10>},
                      {"symmetric_difference", setCombine<12>},
                      {"copy", setCopy},
                      {"issubset", setRelation<Py_LE>},
                      {"issuperset", setRelation<Py_GE>},
                      {"isdisjoint", setRelation<-1>}};
  for (PyTypeObject* type : {&PySet_Type, &PyFrozenSet_Type})
    for (const Row& r : sets) {
      ObjectRef name = checked(PyUnicode_InternFromString(r.name));
      if (PyDict_GetItemWithError(typeDict(type), name.get())) table.addType(type, r.name, r.handler);
    }
  const Row strs[] = {{"join", strJoin},          {"format", strFormat},       {"startswith", strStartswith},  {"endswith", strEndswith},
                      {"split", strSplitting<0>}, {"rsplit", strSplitting<1>}, {"splitlines", strSplitting<2>}};
  for (const Row& r : strs) table.addType(&PyUnicode_Type, r.name, r.handler);
}

}  // namespace cdynamo
