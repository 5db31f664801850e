// From the normal form back to a code object.
//
//   assemble()   instructions with indices as targets, such as Code has them
//   Assembler    the same, written by hand with labels
#pragma once
#include <span>
#include <vector>

#include "base/ref.h"
#include "bytecode/code.h"
#include "bytecode/instruction.h"

namespace cdynamo {

// What a code object has besides its instructions.
struct CodeSpec {
  struct Variable {
    ObjectRef name;
    uint8_t kind;  // kLocalsplus* bits of cpython/compat.h
  };

  int argcount = 0;  // positional-only ones with it, *args and **kwargs not
  int posOnlyCount = 0;
  int kwOnlyCount = 0;
  int flags = CO_OPTIMIZED | CO_NEWLOCALS;
  std::vector<Variable> localsplus;  // locals, then cells, then free variables
  ObjectRef name;
  ObjectRef qualname;  // null: as name
  ObjectRef filename;
  int firstLine = 1;
  ObjectRef doc;  // null: None

  // All but the instructions of an existing code object.
  static CodeSpec like(PyCodeObject* code);
  // Only what tracebacks show of it: name, file and first line of a plain function without variables.
  static CodeSpec named(PyCodeObject* code);

  // Append a variable (in the order above; parameters first) and return its localsplus slot.
  int addLocal(PyObject* name);
  int addCell(PyObject* name);
  int addFree(PyObject* name);
  // Turns a local (a parameter) into a cell that keeps its slot; the code must MakeCell it.
  void makeLocalACell(int slot);
  int parameterCount() const;
};

// `instrs` in the normal form: targets are indices into it, `handler` an index into `handlers`, of which only target,
// depth and lasti are read (depth -1: as deep as the region's first instruction). Unreachable instructions are dropped.
// Throws EngineError where the stack does not work out, PythonError where CPython refuses.
Ref<PyCodeObject> assemble(const CodeSpec& spec, std::span<const Instr> instrs, std::span<const Handler> handlers);

// A place in the code under construction: made by newLabel(), given its place once by bind().
struct Label {
  int32_t id = -1;
};

class Assembler {
 public:
  explicit Assembler(CodeSpec spec) : spec_(std::move(spec)) {}

  const CodeSpec& spec() const { return spec_; }
  // For adding variables while writing. Slots that are already used must keep their numbers.
  CodeSpec& spec() { return spec_; }
  InstrIndex size() const { return static_cast<InstrIndex>(instrs_.size()); }

  Label newLabel();
  std::vector<Label> newLabels(int count);
  void bind(Label label);  // before the next instruction

  // Instructions written between the two go to `handler` when they raise, with the stack cut to what it was at the
  // first of them, then [lasti if asked] and the exception pushed. Regions nest.
  void beginHandler(Label handler, bool lasti = false, int depth = -1);
  void endHandler();

  // Position of the instructions that follow.
  void setPosition(const Position& pos) { pos_ = pos; }
  const Position& position() const { return pos_; }
  void setLine(int line) { pos_ = {line, line, -1, -1}; }

  // Any instruction without a jump. Its object is kept alive; handler and position are ours.
  void emit(Op op, int arg = 0, PyObject* object = nullptr);
  void emitJump(Op op, Label target);
  // One of a decoded code's instructions, its own position kept. Jumps need the new target.
  void copy(const Instr& instr);
  void copyJump(const Instr& instr, Label target);

  // All of a decoded code's instructions, with its handlers. `labels` (one for each, from newLabels()) are bound to
  // them: code written before can so enter anywhere with a stack of the right depth, and what is then not reached is
  // dropped by finish(). `slots[k]` is our slot for its localsplus slot k (empty: the same). `baseDepth`: slots that
  // lie under its stack.
  void copyCode(const Code& code, std::span<const Label> labels, std::span<const int> slots = {}, int baseDepth = 0);

  // CopyFreeVars, MakeCell for each cell, Resume 0: what a function starts with.
  void prologue();
  void makeCells();  // without Resume

  void loadFast(int slot) { emit(Op::LoadFast, slot); }
  void storeFast(int slot) { emit(Op::StoreFast, slot); }
  void deleteFast(int slot) { emit(Op::DeleteFast, slot); }
  // A frozenset is taken out of a list: CPython makes those among a code's constants anew when it interns their strings, in another order.
  void loadConst(PyObject* object);
  void loadNone() { loadConst(Py_None); }
  void loadAttr(PyObject* name) { emit(Op::LoadAttr, 0, name); }
  void loadAttr(const char* name);
  void loadMethod(PyObject* name) { emit(Op::LoadMethod, 0, name); }
  void loadMethod(const char* name);
  void storeAttr(PyObject* name) { emit(Op::StoreAttr, 0, name); }
  void storeAttr(const char* name);
  void deleteAttr(PyObject* name) { emit(Op::DeleteAttr, 0, name); }
  void binarySubscr() { emit(Op::BinarySubscr); }
  void storeSubscr() { emit(Op::StoreSubscr); }
  void popTop() { emit(Op::PopTop); }
  void copyTop(int n = 1) { emit(Op::Copy, n); }
  void swap(int n) { emit(Op::Swap, n); }
  void buildTuple(int n) { emit(Op::BuildTuple, n); }
  void buildList(int n) { emit(Op::BuildList, n); }
  void buildMap(int n) { emit(Op::BuildMap, n); }
  void buildSlice(int n) { emit(Op::BuildSlice, n); }
  // [callable, arg1 .. argn] -> [result]; the last len(keywords) arguments are named by the tuple.
  // With keywords, n is kMostArguments at most.
  void call(int n, PyObject* keywords = nullptr);
  static constexpr int kMostArguments = 255;
  void callFunctionEx(bool hasKeywords) { emit(Op::CallFunctionEx, hasKeywords ? 1 : 0); }
  void getIter() { emit(Op::GetIter); }
  void returnValue() { emit(Op::ReturnValue); }
  void jump(Label target) { emitJump(Op::Jump, target); }

  // The code object. Every label that was used must be bound, every handler region closed.
  Ref<PyCodeObject> finish() const;

 private:
  void append(Instr instr);

  CodeSpec spec_;
  std::vector<Instr> instrs_;       // targets are label ids
  std::vector<Handler> handlers_;   // targets are label ids
  std::vector<int32_t> regions_;    // open handlers, innermost last
  std::vector<InstrIndex> places_;  // by label id, -1 until bound
  std::vector<ObjectRef> kept_;
  Position pos_;
};

}  // namespace cdynamo
