#include "emit/helpers.h"

#include "base/error.h"
#include "cpython/dict_access.h"
#include "cpython/iterators.h"
#include "cpython/set_layout.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

PyObject* advance(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "advance(iterator, n)");
    return nullptr;
  }
  long long n = PyLong_AsLongLong(args[1]);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  while (n-- > 0) {
    PyObject* item = nullptr;
    PySendResult how = PyIter_Send(args[0], Py_None, &item);
    ObjectRef::steal(item);
    if (how == PYGEN_ERROR) return nullptr;
    if (how == PYGEN_RETURN) break;
  }
  return ObjectRef::share(args[0]).release();
}

PyObject* advanceNumber(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || Py_TYPE(args[0]) != &PyEnum_Type) {
    PyErr_SetString(PyExc_TypeError, "advance_number(enumerate, n)");
    return nullptr;
  }
  Py_ssize_t n = PyLong_AsSsize_t(args[1]);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  advanceEnumerate(args[0], n);
  return ObjectRef::share(args[0]).release();
}

PyObject* sequenceIterator(PyObject*, PyObject* sequence) { return PySeqIter_New(sequence); }

PyObject* storeHashed(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || !PyDict_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "store_hashed(dict, key, value, hash)");
    return nullptr;
  }
  Py_hash_t hash = PyLong_AsSsize_t(args[3]);
  if (hash == -1 && PyErr_Occurred()) return nullptr;
  if (dictStore(args[0], args[1], args[2], hash) < 0) return nullptr;
  return ObjectRef::share(Py_None).release();
}

PyObject* assignItems(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyList_CheckExact(args[1])) {
    PyErr_SetString(PyExc_TypeError, "assign_items(sequence, list)");
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); i++)
    if (PySequence_SetItem(args[0], i, PyList_GET_ITEM(args[1], i)) < 0) return nullptr;
  return ObjectRef::share(Py_None).release();
}

PyObject* copySet(PyObject*, PyObject* set) { return cloneSet(set); }

PyObject* withNumbers(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 1 || !PyTuple_CheckExact(args[0])) {
    PyErr_SetString(PyExc_TypeError, "with_numbers(inputs, *numbers)");
    return nullptr;
  }
  Py_ssize_t given = PyTuple_GET_SIZE(args[0]);
  ObjectRef all = ObjectRef::steal(PyTuple_New(given + count - 1));
  if (!all) return nullptr;
  for (Py_ssize_t i = 0; i < given; i++) PyTuple_SET_ITEM(all.get(), i, ObjectRef::share(PyTuple_GET_ITEM(args[0], i)).release());
  for (Py_ssize_t i = 1; i < count; i++) {
    PyObject* tensor = makeNumberTensor(args[i]);
    if (tensor == nullptr) {
      PyErr_SetString(PyExc_OverflowError, "a random number that no tensor can hold");
      return nullptr;
    }
    PyTuple_SET_ITEM(all.get(), given + i - 1, tensor);
  }
  return all.release();
}

PyObject* setGradMode(PyObject*, PyObject* on) {
  setGradEnabled(on == Py_True);
  Py_RETURN_NONE;
}

PyMethodDef kSetGradMode = {"set_grad_mode", setGradMode, METH_O, nullptr};
PyMethodDef kWithNumbers = {"with_numbers", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(withNumbers)), METH_FASTCALL, nullptr};
PyMethodDef kAdvance = {"advance", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(advance)), METH_FASTCALL, nullptr};
PyMethodDef kAdvanceNumber = {"advance_number", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(advanceNumber)), METH_FASTCALL, nullptr};
PyMethodDef kSequenceIterator = {"sequence_iterator", sequenceIterator, METH_O, nullptr};
PyMethodDef kStoreHashed = {"store_hashed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(storeHashed)), METH_FASTCALL, nullptr};
PyMethodDef kAssignItems = {"assign_items", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(assignItems)), METH_FASTCALL, nullptr};
PyMethodDef kCopySet = {"copy_set", copySet, METH_O, nullptr};

PyObject* functionOf(PyMethodDef& definition) { return checked(PyCFunction_New(&definition, nullptr)).release(); }

}  // namespace

PyObject* advanceFunction() {
  static PyObject* function = functionOf(kAdvance);
  return function;
}

PyObject* advanceNumberFunction() {
  static PyObject* function = functionOf(kAdvanceNumber);
  return function;
}

PyObject* withNumbersFunction() {
  static PyObject* function = functionOf(kWithNumbers);
  return function;
}

PyObject* sequenceIteratorFunction() {
  static PyObject* function = functionOf(kSequenceIterator);
  return function;
}

PyObject* storeHashedFunction() {
  static PyObject* function = functionOf(kStoreHashed);
  return function;
}

PyObject* assignItemsFunction() {
  static PyObject* function = functionOf(kAssignItems);
  return function;
}

PyObject* setGradModeFunction() {
  static PyObject* function = functionOf(kSetGradMode);
  return function;
}

PyObject* copySetFunction() {
  static PyObject* function = functionOf(kCopySet);
  return function;
}

}  // namespace cdynamo
