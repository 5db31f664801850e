#include "values/effects.h"

#include "base/own_library.h"
#include "interp/frame.h"
#include "values/trace.h"

namespace cdynamo {

void Trace::defer(LateCall call, bool ordered) {
  Effect effect;
  effect.call = std::move(call);
  effect.ordered = ordered;
  effect.afterWrites = !effects_.empty() && effects_.back().afterWrites;
  if (ordered && !mutated_.empty()) effect.afterWrites = true;
  for (FrameState* f = frame; f; f = f->parent) {
    if (isOwnLibrary(f->globals, "__name__")) continue;
    PyObject* code = keep(ObjectRef::share(reinterpret_cast<PyObject*>(f->code->pyCode())));
    effect.frames.push_back({code, keep(ObjectRef::share(f->globals)), f->place ? f->place->line : 0});
  }
  if (ordered && !orderedEffects_) journal.set(orderedEffects_, true);
  if (ordered && effect.afterWrites && !orderedAfter_) journal.set(orderedAfter_, true);
  effects_.push_back(std::move(effect));
  journal.onRollback([this] { effects_.pop_back(); });
}

void Trace::readLater(TensorValue* t) {
  t = rootOf(t);
  for (TensorValue* known : lateReads_)
    if (known == t) return;
  lateReads_.push_back(t);
  journal.onRollback([this] { lateReads_.pop_back(); });
}

void Trace::checkLateReads(TensorValue* t) {
  if (lateReads_.empty() && !orderedEffects_) return;
  t = rootOf(t);
  // Two inputs may share memory.
  for (TensorValue* read : lateReads_)
    if (read == t || (read->source && t->source))
      unsupported(BreakReason::UnsupportedMutation, "writing to a tensor that earlier output, made after the graph, shows");
  if (orderedEffects_ && t->source) unsupported(BreakReason::UnsupportedMutation, "writing to an input after output that could raise");
}

}  // namespace cdynamo
