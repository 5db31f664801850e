#include "guards/test_api.h"

#include <chrono>
#include <cstring>
#include <new>

#include "base/error.h"
#include "guards/program.h"

namespace cdynamo {

namespace {

struct TestGuards {
  PyObject_HEAD std::unique_ptr<GuardProgram> program;
};

std::string textItem(PyObject* tuple, Py_ssize_t i) {
  const char* text = PyUnicode_AsUTF8(PyTuple_GetItem(tuple, i));
  if (text == nullptr) throw PythonError{};
  return text;
}

PyObject* item(PyObject* tuple, Py_ssize_t i) {
  PyObject* found = PyTuple_GetItem(tuple, i);
  if (found == nullptr) throw PythonError{};
  return found;
}

int64_t intItem(PyObject* tuple, Py_ssize_t i) {
  long long value = PyLong_AsLongLong(item(tuple, i));
  if (value == -1 && PyErr_Occurred()) throw PythonError{};
  return value;
}

[[noreturn]] void unknown(const std::string& what) {
  PyErr_Format(PyExc_ValueError, "unknown: %s", what.c_str());
  throw PythonError{};
}

const Source* readSource(SourceTable& table, PyObject* tuple) {
  std::string kind = textItem(tuple, 0);
  if (kind == "function") return table.function();
  if (kind == "local") return table.local(static_cast<int32_t>(intItem(tuple, 1)));
  if (kind == "cell") return table.closureCell(static_cast<int32_t>(intItem(tuple, 1)));
  if (kind == "pinned") return table.pinned(item(tuple, 1));
  const Source* base = readSource(table, item(tuple, 1));
  if (kind == "contents") return table.cellContents(base);
  if (kind == "dict") return table.instanceDict(base);
  if (kind == "item") return table.dictItem(base, item(tuple, 2));
  if (kind == "keyed") return table.keyedItem(base, readSource(table, item(tuple, 2)));
  if (kind == "seq") return table.sequenceItem(base, static_cast<int32_t>(intItem(tuple, 2)));
  if (kind == "attr") return table.attr(base, item(tuple, 2));
  if (kind == "type") return table.type(base);
  if (kind == "deque") return table.dequeItem(base, static_cast<int32_t>(intItem(tuple, 2)));
  if (kind == "weak") return table.weakReferent(base);
  if (kind == "number_tensor") return table.numberTensor(base);
  constexpr const char* arithmetic[] = {"add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "le", "eq", "ne", "gt", "ge"};
  for (size_t i = 0; i < std::size(arithmetic); i++)
    if (kind == arithmetic[i]) return table.arithmetic(static_cast<Arithmetic>(i), base, readSource(table, item(tuple, 2)));
  unknown(kind);
}

void readFact(SourceTable& table, FactList& facts, PyObject* tuple) {
  std::string kind = textItem(tuple, 0);
  if (kind == "abc") return facts.abcToken();
  if (kind == "lookup")
    return facts.typeLookup(reinterpret_cast<PyTypeObject*>(item(tuple, 1)), item(tuple, 2), PyTuple_GET_SIZE(tuple) > 3 ? item(tuple, 3) : nullptr);
  const Source* source = readSource(table, item(tuple, 1));
  PyObject* operand = item(tuple, 2);
  if (kind == "type") return facts.typeIs(source, reinterpret_cast<PyTypeObject*>(operand));
  if (kind == "is") return facts.identityIs(source, operand);
  if (kind == "is_not") return facts.identityIsNot(source, operand);
  if (kind == "equals") return facts.equalsConstant(source, operand);
  if (kind == "range") return facts.intRange(source, intItem(tuple, 2), intItem(tuple, 3));
  if (kind == "len") return facts.length(source, static_cast<Py_ssize_t>(intItem(tuple, 2)));
  if (kind == "lacks") return facts.dictLacks(source, operand);
  if (kind == "keys") return facts.dictKeys(source, operand);
  if (kind == "set") return facts.setEquals(source, operand);
  if (kind == "function") return facts.functionIs(source, operand);
  if (kind == "same") return facts.sameObject(source, readSource(table, operand));
  if (kind == "lacks_key") return facts.lacksKey(source, readSource(table, operand));
  if (kind == "differs") return facts.distinct(source, operand == Py_True);
  if (kind == "distinct") return facts.distinctObjects(source, readSource(table, operand));
  if (kind == "lacks_attr") return facts.lacksAttr(source, operand);
  if (kind == "truth") return facts.truth(source, operand == Py_True);
  if (kind == "tensor") {
    TensorMeta meta;
    if (!readTensorMeta(operand, meta)) unknown("tensor");
    for (Py_ssize_t i = 3; i < PyTuple_GET_SIZE(tuple); i++) meta.sizes[static_cast<uint32_t>(intItem(tuple, i))] = -1;
    return facts.tensor(source, Py_TYPE(operand), meta);
  }
  unknown(kind);
}

template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"facts", "wanted", "local_names", "globals", nullptr};
  PyObject *facts, *wanted = nullptr, *localNames = nullptr, *globals = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O!O!O", const_cast<char**>(names), &PyList_Type, &facts, &PyTuple_Type, &wanted, &PyTuple_Type,
                                   &localNames, &globals))
    return nullptr;
  return guarded([&]() -> PyObject* {
    auto program = buildTestProgram(facts, wanted, localNames, globals);
    ObjectRef self = checked(type->tp_alloc(type, 0));
    new (&reinterpret_cast<TestGuards*>(self.get())->program) std::unique_ptr<GuardProgram>(std::move(program));
    return self.release();
  });
}

void destroy(PyObject* self) {
  reinterpret_cast<TestGuards*>(self)->program.~unique_ptr();
  auto type = ObjectRef::steal(Py_TYPE(self));
  Py_TYPE(self)->tp_free(self);
}

GuardProgram& programOf(PyObject* self) { return *reinterpret_cast<TestGuards*>(self)->program; }

struct Frame {
  FrameInputs inputs{};
  std::vector<PyObject*> locals;
  long long repeat = 1;

  bool read(PyObject* args) {
    PyObject *tuple, *function = Py_None;
    if (!PyArg_ParseTuple(args, "O!|OL", &PyTuple_Type, &tuple, &function, &repeat)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
      locals.push_back(PyTuple_GET_ITEM(tuple, i) == Py_Ellipsis ? nullptr : PyTuple_GET_ITEM(tuple, i));
    inputs = {locals.data(), PyTuple_GET_SIZE(tuple), function == Py_None ? nullptr : function};
    return true;
  }
};

PyObject* check(PyObject* self, PyObject* args) {
  Frame frame;
  if (!frame.read(args)) return nullptr;
  GuardProgram& program = programOf(self);
  std::vector<PyObject*> wanted(program.wantedCount());
  bool held = program.check(frame.inputs, wanted.data());
  std::vector<ObjectRef> kept;
  for (PyObject* value : wanted) kept.push_back(ObjectRef::share(held ? value : nullptr));
  program.releaseTemporaries();
  if (PyErr_Occurred()) return nullptr;
  if (!held) return ObjectRef::share(Py_None).release();
  ObjectRef tuple = ObjectRef::steal(PyTuple_New(static_cast<Py_ssize_t>(kept.size())));
  for (size_t i = 0; tuple && i < kept.size(); i++) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), kept[i].release());
  return tuple.release();
}

PyObject* explain(PyObject* self, PyObject* args) {
  Frame frame;
  if (!frame.read(args)) return nullptr;
  return guarded([&] { return PyUnicode_FromString(programOf(self).explainMiss(frame.inputs).c_str()); });
}

PyObject* describe(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ObjectRef list = checked(PyList_New(0));
    for (const std::string& line : programOf(self).describe())
      checkedStatus(PyList_Append(list.get(), checked(PyUnicode_FromString(line.c_str())).get()));
    return list.release();
  });
}

PyObject* timeChecks(PyObject* self, PyObject* args) {
  Frame frame;
  if (!frame.read(args)) return nullptr;
  GuardProgram& program = programOf(self);
  std::vector<PyObject*> wanted(program.wantedCount());
  auto begin = std::chrono::steady_clock::now();
  bool held = true;
  for (long long i = 0; i < frame.repeat; i++) held = program.check(frame.inputs, wanted.data()) && held;
  std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  program.releaseTemporaries();
  if (!held) return ObjectRef::share(Py_None).release();
  return PyFloat_FromDouble(elapsed.count() / static_cast<double>(frame.repeat));
}

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(programOf(self).size()); }

PyMethodDef methods[] = {
    {"check", check, METH_VARARGS, nullptr},
    {"explain", explain, METH_VARARGS, nullptr},
    {"describe", describe, METH_NOARGS, nullptr},
    {"time", timeChecks, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, static_cast<void*>(methods)},
    {Py_sq_length, reinterpret_cast<void*>(length)},
    {0, nullptr},
};

PyType_Spec spec = {"cdynamo._C._TestGuards", sizeof(TestGuards), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

std::unique_ptr<GuardProgram> buildTestProgram(PyObject* facts, PyObject* wanted, PyObject* localNames, PyObject* globals) {
  CD_CHECK(facts && PyList_Check(facts), "facts must be a list");
  std::vector<std::string> text;
  for (Py_ssize_t i = 0; localNames && i < PyTuple_GET_SIZE(localNames); i++) text.push_back(textItem(localNames, i));
  SourceTable table(text, globals);
  FactList list;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(facts); i++) readFact(table, list, PyList_GET_ITEM(facts, i));
  std::vector<const Source*> sources;
  for (Py_ssize_t i = 0; wanted && i < PyTuple_GET_SIZE(wanted); i++) sources.push_back(readSource(table, item(wanted, i)));
  return GuardProgram::build(list, table, sources, captureGlobalState());
}

void addGuardTestType(PyObject* module) {
  ObjectRef type = checked(PyType_FromSpec(&spec));
  checkedStatus(PyModule_AddObjectRef(module, "_TestGuards", type.get()));
}

}  // namespace cdynamo
