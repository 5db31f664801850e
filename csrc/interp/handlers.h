// One handler per op, defined in the file of its family.
#pragma once
#include "bytecode/instruction.h"
#include "bytecode/op.h"
#include "interp/frame.h"

namespace cdynamo {

#define CD_OP(name, pops, pushes, operand) void handle##name(Trace& t, FrameState& f, const Instr& in);
#include "bytecode/ops.def"
#undef CD_OP

}  // namespace cdynamo
