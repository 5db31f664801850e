#include "base/exceptions.h"

namespace cdynamo {

ObjectRef takeException() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  ObjectRef ownedType = ObjectRef::steal(type), owned = ObjectRef::steal(value), ownedTraceback = ObjectRef::steal(traceback);
  if (owned && ownedTraceback) PyException_SetTraceback(owned.get(), ownedTraceback.get());
  return owned;
}

void restoreException(PyObject* exception) {
  if (!exception) return;
  PyErr_Restore(ObjectRef::share(Py_TYPE(exception)).release(), ObjectRef::share(exception).release(), PyException_GetTraceback(exception));
}

PendingTraceback::PendingTraceback() : exception_(takeException()), traceback_(ObjectRef::steal(PyException_GetTraceback(exception_.get()))) {}

Ref<PyCodeObject> PendingTraceback::codeOf(const PyTracebackObject* entry) { return Ref<PyCodeObject>::steal(PyFrame_GetCode(entry->tb_frame)); }

void PendingTraceback::dropFirst() {
  traceback_ = ObjectRef::share(first()->tb_next);
  PyException_SetTraceback(exception_.get(), traceback_ ? traceback_.get() : Py_None);
}

}  // namespace cdynamo
