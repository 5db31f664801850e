// Breaks as events: what the Python front is told about one.
#pragma once
#include <string>

#include "source/place.h"
#include "values/trace.h"

namespace cdynamo {

// A list of (file, line, function), the outermost frame first.
ObjectRef stackOf(const TracePlace* place);

// The payload of a "break" or "skip" event: code, reason (the table's name), id, title, explanation, hints, context (what
// was tried) and stack. Throws PythonError.
ObjectRef breakPayload(PyObject* code, BreakReason reason, const std::string& what, const TracePlace* place);

// Adds break_reasons() -> the whole table, a list of dicts.
void addBreakFunctions(PyObject* module);

}  // namespace cdynamo
