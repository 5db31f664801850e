// Ownership of Python objects, in the type. Raw Py_INCREF/Py_DECREF appear in this room (and csrc/cpython/) alone.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <functional>
#include <utility>

namespace cdynamo {

// A reference that somebody else keeps alive. Never null-checked by itself.
template <typename T = PyObject>
using Borrowed = T*;

// An owned reference (or null). Moves are free, copies take a new reference.
template <typename T = PyObject>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(const Ref& other) : ptr_(other.ptr_) { Py_XINCREF(asObject()); }
  Ref(Ref&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  ~Ref() { Py_XDECREF(asObject()); }

  Ref& operator=(const Ref& other) {
    Ref copy(other);
    std::swap(ptr_, copy.ptr_);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }

  // Takes over a new reference, such as a C-API call returns it (null allowed).
  static Ref steal(void* newReference) {
    Ref r;
    r.ptr_ = static_cast<T*>(newReference);
    return r;
  }
  // Adds a reference to a borrowed object (null allowed).
  static Ref share(void* borrowed) {
    Py_XINCREF(static_cast<PyObject*>(borrowed));
    return steal(borrowed);
  }

  T* get() const { return ptr_; }
  PyObject* object() const { return asObject(); }
  T* operator->() const { return ptr_; }
  explicit operator bool() const { return ptr_ != nullptr; }

  // Gives the reference to the caller, who must store or decref it.
  [[nodiscard]] T* release() { return std::exchange(ptr_, nullptr); }
  [[nodiscard]] PyObject* releaseObject() { return reinterpret_cast<PyObject*>(release()); }
  void reset() { Ref().swap(*this); }
  void swap(Ref& other) noexcept { std::swap(ptr_, other.ptr_); }

 private:
  PyObject* asObject() const { return reinterpret_cast<PyObject*>(ptr_); }
  T* ptr_ = nullptr;
};

using ObjectRef = Ref<PyObject>;

}  // namespace cdynamo
