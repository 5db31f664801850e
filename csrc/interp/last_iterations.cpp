// Iteration over what runs Python code of the program, and functions that are called for each item: as traced Python around it.
#include <algorithm>
#include <iterator>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "interp/last_calls.h"

namespace cdynamo {

namespace {

LastCall around(Trace& t, const char* name, std::vector<Value*> args) {
  return {pinnedValue(t, importedObject("cdynamo.polyfills", name)), {std::move(args), {}}};
}

// A call of it may run code of the program.
bool isProgramsCode(Value* callable) {
  switch (callable->kind) {
    case Kind::Function:
    case Kind::Instance: return true;
    case Kind::BoundMethod: return isProgramsCode(as<BoundMethodValue>(callable)->function);
    case Kind::Real: {
      PyObject* object = realObject(callable);
      return PyFunction_Check(object) || PyMethod_Check(object) ||
             (PyType_Check(object) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE));
    }
    default: return false;
  }
}

struct Consumers {
  PyObject* withItems[7];
  PyObject* methods[3];
  PyObject *list, *any, *all, *sorted, *min, *max, *dict;
  Consumers() {
    auto builtin = [](const char* name) { return importedObject("builtins", name); };
    list = builtin("list");
    any = builtin("any");
    all = builtin("all");
    sorted = builtin("sorted");
    min = builtin("min");
    max = builtin("max");
    dict = builtin("dict");
    const char* names[] = {"tuple", "set", "frozenset", "dict", "sum", "min", "max"};
    for (size_t i = 0; i < std::size(names); i++) withItems[i] = builtin(names[i]);
    auto method = [](PyTypeObject& type, const char* name) { return typeLookup(&type, PyUnicode_InternFromString(name)); };
    methods[0] = method(PyUnicode_Type, "join");
    methods[1] = method(PyList_Type, "extend");
    methods[2] = method(PySet_Type, "update");
  }
  bool takesItems(PyObject* object) const {
    return std::find(std::begin(withItems), std::end(withItems), object) != std::end(withItems) || object == sorted;
  }
  bool isMethod(PyObject* object) const { return std::find(std::begin(methods), std::end(methods), object) != std::end(methods); }
};

const Consumers& consumers() {
  static const Consumers all;
  return all;
}

// sorted, min and max with a key function of the program.
LastCall lastWithKey(Trace& t, PyObject* callable, const CallArgs& args) {
  const Consumers& known = consumers();
  if (callable != known.sorted && callable != known.min && callable != known.max) return {};
  Value* key = args.keyword("key");
  if (!key || !isProgramsCode(key) || args.args.size() != 1) return {};
  const char* other = callable == known.sorted ? "reverse" : "default";
  Value* option = args.keyword(other);
  if (args.kwargs.size() != 1u + (option != nullptr)) return {};
  if (callable == known.sorted) return around(t, "sorted_by", {args.args[0], key, option ? option : t.boolean(false)});
  if (!option) option = pinnedValue(t, importedObject("cdynamo.polyfills", "_missing"));
  PyObject* before = importedObject("operator", callable == known.max ? "gt" : "lt");
  return around(t, "chosen_by", {args.args[0], key, option, t.realShared(before), t.realShared(callable)});
}

}  // namespace

bool runsProgram(Trace& t, Value* v) {
  if (v->kind == Kind::Generator) return !as<GeneratorValue>(v)->finished;
  if (v->kind == Kind::Instance) return pythonMethod(t, v, "__iter__") != nullptr;
  if (v->kind != Kind::Iterator) return false;
  auto* it = as<IteratorValue>(v);
  if (it->done) return false;
  openExisting(t, it);
  bool calls = it->what == IteratorValue::Map || it->what == IteratorValue::Filter || it->what == IteratorValue::StarMap;
  if (calls && isProgramsCode(it->subject)) return true;
  if (it->what != IteratorValue::Zip && it->what != IteratorValue::Enumerate && !calls) return false;
  for (Value* inner : it->inputs)
    if (inner && (runsProgram(t, inner) || pythonMethod(t, inner, "__next__"))) return true;
  return false;
}

LastCall lastNext(Trace& t, Value* v) {
  if (Value* method = pythonMethod(t, v, "__next__")) return {method, {}};
  if (v->kind != Kind::Iterator || !runsProgram(t, v)) return {};
  auto* it = as<IteratorValue>(v);
  switch (it->what) {
    case IteratorValue::Zip: return around(t, it->strict ? "next_of_strict_zip" : "next_of_zip", {t.tuple(it->inputs)});
    case IteratorValue::Map: return around(t, "next_of_map", {it->subject, t.tuple(it->inputs)});
    case IteratorValue::StarMap: return around(t, "next_of_starmap", {it->subject, it->inputs[0]});
    case IteratorValue::Filter:
      if (isReal(it->subject, Py_None)) return {};
      return around(t, "next_of_filter", {it->subject, it->inputs[0], t.boolean(it->strict)});
    case IteratorValue::Enumerate: {
      Value* number = it->real ? numberOfExisting(t, it) : t.integer(it->position);
      t.journal.set(it->position, it->position + 1);
      return around(t, "next_of_enumerate", {number, it->inputs[0]});
    }
    default: return {};
  }
}

namespace {

// The object's own __len__ and __length_hint__, which who makes a list or tuple of it asks for. False: it has none.
bool lengthMethods(Trace& t, Value* v, Value*& count, Value*& hint) {
  count = hint = t.none();
  if (v->kind != Kind::Instance) return false;
  if (overrides(t, v, "__len__")) count = specialMethod(t, v, "__len__");
  if (overrides(t, v, "__length_hint__")) hint = specialMethod(t, v, "__length_hint__");
  return !isReal(count, Py_None) || !isReal(hint, Py_None);
}

}  // namespace

LastCall lastItems(Trace& t, Value* v, long most, bool asksLength) {
  if (!runsProgram(t, v)) return {};
  if (most >= 0) return around(t, "first_items", {v, t.integer(most)});
  Value *count, *hint;
  return asksLength && lengthMethods(t, v, count, hint) ? around(t, "hinted_items", {v, count, hint}) : around(t, "items", {v});
}

LastCall lastConsumer(Trace& t, PyObject* callable, Value* callableValue, const CallArgs& args) {
  const Consumers& known = consumers();
  if (LastCall last = lastWithKey(t, callable, args)) return last;
  bool method = known.isMethod(callable);
  size_t at = method ? 1 : 0;
  if (args.args.size() <= at) return {};
  bool plain = callable == known.list || callable == known.any || callable == known.all;
  if (plain ? args.args.size() != 1 || !args.kwargs.empty() : !method && !known.takesItems(callable)) return {};
  if ((callable == known.min || callable == known.max) && args.args.size() != 1) return {};
  Value* iterable = args.args[at];
  if (callable == known.dict && iterable->kind == Kind::Instance) return {};  // may be a mapping
  if (!runsProgram(t, iterable)) return {};
  if (callable == known.list) return lastItems(t, iterable, -1, true);
  if (plain) return around(t, callable == known.any ? "any_of" : "all_of", {iterable});
  // update(mapping) reads it by its keys.
  static PyObject* keys = PyUnicode_InternFromString("keys");
  if (iterable->kind == Kind::Instance && typeLookup(t.typeOf(iterable), keys)) return {};
  DictValue* named = t.dict();
  for (const auto& [name, value] : args.kwargs) t.dictSet(named, t.keyOf(t.realShared(name)), value);
  std::vector<Value*> before(args.args.begin(), args.args.begin() + static_cast<ptrdiff_t>(at));
  std::vector<Value*> rest(args.args.begin() + static_cast<ptrdiff_t>(at) + 1, args.args.end());
  std::vector<Value*> given{callableValue, t.tuple(std::move(before)), iterable, t.tuple(std::move(rest)), named};
  Value *count, *hint;
  bool asks = callable == known.withItems[0] || callable == known.sorted || callable == known.methods[1];
  const bool hinted = asks && lengthMethods(t, iterable, count, hint);
  if (hinted) given.insert(given.end(), {count, hint});
  LastCall last = around(t, hinted ? "with_hinted_items" : "with_items", std::move(given));
  last.early = isGeneratorOrIterator(iterable) && callable != known.withItems[0] && callable != known.sorted && callable != known.methods[0];
  return last;
}

}  // namespace cdynamo
