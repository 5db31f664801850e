// Iteration over what runs Python code of the program, and functions that are called for each item: as traced Python around it.
#include <algorithm>
#include <iterator>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "interp/last_calls.h"
#include "interp/stand_ins.h"

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
  PyObject *list, *tuple, *set, *frozenset, *dict, *bytes, *sum, *any, *all, *sorted, *min, *max, *join, *extend, *update;
  Consumers() {
    auto builtin = [](const char* name) { return importedObject("builtins", name); };
    auto method = [](PyTypeObject& type, const char* name) { return typeLookup(&type, PyUnicode_InternFromString(name)); };
    list = builtin("list");
    tuple = builtin("tuple");
    set = builtin("set");
    frozenset = builtin("frozenset");
    dict = builtin("dict");
    bytes = builtin("bytes");
    sum = builtin("sum");
    any = builtin("any");
    all = builtin("all");
    sorted = builtin("sorted");
    min = builtin("min");
    max = builtin("max");
    join = method(PyUnicode_Type, "join");
    extend = method(PyList_Type, "extend");
    update = method(PySet_Type, "update");
  }
  bool isMethod(PyObject* object) const { return object == join || object == extend || object == update; }
  bool takesAny(PyObject* object) const {
    for (PyObject* one : {list, tuple, set, frozenset, dict, bytes, sum, any, all, sorted, min, max, join, extend, update})
      if (object == one) return true;
    return false;
  }
};

const Consumers& consumers() {
  static const Consumers all;
  return all;
}

// sorted, min and max with a key function of the program, min and max of an iterable that runs the program.
LastCall lastChoice(Trace& t, PyObject* callable, const CallArgs& args) {
  const Consumers& known = consumers();
  if ((callable != known.sorted && callable != known.min && callable != known.max) || args.args.size() != 1) return {};
  Value *key = args.keyword("key"), *iterable = args.args[0];
  const char* other = callable == known.sorted ? "reverse" : "default";
  Value* option = args.keyword(other);
  if (args.kwargs.size() != size_t{key != nullptr} + size_t{option != nullptr}) return {};
  bool calls = key && isProgramsCode(key);
  if (callable == known.sorted) return calls ? around(t, "sorted_by", {iterable, key, option ? option : t.boolean(false)}) : LastCall{};
  if (!calls && !runsProgram(t, iterable)) return {};
  if (!option) option = pinnedValue(t, importedObject("cdynamo.polyfills", "_missing"));
  PyObject* before = importedObject("operator", callable == known.max ? "gt" : "lt");
  return around(t, "chosen_by", {iterable, key ? key : t.none(), option, t.realShared(before), t.realShared(callable)});
}

}  // namespace

bool runsProgram(Trace& t, Value* v) {
  if (v->kind == Kind::Generator) return !as<GeneratorValue>(v)->finished;
  if (v->kind == Kind::Instance) {
    static PyObject* iterName = PyUnicode_InternFromString("__iter__");
    // Without an __iter__ it is read by its items.
    return pythonMethod(t, v, lookUp(t, t.typeOf(v), iterName) ? "__iter__" : "__getitem__") != nullptr;
  }
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

bool mayBeLeftInTheMiddle(Trace& t, Value* v) {
  if (PyTypeObject* type = standsFor(v); type && !type->tp_iternext) return false;  // a container of the library
  return isGeneratorOrIterator(v) || runsProgram(t, v);
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

bool canBeIterated(Trace& t, Value* v) {
  PyTypeObject* type = t.typeOf(v);
  return type->tp_iter || (type->tp_as_sequence && type->tp_as_sequence->sq_item);
}

// The object's own __len__ and __length_hint__, which who makes a list or tuple of it asks for. False: it has none.
bool lengthMethods(Trace& t, Value* v, Value*& count, Value*& hint) {
  count = hint = t.none();
  if (v->kind != Kind::Instance) return false;
  PyTypeObject* type = t.typeOf(v);
  const bool hasLength = (type->tp_as_sequence && type->tp_as_sequence->sq_length) || (type->tp_as_mapping && type->tp_as_mapping->mp_length);
  const bool ownLength = overrides(t, v, "__len__");
  if (ownLength) count = specialMethod(t, v, "__len__");
  if ((ownLength || !hasLength) && overrides(t, v, "__length_hint__")) hint = specialMethod(t, v, "__length_hint__");
  return !isReal(count, Py_None) || !isReal(hint, Py_None);
}

}  // namespace

LastCall lastItems(Trace& t, Value* v, long most, bool asksLength) {
  Value *count, *hint;
  if (most < 0 && asksLength && canBeIterated(t, v) && lengthMethods(t, v, count, hint)) return around(t, "hinted_items", {v, count, hint});
  if (!runsProgram(t, v)) return {};
  return most >= 0 ? around(t, "first_items", {v, t.integer(most)}) : around(t, "items_of", {v});
}

LastCall lastInPlaceConcat(Trace& t, Value* list, Value* v) {
  if (list->kind != Kind::List || as<ListValue>(list)->type != &PyList_Type || !runsProgram(t, v)) return {};
  Value *count, *hint;
  lengthMethods(t, v, count, hint);
  return around(t, "added_in_place", {list, v, count, hint});
}

LastCall lastConsumer(Trace& t, PyObject* callable, Value* callableValue, const CallArgs& args) {
  const Consumers& known = consumers();
  if (!known.takesAny(callable)) return {};
  if (LastCall last = lastChoice(t, callable, args)) return last;
  const size_t at = known.isMethod(callable) ? 1 : 0, count = args.args.size() - at;
  if (args.args.size() <= at) return {};
  if (callable == known.list) return count == 1 && args.kwargs.empty() ? lastItems(t, args.args[at], -1, true) : LastCall{};
  Value *length, *hint;
  const bool asksLength = callable == known.tuple || callable == known.sorted || callable == known.extend || callable == known.bytes;
  const bool hinted = lengthMethods(t, args.args[at], length, hint);
  if (!runsProgram(t, args.args[at]) && !(asksLength && hinted && canBeIterated(t, args.args[at]))) return {};
  Value *iterable = args.args[at], *self = args.args[0];
  const bool alone = count == 1 && args.kwargs.empty();
  auto isOf = [&](Value* v, PyTypeObject* type) { return PyType_IsSubtype(t.typeOf(v), type); };
  // Sets are read by their tables, whatever their __iter__ says.
  const bool intoSet = callable == known.set || callable == known.frozenset || callable == known.update;
  if (intoSet && (isOf(iterable, &PySet_Type) || isOf(iterable, &PyFrozenSet_Type))) return {};
  auto named = [&] {
    DictValue* d = t.dict();
    for (const auto& [name, value] : args.kwargs) t.dictSet(d, t.keyOf(t.realShared(name)), value);
    return d;
  };
  if (alone && (callable == known.any || callable == known.all)) return around(t, callable == known.any ? "any_of" : "all_of", {iterable});
  if (alone && callable == known.set) return around(t, "set_of", {iterable});
  if (callable == known.sum) {
    Value* start = args.keyword("start");
    if (count > 2 || args.kwargs.size() != size_t{start != nullptr} || (start && count == 2)) return {};
    return around(t, "sum_of", {iterable, start ? start : count == 2 ? args.args[1] : t.integer(0)});
  }
  if (callable == known.dict) {
    if (count != 1 || iterable->kind == Kind::Instance) return {};  // may be a mapping
    return around(t, "dict_of", {iterable, named()});
  }
  if (callable == known.bytes) {
    const bool isIndex = t.typeOf(iterable)->tp_as_number && t.typeOf(iterable)->tp_as_number->nb_index;
    const bool otherwise =
        pythonMethod(t, iterable, "__bytes__") || isIndex || isOf(iterable, &PyUnicode_Type) || isOf(iterable, &PyBytes_Type) || standsFor(iterable);
    return alone && !otherwise ? around(t, "bytes_of", {iterable, length, hint}) : LastCall{};
  }
  if (alone && callable == known.extend && isOf(self, &PyList_Type)) return around(t, "extended", {self, iterable, length, hint});
  if (callable == known.update && args.kwargs.empty() && isOf(self, &PySet_Type)) {
    std::vector<Value*> rest(args.args.begin() + 2, args.args.end());
    return around(t, "updated", {self, iterable, t.tuple(std::move(rest))});
  }
  if (callable != known.tuple && callable != known.sorted && callable != known.join && callable != known.frozenset) return {};
  if (count != 1 || (!args.kwargs.empty() && callable != known.sorted)) return {};
  std::vector<Value*> before(args.args.begin(), args.args.begin() + static_cast<ptrdiff_t>(at));
  if (callable == known.join) return around(t, "joined", {callableValue, t.tuple(std::move(before)), iterable});
  std::vector<Value*> rest(args.args.begin() + static_cast<ptrdiff_t>(at) + 1, args.args.end());
  std::vector<Value*> given{callableValue, t.tuple(std::move(before)), iterable, t.tuple(std::move(rest)), named()};
  const bool asks = hinted && (callable == known.tuple || callable == known.sorted);
  if (asks) given.insert(given.end(), {length, hint});
  LastCall last = around(t, asks ? "with_hinted_items" : "with_items", std::move(given));
  last.early = callable == known.frozenset;
  return last;
}

}  // namespace cdynamo
