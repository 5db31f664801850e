// How rules are written. A rule reads its operands from a Call, fills a ResultMeta, and returns false where it is not sure:
// invalid input included, since the fallback then raises what eager raises.
#pragma once
#include <initializer_list>
#include <string_view>

#include "shapes/infer.h"
#include "shapes/layout.h"

namespace cdynamo {

class Call;
using RuleFunction = bool (*)(Call& call, ResultMeta& out);

// Where a rule's name is looked up.
enum Where : uint16_t {
  InTorch = 1,        // torch.name
  AsMethod = 2,       // Tensor.name, and a method call by name
  InFunctional = 4,   // torch.nn.functional.name
  InNN = 8,           // torch._C._nn.name
  InSpecial = 16,     // torch.special.name
  InOperator = 32,    // operator.name
  InLinalg = 64,      // torch.linalg.name
  InAten = 128,       // torch.ops.aten.name (same operands as the method)
  AsAttribute = 256,  // getattr(tensor, name)
  TorchAndMethod = InTorch | AsMethod | InAten,
};

enum RuleFlag : uint16_t {
  NotDifferentiable = 1,  // results never require grad
  HasInplace = 2,         // name_ is registered too, by the same rule
  Inplace = 4,            // this very name writes to its first operand
  Reflected = 8,          // operands come swapped (__radd__)
  AutocastSafe = 16,      // autocast does not change it, on any device
  CpuOnly = 32,           // strides or dtypes are known for CPU tensors only
  IsFactory = 64,         // affected by torch-function modes such as `with torch.device(...)`
  AnyDType = 128,         // complex operands are fine
};

struct Rule {
  const char* name;
  RuleFunction function;
  uint16_t where;
  uint16_t flags;
  int32_t detail;  // for the function's own use
};

class RuleTable {
 public:
  void add(const Rule& rule);
  void add(std::initializer_list<const char*> names, RuleFunction function, uint16_t where, uint16_t flags = 0, int32_t detail = 0) {
    for (const char* name : names) add({name, function, where, flags, detail});
  }
};

void addPointwiseRules(RuleTable& table);
void addReductionRules(RuleTable& table);
void addMatmulRules(RuleTable& table);
void addViewRules(RuleTable& table);
void addIndexingRules(RuleTable& table);
void addJoiningRules(RuleTable& table);
void addFactoryRules(RuleTable& table);
void addNNRules(RuleTable& table);

// A Python number, or None/absent.
struct Scalar {
  enum Kind : uint8_t { Absent, Bool, Int, Float } kind = Absent;
  int64_t i = 0;
  double f = 0;
  bool known = true;  // false: a number of the graph, of which only the kind is known; `operand` alone gives such
  // The dtype a wrapped number brings to type promotion.
  DType dtype() const;
};

// A tensor or a number.
struct Operand {
  const TensorMeta* tensor = nullptr;
  Scalar scalar;
};

// The operands of one call. Readers take a position and a keyword name, mark the operand as read, and give a default where
// it is absent or None. A reader that meets something unexpected makes the call `bad`; the rule may go on, as its answer will
// be thrown away, and so will that of a rule that left an operand unread.
class Call {
 public:
  Call(const OpCall& op, const Rule& rule) : rule(rule), op_(op) {}

  const Rule& rule;
  bool grad = false;     // grad mode is on and an operand requires grad
  bool aliases = false;  // the rule sets it: the result is a view of the first operand
  bool isSelf = false;   // the rule sets it: the result is the first operand itself
  bool writes = false;   // the rule sets it: the first operand is written (inplace=True)

  size_t positional() const { return op_.args.size(); }
  bool bad() const { return bad_; }
  bool fail() { return bad_ = true, false; }
  bool allRead() const;

  // Raw operand, or null.
  const Arg* arg(unsigned position, const char* name);
  bool has(unsigned position, const char* name);  // present and not None; does not mark
  const TensorMeta& tensor(unsigned position, const char* name = "input");
  const TensorMeta* tensorOrNull(unsigned position, const char* name);
  int64_t integer(unsigned position, const char* name, int64_t otherwise);
  double number(unsigned position, const char* name, double otherwise);
  bool boolean(unsigned position, const char* name, bool otherwise);
  Scalar scalar(unsigned position, const char* name);
  Operand operand(unsigned position, const char* name);
  DType dtype(unsigned position, const char* name, DType otherwise);
  int8_t memoryFormat(unsigned position, const char* name, int8_t otherwise);
  // A list or tuple of ints, or a single int (then `*single`, if given, is set).
  Dims ints(unsigned position, const char* name, bool* single = nullptr);
  // As `ints`, but the remaining positional operands may be the ints themselves: view(2, 3).
  Dims restInts(unsigned position, const char* name);
  // A list or tuple of tensors.
  std::vector<const TensorMeta*> tensors(unsigned position, const char* name);
  std::string_view text(unsigned position, const char* name, std::string_view otherwise);
  // Marks as read without looking: an operand that cannot change the result's metadata.
  void ignore(unsigned position, const char* name) { arg(position, name); }

 private:
  const OpCall& op_;
  uint64_t readPositional_ = 0;
  uint64_t readKeywords_ = 0;
  bool bad_ = false;
};

// Readers for single operands; false where the operand is something else.
bool readInt(const Arg& arg, int64_t& out);
bool readInts(const Arg& arg, Dims& out);
const TensorMeta* tensorOf(const Arg& arg);
bool isNone(const Arg& arg);

// Fills `out` with a fresh contiguous tensor (or with the given strides). requires_grad is set by the caller of the rule.
bool giveTensor(ResultMeta& out, DType dtype, DeviceTag device, const Dims& sizes);
bool giveTensor(ResultMeta& out, DType dtype, DeviceTag device, const Dims& sizes, const Dims& strides);
bool giveView(Call& call, ResultMeta& out, const TensorMeta& base, const Dims& sizes, const Dims& strides, int64_t offset);
// The first operand itself.
bool giveSelf(Call& call, ResultMeta& out, const TensorMeta& self);
// A torch.return_types class with these items, all tensors. `className` is a literal.
bool giveNamedTuple(ResultMeta& out, const char* className, std::initializer_list<TensorMeta> items);
TensorMeta makeMeta(DType dtype, DeviceTag device, const Dims& sizes);
bool sameDevice(const TensorMeta& a, const TensorMeta& b);

}  // namespace cdynamo
