#include "interp/suspend.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/lookup.h"
#include "base/own_library.h"
#include "cpython/compat.h"
#include "guards/mortals.h"
#include "interp/intrinsics.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// Methods of polyfill classes that stand for objects of the library, what makes these, and methods of async generators: what is carried are
// those objects.
bool isStandInsMethod(const FrameState& f) {
  static PyObject* standIns = PyModule_GetDict(checked(PyImport_ImportModule("cdynamo._stand_ins")).release());
  if (f.globals == standIns) return true;
  Value* self = f.locals.empty() || f.code->argcount() == 0 ? nullptr : f.locals[0];
  if (!self) return false;
  if (self->kind == Kind::Generator) return as<GeneratorValue>(self)->type == &PyAsyncGen_Type && isOwnLibrary(f.globals, "__name__");
  return self->kind == Kind::Instance && isOwnLibrary(typeDict(as<InstanceValue>(self)->type), "__module__");
}

}  // namespace

std::vector<FrameState*> resumableFrames(FrameState* innermost) {
  std::vector<FrameState*> all;
  for (FrameState* f = innermost; f; f = f->parent) all.push_back(f);
  std::reverse(all.begin(), all.end());
  size_t count = 0;
  while (count < all.size() && (count == 0 || all[count]->returnTo != ReturnTo::Native) && isResumable(*all[count]->code) &&
         !isStandInsMethod(*all[count]))
    count++;
  all.resize(count);
  return all;
}

namespace {

// A generator that may be left inside try or with, or an iterator over one.
bool runsCodeWhenDropped(Value* v) {
  if (v->kind == Kind::Generator) {
    auto* g = as<GeneratorValue>(v);
    return !g->finished && (!g->frame || mustBeClosed(g) || g->frame->code->hasTry());
  }
  if (v->kind != Kind::Iterator) return false;
  const auto& inputs = as<IteratorValue>(v)->inputs;
  return std::any_of(inputs.begin(), inputs.end(), [](Value* input) { return input && runsCodeWhenDropped(input); });
}

// Looks for what would show, by a finaliser or a weak reference, that an object and what it holds die. It gives up after some objects:
// what they lead to is seldom held by them alone.
class DeathWatch {
 public:
  bool shows(PyObject* object) {
    seen_.clear();
    visit(object, 0);
    return found_;
  }

 private:
  static constexpr size_t kMostObjects = 64;
  static constexpr int kMostLevels = 3;

  void visit(PyObject* object, int level) {
    PyTypeObject* type = Py_TYPE(object);
    if (found_ || seen_.size() >= kMostObjects || (!PyType_IS_GC(type) && level > 0) || !seen_.insert(object).second) return;
    if (type->tp_finalize || type->tp_del || type == &PyMemoryView_Type || (PyWeakref_Check(object) && level == 0)) {
      found_ = true;
      return;
    }
    // A class is seen by its bases.
    if (PyType_Check(object)) found_ = level == 0 && Mortals::canDie(object);
    if (PyType_Check(object) || PyModule_Check(object) || (PyFunction_Check(object) && level > 0)) return;
    found_ = hasWeakReferences(object);
    if (found_ || level == kMostLevels || !type->tp_traverse || PyFunction_Check(object)) return;
    std::pair<DeathWatch*, int> inner{this, level + 1};
    type->tp_traverse(
        object,
        [](PyObject* held, void* to) {
          auto [watch, depth] = *static_cast<std::pair<DeathWatch*, int>*>(to);
          watch->visit(held, depth);
          return 0;
        },
        &inner);
  }

  std::unordered_set<PyObject*> seen_;
  bool found_ = false;
};

// A container that the trace made or changed, whose items die with it.
bool holdsWatched(Value* v) {
  auto watched = [](Value* item) {
    auto* instance = item && item->kind == Kind::Instance && item->source ? as<InstanceValue>(item) : nullptr;
    return instance && instance->real && DeathWatch().shows(instance->real.get());
  };
  if (v->kind == Kind::List) return std::any_of(as<ListValue>(v)->items.begin(), as<ListValue>(v)->items.end(), watched);
  if (v->kind == Kind::Tuple) return std::any_of(as<TupleValue>(v)->items.begin(), as<TupleValue>(v)->items.end(), watched);
  if (v->kind == Kind::Dict)
    for (const DictEntry& e : as<DictValue>(v)->entries)
      if (watched(e.value) || (e.value && watched(e.key.value))) return true;
  return false;
}

// Objects whose death can be seen. What an eager call is given (it is on a stack) may become one; a class is seen through its bases.
bool isDeathVisible(const Trace& t, Value* v, const std::vector<FrameState*>& frames) {
  if (isReal(v) && t.localClass(realObject(v))) return true;
  if (v->kind == Kind::Instance && (as<InstanceValue>(v)->type == &_PyWeakref_RefType || as<InstanceValue>(v)->isReferenced)) return true;
  if (runsCodeWhenDropped(v)) return true;
  if (v->kind == Kind::Generator && isNeverAwaited(as<GeneratorValue>(v))) return true;
  auto* heap = dynamic_cast<HeapValue*>(v);
  PyObject* object = isReal(v) ? realObject(v) : isTensor(v) ? as<TensorValue>(v)->real : heap ? heap->real.get() : nullptr;
  if (object && v->source && (isForeign(object) || DeathWatch().shows(object))) return true;
  if (holdsWatched(v)) return true;
  const bool isFunction = v->kind == Kind::Function || (isReal(v) && v->source && PyFunction_Check(realObject(v)));
  if (!isTensor(v) && v->kind != Kind::Instance && v->kind != Kind::Generator && v->kind != Kind::Set && !isFunction) return false;
  for (const FrameState* f : frames)
    for (Value* on : f->stack)
      if (on == v || (isReal(v) && isReal(on, realObject(v)))) return true;
  return false;
}

// Code that a load of an attribute runs. An AttributeError that leaves it is told the object, its first argument.
bool isRunByLoad(const FrameState& f) {
  if (!f.parent || f.locals.empty()) return false;
  Op op = f.parent->code->at(f.parent->ip).op;
  return op == Op::LoadAttr || op == Op::LoadMethod;
}

void describeFrame(const Trace& t, FrameState& f, Value* handled, const std::vector<FrameState*>& frames, bool wholly, Suspension& out) {
  const Code& code = *f.code;
  std::vector<LocalState> bound;
  std::vector<bool> stack;
  for (Value* v : f.locals) {
    const bool isBound = v && v->kind != Kind::Unbound;
    bound.push_back(!isBound ? LocalState::Unbound : wholly || isDeathVisible(t, v, frames) ? LocalState::Kept : LocalState::Bound);
  }
  if (isRunByLoad(f) && bound[0] == LocalState::Bound) bound[0] = LocalState::Kept;
  for (Value* v : f.stack) stack.push_back(v->kind != Kind::Unbound);
  ResumeChain::Frame frame;
  frame.at = resumePoint(code, f.ip, bound, stack, handled != nullptr);
  frame.returnTo = f.returnTo;
  frame.globals = ObjectRef::share(f.globals);
  for (int slot : frame.at->locals) out.values.push_back(f.locals[static_cast<size_t>(slot)]);
  for (Value* v : f.stack)
    if (v->kind != Kind::Unbound) out.values.push_back(v);
  if (handled) out.values.push_back(handled);
  if (frame.at->isGenerator()) out.values.push_back(f.generator);
  for (int slot : cellSlots(code)) {
    Value* cell = f.locals[static_cast<size_t>(slot)];
    if (!cell || cell->kind != Kind::Cell) unsupported(BreakReason::Unreconstructable, "a frame before its cells are made");
    out.values.push_back(cell);
  }
  out.frames.push_back(std::move(frame));
}

}  // namespace

Suspension suspend(Trace& t, const std::vector<FrameState*>& frames, bool wholly) {
  FrameState& last = *frames.back();
  t.rollBack(last.atInstruction);
  last.restoreStack();
  if (t.vmapLevel > 0) unsupported(BreakReason::Unreconstructable, "a frame inside vmap");
  if (wholly)
    for (const FrameState* f : frames) t.noteLeft(*f, raisedAt(*f));
  Suspension made;
  made.line = last.code->lineOf(last.ip);
  for (size_t i = 0; i < frames.size(); i++)
    describeFrame(t, *frames[i], i + 1 < frames.size() ? frames[i + 1]->handledAtEntry : t.handledException, frames, wholly, made);
  return made;
}

namespace {

// Whether the program can come back to the instruction without raising.
bool isInLoop(const Code& code, InstrIndex at) {
  std::vector<bool> seen(static_cast<size_t>(code.size()), false);
  std::vector<InstrIndex> open;
  auto visit = [&](InstrIndex i) {
    if (seen[static_cast<size_t>(i)]) return;
    seen[static_cast<size_t>(i)] = true;
    open.push_back(i);
  };
  auto follow = [&](InstrIndex i) {
    const Instr& in = code.at(i);
    if (operandOf(in.op) == Operand::Jump) visit(in.target);
    if (fallsThrough(in.op)) visit(i + 1);
  };
  for (follow(at); !open.empty();) {
    InstrIndex i = open.back();
    open.pop_back();
    follow(i);
  }
  return seen[static_cast<size_t>(at)];
}

// Managers that torch._dynamo enters again after the break.
bool isTorchContext(Value* exit) {
  auto* method = exit->kind == Kind::BoundMethod ? as<BoundMethodValue>(exit) : nullptr;
  PyTypeObject* manager = method && method->self->kind == Kind::Instance ? as<InstanceValue>(method->self)->type : nullptr;
  if (isReal(exit) && PyMethod_Check(realObject(exit))) manager = Py_TYPE(PyMethod_GET_SELF(realObject(exit)));
  if (!manager) return false;
  PyObject* module = PyDict_GetItemString(typeDict(manager), "__module__");
  const char* name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  PyErr_Clear();
  if (!name) return false;
  std::string text = name;
  return text == "torch.autograd.grad_mode" || text == "torch.amp.autocast_mode" || text.ends_with(".amp.autocast_mode") ||
         (text == "contextlib" && std::strcmp(manager->tp_name, "nullcontext") == 0);
}

}  // namespace

const char* unresumedBlock(const FrameState& f) {
  const Code& code = *f.code;
  if (isInLoop(code, f.ip)) return "a for/while loop";
  const Handler* innermost = code.handlerOf(f.ip);
  for (const Handler* h = innermost; h; h = code.handlerOf(h->target)) {
    // A handler that only puts the handled exception back is that of another handler's body.
    if (code.at(h->target).op != Op::PushExcInfo) {
      if (h == innermost) return "an except clause";
      continue;
    }
    if (code.at(h->target + 1).op != Op::WithExceptStart) return "a try statement";
    if (!isTorchContext(f.stack[static_cast<size_t>(h->depth) - 1])) return "a context manager";
  }
  return nullptr;
}

void balanceGraph(Trace& t, bool gradAtEntry) {
  if (!t.graph.hasWork()) return;
  for (const Settings::Change& change : t.settings.changed())
    if (change.inGraph) t.record(change.before);
  if (gradEnabled() == gradAtEntry) return;
  t.record({ObjectRef::share(importedObject("torch._C", "_set_grad_enabled")), checked(PyTuple_Pack(1, gradAtEntry ? Py_True : Py_False)), {}});
}

}  // namespace cdynamo
