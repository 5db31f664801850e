// Settings of torch that the traced program changes: each is set for real while tracing, and put back by a rollback and when
// the trace ends.
#pragma once
#include <string>
#include <vector>

#include "base/ref.h"
#include "values/journal.h"

namespace cdynamo {

// A call that gives a setting its value.
struct SettingCall {
  ObjectRef function;
  ObjectRef args;    // tuple of constants
  ObjectRef kwargs;  // dict, or null
};

class Settings {
 public:
  explicit Settings(Journal& journal) : journal_(journal) {}
  Settings(const Settings&) = delete;
  ~Settings() { restore(); }

  struct Change {
    std::string name;
    SettingCall before;  // what sets it as it was when the trace began
    SettingCall now;
    bool inGraph;  // operations depend on it: the graph sets it too
  };
  // `now` was called by the program; `before` would undo that.
  void change(const std::string& name, SettingCall before, SettingCall now, bool inGraph = true);
  bool isChanged(const std::string& name) const;
  // Those that are not as they were when the trace began.
  const std::vector<Change>& changed() const { return changed_; }
  // Puts all back. Nothing is changed then.
  void restore();

 private:
  Journal& journal_;
  std::vector<Change> changed_;
};

}  // namespace cdynamo
