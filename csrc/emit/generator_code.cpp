#include "emit/generator_code.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "bytecode/assembler.h"
#include "emit/adopted_cells.h"

namespace cdynamo {

namespace {

using Key = std::tuple<PyCodeObject*, SuspendedGenerator>;

struct CachedCode {
  std::shared_ptr<const Code> original;  // keeps the key's address taken
  Ref<PyCodeObject> entry;
};

std::map<Key, CachedCode>& cache() {
  // Never destroyed: the interpreter is gone when static destructors run.
  static auto& codes = *new std::map<Key, CachedCode>;
  return codes;
}

class EntryCode {
 public:
  EntryCode(const Code& code, const SuspendedGenerator& state) : code_(code), state_(state), spec_(CodeSpec::like(code.pyCode())) {
    spec_.localsplus.clear();
    spec_.flags &= ~(CO_VARARGS | CO_VARKEYWORDS);
    spec_.posOnlyCount = spec_.kwOnlyCount = spec_.argcount = 0;
  }

  Ref<PyCodeObject> finished() {
    Assembler a(std::move(spec_));
    start(a);
    a.loadNone();
    a.returnValue();
    return a.finish();
  }

  Ref<PyCodeObject> suspended() {
    std::vector<int> slots(static_cast<size_t>(code_.localsplusCount()), -1);
    if (state_.selfFirst) spec_.addLocal(named("self_", 0).get());
    size_t plain = 0;
    for (bool bound : {true, false}) {
      plain = 0;
      for (int slot = 0; slot < code_.localsplusCount(); slot++) {
        if (code_.isCellOrFree(slot)) continue;
        if (state_.bound[plain++] == bound) slots[static_cast<size_t>(slot)] = spec_.addLocal(code_.localName(slot));
      }
      if (!bound) break;
      for (size_t i = 0; i < state_.stack.size(); i++) stack_.push_back(state_.stack[i] ? spec_.addLocal(named("stack_", i).get()) : -1);
      if (state_.handling) handled_ = spec_.addLocal(named("handled_", 0).get());
      spec_.argcount = static_cast<int>(spec_.localsplus.size());
    }
    unbound_ = spec_.addLocal(named("unbound_", 0).get());
    AdoptedCells cells(code_, spec_, slots);
    Assembler a(std::move(spec_));
    a.setLine(code_.lineOf(state_.at));
    a.makeCells();
    cells.adopt(a);
    start(a);
    if (handled_ >= 0) {
      take(a, handled_);
      a.emit(Op::PushExcInfo);
      a.popTop();
      a.popTop();
    }
    for (int slot : stack_) {
      if (slot >= 0)
        take(a, slot);
      else
        a.emit(Op::LoadFastAndClear, unbound_);
    }
    if (!state_.entered) a.loadNone();
    std::vector<Label> labels = a.newLabels(code_.size());
    a.jump(labels[static_cast<size_t>(state_.at)]);
    a.copyCode(code_, labels, slots);
    return a.finish();
  }

 private:
  static ObjectRef named(const char* prefix, size_t i) { return checked(PyUnicode_InternFromString((prefix + std::to_string(i)).c_str())); }
  static void start(Assembler& a) {
    a.emit(Op::ReturnGenerator);
    a.popTop();
    a.emit(Op::Resume, 0);
  }
  // Nothing but the stack may keep it alive.
  static void take(Assembler& a, int slot) {
    a.loadFast(slot);
    a.deleteFast(slot);
  }

  const Code& code_;
  const SuspendedGenerator& state_;
  CodeSpec spec_;
  std::vector<int> stack_;
  int handled_ = -1;
  int unbound_ = -1;
};

}  // namespace

Ref<PyCodeObject> generatorCode(const Code& code, const SuspendedGenerator& state, bool finished) {
  Key key{code.pyCode(), state};
  auto found = cache().find(key);
  if (found != cache().end()) return found->second.entry;
  EntryCode entry(code, state);
  CachedCode made{decodeShared(code.pyCode()), finished ? entry.finished() : entry.suspended()};
  Ref<PyCodeObject> result = made.entry;
  cache().emplace(std::move(key), std::move(made));
  return result;
}

InstrIndex yieldOf(const Code& code, const SuspendedGenerator& state, const Code& entered, InstrIndex at) {
  // The code has what can be reached from the state, in the same order.
  std::vector<bool> seen(static_cast<size_t>(code.size()), false);
  std::vector<InstrIndex> open{state.at};
  while (!open.empty()) {
    InstrIndex i = open.back();
    open.pop_back();
    if (i < 0 || seen[static_cast<size_t>(i)]) continue;
    seen[static_cast<size_t>(i)] = true;
    const Instr& in = code.at(i);
    if (operandOf(in.op) == Operand::Jump) open.push_back(in.target);
    if (fallsThrough(in.op)) open.push_back(i + 1);
    if (const Handler* handler = code.handlerOf(i)) open.push_back(handler->target);
  }
  std::vector<InstrIndex> yields;
  for (InstrIndex i = 0; i < code.size(); i++)
    if (seen[static_cast<size_t>(i)] && code.at(i).op == Op::YieldValue) yields.push_back(i);
  size_t number = 0, all = 0;
  for (InstrIndex i = 0; i < entered.size(); i++) {
    if (entered.at(i).op != Op::YieldValue) continue;
    if (i < at) number++;
    all++;
  }
  CD_CHECK(all == yields.size() && at >= 0 && entered.at(at).op == Op::YieldValue, "the yields of a generator's two codes differ");
  return yields[number];
}

void clearGeneratorCodes() {
  std::map<Key, CachedCode> dying;
  dying.swap(cache());
}

void forgetGeneratorCodes(PyCodeObject* code) {
  std::vector<CachedCode> dying;
  for (auto it = cache().begin(); it != cache().end();) {
    if (std::get<0>(it->first) != code) {
      ++it;
      continue;
    }
    dying.push_back(std::move(it->second));
    it = cache().erase(it);
  }
}

}  // namespace cdynamo
