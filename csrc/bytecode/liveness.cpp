#include "bytecode/liveness.h"

#include "base/error.h"

namespace cdynamo {
namespace {

struct LocalUse {
  int slot = -1;
  bool reads = false;
  bool writes = false;
};

// DeleteFast reads: it fails where the local is unbound.
LocalUse localUse(const Instr& instr) {
  switch (instr.op) {
    case Op::LoadFast: return {instr.arg, true, false};
    case Op::StoreFast: return {instr.arg, false, true};
    case Op::DeleteFast:
    case Op::LoadFastAndClear: return {instr.arg, true, true};
    default: return {};
  }
}

}  // namespace

LivenessTable::LivenessTable(const Code& code)
    : slots_(code.localsplusCount()), words_((static_cast<size_t>(slots_) + 63) / 64 + (slots_ == 0 ? 1 : 0)) {
  rows_.assign(words_ * static_cast<size_t>(code.size()), 0);
  std::vector<uint64_t> always(words_, 0);
  for (int slot = 0; slot < slots_; ++slot) {
    if (code.isCellOrFree(slot)) always[static_cast<size_t>(slot) / 64] |= uint64_t{1} << (slot % 64);
  }
  std::vector<uint64_t> live(words_);
  for (bool changed = true; changed;) {
    changed = false;
    for (InstrIndex i = code.size() - 1; i >= 0; --i) {
      const Instr& instr = code.at(i);
      live = always;
      auto join = [&](InstrIndex successor) {
        std::span<uint64_t> other = row(successor);
        for (size_t w = 0; w < words_; ++w) live[w] |= other[w];
      };
      if (fallsThrough(instr.op) && i + 1 < code.size()) join(i + 1);
      if (instr.target >= 0) join(instr.target);
      LocalUse use = localUse(instr);
      if (use.slot >= 0 && !code.isCellOrFree(use.slot)) {
        uint64_t bit = uint64_t{1} << (use.slot % 64);
        uint64_t& word = live[static_cast<size_t>(use.slot) / 64];
        if (use.writes) word &= ~bit;
        if (use.reads) word |= bit;
      }
      if (const Handler* handler = code.handlerOf(i)) join(handler->target);
      std::span<uint64_t> own = row(i);
      for (size_t w = 0; w < words_; ++w) {
        changed |= own[w] != live[w];
        own[w] = live[w];
      }
    }
  }
}

std::span<uint64_t> LivenessTable::row(InstrIndex i) { return std::span(rows_).subspan(static_cast<size_t>(i) * words_, words_); }

LiveSet LivenessTable::at(InstrIndex i) const {
  CD_CHECK(i >= 0 && static_cast<size_t>(i + 1) * words_ <= rows_.size(), "liveness asked for no instruction");
  return {std::span(rows_).subspan(static_cast<size_t>(i) * words_, words_), slots_};
}

const LivenessTable& LivenessTable::of(const Code& code) {
  if (!code.liveness_) code.liveness_ = std::make_unique<LivenessTable>(code);
  return *code.liveness_;
}

LiveSet liveAt(const Code& code, InstrIndex i) { return LivenessTable::of(code).at(i); }

}  // namespace cdynamo
