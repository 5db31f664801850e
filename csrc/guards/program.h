// The guards of one capture as a program: a few flat arrays that are run over a register file.
//
// Each source has a register. Values that a live load produces (arguments, cells, list items, instance dicts) are read
// again in every call. Items of dicts are read again only where the dict's version moved: while it did not, the dict
// holds the same objects, so their registers and every fact about their identity still stand. What a type's MRO gives is
// watched by the type's version in the same way. All steps of one kind at one depth of the source tree form a batch, so
// that the inner loops are tight and a register is never read before this very call has proved that its owner holds it.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "guards/distinct.h"
#include "guards/facts.h"
#include "guards/held.h"
#include "guards/memory.h"
#include "guards/mortals.h"
#include "torch/bridge.h"
#include "torch/tensor_row.h"

namespace cdynamo {

// What a call brings. Everything is borrowed. A null local is an unbound one.
struct FrameInputs {
  PyObject* const* locals;
  Py_ssize_t localCount;
  PyObject* function;
  // The exception that the caller is handling, or None; null: the one that the thread is handling.
  PyObject* handled = nullptr;

  ObjectRef handledException() const;
};

// A fact with registers instead of sources, and without strong references to user data.
// Made of the classes of a type's MRO: equal where these are the same, as long as none of them has died.
int64_t mroNumber(const PyTypeObject* type);

struct GuardFact {
  FactKind kind;
  int32_t reg = -1;
  int32_t other = -1;
  Held object;
  Held name;
  Held expected;
  int64_t number = 0;  // as in Fact; TypeLookup: not 0 where it holds for this version of the type alone; Mro: mroNumber of the type
  int64_t upper = 0;
  int32_t place = -1;  // in GuardProgram::places_
};

class GuardProgram {
 public:
  // wanted: the sources whose values check() hands out, in that order. Nothing of the lists is kept but the objects
  // they name. owned: objects that nobody but the capture has. Throws PythonError or EngineError.
  static std::unique_ptr<GuardProgram> build(const FactList& facts, const SourceTable& table, std::vector<const Source*> wanted,
                                             const GlobalState& globals, bool guardGlobals = true, const std::unordered_set<PyObject*>& owned = {});
  ~GuardProgram();
  GuardProgram(const GuardProgram&) = delete;
  GuardProgram& operator=(const GuardProgram&) = delete;

  // True where every fact holds; then wantedOut has the wanted values, borrowed: they are alive until the frame's
  // inputs change, any Python code runs, or releaseTemporaries() is called. Never raises: an error counts as a miss.
  // May be entered again from code that it runs, and from other threads (with the GIL).
  bool check(const FrameInputs& inputs, PyObject** wantedOut);

  // The same where only the facts about sources of these names are checked, and types, which the reading of values relies on.
  bool checkDiffering(const FrameInputs& inputs, const std::set<std::string>& names, PyObject** wantedOut);
  // Adds the names of the sources of facts that do not hold; "": of facts about types, or of the global state.
  void addDiffering(const FrameInputs& inputs, std::set<std::string>& names) const;

  // Drops references to values that no container holds (results of C attributes and the like). Cheap if there are none.
  void releaseTemporaries() {
    if (!temporaries_.empty()) dropTemporaries();
  }

  // The first fact that does not hold, in words, such as "L['n'] == 3" or "tensor 'L['x']' size mismatch at index 0.
  // expected 3, actual 4"; empty where all hold. Uses none of the cached state.
  std::string explainMiss(const FrameInputs& inputs) const;

  // Adds the names of sources that a fact holds to one int or float, where this call brings another one of the same type. Of objects
  // that a fact holds to one: their openIdName.
  void addChangedNumbers(const FrameInputs& inputs, std::set<std::string>& names) const;

  // One line per fact: TYPE_MATCH, ID_MATCH, EQUALS_MATCH, TENSOR_MATCH, DICT_CONTAINS, ... and its text.
  std::vector<std::string> describe() const;

  // The same as the lines of a tree in torch's form: TREE_GUARD_MANAGER, a manager per source, its guards with the place
  // where the capture relied on them.
  std::vector<std::string> describeTree() const;

  // False once an object that the program names has died: it can never hold again.
  bool canEverHold() const;
  // True unless a fact pins an argument to another object than this call's. Captures that differ in nothing but the object
  // they are for (many layers with one forward) are not recompiles of each other.
  bool isForSameObjects(const FrameInputs& inputs) const;

  // Number of facts, the global state not counted.
  size_t size() const { return facts_.size(); }
  size_t wantedCount() const { return wanted_.size(); }

 private:
  friend class ProgramBuilder;
  friend class Explainer;

  enum class Op : uint8_t {
    // Registers that are loaded in each call. Step: aux is the register, reg its base.
    LoadLocal,
    LoadFunction,
    LoadClosureCell,
    LoadCell,
    LoadDictSlot,
    LoadInstanceDict,
    LoadSequenceItem,
    LoadAttr,
    LoadType,
    LoadDequeItem,
    LoadWeakReferent,
    LoadHandled,
    LoadKeyedItem,   // word: the key's register
    LoadArithmetic,  // word: the right operand's register, and what to do
    LoadNumberTensor,
    LoadIteratorItem,
    LoadIteratorPart,
    LoadArrayTensor,
    LoadTupleWith,  // word: the item's register
    LoadLruCache,
    LoadLruResult,
    // Facts. Step: reg is the register, aux the fact's number, word an operand that is at hand there.
    TypeIs,
    IsObject,
    IsReferent,
    EqualsConstant,
    Length,
    DictLength,
    FunctionIs,
    SameObject,
    DistinctObjects,
    IsDict,
    OtherFact,
    // Begin and end are numbers in dictRegisters_, emptyDicts_, tensorChecks_ and typeGroups_.
    DictVersions,
    EmptyDicts,
    Tensors,
    TypeVersions,
    Memory,
    Distinct,
    GlobalStateIs,
  };
  struct Step {
    uint32_t reg;
    uint32_t aux;
    union {
      PyObject* object;
      int64_t number;
      struct {
        uint32_t reg;
        Arithmetic op;
      } right;
    } word;
  };
  struct Batch {
    Op op;
    uint32_t begin;
    uint32_t end;
  };
  struct DictChild {
    uint32_t reg;
    PyObject* key;  // held by keys_, or watched
  };
  // The facts that stand while one dict's version does.
  struct DictGroup {
    uint32_t reg;
    uint32_t firstRegister;  // of its children: every register below it is valid when the group is run
    std::vector<DictChild> children;
    std::vector<uint32_t> facts;        // about the dict, and about the identity of its items
    std::vector<uint32_t> mustBeDicts;  // children that are dicts to other groups
  };
  struct TypeGroup {
    PyTypeObject* type;  // of a fact, which holds or watches it
    std::vector<uint32_t> facts;
  };
  // What one run of the program remembers for the next one.
  struct State {
    std::vector<PyObject*> registers;
    std::vector<uint64_t> dictVersions;  // per group: children and facts are right for this version; 0: for none
    std::vector<unsigned> typeVersions;
    uint32_t held = 0;       // this run keeps what the registers below point to
    bool differing = false;  // of a run of checkDiffering()
  };
  // A part of the program, for checkDiffering().
  struct Part {
    std::vector<Batch> batches;
    std::vector<Step> steps;
    std::vector<bool> facts;  // by number: checked
    size_t nameCount = 0;     // of the names that it was made for, which only grow in number
    State state;
  };

  struct Place {
    ObjectRef file, function;
    int32_t line;
  };

  GuardProgram() = default;
  State freshState() const;
  bool run(State& state, const FrameInputs& inputs, std::vector<ObjectRef>& temporaries);
  bool refreshDict(State& state, uint32_t group, std::vector<ObjectRef>& temporaries);
  bool refreshType(State& state, uint32_t group);
  bool holds(const GuardFact& fact, State& state, std::vector<ObjectRef>& temporaries, uint32_t validBelow);
  bool runTensors(State& state, const Batch& batch);
  bool learnTensor(TensorGuard& guard, const GuardFact& fact, PyObject* value);
  bool abcTokenIs(int64_t token) const;
  void dropTemporaries();
  bool runAndGive(State& state, const FrameInputs& inputs, PyObject** wantedOut);
  void selectDiffering(const std::set<std::string>& names);
  static PyObject* makeInstanceDict(State& state, const Step& step, std::vector<ObjectRef>& temporaries);
  // Before anything that may run Python code: keeps alive what the registers below `count` point to.
  static void holdRegisters(State& state, uint32_t count, std::vector<ObjectRef>& temporaries);

  std::vector<Batch> batches_;
  std::vector<Step> steps_;
  std::vector<uint32_t> dictRegisters_;  // per dict group, for the fast loop
  std::vector<DictGroup> dictGroups_;
  std::vector<TypeGroup> typeGroups_;
  std::vector<uint32_t> emptyDicts_;  // registers of dicts that must be empty
  std::vector<TensorCheck> tensorChecks_;
  std::vector<uint32_t> tensorFacts_;  // per check
  std::vector<TensorGuard> tensors_;   // tensors with equal metadata share one; keySet 0: none seen yet, see learnTensor
  std::vector<uint32_t> guardOfMeta_;  // by GuardFact::number
  std::vector<TensorMeta> tensorMetas_;
  MemoryGuard memory_;
  DistinctGuard distinct_;
  std::vector<uint32_t> wanted_;
  std::vector<GuardFact> facts_;
  std::vector<Place> places_;
  std::vector<Source> sources_;  // by register; bases point into this vector
  std::vector<ObjectRef> keys_;  // keeps what sources_ name, but for what is watched
  Mortals mortals_;
  std::vector<std::string> localNames_;
  PyObject* rootGlobals_ = nullptr;  // only compared
  ObjectRef abcTokenFunction_;
  GlobalState globals_;
  Py_ssize_t localsNeeded_ = 0;
  State state_;
  std::unique_ptr<Part> part_;
  std::vector<ObjectRef> temporaries_;
  bool running_ = false;
};

}  // namespace cdynamo
