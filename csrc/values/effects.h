// What the trace puts off until the graph has run: texts that show tensors, and calls that print or log.
#pragma once
#include <utility>
#include <vector>

#include "base/ref.h"

namespace cdynamo {

struct Value;

struct LateCall {
  PyObject* callable = nullptr;  // kept by the trace
  std::vector<Value*> args;
  std::vector<std::pair<PyObject*, Value*>> kwargs;  // names kept by the trace
};

// A call of the traced program whose result is None, made after the graph in program order.
struct Effect {
  struct Place {
    PyObject* code;     // PyCodeObject, borrowed from the trace
    PyObject* globals;  // borrowed from the trace
    int32_t line;
  };
  LateCall call;
  std::vector<Place> frames;  // who called, the innermost first: what warnings and log records name
  bool ordered = false;       // it may raise, or run code that can see the trace's other writes
  bool afterWrites = false;   // made after the writes to existing objects, else before them
};

// What calls of the trace left in an lru_cache.
struct LruResults {
  ObjectRef numbers;  // dict from keys to numbers in results
  std::vector<Value*> results;
};

// Whose output is put off, as the settings say; read when a trace first calls something.
struct OutputRules {
  bool known = false;
  bool defer = true;      // cdynamo.config.defer_output
  ObjectRef reorderable;  // torch._dynamo.config.reorderable_logging_functions; null: none
  ObjectRef ignored;      // torch._dynamo.config.ignore_logging_functions; null: none
};

// What decorators say about callables, by their ids; read when a trace first calls something.
struct UserMarks {
  bool known = false;
  ObjectRef own;                  // cdynamo._decorators.marks
  ObjectRef allowed, disallowed;  // torch's; null: none
};

}  // namespace cdynamo
