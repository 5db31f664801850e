// The room's face to Python, for tests and tools.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// Adds to the extension module:
//   decode(code) -> (instrs, handlers): instrs are (op, arg, object, target, handler, (line, endLine, col, endCol), depth,
//                   flags),
//                   handlers are (start, end, target, depth, lasti)
//   dump(code) -> str
//   index_of(code, offset) -> instruction index of a byte offset such as tb_lasti
//   live_names(code, index) -> list of names
//   assemble(template, instrs, handlers) -> code: instrs are (op, arg, object or None, target), handlers are
//                   (start, end, target, depth or -1, lasti); everything else is the template's
//   continuation(code, index) -> code that goes on at instruction index. Its parameters are the locals that are live
//                   there, by name and in slot order, then `stack`: the values of the stack, the bottom first
//   reassemble(code) -> code, from the decoded form (constants that are code objects stay as they are)
//   verify(code) -> None, raises where the bytecode is inconsistent
//   clear_decode_cache()
// Throws PythonError.
void addBytecodeFunctions(PyObject* module);

}  // namespace cdynamo
