// How the running Python writes the instruction set of bytecode/ops.def: one table, and the few numbers that the
// assembler needs by name. The rows stand in opcodes_311.h and opcodes_312.h.
#pragma once
#include <cstdint>

#include "bytecode/op.h"

namespace cdynamo {

// What a raw opcode's argument holds, or which rewriting it needs to reach the normal form.
enum class RawForm : uint8_t {
  Unknown,
  // one op, same meaning
  None,
  Number,
  Const,
  Name,
  Local,
  Compare,     // arg >> Dialect::compareShift
  StackIndex,  // counts raw stack slots
  JumpForward,
  JumpBackward,
  JumpBackwardNoInterrupt,
  // one op, another shape
  Copy,
  Swap,
  PopTop,
  ForIter,           // Dialect::endFor
  Send,              // Dialect::sendKeepsReceiver
  LoadGlobal,        // arg = name << 1 | pushes NULL first
  LoadMethod,        // pushes [method, self] or [NULL, attribute]
  LoadAttrOrMethod,  // arg = name << 1 | as LoadMethod
  Call,
  CallFunctionEx,
  // none or several ops
  Drop,
  PushNull,
  KwNames,
  EndFor,
  BinarySlice,
  StoreSlice,
  ReturnConst,
  LoadSuperAttr,  // arg = name << 2 | two arguments << 1 | as LoadMethod
  Intrinsic1,
  Intrinsic2,
};

struct RawOp {
  RawForm form = RawForm::Unknown;
  Op op = Op::Nop;
  uint8_t caches = 0;  // inline cache units after it
};

// The decode side: what the opcode stands for. `opcode` is a base one (not specialised, not instrumented).
const RawOp& rawOp(uint8_t opcode);

struct IntrinsicOp {
  Op op;
  bool popsResult;  // our op pushes nothing: the POP_TOP after the intrinsic belongs to it
};
// Null where the number is not known.
const IntrinsicOp* intrinsic1(uint32_t number);
const IntrinsicOp* intrinsic2(uint32_t number);

// The assemble side.
struct OpEncoding {
  int16_t forward = -1;    // opcode; for jumps the forward one. -1: this Python has none, the assembler must expand
  int16_t backward = -1;   // jumps that also exist backwards
  int16_t intrinsic = -1;  // argument where forward is CALL_INTRINSIC_1/2
  bool popAfter = false;   // a POP_TOP follows (IntrinsicOp::popsResult)
};
const OpEncoding& encodingOf(Op op);

// The numbers and traits that differ by version. -1 (opcodes) where the version has none.
struct Dialect {
  int version;  // 311, 312
  int16_t pushNull, swap, copy, popTop, extendedArg, kwNames, call, callFunctionEx;
  int16_t precall;
  int16_t loadMethod;  // -1: LOAD_ATTR's low bit
  int16_t endFor;      // a FOR_ITER's target is this instruction, and exhaustion goes on after it
  int16_t loadSuperAttr;
  int16_t jumpBackwardNoInterrupt;
  int16_t loadFastUnchecked;  // LOAD_FAST where it does not test for unbound; encodingOf(LoadFast) is the testing one
  bool loadAttrShifted;       // LOAD_ATTR's arg = name << 1 | method
  bool sendKeepsReceiver;     // SEND's jump leaves the receiver for END_SEND
  bool yieldCountsHandlers;   // YIELD_VALUE's arg
  uint8_t compareShift;
  uint8_t compareMask[6];  // low bits of COMPARE_OP's arg, by Py_LT .. Py_GE
};
const Dialect& dialect();

}  // namespace cdynamo
