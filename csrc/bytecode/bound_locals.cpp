#include "bytecode/bound_locals.h"

#include "cpython/compat.h"

namespace cdynamo {
namespace {

// Bits of bound locals before each instruction; meets are intersections, so everything starts full.
class BoundBits {
 public:
  BoundBits(size_t instrs, size_t slots) : words_((slots + 63) / 64 + 1), bits_(instrs * words_, ~uint64_t{0}) {}
  size_t words() const { return words_; }
  std::vector<uint64_t> at(size_t i) const {
    auto begin = bits_.begin() + static_cast<std::ptrdiff_t>(i * words_);
    return {begin, begin + static_cast<std::ptrdiff_t>(words_)};
  }
  bool test(size_t i, int slot) const { return (bits_[i * words_ + static_cast<size_t>(slot) / 64] >> (slot % 64) & 1) != 0; }
  // Intersects what is known before instruction i with `state`; true where that changed something.
  bool meet(size_t i, const std::vector<uint64_t>& state) {
    bool changed = false;
    for (size_t w = 0; w < words_; ++w) {
      uint64_t& word = bits_[i * words_ + w];
      uint64_t met = word & state[w];
      changed |= met != word;
      word = met;
    }
    return changed;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

void setBit(std::vector<uint64_t>& bits, int slot, bool on) {
  uint64_t bit = uint64_t{1} << (slot % 64);
  uint64_t& word = bits[static_cast<size_t>(slot) / 64];
  word = on ? word | bit : word & ~bit;
}

}  // namespace

std::vector<bool> loadsOfBoundLocals(const CodeSpec& spec, std::span<const Instr> instrs, std::span<const Handler> handlers, const StackWebs& webs) {
  BoundBits before(instrs.size(), spec.localsplus.size());
  std::vector<uint64_t> state(before.words(), 0);
  for (int slot = 0; slot < spec.parameterCount(); ++slot) setBit(state, slot, true);
  before.meet(0, state);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < instrs.size(); ++i) {
      const auto index = static_cast<InstrIndex>(i);
      if (!webs.reached(index)) continue;
      const Instr& instr = instrs[i];
      state = before.at(i);
      if (instr.handler >= 0) {
        changed |= before.meet(static_cast<size_t>(handlers[static_cast<size_t>(instr.handler)].target), state);
      }
      if (instr.op == Op::LoadFast) {
        setBit(state, instr.arg, true);
      } else if (instr.op == Op::StoreFast) {
        setBit(state, instr.arg, !webs.web(webs.webAt(index, webs.depth(index) - 1)).maybeUnbound);
      } else if (instr.op == Op::DeleteFast || instr.op == Op::LoadFastAndClear || instr.op == Op::MakeCell) {
        setBit(state, instr.arg, false);
      }
      if (instr.target >= 0) changed |= before.meet(static_cast<size_t>(instr.target), state);
      if (fallsThrough(instr.op)) changed |= before.meet(i + 1, state);
    }
  }
  std::vector<bool> bound(instrs.size(), false);
  for (size_t i = 0; i < instrs.size(); ++i) {
    bound[i] = instrs[i].op == Op::LoadFast && webs.reached(static_cast<InstrIndex>(i)) && before.test(i, instrs[i].arg);
  }
  return bound;
}

}  // namespace cdynamo
