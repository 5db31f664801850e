// Makes symbolic values real: bytecode that rebuilds every object once, its identity kept.
//
// The code that is written takes (graph inputs, objects) and holds the graph's outputs in a third local.
#pragma once
#include <unordered_map>
#include <vector>

#include "bytecode/assembler.h"
#include "values/trace.h"

namespace cdynamo {

// What the type's MRO has under a name that must exist. Borrowed.
PyObject* attributeOf(PyTypeObject& type, const char* name);

class Rebuilder {
 public:
  enum Slot : int { kInputs, kObjects, kOutputs };

  Rebuilder(Trace& trace, PyCodeObject* like);

  // [..] -> [.., v]. Throws Unsupported(Unreconstructable).
  void load(Value* v);
  void loadAll(const std::vector<Value*>& items);
  // An object that the guard program reads.
  void loadObject(const Source* s);

  // object.__setattr__(self, attribute, v), or __delattr__ where v is null.
  void setAttribute(Value* self, PyObject* attribute, Value* v);
  // Adds the items of `contents` to `self` by the methods of `base`.
  void fillContents(Value* self, HeapValue* contents, PyTypeObject* base);

  // Number of the graph output that is this node.
  int outputOf(Node* node);
  bool isBuilt(Value* v) const { return temps_.count(v) != 0; }

  [[noreturn]] void refuse(Value* v);

  PyObject* keep(ObjectRef object) { return t.keep(std::move(object)); }
  PyObject* number(long long n);
  PyObject* name(const char* text);
  PyObject* builtin(const char* text);

  Trace& t;
  Assembler a;
  std::vector<const Source*> objects;  // what the second argument holds

 private:
  void storeTemp(Value* v);
  bool loadTemp(Value* v);
  void loadValue(Value* v);
  // A constant; but an object with an identity of its own that the trace made is made anew in every call.
  void loadReal(Value* v);
  void loadTuple(TupleValue* v);
  void addTraceback(Value* exception);
  void loadDict(DictValue* d);
  void loadFunction(FunctionValue* fn);
  void loadInstance(InstanceValue* i);
  void loadIterator(IteratorValue* it);

  std::unordered_map<Value*, int> temps_;
  int depth_ = 0;
};

}  // namespace cdynamo
