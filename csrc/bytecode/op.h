// Op: the version-free instruction set of ops.def, with what the list says of each.
#pragma once
#include <cstdint>

namespace cdynamo {

enum class Op : uint8_t {
#define CD_OP(name, pops, pushes, operand) name,
#include "bytecode/ops.def"
#undef CD_OP
};

inline constexpr int kOpCount = 0
#define CD_OP(name, pops, pushes, operand) +1
#include "bytecode/ops.def"
#undef CD_OP
    ;

// What an instruction's arg, object and target mean; see ops.def.
enum class Operand : uint8_t { None, Number, Const, Local, Name, Jump };

struct StackEffect {
  int pops;
  int pushes;
};

const char* opName(Op op);
Operand operandOf(Op op);

// What the instruction takes from and puts on the NULL-free stack when it goes on to the next one (or returns).
// Peeked slots below do not count, except that Reraise's and WithExceptStart's are in their pops where they must exist.
StackEffect stackEffect(Op op, int arg);
// The same for its jump edge. Only for operandOf(op) == Operand::Jump.
StackEffect jumpStackEffect(Op op);

// False for those after which the next instruction is not reached: Jump, JumpBackward, ReturnValue, Reraise, RaiseVarargs.
bool fallsThrough(Op op);

// True for the seven ops whose arg finds a container below the popped values (ListAppend .. DictMerge).
bool hasContainerIndex(Op op);

// UnpackEx: how many targets stand before and after the starred one.
constexpr int unpackBefore(int arg) { return arg & 0xff; }
constexpr int unpackAfter(int arg) { return arg >> 8; }

}  // namespace cdynamo
