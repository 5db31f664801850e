#include "dispatch/test_api.h"

#include "base/error.h"
#include "cpython/frame_hook.h"
#include "dispatch/bind.h"
#include "dispatch/capture_api.h"
#include "dispatch/frame_hook.h"
#include "guards/test_api.h"

namespace cdynamo {

namespace {

ObjectRef& testHook() {
  static ObjectRef* hook = new ObjectRef();
  return *hook;
}
CaptureHook realHook = nullptr;

PyObject* field(PyObject* dict, const char* name) {
  ObjectRef key = checked(PyUnicode_FromString(name));
  PyObject* value = PyDict_GetItemWithError(dict, key.get());
  if (value == nullptr && PyErr_Occurred()) throw PythonError{};
  return value;
}

int intField(PyObject* dict, const char* name, int absent) {
  PyObject* value = field(dict, name);
  long number = value ? PyLong_AsLong(value) : absent;
  if (number == -1 && PyErr_Occurred()) throw PythonError{};
  return static_cast<int>(number);
}

std::unique_ptr<Entry> readEntry(PyObject* function, PyObject* dict) {
  auto* code = reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(function)->func_code);
  PyObject* globals = reinterpret_cast<PyFunctionObject*>(function)->func_globals;
  auto entry = std::make_unique<Entry>();
  entry->guards = buildTestProgram(field(dict, "facts"), field(dict, "wanted"), code->co_localsplusnames, globals);
  entry->function = ObjectRef::share(field(dict, "function"));
  entry->graph = ObjectRef::share(field(dict, "graph"));
  entry->globals = ObjectRef::share(globals);
  entry->direct = static_cast<bool>(entry->graph);
  entry->directOutput = intField(dict, "output", -1);
  entry->graphInputCount = static_cast<uint32_t>(intField(dict, "graph_inputs", 0));
  return entry;
}

std::string text(PyObject* object) {
  const char* utf8 = PyUnicode_AsUTF8(object);
  if (utf8 == nullptr) throw PythonError{};
  return utf8;
}

CaptureOutcome testCapture(PyObject* function, const FrameInputs& inputs, PyObject* options, const std::set<std::string>&) {
  ObjectRef locals = checked(PyTuple_New(inputs.localCount));
  for (Py_ssize_t i = 0; i < inputs.localCount; i++)
    PyTuple_SET_ITEM(locals.get(), i, ObjectRef::share(inputs.locals[i] ? inputs.locals[i] : Py_Ellipsis).release());
  ObjectRef hook = testHook();
  ObjectRef answer = checked(PyObject_CallFunctionObjArgs(hook.get(), function, locals.get(), options, nullptr));
  CaptureOutcome outcome;
  if (PyDict_Check(answer.get())) {
    outcome.kind = CaptureOutcome::Kind::Install;
    outcome.entry = readEntry(function, answer.get());
  } else if (PyTuple_Check(answer.get()) && PyTuple_GET_SIZE(answer.get()) == 2) {
    outcome.remember = false;
    outcome.reason = text(PyTuple_GET_ITEM(answer.get(), 1));
  } else if (PyUnicode_Check(answer.get())) {
    outcome.reason = text(answer.get());
  } else {
    CD_CHECK(answer.get() == Py_None, "the test hook returned something unknown");
  }
  return outcome;
}

PyObject* setTestCapture(PyObject*, PyObject* hook) {
  if (captureHook() != testCapture) realHook = captureHook();
  ObjectRef old = std::exchange(testHook(), hook == Py_None ? ObjectRef() : ObjectRef::share(hook));
  setCaptureHook(testHook() ? testCapture : realHook);
  return ObjectRef::share(Py_None).release();
}

PyObject* bind(PyObject*, PyObject* args) {
  PyObject *function, *positional, *keywords;
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyFunction_Type, &function, &PyTuple_Type, &positional, &PyDict_Type, &keywords)) return nullptr;
  std::vector<PyObject*> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); i++) values.push_back(PyTuple_GET_ITEM(positional, i));
  ObjectRef names = ObjectRef::steal(PyDict_GET_SIZE(keywords) ? PySequence_Tuple(keywords) : nullptr);
  if (PyErr_Occurred()) return nullptr;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(keywords, &position, &key, &value)) values.push_back(value);
  BoundFrame frame;
  if (!bindArguments(function, nullptr, values.data(), static_cast<size_t>(PyTuple_GET_SIZE(positional)), names.get(), frame))
    return ObjectRef::share(Py_None).release();
  ObjectRef list = ObjectRef::steal(PyList_New(0));
  for (PyObject* slot : frame.slots)
    if (!list || PyList_Append(list.get(), slot) < 0) return nullptr;
  return list.release();
}

PyObject* callWithHook(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  if (count < 2) return PyErr_Format(PyExc_TypeError, "options and a callable are needed");
  FrameHookScope scope(args[0]);
  return PyObject_Vectorcall(args[1], args + 2, static_cast<size_t>(count - 2), kwnames);
}

PyObject* isFrameHookInstalled(PyObject*, PyObject*) { return PyBool_FromLong(frameHookInstalled()); }

PyObject* skipTestCode(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) return PyErr_Format(PyExc_TypeError, "a code object is needed");
  try {
    skipCode(code);
    return ObjectRef::share(Py_None).release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyMethodDef functions[] = {
    {"_set_test_capture", setTestCapture, METH_O, nullptr},
    {"_call_with_hook", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(callWithHook)), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_frame_hook_installed", isFrameHookInstalled, METH_NOARGS, nullptr},
    {"_skip_code", skipTestCode, METH_O, nullptr},
    {"_bind", bind, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void addDispatchTestFunctions(PyObject* module) { checkedStatus(PyModule_AddFunctions(module, functions)); }

}  // namespace cdynamo
