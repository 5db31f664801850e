#include "guards/distinct.h"

#include <algorithm>
#include <unordered_set>

namespace cdynamo {

namespace {

// Up to here, comparing each with each is faster than a set.
constexpr size_t kFew = 4;

}  // namespace

void DistinctGuard::add(uint32_t reg, bool fromAll) {
  registers_.push_back(reg);
  if (fromAll) std::swap(registers_.back(), registers_[fromAllCount_++]);
}

bool DistinctGuard::holds(PyObject* const* registers) {
  size_t count = registers_.size(), same = 0;
  if (last_.size() == count)
    while (same < count && registers[registers_[same]] == last_[same]) same++;
  if (same == count) return true;
  last_.clear();
  for (uint32_t reg : registers_) last_.push_back(registers[reg]);
  auto fails = [this] {
    last_.clear();
    return false;
  };
  auto end = last_.begin() + static_cast<ptrdiff_t>(fromAllCount_);
  if (fromAllCount_ <= kFew) {
    for (auto one = last_.begin(); one != end; ++one)
      if (std::find(one + 1, last_.end(), *one) != last_.end()) return fails();
    return true;
  }
  std::unordered_set<PyObject*> seen;
  for (auto one = last_.begin(); one != end; ++one)
    if (!seen.insert(*one).second) return fails();
  for (auto one = end; one != last_.end(); ++one)
    if (seen.count(*one)) return fails();
  return true;
}

}  // namespace cdynamo
