#include "emit/helpers.h"

#include "base/error.h"
#include "cpython/set_layout.h"

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
    ObjectRef item = ObjectRef::steal(PyIter_Next(args[0]));
    if (item) continue;
    if (PyErr_Occurred()) return nullptr;
    break;
  }
  return ObjectRef::share(args[0]).release();
}

PyObject* sequenceIterator(PyObject*, PyObject* sequence) { return PySeqIter_New(sequence); }

PyObject* copySet(PyObject*, PyObject* set) { return cloneSet(set); }

PyMethodDef kAdvance = {"advance", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(advance)), METH_FASTCALL, nullptr};
PyMethodDef kSequenceIterator = {"sequence_iterator", sequenceIterator, METH_O, nullptr};
PyMethodDef kCopySet = {"copy_set", copySet, METH_O, nullptr};

PyObject* functionOf(PyMethodDef& definition) { return checked(PyCFunction_New(&definition, nullptr)).release(); }

}  // namespace

PyObject* advanceFunction() {
  static PyObject* function = functionOf(kAdvance);
  return function;
}

PyObject* sequenceIteratorFunction() {
  static PyObject* function = functionOf(kSequenceIterator);
  return function;
}

PyObject* copySetFunction() {
  static PyObject* function = functionOf(kCopySet);
  return function;
}

}  // namespace cdynamo
