// What the user has said about single functions: allow_in_graph, disallow_in_graph, nonstrict_trace, forbid_in_graph,
// assume_constant_result, substitute_in_graph. Read from cdynamo's own decorators and from torch's.
#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/intrinsics.h"
#include "interp/torch_function.h"

namespace cdynamo {

namespace {

// The ids that torch's decorators collected: an attribute of torch._dynamo.trace_rules; null while there are none.
ObjectRef idsOf(PyObject* traceRules, const char* name) {
  ObjectRef set = ObjectRef::steal(PyObject_GetAttrString(traceRules, name));
  ObjectRef ids = ObjectRef::steal(set ? PyObject_GetAttrString(set.get(), "function_ids") : nullptr);
  PyErr_Clear();
  return ids && (PyDict_Check(ids.get()) || PyAnySet_Check(ids.get())) && PyObject_Size(ids.get()) > 0 ? ids : nullptr;
}

const UserMarks& marksOf(Trace& t) {
  if (t.marks.known) return t.marks;
  t.marks.known = true;
  t.marks.own = ObjectRef::share(importedObject("cdynamo._decorators", "marks"));
  if (PyObject* rules = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._dynamo.trace_rules")) {
    t.marks.allowed = idsOf(rules, "_allowed_callable_ids");
    t.marks.disallowed = idsOf(rules, "_disallowed_callable_ids");
  }
  return t.marks;
}

bool has(const ObjectRef& ids, PyObject* id) {
  if (!ids) return false;
  int found = PySequence_Contains(ids.get(), id);
  if (found < 0) PyErr_Clear();
  return found > 0;
}

// An attribute set on a function or on a class, true; nothing is asked of metaclasses and instances.
bool isMarked(PyObject* callable, PyObject* name) {
  if (PyFunction_Check(callable)) {
    PyObject* dict = reinterpret_cast<PyFunctionObject*>(callable)->func_dict;
    return dict && PyDict_GetItemWithError(dict, name) == Py_True;
  }
  return PyType_Check(callable) && typeLookup(reinterpret_cast<PyTypeObject*>(callable), name) == Py_True;
}

[[noreturn]] void forbid(PyObject* callable) {
  PyErr_Format(PyExc_AssertionError, "Attempt to trace forbidden callable %R", callable);
  throw PythonError{};
}

// The object that a value is now, for a call that is made while tracing; null where the trace made it or changed it.
PyObject* objectNow(Trace& t, Value* v) {
  if (isTensor(v)) {
    auto* tensor = as<TensorValue>(v);
    return tensor->written ? nullptr : tensor->real;
  }
  if (PyObject* copy = t.snapshot(v)) return copy;
  if (isReal(v)) return realObject(v);
  return v->kind == Kind::Instance && !as<InstanceValue>(v)->mutated ? as<InstanceValue>(v)->real.get() : nullptr;
}

// The function is run now, once; its result is part of the capture.
Value* callAsConstant(Trace& t, PyObject* callable, const CallArgs& args) {
  ObjectRef given = checked(PyTuple_New(static_cast<Py_ssize_t>(args.args.size()))), keywords = checked(PyDict_New());
  auto now = [&](Value* v) {
    PyObject* object = objectNow(t, v);
    if (!object) unsupported(BreakReason::UnsupportedCall, "a function marked with assume_constant_result called with " + describe(v));
    return object;
  };
  for (size_t i = 0; i < args.args.size(); i++)
    PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(now(args.args[i])).release());
  for (auto& [name, v] : args.kwargs) checkedStatus(PyDict_SetItem(keywords.get(), name, now(v)));
  PyObject* result = t.keep(native(t, PyObject_Call(callable, given.get(), keywords.get())));
  return t.wrap(result, t.sources.owned(result));
}

}  // namespace

Value* callMarked(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known) {
  static PyObject* forbidden = PyUnicode_InternFromString("_dynamo_forbidden");
  static PyObject* constant = PyUnicode_InternFromString("_dynamo_marked_constant");
  known = false;
  if (isMarked(callable, forbidden)) forbid(callable);
  auto pin = [&] {
    known = true;
    if (callableValue && callableValue->source) t.identity(callableValue);
  };
  if (isMarked(callable, constant)) {
    pin();
    return callAsConstant(t, callable, args);
  }
  const UserMarks& marks = marksOf(t);
  if (PyDict_GET_SIZE(marks.own.get()) == 0 && !marks.allowed && !marks.disallowed) return nullptr;
  ObjectRef id = checked(PyLong_FromVoidPtr(callable));
  PyObject* own = PyDict_GetItemWithError(marks.own.get(), id.get());
  if (!own && PyErr_Occurred()) throw PythonError{};
  if (own && PyFunction_Check(own)) {
    pin();
    return call(t, pinnedValue(t, own), args);
  }
  bool disallowed = own ? PyUnicode_CompareWithASCIIString(own, "disallow") == 0 : has(marks.disallowed, id.get());
  if (own ? !disallowed : has(marks.allowed, id.get())) {
    pin();
    // In the graph their tensors are plain ones: traced, it gives what it gives outside.
    if (isOverridden(t, args)) {
      known = false;
      return nullptr;
    }
    return recordOpaque(t, callable, args);
  }
  // Of torch's own module only the functions that mean a break are there, each with its own reason.
  if (disallowed && !isControl(callable)) {
    pin();
    unsupported(BreakReason::UnsupportedCall, "calling " + describe(t.realShared(callable)) + ", which disallow_in_graph keeps out of graphs");
  }
  return nullptr;
}

}  // namespace cdynamo
