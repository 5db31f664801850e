// How an inlined call goes back into its caller: what makes a chain of frames resumable after a break.
#pragma once
#include <cstdint>

namespace cdynamo {

// What the caller's instruction does with the value that an inlined call returns.
enum class ReturnTo : uint8_t {
  Native,     // C++ code that was half way goes on with it: not resumable
  Push,       // pushed, and on with the next instruction
  Discard,    // dropped, and on with the next instruction
  Init,       // dropped, after a check that it is None
  Attribute,  // pushed in the place of the object that it is an attribute of; an AttributeError is told which that is
  Operator,   // pushed in the place of the two operands; NotImplemented asks the right one
  Next,       // pushed; StopIteration ends the loop: the iterator is popped, and on with the jump's target
  Redo,       // pushed in the place of the operand, and the same instruction again
  Truth,      // bool() of it is pushed
  Falsehood,  // not bool() of it is pushed
  Sent,       // pushed above the receiver; what a generator returns too, and on with the jump's target
};

constexpr int kReturnToCount = static_cast<int>(ReturnTo::Sent) + 1;

}  // namespace cdynamo
