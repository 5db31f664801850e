// The room's face to Python, for tests.
#pragma once
#include <memory>

#include "guards/program.h"

namespace cdynamo {

// Adds to the extension module the type `_TestGuards(facts, wanted=(), local_names=(), globals=None)`.
//   A source is a tuple: ("local", i), ("function",), ("cell", i), ("contents", base), ("pinned", obj), ("dict", base),
//   ("item", base, key), ("seq", base, i), ("attr", base, name), ("type", base), ("deque", base, i), ("weak", base),
//   ("add", base, other) and so for "sub", "mul", "floordiv", "mod", "truediv", "lt", ..., ("number_tensor", base).
//   A fact is a tuple (kind, source, operand...): "type", "is", "is_not", "equals", "len", "lacks", "keys", "set",
//   "lookup" (type, name, expected or nothing), "function", "tensor", "same", "distinct", "lacks_attr", "abc", "truth", "range" (lower, upper).
//   check(locals, function=None) -> tuple of the wanted values, or None; explain(...) -> str; describe() -> list;
//   time(locals, function, repeat) -> ns per check. len(guards) is the number of facts.
// Throws PythonError.
void addGuardTestType(PyObject* module);

// A program from such descriptions: facts is a list, wanted and localNames are tuples or null, globals may be null.
// Throws PythonError.
std::unique_ptr<GuardProgram> buildTestProgram(PyObject* facts, PyObject* wanted, PyObject* localNames, PyObject* globals);

}  // namespace cdynamo
