// Which registers must hold different objects: keys of dicts that hash by identity, containers and objects that are written to.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ref.h"

namespace cdynamo {

class DistinctGuard {
 public:
  // fromAll: differs from every other register; else only from those that do.
  void add(uint32_t reg, bool fromAll);
  bool empty() const { return fromAllCount_ == 0 || registers_.size() < 2; }

  // Linear in the number of registers; while no object changed since the last call, only a comparison each.
  bool holds(PyObject* const* registers);

  // Another register that holds the same object and must not, by values of all registers; -1: none. fromAll: as it was added.
  template <typename ValueOf>
  int64_t sharedWith(uint32_t reg, bool fromAll, const ValueOf& valueOf) const {
    for (size_t i = 0; i < (fromAll ? registers_.size() : fromAllCount_); i++)
      if (registers_[i] != reg && valueOf(registers_[i]) == valueOf(reg)) return registers_[i];
    return -1;
  }

 private:
  std::vector<uint32_t> registers_;  // those that differ from all first
  size_t fromAllCount_ = 0;
  std::vector<PyObject*> last_;  // what they held when that was found to be right; only compared
};

}  // namespace cdynamo
