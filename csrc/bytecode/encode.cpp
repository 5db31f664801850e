// assemble(): measures the jumps, writes the bytes and the tables, makes the code object.
#include "base/error.h"
#include "bytecode/assembler.h"
#include "bytecode/lowering.h"
#include "cpython/code_tables.h"
#include "cpython/compat.h"

namespace cdynamo {
namespace {

int prefixesFor(uint32_t arg) { return arg > 0xffffff ? 3 : arg > 0xffff ? 2 : arg > 0xff ? 1 : 0; }

// Where each instruction starts, and how many EXTENDED_ARG it has.
struct Layout {
  std::vector<int32_t> prefixes;
  std::vector<int32_t> starts;  // units; one more than there are instructions
};

void place(const LoweredCode& code, Layout& layout) {
  int32_t at = 0;
  for (size_t i = 0; i < code.instrs.size(); ++i) {
    layout.starts[i] = at;
    at += layout.prefixes[i] + 1 + rawOp(code.instrs[i].opcode).caches;
  }
  layout.starts.back() = at;
}

// Prefixes only grow, so that this ends.
Layout measure(LoweredCode& code) {
  Layout layout{std::vector<int32_t>(code.instrs.size()), std::vector<int32_t>(code.instrs.size() + 1)};
  for (size_t i = 0; i < code.instrs.size(); ++i) layout.prefixes[i] = prefixesFor(code.instrs[i].arg);
  for (bool changed = true; changed;) {
    changed = false;
    place(code, layout);
    for (size_t i = 0; i < code.instrs.size(); ++i) {
      LoweredInstr& instr = code.instrs[i];
      if (instr.target < 0) continue;
      int32_t distance = layout.starts[static_cast<size_t>(instr.target)] - layout.starts[i + 1];
      if (instr.backward) distance = -distance;
      CD_CHECK(distance >= 0, "a jump in the wrong direction");
      instr.arg = static_cast<uint32_t>(distance);
      if (prefixesFor(instr.arg) > layout.prefixes[i]) {
        layout.prefixes[i] = prefixesFor(instr.arg);
        changed = true;
      }
    }
  }
  return layout;
}

std::string writeUnits(const LoweredCode& code, const Layout& layout) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(layout.starts.back()) * 2);
  auto unit = [&](int opcode, uint32_t arg) {
    bytes.push_back(static_cast<char>(opcode));
    bytes.push_back(static_cast<char>(arg & 0xff));
  };
  for (size_t i = 0; i < code.instrs.size(); ++i) {
    const LoweredInstr& instr = code.instrs[i];
    for (int k = layout.prefixes[i]; k > 0; --k) unit(dialect().extendedArg, instr.arg >> (8 * k));
    unit(instr.opcode, instr.arg);
    for (int k = rawOp(instr.opcode).caches; k > 0; --k) unit(0, 0);
  }
  return bytes;
}

std::vector<RawHandler> handlerRuns(const LoweredCode& code, const Layout& layout) {
  std::vector<RawHandler> runs;
  for (size_t i = 0; i < code.instrs.size(); ++i) {
    const LoweredInstr& instr = code.instrs[i];
    if (instr.handler < 0) continue;
    const Handler& handler = code.handlers[static_cast<size_t>(instr.handler)];
    UnitOffset start{layout.starts[i]};
    UnitOffset end{layout.starts[i + 1]};
    UnitOffset target{layout.starts[static_cast<size_t>(handler.target)]};
    bool goesOn = !runs.empty() && runs.back().end == start && runs.back().target == target && runs.back().depth == instr.handlerDepth &&
                  runs.back().lasti == handler.lasti;
    if (goesOn) {
      runs.back().end = end;
    } else {
      runs.push_back({start, end, target, instr.handlerDepth, handler.lasti});
    }
  }
  return runs;
}

std::vector<PositionRun> positionRuns(const LoweredCode& code, const Layout& layout) {
  std::vector<PositionRun> runs;
  for (size_t i = 0; i < code.instrs.size(); ++i) {
    int units = layout.starts[i + 1] - layout.starts[i];
    if (!runs.empty() && runs.back().pos == code.instrs[i].pos) {
      runs.back().units += units;
    } else {
      runs.push_back({units, code.instrs[i].pos});
    }
  }
  return runs;
}

ObjectRef bytesOf(const std::string& text) { return checked(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))); }

// Locals (with those that are also cells), cells, free variables: the order that CPython relies on.
void checkOrder(const CodeSpec& spec) {
  int last = 0;
  for (const CodeSpec::Variable& variable : spec.localsplus) {
    int rank = (variable.kind & kLocalsplusLocal) != 0 ? 0 : (variable.kind & kLocalsplusCell) != 0 ? 1 : 2;
    CD_CHECK(rank >= last, "locals, cells and free variables are out of order");
    last = rank;
  }
  CD_CHECK(spec.parameterCount() <= static_cast<int>(spec.localsplus.size()), "more parameters than locals");
}

}  // namespace

Ref<PyCodeObject> assemble(const CodeSpec& spec, std::span<const Instr> instrs, std::span<const Handler> handlers) {
  checkOrder(spec);
  CD_CHECK(spec.name && spec.filename, "a code object needs a name and a file name");
  LoweredCode lowered = lowerCode(spec, instrs, handlers);
  Layout layout = measure(lowered);

  ObjectRef units = bytesOf(writeUnits(lowered, layout));
  ObjectRef lineTable = bytesOf(writePositions(positionRuns(lowered, layout), spec.firstLine));
  ObjectRef exceptionTable = bytesOf(writeHandlers(handlerRuns(lowered, layout)));
  ObjectRef consts = lowered.consts.tuple();
  ObjectRef names = lowered.names.tuple();
  ObjectRef variables = checked(PyTuple_New(static_cast<Py_ssize_t>(spec.localsplus.size())));
  std::string kindText;
  for (size_t slot = 0; slot < spec.localsplus.size(); ++slot) {
    PyTuple_SET_ITEM(variables.get(), static_cast<Py_ssize_t>(slot), ObjectRef(spec.localsplus[slot].name).release());
    kindText.push_back(static_cast<char>(spec.localsplus[slot].kind));
  }
  ObjectRef kinds = bytesOf(kindText);

  CodeParts parts{};
  parts.filename = spec.filename.get();
  parts.name = spec.name.get();
  parts.qualname = spec.qualname ? spec.qualname.get() : spec.name.get();
  parts.flags = spec.flags;
  parts.code = units.get();
  parts.firstLine = spec.firstLine;
  parts.lineTable = lineTable.get();
  parts.exceptionTable = exceptionTable.get();
  parts.consts = consts.get();
  parts.names = names.get();
  parts.localsplusNames = variables.get();
  parts.localsplusKinds = kinds.get();
  parts.argcount = spec.argcount;
  parts.posOnlyCount = spec.posOnlyCount;
  parts.kwOnlyCount = spec.kwOnlyCount;
  parts.stacksize = lowered.stacksize;
  return checked(makeCode(&parts));
}

}  // namespace cdynamo
