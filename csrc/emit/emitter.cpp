#include "emit/emitter.h"

#include "base/lookup.h"
#include "emit/helpers.h"
#include "emit/late_calls.h"
#include "emit/rebuild.h"
#include "interp/intrinsics.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

class Emitter : public Rebuilder {
 public:
  Emitter(Trace& trace, PyCodeObject* like) : Rebuilder(trace, like), like_(like) {
    emitted.graphBox = checked(PyList_New(1));
    PyList_SET_ITEM(emitted.graphBox.get(), 0, ObjectRef::share(Py_None).release());
  }

  Emitted run(Value* result, bool gradAtEntry) {
    if (tryDirect(result, gradAtEntry)) return std::move(emitted);
    begin();
    load(result);
    return end(gradAtEntry);
  }

  Emitted suspend(const std::vector<Value*>& values, int line, bool gradAtEntry) {
    a.setLine(line);
    begin();
    loadAll(values);
    a.buildTuple(static_cast<int>(values.size()));
    return end(gradAtEntry);
  }

 private:
  // Makes the early calls and calls the graph.
  void begin() {
    a.prologue();
    for (const LateCall& call : t.earlyCalls()) {
      earlySlots.push_back(a.spec().addLocal(name(("early_" + std::to_string(earlySlots.size())).c_str())));
      emitLateCall(a, call, [&](Value* v) { load(v); });
      a.storeFast(earlySlots.back());
    }
    if (t.graph.hasWork()) {
      a.loadConst(emitted.graphBox.get());
      a.loadConst(number(0));
      a.binarySubscr();
      loadInputs();
      a.callFunctionEx(false);
      a.storeFast(kOutputs);
    }
  }

  // The graph's inputs in one tuple: what the guard program read, then the numbers of early calls that operations use.
  void loadInputs() {
    std::vector<int> used;
    for (const Node& node : t.graph.nodes())
      if (node.op == NodeOp::Placeholder && node.earlyCall >= 0) used.push_back(earlySlots[static_cast<size_t>(node.earlyCall)]);
    if (used.empty()) return a.loadFast(kInputs);
    a.loadConst(withNumbersFunction());
    a.loadFast(kInputs);
    for (int slot : used) a.loadFast(slot);
    a.call(static_cast<int>(used.size()) + 1);
  }

  // The result is on the stack: everything is rebuilt before anything is written back.
  Emitted end(bool gradAtEntry) {
    prepareEffects();
    replayOutput(false);
    for (HeapValue* h : t.mutated()) writeBack(h);
    replayOutput(true);
    dropAbandoned();
    emitEnteredStates(gradAtEntry);
    for (const Settings::Change& change : t.settings.changed()) emitSetting(change.now);
    a.returnValue();
    emitted.code = a.finish();
    emitted.objects = std::move(objects);
    return std::move(emitted);
  }

  // Generators inside try or with that nothing holds any more: CPython runs their handlers when they die. And coroutines that
  // nobody has awaited: it warns.
  void dropAbandoned() {
    for (const auto& value : t.arena()) {
      auto* g = value->kind == Kind::Generator ? as<GeneratorValue>(value.get()) : nullptr;
      if (!g || g->real || isBuilt(g) || !(mustBeClosed(g) || isNeverAwaited(g))) continue;
      load(g);
      a.popTop();
    }
  }

  // Closes in the graph the torch contexts that are still entered, and writes code that enters them again, by the real
  // managers' own __enter__, so that their own __exit__ can leave them; then grad mode. Once, after all effects.
  void emitEnteredStates(bool gradAtEntry) {
    std::vector<Trace::EnteredState> states;
    // Modes that were active when the function was called are so still.
    for (const auto& state : t.enteredStates())
      if (!state.manager->source || !isModeAround(state.manager->source)) states.push_back(state);
    for (size_t i = states.size(); i-- > 0;) {
      if (!states[i].node) continue;
      std::vector<Arg> operands(1);
      operands[0].kind = Arg::NodeRef;
      operands[0].node = states[i].node;
      Node* node = t.graph.add(NodeOp::CallFunction, ObjectRef(states[i].exit), std::move(operands), {});
      node->place = t.place;
      node->switchesMode = true;
    }
    for (const auto& state : states) {
      emitGradMode(state.gradBefore);
      // What else the __enter__ of a torch-function mode does was traced.
      const bool mode = isMode(state.manager);
      if (mode) a.loadConst(importedObject("torch._C", "_push_on_torch_function_stack"));
      load(state.manager);
      if (!mode) a.loadMethod("__enter__");
      a.call(mode ? 1 : 0);
      a.popTop();
    }
    if (!states.empty() || gradEnabled() != gradAtEntry) emitGradMode(gradEnabled());
  }

  void emitSetting(const SettingCall& call) {
    a.loadConst(call.function.get());
    a.loadConst(call.args.get());
    if (call.kwargs) a.loadConst(call.kwargs.get());
    a.callFunctionEx(static_cast<bool>(call.kwargs));
    a.popTop();
  }

  void emitGradMode(bool on) {
    a.loadConst(setGradModeFunction());
    a.loadConst(on ? Py_True : Py_False);
    a.call(1);
    a.popTop();
  }

  void replayOutput(bool afterWrites) {
    for (const Effect& effect : t.effects())
      if (effect.afterWrites == afterWrites) emitEffect(a, effect, like_, [&](Value* v) { load(v); });
  }

  bool tryDirect(Value* result, bool gradAtEntry) {
    if (!isTensor(result) || result->source || !t.mutated().empty() || !t.effects().empty() || !t.earlyCalls().empty() ||
        gradEnabled() != gradAtEntry || !t.graph.hasWork() || !t.enteredStates().empty() || !t.settings.changed().empty())
      return false;
    auto* tensor = as<TensorValue>(result);
    if (!tensor->attrs.empty() || tensor->type != tensorType()) return false;
    emitted.direct = outputOf(tensor->node);
    return true;
  }

  // Loads every value that a write needs, so that the writes themselves only move finished objects.
  void prepareEffects() {
    auto build = [&](Value* v) {
      if (!v || isBuilt(v)) return;
      load(v);
      a.popTop();
    };
    for (const Effect& effect : t.effects()) {
      for (Value* v : effect.call.args) build(v);
      for (auto& [key, v] : effect.call.kwargs) build(v);
    }
    for (HeapValue* h : t.mutated()) {
      if (h->kind == Kind::List)
        for (Value* v : as<ListValue>(h)->items) build(v);
      if (h->kind == Kind::Dict)
        for (const DictEntry& e : as<DictValue>(h)->entries)
          if (e.written) build(e.value);
      if (h->kind == Kind::Generator)
        for (Value* v : heldBy(as<GeneratorValue>(h))) build(v);
      if (h->kind == Kind::Cell) build(as<CellValue>(h)->contents);
      if (h->kind == Kind::Instance)
        for (auto& [slot, v] : as<InstanceValue>(h)->slots) build(v);
    }
  }

  PyCodeObject* like_;
  Emitted emitted;
};

}  // namespace

Emitted emitReturn(Trace& t, PyCodeObject* like, Value* result, bool gradAtEntry) { return Emitter(t, like).run(result, gradAtEntry); }

Emitted emitSuspend(Trace& t, PyCodeObject* like, int line, const std::vector<Value*>& values, bool gradAtEntry) {
  return Emitter(t, like).suspend(values, line, gradAtEntry);
}

}  // namespace cdynamo
