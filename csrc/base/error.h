// How failure travels inside the engine.
//
//   PythonError   a CPython call failed; the Python error indicator is set. Caught at the extension's border.
//   EngineError   the engine broke one of its own rules; becomes cdynamo's InternalError with a report.
#pragma once
#include <stdexcept>
#include <string>

#include "base/ref.h"

namespace cdynamo {

struct PythonError {};

struct EngineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Takes over a new reference that must not be null: throws PythonError where it is.
template <typename T = PyObject>
[[nodiscard]] inline Ref<T> checked(T* newReference) {
  if (newReference == nullptr) throw PythonError{};
  return Ref<T>::steal(newReference);
}

// A C-API status: throws PythonError where it is negative, else returns it.
inline int checkedStatus(int status) {
  if (status < 0) throw PythonError{};
  return status;
}

[[noreturn]] void engineFail(const char* file, int line, const char* what);

}  // namespace cdynamo

#define CD_CHECK(cond, what)                           \
  do {                                                 \
    if (!(cond)) [[unlikely]]                          \
      ::cdynamo::engineFail(__FILE__, __LINE__, what); \
  } while (0)
