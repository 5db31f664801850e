// The state of one capture: arena, journal, sources, facts, graph, the map from real objects to their symbolic twins.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "guards/facts.h"
#include "source/evaluate.h"
#include "source/source.h"
#include "values/journal.h"
#include "values/local_class.h"
#include "values/return_to.h"
#include "values/settings.h"
#include "values/value.h"

namespace cdynamo {

enum class BreakReason : uint16_t {
#define CD_BREAK(name, number, title, explanation, hints, example) name,
#include "interp/break_reasons.def"
#undef CD_BREAK
};
const char* breakReasonName(BreakReason reason);

// Thrown where the trace cannot go on. `what` says what was tried, in the user's terms.
struct Unsupported {
  BreakReason reason;
  std::string what;
};
[[noreturn]] void unsupported(BreakReason reason, std::string what);

// A Python exception raised by the traced program. `exception` is an instance (Real or Instance value).
struct Raised {
  Value* exception;
  const TracePlace* place = nullptr;  // where it was raised, filled on the way out of the innermost frame
  bool linked = false;                // its context is set, or must stay what it is
};

// The same where no frame of the trace handles it: thrown at the instruction that raised it.
struct Uncaught {
  Value* exception;
  const TracePlace* place;
};

// The program's objects were changed while tracing, as the program would have done it: nothing that was traced holds any more.
struct StartOver {
  ObjectRef done;  // what was changed: not to be done again
};

struct Checkpoint {
  size_t journal = 0;
  size_t facts = 0;
  size_t nodes = 0;
};

struct TraceOptions {
  bool openArguments = false;                        // every int argument is open
  const std::set<std::string>* openNames = nullptr;  // names of sources whose numbers are open
  bool fullgraph = false;                            // breaks are refused
  bool captureScalars = false;                       // .item() and its like go into the graph
  bool errorOnBreak = false;                         // error_on_graph_break, as it stands at this point of the program; journaled
  int maxInlineDepth = 900;
};

class Trace {
 public:
  Trace(std::vector<std::string> localNames, PyObject* rootGlobals);
  ~Trace();

  SourceTable sources;
  FactList facts;
  Graph graph;
  Journal journal;
  Settings settings{journal};
  TraceOptions options;

  // ---- checkpoints ----
  Checkpoint checkpoint() const { return {journal.position(), facts.position(), graph.position()}; }
  void rollBack(const Checkpoint& to);

  // ---- making values ----
  template <typename T, typename... A>
  T* make(A&&... args) {
    auto owned = std::make_unique<T>(std::forward<A>(args)...);
    T* made = owned.get();
    if constexpr (std::is_base_of_v<HeapValue, T>) made->serial = ++serial_;
    arena_.push_back(std::move(owned));
    return made;
  }
  // A constant, or any real object that is known without a guard.
  Value* real(ObjectRef object);
  Value* realShared(PyObject* borrowed) { return real(ObjectRef::share(borrowed)); }
  Value* none() { return none_; }
  Value* boolean(bool b) { return b ? true_ : false_; }
  Value* unbound() { return unbound_; }
  Value* integer(long long n) { return real(checked(PyLong_FromLongLong(n))); }
  Value* string(const char* text) { return real(checked(PyUnicode_FromString(text))); }
  TupleValue* tuple(std::vector<Value*> items, PyTypeObject* type = &PyTuple_Type);
  ListValue* list(std::vector<Value*> items);
  DictValue* dict();
  // The symbolic twin of an object reached by source. Nothing is guarded yet.
  Value* wrap(PyObject* object, const Source* source);

  // The twin that an existing object has by now; null: none.
  HeapValue* knownTwin(PyObject* object) const;

  // Keeps an object alive until the capture ends.
  PyObject* keep(ObjectRef object);

  // ---- observing ----
  // The object behind a value that is (or can be made) a Python constant: immutable, executed by CPython itself. Guards
  // it by value where it came from an input. Null where it is no constant; breaks where only the run knows it (Kind::Number). Borrowed
  // from the trace.
  PyObject* constant(Value* v);
  bool isConstant(Value* v) { return !isNumber(v) && constant(v) != nullptr; }
  // As constant, and also lists, dicts and sets of constants, as fresh copies: for C code that only looks. Borrowed.
  PyObject* snapshot(Value* v);
  // What an operation on numbers gives while it stays open; null where the operands must be constants.
  Value* computed(Arithmetic op, RealValue* left, RealValue* right);
  // An open int is in the range for this call: says so for all calls.
  void observeRange(const Source* source, int64_t lower, int64_t upper);
  // type(v), with the type of an input guarded.
  PyTypeObject* typeOf(Value* v);
  // The real object of a Real value, its identity guarded where it came from an input.
  PyObject* identity(Value* v);

  // Reads the items of a list, tuple, set or dict that stands for a real one, guarding its length or keys.
  void load(ListValue* list);
  void load(TupleValue* tuple);
  void load(SetValue* set);
  void complete(DictValue* dict);
  Value* cellContents(CellValue* cell);        // null: empty
  DictValue* dictOf(InstanceValue* instance);  // its instance dictionary
  DictValue* dictOf(DictValue* dict);          // the same of an OrderedDict; null: it has none

  // ---- dict operations (raw, as C code does them) ----
  DictKey keyOf(Value* key);  // raises TypeError (unhashable) as Python would
  // The key that is there already and equals k by CPython's rules, or k itself.
  DictKey resolve(DictValue* d, const DictKey& k);
  DictKey resolve(SetValue* s, const DictKey& k);
  Value* dictGet(DictValue* d, const DictKey& k);  // null: absent (guarded)
  Value* dictGetName(DictValue* d, PyObject* name);
  void dictSet(DictValue* d, const DictKey& k, Value* v);
  bool dictDelete(DictValue* d, const DictKey& k);  // false: absent
  size_t dictLength(DictValue* d);

  // ---- classes made by the traced program ----
  // Real objects that stand for values of the trace: model classes, and what their namespaces hold.
  std::unordered_map<PyObject*, Value*> models;
  std::unordered_map<PyObject*, std::unique_ptr<LocalClass>> localClasses;  // by model
  std::unordered_map<const Value*, Value*> ids;                             // id() of objects that the trace made
  LocalClass* localClass(PyObject* object) const {
    auto found = localClasses.find(object);
    return found == localClasses.end() ? nullptr : found->second.get();
  }
  LocalClass* localClass(PyTypeObject* type) const { return localClass(reinterpret_cast<PyObject*>(type)); }

  // Existing classes that attributes were set on.
  std::unordered_set<PyTypeObject*> writtenClasses;

  // ---- writing ----
  uint64_t writes = 0;       // how often something was written to
  void touch(HeapValue* v);  // marks as mutated, journaled
  // Objects made before this number, and existing ones, are outside the body that is being traced; 0: none is.
  int32_t bodySerial = 0;
  bool wroteOutsideBody = false;
  int32_t lastSerial() const { return serial_; }
  void setItems(ListValue* l, std::vector<Value*> items);
  void append(ListValue* l, Value* v);
  void setAdd(SetValue* s, const DictKey& k);
  void setMerge(SetValue* s, PyObject* frozenset);  // of constants
  // A set that CPython made of constants; `made` is given away.
  SetValue* setMade(ObjectRef made);
  // The set as CPython has it, in its order: a new one. Null where its order cannot be known. Guards the order of an existing one.
  ObjectRef setLayout(SetValue* s);
  // Calls one of set's own methods with constants: what it gives is returned (setLayout must have an answer).
  ObjectRef setCall(SetValue* s, PyObject* method, const std::vector<PyObject*>& args);
  bool setDiscard(SetValue* s, const DictKey& k);
  bool setHas(SetValue* s, const DictKey& k);
  void setCell(CellValue* c, Value* v);

  // ---- tensors ----
  // The node of a tensor, made a graph input on first use.
  Node* nodeOf(TensorValue* t);
  void observe(TensorValue* t);  // guards its metadata
  // A graph input made in each call from an open number.
  Node* nodeOf(RealValue* number);
  // The node of a number; one that an early call gives becomes a graph input on first use.
  Node* nodeOf(NumberValue* number);
  // An operation of the graph writes to the tensor's data.
  void noteTensorWrite(TensorValue* t);
  const std::vector<TensorValue*>& writtenTensors() const { return writtenTensors_; }
  // One of them is part of autograd's graph, which may forbid the write (it is a view of a leaf, of several outputs, ...).
  bool writesWithGrad = false;

  // ---- what is done before the graph ----
  // Adds a call whose result is of this type (int or float), or None where type is null. It depends on nothing that the trace
  // does, its arguments are constants and existing objects, and nothing but its place among its like can be seen.
  Value* callEarly(LateCall call, PyTypeObject* type);
  const std::vector<LateCall>& earlyCalls() const { return earlyCalls_; }

  // ---- functools.lru_cache ----
  // What calls of the trace left in caches, which are told after the graph.
  std::unordered_map<PyObject*, LruResults> lruResults;

  // ---- what is put off until after the graph ----
  OutputRules output;
  UserMarks marks;
  const std::vector<Effect>& effects() const { return effects_; }
  // Adds an effect at the current place of the program. Throws Unsupported where its order among the writes cannot be kept.
  void defer(LateCall call, bool ordered);
  // The tensor's data are read after the graph: no later operation may write to them.
  void readLater(TensorValue* t);
  bool hasLateReads() const { return !lateReads_.empty(); }
  // An operation is about to write to data that `t` may share.
  void checkLateReads(TensorValue* t);
  // Every existing object that was changed, in order of first touch.
  const std::vector<HeapValue*>& mutated() const { return mutated_; }
  const std::vector<std::unique_ptr<Value>>& arena() const { return arena_; }
  const std::vector<TensorValue*>& inputTensors() const { return inputTensors_; }

  // Adds a call with constants to the graph.
  Node* record(const SettingCall& call);

  // ---- torch state entered by the traced program (autocast, inference mode) ----
  // mode: the real context that was entered now; left again by exit(mode) in leaveState, or when the trace ends. All three are null
  // for a manager that does nothing in graphs: the code after a break enters it.
  void enterState(InstanceValue* manager, ObjectRef mode, ObjectRef exit, Node* node, bool gradBefore);
  bool leaveState(InstanceValue* manager, Node*& node);  // false: this manager was not entered here
  struct EnteredState {
    InstanceValue* manager;
    ObjectRef mode;
    ObjectRef exit;
    Node* node;
    bool gradBefore;
  };
  const std::vector<EnteredState>& enteredStates() const { return entered_; }  // not left yet, the first one first

  // Where the interpreter is, for nodes and messages.
  const TracePlace* place = nullptr;
  const TracePlace* failedPlace = nullptr;  // innermost place when an Unsupported was thrown
  FrameState* frame = nullptr;              // innermost
  std::vector<ObjectRef> done;              // by earlier attempts at this capture (StartOver)
  FrameState* failedFrame = nullptr;        // innermost when an Unsupported was thrown, or an exception that nothing catches
  // Set by who makes a call whose value goes straight to the current instruction; the next call() takes it.
  ReturnTo tail = ReturnTo::Native;
  int depth = 0;       // of inlined calls
  int untilBreak = 0;  // instructions left; 0: no end
  // Instructions since somebody looked whether the graph grows, and how large it was then.
  int quietInstructions = 0;
  size_t quietSince = 0;
  int vmapLevel = 0;
  Value* handledException = nullptr;  // by the innermost except block of this frame, or generator; null: none
  std::vector<Value*> handledBelow;   // the same of those who resumed the generators that run
  // What a bare raise would raise; null: nothing. Where nothing of the trace is handled, that is the caller's affair, and guarded.
  Value* topmostHandled();
  ObjectRef handledOutside;  // the exception that the traced function's caller is handling, or None
  // What the traced program set on an exception that the trace keeps as a real object: attributes, cause, context.
  DictValue* exceptionAttributes(PyObject* exception);
  // ---- tracebacks ----
  // A traceback that the trace made is a real one, which stands for those that the runs of the capture make: it has the same line
  // and tb_next, and a frame without variables that nobody looks at.
  struct TracebackEntry {
    PyObject* code;  // borrowed, as all
    PyObject* globals;
    int32_t offset;                   // of the instruction, in bytes
    int32_t leftAt;                   // of the one by which the frame was left
    Value* next;                      // tb_next
    std::vector<Value*> locals = {};  // of the frame when it was left, cells by what they hold; null: unbound. Empty: it was not left so
  };
  // The exception has passed an instruction of that frame.
  void addTraceback(Value* exception, FrameState& frame);
  // The frame is left at that offset: its variables stay as they are.
  void noteLeft(const FrameState& frame, int32_t at);
  // exception.__traceback__: a traceback or None.
  Value* tracebackOf(Value* exception);
  // Sets it. False where value is neither.
  bool setTraceback(Value* exception, Value* value);
  // Null for anything but a traceback that the trace made.
  const TracebackEntry* asTraceback(const Value* v) const;
  TracePlace* makePlace();
  // A frame owned by the trace; a finished one may be given back for the next call.
  FrameState* makeFrame();
  void recycleFrame(FrameState* frame);

 private:
  Value* twinOf(PyObject* object, const Source* source);
  Value* wrapArray(PyObject* object, const Source* source);  // null where torch has no tensor for it
  bool startsOpen(PyObject* object, const Source* source) const;
  void specialise(const Source* source);
  void insert(SetValue* s, const DictKey& k);
  void note(SetValue* s, SetValue::Change change);
  void fillSet(SetValue* s, PyObject* set);
  DictValue* existingDict(PyObject* real, const Source* owner);  // owner: of the object whose __dict__ it is
  DictKey identityKey(Value* key, PyObject* object);             // object: the existing one that key stands for, or null
  void pinKey(const DictKey& key);
  void pinItem(const DictKey& key);  // of a set
  std::unordered_set<const Value*> identityKeys_;
  std::vector<std::unique_ptr<Value>> arena_;
  std::vector<std::unique_ptr<TracePlace>> places_;
  std::vector<ObjectRef> kept_;
  std::vector<std::unique_ptr<FrameState>> frames_;
  std::vector<FrameState*> freeFrames_;
  std::unordered_map<PyObject*, Value*> twins_;
  std::unordered_map<const Source*, Value*> bySource_;
  std::unordered_map<const Source*, Node*> numberNodes_;
  std::vector<HeapValue*> mutated_;
  std::vector<TensorValue*> inputTensors_;
  std::vector<TensorValue*> writtenTensors_;  // inputs that the graph writes to
  std::vector<TensorValue*> lateReads_;       // roots of what late texts and effects show
  std::vector<LateCall> earlyCalls_;
  std::vector<Effect> effects_;
  bool orderedEffects_ = false;  // one of them is ordered
  bool orderedAfter_ = false;    // and one of those comes after a write
  std::vector<EnteredState> entered_;
  std::unordered_map<PyObject*, DictValue*> exceptionAttributes_;
  std::unordered_map<const void*, Value*> tracebacks_;  // of exceptions, by value or by real object
  std::unordered_map<PyObject*, TracebackEntry> tracebackEntries_;
  Value* handledOutsideValue_ = nullptr;
  Value *none_, *true_, *false_, *unbound_;
  int32_t serial_ = 0;
};

// Answered by the interpreter. hash(v) where Python code says it, alone or inside a tuple; false: v is no such key.
bool hashByProgram(Trace& t, Value* v, Py_hash_t& hash);
// The plain value by which an object of a subclass of int, str, ... is hashed and compared; null where v is none.
Value* plainKey(Trace& t, Value* v);
// stored == asked, as a dict or set asks it.
bool equalKeys(Trace& t, Value* stored, Value* asked);
// True where hashing the object runs Python code.
bool isHashedByPython(PyObject* object);

// True for an object of the trace's own that stands for another one in every call: object(), an exception.
bool isMadeAnew(PyObject* object);

// True for a member of an Enum class: a singleton that compares by identity.
bool isEnumMember(PyObject* object);

// Raises a Python exception of the traced program.
[[noreturn]] void raise(Trace& t, PyObject* type, const std::string& message);
// Turns the pending CPython error into a Raised of the traced program.
[[noreturn]] void raiseCurrent(Trace& t);
// The result of a CPython call made on behalf of the traced program: its error is the program's error.
inline ObjectRef native(Trace& t, PyObject* newReference) {
  if (newReference == nullptr) raiseCurrent(t);
  return ObjectRef::steal(newReference);
}

}  // namespace cdynamo
