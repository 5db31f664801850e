#include "bytecode/verify.h"

#include "base/error.h"

namespace cdynamo {

void verifyDecoded(const Code& code) {
  auto expectDepth = [&](InstrIndex i, int depth) {
    CD_CHECK(i >= 0 && i < code.size(), "control leaves the code");
    CD_CHECK(code.depthAt(i) == depth, "an instruction's depth does not follow from those before it");
  };
  expectDepth(0, 0);
  for (InstrIndex i = 0; i < code.size(); ++i) {
    const Instr& instr = code.at(i);
    StackEffect effect = stackEffect(instr.op, instr.arg);
    int depth = code.depthAt(i);
    CD_CHECK(depth >= effect.pops, "the stack runs empty");
    if (fallsThrough(instr.op)) expectDepth(i + 1, depth - effect.pops + effect.pushes);
    if (operandOf(instr.op) == Operand::Jump) {
      StackEffect jump = jumpStackEffect(instr.op);
      expectDepth(instr.target, depth - jump.pops + jump.pushes);
    }
    if (operandOf(instr.op) == Operand::Local) {
      CD_CHECK(instr.arg >= 0 && instr.arg < code.localsplusCount(), "a local's number is out of range");
    }
    if (operandOf(instr.op) == Operand::Name) {
      CD_CHECK(instr.object != nullptr && PyUnicode_Check(instr.object), "a name is not a string");
    }
    if (const Handler* handler = code.handlerOf(i)) {
      CD_CHECK(handler->start <= i && i < handler->end, "an instruction is outside its handler's range");
      CD_CHECK(handler->depth <= depth, "a handler keeps more than the stack holds");
      expectDepth(handler->target, handler->depth + (handler->lasti ? 2 : 1));
    }
  }
}

void verifyCode(PyCodeObject* code) {
  Code decoded(code);
  verifyDecoded(decoded);
  CD_CHECK(decoded.maxRawDepth() <= code->co_stacksize, "co_stacksize is too small");
}

}  // namespace cdynamo
