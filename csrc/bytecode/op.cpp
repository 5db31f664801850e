#include "bytecode/op.h"

#include <bit>

#include "base/error.h"

namespace cdynamo {
namespace {

constexpr int kVaries = -1;

struct OpRow {
  const char* name;
  int8_t pops;
  int8_t pushes;
  Operand operand;
};

constexpr OpRow kRows[] = {
#define CD_OP(name, pops, pushes, operand) {#name, pops, pushes, Operand::operand},
#include "bytecode/ops.def"
#undef CD_OP
};

const OpRow& row(Op op) { return kRows[static_cast<int>(op)]; }

int variablePops(Op op, int arg) {
  switch (op) {
    case Op::BuildTuple:
    case Op::BuildList:
    case Op::BuildSet:
    case Op::BuildString:
    case Op::BuildSlice:
    case Op::RaiseVarargs: return arg;
    case Op::BuildMap: return 2 * arg;
    case Op::BuildConstKeyMap:
    case Op::Call: return arg + 1;
    case Op::FormatValue: return (arg & 4) != 0 ? 2 : 1;
    case Op::CallFunctionEx: return 2 + (arg & 1);
    case Op::MakeFunction: return 1 + std::popcount(static_cast<unsigned>(arg) & 15U);
    default: break;
  }
  CD_CHECK(false, "an op without a pop count");
}

int variablePushes(Op op, int arg) {
  if (op == Op::UnpackSequence) return arg;
  CD_CHECK(op == Op::UnpackEx, "an op without a push count");
  return unpackBefore(arg) + 1 + unpackAfter(arg);
}

}  // namespace

const char* opName(Op op) { return row(op).name; }

Operand operandOf(Op op) { return row(op).operand; }

StackEffect stackEffect(Op op, int arg) {
  const OpRow& r = row(op);
  return {r.pops == kVaries ? variablePops(op, arg) : r.pops, r.pushes == kVaries ? variablePushes(op, arg) : r.pushes};
}

StackEffect jumpStackEffect(Op op) {
  switch (op) {
    case Op::ForIter: return {1, 0};
    case Op::JumpIfTrueOrPop:
    case Op::JumpIfFalseOrPop: return {1, 1};
    default: return {row(op).pops, row(op).pushes};
  }
}

bool fallsThrough(Op op) {
  switch (op) {
    case Op::Jump:
    case Op::JumpBackward:
    case Op::ReturnValue:
    case Op::Reraise:
    case Op::RaiseVarargs: return false;
    default: return true;
  }
}

bool hasContainerIndex(Op op) { return op >= Op::ListAppend && op <= Op::DictMerge; }

}  // namespace cdynamo
