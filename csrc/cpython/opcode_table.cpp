#include "cpython/opcode_table.h"

#include <Python.h>
#include <opcode.h>

#include <array>

#include "cpython/opcodes_common.h"
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include "cpython/opcodes_312.h"
#elif PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "cpython/opcodes_311.h"
#else
#error "cdynamo supports CPython 3.11 and 3.12"
#endif

namespace cdynamo {
namespace {

constexpr std::array<RawOp, 256> makeRawOps() {
  std::array<RawOp, 256> table{};
#define ROW(opcode, op, form, caches) table[opcode] = RawOp{RawForm::form, Op::op, caches};
  CD_COMMON_OPCODE_ROWS(ROW)
  CD_OPCODE_ROWS(ROW)
#undef ROW
  return table;
}

constexpr auto kRawOps = makeRawOps();

constexpr IntrinsicOp kIntrinsics1[] = {{Op::Nop, false},
#define ROW(number, op, popsResult) {Op::op, popsResult},
                                        CD_INTRINSIC1_ROWS(ROW)
#undef ROW
};
constexpr IntrinsicOp kIntrinsics2[] = {{Op::Nop, false},
#define ROW(number, op, popsResult) {Op::op, popsResult},
                                        CD_INTRINSIC2_ROWS(ROW)
#undef ROW
};

constexpr bool isRewritten(RawForm form) { return form >= RawForm::Drop; }

constexpr void addEncoding(std::array<OpEncoding, kOpCount>& table, int16_t opcode, Op op, RawForm form) {
  if (isRewritten(form) || form == RawForm::JumpBackwardNoInterrupt) return;
  OpEncoding& e = table[static_cast<size_t>(op)];
  int16_t& slot = form == RawForm::JumpBackward ? e.backward : e.forward;
  if (slot < 0) slot = opcode;
}

constexpr std::array<OpEncoding, kOpCount> makeEncodings() {
  std::array<OpEncoding, kOpCount> table{};
#define ROW(opcode, op, form, caches) addEncoding(table, opcode, Op::op, RawForm::form);
  CD_OPCODE_ROWS(ROW)
  CD_COMMON_OPCODE_ROWS(ROW)
#undef ROW
#define ROW(number, op, popsResult) table[static_cast<size_t>(Op::op)] = OpEncoding{CALL_INTRINSIC_1, -1, number, popsResult};
  CD_INTRINSIC1_ROWS(ROW)
#undef ROW
#define ROW(number, op, popsResult) table[static_cast<size_t>(Op::op)] = OpEncoding{CALL_INTRINSIC_2, -1, number, popsResult};
  CD_INTRINSIC2_ROWS(ROW)
#undef ROW
  // Both spellings of an unconditional jump can go both ways.
  OpEncoding& jump = table[static_cast<size_t>(Op::Jump)];
  OpEncoding& back = table[static_cast<size_t>(Op::JumpBackward)];
  jump.backward = back.backward;
  back.forward = jump.forward;
  return table;
}

constexpr auto kEncodings = makeEncodings();

template <size_t N>
const IntrinsicOp* intrinsicAt(const IntrinsicOp (&table)[N], uint32_t number) {
  return number >= 1 && number < N ? &table[number] : nullptr;
}

}  // namespace

const RawOp& rawOp(uint8_t opcode) { return kRawOps[opcode]; }
const IntrinsicOp* intrinsic1(uint32_t number) { return intrinsicAt(kIntrinsics1, number); }
const IntrinsicOp* intrinsic2(uint32_t number) { return intrinsicAt(kIntrinsics2, number); }
const OpEncoding& encodingOf(Op op) { return kEncodings[static_cast<size_t>(op)]; }
const Dialect& dialect() { return kDialect; }

}  // namespace cdynamo
