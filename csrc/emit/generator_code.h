// Code objects that start a generator in the middle.
#pragma once
#include <vector>

#include "bytecode/code.h"

namespace cdynamo {

// Where a generator stands, and what of its frame is there.
struct SuspendedGenerator {
  InstrIndex at = -1;       // its YieldValue
  std::vector<bool> bound;  // of each local that is no cell, in the order of slots
  std::vector<bool> stack;  // false: the unbound marker
  bool handling = false;    // inside an except block: the exception is the last argument
  bool selfFirst = false;   // the first argument is for super() alone
  bool entered = false;     // `at` is any instruction, and the first next() goes on there

  auto operator<=>(const SuspendedGenerator&) const = default;
};

// A generator function whose arguments are [self], the bound locals, the stack, [the handled exception], and whose free
// variables are all the cells of the original in their order. The first next() gives None and leaves it where the state
// says; finished: it ends at once. From a cache.
Ref<PyCodeObject> generatorCode(const Code& code, const SuspendedGenerator& state, bool finished);
void clearGeneratorCodes();
// Drops those made of this code object.
void forgetGeneratorCodes(PyCodeObject* code);
// The yield of the original that instruction `at` of the code made for the state (entered) is.
InstrIndex yieldOf(const Code& code, const SuspendedGenerator& state, const Code& entered, InstrIndex at);

}  // namespace cdynamo
