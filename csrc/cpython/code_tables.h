// The byte formats inside a code object: code units, the location table and the exception table. Version-stable from
// 3.11 to 3.12; a version that changes one of them changes it here.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "bytecode/instruction.h"

namespace cdynamo {

// An instruction as it stands in the bytes, EXTENDED_ARG prefixes folded in.
struct RawInstr {
  uint8_t opcode;
  uint32_t arg;
  UnitOffset start;  // the first EXTENDED_ARG, or the opcode itself
  UnitOffset own;    // the opcode
  UnitOffset next;   // after the inline caches: jumps count from here
};

// De-specialised instructions of a code object, without caches. Throws PythonError.
std::vector<RawInstr> readInstructions(PyCodeObject* code);

// The position of every code unit.
std::vector<Position> readPositions(PyCodeObject* code, int unitCount);

struct RawHandler {
  UnitOffset start;
  UnitOffset end;
  UnitOffset target;
  int depth;  // raw stack slots, NULLs counted
  bool lasti;
};
std::vector<RawHandler> readHandlers(PyCodeObject* code);

// A run of code units with one position.
struct PositionRun {
  int units;
  Position pos;
};
std::string writePositions(const std::vector<PositionRun>& runs, int firstLine);
// `handlers` sorted by start, not overlapping.
std::string writeHandlers(const std::vector<RawHandler>& handlers);

}  // namespace cdynamo
