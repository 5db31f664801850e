#include "shapes/python.h"

#include <chrono>
#include <unordered_map>

#include "shapes/infer.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// Makes operands of Python objects; tensors become placeholder nodes, the same tensor the same node.
class Builder {
 public:
  // The device that tensors are said to be on, where it is not their own.
  std::optional<DeviceTag> device;

  Arg arg(PyObject* object) {
    Arg made;
    if (isTensor(object)) {
      made.kind = Arg::NodeRef;
      made.node = node(object);
      return made;
    }
    bool tuple = PyTuple_CheckExact(object), list = PyList_CheckExact(object);
    if ((tuple || list) && holdsTensor(object)) {
      made.kind = tuple ? Arg::Tuple : Arg::List;
      Py_ssize_t count = PySequence_Size(object);
      for (Py_ssize_t i = 0; i < count; i++) made.items.push_back(arg(checked(PySequence_GetItem(object, i)).get()));
      return made;
    }
    made.object = ObjectRef::share(object);
    return made;
  }

 private:
  static bool holdsTensor(PyObject* object) {
    if (isTensor(object)) return true;
    if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Size(object); i++)
      if (holdsTensor(checked(PySequence_GetItem(object, i)).get())) return true;
    return false;
  }
  Node* node(PyObject* tensor) {
    Node*& known = known_[tensor];
    if (known == nullptr) {
      known = graph_.add(NodeOp::Placeholder, ObjectRef(), {}, {});
      known->result.kind = ResultMeta::Tensor;
      TensorOddity oddity;
      if (!readTensorMeta(tensor, known->result.tensor, &oddity)) {
        PyErr_SetString(PyExc_TypeError, describeOddity(oddity));
        throw PythonError{};
      }
      if (device) known->result.tensor.device = *device;
    }
    return known;
  }
  Graph graph_;
  std::unordered_map<PyObject*, Node*> known_;
};

ObjectRef describeTensor(const TensorMeta& t) {
  ObjectRef dtype = checked(dtypeObject(t.dtype)), device = checked(deviceObject(t.device));
  ObjectRef sizes = checked(makeSize(t.sizes)), strides = checked(makeSize(t.strides));
  return checked(Py_BuildValue("{s:O,s:O,s:O,s:O,s:N,s:N,s:N,s:N,s:N,s:L}", "dtype", dtype.get(), "device", device.get(), "sizes", sizes.get(),
                               "strides", strides.get(), "requires_grad", PyBool_FromLong(t.requiresGrad), "is_leaf", PyBool_FromLong(t.isLeaf),
                               "is_inference", PyBool_FromLong(t.isInference), "is_conj", PyBool_FromLong(t.isConj), "is_neg",
                               PyBool_FromLong(t.isNeg), "offset", static_cast<long long>(t.storageOffset)));
}

ObjectRef describe(const ResultMeta& r) {
  switch (r.kind) {
    case ResultMeta::None: return ObjectRef::share(Py_None);
    case ResultMeta::Constant: return r.object;
    case ResultMeta::Tensor: return describeTensor(r.tensor);
    default: break;
  }
  ObjectRef items = checked(PyTuple_New(static_cast<Py_ssize_t>(r.items.size())));
  for (size_t i = 0; i < r.items.size(); i++) PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i), describe(r.items[i]).release());
  if (r.kind == ResultMeta::NamedTuple) return checked(Py_BuildValue("(OO)", r.object.get(), items.get()));
  return r.kind == ResultMeta::List ? checked(PySequence_List(items.get())) : items;
}

// Runs `body` at the border to Python: engine exceptions become Python errors.
template <typename F>
PyObject* bordered(F&& body) {
  try {
    return body().release();
  } catch (const PythonError&) {
    return nullptr;
  } catch (const ShapeError& error) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.exception.get())), error.exception.get());
  } catch (const ShapeUnknown& unknown) {
    PyErr_SetString(PyExc_NotImplementedError, unknown.reason.c_str());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  }
  return nullptr;
}

// Parses (target, args tuple, kwargs dict, ...) and calls `use(OpCall)`.
template <typename F>
ObjectRef withCall(PyObject* target, PyObject* args, PyObject* kwargs, F&& use, std::optional<DeviceTag> device = {}) {
  Builder builder;
  builder.device = device;
  std::vector<Arg> operands;
  std::vector<std::pair<ObjectRef, Arg>> keywords;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) operands.push_back(builder.arg(PyTuple_GET_ITEM(args, i)));
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (kwargs != nullptr && PyDict_Next(kwargs, &at, &key, &value)) keywords.emplace_back(ObjectRef::share(key), builder.arg(value));
  return use(OpCall{target, PyUnicode_Check(target) != 0, operands, keywords, gradEnabled()});
}

PyObject* inferResultPy(PyObject*, PyObject* packed) {
  PyObject *target, *args, *kwargs = nullptr;
  if (!PyArg_ParseTuple(packed, "OO!|O!", &target, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
  return bordered([&] {
    return withCall(target, args, kwargs, [](const OpCall& op) {
      InferPath path;
      ResultMeta result = inferResult(op, &path);
      const char* names[] = {"rule", "memo", "fake"};
      ObjectRef description = describe(result);
      return checked(Py_BuildValue("(sO)", names[static_cast<int>(path)], description.get()));
    });
  });
}

// What the rules and FakeTensor say of the call if its tensors were on another device.
PyObject* compareOnPy(PyObject*, PyObject* packed) {
  PyObject *deviceName, *target, *args, *kwargs = nullptr;
  if (!PyArg_ParseTuple(packed, "OOO!|O!", &deviceName, &target, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
  return bordered([&] {
    DeviceTag device;
    if (!deviceFrom(deviceName, device)) {
      PyErr_SetString(PyExc_ValueError, "not a device");
      throw PythonError{};
    }
    return withCall(
        target, args, kwargs,
        [](const OpCall& op) {
          ResultMeta ruled;
          ObjectRef first = inferByRule(op, ruled) ? describe(ruled) : ObjectRef::share(Py_None);
          ObjectRef second = describe(inferByFake(op));
          return checked(Py_BuildValue("(OO)", first.get(), second.get()));
        },
        device);
  });
}

PyObject* selfAfterPy(PyObject*, PyObject* packed) {
  PyObject *target, *args, *kwargs = nullptr;
  if (!PyArg_ParseTuple(packed, "OO!|O!", &target, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
  return bordered([&] {
    return withCall(target, args, kwargs, [](const OpCall& op) {
      std::optional<TensorMeta> after = selfAfter(op);
      return after ? describeTensor(*after) : ObjectRef::share(Py_None);
    });
  });
}

// Nanoseconds per inference of one call, repeated `count` times.
PyObject* timeInferPy(PyObject*, PyObject* packed) {
  PyObject *target, *args, *kwargs;
  int count;
  if (!PyArg_ParseTuple(packed, "OO!O!i", &target, &PyTuple_Type, &args, &PyDict_Type, &kwargs, &count)) return nullptr;
  return bordered([&] {
    return withCall(target, args, kwargs, [&](const OpCall& op) {
      auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < count; i++) inferResult(op);
      std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
      return checked(PyFloat_FromDouble(passed.count() / count));
    });
  });
}

PyObject* readTensorMetaPy(PyObject*, PyObject* tensor) {
  return bordered([&] {
    TensorMeta meta;
    TensorOddity oddity;
    if (readTensorMeta(tensor, meta, &oddity)) return describeTensor(meta);
    return checked(PyUnicode_FromString(describeOddity(oddity)));
  });
}

constexpr const char* kGuardName = "cdynamo.TensorGuard";
constexpr const char* kStateName = "cdynamo.GlobalState";

template <typename T>
ObjectRef capsule(T value, const char* name) {
  auto owned = std::make_unique<T>(std::move(value));
  ObjectRef made =
      checked(PyCapsule_New(owned.get(), name, [](PyObject* self) { delete static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self))); }));
  owned.release();
  return made;
}

template <typename T>
const T& opened(PyObject* object, const char* name) {
  void* held = PyCapsule_GetPointer(object, name);
  if (held == nullptr) throw PythonError{};
  return *static_cast<T*>(held);
}

PyObject* tensorGuardPy(PyObject*, PyObject* tensor) {
  return bordered([&] {
    TensorGuard guard;
    if (!makeTensorGuard(tensor, guard)) {
      PyErr_SetString(PyExc_TypeError, "cannot guard this object as a tensor");
      throw PythonError{};
    }
    return capsule(std::move(guard), kGuardName);
  });
}

// (guard, object) -> None where it holds, else the explanation.
PyObject* tensorGuardCheckPy(PyObject*, PyObject* packed) {
  PyObject *guardObject, *object;
  if (!PyArg_ParseTuple(packed, "OO", &guardObject, &object)) return nullptr;
  return bordered([&] {
    const TensorGuard& guard = opened<TensorGuard>(guardObject, kGuardName);
    if (checkTensor(object, guard)) return ObjectRef::share(Py_None);
    return checked(PyUnicode_FromString(explainTensorMismatch(object, guard, "L['x']").c_str()));
  });
}

PyObject* captureGlobalStatePy(PyObject*, PyObject*) {
  return bordered([] { return capsule(captureGlobalState(), kStateName); });
}

PyObject* globalStateCheckPy(PyObject*, PyObject* object) {
  return bordered([&] {
    const GlobalState& state = opened<GlobalState>(object, kStateName);
    if (globalStateMatches(state)) return ObjectRef::share(Py_None);
    return checked(PyUnicode_FromString(explainGlobalStateMismatch(state).c_str()));
  });
}

// (guard, tensor, state, count) -> (ns per tensor check, ns per state check)
PyObject* timeGuardsPy(PyObject*, PyObject* packed) {
  PyObject *guardObject, *tensor, *stateObject;
  int count;
  if (!PyArg_ParseTuple(packed, "OOOi", &guardObject, &tensor, &stateObject, &count)) return nullptr;
  return bordered([&] {
    const TensorGuard& guard = opened<TensorGuard>(guardObject, kGuardName);
    const GlobalState& state = opened<GlobalState>(stateObject, kStateName);
    int held = 0;
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; i++) held += checkTensor(tensor, guard);
    auto middle = std::chrono::steady_clock::now();
    for (int i = 0; i < count; i++) held += globalStateMatches(state);
    auto end = std::chrono::steady_clock::now();
    CD_CHECK(held == 2 * count, "a guard failed while it was timed");
    std::chrono::duration<double, std::nano> first = middle - start, second = end - middle;
    return checked(Py_BuildValue("(dd)", first.count() / count, second.count() / count));
  });
}

PyObject* clearMemoPy(PyObject*, PyObject*) {
  clearInferMemo();
  return ObjectRef::share(Py_None).release();
}

PyMethodDef kFunctions[] = {
    {"infer_result", inferResultPy, METH_VARARGS, "infer_result(target, args, kwargs={}) -> (path, description)"},
    {"compare_on", compareOnPy, METH_VARARGS, "compare_on(device, target, args, kwargs={}) -> (rule's description or None, FakeTensor's)"},
    {"self_after", selfAfterPy, METH_VARARGS, "self_after(target, args, kwargs={}) -> description of args[0] after the call, or None"},
    {"time_infer", timeInferPy, METH_VARARGS, "time_infer(target, args, kwargs, count) -> ns per call"},
    {"read_tensor_meta", readTensorMetaPy, METH_O, "description of a tensor, or why there is none"},
    {"tensor_guard", tensorGuardPy, METH_O, "a guard made of a tensor"},
    {"tensor_guard_check", tensorGuardCheckPy, METH_VARARGS, "tensor_guard_check(guard, object) -> None or why not"},
    {"capture_global_state", captureGlobalStatePy, METH_NOARGS, "the state that changes what ops do"},
    {"global_state_check", globalStateCheckPy, METH_O, "None where the state is as captured, else what changed"},
    {"time_guards", timeGuardsPy, METH_VARARGS, "time_guards(guard, tensor, state, count) -> ns per check of each"},
    {"clear_infer_memo", clearMemoPy, METH_NOARGS, "forgets all memoized results"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void addShapeFunctions(PyObject* module) { PyModule_AddFunctions(module, kFunctions); }

}  // namespace cdynamo
