#include "bytecode/assembler.h"

#include "base/error.h"
#include "cpython/compat.h"

namespace cdynamo {
namespace {

ObjectRef interned(const char* text) { return checked(PyUnicode_InternFromString(text)); }

}  // namespace

CodeSpec CodeSpec::named(PyCodeObject* code) {
  CodeSpec spec;
  spec.name = ObjectRef::share(code->co_name);
  spec.qualname = ObjectRef::share(code->co_qualname);
  spec.filename = ObjectRef::share(code->co_filename);
  spec.firstLine = code->co_firstlineno;
  return spec;
}

CodeSpec CodeSpec::like(PyCodeObject* code) {
  CodeSpec spec = named(code);
  spec.argcount = code->co_argcount;
  spec.posOnlyCount = code->co_posonlyargcount;
  spec.kwOnlyCount = code->co_kwonlyargcount;
  spec.flags = code->co_flags;
  for (int slot = 0; slot < code->co_nlocalsplus; ++slot) {
    spec.localsplus.push_back({ObjectRef::share(PyTuple_GET_ITEM(code->co_localsplusnames, slot)), static_cast<uint8_t>(localsplusKind(code, slot))});
  }
  if (PyTuple_GET_SIZE(code->co_consts) > 0 && PyUnicode_Check(PyTuple_GET_ITEM(code->co_consts, 0))) {
    spec.doc = ObjectRef::share(PyTuple_GET_ITEM(code->co_consts, 0));
  }
  return spec;
}

int CodeSpec::addLocal(PyObject* variable) {
  localsplus.push_back({ObjectRef::share(variable), kLocalsplusLocal});
  return static_cast<int>(localsplus.size()) - 1;
}

int CodeSpec::addCell(PyObject* variable) {
  localsplus.push_back({ObjectRef::share(variable), kLocalsplusCell});
  return static_cast<int>(localsplus.size()) - 1;
}

int CodeSpec::addFree(PyObject* variable) {
  localsplus.push_back({ObjectRef::share(variable), kLocalsplusFree});
  return static_cast<int>(localsplus.size()) - 1;
}

void CodeSpec::makeLocalACell(int slot) { localsplus.at(static_cast<size_t>(slot)).kind |= kLocalsplusCell; }

int CodeSpec::parameterCount() const { return argcount + kwOnlyCount + ((flags & CO_VARARGS) != 0) + ((flags & CO_VARKEYWORDS) != 0); }

Label Assembler::newLabel() {
  places_.push_back(-1);
  return {static_cast<int32_t>(places_.size()) - 1};
}

std::vector<Label> Assembler::newLabels(int count) {
  std::vector<Label> labels;
  for (int i = 0; i < count; ++i) labels.push_back(newLabel());
  return labels;
}

void Assembler::bind(Label label) {
  CD_CHECK(label.id >= 0 && places_.at(static_cast<size_t>(label.id)) < 0, "a label is bound twice");
  places_[static_cast<size_t>(label.id)] = size();
}

void Assembler::beginHandler(Label handler, bool lasti, int depth) {
  regions_.push_back(static_cast<int32_t>(handlers_.size()));
  handlers_.push_back({size(), -1, handler.id, depth, lasti});
}

void Assembler::endHandler() {
  CD_CHECK(!regions_.empty(), "endHandler() without beginHandler()");
  handlers_[static_cast<size_t>(regions_.back())].end = size();
  regions_.pop_back();
}

void Assembler::append(Instr instr) {
  if (instr.object != nullptr) kept_.push_back(ObjectRef::share(instr.object));
  instr.handler = regions_.empty() ? -1 : regions_.back();
  instr.offset = {};
  instrs_.push_back(instr);
}

void Assembler::emit(Op op, int arg, PyObject* object) {
  CD_CHECK(operandOf(op) != Operand::Jump, "a jump without a label");
  Instr instr;
  instr.op = op;
  instr.arg = arg;
  instr.object = object;
  instr.pos = pos_;
  append(instr);
}

void Assembler::loadConst(PyObject* object) {
  if (!PyFrozenSet_CheckExact(object)) return emit(Op::LoadConst, 0, object);
  ObjectRef list = checked(PyList_New(1)), zero = checked(PyLong_FromLong(0));
  PyList_SET_ITEM(list.get(), 0, ObjectRef::share(object).release());
  emit(Op::LoadConst, 0, list.get());
  emit(Op::LoadConst, 0, zero.get());
  kept_.push_back(std::move(list));
  kept_.push_back(std::move(zero));
  binarySubscr();
}

void Assembler::emitJump(Op op, Label target) {
  CD_CHECK(operandOf(op) == Operand::Jump && target.id >= 0, "a label for what does not jump");
  Instr instr;
  instr.op = op;
  instr.target = target.id;
  instr.pos = pos_;
  append(instr);
}

void Assembler::copy(const Instr& instr) {
  CD_CHECK(operandOf(instr.op) != Operand::Jump, "a jump without a label");
  append(instr);
}

void Assembler::copyJump(const Instr& instr, Label target) {
  CD_CHECK(operandOf(instr.op) == Operand::Jump && target.id >= 0, "a label for what does not jump");
  Instr moved = instr;
  moved.target = target.id;
  append(moved);
}

void Assembler::copyCode(const Code& code, std::span<const Label> labels, std::span<const int> slots, int baseDepth) {
  CD_CHECK(static_cast<InstrIndex>(labels.size()) == code.size(), "a label for each instruction is needed");
  CD_CHECK(slots.empty() || static_cast<int>(slots.size()) == code.localsplusCount(), "a slot for each variable is needed");
  const auto firstHandler = static_cast<int32_t>(handlers_.size());
  const InstrIndex base = size();
  for (const Handler& handler : code.handlers()) {
    handlers_.push_back(
        {base + handler.start, base + handler.end, labels[static_cast<size_t>(handler.target)].id, baseDepth + handler.depth, handler.lasti});
  }
  for (InstrIndex i = 0; i < code.size(); ++i) {
    Instr instr = code.at(i);
    bind(labels[static_cast<size_t>(i)]);
    if (operandOf(instr.op) == Operand::Jump) instr.target = labels[static_cast<size_t>(instr.target)].id;
    if (operandOf(instr.op) == Operand::Local && !slots.empty()) instr.arg = slots[static_cast<size_t>(instr.arg)];
    int32_t own = instr.handler;
    append(instr);
    if (own >= 0) instrs_.back().handler = firstHandler + own;
  }
}

void Assembler::makeCells() {
  int free = 0;
  for (const CodeSpec::Variable& variable : spec_.localsplus) free += (variable.kind & kLocalsplusFree) != 0;
  if (free > 0) emit(Op::CopyFreeVars, free);
  for (size_t slot = 0; slot < spec_.localsplus.size(); ++slot) {
    if ((spec_.localsplus[slot].kind & kLocalsplusCell) != 0) emit(Op::MakeCell, static_cast<int>(slot));
  }
}

void Assembler::prologue() {
  makeCells();
  emit(Op::Resume, 0);
}

void Assembler::loadAttr(const char* name) { loadAttr(interned(name).get()); }
void Assembler::loadMethod(const char* name) { loadMethod(interned(name).get()); }
void Assembler::storeAttr(const char* name) { storeAttr(interned(name).get()); }

void Assembler::call(int n, PyObject* keywords) {
  if (n <= kMostArguments) return emit(Op::Call, n, keywords);
  // CPython's compiler makes no such calls, and 3.11 takes PRECALL and CALL for neighbours: an extended argument between them sends
  // the specialised ones into the middle of an instruction.
  CD_CHECK(keywords == nullptr, "a call with keywords and too many arguments");
  buildTuple(n);
  callFunctionEx(false);
}

Ref<PyCodeObject> Assembler::finish() const {
  CD_CHECK(regions_.empty(), "a handler region is still open");
  auto placeOf = [&](int32_t id) {
    InstrIndex place = places_.at(static_cast<size_t>(id));
    CD_CHECK(place >= 0 && place < size(), "a label has no instruction");
    return place;
  };
  std::vector<Instr> instrs = instrs_;
  for (Instr& instr : instrs) {
    if (operandOf(instr.op) == Operand::Jump) instr.target = placeOf(instr.target);
  }
  std::vector<Handler> handlers = handlers_;
  for (Handler& handler : handlers) handler.target = placeOf(handler.target);
  return assemble(spec_, instrs, handlers);
}

}  // namespace cdynamo
