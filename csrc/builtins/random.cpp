// Python's random: draws are made before the graph, in program order, by the generators themselves.
#include <algorithm>
#include <string_view>

#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

constexpr const char* kMethods[] = {"random",       "uniform",     "triangular",    "randint",        "randrange",   "getrandbits",
                                    "choice",       "gauss",       "normalvariate", "lognormvariate", "expovariate", "vonmisesvariate",
                                    "gammavariate", "betavariate", "paretovariate", "weibullvariate", "seed"};
constexpr size_t kInts[] = {3, 4, 5};  // whose arguments are ints
constexpr size_t kMostDraws = 200;     // in one capture
constexpr size_t kChoice = 6, kSeed = 16;
static_assert(std::string_view(kMethods[kChoice]) == "choice" && std::string_view(kMethods[kSeed]) == "seed" && std::size(kMethods) == kSeed + 1);

PyTypeObject* generatorClass() {
  static auto* type = reinterpret_cast<PyTypeObject*>(importedObject("random", "Random"));
  return type;
}

// An int that a tensor can hold, or a float.
bool isPlainNumber(PyObject* object) {
  if (PyFloat_CheckExact(object)) return true;
  int overflow = 0;
  if (PyLong_CheckExact(object)) PyLong_AsLongLongAndOverflow(object, &overflow);
  return PyLong_CheckExact(object) && !overflow;
}

// choice() of what gives one kind of number.
bool isUniform(PyObject* sequence) {
  if (PyRange_Check(sequence)) return true;
  if (!PyList_CheckExact(sequence) && !PyTuple_CheckExact(sequence)) return false;
  Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence, i);
    if (!isPlainNumber(item) || Py_TYPE(item) != Py_TYPE(PySequence_Fast_GET_ITEM(sequence, 0))) return false;
  }
  return count > 0;
}

// What the method gives with these arguments, found with a generator that nobody else has; breaks where it raises, or where
// one call's kind of result says nothing about the next one's.
PyTypeObject* resultOf(Trace& t, PyObject* method, const char* name, const std::vector<PyObject*>& args, PyObject* keywords) {
  static PyObject* scratch = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(generatorClass()))).release();
  std::vector<PyObject*> all{scratch};
  all.insert(all.end(), args.begin(), args.end());
  ObjectRef result = ObjectRef::steal(
      PyObject_Vectorcall(method, all.data(), all.size() - static_cast<size_t>(keywords ? PyTuple_GET_SIZE(keywords) : 0), keywords));
  if (!result) {
    PyErr_Clear();
    unsupported(BreakReason::RandomCall, std::string("random.") + name + "() that raises");
  }
  if (result.get() == Py_None) return nullptr;
  if (!isPlainNumber(result.get())) unsupported(BreakReason::RandomCall, std::string("random.") + name + "() that gives no int or float");
  (void)t;
  return Py_TYPE(result.get());
}

// What all methods draw from is C code, and not something that the program has put in its place.
void checkOwnSource(Trace& t, InstanceValue* generator) {
  DictValue* attributes = t.dictOf(generator);
  for (const char* name : {"random", "getrandbits"}) {
    PyObject* key = t.keep(checked(PyUnicode_InternFromString(name)));
    PyObject* method = lookUp(t, generatorClass(), key);
    if (!method || Py_TYPE(method) != &PyMethodDescr_Type || (attributes && t.dictGetName(attributes, key)))
      unsupported(BreakReason::RandomCall, std::string("a generator with another ") + name + "()");
  }
}

template <size_t which>
Value* draw(Trace& t, CallArgs& a) {
  const char* name = kMethods[which];
  static PyObject* method = typeLookup(generatorClass(), checked(PyUnicode_InternFromString(name)).get());
  auto* self = !a.args.empty() && a.args[0]->kind == Kind::Instance ? as<InstanceValue>(a.args[0]) : nullptr;
  if (!self || !self->real || !self->source || t.typeOf(self) != generatorClass())
    unsupported(BreakReason::RandomCall, std::string("random.") + name + "() of a generator made in the function, or of a subclass");
  checkOwnSource(t, self);
  // The call is made before anything that the program did, and may ask for another method.
  if (t.writtenClasses.count(generatorClass())) unsupported(BreakReason::RandomCall, "a random number after an attribute of its class was set");
  if (t.earlyCalls().size() >= kMostDraws) unsupported(BreakReason::RandomCall, "very many random numbers");
  std::vector<Value*> args{self};
  std::vector<PyObject*> constants;
  auto take = [&](Value* v) {
    PyObject* c = t.snapshot(v);
    if (!c) unsupported(BreakReason::RandomCall, std::string("random.") + name + "() with " + describe(v));
    bool large = PyLong_CheckExact(c) && !isPlainNumber(c);
    bool other = std::find(std::begin(kInts), std::end(kInts), which) != std::end(kInts) && !PyLong_CheckExact(c);
    if (which != kSeed && (large || other || (which == kChoice && !isUniform(c))))
      unsupported(BreakReason::RandomCall, std::string("random.") + name + "() of other than small numbers");
    constants.push_back(c);
    return t.realShared(c);
  };
  for (size_t i = 1; i < a.args.size(); i++) args.push_back(take(a.args[i]));
  std::vector<std::pair<PyObject*, Value*>> kwargs;
  ObjectRef names = checked(PyTuple_New(static_cast<Py_ssize_t>(a.kwargs.size())));
  for (size_t i = 0; i < a.kwargs.size(); i++) {
    kwargs.emplace_back(a.kwargs[i].first, take(a.kwargs[i].second));
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(a.kwargs[i].first).release());
  }
  PyTypeObject* type = resultOf(t, method, name, constants, a.kwargs.empty() ? nullptr : names.get());
  return t.callEarly({method, std::move(args), std::move(kwargs)}, type);
}

template <size_t... which>
void addDraws(BuiltinTable& table, std::index_sequence<which...>) {
  (table.addType(generatorClass(), kMethods[which], draw<which>), ...);
}

// ---- torch's generators ----------------------------------------------------------------------------------------------

// A seed is set before the graph, where no operation came before it: one that did may have drawn.
void seedEarly(Trace& t, PyObject* function, CallArgs& a, size_t seedAt) {
  if (t.graph.callCount() != 0) unsupported(BreakReason::RandomCall, "a seed set after operations of the graph");
  if (a.args.size() != seedAt + 1 || !a.kwargs.empty() || !asInteger(t, a.args[seedAt]))
    unsupported(BreakReason::RandomCall, "a seed that is no int");
  t.callEarly({function, a.args, {}}, nullptr);
}

Value* generatorSeed(Trace& t, CallArgs& a) {
  static PyObject* method = typeLookup(generatorType(), checked(PyUnicode_InternFromString("manual_seed")).get());
  if (a.args.empty() || !a.args[0]->source) unsupported(BreakReason::RandomCall, "the seed of a generator made in the function");
  t.typeOf(a.args[0]);
  seedEarly(t, method, a, 1);
  return a.args[0];
}

}  // namespace

Value* manualSeed(Trace& t, CallArgs& a) {
  seedEarly(t, importedObject("torch", "manual_seed"), a, 0);
  return pinnedValue(t, importedObject("torch", "default_generator"));
}

void addRandomBuiltins(BuiltinTable& table) {
  addDraws(table, std::make_index_sequence<std::size(kMethods)>());
  table.addType(generatorType(), "manual_seed", generatorSeed);
}

}  // namespace cdynamo
