// From a code object's bytes to the normal form.
//
// A forward walk over the raw instructions carries the shape of the raw stack: one character per slot, so that every
// NULL and every [method, self] pair is known where a call, a stack index or a handler depth depends on it.
#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "bytecode/code.h"
#include "cpython/code_tables.h"
#include "cpython/compat.h"
#include "cpython/opcode_table.h"

namespace cdynamo {
namespace {

using StackShape = std::string;  // top at the back
constexpr char kValue = 'v';
constexpr char kNull = 'n';
constexpr char kPairLow = 'm';   // LOAD_METHOD's lower slot: method or NULL
constexpr char kPairHigh = 's';  // its upper slot: self or the attribute; the pair counts as one through it

constexpr bool countsAsValue(char slot) { return slot == kValue || slot == kPairHigh; }

// NULL-free number of slots among the top `n` raw ones.
int valuesInTop(const StackShape& shape, size_t n) {
  CD_CHECK(n <= shape.size(), "an instruction reaches below the stack");
  int count = 0;
  for (size_t i = shape.size() - n; i < shape.size(); ++i) count += countsAsValue(shape[i]);
  return count;
}

int valuesBelow(const StackShape& shape, size_t rawDepth) {
  CD_CHECK(rawDepth <= shape.size(), "a handler keeps more than the stack holds");
  int count = 0;
  for (size_t i = 0; i < rawDepth; ++i) count += countsAsValue(shape[i]);
  return count;
}

void popValues(StackShape& shape, int n) {
  CD_CHECK(static_cast<size_t>(n) <= shape.size(), "the stack runs empty");
  for (int i = 0; i < n; ++i) {
    CD_CHECK(shape.back() == kValue, "an instruction takes a NULL or half of a method pair");
    shape.pop_back();
  }
}

void pushValues(StackShape& shape, int n) { shape.append(static_cast<size_t>(n), kValue); }

void apply(StackShape& shape, StackEffect effect) {
  popValues(shape, effect.pops);
  pushValues(shape, effect.pushes);
}

}  // namespace

class Decoder {
 public:
  explicit Decoder(Code& out) : out_(out), code_(out.pyCode()), dialect_(dialect()) {}
  void run();

 private:
  struct Block {
    size_t raw;
    StackShape shape;
  };
  // What one raw instruction became: a stretch of `pieces_`.
  struct Chunk {
    uint32_t begin = 0;
    uint32_t count = 0;
    InstrIndex index = -1;    // of its first instruction in the result (or of the next one)
    InstrIndex endSend = -1;  // of the EndSend put in front of it
    bool reached = false;
    bool needsEndSend = false;
    size_t sendFrom = 0;  // the raw SEND that wants it
  };
  struct Piece {
    Instr instr;
    int32_t depth;
    int64_t rawTarget = -1;
    bool toEndSend = false;
  };

  void readRaw();
  void walk();
  void walkBlock(Block block);
  // Lowers raw instruction i, moves `shape` to the state after it. False: the next one is not reached. Where several
  // were taken as one, i becomes the last of them.
  bool lower(size_t& i, StackShape& shape);
  bool lowerJump(size_t i, StackShape& shape, const RawOp& info);
  void lowerCall(size_t i, StackShape& shape);
  void lowerSuperAttr(size_t i, StackShape& shape);
  void lowerIntrinsic(size_t i, StackShape& shape, const IntrinsicOp* intrinsic);
  void lowerSwapRun(size_t& i, StackShape& shape);
  void emitPermutation(size_t i, const std::vector<int>& wanted);
  void pushMethod(size_t i, StackShape& shape, PyObject* name);
  void enterHandler(size_t i, const StackShape& shape);
  void flow(size_t target, const StackShape& shape);

  Piece& emit(size_t i, Op op, int arg, PyObject* object, int depth);
  // Emits one op and applies its fall-through effect.
  Piece& emitAndApply(size_t i, Op op, int arg, PyObject* object, StackShape& shape);
  size_t rawAt(UnitOffset unit) const;
  size_t jumpTarget(size_t i, bool backward) const;
  PyObject* name(uint32_t index) const;
  PyObject* constant(uint32_t index) const;

  void link();
  void makeHandlers();
  void describeLocals();

  Code& out_;
  PyCodeObject* code_;
  const Dialect& dialect_;
  std::vector<RawInstr> raw_;
  std::vector<Position> positions_;
  std::vector<int32_t> rawOfUnit_;
  std::vector<RawHandler> rawHandlers_;
  std::vector<int32_t> handlerDepths_;  // NULL-free, -1 until seen
  std::vector<int32_t> handlerOfRaw_;
  std::vector<std::optional<StackShape>> entry_;  // shapes at the places that a jump reaches
  std::vector<bool> isTarget_;
  std::vector<Chunk> chunks_;
  std::vector<Piece> pieces_;
  std::deque<Block> work_;
};

void Decoder::run() {
  readRaw();
  walk();
  link();
  makeHandlers();
  describeLocals();
}

void Decoder::readRaw() {
  raw_ = readInstructions(code_);
  CD_CHECK(!raw_.empty(), "a code object without instructions");
  int units = raw_.back().next.value;
  positions_ = readPositions(code_, units);
  rawOfUnit_.assign(static_cast<size_t>(units), -1);
  for (size_t i = 0; i < raw_.size(); ++i) {
    rawOfUnit_[static_cast<size_t>(raw_[i].start.value)] = static_cast<int32_t>(i);
  }
  rawHandlers_ = readHandlers(code_);
  handlerDepths_.assign(rawHandlers_.size(), -1);
  handlerOfRaw_.assign(raw_.size(), -1);
  for (size_t h = 0; h < rawHandlers_.size(); ++h) {
    for (size_t i = rawAt(rawHandlers_[h].start); i < raw_.size() && raw_[i].start < rawHandlers_[h].end; ++i) {
      handlerOfRaw_[i] = static_cast<int32_t>(h);
    }
  }
  entry_.resize(raw_.size());
  chunks_.resize(raw_.size());
  pieces_.reserve(raw_.size() + 8);
  isTarget_.assign(raw_.size(), false);
  for (size_t i = 0; i < raw_.size(); ++i) {
    RawForm form = rawOp(raw_[i].opcode).form;
    if (form == RawForm::JumpForward || form == RawForm::ForIter || form == RawForm::Send) {
      size_t target = jumpTarget(i, false);
      isTarget_[target] = true;
      if (form == RawForm::ForIter && dialect_.endFor >= 0 && target + 1 < raw_.size()) isTarget_[target + 1] = true;
    } else if (form == RawForm::JumpBackward || form == RawForm::JumpBackwardNoInterrupt) {
      isTarget_[jumpTarget(i, true)] = true;
    }
  }
  for (const RawHandler& h : rawHandlers_) isTarget_[rawAt(h.target)] = true;
}

size_t Decoder::rawAt(UnitOffset unit) const {
  CD_CHECK(unit.value >= 0 && static_cast<size_t>(unit.value) < rawOfUnit_.size(), "a code offset is out of range");
  int32_t raw = rawOfUnit_[static_cast<size_t>(unit.value)];
  CD_CHECK(raw >= 0, "a code offset is not at an instruction");
  return static_cast<size_t>(raw);
}

size_t Decoder::jumpTarget(size_t i, bool backward) const {
  auto distance = static_cast<int32_t>(raw_[i].arg);
  return rawAt({raw_[i].next.value + (backward ? -distance : distance)});
}

PyObject* Decoder::name(uint32_t index) const {
  CD_CHECK(index < static_cast<size_t>(PyTuple_GET_SIZE(code_->co_names)), "a name index is out of range");
  return PyTuple_GET_ITEM(code_->co_names, static_cast<Py_ssize_t>(index));
}

PyObject* Decoder::constant(uint32_t index) const {
  CD_CHECK(index < static_cast<size_t>(PyTuple_GET_SIZE(code_->co_consts)), "a constant index is out of range");
  return PyTuple_GET_ITEM(code_->co_consts, static_cast<Py_ssize_t>(index));
}

Decoder::Piece& Decoder::emit(size_t i, Op op, int arg, PyObject* object, int depth) {
  Piece piece;
  piece.instr.op = op;
  piece.instr.arg = arg;
  piece.instr.object = object;
  piece.instr.offset = raw_[i].own.bytes();
  piece.instr.pos = positions_[static_cast<size_t>(raw_[i].own.value)];
  piece.instr.handler = handlerOfRaw_[i];  // raw table index until makeHandlers()
  piece.depth = depth;
  Chunk& chunk = chunks_[i];
  if (chunk.count == 0) chunk.begin = static_cast<uint32_t>(pieces_.size());
  ++chunk.count;
  return pieces_.emplace_back(piece);
}

Decoder::Piece& Decoder::emitAndApply(size_t i, Op op, int arg, PyObject* object, StackShape& shape) {
  Piece& piece = emit(i, op, arg, object, valuesInTop(shape, shape.size()));
  apply(shape, stackEffect(op, arg));
  return piece;
}

void Decoder::walk() {
  flow(0, StackShape());
  while (!work_.empty()) {
    Block block = std::move(work_.front());
    work_.pop_front();
    walkBlock(std::move(block));
  }
}

void Decoder::walkBlock(Block block) {
  StackShape shape = std::move(block.shape);
  for (size_t i = block.raw;; ++i) {
    CD_CHECK(i < raw_.size(), "control runs off the end of the code");
    if (i != block.raw && isTarget_[i]) {
      flow(i, shape);
      return;
    }
    if (chunks_[i].reached) return;
    chunks_[i].reached = true;
    out_.maxRawDepth_ = std::max(out_.maxRawDepth_, static_cast<int>(shape.size()));
    enterHandler(i, shape);
    if (!lower(i, shape)) return;
  }
}

// Control reaches `target` with this shape: remembers it the first time, compares it afterwards.
void Decoder::flow(size_t target, const StackShape& shape) {
  std::optional<StackShape>& known = entry_[target];
  if (known) {
    CD_CHECK(*known == shape, "two paths meet with different stacks");
    return;
  }
  known = shape;
  work_.push_back({target, shape});
}

void Decoder::enterHandler(size_t i, const StackShape& shape) {
  int32_t h = handlerOfRaw_[i];
  if (h < 0) return;
  const RawHandler& handler = rawHandlers_[static_cast<size_t>(h)];
  auto rawDepth = static_cast<size_t>(handler.depth);
  int depth = valuesBelow(shape, rawDepth);
  int32_t& known = handlerDepths_[static_cast<size_t>(h)];
  CD_CHECK(known < 0 || known == depth, "a handler's depth differs between its instructions");
  if (known >= 0) return;
  known = depth;
  StackShape entry = shape.substr(0, rawDepth);
  pushValues(entry, handler.lasti ? 2 : 1);
  flow(rawAt(handler.target), entry);
}

bool Decoder::lower(size_t& i, StackShape& shape) {
  const RawInstr& raw = raw_[i];
  const RawOp& info = rawOp(raw.opcode);
  const auto arg = static_cast<int>(raw.arg);
  switch (info.form) {
    case RawForm::Unknown: CD_CHECK(false, "an opcode that this Python's compiler does not write");
    case RawForm::None: emitAndApply(i, info.op, 0, nullptr, shape); return fallsThrough(info.op);
    case RawForm::Number: emitAndApply(i, info.op, arg, nullptr, shape); return fallsThrough(info.op);
    case RawForm::Local: emitAndApply(i, info.op, arg, nullptr, shape); return true;
    case RawForm::Const: emitAndApply(i, info.op, 0, constant(raw.arg), shape); return true;
    case RawForm::Name: emitAndApply(i, info.op, 0, name(raw.arg), shape); return true;
    case RawForm::Compare: emitAndApply(i, info.op, arg >> dialect_.compareShift, nullptr, shape); return true;
    case RawForm::StackIndex: {
      Piece& piece = emitAndApply(i, info.op, arg, nullptr, shape);
      CD_CHECK(raw.arg >= 1 && raw.arg <= shape.size() && shape[shape.size() - raw.arg] == kValue, "a container index does not point at a value");
      piece.instr.arg = valuesInTop(shape, raw.arg);
      return true;
    }
    case RawForm::Copy: {
      CD_CHECK(raw.arg >= 1 && raw.arg <= shape.size() && shape[shape.size() - raw.arg] == kValue, "COPY of a NULL or of half a method pair");
      emitAndApply(i, Op::Copy, valuesInTop(shape, raw.arg), nullptr, shape);
      return true;
    }
    case RawForm::Swap: lowerSwapRun(i, shape); return true;
    case RawForm::PopTop:
      CD_CHECK(!shape.empty(), "the stack runs empty");
      if (shape.back() == kNull) {
        shape.pop_back();
      } else {
        emitAndApply(i, Op::PopTop, 0, nullptr, shape);
      }
      return true;
    case RawForm::LoadGlobal:
      if ((raw.arg & 1) != 0) shape.push_back(kNull);
      emitAndApply(i, Op::LoadGlobal, 0, name(raw.arg >> 1), shape);
      return true;
    case RawForm::LoadMethod: pushMethod(i, shape, name(raw.arg)); return true;
    case RawForm::LoadAttrOrMethod:
      if ((raw.arg & 1) != 0) {
        pushMethod(i, shape, name(raw.arg >> 1));
      } else {
        emitAndApply(i, Op::LoadAttr, 0, name(raw.arg >> 1), shape);
      }
      return true;
    case RawForm::Call: lowerCall(i, shape); return true;
    case RawForm::CallFunctionEx: {
      emitAndApply(i, Op::CallFunctionEx, arg & 1, nullptr, shape);
      CD_CHECK(shape.size() >= 2 && shape[shape.size() - 2] == kNull, "CALL_FUNCTION_EX without its NULL");
      shape.pop_back();
      shape.back() = kValue;
      return true;
    }
    case RawForm::Drop:
    case RawForm::KwNames: return true;
    case RawForm::PushNull: shape.push_back(kNull); return true;
    case RawForm::EndFor: CD_CHECK(false, "END_FOR is reached");
    case RawForm::BinarySlice:
    case RawForm::StoreSlice:
      emitAndApply(i, Op::BuildSlice, 2, nullptr, shape);
      emitAndApply(i, info.op, 0, nullptr, shape);
      return true;
    case RawForm::ReturnConst:
      emitAndApply(i, Op::LoadConst, 0, constant(raw.arg), shape);
      emitAndApply(i, Op::ReturnValue, 0, nullptr, shape);
      return false;
    case RawForm::LoadSuperAttr: lowerSuperAttr(i, shape); return true;
    case RawForm::Intrinsic1: lowerIntrinsic(i, shape, intrinsic1(raw.arg)); return true;
    case RawForm::Intrinsic2: lowerIntrinsic(i, shape, intrinsic2(raw.arg)); return true;
    case RawForm::JumpForward:
    case RawForm::JumpBackward:
    case RawForm::JumpBackwardNoInterrupt:
    case RawForm::ForIter:
    case RawForm::Send: return lowerJump(i, shape, info);
  }
  return true;
}

bool Decoder::lowerJump(size_t i, StackShape& shape, const RawOp& info) {
  bool backward = info.form == RawForm::JumpBackward || info.form == RawForm::JumpBackwardNoInterrupt;
  size_t target = jumpTarget(i, backward);
  StackShape jumped = shape;
  apply(jumped, jumpStackEffect(info.op));
  Piece& piece = emitAndApply(i, info.op, 0, nullptr, shape);
  if (info.form == RawForm::JumpBackwardNoInterrupt) piece.instr.flags |= kNoInterrupt;
  if (info.form == RawForm::ForIter && dialect_.endFor >= 0) {
    CD_CHECK(raw_[target].opcode == dialect_.endFor && target + 1 < raw_.size(), "FOR_ITER without END_FOR");
    ++target;
  }
  if (info.form == RawForm::Send && !dialect_.sendKeepsReceiver) {
    Chunk& chunk = chunks_[target];
    if (!chunk.needsEndSend) chunk.sendFrom = i;
    chunk.needsEndSend = true;
    piece.toEndSend = true;
    popValues(jumped, 2);
    pushValues(jumped, 1);
  }
  piece.rawTarget = static_cast<int64_t>(target);
  flow(target, jumped);
  return fallsThrough(info.op);
}

void Decoder::pushMethod(size_t i, StackShape& shape, PyObject* attribute) {
  emitAndApply(i, Op::LoadMethod, 0, attribute, shape);
  shape.back() = kPairLow;
  shape.push_back(kPairHigh);
}

// [NULL, f, args] and [method, self, args] take as many arguments as CALL says; [f, arg, args] takes one more.
void Decoder::lowerCall(size_t i, StackShape& shape) {
  auto n = static_cast<size_t>(raw_[i].arg);
  CD_CHECK(shape.size() >= n + 2, "CALL reaches below the stack");
  PyObject* keywords = nullptr;
  size_t before = i;
  if (before > 0 && raw_[before - 1].opcode == dialect_.precall) --before;
  if (before > 0 && raw_[before - 1].opcode == dialect_.kwNames) keywords = constant(raw_[before - 1].arg);
  size_t base = shape.size() - n - 2;
  char low = shape[base];
  int depth = valuesInTop(shape, shape.size());
  StackShape arguments = shape.substr(base + 2);
  CD_CHECK(arguments.find_first_not_of(kValue) == StackShape::npos, "a call's argument is not a value");
  bool paired = low == kPairLow && shape[base + 1] == kPairHigh;
  CD_CHECK(paired || shape[base + 1] == kValue, "a call's callable is not a value");
  CD_CHECK(paired || low == kNull || low == kValue, "CALL on half a method pair");
  emit(i, Op::Call, static_cast<int>(low == kValue ? n + 1 : n), keywords, depth);
  shape.resize(base);
  pushValues(shape, 1);
}

void Decoder::lowerSuperAttr(size_t i, StackShape& shape) {
  uint32_t arg = raw_[i].arg;
  Piece& call = emitAndApply(i, Op::Call, 2, nullptr, shape);
  call.instr.flags |= kSuperCall;
  if ((arg & 2) == 0) call.instr.flags |= kSuperZeroArgs;
  if ((arg & 1) != 0) {
    pushMethod(i, shape, name(arg >> 2));
  } else {
    emitAndApply(i, Op::LoadAttr, 0, name(arg >> 2), shape);
  }
}

void Decoder::lowerIntrinsic(size_t i, StackShape& shape, const IntrinsicOp* intrinsic) {
  CD_CHECK(intrinsic != nullptr, "an intrinsic that is not in the table");
  emitAndApply(i, intrinsic->op, 0, nullptr, shape);
  if (!intrinsic->popsResult) return;
  bool popFollows = i + 1 < raw_.size() && raw_[i + 1].opcode == dialect_.popTop && !isTarget_[i + 1];
  if (popFollows) {
    shape.push_back(kNull);  // the POP_TOP takes it and vanishes
  } else {
    emitAndApply(i, Op::LoadConst, 0, Py_None, shape);
  }
}

// SWAPs that move a NULL are read as one permutation: only what it does to the values is written.
void Decoder::lowerSwapRun(size_t& i, StackShape& shape) {
  auto slotBelow = [&](size_t raw) {
    size_t n = raw_[raw].arg;
    CD_CHECK(n >= 1 && n <= shape.size(), "SWAP reaches below the stack");
    size_t low = shape.size() - n;
    for (char slot : {shape[low], shape.back()}) {
      CD_CHECK(slot == kValue || slot == kNull, "SWAP of half a method pair");
    }
    return low;
  };
  const size_t first = i;
  const int height = valuesInTop(shape, shape.size());
  size_t low = slotBelow(first);
  if (shape[low] == kValue && shape.back() == kValue) {
    emit(first, Op::Swap, valuesInTop(shape, shape.size() - low), nullptr, height);
    return;
  }
  std::vector<int> wanted(shape.size());  // which value each slot holds, by its old NULL-free height; -1 for NULL
  for (size_t k = 0, value = 0; k < shape.size(); ++k) {
    wanted[k] = countsAsValue(shape[k]) ? static_cast<int>(value++) : -1;
  }
  for (;; ++i) {
    low = slotBelow(i);
    std::swap(shape[low], shape.back());
    std::swap(wanted[low], wanted.back());
    chunks_[i].reached = true;
    bool more =
        i + 1 < raw_.size() && !isTarget_[i + 1] && handlerOfRaw_[i + 1] == handlerOfRaw_[first] && rawOp(raw_[i + 1].opcode).form == RawForm::Swap;
    if (!more) break;
  }
  std::erase(wanted, -1);
  emitPermutation(first, wanted);
}

// Swaps that bring value wanted[k] (numbered by its height now) to height k, from the bottom up, through the top.
void Decoder::emitPermutation(size_t i, const std::vector<int>& wanted) {
  const size_t height = wanted.size();
  std::vector<int> now(height);
  std::iota(now.begin(), now.end(), 0);
  auto swapWithTop = [&](size_t k) {
    if (k + 1 == height) return;
    emit(i, Op::Swap, static_cast<int>(height - k), nullptr, static_cast<int>(height));
    std::swap(now[k], now.back());
  };
  for (size_t k = 0; k < height; ++k) {
    if (now[k] == wanted[k]) continue;
    swapWithTop(static_cast<size_t>(std::find(now.begin(), now.end(), wanted[k]) - now.begin()));
    swapWithTop(k);
  }
}

// Puts the chunks in source order and turns raw targets into indices.
void Decoder::link() {
  auto& instrs = out_.instrs_;
  instrs.reserve(pieces_.size());
  out_.depths_.reserve(pieces_.size());
  auto add = [&](const Instr& instr, int depth) {
    instrs.push_back(instr);
    out_.depths_.push_back(depth);
    out_.maxDepth_ = std::max(out_.maxDepth_, depth);
  };
  std::vector<const Piece*> order;
  order.reserve(pieces_.size());
  for (size_t i = 0; i < chunks_.size(); ++i) {
    Chunk& chunk = chunks_[i];
    if (chunk.needsEndSend) {
      CD_CHECK(instrs.empty() || !fallsThrough(instrs.back().op), "control falls into the end of a SEND loop");
      chunk.endSend = static_cast<InstrIndex>(instrs.size());
      Instr end;
      end.op = Op::EndSend;
      end.handler = handlerOfRaw_[i];
      end.offset = raw_[i].own.bytes();
      end.pos = positions_[static_cast<size_t>(raw_[chunk.sendFrom].own.value)];
      add(end, valuesInTop(*entry_[i], entry_[i]->size()) + 1);
      order.push_back(nullptr);
    }
    chunk.index = static_cast<InstrIndex>(instrs.size());
    for (uint32_t k = chunk.begin; k < chunk.begin + chunk.count; ++k) {
      add(pieces_[k].instr, pieces_[k].depth);
      order.push_back(&pieces_[k]);
    }
  }
  out_.indexOfUnit_.resize(rawOfUnit_.size());
  for (size_t i = 0; i < raw_.size(); ++i) {
    InstrIndex index = std::min(chunks_[i].index, static_cast<InstrIndex>(instrs.size()) - 1);
    for (int32_t unit = raw_[i].start.value; unit < raw_[i].next.value; ++unit) {
      out_.indexOfUnit_[static_cast<size_t>(unit)] = index;
    }
  }
  for (size_t k = 0; k < instrs.size(); ++k) {
    if (order[k] == nullptr || order[k]->rawTarget < 0) continue;
    const Chunk& target = chunks_[static_cast<size_t>(order[k]->rawTarget)];
    instrs[k].target = order[k]->toEndSend ? target.endSend : target.index;
  }
}

void Decoder::makeHandlers() {
  auto& instrs = out_.instrs_;
  out_.leaders_.assign(instrs.size(), false);
  if (!instrs.empty()) out_.leaders_[0] = true;
  for (InstrIndex k = 0; k < static_cast<InstrIndex>(instrs.size()); ++k) {
    Instr& instr = instrs[static_cast<size_t>(k)];
    if (instr.target >= 0) out_.leaders_[static_cast<size_t>(instr.target)] = true;
    if (instr.handler < 0) continue;
    const auto h = static_cast<size_t>(instr.handler);
    const RawHandler& raw = rawHandlers_[h];
    CD_CHECK(handlerDepths_[h] >= 0, "a handler without a depth");
    Handler made{k, k + 1, chunks_[rawAt(raw.target)].index, handlerDepths_[h], raw.lasti};
    out_.leaders_[static_cast<size_t>(made.target)] = true;
    Handler* last = out_.handlers_.empty() ? nullptr : &out_.handlers_.back();
    if (last != nullptr && last->end == k && last->target == made.target && last->depth == made.depth && last->lasti == made.lasti) {
      last->end = k + 1;
    } else {
      out_.handlers_.push_back(made);
    }
    instr.handler = static_cast<int32_t>(out_.handlers_.size()) - 1;
  }
}

void Decoder::describeLocals() {
  for (int slot = 0; slot < code_->co_nlocalsplus; ++slot) {
    unsigned kind = localsplusKind(code_, slot);
    Code::LocalKind described = Code::LocalKind::Local;
    if ((kind & kLocalsplusFree) != 0) {
      described = Code::LocalKind::Free;
    } else if ((kind & kLocalsplusCell) != 0) {
      described = (kind & kLocalsplusLocal) != 0 ? Code::LocalKind::ArgCell : Code::LocalKind::Cell;
    }
    out_.kinds_.push_back(described);
  }
}

void decodeInto(Code& out) { Decoder(out).run(); }

}  // namespace cdynamo
