// Methods of list, tuple, dict, OrderedDict, str.
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

// Item by item: what was read before an iterator failed is in the list.
void extendList(Trace& t, ListValue* l, Value* source) {
  if (asList(source) || asTuple(source) || isReal(source)) {
    for (Value* v : itemsOf(t, source)) t.append(l, v);
    return;
  }
  Value* it = iterate(t, source);
  while (Value* v = next(t, it)) t.append(l, v);
}

Value* listAppend(Trace& t, CallArgs& a) {
  ListValue* l = listOf(a, "append");
  t.append(l, a.args[1]);
  return t.none();
}
Value* listExtend(Trace& t, CallArgs& a) {
  extendList(t, listOf(a, "extend"), a.args[1]);
  return t.none();
}
Value* listInsert(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "insert");
  expectArgs(a, 3, 3);
  auto items = l->items;
  long long n = static_cast<long long>(items.size()), i = indexArgument(t, a.args[1]);
  if (i < 0) i = std::max(0LL, i + n);
  items.insert(items.begin() + std::min(i, n), a.args[2]);
  t.setItems(l, std::move(items));
  return t.none();
}
Value* listPop(Trace& t, CallArgs& a) {
  ListValue* l = selfList(t, a, "pop");
  expectArgs(a, 1, 2);
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
  // A comparison may change the list.
  for (size_t i = 0; i < l->items.size(); i++)
    if (equals(t, l->items[i], a.args[1])) {
      auto items = l->items;
      if (i < items.size()) items.erase(items.begin() + static_cast<ptrdiff_t>(i));
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
  Value* key = a.takeKeyword("key");
  Value* reverse = a.takeKeyword("reverse");
  expectArgs(a, 1, 1);
  ListValue* l = selfList(t, a, "sort");
  if (key && isSame(t, key, t.none())) key = nullptr;
  bool backwards = reverse && indexArgument(t, reverse) != 0;
  // Empty while it is sorted, as CPython has it.
  auto items = l->items;
  t.setItems(l, {});
  const int64_t resizes = l->resizes;
  std::vector<Value*> sorted;
  try {
    sorted = sortedItems(t, items, key, backwards);
  } catch (Raised&) {
    t.setItems(l, std::move(items));
    throw;
  }
  bool changed = l->resizes != resizes;
  t.setItems(l, std::move(sorted));
  if (changed) raise(t, PyExc_ValueError, "list modified during sort");
  return t.none();
}
Value* listCopy(Trace& t, CallArgs& a) { return t.list(selfList(t, a, "copy")->items); }
Value* listInit(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 2);
  ListValue* l = selfList(t, a, "__init__");
  t.setItems(l, {});
  if (a.args.size() > 1) extendList(t, l, a.args[1]);
  return t.none();
}

std::vector<Value*> sequenceItems(Trace& t, Value* v) {
  const auto* items = heldItems(t, v);
  return items ? *items : itemsOf(t, v);
}

Value* sequenceIndex(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 4);
  ListValue* list = asList(a.args[0]);
  auto items = sequenceItems(t, a.args[0]);
  long long n = static_cast<long long>(items.size());
  auto [start, stop] = searchBounds(t, a, n);
  for (long long i = start; i < stop && i < static_cast<long long>(list ? list->items.size() : items.size()); i++)
    if (equals(t, list ? list->items[static_cast<size_t>(i)] : items[static_cast<size_t>(i)], a.args[1])) return t.integer(i);
  if (!list) raise(t, PyExc_ValueError, "tuple.index(x): x not in tuple");
  raiseNotIn(t, a.args[1], "list");
}
Value* sequenceCount(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  long long n = 0;
  for (Value* v : sequenceItems(t, a.args[0])) n += equals(t, v, a.args[1]);
  return t.integer(n);
}

// ---- dict ------------------------------------------------------------------------------------------------------------

DictValue* selfDict(CallArgs& a, const char* method) {
  DictValue* d = a.args.empty() ? nullptr : asDict(a.args[0]);
  if (!d) unsupported(BreakReason::MethodCall, std::string("dict.") + method + " on " + (a.args.empty() ? "nothing" : describe(a.args[0])));
  return d;
}

Value* dictGet(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 3);
  Value* v = t.dictGet(selfDict(a, "get"), t.keyOf(a.args[1]));
  return v ? v : a.args.size() > 2 ? a.args[2] : t.none();
}
Value* view(Trace& t, CallArgs& a, DictViewValue::What what, const char* name) {
  DictValue* d = selfDict(a, name);
  expectArgs(a, 1, 1);
  return t.make<DictViewValue>(d, what);
}
Value* dictKeys(Trace& t, CallArgs& a) { return view(t, a, DictViewValue::Keys, "keys"); }
Value* dictValues(Trace& t, CallArgs& a) { return view(t, a, DictViewValue::Values, "values"); }
Value* dictItems(Trace& t, CallArgs& a) { return view(t, a, DictViewValue::Items, "items"); }

// A key and its value, from what dict.update() was given as number `at`.
std::vector<Value*> pairOf(Trace& t, Value* pair, size_t at, bool ordered) {
  std::vector<Value*> kv;
  try {
    kv = itemsOf(t, pair);
  } catch (Raised& r) {
    if (ordered || t.typeOf(r.exception) != reinterpret_cast<PyTypeObject*>(PyExc_TypeError)) throw;
    raise(t, PyExc_TypeError, "cannot convert dictionary update sequence element #" + std::to_string(at) + " to a sequence");
  }
  if (kv.size() == 2) return kv;
  if (ordered)
    raise(t, PyExc_ValueError,
          kv.size() > 2 ? "too many values to unpack (expected 2)"
                        : "need more than " + std::to_string(kv.size()) + " value" + (kv.size() == 1 ? "" : "s") + " to unpack");
  raise(t, PyExc_ValueError,
        "dictionary update sequence element #" + std::to_string(at) + " has length " + std::to_string(kv.size()) + "; 2 is required");
}

// self: the object whose contents d is, or null.
void dictFill(Trace& t, DictValue* d, CallArgs& a, size_t first, Value* self = nullptr) {
  const bool ordered = PyType_IsSubtype(d->type, &PyODict_Type);
  // OrderedDict asks the class for its __setitem__, dict does not.
  const bool byClass = ordered && self && self->kind == Kind::Instance && overrides(t, self, "__setitem__");
  auto put = [&](Value* k, Value* v) { byClass ? setItem(t, self, k, v) : t.dictSet(d, t.keyOf(k), v); };
  if (a.args.size() > first) {
    Value* src = a.args[first];
    const bool hasNone = (isReal(src) && Py_TYPE(realObject(src)) != &PyDictProxy_Type) || src->kind == Kind::List || src->kind == Kind::Tuple;
    auto methodOf = [&](const char* name) { return hasNone ? nullptr : getAttrOrNull(t, src, t.keep(checked(PyUnicode_InternFromString(name)))); };
    if (DictValue* other = mergedAsDict(t, src)) {
      t.complete(other);
      size_t live = other->live, size = other->entries.size();
      for (size_t i = 0; i < other->entries.size(); i++) {
        if (!other->entries[i].value) continue;
        put(other->entries[i].key.value, other->entries[i].value);
        if (other != d && (other->live != live || other->entries.size() != size))
          unsupported(BreakReason::HashOrCompare, "merging a dict that a comparison changes");
      }
    } else if (Value* keys = methodOf("keys")) {
      // dict makes a list of them first.
      Value* it = ordered ? iterate(t, call(t, keys, {})) : t.list(itemsOf(t, call(t, keys, {})));
      for (it = iterate(t, it); Value* k = next(t, it);) put(k, getItem(t, src, k));
    } else if (isReal(src) && Py_TYPE(realObject(src)) == &PyDictProxy_Type) {
      unsupported(BreakReason::MethodCall, "a dict of " + describe(src));
    } else {
      size_t at = 0;
      Value* items = ordered ? methodOf("items") : nullptr;
      Value* it = iterate(t, items ? call(t, items, {}) : src);
      while (Value* pair = next(t, it)) {
        std::vector<Value*> kv = pairOf(t, pair, at++, ordered);
        put(kv[0], kv[1]);
      }
    }
  }
  for (auto& [name, v] : a.kwargs) put(t.realShared(name), v);
}

Value* dictUpdate(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "update");
  if (a.args.size() > 2) throw WrongArguments{};
  dictFill(t, d, a, 1, a.args[0]);
  return t.none();
}
Value* dictInit(Trace& t, CallArgs& a) { return dictUpdate(t, a); }

Value* makeDict(Trace& t, CallArgs& a, PyTypeObject* type, size_t first) {
  if (a.args.size() > first + 1) throw WrongArguments{};
  DictValue* d = t.dict();
  d->type = type;
  dictFill(t, d, a, first);
  return d;
}
Value* builtinDict(Trace& t, CallArgs& a) { return makeDict(t, a, &PyDict_Type, 0); }
Value* orderedDict(Trace& t, CallArgs& a) { return makeDict(t, a, &PyODict_Type, 0); }
Value* defaultDict(Trace& t, CallArgs& a) {
  static auto* type = reinterpret_cast<PyTypeObject*>(importedObject("collections", "defaultdict"));
  Value* factory = a.args.empty() ? t.none() : a.args[0];
  if (!isSame(t, factory, t.none()) && t.constant(call1(t, t.realShared(importedObject("builtins", "callable")), factory)) != Py_True)
    raise(t, PyExc_TypeError, "first argument must be callable or None");
  Value* d = makeDict(t, a, type, 1);
  as<DictValue>(d)->defaultFactory = factory;
  return d;
}

// CPython looks a key up once where the model asks twice: a comparison that writes would write twice.
void oneLookup(Trace& t, uint64_t writesBefore) {
  if (t.writes != writesBefore) unsupported(BreakReason::HashOrCompare, "a lookup whose comparison changes something");
}

// OrderedDict raises KeyError(key) as PyErr_SetObject makes it: a tuple is all arguments, None is none.
[[noreturn]] void orderedKeyError(Trace& t, Value* key) {
  if (isReal(key, Py_None)) throw Raised{t.real(checked(PyObject_CallNoArgs(PyExc_KeyError)))};
  if (TupleValue* tuple = asTuple(key)) {
    t.load(tuple);
    InstanceValue* error = makeInstance(t, reinterpret_cast<PyTypeObject*>(PyExc_KeyError));
    error->exceptionArgs = t.tuple(tuple->items);
    throw Raised{error};
  }
  PyObject* constant = t.constant(key);
  if (constant && PyTuple_Check(constant)) throw Raised{t.real(checked(PyObject_CallObject(PyExc_KeyError, constant)))};
  keyError(t, key);
}

Value* dictPop(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "pop");
  Value* fallback = a.takeKeyword("default");
  expectArgs(a, 2, 3);
  if (a.args.size() > 2) fallback = a.args[2];
  DictKey k;
  try {
    k = t.keyOf(a.args[1]);
  } catch (const Raised&) {
    // Where nothing is in it, dict does not even hash the key.
    if (PyType_IsSubtype(d->type, &PyODict_Type) || length(t, d) != 0) throw;
    if (fallback) return fallback;
    keyError(t, a.args[1]);
  }
  uint64_t before = t.writes;
  Value* v = t.dictGet(d, k);
  oneLookup(t, before);
  if (!v) {
    if (fallback) return fallback;
    if (PyType_IsSubtype(d->type, &PyODict_Type)) orderedKeyError(t, a.args[1]);
    keyError(t, a.args[1]);
  }
  t.dictDelete(d, k);
  return v;
}
Value* dictPopitem(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "popitem");
  Value* last = a.takeKeyword("last");
  expectArgs(a, 1, 2);
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
  Value* fallback = a.takeKeyword("default");
  expectArgs(a, 2, 3);
  DictKey k = t.keyOf(a.args[1]);
  uint64_t before = t.writes;
  if (Value* v = t.dictGet(d, k)) return v;
  oneLookup(t, before);
  Value* v = a.args.size() > 2 ? a.args[2] : fallback ? fallback : t.none();
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
DictValue* copyOf(Trace& t, DictValue* d, PyTypeObject* type) {
  DictValue* copy = t.dict();
  copy->type = type;
  t.complete(d);
  for (const DictEntry& e : d->entries)
    if (e.value) t.dictSet(copy, e.key, e.value);
  return copy;
}
Value* dictCopy(Trace& t, CallArgs& a) { return copyOf(t, selfDict(a, "copy"), &PyDict_Type); }
Value* orderedDictCopy(Trace& t, CallArgs& a) {
  if (a.args[0]->kind == Kind::Dict) return copyOf(t, selfDict(a, "copy"), &PyODict_Type);
  return call1(t, pinnedValue(t, importedObject("cdynamo.polyfills", "ordered_dict_copy")), a.args[0]);
}
Value* defaultDictCopy(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "copy");
  Value* factory = defaultFactory(t, d);
  if (a.args[0]->kind != Kind::Dict) return call(t, typeValue(t, a.args[0]), {{factory, a.args[0]}, {}});
  DictValue* copy = copyOf(t, d, d->type);
  copy->defaultFactory = factory;
  return copy;
}
Value* dictFromkeys(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 3);
  Value* value = a.args.size() > 2 ? a.args[2] : t.none();
  Value* cls = a.args[0];
  // What the class makes is filled by its own rules.
  Value* made = isReal(cls, reinterpret_cast<PyObject*>(&PyDict_Type)) ? t.dict() : call(t, cls, {});
  Value* it = iterate(t, a.args[1]);
  while (Value* k = next(t, it)) {
    if (made->kind == Kind::Dict)
      t.dictSet(as<DictValue>(made), t.keyOf(k), value);
    else
      setItem(t, made, k, value);
  }
  return made;
}
Value* dictMoveToEnd(Trace& t, CallArgs& a) {
  DictValue* d = selfDict(a, "move_to_end");
  Value* last = a.takeKeyword("last");
  if (Value* key = a.takeKeyword("key")) a.args.insert(a.args.begin() + 1, key);
  expectArgs(a, 2, 3);
  if (a.args.size() > 2) last = a.args[2];
  t.complete(d);
  DictKey k = t.keyOf(a.args[1]);
  Value* v = t.dictGet(d, k);
  if (!v) orderedKeyError(t, a.args[1]);
  k = t.resolve(d, k);  // the key that it has, which may be another object
  if (auto found = d->index.find(k); found != d->index.end()) k = d->entries[found->second].key;
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

// ---- str -------------------------------------------------------------------------------------------------------------

Value* strJoin(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  if (Value* core = coreOf(t, a.args[0])) a.args[0] = core;
  PyObject* sep = t.constant(a.args[0]);
  if (!sep) unsupported(BreakReason::UnsupportedCall, "str.join of " + describe(a.args[0]));
  ObjectRef parts = checked(PyList_New(0));
  if (PyTypeObject* type = t.typeOf(a.args[1]); !type->tp_iter && !(type->tp_as_sequence && type->tp_as_sequence->sq_item))
    raise(t, PyExc_TypeError, "can only join an iterable");
  if (a.args[1]->kind == Kind::Instance) try {
      a.args[1] = iterate(t, a.args[1]);
    } catch (const Raised& r) {
      if (!isA(t, r.exception, PyExc_TypeError)) throw;
      raise(t, PyExc_TypeError, "can only join an iterable");
    }
  std::vector<Value*> items = itemsOf(t, a.args[1]);
  for (Value* v : items) {
    if (Value* core = coreOf(t, v); core && t.typeOf(core) == &PyUnicode_Type) v = core;
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
  // A defaultdict may be given a new item by a field.
  auto isObject = [&](Value* v) { return (v->kind == Kind::Instance && !isLateText(v)) || (asDict(v) && defaultFactory(t, asDict(v))); };
  for (size_t i = 1; i < a.args.size(); i++) objects |= isObject(a.args[i]);
  for (auto& [name, v] : a.kwargs) objects |= isObject(v);
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

std::pair<long long, long long> searchBounds(Trace& t, const CallArgs& a, long long length) {
  auto bound = [&](size_t i, long long fallback) {
    if (a.args.size() <= i) return fallback;
    long long b = sliceIndex(t, a.args[i]);
    return b < 0 ? std::max(0LL, b + length) : b;
  };
  long long start = bound(2, 0);
  return {start, bound(3, length)};
}

void raiseNotIn(Trace& t, Value* v, const char* container) {
  PyObject* text = t.constant(repr(t, v));
  if (!text) unsupported(BreakReason::UnsupportedText, "a message about " + describe(v));
  ObjectRef message = checked(PyUnicode_FromFormat("%U is not in %s", text, container));
  throw Raised{t.real(checked(PyObject_CallOneArg(PyExc_ValueError, message.get())))};
}

namespace {

// A method of OrderedDict that asks a derived class for its own ways.
template <BuiltinHandler handler>
Value* byItsClass(Trace& t, CallArgs& a) {
  if (!a.args.empty() && a.args[0]->kind == Kind::Instance)
    for (const char* method : {"__getitem__", "__setitem__", "__delitem__", "__contains__", "__missing__"})
      if (overrides(t, a.args[0], method)) unsupported(BreakReason::MethodCall, std::string("a method of OrderedDict on a class with a ") + method);
  return handler(t, a);
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
  table.addType(&PyTuple_Type, "index", sequenceIndex);
  table.addType(&PyTuple_Type, "count", sequenceCount);
  const Row ordered[] = {{"keys", dictKeys},
                         {"values", dictValues},
                         {"items", dictItems},
                         {"update", dictUpdate},
                         {"pop", byItsClass<dictPop>},
                         {"popitem", byItsClass<dictPopitem>},
                         {"setdefault", byItsClass<dictSetdefault>},
                         {"move_to_end", dictMoveToEnd},
                         {"clear", dictClear},
                         {"copy", byItsClass<orderedDictCopy>},
                         {"__init__", dictInit}};
  for (const Row& r : ordered) table.addType(&PyODict_Type, r.name, r.handler);
  const Row plain[] = {{"get", dictGet},
                       {"fromkeys", dictFromkeys},
                       {"keys", ofPlainDict<dictKeys>},
                       {"values", ofPlainDict<dictValues>},
                       {"items", ofPlainDict<dictItems>},
                       {"update", ofPlainDict<dictUpdate>},
                       {"pop", ofPlainDict<dictPop>},
                       {"popitem", ofPlainDict<dictPopitem>},
                       {"setdefault", ofPlainDict<dictSetdefault>},
                       {"clear", ofPlainDict<dictClear>},
                       {"copy", ofPlainDict<dictCopy>},
                       {"__init__", ofPlainDict<dictInit>}};
  for (const Row& r : plain) table.addType(&PyDict_Type, r.name, r.handler);
  table.addType(&PyODict_Type, "fromkeys", dictFromkeys);
  table.add("builtins.dict", itemByItem<builtinDict>);
  table.add("collections.OrderedDict", orderedDict);
  table.add("collections.defaultdict", defaultDict);
  table.add("collections.defaultdict.copy", defaultDictCopy);
  table.add("collections.defaultdict.__copy__", defaultDictCopy);
  const Row strs[] = {{"join", strJoin},          {"format", strFormat},       {"startswith", strStartswith},  {"endswith", strEndswith},
                      {"split", strSplitting<0>}, {"rsplit", strSplitting<1>}, {"splitlines", strSplitting<2>}};
  for (const Row& r : strs) table.addType(&PyUnicode_Type, r.name, r.handler);
}

}  // namespace cdynamo
