// programFrom: from plain Python data to a program.
#include <cstring>

#include "base/error.h"
#include "graph/describe.h"

namespace cdynamo {

namespace {

[[noreturn]] void refuse(PyObject* type, const char* what) {
  PyErr_SetString(type, what);
  throw PythonError{};
}

std::string toText(PyObject* object) {
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (utf8 == nullptr) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "str expected, not %.100s", Py_TYPE(object)->tp_name);
    throw PythonError{};
  }
  return std::string(utf8, static_cast<size_t>(size));
}

int64_t toInt(PyObject* object) {
  long long n = PyLong_AsLongLong(object);
  if (n == -1 && PyErr_Occurred()) throw PythonError{};
  return n;
}

bool toBool(PyObject* object) { return checkedStatus(PyObject_IsTrue(object)) != 0; }

// A tuple with at least `least` items, else TypeError.
PyObject* toTuple(PyObject* object, Py_ssize_t least, const char* what) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < least) refuse(PyExc_TypeError, what);
  return object;
}

Dims toDims(PyObject* object) {
  toTuple(object, 0, "sizes and strides are tuples of int");
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) dims.push_back(toInt(PyTuple_GET_ITEM(object, i)));
  return dims;
}

ResultMeta toResult(PyObject* object);

std::vector<ResultMeta> toResults(PyObject* object) {
  toTuple(object, 0, "the items of a result are a tuple");
  std::vector<ResultMeta> results;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) results.push_back(toResult(PyTuple_GET_ITEM(object, i)));
  return results;
}

ResultMeta toResult(PyObject* object) {
  ResultMeta result;
  if (object == Py_None) return result;
  toTuple(object, 2, "a result is None or a tuple");
  auto item = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(object, i); };
  std::string kind = toText(item(0));
  if (kind == "tensor") {
    toTuple(object, 9, "a tensor result has nine items");
    result.kind = ResultMeta::Tensor;
    TensorMeta& t = result.tensor;
    t.dtype = static_cast<DType>(toInt(item(1)));
    PyObject* device = toTuple(item(2), 2, "a device is (type number, index)");
    t.device.type = static_cast<int8_t>(toInt(PyTuple_GET_ITEM(device, 0)));
    t.device.index = static_cast<int8_t>(toInt(PyTuple_GET_ITEM(device, 1)));
    t.sizes = toDims(item(3));
    t.strides = toDims(item(4));
    t.storageOffset = toInt(item(5));
    t.requiresGrad = toBool(item(6));
    t.isLeaf = toBool(item(7));
    t.layout = static_cast<int8_t>(toInt(item(8)));
  } else if (kind == "tuple" || kind == "list") {
    result.kind = kind == "tuple" ? ResultMeta::Tuple : ResultMeta::List;
    result.items = toResults(item(1));
  } else if (kind == "named" || kind == "dict") {
    toTuple(object, 3, "such a result is (\"named\", class, items) or (\"dict\", keys, items)");
    result.kind = kind == "named" ? ResultMeta::NamedTuple : ResultMeta::Dict;
    result.object = ObjectRef::share(item(1));
    result.items = toResults(item(2));
  } else if (kind == "constant") {
    result.kind = ResultMeta::Constant;
    result.object = ObjectRef::share(item(1));
  } else {
    refuse(PyExc_ValueError, "unknown kind of result");
  }
  return result;
}

class Parser {
 public:
  std::unique_ptr<Program> parse(PyObject* nodes, PyObject* outputs) {
    ObjectRef nodeList = checked(PySequence_Fast(nodes, "nodes must be a sequence"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(nodeList.get()); i++) parseNode(PySequence_Fast_GET_ITEM(nodeList.get(), i));
    ObjectRef outputList = checked(PySequence_Fast(outputs, "outputs must be a sequence of node positions"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(outputList.get()); i++)
      graph_.outputs.push_back(nodeAt(PySequence_Fast_GET_ITEM(outputList.get(), i)));
    return std::make_unique<Program>(std::move(graph_), std::move(names_), std::move(places_), std::move(placeOf_));
  }

 private:
  Node* nodeAt(PyObject* index) {
    int64_t i = toInt(index);
    if (i < 0 || i >= static_cast<int64_t>(graph_.nodes().size())) refuse(PyExc_IndexError, "no node at this position yet");
    return &graph_.nodes()[static_cast<size_t>(i)];
  }

  Arg toArg(PyObject* object) {
    Arg arg;
    if (Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(nodeIndexType())) {
      arg.kind = Arg::NodeRef;
      arg.node = nodeAt(object);
    } else if (PyList_CheckExact(object)) {
      arg.kind = Arg::List;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); i++) arg.items.push_back(toArg(PyList_GET_ITEM(object, i)));
    } else if (PyTuple_Check(object)) {
      arg.kind = Arg::Tuple;
      if (!PyTuple_CheckExact(object)) arg.object = ObjectRef::share(Py_TYPE(object));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) arg.items.push_back(toArg(PyTuple_GET_ITEM(object, i)));
    } else if (PyDict_CheckExact(object)) {
      arg.kind = Arg::Dict;
      ObjectRef keys = checked(PyDict_Keys(object));
      arg.object = checked(PyList_AsTuple(keys.get()));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arg.object.get()); i++) {
        PyObject* value = PyDict_GetItemWithError(object, PyTuple_GET_ITEM(arg.object.get(), i));
        if (value == nullptr) refuse(PyExc_KeyError, "the dict changed while it was read");
        arg.items.push_back(toArg(value));
      }
    } else if (PySlice_Check(object)) {
      auto* slice = reinterpret_cast<PySliceObject*>(object);
      arg.kind = Arg::Slice;
      for (PyObject* part : {slice->start, slice->stop, slice->step}) arg.items.push_back(toArg(part));
    } else {
      arg.object = ObjectRef::share(object);
    }
    return arg;
  }

  int32_t parseStack(PyObject* stack) {
    toTuple(stack, 0, "a stack is a tuple of (file, line, function, module path, module type)");
    int32_t place = -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(stack); i++) {
      PyObject* level = toTuple(PyTuple_GET_ITEM(stack, i), 5, "a stack is a tuple of (file, line, function, module path, module type)");
      ProgramPlace made;
      made.line = static_cast<int32_t>(toInt(PyTuple_GET_ITEM(level, 1)));
      std::string file = toText(PyTuple_GET_ITEM(level, 0)), function = toText(PyTuple_GET_ITEM(level, 2));
      made.code = checked(reinterpret_cast<PyObject*>(PyCode_NewEmpty(file.c_str(), function.c_str(), made.line)));
      made.caller = place;
      if (PyTuple_GET_ITEM(level, 3) != Py_None) {
        made.modulePath = toText(PyTuple_GET_ITEM(level, 3));
        made.moduleType = ObjectRef::share(PyTuple_GET_ITEM(level, 4));
      }
      places_.push_back(std::move(made));
      place = static_cast<int32_t>(places_.size() - 1);
    }
    return place;
  }

  void parseNode(PyObject* described) {
    toTuple(described, 8, "a node is (op, target, args, kwargs, name, result, stack, source)");
    auto item = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(described, i); };
    std::string opName = toText(item(0));
    NodeOp op;
    if (opName == "placeholder") {
      op = NodeOp::Placeholder;
      names_.push_back(item(7) == Py_None ? std::string() : toText(item(7)));
    } else if (opName == "call_function") {
      op = NodeOp::CallFunction;
      if (!PyCallable_Check(item(1))) refuse(PyExc_TypeError, "the target of call_function must be callable");
    } else if (opName == "call_method" || opName == "get_attr") {
      op = opName == "call_method" ? NodeOp::CallMethod : NodeOp::GetAttr;
      if (!PyUnicode_Check(item(1))) refuse(PyExc_TypeError, "the target of call_method and get_attr must be a str");
    } else {
      refuse(PyExc_ValueError, "unknown op");
    }
    std::vector<Arg> args;
    toTuple(item(2), 0, "args must be a tuple");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(item(2)); i++) {
      if (op == NodeOp::GetAttr) {
        Arg& whole = args.emplace_back();
        whole.object = ObjectRef::share(PyTuple_GET_ITEM(item(2), i));
      } else {
        args.push_back(toArg(PyTuple_GET_ITEM(item(2), i)));
      }
    }
    if (op == NodeOp::GetAttr && args.size() != 1) refuse(PyExc_ValueError, "get_attr has one argument, the object");
    if (op == NodeOp::CallMethod && args.empty()) refuse(PyExc_ValueError, "call_method needs the object it is called on");
    std::vector<std::pair<ObjectRef, Arg>> kwargs;
    if (!PyDict_Check(item(3))) refuse(PyExc_TypeError, "kwargs must be a dict");
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(item(3), &at, &key, &value);) {
      if (!PyUnicode_Check(key)) refuse(PyExc_TypeError, "keywords must be str");
      kwargs.emplace_back(ObjectRef::share(key), toArg(value));
    }
    std::string name = toText(item(4));
    ResultMeta result = toResult(item(5));
    int32_t place = parseStack(item(6));
    Node* node = graph_.add(op, ObjectRef::share(item(1)), std::move(args), std::move(kwargs));
    node->nameHint = std::move(name);
    node->result = std::move(result);
    placeOf_.push_back(place);
  }

  Graph graph_;
  std::vector<std::string> names_;
  std::vector<ProgramPlace> places_;
  std::vector<int32_t> placeOf_;
};

}  // namespace

std::unique_ptr<Program> programFrom(PyObject* nodes, PyObject* outputs) { return Parser().parse(nodes, outputs); }

}  // namespace cdynamo
