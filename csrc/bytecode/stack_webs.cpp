#include "bytecode/stack_webs.h"

#include "base/error.h"

namespace cdynamo {

StackWebs::StackWebs(std::span<const Instr> instrs, std::vector<Handler>& handlers, const std::vector<bool>& fusedCall)
    : instrs_(instrs),
      handlers_(handlers),
      fusedCall_(fusedCall),
      starts_(instrs.size(), -1),
      depths_(instrs.size(), 0),
      pushed_(instrs.size(), -1),
      handlerSeen_(handlers.size(), false) {
  for (const Handler& handler : handlers_) openDepths_ |= handler.depth < 0;
  CD_CHECK(!instrs.empty(), "no instructions to assemble");
  flow(0, State());
  State state;
  while (!work_.empty()) {
    InstrIndex i = work_.back();
    work_.pop_back();
    auto begin = slots_.begin() + starts_[static_cast<size_t>(i)];
    state.assign(begin, begin + depth(i));
    step(i, state);
  }
  for (int id = 0; id < static_cast<int>(webs_.size()); ++id) {
    int root = find(id);
    if (root == id) continue;
    Web& into = webs_[static_cast<size_t>(root)];
    const Web& from = webs_[static_cast<size_t>(id)];
    into.producers += from.producers;
    into.called |= from.called;
    into.calledEx |= from.calledEx;
    into.otherwiseUsed |= from.otherwiseUsed;
    into.maybeUnbound |= from.maybeUnbound;
  }
}

int StackWebs::webAt(InstrIndex i, int slot) const {
  CD_CHECK(reached(i) && slot >= 0 && slot < depth(i), "a stack slot that does not exist");
  return find(slots_[static_cast<size_t>(starts_[static_cast<size_t>(i)] + slot)]);
}

int StackWebs::pushedBy(InstrIndex i) const {
  int id = pushed_[static_cast<size_t>(i)];
  return id < 0 ? -1 : find(id);
}

int StackWebs::newWeb(InstrIndex producer) {
  Web web;
  web.producers = 1;
  web.producer = producer;
  webs_.push_back(web);
  parents_.push_back(static_cast<int>(parents_.size()));
  return static_cast<int>(parents_.size()) - 1;
}

int StackWebs::find(int id) const {
  while (parents_[static_cast<size_t>(id)] != id) {
    int& parent = parents_[static_cast<size_t>(id)];
    parent = parents_[static_cast<size_t>(parent)];
    id = parent;
  }
  return id;
}

void StackWebs::unite(int a, int b) {
  a = find(a);
  b = find(b);
  if (a != b) parents_[static_cast<size_t>(b)] = a;
}

void StackWebs::flow(InstrIndex target, const State& state) {
  CD_CHECK(target >= 0 && target < static_cast<InstrIndex>(instrs_.size()), "control leaves the code");
  auto at = static_cast<size_t>(target);
  if (starts_[at] < 0) {
    starts_[at] = static_cast<int32_t>(slots_.size());
    depths_[at] = static_cast<int32_t>(state.size());
    slots_.insert(slots_.end(), state.begin(), state.end());
    work_.push_back(target);
    return;
  }
  CD_CHECK(static_cast<size_t>(depths_[at]) == state.size(), "two paths meet with different stack depths");
  for (size_t k = 0; k < state.size(); ++k) unite(slots_[static_cast<size_t>(starts_[at]) + k], state[k]);
}

void StackWebs::findDepths(InstrIndex i, const State& state) {
  for (Handler& handler : handlers_) {
    if (handler.start == i && handler.depth < 0) handler.depth = static_cast<int32_t>(state.size());
  }
}

void StackWebs::enterHandler(const Instr& instr, const State& state) {
  if (instr.handler < 0) return;
  auto h = static_cast<size_t>(instr.handler);
  Handler& handler = handlers_.at(h);
  CD_CHECK(handler.depth >= 0, "an exception region is not entered at its start: give its depth");
  CD_CHECK(static_cast<size_t>(handler.depth) <= state.size(), "a handler keeps more than the stack holds");
  State entry(state.begin(), state.begin() + handler.depth);
  int extra = handler.lasti ? 2 : 1;
  if (!handlerSeen_[h]) {
    handlerSeen_[h] = true;
    for (int k = 0; k < extra; ++k) entry.push_back(newWeb(-1));
    flow(handler.target, entry);
    return;
  }
  auto start = static_cast<size_t>(starts_[static_cast<size_t>(handler.target)]);
  for (size_t k = 0; k < entry.size(); ++k) unite(slots_[start + k], entry[k]);
}

void StackWebs::swapOrCopy(const Instr& instr, State& state) {
  CD_CHECK(instr.arg >= 1 && static_cast<size_t>(instr.arg) <= state.size(), "Swap or Copy reaches below the stack");
  int& other = state[state.size() - static_cast<size_t>(instr.arg)];
  webs_[static_cast<size_t>(other)].otherwiseUsed = true;
  if (instr.op == Op::Copy) {
    bool unbound = webs_[static_cast<size_t>(other)].maybeUnbound;
    state.push_back(newWeb(-1));
    webs_.back().maybeUnbound = unbound;
    return;
  }
  webs_[static_cast<size_t>(state.back())].otherwiseUsed = true;
  std::swap(other, state.back());
}

void StackWebs::step(InstrIndex i, State& state) {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  if (openDepths_) findDepths(i, state);
  enterHandler(instr, state);
  if (instr.op == Op::Swap || instr.op == Op::Copy) {
    swapOrCopy(instr, state);
    flow(i + 1, state);
    return;
  }
  StackEffect effect = stackEffect(instr.op, instr.arg);
  CD_CHECK(static_cast<size_t>(effect.pops) <= state.size(), "the stack runs empty");
  bool calls = (instr.op == Op::Call || instr.op == Op::CallFunctionEx) && !fusedCall_[static_cast<size_t>(i)];
  size_t base = state.size() - static_cast<size_t>(effect.pops);
  for (size_t k = base; k < state.size(); ++k) {
    Web& web = webs_[static_cast<size_t>(state[k])];
    if (calls && k == base) {
      web.called = true;
      web.calledEx |= instr.op == Op::CallFunctionEx;
    } else {
      web.otherwiseUsed = true;
    }
  }
  if (hasContainerIndex(instr.op)) {
    CD_CHECK(instr.arg >= 1 && static_cast<size_t>(instr.arg) <= base, "a container index reaches below the stack");
    webs_[static_cast<size_t>(state[base - static_cast<size_t>(instr.arg)])].otherwiseUsed = true;
  }
  state.resize(base);
  if (instr.target >= 0) {
    State jumped = state;
    for (int k = jumpStackEffect(instr.op).pushes; k > 0; --k) jumped.push_back(newWeb(-1));
    flow(instr.target, jumped);
  }
  for (int k = 0; k < effect.pushes; ++k) {
    state.push_back(newWeb(effect.pushes == 1 ? i : -1));
    if (effect.pushes == 1) pushed_[static_cast<size_t>(i)] = state.back();
  }
  if (instr.op == Op::LoadFastAndClear) webs_.back().maybeUnbound = true;
  if (fallsThrough(instr.op)) flow(i + 1, state);
}

}  // namespace cdynamo
