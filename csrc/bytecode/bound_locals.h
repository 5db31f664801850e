// Which locals are certainly bound: where a load needs no test.
#pragma once
#include <vector>

#include "bytecode/assembler.h"
#include "bytecode/stack_webs.h"

namespace cdynamo {

// For each instruction: true where it is a LoadFast of a local that is bound on every path that leads there.
std::vector<bool> loadsOfBoundLocals(const CodeSpec& spec, std::span<const Instr> instrs, std::span<const Handler> handlers, const StackWebs& webs);

}  // namespace cdynamo
