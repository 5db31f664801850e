// Warnings of C code that works for a program which is not there yet.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// While one lives, no warning is shown: it is an error of its category, or nothing. How it is shown is for the filters to say that are
// in force where the program gives it.
class WarningWatch {
 public:
  enum Action { Raise, Ignore };
  explicit WarningWatch(Action action = Raise);
  ~WarningWatch();
  WarningWatch(const WarningWatch&) = delete;
  WarningWatch& operator=(const WarningWatch&) = delete;

  // The pending error is a warning: clears it.
  bool takeWarning();

 private:
  ObjectRef filters_;         // the list that is in force; null: there is none
  PyObject* item_ = nullptr;  // what was put in front of it
  ObjectRef registry_;        // the globals where a warning would leave a registry that was not there before
};

}  // namespace cdynamo
