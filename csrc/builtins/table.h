// The side table: what C callables (and a few Python ones) do to symbolic values.
#pragma once
#include <algorithm>
#include <string>
#include <unordered_map>

#include "interp/last_calls.h"
#include "interp/protocol.h"

namespace cdynamo {

using BuiltinHandler = Value* (*)(Trace&, CallArgs&);

class BuiltinTable {
 public:
  // The table, filled on first use.
  static BuiltinTable& get();

  // path: "builtins.len", "builtins.list.append", "torch._C._set_grad_enabled". A name that does not exist is passed over.
  void add(const char* path, BuiltinHandler handler);
  void addType(PyTypeObject* type, const char* method, BuiltinHandler handler);
  // Called by CPython itself where every argument is a constant.
  void addPure(const char* path);
  // Replaced by a Python function that the interpreter traces; once only.
  void addPolyfill(const char* path, const char* polyfill);

  BuiltinHandler find(PyObject* callable) const {
    auto found = handlers_.find(callable);
    return found == handlers_.end() ? nullptr : found->second;
  }
  bool isPure(PyObject* callable) const { return pure_.count(callable) != 0; }
  PyObject* polyfill(PyObject* callable) const {
    auto found = polyfills_.find(callable);
    return found == polyfills_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<PyObject*, BuiltinHandler> handlers_;
  std::unordered_map<PyObject*, bool> pure_;
  std::unordered_map<PyObject*, PyObject*> polyfills_;
};

// Each family adds its own.
void addCoreBuiltins(BuiltinTable& table);
void addContainerMethods(BuiltinTable& table);
void addDequeMethods(BuiltinTable& table);
void addSetMethods(BuiltinTable& table);
void addSlotMethods(BuiltinTable& table);
void addLibraryFunctions(BuiltinTable& table);
void addClassChecks(BuiltinTable& table);
void addIntrospection(BuiltinTable& table);
void addWeakReferences(BuiltinTable& table);
void addContextVariables(BuiltinTable& table);
void addStandIns(BuiltinTable& table);
void addEvaluation(BuiltinTable& table);
void addLazyModules(BuiltinTable& table);
void addLruCaches(BuiltinTable& table);
void addTypeBuiltins(BuiltinTable& table);
void addObjectBuiltins(BuiltinTable& table);
void addIteratorBuiltins(BuiltinTable& table);
void addTorchBuiltins(BuiltinTable& table);
void addTorchState(BuiltinTable& table);
void addFunctorchBuiltins(BuiltinTable& table);
void addOutputBuiltins(BuiltinTable& table);
void addAutogradBuiltins(BuiltinTable& table);
void addCheckpointBuiltins(BuiltinTable& table);
void addRandomBuiltins(BuiltinTable& table);
void addNumberBuiltins(BuiltinTable& table);
void addExceptionBuiltins(BuiltinTable& table);
void addImportBuiltins(BuiltinTable& table);
void addTorchFunctionBuiltins(BuiltinTable& table);

// torch functions, tensor methods, operators of torch.ops: the value, or `known` false where it is none.
Value* callTorch(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known);

// Calls of functools.lru_cache objects.
Value* callLruCache(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args);
// The functions that the code of captures calls for them: cdynamo._C.lru_called and lru_raised.
void addLruCacheFunctions(PyObject* module);

// torch.manual_seed.
Value* manualSeed(Trace& t, CallArgs& args);

// Calls that torch._dynamo.config tells to drop or to put off; `known` false for all others.
Value* callOutput(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known);

// Calls of functions that the user's decorators say something about; `known` false for all others.
Value* callMarked(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known);
// Functions of math and others that take numbers: objects of Python classes among the arguments become the numbers that they say
// they are. False: there are none, or one is no number.
bool convertNumbers(Trace& t, PyObject* callable, CallArgs& args);
// math.floor, ceil or trunc of an object whose class is asked instead; null for all else.
Value* roundedByItself(Trace& t, PyObject* callable, const CallArgs& args);
// graph_break, skip_frame, step_unsupported: torch's or ours.
bool isControl(PyObject* callable);

// ---- helpers for handlers ----
// The frame of the program that is so many calls above the one that runs; null: none of the trace's.
const FrameState* callerFrame(const Trace& t, long long depth);
// Thrown by a handler whose arguments do not fit: the callable itself is asked for the TypeError.
struct WrongArguments {};
// A method of a C type called by hand on an object of our own library that stands for one of that type; null for all else.
Value* callOfStandIn(Trace& t, PyObject* descriptor, const CallArgs& args);
// Checks the number of positional arguments, self included, after keywords were taken.
void expectArgs(const CallArgs& args, size_t least, size_t most);
// Calls a C callable with constants; null where an argument is none.
Value* callNative(Trace& t, PyObject* callable, const CallArgs& args);
void noKeywords(const CallArgs& args);
// The name of an attribute, interned; fn says who asks. TypeError where it is no str.
PyObject* nameArgument(Trace& t, Value* v, const char* fn);
// torch.Size(sizes)
Value* sizeOf(Trace& t, std::vector<Value*> sizes);
// The range that index(x, start, stop) searches, from the second argument on; the stop may lie beyond the end.
std::pair<long long, long long> searchBounds(Trace& t, const CallArgs& args, long long length);
// The ValueError of index() and remove().
[[noreturn]] void raiseNotIn(Trace& t, Value* v, const char* container);
// A method of dict itself: called on an OrderedDict it does not see, nor keep, the order.
template <BuiltinHandler handler>
Value* ofPlainDict(Trace& t, CallArgs& args) {
  DictValue* d = args.args.empty() ? nullptr : asDict(args.args[0]);
  if (d && PyType_IsSubtype(d->type, &PyODict_Type)) unsupported(BreakReason::MethodCall, "a method of dict on " + describe(args.args[0]));
  return handler(t, args);
}
// What takes all items before it looks at the first: where it raises, CPython, which goes item by item, is asked.
template <typename Action>
Value* itemByItem(Trace& t, const std::vector<Value*>& iterables, Action action) {
  const bool byCode = std::any_of(iterables.begin(), iterables.end(), [&](Value* v) { return mayBeLeftInTheMiddle(t, v); });
  try {
    return action();
  } catch (const Raised&) {
    if (!byCode) throw;
  }
  refuseEarlyItems();
}
template <BuiltinHandler handler>
Value* itemByItem(Trace& t, CallArgs& args) {
  return itemByItem(t, args.args, [&] { return handler(t, args); });
}
// Stable, by `<` alone, as list.sort does. key null: the items themselves.
std::vector<Value*> sortedItems(Trace& t, std::vector<Value*> items, Value* key, bool reverse);

}  // namespace cdynamo
