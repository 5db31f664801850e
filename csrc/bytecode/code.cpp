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

std::string textOf(PyObject* object) {
  ObjectRef repr = PyCode_Check(object)
                       ? checked(PyUnicode_FromFormat("<code %U>", reinterpret_cast<PyCodeObject*>(object)->co_name))
                       : checked(PyObject_Repr(object));
  const char* text = PyUnicode_AsUTF8(repr.get());
  if (text == nullptr) throw PythonError{};
  return text;
}

std::string operandText(const Code& code, const Instr& instr) {
  switch (operandOf(instr.op)) {
    case Operand::None:
      return "";
    case Operand::Number: {
      std::string text = " " + std::to_string(instr.arg);
      if (instr.object != nullptr) text += " " + textOf(instr.object);
      return text;
    }
    case Operand::Const:
      return " " + textOf(instr.object);
    case Operand::Name: {
      const char* name = PyUnicode_AsUTF8(instr.object);
      if (name == nullptr) throw PythonError{};
      return std::string(" ") + name;
    }
    case Operand::Local: {
      const char* name = PyUnicode_AsUTF8(code.localName(instr.arg));
      if (name == nullptr) throw PythonError{};
      return std::string(" ") + name;
    }
    case Operand::Jump:
      return " -> " + std::to_string(instr.target);
  }
  return "";
}

}  // namespace

Code::Code(PyCodeObject* code) : code_(Ref<PyCodeObject>::share(code)) { decodeInto(*this); }

Code::~Code() = default;

const Handler* Code::handlerOf(InstrIndex i) const {
  int32_t h = at(i).handler;
  return h < 0 ? nullptr : &handlers_[static_cast<size_t>(h)];
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

std::string dump(const Code& code) {
  std::string out;
  for (InstrIndex i = 0; i < code.size(); ++i) {
    const Instr& instr = code.at(i);
    out += std::to_string(i) + (code.isLeader(i) ? ": " : "  ") + opName(instr.op) + operandText(code, instr);
    if (const Handler* handler = code.handlerOf(i)) {
      out += " !" + std::to_string(handler->target) + "@" + std::to_string(handler->depth);
      if (handler->lasti) out += "+lasti";
    }
    out += "\n";
  }
  return out;
}

}  // namespace cdynamo
