#include "cpython/weak_references.h"

#include "cpython/compat.h"

static PyCFunction ownCallback = NULL;

void setOwnWeakCallback(PyCFunction callback) { ownCallback = callback; }

static int countsFor(PyObject* object, int onlyCallbacks) {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_SUPPORTS_WEAKREFS(type)) return 0;
  PyWeakReference* reference = *(PyWeakReference**)((char*)object + type->tp_weaklistoffset);
  for (; reference != NULL; reference = reference->wr_next) {
    PyObject* callback = reference->wr_callback;
    if (callback == NULL && onlyCallbacks) continue;
    if (callback != NULL && ownCallback != NULL && PyCFunction_Check(callback) && PyCFunction_GET_FUNCTION(callback) == ownCallback) continue;
    return 1;
  }
  return 0;
}

int hasWeakReferences(PyObject* object) { return countsFor(object, 0); }
int hasWeakCallbacks(PyObject* object) { return countsFor(object, 1); }
