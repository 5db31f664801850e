#include "dispatch/replay.h"

#include "base/error.h"
#include "base/exceptions.h"
#include "base/lookup.h"
#include "graph/executable.h"
#include "torch/memory.h"

namespace cdynamo {

namespace {

thread_local PyObject* lastFailure = nullptr;  // compared only

PyObject* runWatched(PyObject* graph, PyObject* const* args, Py_ssize_t count) {
  PyObject* result = PyObject_Vectorcall(graph, args, static_cast<size_t>(count), nullptr);
  lastFailure = nullptr;
  if (result) [[likely]]
    return result;
  ObjectRef error = takeException();
  lastFailure = error.get();
  restoreException(error.get());
  return nullptr;
}

PyMethodDef runWatchedDef = {"graph", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(runWatched)), METH_FASTCALL, nullptr};

// Bytes of a call's inputs that may be copied before the graph runs. Above it an error goes straight to the caller, as torch.compile's do.
constexpr int64_t kMostCopied = 1 << 20;

// A function of cdynamo._replay, called; null where it raised, with the error cleared.
ObjectRef helped(const char* name, PyObject* a = nullptr, PyObject* b = nullptr, PyObject* c = nullptr) {
  try {
    ObjectRef result = ObjectRef::steal(PyObject_CallFunctionObjArgs(importedObject("cdynamo._replay", name), a, b, c, nullptr));
    if (!result) PyErr_Clear();
    return result;
  } catch (const PythonError&) {
    PyErr_Clear();
    return {};
  }
}

// What the program itself may raise and handle, as against what stops the engine or the user's patience.
bool isOfTheProgram(PyObject* error) {
  return PyObject_TypeCheck(error, reinterpret_cast<PyTypeObject*>(PyExc_Exception)) && !PyErr_GivenExceptionMatches(error, PyExc_SystemError) &&
         !PyErr_GivenExceptionMatches(error, PyExc_RecursionError);
}

}  // namespace

ObjectRef watchedGraph(const ObjectRef& graph) { return checked(PyCFunction_New(&runWatchedDef, graph.get())); }

bool isGraphFailure() {
  ObjectRef error = takeException();
  bool is = error && error.get() == lastFailure;
  restoreException(error.get());
  return is;
}

BeforeGraph::BeforeGraph(const ReplayPlan& plan, PyObject* const* inputs) : plan_(plan) {
  int64_t bytes = 0;
  for (uint32_t i : plan.written) bytes += memoryOf(inputs[i]).size();
  bool copies = plan.saves && bytes <= kMostCopied;
  for (uint32_t i : plan.written) {
    Written& w = written_.emplace_back();
    w.tensor = ObjectRef::share(inputs[i]);
    w.version = versionOf(inputs[i]);
    w.requiresGrad = requiresGrad(inputs[i]);
    w.isLeaf = isLeaf(inputs[i]);
    if (copies) complete_ &= static_cast<bool>(w.copy = helped("copy_of", inputs[i]));
  }
  if (plan.draws) complete_ &= static_cast<bool>(torchState_ = helped("torch_state"));
  if (plan.drawsInPython) complete_ &= static_cast<bool>(pythonState_ = helped("python_state"));
}

bool BeforeGraph::putBack() {
  bool done = true;
  for (const Written& w : written_) {
    if (!done) break;
    if (!w.copy && !plan_.hidden && w.version >= 0 && versionOf(w.tensor.get()) == w.version) continue;
    ObjectRef version = ObjectRef::steal(PyLong_FromLongLong(w.version));
    done = version && w.copy && isLeaf(w.tensor.get()) == w.isLeaf && requiresGrad(w.tensor.get()) == w.requiresGrad &&
           helped("put_back", w.tensor.get(), w.copy.get(), version.get());
  }
  if (done && torchState_) done = static_cast<bool>(helped("set_torch_state", torchState_.get()));
  if (done && pythonState_) done = static_cast<bool>(helped("set_python_state", pythonState_.get()));
  return done;
}

bool BeforeGraph::programFails(PyObject* const* inputs, size_t inputCount) {
  if (!plan_.program) return true;
  try {
    runGraphProgram(plan_.program.get(), inputs, inputCount);
    return false;
  } catch (const PythonError&) {
    PyErr_Clear();
    return true;
  }
}

void BeforeGraph::undo(PyObject* const* inputs, size_t inputCount) {
  ObjectRef error = takeException();
  bool done = complete_ && isOfTheProgram(error.get()) && putBack();
  if (done && plan_.program) {
    done = programFails(inputs, inputCount);
    done = putBack() && done;
  }
  if (!done) restoreException(error.get());
}

}  // namespace cdynamo
