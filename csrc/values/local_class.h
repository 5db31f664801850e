// Classes that the traced program makes. A class is a new object in every call, so the trace has a model of it: a real class, made
// at capture time, that lookups go through as through any other. What the model's namespace holds stands for values of the trace
// (Trace::models). Where the class leaves the frame, the emitted code makes it anew.
#pragma once
#include <vector>

#include "base/ref.h"
#include "values/value.h"

namespace cdynamo {

struct LocalClass {
  struct Entry {
    ObjectRef name;  // null: value(class, *args) was called, a decorator that changes the class
    Value* value;    // null: deleted
    std::vector<Value*> args = {};
  };
  // The class is meta(name, bases, entries), or what a function of the library gives for constants.
  Value* meta = nullptr;
  ObjectRef name;
  std::vector<Value*> bases;
  std::vector<Entry> entries;  // the namespace that it was made of
  bool hooked = false;         // an __init_subclass__ of its bases was traced
  Value* factory = nullptr;
  std::vector<Value*> args;
  std::vector<Entry> keywords;
  std::vector<Entry> writes;  // what was done to it since, in order
};

}  // namespace cdynamo
