// Where each stack slot's value comes from and who takes it: what the assembler must know to put NULLs back.
#pragma once
#include <span>
#include <vector>

#include "bytecode/instruction.h"

namespace cdynamo {

// A web is a set of values that meet in one stack slot on some path. It has one or more producers and consumers.
class StackWebs {
 public:
  // Walks all paths. Fills in handlers' depth where it is -1. `fusedCall[i]`: instruction i's callable is not used as
  // a call's. Throws EngineError where two paths meet with different depths or the stack runs empty.
  StackWebs(std::span<const Instr> instrs, std::vector<Handler>& handlers, const std::vector<bool>& fusedCall);

  bool reached(InstrIndex i) const { return starts_[static_cast<size_t>(i)] >= 0; }
  int depth(InstrIndex i) const { return depths_[static_cast<size_t>(i)]; }
  // The web in a slot before instruction i; slot 0 is the bottom.
  int webAt(InstrIndex i, int slot) const;

  struct Web {
    int producers = 0;
    InstrIndex producer = -1;    // one of them
    bool called = false;         // taken as the callable of a Call or CallFunctionEx
    bool calledEx = false;       // of a CallFunctionEx
    bool otherwiseUsed = false;  // taken, moved or copied by anything else
    bool maybeUnbound = false;   // may be LoadFastAndClear's marker
    // One value, pushed by one instruction that pushes nothing else, which only calls take, as their callable.
    bool onlyCalled() const { return producers == 1 && producer >= 0 && called && !otherwiseUsed; }
  };
  const Web& web(int id) const { return webs_[static_cast<size_t>(id)]; }
  // The web of the single value that instruction i pushes, -1 if it pushes another number or is not reached.
  int pushedBy(InstrIndex i) const;

 private:
  using State = std::vector<int>;
  void flow(InstrIndex target, const State& state);
  void step(InstrIndex i, State& state);
  void swapOrCopy(const Instr& instr, State& state);
  void findDepths(InstrIndex i, const State& state);
  void enterHandler(const Instr& instr, const State& state);
  int newWeb(InstrIndex producer);
  int find(int id) const;
  void unite(int a, int b);

  std::span<const Instr> instrs_;
  std::vector<Handler>& handlers_;
  const std::vector<bool>& fusedCall_;
  std::vector<Web> webs_;
  mutable std::vector<int> parents_;
  std::vector<int32_t> starts_;  // into slots_, by instruction; -1 where not reached
  std::vector<int32_t> depths_;
  std::vector<int32_t> pushed_;
  std::vector<int> slots_;
  std::vector<bool> handlerSeen_;
  bool openDepths_ = false;  // some handler's depth is to be found
  std::vector<InstrIndex> work_;
};

}  // namespace cdynamo
