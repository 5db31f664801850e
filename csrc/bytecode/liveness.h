// Which locals still matter at an instruction.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "bytecode/code.h"

namespace cdynamo {

// A view into a Code's liveness table: valid as long as the Code.
class LiveSet {
 public:
  LiveSet(std::span<const uint64_t> words, int slots) : words_(words), slots_(slots) {}
  bool contains(int slot) const { return (words_[static_cast<size_t>(slot) / 64] >> (slot % 64) & 1) != 0; }
  int slotCount() const { return slots_; }

 private:
  std::span<const uint64_t> words_;
  int slots_;
};

// The localsplus slots that some path from (before) instruction i, handlers included, may read before it writes them.
// Cells and free variables are always live. Computed for the whole code at the first question; needs the GIL.
LiveSet liveAt(const Code& code, InstrIndex i);

// The table behind liveAt().
class LivenessTable {
 public:
  explicit LivenessTable(const Code& code);
  LiveSet at(InstrIndex i) const;
  static const LivenessTable& of(const Code& code);

 private:
  std::span<uint64_t> row(InstrIndex i);
  int slots_;
  size_t words_;
  std::vector<uint64_t> rows_;
};

}  // namespace cdynamo
