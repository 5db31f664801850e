// iter, next, zip, enumerate, map, filter, reversed, itertools, generator methods.
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

IteratorValue* iterator(Trace& t, IteratorValue::What what) { return t.make<IteratorValue>(what); }

Value* builtinIter(Trace& t, CallArgs& a) {
  expectArgs(t, a, "iter", 1, 2);
  if (a.args.size() == 1) return iterate(t, a.args[0]);
  auto* it = iterator(t, IteratorValue::CallIter);
  it->subject = a.args[0];
  it->inputs = {a.args[1]};
  return it;
}

[[noreturn]] void stopIteration(Trace& t, Value* value) {
  if (!value || isReal(value, Py_None)) throw Raised{t.real(checked(PyObject_CallNoArgs(PyExc_StopIteration)))};
  InstanceValue* e = makeInstance(t, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration));
  e->exceptionArgs = t.tuple({value});
  throw Raised{e};
}

Value* generatorResult(Value* v) { return v->kind == Kind::Generator ? as<GeneratorValue>(v)->frame->result : nullptr; }

Value* builtinNext(Trace& t, CallArgs& a) {
  expectArgs(t, a, "next", 1, 2);
  if (a.args[0]->kind != Kind::Iterator && a.args[0]->kind != Kind::Generator && a.args[0]->kind != Kind::Instance && !isReal(a.args[0]))
    raise(t, PyExc_TypeError, std::string("'") + t.typeOf(a.args[0])->tp_name + "' object is not an iterator");
  if (Value* v = next(t, a.args[0])) return v;
  if (a.args.size() > 1) return a.args[1];
  stopIteration(t, generatorResult(a.args[0]));
}

Value* builtinZip(Trace& t, CallArgs& a) {
  Value* strict = a.takeKeyword("strict");
  auto* it = iterator(t, IteratorValue::Zip);
  it->strict = strict && truth(t, strict);
  for (Value* v : a.args) it->inputs.push_back(iterate(t, v));
  return it;
}

Value* builtinEnumerate(Trace& t, CallArgs& a) {
  Value* start = a.takeKeyword("start");
  Value* iterable = a.takeKeyword("iterable");
  if (iterable) a.args.insert(a.args.begin(), iterable);
  expectArgs(t, a, "enumerate", 1, 2);
  if (a.args.size() > 1) start = a.args[1];
  auto* it = iterator(t, IteratorValue::Enumerate);
  it->inputs = {iterate(t, a.args[0])};
  it->position = start ? asInteger(t, start).value_or(0) : 0;
  return it;
}

Value* builtinMap(Trace& t, CallArgs& a) {
  if (a.args.size() < 2) raise(t, PyExc_TypeError, "map() must have at least two arguments.");
  auto* it = iterator(t, IteratorValue::Map);
  it->subject = a.args[0];
  for (size_t i = 1; i < a.args.size(); i++) it->inputs.push_back(iterate(t, a.args[i]));
  return it;
}

Value* filterOf(Trace& t, CallArgs& a, bool inverted) {
  expectArgs(t, a, "filter", 2, 2);
  auto* it = iterator(t, IteratorValue::Filter);
  it->subject = a.args[0];
  it->inputs = {iterate(t, a.args[1])};
  it->strict = inverted;
  return it;
}
Value* builtinFilter(Trace& t, CallArgs& a) { return filterOf(t, a, false); }
Value* filterFalse(Trace& t, CallArgs& a) { return filterOf(t, a, true); }

Value* builtinReversed(Trace& t, CallArgs& a) {
  expectArgs(t, a, "reversed", 1, 1);
  if (a.args[0]->kind == Kind::Instance)
    if (Value* m = specialMethod(t, a.args[0], "__reversed__")) {
      auto* bound = m->kind == Kind::BoundMethod ? as<BoundMethodValue>(m) : nullptr;
      if (bound && isReal(bound->function) && PyFunction_Check(realObject(bound->function))) return call(t, m, {});
    }
  Value* v = a.args[0];
  bool sequence = v->kind == Kind::List || v->kind == Kind::Tuple || v->kind == Kind::Dict || v->kind == Kind::DictView ||
                  v->kind == Kind::Instance || v->kind == Kind::Tensor;
  if (!sequence &&
      !(isReal(v) && (PySequence_Check(realObject(v)) || typeLookup(t.typeOf(v), t.keep(checked(PyUnicode_InternFromString("__reversed__")))))))
    raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not reversible");
  auto* it = iterator(t, IteratorValue::Reversed);
  if (a.args[0]->kind == Kind::Instance && !asList(a.args[0]) && !asTuple(a.args[0]) && !asDict(a.args[0])) {
    std::vector<Value*> items;
    Py_ssize_t n = length(t, a.args[0]);
    for (Py_ssize_t i = 0; i < n; i++) items.push_back(getItem(t, a.args[0], t.integer(i)));
    it->subject = t.list(std::move(items));
  } else {
    it->subject = a.args[0]->kind == Kind::List ? a.args[0] : t.list(itemsOf(t, a.args[0]));
  }
  return it;
}

// ---- itertools -------------------------------------------------------------------------------------------------------

Value* chain(Trace& t, CallArgs& a) {
  auto* it = iterator(t, IteratorValue::Chain);
  it->inputs = a.args;
  return it;
}
Value* count(Trace& t, CallArgs& a) {
  Value* start = a.takeKeyword("start");
  Value* step = a.takeKeyword("step");
  if (!a.args.empty()) start = a.args[0];
  if (a.args.size() > 1) step = a.args[1];
  auto* it = iterator(t, IteratorValue::Count);
  auto s = start ? asInteger(t, start) : std::optional<long long>(0);
  auto d = step ? asInteger(t, step) : std::optional<long long>(1);
  if (s && d) {
    it->position = *s;
    it->step = *d;
  } else {
    it->subject = start ? start : t.integer(0);
    it->inputs = {step ? step : t.integer(1)};
  }
  return it;
}
Value* repeat(Trace& t, CallArgs& a) {
  Value* times = a.takeKeyword("times");
  expectArgs(t, a, "repeat", 1, 2);
  if (a.args.size() > 1) times = a.args[1];
  auto* it = iterator(t, IteratorValue::Repeat);
  it->subject = a.args[0];
  it->stop = times ? std::max(0LL, asInteger(t, times).value_or(0)) : -1;
  return it;
}
Value* islice(Trace& t, CallArgs& a) {
  expectArgs(t, a, "islice", 2, 4);
  auto number = [&](size_t i, long long fallback) {
    if (i >= a.args.size() || isReal(a.args[i], Py_None)) return fallback;
    std::optional<long long> n = asInteger(t, a.args[i]);
    if (!n || *n < 0) raise(t, PyExc_ValueError, "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.");
    return *n;
  };
  auto* it = iterator(t, IteratorValue::Islice);
  it->inputs = {iterate(t, a.args[0])};
  if (a.args.size() == 2) {
    it->stop = number(1, -1);
  } else {
    it->position = number(1, 0);
    it->stop = number(2, -1);
    it->step = number(3, 1);
  }
  return it;
}

// ---- generator methods -----------------------------------------------------------------------------------------------

GeneratorValue* selfGenerator(CallArgs& a) {
  if (a.args.empty() || a.args[0]->kind != Kind::Generator) unsupported(BreakReason::ForeignGenerator, "a generator made outside the function");
  return as<GeneratorValue>(a.args[0]);
}
Value* generatorSend(Trace& t, CallArgs& a) {
  auto* g = selfGenerator(a);
  if (Value* v = resumeGenerator(t, g, a.args.at(1), nullptr)) return v;
  stopIteration(t, g->frame->result);
}
Value* generatorNext(Trace& t, CallArgs& a) {
  auto* g = selfGenerator(a);
  if (Value* v = resumeGenerator(t, g, t.none(), nullptr)) return v;
  stopIteration(t, g->frame->result);
}
Value* generatorThrow(Trace& t, CallArgs& a) {
  auto* g = selfGenerator(a);
  Value* e = a.args.size() > 2 && !isReal(a.args[2], Py_None) ? a.args[2] : a.args.at(1);
  if (isReal(e) && PyExceptionClass_Check(realObject(e))) e = call(t, e, {});
  if (Value* v = resumeGenerator(t, g, nullptr, e)) return v;
  stopIteration(t, g->frame->result);
}
Value* generatorClose(Trace& t, CallArgs& a) {
  auto* g = selfGenerator(a);
  if (g->finished || !g->started) {
    t.journal.set(g->finished, true);
    return t.none();
  }
  Value* e = t.real(checked(PyObject_CallNoArgs(PyExc_GeneratorExit)));
  try {
    if (resumeGenerator(t, g, nullptr, e)) raise(t, PyExc_RuntimeError, "generator ignored GeneratorExit");
  } catch (Raised& r) {
    PyTypeObject* type = t.typeOf(r.exception);
    if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_GeneratorExit)) &&
        !PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration)))
      throw;
  }
  return t.none();
}
Value* selfIter(Trace&, CallArgs& a) { return a.args.at(0); }

}  // namespace

void addIteratorBuiltins(BuiltinTable& table) {
  table.add("builtins.iter", builtinIter);
  table.add("builtins.next", builtinNext);
  table.add("builtins.zip", builtinZip);
  table.add("builtins.enumerate", builtinEnumerate);
  table.add("builtins.map", builtinMap);
  table.add("builtins.filter", builtinFilter);
  table.add("builtins.reversed", builtinReversed);
  table.add("itertools.chain", chain);
  table.add("itertools.count", count);
  table.add("itertools.repeat", repeat);
  table.add("itertools.islice", islice);
  table.add("itertools.filterfalse", filterFalse);
  table.addType(&PyGen_Type, "send", generatorSend);
  table.addType(&PyGen_Type, "throw", generatorThrow);
  table.addType(&PyGen_Type, "close", generatorClose);
  table.addType(&PyGen_Type, "__next__", generatorNext);
  table.addType(&PyGen_Type, "__iter__", selfIter);
  for (const char* name : {"accumulate", "product", "zip_longest", "starmap", "takewhile", "dropwhile", "compress", "pairwise", "permutations",
                           "combinations", "cycle", "groupby", "tee"}) {
    std::string path = std::string("itertools.") + name;
    table.addPolyfill(path.c_str(), name);
  }
  table.addPolyfill("itertools.chain.from_iterable", "chain_from_iterable");
  for (const char* name : {"itemgetter", "attrgetter", "methodcaller"}) table.addPolyfill((std::string("operator.") + name).c_str(), name);
  table.addPolyfill("functools.cmp_to_key", "cmp_to_key");
  table.addPolyfill("math.prod", "prod");
  table.addPolyfill("collections._count_elements", "count_elements");
  table.addPolyfill("functools.reduce", "reduce");
  table.addPolyfill("functools.cached_property.__get__", "cached_property_get");
}

}  // namespace cdynamo
