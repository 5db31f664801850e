// Objects that a capture names without keeping them alive: instances, and classes and functions that no module holds. Once one of them
// has died the capture can never be used again.
#pragma once
#include <memory>
#include <unordered_map>

#include "base/ref.h"

namespace cdynamo {

class Mortals {
 public:
  // False for what lives as long as its module does, and for what no weak reference can be made to.
  static bool canDie(PyObject* object);
  // A tuple, to which no weak reference can be made, with something inside that can die: who keeps it keeps that alive.
  static bool keepsAlive(PyObject* object);

  // Throws PythonError.
  void watch(PyObject* object);
  bool isWatched(PyObject* object) const { return watchers_.count(object) != 0; }
  bool areAlive() const { return *alive_; }
  bool empty() const { return watchers_.empty(); }

  // A key as guards compare with it: a name of an object that can die, which is watched from now on; a tuple with names in their places;
  // all else is the key itself. Throws PythonError.
  ObjectRef named(PyObject* key);

 private:
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  ObjectRef onDeath_;
  std::unordered_map<PyObject*, ObjectRef> watchers_;  // weak references
};

// A name stands for one object, by identity, without holding it. It equals that object.
bool isName(PyObject* object);
bool isNameOf(PyObject* name, PyObject* object);

}  // namespace cdynamo
