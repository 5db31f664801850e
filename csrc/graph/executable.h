// GraphProgram: the Python object that owns a finished graph, runs it, and shows it.
#pragma once
#include "graph/graph.h"

namespace cdynamo {

// Adds the types GraphProgram and NodeIndex to the extension module. Call once before makeGraphProgram.
//
//   GraphProgram(nodes, outputs)          from descriptions (graph/describe.h)
//   program(*inputs) -> tuple of outputs  runs it
//   program.describe(operands=True) -> list of node descriptions
//   program.operands(i, table) -> (args, kwargs) of node i with nodes replaced by table[id]
//   program.outputs -> tuple of ids; program.inputs -> tuple of source names; program.calls -> number of calls
//   len(program) -> number of nodes
// Throws PythonError.
void addGraphTypes(PyObject* module);

// Takes the graph over. The result refers to nothing of the trace and keeps no user tensor alive. Throws PythonError.
ObjectRef makeGraphProgram(Graph&& captured, const SourceTable& sources);

// Runs a GraphProgram without the way through the interpreter: the tuple of outputs. Throws PythonError.
ObjectRef runGraphProgram(PyObject* program, PyObject* const* inputs, size_t inputCount);

}  // namespace cdynamo
