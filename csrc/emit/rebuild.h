// Makes symbolic values real: bytecode that rebuilds every object once, its identity kept.
//
// The code that is written takes (graph inputs, objects) and holds the graph's outputs in a third local. An object is made
// first and filled later, when everything that it may lead back to has been made: so cycles close, and depth costs no stack.
#pragma once
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
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
  // A new list or tuple of them; long ones are made piece by piece, so that the stack stays low.
  void loadList(const std::vector<Value*>& items);
  void loadTuple(const std::vector<Value*>& items);
  // An object that the guard program reads.
  void loadObject(const Source* s);

  // object.__setattr__(self, attribute, v), or __delattr__ where v is null.
  void setAttribute(Value* self, PyObject* attribute, Value* v);
  // Adds the items of `contents` to `self` by the methods of `base`.
  void fillContents(Value* self, HeapValue* contents, PyTypeObject* base);
  // Replays what the trace did to an existing object, once.
  void writeBack(HeapValue* h);

  // What a generator that waits at a yield holds: its slots, its stack, the exception that it handles. Null: unbound.
  static std::vector<Value*> heldBy(const GeneratorValue* g);

  // Number of the graph output that is this node.
  int outputOf(Node* node);
  // True where loading it again makes nothing.
  bool isBuilt(Value* v) const { return v->source || isLeaf(v) || temps_.count(v) != 0; }

  [[noreturn]] void refuse(Value* v, const char* why = "");

  PyObject* keep(ObjectRef object) { return t.keep(std::move(object)); }
  PyObject* number(long long n);
  PyObject* name(const char* text);

  Trace& t;
  Assembler a;
  std::vector<const Source*> objects;  // what the second argument holds
  std::vector<int> earlySlots;         // locals with what the early calls gave

 private:
  // ---- temporaries: what was made ----
  int newTemp();
  void storeTemp(Value* v);  // [.., object] -> [.., object]
  void loadTemp(Value* v);
  bool loadKnown(Value* v);  // false: not made yet
  bool isLeaf(Value* v) const;

  // ---- filling ----
  void later(std::function<void()> fill) { fills_.push_back(std::move(fill)); }
  void fillAll();

  // ---- one kind each; all push the object and remember it ----
  void make(Value* v);
  void makeReal(Value* v);
  void makeList(ListValue* l);
  void makeTuple(TupleValue* v, PyTypeObject* type);
  void makeDict(DictValue* d);
  void makeSet(SetValue* s);
  void replay(Value* self, SetValue* s);
  void makeFunction(FunctionValue* fn);
  void makeBoundMethod(BoundMethodValue* m);
  void makeInstance(InstanceValue* i);
  void makePartial(InstanceValue* i);
  void fillAttributes(InstanceValue* i);

  // Makes a key whose __hash__ is Python code, with all that it looks at.
  void completeKey(const DictKey& k);
  // self[key] = value by the method of `base`; d: the dict that self is, or holds.
  void storeItem(Value* self, DictValue* d, const DictEntry& e, PyTypeObject* base);
  void writeBackKey(Value* v, int depth = 0);

  // rebuild_classes.cpp
  void makeClass(Value* v);
  void writeClass(Value* cls, const LocalClass::Entry& entry);
  void loadType(PyTypeObject* type);

  // rebuild_exceptions.cpp
  void makeException(InstanceValue* i);
  void makeRealException(Value* v);
  void makeTraceback(Value* v);
  void addTraceback(Value* exception);
  bool canLoad(Value* v, int depth = 0) const;  // for certain

  // rebuild_iterators.cpp
  void makeIterator(IteratorValue* it);
  void makeSequenceIterator(IteratorValue* it);
  void makeReversed(IteratorValue* it);
  void makeDictIterator(IteratorValue* it);
  void makeGroups(InstanceValue* i);
  void moveExisting(IteratorValue* it);
  bool makeStandIn(InstanceValue* i);       // false: no object of the library can be made of it
  bool makeKeyFunction(FunctionValue* fn);  // functools.cmp_to_key; false: another function
  void loadInner(Value* iterator);          // of zip, map, ...: iter() must give it back as it is
  void advance(int64_t count);              // [.., iterator] -> [.., iterator]
  void setPosition(int64_t position);       // __setstate__ on the iterator on top
  void loadComplete(HeapValue* h);          // with all that it will hold
  void loadItertool(const char* name);

  // rebuild_generators.cpp
  void makeGenerator(GeneratorValue* g);
  void makeFreshGenerator(GeneratorValue* g);
  void placeExisting(GeneratorValue* g);
  Value* selfForSuper(const FrameState& f);

  // effects.cpp
  void writeDict(DictValue* d);
  void callOn(PyTypeObject& type, const char* method, HeapValue* h);

  std::unordered_map<const Source*, size_t> objectAt_;  // their places in `objects`
  std::unordered_map<Value*, int> temps_;
  std::unordered_map<PyObject*, int> freshTemps_;  // by the object that the trace itself held
  std::unordered_map<Value*, int> teeBases_;       // by the list of items that all branches share
  std::unordered_set<Value*> making_;              // not yet made: met again, no cycle can be closed
  std::unordered_set<HeapValue*> written_;
  std::deque<std::function<void()>> fills_;
  int depth_ = 0;
};

}  // namespace cdynamo
