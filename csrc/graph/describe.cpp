#include "graph/describe.h"

#include <utility>

#include "base/error.h"

namespace cdynamo {

namespace {

constexpr const char* kOpNames[] = {"placeholder", "call_function", "call_method", "get_attr", "output"};

ObjectRef text(const std::string& s) { return checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()))); }
ObjectRef number(int64_t n) { return checked(PyLong_FromLongLong(n)); }
ObjectRef none() { return ObjectRef::share(Py_None); }
ObjectRef boolean(bool value) { return ObjectRef::share(value ? Py_True : Py_False); }

template <typename... Items>
ObjectRef tupleOf(Items&&... items) {
  ObjectRef tuple = checked(PyTuple_New(sizeof...(items)));
  Py_ssize_t i = 0;
  (PyTuple_SET_ITEM(tuple.get(), i++, ObjectRef(std::forward<Items>(items)).release()), ...);
  return tuple;
}

ObjectRef dims(const Dims& sizes) {
  ObjectRef tuple = checked(PyTuple_New(sizes.size()));
  for (uint32_t i = 0; i < sizes.size(); i++) PyTuple_SET_ITEM(tuple.get(), i, number(sizes[i]).release());
  return tuple;
}

ObjectRef describeResult(const ResultMeta& result);

ObjectRef describeResults(const std::vector<ResultMeta>& results) {
  ObjectRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); i++) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), describeResult(results[i]).release());
  return tuple;
}

ObjectRef describeResult(const ResultMeta& result) {
  switch (result.kind) {
    case ResultMeta::None: return none();
    case ResultMeta::Tensor: {
      const TensorMeta& t = result.tensor;
      return tupleOf(text("tensor"), number(static_cast<int>(t.dtype)), tupleOf(number(t.device.type), number(t.device.index)), dims(t.sizes),
                     dims(t.strides), number(t.storageOffset), boolean(t.requiresGrad), boolean(t.isLeaf), number(t.layout));
    }
    case ResultMeta::Tuple: return tupleOf(text("tuple"), describeResults(result.items));
    case ResultMeta::List: return tupleOf(text("list"), describeResults(result.items));
    case ResultMeta::Dict: return tupleOf(text("dict"), result.object, describeResults(result.items));
    case ResultMeta::NamedTuple: return tupleOf(text("named"), result.object, describeResults(result.items));
    case ResultMeta::Constant: return tupleOf(text("constant"), result.object);
    case ResultMeta::Number: return tupleOf(text("number"), result.object);
  }
  return none();
}

// Turns operands into Python objects; `valueOf` gives the object for a node.
template <typename ValueOf>
ObjectRef describeArg(const Arg& arg, const ValueOf& valueOf) {
  auto items = [&](PyObject* container, auto&& set) {
    for (size_t i = 0; i < arg.items.size(); i++) set(container, static_cast<Py_ssize_t>(i), describeArg(arg.items[i], valueOf).release());
  };
  switch (arg.kind) {
    case Arg::NodeRef: return valueOf(arg.node);
    case Arg::Constant: return arg.object;
    case Arg::List: {
      ObjectRef list = checked(PyList_New(static_cast<Py_ssize_t>(arg.items.size())));
      items(list.get(), [](PyObject* c, Py_ssize_t i, PyObject* item) { PyList_SET_ITEM(c, i, item); });
      return list;
    }
    case Arg::Tuple: {
      ObjectRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(arg.items.size())));
      items(tuple.get(), [](PyObject* c, Py_ssize_t i, PyObject* item) { PyTuple_SET_ITEM(c, i, item); });
      if (!arg.object) return tuple;
      if (PyObject_HasAttrString(arg.object.get(), "_fields")) return checked(PyObject_CallObject(arg.object.get(), tuple.get()));
      // torch.Size and the like accept numbers only: with a node inside, the plain tuple says the same.
      for (const Arg& item : arg.items) {
        if (item.kind == Arg::NodeRef) return tuple;
      }
      return checked(PyObject_CallOneArg(arg.object.get(), tuple.get()));
    }
    case Arg::Dict: {
      ObjectRef dict = checked(PyDict_New());
      for (size_t i = 0; i < arg.items.size(); i++) {
        ObjectRef value = describeArg(arg.items[i], valueOf);
        checkedStatus(PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(arg.object.get(), static_cast<Py_ssize_t>(i)), value.get()));
      }
      return dict;
    }
    case Arg::Slice: {
      ObjectRef start = describeArg(arg.items[0], valueOf), stop = describeArg(arg.items[1], valueOf), step = describeArg(arg.items[2], valueOf);
      return checked(PySlice_New(start.get(), stop.get(), step.get()));
    }
  }
  throw EngineError("an operand of unknown kind");
}

template <typename ValueOf>
std::pair<ObjectRef, ObjectRef> describeOperands(const Node& node, const ValueOf& valueOf) {
  ObjectRef args = checked(PyTuple_New(static_cast<Py_ssize_t>(node.args.size())));
  for (size_t i = 0; i < node.args.size(); i++)
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), describeArg(node.args[i], valueOf).release());
  ObjectRef kwargs = checked(PyDict_New());
  for (const auto& [name, arg] : node.kwargs) {
    ObjectRef value = describeArg(arg, valueOf);
    checkedStatus(PyDict_SetItem(kwargs.get(), name.get(), value.get()));
  }
  return {std::move(args), std::move(kwargs)};
}

ObjectRef orNone(const ObjectRef& object) { return object ? object : none(); }

// Stacks by place, each built once and shared between nodes.
class StackDescriber {
 public:
  explicit StackDescriber(const Program& program) : program_(program), made_(program.places.size()) {}

  ObjectRef at(int32_t place) {
    if (place < 0) return checked(PyTuple_New(0));
    if (made_[place]) return made_[place];
    const ProgramPlace& level = program_.places[place];
    auto* code = reinterpret_cast<PyCodeObject*>(level.code.get());
    ObjectRef entry =
        tupleOf(code ? ObjectRef::share(code->co_filename) : text("?"), number(level.line), code ? ObjectRef::share(code->co_name) : text("?"),
                level.modulePath.empty() ? none() : text(level.modulePath), orNone(level.moduleType));
    ObjectRef outer = at(level.caller);
    ObjectRef inner = tupleOf(entry);
    made_[place] = checked(PySequence_Concat(outer.get(), inner.get()));
    return made_[place];
  }

 private:
  const Program& program_;
  std::vector<ObjectRef> made_;
};

}  // namespace

PyObject* nodeIndexType() {
  static PyObject* type = nullptr;
  if (type == nullptr) {
    static PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A reference to a node of a GraphProgram, by its position.")}, {0, nullptr}};
    static PyType_Spec spec = {"cdynamo._C.NodeIndex", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    ObjectRef bases = tupleOf(ObjectRef::share(&PyLong_Type));
    type = checked(PyType_FromSpecWithBases(&spec, bases.get())).release();
  }
  return type;
}

ObjectRef describeNodes(const Program& program, bool withOperands) {
  const std::deque<Node>& nodes = program.graph.nodes();
  PyObject* indexType = nodeIndexType();
  auto indexOf = [&](const Node* node) { return checked(PyObject_CallOneArg(indexType, number(node->id).get())); };
  StackDescriber stacks(program);
  ObjectRef opNames[std::size(kOpNames)];
  for (size_t i = 0; i < std::size(kOpNames); i++) opNames[i] = checked(PyUnicode_InternFromString(kOpNames[i]));

  ObjectRef list = checked(PyList_New(static_cast<Py_ssize_t>(nodes.size())));
  size_t placeholder = 0;
  for (const Node& node : nodes) {
    ObjectRef args = none(), kwargs = none();
    if (withOperands) std::tie(args, kwargs) = describeOperands(node, indexOf);
    bool isInput = node.op == NodeOp::Placeholder;
    ObjectRef source = isInput && placeholder < program.sourceNames.size() ? text(program.sourceNames[placeholder]) : none();
    placeholder += isInput;
    int32_t place = static_cast<size_t>(node.id) < program.placeOf.size() ? program.placeOf[node.id] : -1;
    ObjectRef described = tupleOf(opNames[static_cast<size_t>(node.op)], orNone(node.target), args, kwargs, text(node.nameHint),
                                  describeResult(node.result), stacks.at(place), source);
    PyList_SET_ITEM(list.get(), node.id, described.release());
  }
  return list;
}

ObjectRef operandsOf(const Program&, const Node& node, PyObject* table) {
  auto valueOf = [&](const Node* used) {
    if (used->id >= PyList_GET_SIZE(table)) {
      PyErr_Format(PyExc_IndexError, "node %d is not in the table", used->id);
      throw PythonError{};
    }
    return ObjectRef::share(PyList_GET_ITEM(table, used->id));
  };
  auto [args, kwargs] = describeOperands(node, valueOf);
  return tupleOf(args, kwargs);
}

}  // namespace cdynamo
