#include "guards/constants.h"

#include <cstdint>
#include <cstring>

#include "cpython/dict_access.h"
#include "guards/mortals.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

bool sameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool equalByRichCompare(PyObject* a, PyObject* b) {
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

bool equalItems(PyObject* a, PyObject* b) {
  Py_ssize_t size = PyTuple_GET_SIZE(a);
  if (size != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < size; i++)
    if (!equalsConstant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

// Membership says equal, not of the same exact type (1, 1.0 and True), so the items are matched one by one.
bool equalFrozensets(PyObject* a, PyObject* b) {
  if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
  Py_ssize_t position = 0;
  PyObject* item = nullptr;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(a, &position, &item, &hash)) {
    Py_ssize_t otherPosition = 0;
    PyObject* other = nullptr;
    Py_hash_t otherHash = 0;
    bool found = false;
    while (!found && _PySet_NextEntry(b, &otherPosition, &other, &otherHash)) found = hash == otherHash && equalsConstant(item, other);
    if (!found) return false;
  }
  return true;
}

// torch.device, torch.dtype, torch.Size and the like: C types whose == is C code.
bool isTorchConstant(PyTypeObject* type) { return std::strcmp(type->tp_name, "torch.device") == 0 || std::strcmp(type->tp_name, "torch.Size") == 0; }

// Of two objects of one type that are plain memory.
bool sameBytes(PyObject* a, PyObject* b) {
  Py_buffer x, y;
  if (PyObject_GetBuffer(a, &x, PyBUF_SIMPLE) < 0) return PyErr_Clear(), false;
  bool same = PyObject_GetBuffer(b, &y, PyBUF_SIMPLE) == 0;
  if (same) {
    same = x.len == y.len && std::memcmp(x.buf, y.buf, static_cast<size_t>(x.len)) == 0;
    PyBuffer_Release(&y);
  } else {
    PyErr_Clear();
  }
  PyBuffer_Release(&x);
  return same;
}

bool isEllipsisLike(PyObject* constant) { return constant == Py_None || constant == Py_Ellipsis || constant == Py_NotImplemented; }

}  // namespace

bool equalsConstant(PyObject* value, PyObject* constant) {
  if (value == constant) return true;
  PyTypeObject* type = Py_TYPE(constant);
  if (Py_TYPE(value) != type) return isName(constant) && isNameOf(constant, value);
  if (PyBool_Check(constant) || isEllipsisLike(constant)) return false;
  if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type) return equalByRichCompare(value, constant);
  if (type == &PyFloat_Type) return sameBits(PyFloat_AS_DOUBLE(value), PyFloat_AS_DOUBLE(constant));
  if (type == &PyComplex_Type) {
    Py_complex a = reinterpret_cast<PyComplexObject*>(value)->cval, b = reinterpret_cast<PyComplexObject*>(constant)->cval;
    return sameBits(a.real, b.real) && sameBits(a.imag, b.imag);
  }
  if (type == &PyTuple_Type) return equalItems(value, constant);
  if (type == &PyFrozenSet_Type) return equalFrozensets(value, constant);
  if (type == &PySlice_Type) {
    auto *a = reinterpret_cast<PySliceObject*>(value), *b = reinterpret_cast<PySliceObject*>(constant);
    return equalsConstant(a->start, b->start) && equalsConstant(a->stop, b->stop) && equalsConstant(a->step, b->step);
  }
  if (type == &PyRange_Type) {
    // Equal ranges may differ in stop (range(0, 3, 2) and range(0, 4, 2)): the attributes can be seen, so they are compared.
    for (const char* part : {"start", "stop", "step"}) {
      ObjectRef a = ObjectRef::steal(PyObject_GetAttrString(value, part)), b = ObjectRef::steal(PyObject_GetAttrString(constant, part));
      if (!a || !b) {
        PyErr_Clear();
        return false;
      }
      if (!equalsConstant(a.get(), b.get())) return false;
    }
    return true;
  }
  if (isNumpyScalarType(type)) return sameBytes(value, constant);
  return isTorchConstant(type) && equalByRichCompare(value, constant);
}

bool intIsWithin(PyObject* value, int64_t lower, int64_t upper) {
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return overflow > 0 ? upper == INT64_MAX : lower == INT64_MIN;
  return lower <= number && number <= upper;
}

int constantTruth(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  bool known = type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || value == Py_None ||
               type == &PyComplex_Type || type == &PyBytes_Type || type == &PyTuple_Type;
  if (!known) return -1;
  int truth = PyObject_IsTrue(value);
  if (truth < 0) PyErr_Clear();
  return truth;
}

bool dictKeysAre(PyObject* dict, PyObject* keysTuple) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keysTuple)) return false;
  Py_ssize_t count = PyTuple_GET_SIZE(keysTuple);
  if (PyODict_Check(dict)) {
    ObjectRef iterator = ObjectRef::steal(PyODict_Type.tp_iter(dict));
    for (Py_ssize_t i = 0; iterator && i < count; i++) {
      ObjectRef key = ObjectRef::steal(Py_TYPE(iterator.get())->tp_iternext(iterator.get()));
      if (!key || !equalsConstant(key.get(), PyTuple_GET_ITEM(keysTuple, i))) {
        PyErr_Clear();
        return false;
      }
    }
    if (!iterator) PyErr_Clear();
    return static_cast<bool>(iterator);
  }
  Py_ssize_t position = 0, i = 0;
  PyObject* key = nullptr;
  while (PyDict_Next(dict, &position, &key, nullptr))
    if (i >= count || !equalsConstant(key, PyTuple_GET_ITEM(keysTuple, i++))) return false;
  return i == count;
}

bool setItemsAre(PyObject* set, PyObject* itemsDict) {
  if (!PyAnySet_Check(set) || PySet_GET_SIZE(set) != PyDict_GET_SIZE(itemsDict)) return false;
  Py_ssize_t position = 0;
  PyObject* item = nullptr;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(set, &position, &item, &hash)) {
    ObjectRef kept = ObjectRef::share(item);
    PyObject* expected = _PyDict_GetItem_KnownHash(itemsDict, item, hash);
    if (expected == nullptr && PyErr_Occurred()) PyErr_Clear();
    if (expected == nullptr || !equalsConstant(item, expected)) return false;
  }
  return true;
}

bool setOrderIs(PyObject* set, PyObject* itemsTuple) {
  if (!PyAnySet_Check(set) || PySet_GET_SIZE(set) != PyTuple_GET_SIZE(itemsTuple)) return false;
  Py_ssize_t position = 0, i = 0;
  PyObject* item = nullptr;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(set, &position, &item, &hash)) {
    ObjectRef kept = ObjectRef::share(item);
    if (i >= PyTuple_GET_SIZE(itemsTuple) || !equalsConstant(item, PyTuple_GET_ITEM(itemsTuple, i++))) return false;
  }
  return true;
}

bool compareMayRunPython(PyObject* constant) {
  if (PyUnicode_CheckExact(constant) || PyLong_CheckExact(constant)) return false;
  if (!PyFrozenSet_CheckExact(constant)) return true;
  Py_ssize_t position = 0;
  PyObject* item = nullptr;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(constant, &position, &item, &hash))
    if (compareMayRunPython(item)) return true;
  return false;
}

}  // namespace cdynamo
