// C functions that emitted code calls to put generators into the state that the trace left them in. All borrowed.
#pragma once
#include "base/ref.h"

namespace cdynamo {

// running_generator(function) -> a new generator of the function that runs: its frame is somewhere else.
PyObject* runningGeneratorFunction();
// leave_generator(generator): it runs, and its frame is somewhere else.
PyObject* leaveGeneratorFunction();
// end_generator(generator): it has ended.
PyObject* endGeneratorFunction();
// place_generator(generator, unit, held): it waits at the YIELD_VALUE, with slots, stack and the handled exception.
PyObject* placeGeneratorFunction();
// Stands for what is unbound in `held`.
PyObject* unboundSlot();

}  // namespace cdynamo
