#include "guards/memory.h"

#include <algorithm>
#include <unordered_map>

namespace cdynamo {

namespace {

// In place of the distance. No capture is made with it: two sources of one object have one register.
constexpr int64_t kSameObject = INT64_MIN;

bool sameOverlap(const MemoryGuard::Overlap& a, const MemoryGuard::Overlap& b) {
  if (a.first == b.first && a.second == b.second) return a.distance == b.distance;
  return a.first == b.second && a.second == b.first && a.distance == (b.distance == kSameObject ? kSameObject : -b.distance);
}

bool contains(const std::vector<MemoryGuard::Overlap>& all, const MemoryGuard::Overlap& one) {
  return std::any_of(all.begin(), all.end(), [&](const MemoryGuard::Overlap& other) { return sameOverlap(one, other); });
}

}  // namespace

void MemoryGuard::add(uint32_t reg, bool isWritten) {
  registers_.push_back(reg);
  if (isWritten) std::swap(registers_.back(), registers_[writtenCount_++]);
}

std::vector<MemoryExtent> MemoryGuard::extents(PyObject* const* registers) const {
  std::vector<MemoryExtent> found;
  found.reserve(registers_.size());
  for (uint32_t reg : registers_) found.push_back(memoryOf(registers[reg]));
  return found;
}

std::vector<MemoryGuard::Overlap> MemoryGuard::overlaps(PyObject* const* registers) const { return overlaps(registers, extents(registers)); }

std::vector<MemoryGuard::Overlap> MemoryGuard::overlaps(PyObject* const* registers, const std::vector<MemoryExtent>& extents) const {
  std::unordered_multimap<const void*, size_t> written;
  for (size_t i = 0; i < writtenCount_; i++) written.emplace(extents[i].storage, i);
  std::vector<Overlap> found;
  auto addIfOverlapping = [&](size_t first, size_t second) {
    bool same = registers[registers_[first]] == registers[registers_[second]];
    if (!same && !extents[first].overlaps(extents[second])) return;
    found.push_back({registers_[first], registers_[second], same ? kSameObject : extents[second].begin - extents[first].begin});
  };
  for (size_t i = 0; i < extents.size(); i++) {
    auto [begin, end] = written.equal_range(extents[i].storage);
    for (auto it = begin; it != end; ++it)
      if (it->second < i) addIfOverlapping(it->second, i);
  }
  return found;
}

bool MemoryGuard::holds(PyObject* const* registers) {
  if (storages_.empty() || shares_) return compareAll(registers);
  size_t count = registers_.size();
  for (size_t i = 0; (i = firstMoved(registers, registers_.data(), storages_.data(), i, count)) != count; i++) {
    const void* storage = memoryOf(registers[registers_[i]]).storage;
    if (i < writtenCount_ || written_.count(storage)) return compareAll(registers);
    storages_[i] = storage;
  }
  return true;
}

bool MemoryGuard::compareAll(PyObject* const* registers) {
  storages_.clear();
  std::vector<MemoryExtent> memory = extents(registers);
  std::vector<Overlap> now = overlaps(registers, memory);
  if (now.size() != expected_.size()) return false;
  for (const Overlap& overlap : now)
    if (!contains(expected_, overlap)) return false;
  written_.clear();
  shares_ = false;
  for (size_t i = 0; i < memory.size(); i++) {
    const void* storage = memory[i].storage;
    if (i < writtenCount_)
      shares_ |= !written_.insert(storage).second;
    else
      shares_ |= written_.count(storage) != 0;
    storages_.push_back(storage);
  }
  return true;
}

bool MemoryGuard::firstMiss(PyObject* const* registers, Overlap& out, bool& overlapsNow) const {
  std::vector<Overlap> now = overlaps(registers);
  auto missing = [&](const std::vector<Overlap>& from, const std::vector<Overlap>& in) {
    for (const Overlap& overlap : from) {
      if (contains(in, overlap)) continue;
      out = overlap;
      return true;
    }
    return false;
  };
  overlapsNow = missing(now, expected_);
  return overlapsNow || missing(expected_, now);
}

}  // namespace cdynamo
