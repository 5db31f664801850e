// A vector with room for N elements inside itself, for trivially copyable elements (sizes, strides, operands).
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace cdynamo {

template <typename T, uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) { assign(items.begin(), static_cast<uint32_t>(items.size())); }
  SmallVector(const T* items, uint32_t count) { assign(items, count); }
  SmallVector(uint32_t count, T fill) {
    reserve(count);
    for (uint32_t i = 0; i < count; i++) push_back(fill);
  }
  SmallVector(const SmallVector& other) { assign(other.data(), other.size_); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      size_ = 0;
      assign(other.data(), other.size_);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~SmallVector() = default;

  T* data() { return heap_ ? heap_.get() : inline_; }
  const T* data() const { return heap_ ? heap_.get() : inline_; }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](uint32_t i) { return data()[i]; }
  const T& operator[](uint32_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(T item) {
    if (size_ == capacity_) reserve(capacity_ * 2);
    data()[size_++] = item;
  }
  void pop_back() { size_--; }
  void clear() { size_ = 0; }
  void resize(uint32_t count, T fill = T{}) {
    reserve(count);
    for (uint32_t i = size_; i < count; i++) data()[i] = fill;
    size_ = count;
  }
  void insert(uint32_t at, T item) {
    push_back(item);
    std::memmove(data() + at + 1, data() + at, (size_ - 1 - at) * sizeof(T));
    data()[at] = item;
  }
  void erase(uint32_t at) {
    std::memmove(data() + at, data() + at + 1, (size_ - at - 1) * sizeof(T));
    size_--;
  }
  void assign(const T* items, uint32_t count) {
    reserve(count);
    if (count) std::memcpy(data(), items, count * sizeof(T));
    size_ = count;
  }
  void reserve(uint32_t wanted) {
    if (wanted <= capacity_) return;
    auto bigger = std::make_unique<T[]>(wanted);
    if (size_) std::memcpy(bigger.get(), data(), size_ * sizeof(T));
    heap_ = std::move(bigger);
    capacity_ = wanted;
  }
  bool operator==(const SmallVector& other) const {
    return size_ == other.size_ && (size_ == 0 || std::memcmp(data(), other.data(), size_ * sizeof(T)) == 0);
  }

 private:
  void take(SmallVector& other) {
    heap_ = std::move(other.heap_);
    capacity_ = heap_ ? other.capacity_ : N;
    size_ = other.size_;
    if (!heap_ && size_) std::memcpy(inline_, other.inline_, size_ * sizeof(T));
    other.size_ = 0;
    other.capacity_ = N;
  }
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  std::unique_ptr<T[]> heap_;
  T inline_[N];
};

}  // namespace cdynamo
