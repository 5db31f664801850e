#include "bytecode/lowering.h"

#include <algorithm>

#include "base/error.h"
#include "bytecode/bound_locals.h"

namespace cdynamo {

uint32_t ObjectTable::indexOf(PyObject* object) {
  auto [found, isNew] = indices_.try_emplace(object, static_cast<uint32_t>(objects_.size()));
  if (isNew) objects_.push_back(ObjectRef::share(object));
  return found->second;
}

ObjectRef ObjectTable::tuple() const {
  ObjectRef made = checked(PyTuple_New(static_cast<Py_ssize_t>(objects_.size())));
  for (size_t i = 0; i < objects_.size(); ++i) {
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), ObjectRef(objects_[i]).release());
  }
  return made;
}

namespace {

// How a callable's NULL (or method pair) comes to lie under it. All but AtCall make the slot two raw slots wide.
enum class CallableForm : uint8_t {
  AtCall,      // the call itself sees to it
  GlobalBit,   // LOAD_GLOBAL pushes it
  NullBefore,  // PUSH_NULL before the instruction that pushes the callable
  NullAfter,   // PUSH_NULL; SWAP 2 after it
  MethodPair,
};

bool pushesOnly(Op op) {
  StackEffect effect = stackEffect(op, 0);
  return effect.pops == 0 && effect.pushes == 1 && op != Op::Copy && op != Op::ReturnGenerator;
}

Op inverted(Op op) {
  switch (op) {
    case Op::PopJumpIfTrue: return Op::PopJumpIfFalse;
    case Op::PopJumpIfFalse: return Op::PopJumpIfTrue;
    case Op::PopJumpIfNone: return Op::PopJumpIfNotNone;
    case Op::PopJumpIfNotNone: return Op::PopJumpIfNone;
    default: CD_CHECK(false, "a jump that cannot go backwards");
  }
}

class Lowering {
 public:
  Lowering(const CodeSpec& spec, std::span<const Instr> instrs, std::span<const Handler> handlers)
      : spec_(spec),
        instrs_(instrs),
        dialect_(dialect()),
        out_{.instrs = {}, .handlers = {handlers.begin(), handlers.end()}, .consts = {}, .names = {}, .stacksize = 0},
        leaders_(findLeaders()),
        fused_(findFusedSuper()),
        webs_(instrs, out_.handlers, fused_) {}
  LoweredCode run();

 private:
  // Which of an instruction's raw beginnings a jump means.
  enum class Entry : uint8_t { Start, EndFor };
  struct Fixup {
    size_t at;
    InstrIndex target;
    Entry entry;
  };

  std::vector<bool> findLeaders() const;
  std::vector<bool> findFusedSuper() const;
  void chooseForms();
  CallableForm formFor(const StackWebs::Web& web) const;
  void checkEndSends() const;

  void lower(InstrIndex i);
  void lowerPlain(InstrIndex i);
  void lowerCall(InstrIndex i);
  void lowerCallFunctionEx(InstrIndex i);
  void lowerSuperAttr(InstrIndex i);
  void lowerAttribute(InstrIndex i, bool method);
  void lowerJump(InstrIndex i);
  void lowerConditional(Op op, InstrIndex target, bool backward);
  void putEndFor(InstrIndex i);

  LoweredInstr& put(int opcode, uint32_t arg = 0);
  void putNullBelow(int values);
  void putJump(int opcode, InstrIndex target, bool backward, Entry entry = Entry::Start);
  void putSkip(int opcode);
  // The current instruction needs this many raw slots above those that it finds.
  void needStack(int extra) { out_.stacksize = std::max(out_.stacksize, rawDepth(current_, webs_.depth(current_)) + extra); }
  uint32_t argumentOf(InstrIndex i);

  int width(int web) const { return forms_[static_cast<size_t>(web)] == CallableForm::AtCall ? 1 : 2; }
  CallableForm calleeForm(InstrIndex i) const;
  int rawDepth(InstrIndex i, int slots) const;
  // Raw slots among the `values` topmost ones after `popped` were taken.
  uint32_t rawTop(InstrIndex i, int popped, int values) const;

  const CodeSpec& spec_;
  std::span<const Instr> instrs_;
  const Dialect& dialect_;
  LoweredCode out_;
  std::vector<bool> leaders_;
  std::vector<bool> fused_;  // Call + LoadAttr/LoadMethod that become LOAD_SUPER_ATTR
  StackWebs webs_;
  std::vector<bool> boundLoads_;
  std::vector<CallableForm> forms_;      // by web
  std::vector<int32_t> starts_;          // raw index by instruction
  std::vector<int32_t> endFors_;         // raw index of the END_FOR before it, -1 without
  std::vector<InstrIndex> wantsEndFor_;  // the ForIter that exits there, -1 without
  std::vector<Fixup> fixups_;
  InstrIndex current_ = 0;
  int32_t currentHandlerDepth_ = 0;
};

std::vector<bool> Lowering::findLeaders() const {
  std::vector<bool> leaders(instrs_.size(), false);
  auto mark = [&](InstrIndex target) {
    CD_CHECK(target < static_cast<InstrIndex>(leaders.size()), "a jump or handler leaves the code");
    if (target >= 0) leaders[static_cast<size_t>(target)] = true;
  };
  for (const Instr& instr : instrs_) mark(instr.target);
  for (const Handler& handler : out_.handlers) mark(handler.target);
  return leaders;
}

std::vector<bool> Lowering::findFusedSuper() const {
  std::vector<bool> fused(instrs_.size(), false);
  if (dialect_.loadSuperAttr < 0) return fused;
  for (size_t i = 0; i + 1 < instrs_.size(); ++i) {
    const Instr& call = instrs_[i];
    const Instr& load = instrs_[i + 1];
    fused[i] = call.op == Op::Call && (call.flags & kSuperCall) != 0 && call.arg == 2 && call.object == nullptr &&
               (load.op == Op::LoadAttr || load.op == Op::LoadMethod) && !leaders_[i + 1] && load.handler == call.handler;
  }
  return fused;
}

CallableForm Lowering::formFor(const StackWebs::Web& web) const {
  if (!web.onlyCalled()) return CallableForm::AtCall;
  Op producer = instrs_[static_cast<size_t>(web.producer)].op;
  if (producer == Op::LoadMethod) return web.calledEx ? CallableForm::NullAfter : CallableForm::MethodPair;
  if (producer == Op::LoadGlobal) return CallableForm::GlobalBit;
  if (pushesOnly(producer)) return CallableForm::NullBefore;
  if (operandOf(producer) == Operand::Jump || producer == Op::YieldValue || producer == Op::ReturnGenerator) {
    return CallableForm::AtCall;
  }
  return web.calledEx ? CallableForm::NullAfter : CallableForm::AtCall;
}

void Lowering::chooseForms() {
  int count = 0;
  for (InstrIndex i = 0; i < static_cast<InstrIndex>(instrs_.size()); ++i) {
    if (!webs_.reached(i)) continue;
    for (int slot = 0; slot < webs_.depth(i); ++slot) count = std::max(count, webs_.webAt(i, slot) + 1);
    count = std::max(count, webs_.pushedBy(i) + 1);
  }
  forms_.assign(static_cast<size_t>(count), CallableForm::AtCall);
  for (int id = 0; id < count; ++id) forms_[static_cast<size_t>(id)] = formFor(webs_.web(id));
}

// Where SEND drops the receiver itself, EndSend is no instruction: nothing but a Send may lead to it.
void Lowering::checkEndSends() const {
  if (dialect_.sendKeepsReceiver) return;
  for (size_t i = 0; i < instrs_.size(); ++i) {
    if (instrs_[i].target >= 0) {
      bool toEndSend = instrs_[static_cast<size_t>(instrs_[i].target)].op == Op::EndSend;
      CD_CHECK(toEndSend == (instrs_[i].op == Op::Send), "Send, and nothing else, jumps to EndSend");
    } else if (i > 0 && instrs_[i].op == Op::EndSend) {
      CD_CHECK(!fallsThrough(instrs_[i - 1].op), "control falls into EndSend");
    }
  }
}

LoweredCode Lowering::run() {
  checkEndSends();
  chooseForms();
  if (dialect_.loadFastUnchecked >= 0) boundLoads_ = loadsOfBoundLocals(spec_, instrs_, out_.handlers, webs_);
  out_.consts.indexOf(spec_.doc ? spec_.doc.get() : Py_None);
  const size_t count = instrs_.size();
  out_.instrs.reserve(count + count / 4);
  starts_.assign(count, -1);
  endFors_.assign(count, -1);
  wantsEndFor_.assign(count, -1);
  for (size_t i = 0; i < count && dialect_.endFor >= 0; ++i) {
    if (instrs_[i].op == Op::ForIter && webs_.reached(static_cast<InstrIndex>(i))) {
      wantsEndFor_[static_cast<size_t>(instrs_[i].target)] = static_cast<InstrIndex>(i);
    }
  }
  for (InstrIndex i = 0; i < static_cast<InstrIndex>(count); ++i) {
    if (!webs_.reached(i)) continue;
    current_ = i;
    const Instr& instr = instrs_[static_cast<size_t>(i)];
    if (instr.handler >= 0) {
      currentHandlerDepth_ = rawDepth(i, out_.handlers[static_cast<size_t>(instr.handler)].depth);
    }
    if (wantsEndFor_[static_cast<size_t>(i)] >= 0) putEndFor(i);
    starts_[static_cast<size_t>(i)] = static_cast<int32_t>(out_.instrs.size());
    needStack(0);
    lower(i);
    if (fused_[static_cast<size_t>(i)]) ++i;
  }
  for (const Fixup& fixup : fixups_) {
    const auto& places = fixup.entry == Entry::EndFor ? endFors_ : starts_;
    out_.instrs[fixup.at].target = places[static_cast<size_t>(fixup.target)];
  }
  for (Handler& handler : out_.handlers) {
    if (handler.target >= 0) handler.target = starts_[static_cast<size_t>(handler.target)];
  }
  out_.stacksize = std::max(out_.stacksize, 1);
  return std::move(out_);
}

LoweredInstr& Lowering::put(int opcode, uint32_t arg) {
  CD_CHECK(opcode >= 0, "this Python has no instruction for that");
  const Instr& source = instrs_[static_cast<size_t>(current_)];
  LoweredInstr made;
  made.opcode = static_cast<uint8_t>(opcode);
  made.arg = arg;
  made.handler = source.handler;
  made.handlerDepth = currentHandlerDepth_;
  made.pos = source.pos;
  return out_.instrs.emplace_back(made);
}

// [.. v1 .. vn] -> [.. NULL, v1 .. vn]
void Lowering::putNullBelow(int values) {
  put(dialect_.pushNull);
  for (int k = values + 1; k >= 2; --k) put(dialect_.swap, static_cast<uint32_t>(k));
}

void Lowering::putJump(int opcode, InstrIndex target, bool backward, Entry entry) {
  LoweredInstr& jump = put(opcode);
  jump.backward = backward;
  fixups_.push_back({out_.instrs.size() - 1, target, entry});
}

// A jump over the one instruction that is put next.
void Lowering::putSkip(int opcode) {
  auto after = static_cast<int32_t>(out_.instrs.size()) + 2;
  put(opcode).target = after;
}

CallableForm Lowering::calleeForm(InstrIndex i) const {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  int slot = webs_.depth(i) - stackEffect(instr.op, instr.arg).pops;
  return forms_[static_cast<size_t>(webs_.webAt(i, slot))];
}

int Lowering::rawDepth(InstrIndex i, int slots) const {
  int depth = 0;
  for (int slot = 0; slot < slots; ++slot) depth += width(webs_.webAt(i, slot));
  return depth;
}

uint32_t Lowering::rawTop(InstrIndex i, int popped, int values) const {
  int top = webs_.depth(i) - popped;
  return static_cast<uint32_t>(rawDepth(i, top) - rawDepth(i, top - values));
}

void Lowering::lower(InstrIndex i) {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  if (fused_[static_cast<size_t>(i)]) {
    lowerSuperAttr(i);
    return;
  }
  int pushed = webs_.pushedBy(i);
  CallableForm form = pushed >= 0 ? forms_[static_cast<size_t>(pushed)] : CallableForm::AtCall;
  if (form == CallableForm::NullBefore) put(dialect_.pushNull);
  switch (instr.op) {
    case Op::Call: lowerCall(i); break;
    case Op::CallFunctionEx: lowerCallFunctionEx(i); break;
    case Op::LoadAttr: lowerAttribute(i, false); break;
    case Op::LoadMethod: lowerAttribute(i, form == CallableForm::MethodPair); break;
    case Op::LoadGlobal:
      put(encodingOf(instr.op).forward, out_.names.indexOf(instr.object) << 1 | (form == CallableForm::GlobalBit ? 1U : 0U));
      break;
    case Op::EndSend:
      if (dialect_.sendKeepsReceiver) lowerPlain(i);
      break;
    default:
      if (operandOf(instr.op) == Operand::Jump) {
        lowerJump(i);
      } else {
        lowerPlain(i);
      }
  }
  if (form == CallableForm::NullAfter) putNullBelow(1);
}

uint32_t Lowering::argumentOf(InstrIndex i) {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  switch (operandOf(instr.op)) {
    case Operand::Const: return out_.consts.indexOf(instr.object);
    case Operand::Name: return out_.names.indexOf(instr.object);
    case Operand::None: return 0;
    default: break;
  }
  if (instr.op == Op::CompareOp) {
    CD_CHECK(instr.arg >= 0 && instr.arg < 6, "an unknown comparison");
    return static_cast<uint32_t>(instr.arg) << dialect_.compareShift | dialect_.compareMask[instr.arg];
  }
  if (instr.op == Op::YieldValue && !dialect_.yieldCountsHandlers) return 0;
  if (instr.op == Op::Swap || instr.op == Op::Copy) return rawTop(i, 0, instr.arg);
  if (hasContainerIndex(instr.op)) return rawTop(i, stackEffect(instr.op, instr.arg).pops, instr.arg);
  return static_cast<uint32_t>(instr.arg);
}

void Lowering::lowerPlain(InstrIndex i) {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  const OpEncoding& encoding = encodingOf(instr.op);
  if (encoding.intrinsic >= 0) {
    put(encoding.forward, static_cast<uint32_t>(encoding.intrinsic));
  } else if (instr.op == Op::LoadFast && dialect_.loadFastUnchecked >= 0 && boundLoads_[static_cast<size_t>(i)]) {
    put(dialect_.loadFastUnchecked, argumentOf(i));
  } else {
    put(encoding.forward, argumentOf(i));
  }
  if (encoding.popAfter) put(dialect_.popTop);
}

void Lowering::lowerCall(InstrIndex i) {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  auto count = static_cast<uint32_t>(instr.arg);
  if (calleeForm(i) == CallableForm::AtCall) {
    if (count == 0) {
      needStack(1);
      putNullBelow(1);
    } else {
      --count;  // the callable stands in the method's slot, the first argument in self's
    }
  }
  if (instr.object != nullptr) put(dialect_.kwNames, out_.consts.indexOf(instr.object));
  if (dialect_.precall >= 0) put(dialect_.precall, count);
  put(dialect_.call, count);
}

void Lowering::lowerCallFunctionEx(InstrIndex i) {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  if (calleeForm(i) == CallableForm::AtCall) {
    needStack(1);
    putNullBelow(stackEffect(instr.op, instr.arg).pops);
  }
  put(dialect_.callFunctionEx, static_cast<uint32_t>(instr.arg & 1));
}

void Lowering::lowerAttribute(InstrIndex i, bool method) {
  uint32_t name = out_.names.indexOf(instrs_[static_cast<size_t>(i)].object);
  if (method && dialect_.loadMethod >= 0) {
    put(dialect_.loadMethod, name);
  } else {
    put(encodingOf(Op::LoadAttr).forward, dialect_.loadAttrShifted ? name << 1 | (method ? 1U : 0U) : name);
  }
}

void Lowering::lowerSuperAttr(InstrIndex i) {
  const Instr& call = instrs_[static_cast<size_t>(i)];
  const Instr& load = instrs_[static_cast<size_t>(i) + 1];
  int pushed = webs_.pushedBy(i + 1);
  CallableForm form = pushed >= 0 ? forms_[static_cast<size_t>(pushed)] : CallableForm::AtCall;
  uint32_t arg = out_.names.indexOf(load.object) << 2;
  if ((call.flags & kSuperZeroArgs) == 0) arg |= 2;
  if (form == CallableForm::MethodPair) arg |= 1;
  put(dialect_.loadSuperAttr, arg);
  if (form == CallableForm::NullAfter) putNullBelow(1);
}

void Lowering::lowerConditional(Op op, InstrIndex target, bool backward) {
  const OpEncoding& encoding = encodingOf(op);
  if (!backward || encoding.backward >= 0) {
    putJump(backward ? encoding.backward : encoding.forward, target, backward);
    return;
  }
  putSkip(encodingOf(inverted(op)).forward);
  putJump(encodingOf(Op::JumpBackward).backward, target, true);
}

void Lowering::lowerJump(InstrIndex i) {
  const Instr& instr = instrs_[static_cast<size_t>(i)];
  const OpEncoding& encoding = encodingOf(instr.op);
  bool backward = instr.target <= i;
  switch (instr.op) {
    case Op::Jump:
    case Op::JumpBackward:
      if (backward && (instr.flags & kNoInterrupt) != 0) {
        putJump(dialect_.jumpBackwardNoInterrupt, instr.target, true);
      } else {
        putJump(backward ? encoding.backward : encoding.forward, instr.target, backward);
      }
      return;
    case Op::ForIter:
      CD_CHECK(!backward, "ForIter cannot jump backwards");
      putJump(encoding.forward, instr.target, false, dialect_.endFor >= 0 ? Entry::EndFor : Entry::Start);
      return;
    case Op::Send:
      CD_CHECK(!backward, "Send cannot jump backwards");
      putJump(encoding.forward, instr.target, false);
      return;
    case Op::JumpIfTrueOrPop:
    case Op::JumpIfFalseOrPop:
      if (encoding.forward >= 0 && !backward) {
        putJump(encoding.forward, instr.target, false);
        return;
      }
      needStack(1);
      put(dialect_.copy, 1);
      lowerConditional(instr.op == Op::JumpIfTrueOrPop ? Op::PopJumpIfTrue : Op::PopJumpIfFalse, instr.target, backward);
      put(dialect_.popTop);
      return;
    default: lowerConditional(instr.op, instr.target, backward);
  }
}

// FOR_ITER's way out: END_FOR directly before the target, jumped over by who would fall into it.
void Lowering::putEndFor(InstrIndex i) {
  if (i > 0 && webs_.reached(i - 1) && fallsThrough(instrs_[static_cast<size_t>(i) - 1].op)) {
    putSkip(encodingOf(Op::Jump).forward);
  }
  endFors_[static_cast<size_t>(i)] = static_cast<int32_t>(out_.instrs.size());
  put(dialect_.endFor).pos = instrs_[static_cast<size_t>(wantsEndFor_[static_cast<size_t>(i)])].pos;
}

}  // namespace

LoweredCode lowerCode(const CodeSpec& spec, std::span<const Instr> instrs, std::span<const Handler> handlers) {
  return Lowering(spec, instrs, handlers).run();
}

}  // namespace cdynamo
