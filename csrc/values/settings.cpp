#include "values/settings.h"

#include "base/error.h"

namespace cdynamo {

namespace {

// Best effort: these calls have been made before, by the program or for it.
void make(const SettingCall& call) {
  ObjectRef done = ObjectRef::steal(PyObject_Call(call.function.get(), call.args.get(), call.kwargs.get()));
  if (!done) PyErr_Clear();
}

bool isSame(const SettingCall& a, const SettingCall& b) {
  if (a.function.get() != b.function.get()) return false;
  auto equal = [](const ObjectRef& x, const ObjectRef& y) {
    if (!x || !y) return !x && !y;
    int same = PyObject_RichCompareBool(x.get(), y.get(), Py_EQ);
    if (same < 0) PyErr_Clear();
    return same == 1;
  };
  return equal(a.args, b.args) && equal(a.kwargs, b.kwargs);
}

}  // namespace

bool Settings::isChanged(const std::string& name) const {
  for (const Change& change : changed_)
    if (change.name == name) return true;
  return false;
}

void Settings::change(const std::string& name, SettingCall before, SettingCall now, bool inGraph) {
  journal_.onRollback([this, old = changed_, before] {
    make(before);
    changed_ = old;
  });
  size_t i = 0;
  while (i < changed_.size() && changed_[i].name != name) i++;
  if (i == changed_.size()) changed_.push_back({name, std::move(before), {}, inGraph});
  changed_[i].now = std::move(now);
  if (isSame(changed_[i].before, changed_[i].now)) changed_.erase(changed_.begin() + static_cast<ptrdiff_t>(i));
}

void Settings::restore() {
  for (size_t i = changed_.size(); i-- > 0;) make(changed_[i].before);
  changed_.clear();
}

}  // namespace cdynamo
