// Instr: one decoded instruction in the normal form of ops.def.
#pragma once
#include <compare>
#include <cstdint>

#include "base/ref.h"
#include "bytecode/op.h"

namespace cdynamo {

// Places in a code object's bytes, apart from indices into Code::instrs(): the three cannot be mixed.
struct ByteOffset {
  int32_t value = -1;
  auto operator<=>(const ByteOffset&) const = default;
};
struct UnitOffset {  // counts two-byte code units
  int32_t value = -1;
  auto operator<=>(const UnitOffset&) const = default;
  ByteOffset bytes() const { return {value * 2}; }
};
using InstrIndex = int32_t;

// Source position; lines from 1, columns from 0 in UTF-8 bytes, -1 where not known.
struct Position {
  int32_t line = -1;
  int32_t endLine = -1;
  int32_t col = -1;
  int32_t endCol = -1;
  bool operator==(const Position&) const = default;
};

enum InstrFlag : uint8_t {
  kNoInterrupt = 1,    // JumpBackward that does not poll for signals (the loop of `await` / `yield from`)
  kSuperCall = 2,      // Call 2 of [super, class, self] that CPython fuses with the attribute load after it
  kSuperZeroArgs = 4,  // with kSuperCall: written `super()`; a shadowed `super` must be called without arguments
};

struct Instr {
  Op op = Op::Nop;
  uint8_t flags = 0;
  int32_t arg = 0;
  InstrIndex target = -1;      // Operand::Jump only
  int32_t handler = -1;        // index into the handlers: where an exception raised here goes
  PyObject* object = nullptr;  // borrowed from whoever holds the instructions (Code, Assembler)
  ByteOffset offset;           // in the original code; -1 where there is none
  Position pos;
};
static_assert(sizeof(Instr) <= 48);

// An exception region. start/end are an instruction range; regions do not overlap, and nesting is expressed by the
// handler's own instructions having a handler.
struct Handler {
  InstrIndex start = -1;
  InstrIndex end = -1;
  InstrIndex target = -1;
  int32_t depth = 0;   // NULL-free slots kept when the handler is entered
  bool lasti = false;  // the raising instruction's offset is pushed before the exception
  bool operator==(const Handler&) const = default;
};

}  // namespace cdynamo
