// What a capture relied on. The interpreter records facts when it observes them; the guard program checks them.
#pragma once
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ref.h"
#include "shapes/tensor_meta.h"
#include "source/place.h"

namespace cdynamo {

enum class FactKind : uint8_t {
  TypeIs,           // type(source) is object
  IdentityIs,       // source is object
  IdentityIsNot,    // source is not object (mostly: is not None)
  EqualsConstant,   // same exact type and same value as object (floats bit for bit; tuples, frozensets, ranges, slices by item)
  Length,           // raw C length of a list, tuple, dict, set, frozenset or deque (or a subclass) is number
  LengthAtMost,     // and is not above number
  DictLacks,        // dict source has no key object
  LacksKey,         // dict source has no key that is the object otherSource
  Distinct,         // source is none of the other sources with such a fact; number 0: only of those that have number 1
  Present,          // source, an item of a dict, can be read
  DictKeys,         // dict source has exactly the keys of tuple object, in that order
  SetEquals,        // set source equals the frozenset object
  SetOrder,         // set source gives the items of tuple object, in that order
  TypeLookup,       // object is a type, name a str: the lookup of name along the MRO gives `expected` (null: nothing)
  Mro,              // object is a type whose MRO has the classes of tuple expected, in that order
  FunctionIs,       // source is a function with code object `object`; number: it has __defaults__ (1), __kwdefaults__ (2)
  Tensor,           // source is a tensor of exactly type `object`, with metadata tensors[number]
  SameObject,       // source is otherSource
  DistinctObjects,  // source is not otherSource
  LacksAttr,        // the slot or C attribute `object` of source is unset
  AbcToken,         // abc.get_cache_token() is what it was when the guards were built (an isinstance answer came from an ABC)
  DynamicBranch,    // bool(source) is number (only truth was looked at; source is an exact builtin scalar or str)
  Written,          // the graph writes to tensor source: it overlaps with no other graph input but as an Overlap fact says
  Overlap,          // the data of tensors source and otherSource overlap, number bytes apart
  IntRange,         // number <= source <= upper, source being an exact int; the ends of int64 mean no bound
  IteratorTraits,   // iteratorTraits(source) is number
  IteratorEnds,     // iterator source gives `number` items more and then ends; upper: it still knows what it goes over
};

// In torch's spelling: TENSOR_MATCH, EQUALS_MATCH, ...
const char* factLabel(FactKind kind);

struct Fact {
  FactKind kind;
  const Source* source = nullptr;  // null for facts about pinned types
  const Source* otherSource = nullptr;
  ObjectRef object{};
  ObjectRef name{};
  ObjectRef expected{};
  int64_t number = 0;
  int64_t upper = 0;
  const TracePlace* place = nullptr;  // where it was observed, for messages
};

// Append-only with truncation, so that a checkpoint is a position. Duplicates are not stored twice.
class FactList {
 public:
  void typeIs(const Source* s, PyTypeObject* type);
  void identityIs(const Source* s, PyObject* object);
  void identityIsNot(const Source* s, PyObject* object);
  void equalsConstant(const Source* s, PyObject* constant);
  void length(const Source* s, Py_ssize_t n);
  void lengthAtMost(const Source* s, Py_ssize_t n);
  void dictLacks(const Source* s, PyObject* key);
  void present(const Source* item);
  void dictKeys(const Source* s, PyObject* keysTuple);
  void setEquals(const Source* s, PyObject* frozen);
  void setOrder(const Source* s, PyObject* itemsTuple);
  void typeLookup(PyTypeObject* type, PyObject* name, PyObject* expectedOrNull);
  void mro(PyTypeObject* type);
  void functionIs(const Source* s, PyObject* function);
  void tensor(const Source* s, PyTypeObject* type, const TensorMeta& meta);
  void sameObject(const Source* a, const Source* b);
  void lacksKey(const Source* dict, const Source* key);
  void distinct(const Source* s, bool fromAll);
  void distinctObjects(const Source* a, const Source* b);
  void lacksAttr(const Source* s, PyObject* name);
  void written(const Source* s);
  void overlap(const Source* a, const Source* b, int64_t distance);
  void abcToken();
  void truth(const Source* s, bool value);
  // The last one of a source says all that the earlier ones say.
  void intRange(const Source* s, int64_t lower, int64_t upper);
  void iteratorTraits(const Source* s, int64_t traits);
  void iteratorEnds(const Source* s, int64_t count, bool over);

  size_t position() const { return facts_.size(); }
  void truncate(size_t position);  // drops every fact after it, and forgets them in the duplicate filter
  // Drops the facts whose flag is false, for good.
  void keepOnly(const std::vector<bool>& flags);
  const std::vector<Fact>& facts() const { return facts_; }
  const std::vector<TensorMeta>& tensors() const { return tensors_; }
  // Facts are recorded with what `*now` is then.
  void followPlace(const TracePlace* const* now) { placeNow_ = now; }

 private:
  struct KeyEqual;
  void add(Fact fact);
  static uint64_t keyOf(const Fact& fact);
  std::vector<Fact> facts_;
  std::vector<TensorMeta> tensors_;
  std::unordered_set<uint64_t> seen_;
  std::unordered_map<const Source*, std::vector<size_t>> ranges_;  // where a source's IntRange facts are
  const TracePlace* const* placeNow_ = nullptr;
};

}  // namespace cdynamo
