// Guards that the user's guard_filter_fn drops.
#pragma once
#include "guards/program.h"

namespace cdynamo {

// A list with one tuple per fact, then one for the global state: (name, kind, is_global, values), where values are the objects
// on the way from the frame's input to what the fact is about, that one last; empty where it is about none.
ObjectRef describeFacts(const FactList& facts, const SourceTable& table, const FrameInputs& inputs);

// Keeps the facts whose item of the sequence is true. Returns whether the global state is still guarded. Throws PythonError.
bool filterFacts(FactList& facts, PyObject* flags);

}  // namespace cdynamo
