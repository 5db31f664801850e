// functools.lru_cache: a result that is kept is an input of the frame, reached through the cache; where none is, the function is traced
// and the cache is told after the graph. Its counts and its order are those of a plain run.
#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/lru_cache.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

// The arguments of a call as the cache sees them.
struct CachedCall {
  ObjectRef args, kwargs;  // real objects
  bool onlyConstants = true;
  bool isNew = false;                // names a class that the trace makes: no cache has a result for it
  std::vector<const Source*> parts;  // of the key; null: the constant at this place
};

[[noreturn]] void refuse(const std::string& what) { unsupported(BreakReason::UnknownFunction, "calling an lru_cache " + what); }

// The object behind an argument that the trace did not make and that is hashed and compared by its identity.
PyObject* existingKey(Trace& t, Value* v) {
  PyObject* object = existing(v);
  if (!object || isMadeAnew(object)) return nullptr;
  PyTypeObject* type = t.typeOf(v);
  return type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare ? object : nullptr;
}

// A constant, a class that the trace makes (its model stands for it), or a tuple of these; null for all else.
ObjectRef fixedPart(Trace& t, CachedCall& c, Value* v) {
  if (isReal(v) && t.localClass(realObject(v))) {
    c.isNew = true;
    return ObjectRef::share(realObject(v));
  }
  if (PyObject* constant = isNumber(v) ? nullptr : t.constant(v)) return ObjectRef::share(constant);
  if (v->kind != Kind::Tuple || t.typeOf(v) != &PyTuple_Type) return nullptr;
  auto* tuple = as<TupleValue>(v);
  t.load(tuple);
  ObjectRef made = checked(PyTuple_New(static_cast<Py_ssize_t>(tuple->items.size())));
  for (size_t i = 0; i < tuple->items.size(); i++) {
    ObjectRef item = fixedPart(t, c, tuple->items[i]);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return made;
}

// One argument; a new reference.
ObjectRef addPart(Trace& t, CachedCall& c, Value* v) {
  if (ObjectRef fixed = fixedPart(t, c, v)) {
    c.parts.push_back(nullptr);
    return fixed;
  }
  PyObject* object = existingKey(t, v);
  if (!object) refuse("with " + describe(v));
  c.onlyConstants = false;
  c.parts.push_back(v->source ? v->source : t.sources.pinned(object));
  return ObjectRef::share(object);
}

CachedCall readCall(Trace& t, const CallArgs& a) {
  CachedCall c;
  c.args = checked(PyTuple_New(static_cast<Py_ssize_t>(a.args.size())));
  for (size_t i = 0; i < a.args.size(); i++) PyTuple_SET_ITEM(c.args.get(), static_cast<Py_ssize_t>(i), addPart(t, c, a.args[i]).release());
  if (a.kwargs.empty()) return c;
  c.kwargs = checked(PyDict_New());
  c.parts.push_back(nullptr);  // the mark
  for (auto& [name, v] : a.kwargs) {
    c.parts.push_back(nullptr);
    checkedStatus(PyDict_SetItem(c.kwargs.get(), name, addPart(t, c, v).get()));
  }
  return c;
}

bool isTyped(PyObject* cache) {
  ObjectRef parameters = checked(PyObject_CallMethod(cache, "cache_parameters", nullptr));
  PyObject* typed = PyDict_Check(parameters.get()) ? PyDict_GetItemString(parameters.get(), "typed") : nullptr;
  if (!typed) refuse("that does not say whether it looks at types");
  return typed == Py_True;
}

// The key in every call: constants, and what the frame's inputs are then.
const Source* keySource(Trace& t, const CachedCall& c, PyObject* key) {
  ObjectRef none = checked(PyTuple_New(0));
  const Source* source = t.sources.owned(none.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
    PyObject* item = PyTuple_GET_ITEM(key, i);
    const Source* part = static_cast<size_t>(i) < c.parts.size() ? c.parts[static_cast<size_t>(i)] : nullptr;
    source = t.sources.tupleWith(source, part ? part : PyType_Check(item) ? t.sources.pinned(item) : t.sources.owned(item));
  }
  return source;
}

Value* realDict(Trace& t, const CallArgs& a) {
  DictValue* d = t.dict();
  for (auto& [name, v] : a.kwargs) t.dictSet(d, t.keyOf(t.realShared(name)), v);
  return d;
}

void tellCache(Trace& t, Value* cache, Value* args, Value* kwargs, Value* result) {
  LateCall late;
  late.callable = importedObject("cdynamo._C", result ? "lru_called" : "lru_raised");
  late.args = {cache, args, kwargs};
  if (result) late.args.push_back(result);
  t.defer(std::move(late), false);
}

// What calls of this trace have left in the cache, which the real one is told later.
Value* resultOfTrace(Trace& t, PyObject* cache, PyObject* key) {
  auto found = t.lruResults.find(cache);
  if (found == t.lruResults.end()) return nullptr;
  PyObject* number = PyDict_GetItemWithError(found->second.numbers.get(), key);
  if (!number) {
    if (PyErr_Occurred()) throw PythonError{};
    return nullptr;
  }
  return found->second.results.at(PyLong_AsSize_t(number));
}

void addResult(Trace& t, PyObject* cache, PyObject* key, Value* result) {
  LruResults& kept = t.lruResults[cache];
  if (!kept.numbers) kept.numbers = checked(PyDict_New());
  ObjectRef number = checked(PyLong_FromSize_t(kept.results.size()));
  checkedStatus(PyDict_SetItem(kept.numbers.get(), key, number.get()));
  kept.results.push_back(result);
  t.journal.onRollback([&t, cache, key = ObjectRef::share(key)] {
    LruResults& results = t.lruResults[cache];
    results.results.pop_back();
    if (PyDict_DelItem(results.numbers.get(), key.get()) < 0) PyErr_Clear();
  });
}

// A cache that is full drops its oldest results: which ones are there is known only while all find room.
void requireRoom(Trace& t, PyObject* cache, const Source* dict) {
  auto found = t.lruResults.find(cache);
  if (found == t.lruResults.end() || found->second.results.empty()) return;
  Py_ssize_t most = lruMaxSize(cache);
  if (most == -2) throw PythonError{};
  if (most < 0) return;
  Py_ssize_t room = most - static_cast<Py_ssize_t>(found->second.results.size());
  if (PyDict_GET_SIZE(lruCacheDict(cache)) > room) refuse("that has no room for the results of this function");
  t.facts.lengthAtMost(dict, room);
}

// cdynamo._C.lru_called(cache, args, kwargs, result), as the polyfill calls it.
Value* called(Trace& t, CallArgs& a) {
  expectArgs(a, 4, 4);
  PyObject* cache = t.identity(a.args[0]);
  auto* positional = as<TupleValue>(a.args[1]);
  t.load(positional);
  CallArgs given{positional->items, {}};
  auto* named = as<DictValue>(a.args[2]);
  t.complete(named);
  for (const DictEntry& entry : named->entries)
    if (entry.value) given.kwargs.emplace_back(entry.key.constant, entry.value);
  CachedCall c = readCall(t, given);
  if (lruMaxSize(cache) != 0) {
    ObjectRef key = checked(lruKey(c.args.get(), c.kwargs.get(), isTyped(cache)));
    addResult(t, cache, key.get(), a.args[3]);
  }
  tellCache(t, a.args[0], a.args[1], a.args[2], a.args[3]);
  return t.none();
}

Value* raised(Trace& t, CallArgs& a) {
  expectArgs(a, 3, 3);
  tellCache(t, a.args[0], a.args[1], a.args[2], nullptr);
  return t.none();
}

// The real functions of these names.
PyObject* tell(PyObject* const* args, Py_ssize_t count, bool hasResult) {
  if (count != (hasResult ? 4 : 3) || !PyTuple_Check(args[1]) || !PyDict_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "expected an lru_cache, a tuple, a dict and what the function gave");
    return nullptr;
  }
  PyObject* kwargs = PyDict_GET_SIZE(args[2]) ? args[2] : nullptr;
  if (lruCalled(args[0], args[1], kwargs, hasResult ? args[3] : nullptr) < 0) return nullptr;
  Py_RETURN_NONE;
}
PyObject* realCalled(PyObject*, PyObject* const* args, Py_ssize_t count) { return tell(args, count, true); }
PyObject* realRaised(PyObject*, PyObject* const* args, Py_ssize_t count) { return tell(args, count, false); }

PyMethodDef functions[] = {{"lru_called", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(realCalled)), METH_FASTCALL,
                            "lru_called(cache, args, kwargs, result): the cache keeps the result, as after a call"},
                           {"lru_raised", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(realRaised)), METH_FASTCALL,
                            "lru_raised(cache, args, kwargs): the cache counts a call that raised"},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

Value* callLruCache(Trace& t, PyObject* callable, Value* callableValue, CallArgs& a) {
  if (!lruCacheDict(callable)) refuse("whose results cannot be seen");
  Value* self = callableValue && callableValue->source ? callableValue : pinnedValue(t, callable);
  t.identity(self);
  CachedCall c = readCall(t, a);
  ObjectRef key = checked(lruKey(c.args.get(), c.kwargs.get(), isTyped(callable)));
  const Source* dict = t.sources.lruCache(self->source ? self->source : t.sources.pinned(callable));
  Value* args = t.tuple(a.args);
  Value* kwargs = realDict(t, a);
  requireRoom(t, callable, dict);
  if (Value* result = resultOfTrace(t, callable, key.get())) {
    tellCache(t, self, args, kwargs, result);
    return result;
  }
  const Source* keyed = c.onlyConstants || c.isNew ? nullptr : keySource(t, c, key.get());
  PyObject* item = c.isNew ? nullptr : PyDict_GetItemWithError(lruCacheDict(callable), key.get());
  if (!item && PyErr_Occurred()) throw PythonError{};
  if (item) {
    const Source* place = keyed ? t.sources.keyedItem(dict, keyed) : t.sources.dictItem(dict, key.get());
    Value* result = t.wrap(lruResult(item), t.sources.lruResult(place));
    t.facts.present(place);
    tellCache(t, self, args, kwargs, result);
    return result;
  }
  if (keyed) t.facts.lacksKey(dict, keyed);
  if (!keyed && !c.isNew) t.facts.dictLacks(dict, key.get());
  PyObject* function = lruFunction(callable);
  Value* inner = t.wrap(function, t.sources.owned(function));
  return call(t, pinnedValue(t, importedObject("cdynamo._library", "call_for_cache")), CallArgs{{self, inner, args, kwargs}, {}});
}

void addLruCaches(BuiltinTable& table) {
  table.add("cdynamo._C.lru_called", called);
  table.add("cdynamo._C.lru_raised", raised);
}

void addLruCacheFunctions(PyObject* module) { checkedStatus(PyModule_AddFunctions(module, functions)); }

}  // namespace cdynamo
