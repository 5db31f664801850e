// Every change of trace state goes through here, so that a checkpoint is a position and a break is a rollback to it.
#pragma once
#include <functional>
#include <utility>
#include <vector>

namespace cdynamo {

class Journal {
 public:
  // Writes a field now and remembers the old value.
  template <typename T, typename U>
  void set(T& field, U&& value) {
    undo_.emplace_back([&field, old = field]() { field = old; });
    field = std::forward<U>(value);
  }
  // Remembers how to undo what the caller is about to do.
  template <typename F>
  void onRollback(F&& undo) {
    undo_.emplace_back(std::forward<F>(undo));
  }

  size_t position() const { return undo_.size(); }
  void rollBack(size_t position) {
    while (undo_.size() > position) {
      auto undo = std::move(undo_.back());
      undo_.pop_back();
      undo();
    }
  }

 private:
  std::vector<std::function<void()>> undo_;
};

}  // namespace cdynamo
