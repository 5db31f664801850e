// iter, next, zip, enumerate, map, filter, reversed, itertools, generator methods.
#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "cpython/generators.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

IteratorValue* iterator(Trace& t, IteratorValue::What what, PyTypeObject* type) {
  auto* it = t.make<IteratorValue>(what);
  it->type = type;
  return it;
}
// type: of the module itertools
IteratorValue* itertool(Trace& t, IteratorValue::What what, const char* type) {
  return iterator(t, what, reinterpret_cast<PyTypeObject*>(importedObject("itertools", type)));
}

bool isInt(Trace& t, Value* v) { return PyType_IsSubtype(t.typeOf(v), &PyLong_Type) != 0; }

bool isCallable(Trace& t, Value* v) {
  return v->kind == Kind::Function || v->kind == Kind::BoundMethod || v->kind == Kind::Property || t.typeOf(v)->tp_call != nullptr;
}

Value* builtinIter(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 2);
  if (a.args.size() == 1) return iterate(t, a.args[0]);
  if (!isCallable(t, a.args[0])) throw WrongArguments{};
  auto* it = iterator(t, IteratorValue::CallIter, &PyCallIter_Type);
  it->subject = a.args[0];
  it->inputs = {a.args[1]};
  return it;
}

[[noreturn]] void stopIteration(Trace& t, Value* value) { throw Raised{stopIterationWith(t, value)}; }

Value* generatorResult(Value* v) { return v->kind == Kind::Generator ? as<GeneratorValue>(v)->frame->result : nullptr; }

Value* builtinNext(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 2);
  Value* v = a.args[0];
  bool iterator = v->kind == Kind::Iterator || v->kind == Kind::Generator || v->kind == Kind::Instance || (isReal(v) && PyIter_Check(realObject(v)));
  if (!iterator) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(a.args[0])->tp_name + "' object is not an iterator");
  if (Value* v = next(t, a.args[0])) return v;
  if (a.args.size() > 1) return a.args[1];
  stopIteration(t, generatorResult(a.args[0]));
}

Value* builtinZip(Trace& t, CallArgs& a) {
  Value* strict = a.takeKeyword("strict");
  noKeywords(a);
  auto* it = iterator(t, IteratorValue::Zip, &PyZip_Type);
  it->strict = strict && truth(t, strict);
  for (Value* v : a.args) it->inputs.push_back(iterate(t, v));
  return it;
}

Value* builtinEnumerate(Trace& t, CallArgs& a) {
  Value* start = a.takeKeyword("start");
  Value* iterable = a.takeKeyword("iterable");
  if (iterable) a.args.insert(a.args.begin(), iterable);
  expectArgs(a, 1, 2);
  if (a.args.size() > 1) {
    if (start) throw WrongArguments{};
    start = a.args[1];
  }
  auto* it = iterator(t, IteratorValue::Enumerate, &PyEnum_Type);
  if (start) {
    Value* index = indexValue(t, start);
    if (!index) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(start)->tp_name + "' object cannot be interpreted as an integer");
    std::optional<long long> n = asInteger(t, index);
    if (!n || *n > INT64_MAX / 2) unsupported(BreakReason::BuiltinCall, "enumerate() from a very large number");
    it->position = *n;
  }
  it->inputs = {iterate(t, a.args[0])};
  return it;
}

Value* builtinMap(Trace& t, CallArgs& a) {
  expectArgs(a, 2, SIZE_MAX);
  auto* it = iterator(t, IteratorValue::Map, &PyMap_Type);
  it->subject = a.args[0];
  for (size_t i = 1; i < a.args.size(); i++) it->inputs.push_back(iterate(t, a.args[i]));
  return it;
}

Value* filterOf(Trace& t, CallArgs& a, bool inverted) {
  expectArgs(a, 2, 2);
  auto* it = inverted ? itertool(t, IteratorValue::Filter, "filterfalse") : iterator(t, IteratorValue::Filter, &PyFilter_Type);
  it->subject = a.args[0];
  it->inputs = {iterate(t, a.args[1])};
  it->strict = inverted;
  return it;
}
Value* builtinFilter(Trace& t, CallArgs& a) { return filterOf(t, a, false); }
Value* filterFalse(Trace& t, CallArgs& a) { return filterOf(t, a, true); }

Value* builtinReversed(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* v = a.args[0];
  if (v->kind == Kind::Instance || (isReal(v) && PyType_Check(realObject(v))))
    if (Value* m = specialMethod(t, v, "__reversed__")) {
      if (isReal(m, Py_None)) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not reversible");
      auto* bound = m->kind == Kind::BoundMethod ? as<BoundMethodValue>(m) : nullptr;
      if (bound && isPythonFunction(bound->function)) return call(t, m, {});
    }
  bool sequence = v->kind == Kind::List || v->kind == Kind::Tuple || v->kind == Kind::Dict || v->kind == Kind::DictView ||
                  (v->kind == Kind::Instance && !asSet(v)) || v->kind == Kind::Tensor;
  if (v->kind == Kind::Instance && !as<InstanceValue>(v)->contents && !(specialMethod(t, v, "__len__") && specialMethod(t, v, "__getitem__")))
    sequence = false;
  if (!sequence &&
      !(isReal(v) && (PySequence_Check(realObject(v)) || typeLookup(t.typeOf(v), t.keep(checked(PyUnicode_InternFromString("__reversed__")))))))
    raise(t, PyExc_TypeError, std::string("'") + t.typeOf(v)->tp_name + "' object is not reversible");
  if (isReal(v) && PyRange_Check(realObject(v)) && t.constant(v)) {
    ObjectRef minusOne = checked(PyLong_FromLong(-1)), backwards = checked(PySlice_New(nullptr, nullptr, minusOne.get()));
    return iterate(t, t.real(native(t, PyObject_GetItem(realObject(v), backwards.get()))));
  }
  // Its length is read now, its items from behind as they are asked for.
  if (v->kind == Kind::Instance && !asList(v) && !asTuple(v) && !iteratedDict(v)) {
    static PyObject* lazily = importedObject("cdynamo._stand_ins", "reversed_sequence");
    return call1(t, pinnedValue(t, lazily), v);
  }
  auto* it = iterator(t, IteratorValue::Reversed, &PyReversed_Type);
  if (ListValue* list = asList(v)) {
    t.load(list);
    it->subject = list;
    it->stop = static_cast<int64_t>(list->items.size()) - 1;
    it->type =
        list->type == dequeType() ? reinterpret_cast<PyTypeObject*>(importedObject("_collections", "_deque_reverse_iterator")) : &PyListRevIter_Type;
    return it;
  }
  it->subjectOf = v;
  DictValue* dict = iteratedDict(v);
  if (dict) {
    auto what = v->kind == Kind::DictView ? as<DictViewValue>(v)->what : DictViewValue::Keys;
    it->type = PyType_IsSubtype(dict->type, &PyODict_Type) ? &PyODictIter_Type
               : what == DictViewValue::Keys               ? &PyDictRevIterKey_Type
               : what == DictViewValue::Values             ? &PyDictRevIterValue_Type
                                                           : &PyDictRevIterItem_Type;
    t.complete(dict);
    it->stop = iterationState(dict);
  }
  if (v->kind == Kind::Instance && asTuple(v) && (overrides(t, v, "__len__") || overrides(t, v, "__getitem__")))
    unsupported(BreakReason::UnsupportedIteration, "reversing " + describe(v));
  // Whatever its __iter__ says.
  Value* held = v->kind != Kind::Instance ? v : asTuple(v) ? static_cast<Value*>(asTuple(v)) : dict ? static_cast<Value*>(dict) : v;
  it->subject = t.list(itemsOf(t, held));
  return it;
}

// ---- itertools -------------------------------------------------------------------------------------------------------

Value* chain(Trace& t, CallArgs& a) {
  noKeywords(a);
  auto* it = itertool(t, IteratorValue::Chain, "chain");
  it->subjectOf = iterate(t, t.tuple(a.args));
  return it;
}
Value* chainFromIterable(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  auto* it = itertool(t, IteratorValue::Chain, "chain");
  it->subjectOf = iterate(t, a.args[1]);
  return it;
}
Value* count(Trace& t, CallArgs& a) {
  Value* start = a.takeKeyword("start");
  Value* step = a.takeKeyword("step");
  if ((start && !a.args.empty()) || (step && a.args.size() > 1)) throw WrongArguments{};
  expectArgs(a, 0, 2);
  if (!a.args.empty()) start = a.args[0];
  if (a.args.size() > 1) step = a.args[1];
  for (Value* v : {start, step}) {
    if (v && isTensor(v)) unsupported(BreakReason::BuiltinCall, "itertools.count from a tensor");
    PyNumberMethods* number = v ? t.typeOf(v)->tp_as_number : nullptr;
    bool isNumber = number && (number->nb_index || number->nb_int || number->nb_float || PyType_IsSubtype(t.typeOf(v), &PyComplex_Type));
    if (v && !isNumber) raise(t, PyExc_TypeError, "a number is required");
  }
  auto* it = itertool(t, IteratorValue::Count, "count");
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
  if (Value* object = a.takeKeyword("object")) a.args.insert(a.args.begin(), object);
  expectArgs(a, 1, 2);
  if (times && a.args.size() > 1) throw WrongArguments{};
  if (a.args.size() > 1) times = a.args[1];
  auto* it = itertool(t, IteratorValue::Repeat, "repeat");
  it->subject = a.args[0];
  it->stop = times ? std::max(0LL, indexArgument(t, times)) : -1;
  return it;
}
Value* islice(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 4);
  bool onlyStop = a.args.size() == 2;
  // A bound: None is -1; anything else than an int from 0 on is refused.
  auto number = [&](size_t i, const char* words) -> long long {
    if (i >= a.args.size() || isSame(t, a.args[i], t.none())) return -1;
    Value* index = indexValue(t, a.args[i]);
    std::optional<long long> n = index ? asInteger(t, index) : std::nullopt;
    if (!n || *n < 0) raise(t, PyExc_ValueError, words);
    return *n;
  };
  const char* indices = "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.";
  const char* stops = "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.";
  // CPython looks at the start first, but says that the stop is no int before it says what is wrong with the start.
  long long stop = -1, start = 0, step = 1;
  if (onlyStop) {
    stop = number(1, stops);
  } else {
    if (!isSame(t, a.args[2], t.none()) && !isInt(t, a.args[2])) raise(t, PyExc_ValueError, stops);
    start = std::max(0LL, number(1, indices));
    stop = number(2, indices);
    if (a.args.size() > 3 && !isSame(t, a.args[3], t.none())) {
      step = number(3, "Step for islice() must be a positive integer or None.");
      if (step == 0) raise(t, PyExc_ValueError, "Step for islice() must be a positive integer or None.");
    }
  }
  auto* it = itertool(t, IteratorValue::Islice, "islice");
  it->inputs = {iterate(t, a.args[0])};
  it->position = start;
  it->stop = stop;
  it->step = step;
  return it;
}

Value* cycle(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  auto* it = itertool(t, IteratorValue::Cycle, "cycle");
  it->inputs = {iterate(t, a.args[0])};
  it->subject = t.list({});
  return it;
}

// Keyword arguments by name behind the positional ones.
void placeKeywords(CallArgs& a, std::initializer_list<const char*> names) {
  size_t at = 0;
  for (const char* name : names) {
    if (at++ < a.args.size()) continue;
    Value* v = a.takeKeyword(name);
    if (!v) return;
    a.args.push_back(v);
  }
}

Value* accumulate(Trace& t, CallArgs& a) {
  Value* initial = a.takeKeyword("initial");
  placeKeywords(a, {"iterable", "func"});
  expectArgs(a, 1, 2);
  auto* it = itertool(t, IteratorValue::Accumulate, "accumulate");
  it->inputs = {iterate(t, a.args[0])};
  it->subject = a.args.size() > 1 ? a.args[1] : t.none();
  it->strict = initial && !isReal(initial, Py_None);
  if (it->strict) it->subjectOf = initial;
  return it;
}

// fn(function, iterable): starmap, takewhile, dropwhile.
template <IteratorValue::What what>
Value* withFunction(Trace& t, CallArgs& a) {
  const char* name = what == IteratorValue::StarMap ? "starmap" : what == IteratorValue::TakeWhile ? "takewhile" : "dropwhile";
  expectArgs(a, 2, 2);
  auto* it = itertool(t, what, name);
  it->subject = a.args[0];
  it->inputs = {iterate(t, a.args[1])};
  return it;
}

Value* compress(Trace& t, CallArgs& a) {
  placeKeywords(a, {"data", "selectors"});
  expectArgs(a, 2, 2);
  auto* it = itertool(t, IteratorValue::Compress, "compress");
  it->inputs = {iterate(t, a.args[0]), iterate(t, a.args[1])};
  return it;
}

Value* pairwise(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  auto* it = itertool(t, IteratorValue::Pairwise, "pairwise");
  it->inputs = {iterate(t, a.args[0])};
  return it;
}

Value* zipLongest(Trace& t, CallArgs& a) {
  Value* fill = a.takeKeyword("fillvalue");
  noKeywords(a);
  auto* it = itertool(t, IteratorValue::ZipLongest, "zip_longest");
  for (Value* v : a.args) it->inputs.push_back(iterate(t, v));
  it->subject = fill ? fill : t.none();
  it->position = static_cast<int64_t>(it->inputs.size());
  return it;
}

// Rows of items picked from pools: CPython's own iterator over their indices says which.
IteratorValue* rows(Trace& t, const char* name, const std::vector<Value*>& iterables, std::optional<long long> number, bool repeat) {
  auto* it = itertool(t, IteratorValue::Rows, name);
  ObjectRef ranges = checked(PyTuple_New(static_cast<Py_ssize_t>(iterables.size() + (number && !repeat))));
  for (size_t i = 0; i < iterables.size(); i++) {
    TupleValue* pool = t.tuple(itemsOf(t, iterables[i]));
    it->inputs.push_back(pool);
    PyObject* range = checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "n", pool->items.size())).release();
    PyTuple_SET_ITEM(ranges.get(), static_cast<Py_ssize_t>(i), range);
  }
  ObjectRef keywords = checked(PyDict_New());
  if (number) {
    ObjectRef n = checked(PyLong_FromLongLong(*number));
    if (repeat)
      checkedStatus(PyDict_SetItemString(keywords.get(), "repeat", n.get()));
    else
      PyTuple_SET_ITEM(ranges.get(), PyTuple_GET_SIZE(ranges.get()) - 1, n.release());
    it->stop = *number;
  }
  it->strict = repeat;
  ObjectRef indices = native(t, PyObject_Call(reinterpret_cast<PyObject*>(it->type), ranges.get(), keywords.get()));
  it->rows = checked(PyList_New(0));
  checkedStatus(PyList_Append(it->rows.get(), indices.get()));
  return it;
}

Value* product(Trace& t, CallArgs& a) {
  Value* repeat = a.takeKeyword("repeat");
  noKeywords(a);
  return rows(t, "product", a.args, repeat ? std::optional<long long>(indexArgument(t, repeat)) : std::nullopt, true);
}

Value* chosenRows(Trace& t, CallArgs& a, const char* name, bool optional) {
  placeKeywords(a, {"iterable", "r"});
  expectArgs(a, optional ? 1 : 2, 2);
  bool all = optional && (a.args.size() < 2 || isSame(t, a.args[1], t.none()));
  if (optional && !all) {
    a.args[0] = t.tuple(itemsOf(t, a.args[0]));  // read before r is looked at
    if (!isInt(t, a.args[1])) raise(t, PyExc_TypeError, "Expected int as r");
  }
  return rows(t, name, {a.args[0]}, all ? std::nullopt : std::optional<long long>(indexArgument(t, a.args[1])), false);
}
Value* permutations(Trace& t, CallArgs& a) { return chosenRows(t, a, "permutations", true); }
Value* combinations(Trace& t, CallArgs& a) { return chosenRows(t, a, "combinations", false); }
Value* combinationsWithReplacement(Trace& t, CallArgs& a) { return chosenRows(t, a, "combinations_with_replacement", false); }

// ---- generator methods -----------------------------------------------------------------------------------------------

GeneratorValue* selfGenerator(Trace& t, CallArgs& a) {
  if (a.args.empty() || a.args[0]->kind != Kind::Generator) unsupported(BreakReason::ForeignGenerator, "a generator made outside the function");
  frameOf(t, as<GeneratorValue>(a.args[0]));
  return as<GeneratorValue>(a.args[0]);
}
Value* generatorSend(Trace& t, CallArgs& a) {
  auto* g = selfGenerator(t, a);
  expectArgs(a, 2, 2);
  if (Value* v = resumeGenerator(t, g, a.args[1], nullptr)) return v;
  stopIteration(t, g->frame->result);
}
Value* generatorNext(Trace& t, CallArgs& a) {
  auto* g = selfGenerator(t, a);
  expectArgs(a, 1, 1);
  if (Value* v = resumeGenerator(t, g, t.none(), nullptr)) return v;
  stopIteration(t, g->frame->result);
}
void setTraceback(Trace& t, Value* exception, Value* traceback) {
  if (!exception->source)
    t.setTraceback(exception, traceback);
  else if (!isSame(t, t.tracebackOf(exception), traceback))
    unsupported(BreakReason::ExceptionTraceback, "setting the traceback of an existing exception");
}

Value* generatorThrow(Trace& t, CallArgs& a) {
  auto* g = selfGenerator(t, a);
  expectArgs(a, 2, 4);
  if (a.args.size() > 2 && oldThrowWarns()) unsupported(BreakReason::Output, "throw() with a class and a value, which warns");
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  Value* e = a.args[1];
  Value* given = a.args.size() > 2 && !isReal(a.args[2], Py_None) ? a.args[2] : nullptr;
  Value* traceback = a.args.size() > 3 ? a.args[3] : t.none();
  if (!isReal(traceback, Py_None) && t.typeOf(traceback) != &PyTraceBack_Type)
    raise(t, PyExc_TypeError, "throw() third argument must be a traceback object");
  if (isReal(e) && PyExceptionClass_Check(realObject(e))) {
    // The old form: a class, and an instance of it or its arguments.
    bool made = given && PyType_IsSubtype(t.typeOf(given), reinterpret_cast<PyTypeObject*>(t.identity(e)));
    CallArgs args;
    if (given && asTuple(given))
      args.args = itemsOf(t, given);
    else if (given)
      args.args = {given};
    e = made ? given : call(t, e, std::move(args));
    setTraceback(t, e, traceback);
  } else if (!PyType_FastSubclass(t.typeOf(e), Py_TPFLAGS_BASE_EXC_SUBCLASS)) {
    raise(t, PyExc_TypeError, std::string("exceptions must be classes or instances deriving from BaseException, not ") + t.typeOf(e)->tp_name);
  } else if (given) {
    raise(t, PyExc_TypeError, "instance exception may not have a separate value");
  } else if (!isReal(traceback, Py_None)) {
    setTraceback(t, e, traceback);
  }
  t.tail = tail;
  if (Value* v = resumeGenerator(t, g, nullptr, e)) return v;
  stopIteration(t, g->frame->result);
}
}  // namespace

void closeGenerator(Trace& t, GeneratorValue* g) {
  if (g->finished || !g->started) {
    t.touch(g);
    t.journal.set(g->finished, true);
    return;
  }
  Value* e = t.real(checked(PyObject_CallNoArgs(PyExc_GeneratorExit)));
  linkContext(t, e);
  try {
    if (resumeGenerator(t, g, nullptr, e))
      raise(t, PyExc_RuntimeError, std::string(g->type == &PyCoro_Type ? "coroutine" : "generator") + " ignored GeneratorExit");
  } catch (Raised& r) {
    PyTypeObject* type = t.typeOf(r.exception);
    if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_GeneratorExit)) &&
        !PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration)))
      throw;
  }
}

namespace {

Value* generatorClose(Trace& t, CallArgs& a) {
  closeGenerator(t, selfGenerator(t, a));
  return t.none();
}
Value* selfIter(Trace&, CallArgs& a) {
  expectArgs(a, 1, 1);
  return a.args[0];
}

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
  for (PyTypeObject* type : {&PyGen_Type, &PyCoro_Type}) {
    table.addType(type, "send", generatorSend);
    table.addType(type, "throw", generatorThrow);
    table.addType(type, "close", generatorClose);
  }
  table.addPolyfill("types.AsyncGeneratorType.__anext__", "async_generator_next");
  table.addPolyfill("types.AsyncGeneratorType.asend", "async_generator_send");
  table.addPolyfill("types.AsyncGeneratorType.athrow", "async_generator_throw");
  table.addPolyfill("types.AsyncGeneratorType.aclose", "async_generator_close");
  table.add("types.AsyncGeneratorType.__aiter__", selfIter);
  table.addPolyfill("builtins.aiter", "aiter");
  table.add("builtins.anext", builtinAnext);
  table.add("cdynamo.polyfills.async_generator_resume", resumeAsyncGenerator);
  table.addType(&PyGen_Type, "__next__", generatorNext);
  table.addType(&PyGen_Type, "__iter__", selfIter);
  table.add("itertools.chain.from_iterable", chainFromIterable);
  table.add("itertools.cycle", cycle);
  table.add("itertools.accumulate", accumulate);
  table.add("itertools.starmap", withFunction<IteratorValue::StarMap>);
  table.add("itertools.takewhile", withFunction<IteratorValue::TakeWhile>);
  table.add("itertools.dropwhile", withFunction<IteratorValue::DropWhile>);
  table.add("itertools.compress", compress);
  table.add("itertools.pairwise", pairwise);
  table.add("itertools.zip_longest", zipLongest);
  table.add("itertools.product", product);
  table.add("itertools.permutations", permutations);
  table.add("itertools.combinations", combinations);
  table.add("itertools.combinations_with_replacement", combinationsWithReplacement);
  for (const char* name : {"groupby", "tee"}) table.addPolyfill((std::string("itertools.") + name).c_str(), name);
  for (const char* name : {"itemgetter", "attrgetter", "methodcaller"}) table.addPolyfill((std::string("operator.") + name).c_str(), name);
  for (const char* name : {"indexOf", "countOf", "call"}) table.addPolyfill((std::string("operator.") + name).c_str(), name);
  for (const char* name : {"bisect_left", "bisect_right", "insort_left", "insort_right"})
    table.addPolyfill((std::string("_bisect.") + name).c_str(), name);
  for (const char* name : {"heappush", "heappop", "heapify", "heapreplace", "heappushpop", "_heappop_max", "_heapify_max", "_heapreplace_max"})
    table.addPolyfill((std::string("_heapq.") + name).c_str(), name[0] == '_' ? name + 1 : name);
  table.addPolyfill("functools.cmp_to_key", "cmp_to_key");
  table.addPolyfill("math.prod", "prod");
  table.addPolyfill("collections._count_elements", "count_elements");
  table.addPolyfill("functools.reduce", "reduce");
  table.addPolyfill("functools.cached_property.__get__", "cached_property_get");
}

}  // namespace cdynamo
