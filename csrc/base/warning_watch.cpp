#include "base/warning_watch.h"

#include "base/error.h"
#include "base/exceptions.h"

namespace cdynamo {

namespace {

PyObject* registryName() {
  static PyObject* name = PyUnicode_InternFromString("__warningregistry__");
  return name;
}

}  // namespace

WarningWatch::WarningWatch(Action action) {
  static PyObject* module = checked(PyImport_ImportModule("warnings")).release();
  static PyObject* filters = PyUnicode_InternFromString("filters");
  PyObject* list = PyDict_GetItemWithError(PyModule_GetDict(module), filters);
  if (!list || !PyList_CheckExact(list)) return;
  auto filter = [](const char* what) { return checked(Py_BuildValue("(sOOOi)", what, Py_None, PyExc_Warning, Py_None, 0)).release(); };
  static PyObject *raises = filter("error"), *ignores = filter("ignore");
  item_ = action == Raise ? raises : ignores;
  checkedStatus(PyList_Insert(list, 0, item_));
  filters_ = ObjectRef::share(list);
  PyObject* globals = PyEval_GetGlobals();
  if (globals && PyDict_Contains(globals, registryName()) == 0) registry_ = ObjectRef::share(globals);
}

WarningWatch::~WarningWatch() {
  if (!filters_) return;
  ObjectRef pending = takeException();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(filters_.get()); i++)
    if (PyList_GET_ITEM(filters_.get(), i) == item_) {
      if (PyList_SetSlice(filters_.get(), i, i + 1, nullptr) < 0) PyErr_Clear();
      break;
    }
  if (registry_ && PyDict_Contains(registry_.get(), registryName()) == 1 && PyDict_DelItem(registry_.get(), registryName()) < 0) PyErr_Clear();
  restoreException(pending.get());
}

bool WarningWatch::takeWarning() {
  if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_Warning)) return false;
  PyErr_Clear();
  return true;
}

}  // namespace cdynamo
