// A reference to each of a row of borrowed objects, for the length of a scope.
#pragma once
#include "base/ref.h"

namespace cdynamo {

class KeepAlive {
 public:
  // The array must outlive this object and keep its content. Null entries are allowed.
  KeepAlive(PyObject* const* objects, size_t count) : objects_(objects), count_(count) {
    for (size_t i = 0; i < count_; i++) Py_XINCREF(objects_[i]);
  }
  ~KeepAlive() {
    for (size_t i = 0; i < count_; i++) Py_XDECREF(objects_[i]);
  }
  KeepAlive(const KeepAlive&) = delete;
  KeepAlive& operator=(const KeepAlive&) = delete;

 private:
  PyObject* const* objects_;
  size_t count_;
};

}  // namespace cdynamo
