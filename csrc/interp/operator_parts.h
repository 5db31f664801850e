// What operators and comparisons share.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// The special method found on the type, called with self and other; null where missing or NotImplemented.
Value* trySpecial(Trace& t, Value* self, const char* name, Value* other);
// Whether C code of the number on the left takes the right operand, an object of a class derived from a number, as it is: the methods of
// that class are not asked. base: as in binaryOp, -1 for comparisons.
bool takesInC(Trace& t, int base, Value* left, Value* right);
// divmod(a, b) where one of them is no constant.
Value* divideWithRest(Trace& t, Value* a, Value* b);
// A NumPy scalar on the left of a tensor leaves the operation to the tensor, which takes it for the number that it is.
Value* plainNumber(Trace& t, Value* v, bool refuses);

}  // namespace cdynamo
