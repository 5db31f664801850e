// What an operation returns, without running it: a C++ rule, else the memo, else FakeTensor in Python.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"

namespace cdynamo {

// One operation as the tracer met it. Tensor operands are Arg::NodeRef with node->result filled. All references are borrowed.
struct OpCall {
  PyObject* target;  // a callable; a str where `isMethod`
  bool isMethod;     // args[0] is the tensor whose method `target` is called
  const std::vector<Arg>& args;
  const std::vector<std::pair<ObjectRef, Arg>>& kwargs;
  bool gradEnabled;
};

// The operation raises in eager too: the exception that it raises.
struct ShapeError {
  ObjectRef exception;
};

// The result depends on data, or nobody here can tell.
struct ShapeUnknown {
  std::string reason;
};

enum class InferPath : uint8_t { Rule, Memo, Fake };

// Throws ShapeError, ShapeUnknown, or PythonError where the engine's own Python fails. `path` (may be null) says who answered.
ResultMeta inferResult(const OpCall& call, InferPath* path = nullptr);

// The C++ rules alone: false where no rule is sure. Throws PythonError only where torch cannot be imported.
bool inferByRule(const OpCall& call, ResultMeta& out);
// The fallback alone; throws as inferResult does.
ResultMeta inferByFake(const OpCall& call);

// For a call of cdynamo._numpy: asked of NumPy itself. `classes`: a tuple with (class, whether it shares an operand's memory) for each
// array of the result. A node whose result has an object is a NumPy scalar. Throws as inferResult does.
ResultMeta inferArrays(const OpCall& call, ObjectRef& classes);

// Whether it writes to its first operand.
bool writesSelf(const OpCall& call);
// For an operation that writes to its first operand (`add_`, operator.iadd, operator.setitem, relu(inplace=True)): that
// operand's metadata afterwards (requires_grad and is_leaf may change). Nothing for other operations.
std::optional<TensorMeta> selfAfter(const OpCall& call);

void clearInferMemo();

}  // namespace cdynamo
