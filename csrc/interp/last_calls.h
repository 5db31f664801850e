// Operations that come down to one call of the program's own Python code. Made as the instruction's last call, a break in it
// goes on after the instruction. What CPython does around the call is in polyfills, which are traced.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

struct LastCall {
  Value* callable = nullptr;  // null: the operation is something else
  CallArgs args;
  bool early = false;  // takes all items before it looks at the first, which CPython does not: an error is CPython's to raise
  explicit operator bool() const { return callable != nullptr; }
};

// getattr(object, name) by a property, a descriptor, __getattribute__ or __getattr__.
LastCall lastRead(Trace& t, Value* object, PyObject* name);
// A binary operator by the reflected method of the right operand, or by an in-place method.
LastCall lastOperator(Trace& t, int nbOp, Value* left, Value* right);
LastCall lastComparison(Trace& t, int op, Value* left, Value* right);
// bool(v) where __bool__ or __len__ is written in Python.
LastCall lastTruth(Trace& t, Value* v);
LastCall lastIterator(Trace& t, Value* v);
// format(v, spec); spec null: empty.
LastCall lastFormat(Trace& t, Value* v, Value* spec);
// len, bool, iter, next, str, repr, format, getattr, setattr, delattr.
LastCall lastBuiltin(Trace& t, PyObject* callable, const CallArgs& args);

// The next item of an iterator, by a __next__ written in Python, or of a zip, map, ... over such code; StopIteration ends it.
LastCall lastNext(Trace& t, Value* iterator);
// Whether iterating over v runs code of the program.
bool runsProgram(Trace& t, Value* v);
// Taking an item may run code of the program; nothing else is asked of it.
inline bool isGeneratorOrIterator(const Value* v) {
  return v->kind == Kind::Iterator || (v->kind == Kind::Generator && static_cast<const GeneratorValue*>(v)->type == &PyGen_Type);
}
// Whether it can be seen how many items were taken from v.
bool mayBeLeftInTheMiddle(Trace& t, Value* v);
// The items of such a v as a list; most: so many at most, -1: all. asksLength: who wants them asks v for its length first, as list() does.
LastCall lastItems(Trace& t, Value* v, long most = -1, bool asksLength = false);
// list, sum, sorted, str.join, ... of such items, or with such a key.
LastCall lastConsumer(Trace& t, PyObject* callable, Value* callableValue, const CallArgs& args);
// list += v of such items.
LastCall lastInPlaceConcat(Trace& t, Value* list, Value* v);
// object.__setattr__ and object.__delattr__ (value null) by a property or descriptor written in Python.
LastCall lastWrite(Trace& t, Value* object, PyObject* name, Value* value);

// An error where items were taken that CPython would not have taken yet.
[[noreturn]] void refuseEarlyItems();

// Makes the call; the current instruction does `to` with its result.
Value* callLast(Trace& t, LastCall last, ReturnTo to = ReturnTo::Push);

}  // namespace cdynamo
