// How a value is reached from a frame's inputs. Sources are interned: equal sources are the same pointer.
//
// A source is evaluated in C++ by the guard program (guards/), once per call, before the graph runs; the values that
// the compiled code needs are handed to it, so no source is ever walked by emitted bytecode.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ref.h"

namespace cdynamo {

enum class SourceKind : uint8_t {
  Local,         // index: slot of the root frame's bound arguments
  Function,      // the function object that is being called
  ClosureCell,   // index: cell object number i of the function's closure
  CellContents,  // base is a cell object: what it holds
  Pinned,        // object: known to the capture itself (types, functions found on types, modules, globals dictionaries); index 1: it owns it
  InstanceDict,  // base.__dict__, the real dictionary of an instance
  DictItem,      // dict.__getitem__(base, object), also for subclasses of dict; object is a hashable constant
  KeyedItem,     // the item of dict base whose key is the object `other`, of a type that hashes by identity, or a TupleWith
  SequenceItem,  // item number index of a list or tuple (or a subclass), read as CPython's C code does
  Attr,          // getattr(base, object), only where that runs no Python code (slots, C descriptors, module attributes)
  Type,          // type(base)
  DequeItem,     // item number index of a collections.deque
  WeakReferent,  // base is a weakref.ref: the object it points to, or None
  Arithmetic,    // base OP other, both ints or floats; index: an Arithmetic
  Handled,       // the exception that the caller of the traced function is handling, or None
  NumberTensor,  // base is an int or float: a new tensor of no dimension, int64 or float64, on the CPU
  IteratorItem,  // item number index that the iterator base will give (cpython/iterators.h); it is not moved
  IteratorPart,  // part number index of an iterator: what it goes over, the iterators of a zip, ...
  ArrayTensor,   // base is a numpy.ndarray: a tensor that shares its memory
  TupleWith,     // base is a tuple: a new one with the object `other` behind its items
  LruCache,      // base is a functools.lru_cache: the dict of what it keeps (cpython/lru_cache.h)
  LruResult,     // base is an item of such a dict: the result that it stands for
};

// What can be computed from numbers of the frame's inputs. All exact, by CPython's own rules.
// The comparisons are in the order of Py_LT ... Py_GE.
enum class Arithmetic : int32_t { Add, Sub, Mul, FloorDiv, Mod, TrueDiv, Less, LessEqual, Equal, NotEqual, Greater, GreaterEqual };

struct Source {
  SourceKind kind;
  int32_t index = 0;  // position in the table's order of creation is `id`; this is the kind's own number
  int32_t id = 0;
  const Source* base = nullptr;   // null for roots
  PyObject* object = nullptr;     // borrowed: the table owns it
  const Source* other = nullptr;  // Arithmetic: the right operand; KeyedItem: the key; TupleWith: the item

  // Of a pinned object: nobody else may hold it. All others die where the program lets go of them, and the capture with them.
  bool owned() const { return index != 0; }
};

// SourceTable::name without the table: for those who keep copies of sources. rootGlobals is only compared.
std::string sourceName(const Source* source, const std::vector<std::string>& localNames, PyObject* rootGlobals);

// Owns the sources of one capture, and the objects they name.
class SourceTable {
 public:
  // localNames: the root frame's variable names by slot; used for names such as L['x'].
  explicit SourceTable(std::vector<std::string> localNames = {}, PyObject* rootGlobals = nullptr);

  const Source* local(int32_t slot);
  const Source* function();
  const Source* closureCell(int32_t i);
  const Source* pinned(PyObject* object);
  const Source* owned(PyObject* object);
  const Source* cellContents(const Source* base);
  const Source* instanceDict(const Source* base);
  const Source* dictItem(const Source* base, PyObject* key);
  const Source* keyedItem(const Source* base, const Source* key);
  const Source* sequenceItem(const Source* base, int32_t i);
  const Source* dequeItem(const Source* base, int32_t i);
  const Source* attr(const Source* base, PyObject* name);
  const Source* type(const Source* base);
  const Source* weakReferent(const Source* base);
  const Source* arithmetic(Arithmetic op, const Source* left, const Source* right);
  const Source* numberTensor(const Source* base);
  const Source* iteratorItem(const Source* base, int32_t i);
  const Source* iteratorPart(const Source* base, int32_t i);
  const Source* arrayTensor(const Source* base);
  const Source* tupleWith(const Source* base, const Source* item);
  const Source* lruCache(const Source* base);
  const Source* lruResult(const Source* base);
  const Source* handled();

  // Python-like text in torch's spelling: L['x'], G['w'], L['self']._modules['lin']._parameters['weight'].
  std::string name(const Source* source) const;
  size_t size() const { return sources_.size(); }
  const std::vector<std::string>& localNames() const { return localNames_; }
  PyObject* rootGlobals() const { return rootGlobals_; }

 private:
  const Source* intern(SourceKind kind, int32_t index, const Source* base, PyObject* object, const Source* other = nullptr);
  struct Key {
    SourceKind kind;
    int32_t index;
    const Source* base;
    PyObject* object;
    const Source* other;
    bool operator==(const Key& o) const { return kind == o.kind && index == o.index && base == o.base && object == o.object && other == o.other; }
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      size_t h = (reinterpret_cast<size_t>(k.base) * 31 + reinterpret_cast<size_t>(k.other)) * 31 + reinterpret_cast<size_t>(k.object);
      return (h ^ (h >> 17)) * 0x9E3779B97F4A7C15ull + static_cast<size_t>(k.index) * 131 + static_cast<size_t>(k.kind);
    }
  };
  std::deque<Source> sources_;
  std::vector<ObjectRef> owned_;
  std::unordered_map<Key, const Source*, KeyHash> interned_;
  std::vector<std::string> localNames_;
  PyObject* rootGlobals_;  // borrowed
};

}  // namespace cdynamo
