#include "emit/generator_helpers.h"

#include <vector>

#include "base/error.h"
#include "cpython/generators.h"

namespace cdynamo {

namespace {

PyObject* none() { return ObjectRef::share(Py_None).release(); }

bool isGenerator(PyObject* object) {
  if (PyGen_CheckExact(object)) return true;
  PyErr_SetString(PyExc_TypeError, "not a generator");
  return false;
}

PyObject* runningGenerator(PyObject*, PyObject* function) {
  if (!PyFunction_Check(function)) return PyErr_Format(PyExc_TypeError, "running_generator(function)");
  ObjectRef made = ObjectRef::steal(blankGenerator(function));
  if (!made || !isGenerator(made.get())) return nullptr;
  setGeneratorRunning(made.get());
  return made.release();
}

PyObject* leaveGenerator(PyObject*, PyObject* generator) {
  if (!isGenerator(generator)) return nullptr;
  setGeneratorRunning(generator);
  return none();
}

PyObject* endGenerator(PyObject*, PyObject* generator) { return isGenerator(generator) && finishGenerator(generator) == 0 ? none() : nullptr; }

PyObject* placeGenerator(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3 || !PyTuple_CheckExact(args[2]) || !isGenerator(args[0]))
    return PyErr_Format(PyExc_TypeError, "place_generator(generator, unit, held)");
  int unit = static_cast<int>(PyLong_AsLong(args[1]));
  if (unit == -1 && PyErr_Occurred()) return nullptr;
  std::vector<PyObject*> held;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[2]); i++) {
    PyObject* v = PyTuple_GET_ITEM(args[2], i);
    held.push_back(v == unboundSlot() ? nullptr : v);
  }
  int slots = generatorSlots(args[0]), depth = static_cast<int>(held.size()) - 1 - slots;
  if (depth < 0) return PyErr_Format(PyExc_ValueError, "too few values for a generator");
  setGenerator(args[0], unit, held.data(), held.data() + slots, depth, held.back());
  return none();
}

PyMethodDef kRunning = {"running_generator", runningGenerator, METH_O, nullptr};
PyMethodDef kLeave = {"leave_generator", leaveGenerator, METH_O, nullptr};
PyMethodDef kEnd = {"end_generator", endGenerator, METH_O, nullptr};
PyMethodDef kPlace = {"place_generator", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(placeGenerator)), METH_FASTCALL, nullptr};

PyObject* functionOf(PyMethodDef& definition) { return checked(PyCFunction_New(&definition, nullptr)).release(); }

}  // namespace

PyObject* runningGeneratorFunction() {
  static PyObject* function = functionOf(kRunning);
  return function;
}
PyObject* leaveGeneratorFunction() {
  static PyObject* function = functionOf(kLeave);
  return function;
}
PyObject* endGeneratorFunction() {
  static PyObject* function = functionOf(kEnd);
  return function;
}
PyObject* placeGeneratorFunction() {
  static PyObject* function = functionOf(kPlace);
  return function;
}

PyObject* unboundSlot() {
  static PyObject* marker = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type))).release();
  return marker;
}

}  // namespace cdynamo
