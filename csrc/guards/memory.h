// Which tensors of a capture share memory, where the graph writes to some of them.
//
// A backend that turns writes into new values (AOTAutograd) relies on it. While no storage moved since the last call
// the answer stands; else only what moved is looked at.
#pragma once
#include <string>
#include <unordered_set>
#include <vector>

#include "torch/memory.h"

namespace cdynamo {

class MemoryGuard {
 public:
  struct Overlap {
    uint32_t first, second;  // registers
    int64_t distance;        // bytes from the first one's data to the second one's
  };

  // Adds a register with a tensor.
  void add(uint32_t reg, bool isWritten);
  void addOverlap(Overlap overlap) { expected_.push_back(overlap); }
  bool empty() const { return writtenCount_ == 0; }

  // True where the tensors that are written overlap exactly as expected with the others. Every register holds a tensor.
  bool holds(PyObject* const* registers);

  // The pairs that overlap now, each once.
  std::vector<Overlap> overlaps(PyObject* const* registers) const;
  // The first pair that overlaps now and should not, or the other way round; false where there is none.
  bool firstMiss(PyObject* const* registers, Overlap& out, bool& overlapsNow) const;

 private:
  std::vector<MemoryExtent> extents(PyObject* const* registers) const;
  std::vector<Overlap> overlaps(PyObject* const* registers, const std::vector<MemoryExtent>& extents) const;
  bool compareAll(PyObject* const* registers);

  std::vector<uint32_t> registers_;  // those that are written first
  size_t writtenCount_ = 0;
  std::vector<Overlap> expected_;
  std::vector<const void*> storages_;  // at the last call that held; empty: none
  std::unordered_set<const void*> written_;
  bool shares_ = false;  // a storage that is written has more than one tensor
};

}  // namespace cdynamo
