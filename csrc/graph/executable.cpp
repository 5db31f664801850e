#include "graph/executable.h"

#include <structmember.h>

#include <new>
#include <optional>

#include "base/error.h"
#include "graph/describe.h"
#include "graph/executor.h"

namespace cdynamo {

namespace {

struct GraphProgramObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* weakReferences;
  PyObject* dict;
  std::unique_ptr<Program> program;  // null after the garbage collector cleared it
  std::unique_ptr<Plan> plan;        // made by the first run
};

PyTypeObject* graphProgramType = nullptr;

GraphProgramObject* self(PyObject* object) { return reinterpret_cast<GraphProgramObject*>(object); }

// Runs `work` at the extension's border: C++ failures become Python errors and null.
template <typename Work>
PyObject* guarded(const Work& work) {
  try {
    return work().release();
  } catch (const PythonError&) {
  } catch (const EngineError& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

const Program& programOf(PyObject* object) {
  CD_CHECK(self(object)->program, "the program was cleared");
  return *self(object)->program;
}

PyObject* vectorcallProgram(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
  if (names && PyTuple_GET_SIZE(names) != 0) {
    PyErr_SetString(PyExc_TypeError, "a graph takes positional inputs only");
    return nullptr;
  }
  return guarded([&] { return runGraphProgram(object, args, static_cast<size_t>(PyVectorcall_NARGS(flags))); });
}

ObjectRef newProgramObject(PyTypeObject* type, std::unique_ptr<Program> program) {
  ObjectRef object = checked(type->tp_alloc(type, 0));
  GraphProgramObject* made = self(object.get());
  new (&made->program) std::unique_ptr<Program>(std::move(program));
  new (&made->plan) std::unique_ptr<Plan>();
  made->vectorcall = vectorcallProgram;
  return object;
}

PyObject* newFromPython(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"nodes", "outputs", nullptr};
  PyObject *nodes, *outputs;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", const_cast<char**>(names), &nodes, &outputs)) return nullptr;
  return guarded([&] { return newProgramObject(type, programFrom(nodes, outputs)); });
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self(object)->dict);
  if (self(object)->plan) {
    if (int answer = self(object)->plan->traverse(visit, arg)) return answer;
  }
  return self(object)->program ? self(object)->program->traverse(visit, arg) : 0;
}

int clear(PyObject* object) {
  Py_CLEAR(self(object)->dict);
  // The plan borrows from the program. Both leave the object before they die, since their destructors run Python code.
  std::unique_ptr<Program> program = std::move(self(object)->program);
  std::unique_ptr<Plan> plan = std::move(self(object)->plan);
  return 0;
}

void deallocate(PyObject* object) {
  PyObject_GC_UnTrack(object);
  if (self(object)->weakReferences) PyObject_ClearWeakRefs(object);
  clear(object);
  self(object)->plan.~unique_ptr();
  self(object)->program.~unique_ptr();
  auto type = Ref<PyTypeObject>::steal(Py_TYPE(object));
  type->tp_free(object);
}

PyObject* describe(PyObject* object, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"operands", nullptr};
  int withOperands = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p", const_cast<char**>(names), &withOperands)) return nullptr;
  return guarded([&] { return describeNodes(programOf(object), withOperands != 0); });
}

PyObject* operands(PyObject* object, PyObject* args) {
  Py_ssize_t at;
  PyObject* table;
  if (!PyArg_ParseTuple(args, "nO!", &at, &PyList_Type, &table)) return nullptr;
  return guarded([&] {
    const std::deque<Node>& nodes = programOf(object).graph.nodes();
    if (at < 0 || static_cast<size_t>(at) >= nodes.size()) {
      PyErr_SetString(PyExc_IndexError, "no node at this position");
      throw PythonError{};
    }
    return operandsOf(programOf(object), nodes[static_cast<size_t>(at)], table);
  });
}

PyObject* outputsOf(PyObject* object, void*) {
  return guarded([&] {
    const std::vector<Node*>& outputs = programOf(object).graph.outputs;
    ObjectRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
    for (size_t i = 0; i < outputs.size(); i++)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLong(outputs[i]->id)).release());
    return tuple;
  });
}

PyObject* inputsOf(PyObject* object, void*) {
  return guarded([&] {
    const std::vector<std::string>& names = programOf(object).sourceNames;
    ObjectRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    for (size_t i = 0; i < names.size(); i++)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       checked(PyUnicode_FromStringAndSize(names[i].data(), static_cast<Py_ssize_t>(names[i].size()))).release());
    return tuple;
  });
}

PyObject* callsOf(PyObject* object, void*) {
  return guarded([&] { return checked(PyLong_FromSize_t(programOf(object).graph.callCount())); });
}

Py_ssize_t length(PyObject* object) { return self(object)->program ? static_cast<Py_ssize_t>(self(object)->program->graph.nodes().size()) : 0; }

PyObject* reduce(PyObject* object, PyObject*) {
  return guarded([&] {
    ObjectRef nodes = describeNodes(programOf(object), true);
    ObjectRef outputs = checked(outputsOf(object, nullptr));
    return checked(Py_BuildValue("O(OO)", Py_TYPE(object), nodes.get(), outputs.get()));
  });
}

PyMethodDef methods[] = {
    {"describe", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(describe)), METH_VARARGS | METH_KEYWORDS,
     "describe(operands=True): every node as (op, target, args, kwargs, name, result, stack, source)."},
    {"operands", operands, METH_VARARGS, "operands(i, table): (args, kwargs) of node i, with nodes replaced by the items of table."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"outputs", outputsOf, nullptr, "Positions of the nodes that are returned.", nullptr},
                            {"inputs", inputsOf, nullptr, "Source names of the inputs, in order.", nullptr},
                            {"calls", callsOf, nullptr, "How many nodes are calls.", nullptr},
                            {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(GraphProgramObject, vectorcall), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(GraphProgramObject, weakReferences), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(GraphProgramObject, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

template <typename Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void addGraphTypes(PyObject* module) {
  static PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A captured graph that can be run, described and turned into torch.fx.")},
                                {Py_tp_new, slot(newFromPython)},
                                {Py_tp_dealloc, slot(deallocate)},
                                {Py_tp_traverse, slot(traverse)},
                                {Py_tp_clear, slot(clear)},
                                {Py_tp_call, slot(PyVectorcall_Call)},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, properties},
                                {Py_tp_members, members},
                                {Py_sq_length, slot(length)},
                                {0, nullptr}};
  static PyType_Spec spec = {"cdynamo._C.GraphProgram", sizeof(GraphProgramObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  if (graphProgramType == nullptr) graphProgramType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checkedStatus(PyModule_AddObjectRef(module, "GraphProgram", reinterpret_cast<PyObject*>(graphProgramType)));
  checkedStatus(PyModule_AddObjectRef(module, "NodeIndex", nodeIndexType()));
}

ObjectRef makeGraphProgram(Graph&& captured, const SourceTable& sources) {
  return newProgramObject(graphProgramType, std::make_unique<Program>(std::move(captured), sources));
}

ObjectRef runGraphProgram(PyObject* object, PyObject* const* inputs, size_t inputCount) {
  const Program& program = programOf(object);
  if (!self(object)->plan) self(object)->plan = std::make_unique<Plan>(program);
  // A run may drop the last outside reference to this object.
  ObjectRef keepAlive = ObjectRef::share(object);
  return self(object)->plan->run(inputs, inputCount);
}

}  // namespace cdynamo
