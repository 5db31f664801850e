#include "emit/adopted_cells.h"

#include "emit/resume.h"

namespace cdynamo {

AdoptedCells::AdoptedCells(const Code& code, CodeSpec& spec, std::vector<int>& slots) {
  const std::vector<int> cells = cellSlots(code);
  for (int slot : cells)
    if (code.localKind(slot) != Code::LocalKind::Free) slots[static_cast<size_t>(slot)] = spec.addCell(code.localName(slot));
  for (int slot : cells) {
    int free = spec.addFree(code.localName(slot));
    if (code.localKind(slot) == Code::LocalKind::Free)
      slots[static_cast<size_t>(slot)] = free;
    else
      own_.emplace_back(slots[static_cast<size_t>(slot)], free);
  }
}

void AdoptedCells::adopt(Assembler& a) const {
  for (auto [slot, free] : own_) {
    a.emit(Op::LoadClosure, free);
    a.storeFast(slot);
  }
}

}  // namespace cdynamo
