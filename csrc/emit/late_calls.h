// Bytecode for what the trace put off until after the graph.
#pragma once
#include <functional>

#include "bytecode/assembler.h"
#include "values/value.h"

namespace cdynamo {

using LoadValue = std::function<void(Value*)>;

// Pushes the result of the call.
void emitLateCall(Assembler& a, const LateCall& call, const LoadValue& load);
// Makes the call from frames that have the names, lines and globals of the user's, and drops its result.
// `like`: the code whose frame the code under construction looks like.
void emitEffect(Assembler& a, const Effect& effect, PyCodeObject* like, const LoadValue& load);

}  // namespace cdynamo
