// What the dispatcher asks of the interpreter, without knowing it.
#pragma once
#include <memory>
#include <set>
#include <string>

#include "dispatch/entry.h"

namespace cdynamo {

struct CaptureOutcome {
  enum class Kind : uint8_t {
    Install,  // entry is new: it is put first in the cache, and the call goes on with it
    Skip,     // run this call eagerly
    Raise,    // a Python error is set: the call fails with it
  };
  Kind kind = Kind::Skip;
  std::unique_ptr<Entry> entry;
  std::string reason;    // Skip: why
  bool remember = true;  // Skip: do not try this code again
};

// Captures a call: inputs are the bound slots of the function's frame, alive during the call; options is the object that
// the compiled function was made with. May run Python code; must leave no Python error set unless it says Raise. It may
// throw PythonError (as Raise) and EngineError (the call runs eagerly, or fails in strict mode).
// openNames: sources (by name) whose ints and floats were seen to change from call to call.
using CaptureHook = CaptureOutcome (*)(PyObject* function, const FrameInputs& inputs, PyObject* options, const std::set<std::string>& openNames);

// Null: every miss runs eagerly. Called once when the extension is loaded.
void setCaptureHook(CaptureHook hook);
CaptureHook captureHook();

// While one lives, compiled functions called on this thread run eagerly. The dispatcher holds one around the hook.
class CaptureScope {
 public:
  CaptureScope();
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;
  static bool active();
  // On any thread.
  static bool anywhere();
};

}  // namespace cdynamo
