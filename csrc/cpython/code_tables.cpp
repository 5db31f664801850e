#include "cpython/code_tables.h"

#include "base/error.h"
#include "cpython/compat.h"
#include "cpython/opcode_table.h"

namespace cdynamo {
namespace {

// Location entry kinds, as PEP 626/657 and Objects/locations.md name them.
constexpr int kShortLimit = 10;
constexpr int kOneLine0 = 10;
constexpr int kOneLine2 = 12;
constexpr int kNoColumns = 13;
constexpr int kLong = 14;
constexpr int kNoLocation = 15;
constexpr int kMaxUnitsPerEntry = 8;

class ByteReader {
 public:
  explicit ByteReader(PyObject* bytes) : at_(reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes))), end_(at_ + PyBytes_GET_SIZE(bytes)) {}
  bool done() const { return at_ == end_; }
  int next() {
    CD_CHECK(at_ != end_, "a code object's table ends early");
    return *at_++;
  }
  // Little-endian groups of six bits; 0x40 goes on.
  int varint() {
    int value = 0;
    for (int shift = 0;; shift += 6) {
      int byte = next();
      value |= (byte & 63) << shift;
      if ((byte & 64) == 0) return value;
    }
  }
  int signedVarint() {
    int coded = varint();
    return (coded & 1) != 0 ? -(coded >> 1) : coded >> 1;
  }
  // Big-endian groups of six bits, as in the exception table; 0x80 marks an entry's start.
  int bigVarint() {
    int byte = next();
    int value = byte & 63;
    while ((byte & 64) != 0) {
      byte = next();
      value = (value << 6) | (byte & 63);
    }
    return value;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

void writeVarint(std::string& out, unsigned value) {
  while (value >= 64) {
    out.push_back(static_cast<char>(64 | (value & 63)));
    value >>= 6;
  }
  out.push_back(static_cast<char>(value));
}

void writeSignedVarint(std::string& out, int value) {
  writeVarint(out, value < 0 ? (static_cast<unsigned>(-value) << 1) | 1 : static_cast<unsigned>(value) << 1);
}

void writeBigVarint(std::string& out, int value, int startBit) {
  CD_CHECK(value >= 0 && value < (1 << 30), "an exception table number is out of range");
  int shift = 24;
  while (shift > 0 && (value >> shift) == 0) shift -= 6;
  for (; shift > 0; shift -= 6) {
    out.push_back(static_cast<char>(startBit | 64 | ((value >> shift) & 63)));
    startBit = 0;
  }
  out.push_back(static_cast<char>(startBit | (value & 63)));
}

void writePosition(std::string& out, int units, const Position& pos, int& line) {
  auto first = [&](int kind) { out.push_back(static_cast<char>(0x80 | (kind << 3) | (units - 1))); };
  if (pos.line < 0) {
    first(kNoLocation);
    return;
  }
  int delta = pos.line - line;
  line = pos.line;
  if (pos.col < 0 || pos.endCol < 0 || pos.endLine < pos.line) {
    first(kNoColumns);
    writeSignedVarint(out, delta);
    return;
  }
  bool oneLine = pos.endLine == pos.line;
  if (oneLine && delta == 0 && pos.col < 80 && pos.endCol >= pos.col && pos.endCol - pos.col < 16) {
    first(pos.col >> 3);
    out.push_back(static_cast<char>(((pos.col & 7) << 4) | (pos.endCol - pos.col)));
  } else if (oneLine && delta >= 0 && delta <= 2 && pos.col < 128 && pos.endCol < 128) {
    first(kOneLine0 + delta);
    out.push_back(static_cast<char>(pos.col));
    out.push_back(static_cast<char>(pos.endCol));
  } else {
    first(kLong);
    writeSignedVarint(out, delta);
    writeVarint(out, static_cast<unsigned>(pos.endLine - pos.line));
    writeVarint(out, static_cast<unsigned>(pos.col + 1));
    writeVarint(out, static_cast<unsigned>(pos.endCol + 1));
  }
}

}  // namespace

std::vector<RawInstr> readInstructions(PyCodeObject* code) {
  ObjectRef bytes = checked(PyCode_GetCode(code));
  const auto* units = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes.get()));
  const auto count = static_cast<int32_t>(PyBytes_GET_SIZE(bytes.get()) / 2);
  const int extendedArg = dialect().extendedArg;
  std::vector<RawInstr> out;
  out.reserve(static_cast<size_t>(count) / 2 + 1);
  for (int32_t i = 0; i < count;) {
    RawInstr instr{0, 0, {i}, {i}, {i}};
    while (units[2 * i] == extendedArg) {
      instr.arg = (instr.arg | units[2 * i + 1]) << 8;
      ++i;
      CD_CHECK(i < count, "a code object ends in EXTENDED_ARG");
    }
    instr.opcode = units[2 * i];
    instr.arg |= units[2 * i + 1];
    instr.own = {i};
    i += 1 + rawOp(instr.opcode).caches;
    instr.next = {i};
    out.push_back(instr);
  }
  return out;
}

std::vector<Position> readPositions(PyCodeObject* code, int unitCount) {
  std::vector<Position> out;
  out.reserve(static_cast<size_t>(unitCount));
  ByteReader in(code->co_linetable);
  int line = code->co_firstlineno;
  while (!in.done() && static_cast<int>(out.size()) < unitCount) {
    int first = in.next();
    int kind = (first >> 3) & 15;
    int units = (first & 7) + 1;
    Position pos;
    if (kind == kLong) {
      line += in.signedVarint();
      int endLine = line + in.varint();
      int col = in.varint() - 1;
      pos = {line, endLine, col, in.varint() - 1};
    } else if (kind == kNoColumns) {
      line += in.signedVarint();
      pos = {line, line, -1, -1};
    } else if (kind >= kOneLine0 && kind <= kOneLine2) {
      line += kind - kOneLine0;
      int col = in.next();
      pos = {line, line, col, in.next()};
    } else if (kind < kShortLimit) {
      int packed = in.next();
      int col = (kind << 3) | (packed >> 4);
      pos = {line, line, col, col + (packed & 15)};
    }
    out.insert(out.end(), static_cast<size_t>(units), pos);
  }
  out.resize(static_cast<size_t>(unitCount));
  return out;
}

std::vector<RawHandler> readHandlers(PyCodeObject* code) {
  std::vector<RawHandler> out;
  ByteReader in(code->co_exceptiontable);
  while (!in.done()) {
    RawHandler h{};
    h.start = {in.bigVarint()};
    h.end = {h.start.value + in.bigVarint()};
    h.target = {in.bigVarint()};
    int packed = in.bigVarint();
    h.depth = packed >> 1;
    h.lasti = (packed & 1) != 0;
    out.push_back(h);
  }
  return out;
}

std::string writePositions(const std::vector<PositionRun>& runs, int firstLine) {
  std::string out;
  int line = firstLine;
  for (const PositionRun& run : runs) {
    int left = run.units;
    for (; left > kMaxUnitsPerEntry; left -= kMaxUnitsPerEntry) writePosition(out, kMaxUnitsPerEntry, run.pos, line);
    if (left > 0) writePosition(out, left, run.pos, line);
  }
  return out;
}

std::string writeHandlers(const std::vector<RawHandler>& handlers) {
  std::string out;
  for (const RawHandler& h : handlers) {
    writeBigVarint(out, h.start.value, 0x80);
    writeBigVarint(out, h.end.value - h.start.value, 0);
    writeBigVarint(out, h.target.value, 0);
    writeBigVarint(out, (h.depth << 1) | (h.lasti ? 1 : 0), 0);
  }
  return out;
}

}  // namespace cdynamo
