// The pending Python exception as one object.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Takes the pending exception, normalised and with its traceback set; null where none is pending.
ObjectRef takeException();
// Makes the exception pending again, with the traceback that it has; null: nothing.
void restoreException(PyObject* exception);

// The pending exception, taken so that its traceback can be read and changed; pending again at the end of the scope.
class PendingTraceback {
 public:
  PendingTraceback();
  ~PendingTraceback() { restoreException(exception_.get()); }
  PendingTraceback(const PendingTraceback&) = delete;
  PendingTraceback& operator=(const PendingTraceback&) = delete;

  PyTracebackObject* first() const { return reinterpret_cast<PyTracebackObject*>(traceback_.get()); }  // null: no entries
  static Ref<PyCodeObject> codeOf(const PyTracebackObject* entry);
  void dropFirst();

 private:
  ObjectRef exception_, traceback_;
};

}  // namespace cdynamo
