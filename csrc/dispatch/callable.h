// cdynamo._C.CompiledFunction: what compile(f) returns.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// CompiledFunction(callable, options, recompile_limit=-1)
//   callable         a Python function, a bound method of one, or anything else (which is then always called as it is)
//   options          any object, handed to the capture hook; functions with the same code and the identical options share captures
//   recompile_limit  -1: the one of configure()
// A call binds the arguments, tries the captures of the function's code, captures on a miss, and runs the original where
// nothing fits. Like functools.wraps: __name__, __doc__, __wrapped__, ...; also _torchdynamo_orig_callable, entries(),
// skip_reason and the descriptor protocol, so that it works as a method.
// Creates the type. A new reference; throws PythonError.
ObjectRef makeCompiledFunctionType();

}  // namespace cdynamo
