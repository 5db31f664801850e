// Which frames the hook offers for capture. Nothing here runs Python code of the user's or leaves an error set.
#pragma once
#include <cstdint>

#include "guards/program.h"

namespace cdynamo {

// By the code alone: generators and coroutines, code that is not a function's, and files of the standard library, torch, cdynamo
// and other infrastructure. Does string work: keep the answer. Throws PythonError.
bool isNeverCaptured(PyCodeObject* code);

// What torch.compiler.disable, cdynamo.disable and torch._dynamo.skip leave on a function.
enum class DisableMark : uint8_t { None, Itself, AndBelow };
DisableMark disableMark(PyObject* function);

// The last answer for the globals that a code names, good while the dict's version stays.
struct GlobalsMemo {
  uint64_t version = 0;
  bool useTensors = false;
};
// False where a call surely has nothing to do with tensors: only plain data goes in, and no global or closure cell that the code
// names is of torch. Such a capture could save nothing, and would be tied to the numbers of this one call.
bool mayUseTensors(const FrameInputs& inputs, GlobalsMemo& memo);

}  // namespace cdynamo
