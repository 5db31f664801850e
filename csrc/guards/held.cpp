#include "guards/held.h"

#include "base/error.h"
#include "guards/mortals.h"

namespace cdynamo {

namespace {

bool heldStrongly(PyObject* object) {
  if (PyType_Check(object) || PyFunction_Check(object)) return !Mortals::canDie(object);
  if (PyModule_Check(object) || PyCFunction_Check(object)) return true;
  if (!PyCode_Check(object)) return false;
  // Not that of a text that exec() was given.
  PyObject* file = reinterpret_cast<PyCodeObject*>(object)->co_filename;
  return PyUnicode_GET_LENGTH(file) == 0 || PyUnicode_READ_CHAR(file, 0) != '<';
}

}  // namespace

Held Held::strong(PyObject* objectOrNull) {
  Held held;
  held.ref_ = ObjectRef::share(objectOrNull);
  held.raw_ = objectOrNull;
  return held;
}

Held Held::watched(PyObject* object) {
  Held held;
  held.raw_ = object;
  return held;
}

Held Held::identity(PyObject* objectOrNull) {
  if (objectOrNull == nullptr || heldStrongly(objectOrNull) || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(objectOrNull))) return strong(objectOrNull);
  Held held;
  held.ref_ = ObjectRef::steal(PyWeakref_NewRef(objectOrNull, nullptr));
  if (!held.ref_) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
    PyErr_Clear();
    return strong(objectOrNull);
  }
  held.raw_ = held.ref_.get();
  held.weak_ = true;
  return held;
}

}  // namespace cdynamo
