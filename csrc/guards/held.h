// An object that a guard compares with by identity, without keeping user data alive.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Holds modules, constants, and types, functions and code objects that live as long as a module does strongly. Everything else is held
// through a weak reference where its type allows one: tensors, nn.Modules, instances and classes made in a call must be able to die while
// a capture lives.
class Held {
 public:
  Held() = default;
  // Throws PythonError only where memory ends.
  static Held identity(PyObject* objectOrNull);
  static Held strong(PyObject* objectOrNull);

  // Borrowed: the object; null where there was none, or where it is dead.
  PyObject* get() const {
    if (!weak_) return ref_.get();
    PyObject* object = PyWeakref_GET_OBJECT(ref_.get());
    return object == Py_None ? nullptr : object;
  }
  bool empty() const { return !ref_; }
  bool isWeak() const { return weak_; }
  // For the fast path: what to compare with where it is strong, or the weak reference itself.
  PyObject* raw() const { return ref_.get(); }

 private:
  ObjectRef ref_;
  bool weak_ = false;
};

}  // namespace cdynamo
