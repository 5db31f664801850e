// Code: a decoded code object. Immutable once made.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "bytecode/instruction.h"

namespace cdynamo {

class LivenessTable;

class Code {
 public:
  enum class LocalKind : uint8_t { Local, Cell, ArgCell, Free };  // ArgCell: a parameter that is also a cell

  // Decodes without the cache. Throws EngineError where the bytecode is not in a form that a Python compiler makes.
  explicit Code(PyCodeObject* code);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  PyCodeObject* pyCode() const { return code_.get(); }

  // Reachable instructions only, in source order.
  std::span<const Instr> instrs() const { return instrs_; }
  const Instr& at(InstrIndex i) const { return instrs_[static_cast<size_t>(i)]; }
  InstrIndex size() const { return static_cast<InstrIndex>(instrs_.size()); }
  // Sorted by start, maximal runs, not overlapping.
  std::span<const Handler> handlers() const { return handlers_; }
  const Handler* handlerOf(InstrIndex i) const;
  // Whether a handler of the program's own stands around i: not the one that 3.12 puts around the body of each
  // generator, which only turns StopIteration into RuntimeError.
  bool isInsideTry(InstrIndex i) const;
  bool hasTry() const;
  // NULL-free stack depth before instruction i.
  int depthAt(InstrIndex i) const { return depths_[static_cast<size_t>(i)]; }
  int maxDepth() const { return maxDepth_; }
  // The deepest raw stack before an instruction, NULLs counted.
  int maxRawDepth() const { return maxRawDepth_; }
  // True where some jump or handler enters at i (or i is 0).
  bool isLeader(InstrIndex i) const { return leaders_[static_cast<size_t>(i)]; }
  int lineOf(InstrIndex i) const { return at(i).pos.line; }
  // The instruction to which a byte offset (f_lasti, tb_lasti) belongs, or -1. What has no instruction of its own
  // (KW_NAMES, PRECALL, PUSH_NULL) belongs to the next one; of several made from one, it is the first.
  InstrIndex indexOf(ByteOffset offset) const;

  // localsplus: parameters, other locals, cells that are not parameters, free variables.
  int localsplusCount() const { return static_cast<int>(kinds_.size()); }
  PyObject* localName(int slot) const;  // borrowed str
  LocalKind localKind(int slot) const { return kinds_[static_cast<size_t>(slot)]; }
  bool isCellOrFree(int slot) const { return localKind(slot) != LocalKind::Local; }

  int argcount() const { return code_->co_argcount; }
  int posOnlyCount() const { return code_->co_posonlyargcount; }
  int kwOnlyCount() const { return code_->co_kwonlyargcount; }
  int flags() const { return code_->co_flags; }
  bool hasVarArgs() const { return (flags() & CO_VARARGS) != 0; }
  bool hasVarKeywords() const { return (flags() & CO_VARKEYWORDS) != 0; }
  // Every parameter, *args and **kwargs with it: the first slots of localsplus.
  int parameterCount() const { return argcount() + kwOnlyCount() + hasVarArgs() + hasVarKeywords(); }
  int nfree() const { return code_->co_nfreevars; }
  int firstFree() const { return localsplusCount() - nfree(); }
  int stacksize() const { return code_->co_stacksize; }
  int firstLine() const { return code_->co_firstlineno; }
  PyObject* name() const { return code_->co_name; }          // borrowed
  PyObject* qualname() const { return code_->co_qualname; }  // borrowed
  PyObject* filename() const { return code_->co_filename; }  // borrowed

 private:
  friend class Decoder;
  friend class LivenessTable;

  Ref<PyCodeObject> code_;
  std::vector<Instr> instrs_;
  std::vector<Handler> handlers_;
  std::vector<int32_t> depths_;
  std::vector<bool> leaders_;
  std::vector<LocalKind> kinds_;
  std::vector<InstrIndex> indexOfUnit_;
  int maxDepth_ = 0;
  int maxRawDepth_ = 0;
  mutable std::unique_ptr<LivenessTable> liveness_;  // made at the first question
};

// The decoded form, from a cache that keeps the code object alive. Needs the GIL. The reference holds until
// clearDecodeCache(); who outlives that takes decodeShared().
const Code& decode(PyCodeObject* code);
std::shared_ptr<const Code> decodeShared(PyCodeObject* code);
void clearDecodeCache();
// Code objects that nothing holds but their decoded form: nobody can call them any more.
std::vector<std::shared_ptr<const Code>> uncallableCodes();
// Drops such a one where nobody but the caller holds its decoded form. False where somebody does.
bool dropDecoded(const std::shared_ptr<const Code>& code);

// One line per instruction: index, op, operand, jump target, handler. For logs and text goldens.
std::string dump(const Code& code);

}  // namespace cdynamo
