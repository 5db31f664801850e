#include "bytecode/code.h"

#include <unordered_map>

#include "base/error.h"
#include "bytecode/liveness.h"

namespace cdynamo {

void decodeInto(Code& out);  // decoder.cpp

namespace {

std::unordered_map<PyCodeObject*, std::shared_ptr<const Code>>& cache() {
  static auto* map = new std::unordered_map<PyCodeObject*, std::shared_ptr<const Code>>();
  return *map;
}

const char* utf8(PyObject* text) {
  const char* chars = PyUnicode_AsUTF8(text);
  if (chars == nullptr) throw PythonError{};
  return chars;
}

std::string textOf(PyObject* object) {
  ObjectRef repr = PyCode_Check(object) ? checked(PyUnicode_FromFormat("<code %U>", reinterpret_cast<PyCodeObject*>(object)->co_name))
                                        : checked(PyObject_Repr(object));
  return utf8(repr.get());
}

void appendOperand(std::string& out, const Code& code, const Instr& instr) {
  Operand operand = operandOf(instr.op);
  if (operand == Operand::None) return;
  out += operand == Operand::Jump ? " -> " : " ";
  switch (operand) {
    case Operand::None: break;
    case Operand::Number:
      out += std::to_string(instr.arg);
      if (instr.object != nullptr) out.append(" ").append(textOf(instr.object));
      break;
    case Operand::Const: out += textOf(instr.object); break;
    case Operand::Name: out += utf8(instr.object); break;
    case Operand::Local: out += utf8(code.localName(instr.arg)); break;
    case Operand::Jump: out += std::to_string(instr.target); break;
  }
}

}  // namespace

Code::Code(PyCodeObject* code) : code_(Ref<PyCodeObject>::share(code)) { decodeInto(*this); }

Code::~Code() = default;

const Handler* Code::handlerOf(InstrIndex i) const {
  int32_t h = at(i).handler;
  return h < 0 ? nullptr : &handlers_[static_cast<size_t>(h)];
}

bool Code::isInsideTry(InstrIndex i) const {
  const Handler* h = handlerOf(i);
  return h && at(h->target).op != Op::StopIterationError;
}

bool Code::hasTry() const {
  for (const Handler& h : handlers_)
    if (at(h.target).op != Op::StopIterationError) return true;
  return false;
}

InstrIndex Code::indexOf(ByteOffset offset) const {
  auto unit = static_cast<size_t>(offset.value) / 2;
  return offset.value < 0 || unit >= indexOfUnit_.size() ? -1 : indexOfUnit_[unit];
}

PyObject* Code::localName(int slot) const {
  CD_CHECK(slot >= 0 && slot < localsplusCount(), "a local's number is out of range");
  return PyTuple_GET_ITEM(code_->co_localsplusnames, slot);
}

std::shared_ptr<const Code> decodeShared(PyCodeObject* code) {
  auto found = cache().find(code);
  if (found != cache().end()) return found->second;
  auto made = std::make_shared<const Code>(code);
  return cache().try_emplace(code, std::move(made)).first->second;
}

const Code& decode(PyCodeObject* code) { return *decodeShared(code); }

void clearDecodeCache() {
  // Dropping a code object can run Python, which may decode again: empty the map before that.
  std::unordered_map<PyCodeObject*, std::shared_ptr<const Code>> old;
  old.swap(cache());
}

std::vector<std::shared_ptr<const Code>> uncallableCodes() {
  std::vector<std::shared_ptr<const Code>> found;
  for (const auto& [code, decoded] : cache())
    if (Py_REFCNT(code) == 1) found.push_back(decoded);
  return found;
}

bool dropDecoded(const std::shared_ptr<const Code>& code) {
  if (Py_REFCNT(code->pyCode()) != 1 || code.use_count() != 2) return false;
  return cache().erase(code->pyCode()) != 0;
}

std::string dump(const Code& code) {
  std::string out;
  for (InstrIndex i = 0; i < code.size(); ++i) {
    const Instr& instr = code.at(i);
    out.append(std::to_string(i)).append(code.isLeader(i) ? ": " : "  ").append(opName(instr.op));
    appendOperand(out, code, instr);
    if (const Handler* handler = code.handlerOf(i)) {
      out.append(" !").append(std::to_string(handler->target)).append("@").append(std::to_string(handler->depth));
      if (handler->lasti) out += "+lasti";
    }
    out += "\n";
  }
  return out;
}

}  // namespace cdynamo
