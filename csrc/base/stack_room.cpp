#include "base/stack_room.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cdynamo {

namespace {

// Enough for what CPython and ATen do below one more call.
constexpr size_t kReserve = 512 * 1024;

struct StackBounds {
  uintptr_t low = 0;
  uintptr_t reserveEnd = 0;

  StackBounds() {
#if defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* address = nullptr;
    size_t size = 0;
    if (pthread_attr_getstack(&attributes, &address, &size) == 0) {
      low = reinterpret_cast<uintptr_t>(address);
      reserveEnd = low + std::min(kReserve, size / 4);
    }
    pthread_attr_destroy(&attributes);
#endif
  }
};

}  // namespace

bool stackIsNearlyFull() {
  static thread_local const StackBounds bounds;
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here >= bounds.low && here < bounds.reserveEnd;
}

}  // namespace cdynamo
