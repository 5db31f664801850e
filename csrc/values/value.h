// Symbolic values. A value is a real Python object, a tensor (graph node + metadata), or a heap object: a mutable or
// composite thing whose parts are values. Values live in the trace's arena and are passed as plain pointers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "graph/graph.h"
#include "shapes/tensor_meta.h"
#include "source/source.h"
#include "values/effects.h"

namespace cdynamo {

class Trace;
struct FrameState;

enum class Kind : uint8_t {
  Real,  // a real Python object: constants, types, functions, modules, anything that is only looked at
  Tensor,
  List,      // also collections.deque, by type
  Tuple,     // also named tuples and torch.Size, by type
  Dict,      // also OrderedDict and defaultdict, by type
  Set,       // also frozenset, by type
  Instance,  // of a Python class, existing or made by the trace
  Cell,
  Function,  // made by the trace (MAKE_FUNCTION)
  BoundMethod,
  Slice,
  Iterator,
  Generator,
  Super,
  DictView,  // keys, values, items
  Property,  // descriptors made by the trace: property, staticmethod, classmethod
  Number,    // an int, float or bool that only the run of the capture knows
  Array,     // a numpy.ndarray: a tensor of the graph that Python sees as an array
  Unbound,   // the marker for an unbound local on the stack
};

struct Value {
  explicit Value(Kind k) : kind(k) {}
  Value(const Value&) = delete;
  virtual ~Value() = default;
  const Kind kind;
  const Source* source = nullptr;  // how to reach it from the frame's inputs; null: made by the trace or a constant
};

// The object is owned by the value. Where source is set, nothing about it has been guarded until it is observed.
struct RealValue final : Value {
  explicit RealValue(ObjectRef o) : Value(Kind::Real), object(std::move(o)) {}
  ObjectRef object;
  // An int or float that differs from call to call: `object` is an example. What is computed from it has a source of
  // its own (SourceKind::Arithmetic) and is open too, until somebody asks for the constant.
  bool open = false;
};

struct TensorValue final : Value {
  TensorValue() : Value(Kind::Tensor) {}
  Node* node = nullptr;  // null for an input that no operation used yet
  TensorMeta meta;
  PyTypeObject* type = nullptr;  // torch.Tensor, Parameter, a subclass; borrowed (kept by the trace)
  PyObject* real = nullptr;      // an input: the real tensor, borrowed (kept by the caller during the capture)
  TensorValue* base = nullptr;   // of a view
  bool viewed = false;           // is the base of one
  bool observed = false;         // its metadata is guarded (inputs)
  bool written = false;          // the graph writes to its data (inputs)
  // Python attributes set by the trace, name -> value.
  std::vector<std::pair<ObjectRef, Value*>> attrs;
};

// The tensor that a view is a view of in the end; the tensor itself where it is none.
inline TensorValue* rootOf(TensorValue* tensor) {
  while (tensor->base) tensor = tensor->base;
  return tensor;
}

// Read from a tensor in the graph, computed there from such numbers, or given by a call that is made before the graph (a draw of
// Python's random). Who needs its value breaks; Trace::constant says so.
struct NumberValue final : Value {
  explicit NumberValue(PyTypeObject* t) : Value(Kind::Number), type(t) {}
  PyTypeObject* type;      // int, float or bool
  Node* node = nullptr;    // null: no operation used what the early call gave
  int32_t earlyCall = -1;  // number of the early call that gives it
};

// The array and the tensor share their memory. A numpy scalar is one too: it has no dimension, and nobody writes to it.
struct ArrayValue final : Value {
  explicit ArrayValue(TensorValue* t) : Value(Kind::Array), tensor(t) {}
  TensorValue* tensor;
  PyObject* real = nullptr;      // an input: the real array, borrowed (kept by the trace)
  PyTypeObject* type = nullptr;  // numpy.ndarray, or the scalar's class; borrowed (kept by the trace)
};

// What can be changed. `real` is the existing object it stands for (owned), or null where the trace made it.
struct HeapValue : Value {
  using Value::Value;
  ObjectRef real;
  PyTypeObject* type = nullptr;  // exact Python type; kept by the trace
  bool mutated = false;          // a write must be replayed on `real`
  int32_t serial = 0;            // order of creation
  HeapValue* holder = nullptr;   // the instance whose inherited part this is
};

// The object that a list, dict, ... is: itself, or the instance of a subclass around it.
inline HeapValue* holderOf(HeapValue* h) { return h->holder ? h->holder : h; }

struct ListValue final : HeapValue {
  ListValue() : HeapValue(Kind::List) {}
  std::vector<Value*> items;
  bool loaded = true;   // false: items of `real` not read yet, and `items` are those appended since
  int64_t maxlen = -1;  // collections.deque: its bound, -1 for none
  int64_t resizes = 0;  // how often its length was changed: a deque's iterators ask
};

struct TupleValue final : HeapValue {
  TupleValue() : HeapValue(Kind::Tuple) {}
  std::vector<Value*> items;
  bool loaded = true;
  ObjectRef constant;  // the real tuple, where all items are constants and somebody asked
};

// A key of a symbolic dict or set. Constants compare by value, everything else by identity of the value; where the key's class has
// its own __eq__, Trace::resolve has asked that before.
struct DictKey {
  Value* value = nullptr;
  PyObject* constant = nullptr;  // borrowed; null: identity
  Py_hash_t hash = 0;
  bool asked = false;    // hashed and compared by Python code
  bool effects = false;  // and its __hash__ changed something
};
struct DictKeyHash {
  size_t operator()(const DictKey& k) const { return static_cast<size_t>(k.hash); }
};
struct DictKeyEqual {
  bool operator()(const DictKey& a, const DictKey& b) const;
};

struct DictEntry {
  DictKey key;
  Value* value = nullptr;  // null: deleted, or known to be absent in `real`
  bool written = false;    // differs from what `real` holds
};

// Insertion-ordered; entries are never erased from the vector while tracing, only marked.
struct DictValue final : HeapValue {
  DictValue() : HeapValue(Kind::Dict) {}
  std::vector<DictEntry> entries;
  std::unordered_map<DictKey, size_t, DictKeyHash, DictKeyEqual> index;
  size_t live = 0;       // entries with a value
  bool complete = true;  // false: `real` may hold keys that nobody asked for yet
  bool asks = false;     // holds keys that are compared by Python code
  Value* defaultFactory = nullptr;
  DictValue* attributes = nullptr;  // of an OrderedDict: its own __dict__, made on first use
  HeapValue* instance = nullptr;    // of an instance that the trace made: whose __dict__ this is
  PyTypeObject* ofClass = nullptr;  // the existing class whose namespace this is; borrowed
  // Another number after each insertion and each deletion; the dict is complete.
  int64_t state() const { return 2 * static_cast<int64_t>(entries.size()) - static_cast<int64_t>(live); }
};

struct SetValue final : HeapValue {
  SetValue() : HeapValue(Kind::Set) {}
  // What was done to it since it was `start` (or empty), or since it was `real`: done again, CPython's order comes out again.
  struct Change {
    enum What : uint8_t { Add, Discard, Merge, Call } what;
    DictKey key;
    PyObject* merged = nullptr;  // Merge: a frozenset; Call: a tuple of set's method and its arguments; borrowed from the trace
  };
  std::vector<DictKey> items;  // in no order that matters
  std::vector<Change> history;
  ObjectRef start;         // a set that CPython made; nobody else has it
  bool replayable = true;  // `history` says what the program did: CPython's order is known
  bool orderGuarded = false;
  bool asks = false;  // holds items that are compared by Python code
  std::unordered_map<DictKey, size_t, DictKeyHash, DictKeyEqual> index;
  bool loaded = true;
};

// An object of a Python class (or of a C class that we model by attributes). Attributes are the entries of its
// instance dictionary; slots live beside it; `contents` holds the inherited part of a subclass of dict, list, ...
struct InstanceValue final : HeapValue {
  InstanceValue() : HeapValue(Kind::Instance) {}
  DictValue* dict = nullptr;                        // made on first use
  std::vector<std::pair<ObjectRef, Value*>> slots;  // descriptor name -> value; null value: deleted
  HeapValue* contents = nullptr;                    // ListValue, DictValue, TupleValue, SetValue
  Value* exceptionArgs = nullptr;                   // exceptions: the args tuple
  Value* core = nullptr;                            // subclasses of int, str, ...: the plain value
  std::unique_ptr<LateCall> lateText;               // a str that shows tensors: made after the graph
  bool isReferenced = false;                        // the trace has made a weak reference to it
};

struct CellValue final : HeapValue {
  CellValue() : HeapValue(Kind::Cell) {}
  Value* contents = nullptr;  // null: empty
  bool loaded = true;
};

struct FunctionValue final : HeapValue {
  FunctionValue() : HeapValue(Kind::Function) {}
  PyObject* code = nullptr;     // borrowed from the enclosing code's constants
  PyObject* globals = nullptr;  // borrowed
  Value* defaults = nullptr;    // tuple
  Value* kwdefaults = nullptr;  // dict
  Value* annotations = nullptr;
  Value* closure = nullptr;    // tuple of cells
  DictValue* dict = nullptr;   // attributes set on it (functools.wraps)
  DictValue* names = nullptr;  // __name__, __qualname__, __module__ and __doc__ that were set
};

struct BoundMethodValue final : Value {
  BoundMethodValue(Value* f, Value* s) : Value(Kind::BoundMethod), function(f), self(s) {}
  Value* function;
  Value* self;
};

struct SliceValue final : Value {
  SliceValue(Value* a, Value* b, Value* c) : Value(Kind::Slice), start(a), stop(b), step(c) {}
  Value *start, *stop, *step;
};

struct SuperValue final : Value {
  SuperValue(PyTypeObject* t, Value* s, PyTypeObject* st) : Value(Kind::Super), thisClass(t), self(s), startType(st) {}
  PyTypeObject* thisClass;
  Value* self;
  PyTypeObject* startType;  // type(self), or self itself where it is a class
};

struct PropertyValue final : Value {
  PropertyValue(PyTypeObject* t, Value* f) : Value(Kind::Property), type(t), get(f) {}
  PyTypeObject* type;
  Value* get;
  // Of a property; null: not given.
  Value *set = nullptr, *del = nullptr, *doc = nullptr;
};

struct DictViewValue final : Value {
  enum What : uint8_t { Keys, Values, Items };
  DictViewValue(HeapValue* o, What w) : Value(Kind::DictView), owner(o), what(w) {}
  HeapValue* owner;  // DictValue
  What what;
};

// Iterators over what the trace knows; position is written through the journal.
struct IteratorValue final : HeapValue {
  enum What : uint8_t {
    Sequence,  // over a list or tuple; inputs: the set whose items the list holds
    Range,
    Zip,
    Enumerate,
    Map,
    Filter,  // strict: filterfalse
    Chain,   // subjectOf: the iterator over iterables; subject: the one that is read now
    DictItems,
    Repeat,
    Count,
    Islice,
    CallIter,
    Reversed,  // subject: a list; subjectOf: what it was made of; stop: the index that it started from, or the dict's length
    ItemProtocol,
    Cycle,       // subject: the list of saved items; strict: past the first round
    Accumulate,  // subjectOf: the total; strict: it is an initial value, not given yet
    StarMap,
    TakeWhile,
    DropWhile,  // strict: dropping has ended
    Compress,
    Pairwise,    // subject: the previous item
    Rows,        // product, permutations, combinations: inputs are the pools, rows their indices; strict: stop is `repeat`
    ZipLongest,  // inputs: null where exhausted; subject: the fill value; position: how many are not exhausted
    Existing,    // `real`, one of CPython's own: position: how many items were taken; done: and then its end was met
  };
  explicit IteratorValue(What w) : HeapValue(Kind::Iterator), what(w) {}
  What what;
  Value* subject = nullptr;    // Sequence: the list or tuple; Map/Filter: the function; ...
  Value* subjectOf = nullptr;  // Sequence: what was iterated over, where that was neither list nor tuple
  std::vector<Value*> inputs;  // Zip, Map, Chain, Islice, Enumerate: inner iterators or iterables; an existing enumerate: and its number
  int64_t position = 0;
  int64_t given = 0;  // DictItems: how many items it gave
  int64_t stop = -1;  // DictItems: the dict's length; over a deque: its resizes
  int64_t step = 1;
  bool strict = false;
  bool done = false;
  ObjectRef rows;  // Rows: a list, [iterator of index tuples, those it gave so far ...]
};

struct GeneratorValue final : HeapValue {
  GeneratorValue() : HeapValue(Kind::Generator) {}
  FrameState* frame = nullptr;  // owned by the trace
  bool started = false;
  bool running = false;
  bool finished = false;
  Value* function = nullptr;
  Value* handled = nullptr;  // the exception that it handles where it stands
};

struct UnboundValue final : Value {
  UnboundValue() : Value(Kind::Unbound) {}
};

template <typename T>
inline T* as(Value* v) {
  return static_cast<T*>(v);
}

inline bool isReal(const Value* v) { return v->kind == Kind::Real; }
inline bool isOpen(const Value* v) { return v->kind == Kind::Real && static_cast<const RealValue*>(v)->open; }
inline bool isTensor(const Value* v) { return v->kind == Kind::Tensor; }
inline bool isNumber(const Value* v) { return v->kind == Kind::Number; }
inline bool isArray(const Value* v) { return v->kind == Kind::Array; }
inline PyObject* realObject(const Value* v) { return static_cast<const RealValue*>(v)->object.get(); }
inline bool isReal(const Value* v, PyObject* object) { return v->kind == Kind::Real && realObject(v) == object; }
// The object that a constant or an instance is; null: none that was there before the trace.
inline PyObject* existing(Value* v) { return isReal(v) ? realObject(v) : v->kind == Kind::Instance ? as<InstanceValue>(v)->real.get() : nullptr; }

}  // namespace cdynamo
