// Where the data of tensors lies.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ref.h"

namespace cdynamo {

// The bytes of a storage that a tensor may read or write; empty where it has no elements or no storage.
struct MemoryExtent {
  const void* storage = nullptr;  // only compared
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool overlaps(const MemoryExtent& other) const { return storage && storage == other.storage && begin < other.end && other.begin < end; }
};

MemoryExtent memoryOf(PyObject* tensor);

// How often it was written to; -1: it does not count (inference mode).
int64_t versionOf(PyObject* tensor);
bool requiresGrad(PyObject* tensor);
bool isLeaf(PyObject* tensor);

// The first number from `from` on for which tensor values[registers[i]] has another storage than storages[i], or `count`.
size_t firstMoved(PyObject* const* values, const uint32_t* registers, const void* const* storages, size_t from, size_t count);

}  // namespace cdynamo
