// From the normal form to the running Python's own instructions, jumps not yet measured. Inside the assembler only.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "bytecode/assembler.h"
#include "bytecode/stack_webs.h"
#include "cpython/opcode_table.h"

namespace cdynamo {

// The constants or names of the code under construction, each object once (by identity).
class ObjectTable {
 public:
  uint32_t indexOf(PyObject* object);
  ObjectRef tuple() const;

 private:
  std::vector<ObjectRef> objects_;
  std::unordered_map<PyObject*, uint32_t> indices_;
};

struct LoweredInstr {
  uint8_t opcode = 0;
  uint32_t arg = 0;          // of jumps: set when they are measured
  int32_t target = -1;       // index into LoweredCode::instrs
  bool backward = false;     // the argument counts backwards
  int32_t handler = -1;      // index into LoweredCode::handlers
  int32_t handlerDepth = 0;  // raw slots
  Position pos;
};

struct LoweredCode {
  std::vector<LoweredInstr> instrs;
  std::vector<Handler> handlers;  // targets are indices into instrs
  ObjectTable consts;
  ObjectTable names;
  int stacksize = 0;
};

LoweredCode lowerCode(const CodeSpec& spec, std::span<const Instr> instrs, std::span<const Handler> handlers);

}  // namespace cdynamo
