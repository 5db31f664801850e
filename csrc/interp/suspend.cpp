#include "interp/suspend.h"

#include <algorithm>

#include "base/lookup.h"
#include "torch/bridge.h"

namespace cdynamo {

std::vector<FrameState*> resumableFrames(FrameState* innermost) {
  std::vector<FrameState*> all;
  for (FrameState* f = innermost; f; f = f->parent) all.push_back(f);
  std::reverse(all.begin(), all.end());
  size_t count = 0;
  while (count < all.size() && (count == 0 || all[count]->returnTo != ReturnTo::Native) && isResumable(*all[count]->code)) count++;
  all.resize(count);
  return all;
}

namespace {

void describeFrame(FrameState& f, Value* handled, Suspension& out) {
  const Code& code = *f.code;
  std::vector<bool> bound, stack;
  for (Value* v : f.locals) bound.push_back(v && v->kind != Kind::Unbound);
  for (Value* v : f.stack) stack.push_back(v->kind != Kind::Unbound);
  ResumeChain::Frame frame;
  frame.at = resumePoint(code, f.ip, bound, stack, handled != nullptr);
  frame.returnTo = f.returnTo;
  frame.globals = ObjectRef::share(f.globals);
  for (int slot : frame.at->locals) out.values.push_back(f.locals[static_cast<size_t>(slot)]);
  for (Value* v : f.stack)
    if (v->kind != Kind::Unbound) out.values.push_back(v);
  if (handled) out.values.push_back(handled);
  for (int slot : cellSlots(code)) {
    Value* cell = f.locals[static_cast<size_t>(slot)];
    if (!cell || cell->kind != Kind::Cell) unsupported(BreakReason::Unreconstructable, "a frame before its cells are made");
    out.values.push_back(cell);
  }
  out.frames.push_back(std::move(frame));
}

}  // namespace

Suspension suspend(Trace& t, const std::vector<FrameState*>& frames) {
  FrameState& last = *frames.back();
  t.rollBack(last.atInstruction);
  last.restoreStack();
  if (t.vmapLevel > 0) unsupported(BreakReason::Unreconstructable, "a frame inside vmap");
  Suspension made;
  made.line = last.code->lineOf(last.ip);
  for (size_t i = 0; i < frames.size(); i++)
    describeFrame(*frames[i], i + 1 < frames.size() ? frames[i + 1]->handledAtEntry : t.handledException, made);
  return made;
}

void balanceGraph(Trace& t, bool gradAtEntry) {
  if (gradEnabled() == gradAtEntry || t.graph.callCount() == 0) return;
  std::vector<Arg> operands(1);
  operands[0].object = ObjectRef::share(gradAtEntry ? Py_True : Py_False);
  t.graph.add(NodeOp::CallFunction, ObjectRef::share(importedObject("torch._C", "_set_grad_enabled")), std::move(operands), {})->place = t.place;
}

}  // namespace cdynamo
