// What Python's operations do to symbolic values, by CPython's own rules. Each raises (throws Raised) where Python would,
// and throws Unsupported where the trace cannot follow.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "values/trace.h"

namespace cdynamo {

struct CallArgs {
  std::vector<Value*> args;
  std::vector<std::pair<PyObject*, Value*>> kwargs;  // names are interned strings kept by the trace or the code

  bool empty() const { return args.empty() && kwargs.empty(); }
  // Removes and returns a keyword argument, or null.
  Value* takeKeyword(const char* name);
  Value* keyword(const char* name) const;
};

// ---- calls ----
Value* call(Trace& t, Value* callable, CallArgs args);
inline Value* call1(Trace& t, Value* callable, Value* a) { return call(t, callable, CallArgs{{a}, {}}); }
// Runs a Python function symbolically. `function` is Real (PyFunction) or a FunctionValue.
Value* inlineFunction(Trace& t, Value* function, CallArgs args);
// Instantiates a class.
Value* construct(Trace& t, PyTypeObject* type, Value* typeValue, CallArgs args);
// object.__new__: a fresh instance with nothing set.
InstanceValue* makeInstance(Trace& t, PyTypeObject* type);
// functools.partial, whose objects are instances with the slots func, args and keywords.
PyTypeObject* partialType();

// ---- attributes ----
Value* getAttr(Trace& t, Value* object, PyObject* name);
Value* getAttr(Trace& t, Value* object, const char* name);
Value* getAttrOrNull(Trace& t, Value* object, PyObject* name);  // null where Python raises AttributeError
void setAttr(Trace& t, Value* object, PyObject* name, Value* value);
void delAttr(Trace& t, Value* object, PyObject* name);
// object.__getattribute__ / object.__setattr__ / object.__delattr__ themselves, __getattr__ and overrides not asked.
Value* genericGetAttr(Trace& t, Value* object, PyTypeObject* type, PyObject* name);  // null: absent
void genericSetAttr(Trace& t, Value* object, PyObject* name, Value* valueOrNull);
// Lookup along the type's MRO, recorded as a fact; borrowed, null where there is none.
PyObject* lookUp(Trace& t, PyTypeObject* type, PyObject* name);
// Whether base is in the type's MRO, recorded as a fact.
bool isSubtype(Trace& t, PyTypeObject* type, PyTypeObject* base);
// An attribute of a type object, such as Class.name.
Value* getTypeAttr(Trace& t, PyTypeObject* type, PyObject* name);  // null: absent
// What a descriptor found on a type gives for an instance (or for the class itself: instance null).
Value* bindDescriptor(Trace& t, PyObject* descriptor, Value* instance, PyTypeObject* owner, PyObject* name);
// The special method looked up on the type and bound; null where the type has none.
Value* specialMethod(Trace& t, Value* object, const char* name);
// The same, where it is written in Python and nothing but its result matters: the call of it is all that the instruction does.
Value* pythonMethod(Trace& t, Value* object, const char* name);

// ---- operators ----
// leftAsked: the left operand's method has given NotImplemented.
Value* binaryOp(Trace& t, int nbOp, Value* left, Value* right, bool leftAsked = false);
// The method written in Python of the left operand that a binary operator calls first; null where it is not that simple.
Value* leftMethod(Trace& t, int nbOp, Value* left, Value* right);
// Of a binary operator: its reflected method, its in-place method (null where it is not in place), its sign in messages, and
// operator.add or the like.
const char* reflectedMethod(int nbOp);
const char* inplaceMethod(int nbOp);
const char* operatorSymbol(int nbOp);
PyObject* operatorFunction(int nbOp);
// Of a comparison (Py_LT ...).
const char* compareMethod(int op);
const char* compareSymbol(int op);
int swappedComparison(int op);
Value* unaryOp(Trace& t, char op, Value* operand);  // '-', '+', '~'
Value* compareOp(Trace& t, int op, Value* left, Value* right);
bool isSame(Trace& t, Value* left, Value* right);
bool contains(Trace& t, Value* container, Value* item);
bool truth(Trace& t, Value* v);
bool equals(Trace& t, Value* a, Value* b);

// hash(v) is the same number in every call.
bool hasExactHash(Trace& t, Value* v);

// Whether an exception is one of that type.
bool isA(Trace& t, Value* exception, PyObject* type);

// ---- items and iteration ----
// Raises KeyError(key).
[[noreturn]] void keyError(Trace& t, Value* key);
Value* getItem(Trace& t, Value* container, Value* key);
void setItem(Trace& t, Value* container, Value* key, Value* value);
void delItem(Trace& t, Value* container, Value* key);
Py_ssize_t length(Trace& t, Value* v);
Value* iterate(Trace& t, Value* v);
Value* next(Trace& t, Value* iterator);  // null: exhausted
std::vector<Value*> itemsOf(Trace& t, Value* iterable);
// More items than this are not taken one by one, nor made: CPython does it.
constexpr size_t kMostItems = 1'000'000;
// The same, with a TypeError of the given text where v can not be iterated over.
std::vector<Value*> itemsOr(Trace& t, Value* v, const std::string& refusal);
// The same where the order does not matter, so that a set's is not relied on.
std::vector<Value*> unorderedItems(Trace& t, Value* iterable);
// The list, tuple, dict or set inside v: v itself, or the contents of an instance of a subclass. Null where there is none.
ListValue* asList(Value* v);
TupleValue* asTuple(Value* v);
DictValue* asDict(Value* v);
SetValue* asSet(Value* v);
// The key that is looked for in a set: a set is no key, but may be looked for as the frozenset that it equals.
DictKey keyToFind(Trace& t, Value* v);
// a OP b (by NB_* number) where one is a set, frozenset or view of a dict; null where sets have no such operator.
Value* setOperator(Trace& t, int nbOp, Value* a, Value* b);
// The dict that C code reads directly where it merges v into another: null where v is none, or has its own way to iterate.
DictValue* mergedAsDict(Trace& t, Value* v);
// The items of a list or tuple, or of an object of a subclass, whatever its class says about iteration; null: v is none.
const std::vector<Value*>* heldItems(Trace& t, Value* v);
// What an iterator over a complete dict remembers of it: another number where CPython would say that the dict was changed.
int64_t iterationState(const DictValue* d);
// The dict that an iterator over v goes over, where v is one or a view of one; null: none.
DictValue* iteratedDict(Value* v);
// The default_factory of a defaultdict; null where d is none.
Value* defaultFactory(Trace& t, DictValue* d);
Value* resumeGenerator(Trace& t, GeneratorValue* g, Value* sent, Value* thrown);  // null: finished (value in *result)

// ---- subclasses of int, float, complex, str, bytes ----
// The one among these that a type is, or is derived from; null where there is none.
PyTypeObject* coreType(PyTypeObject* type);
// The plain value of an object of such a class; null where v is none, or its value cannot be guarded.
Value* coreOf(Trace& t, Value* v);
// The same, where the class has none of these methods written in Python.
Value* coreUnless(Trace& t, Value* v, std::initializer_list<const char*> methods);
// The action is done with such plain values in the place of objects. The error would name their class: it is CPython's to raise.
template <typename Action>
auto onCores(Trace& t, Action action, PyObject* error = PyExc_TypeError) {
  try {
    return action();
  } catch (const Raised& r) {
    if (!isA(t, r.exception, error)) throw;
  }
  unsupported(BreakReason::UnsupportedOperator, "an error about an object of a class that is derived from a number or text");
}
// The type of v has a method of that name that is no C code of a builtin type.
bool overrides(Trace& t, Value* v, const char* method);

// ---- types ----
bool isInstance(Trace& t, Value* v, Value* classInfo);
bool isSubclass(Trace& t, Value* cls, Value* classInfo);
Value* typeValue(Trace& t, Value* v);

// ---- text ----
Value* format(Trace& t, Value* v, Value* specOrNull, int conversion);
Value* str(Trace& t, Value* v);
Value* repr(Trace& t, Value* v);
// A str that shows tensors and is made after the graph: callable(args) with constants, tensors and other such texts. Nothing but
// formatting, joining and output can use it. Null where an argument is something else.
Value* lateText(Trace& t, PyObject* callable, CallArgs args);
Value* lateJoin(Trace& t, Value* separator, const std::vector<Value*>& parts);
bool isLateText(Value* v);
// Whether v means the same after the graph as now: constants, late texts, tensors (which nothing may write to from now on).
bool canReadLater(Trace& t, Value* v);

// ---- numbers ----
// v as a C integer, where it is a constant that is one.
std::optional<long long> asInteger(Trace& t, Value* v);
// operator.index(v): v itself or what its __index__ gives; null where it has none.
Value* indexValue(Trace& t, Value* v);
// v as an index argument of a C function; raises TypeError where it is none.
long long indexArgument(Trace& t, Value* v);
// v as a bound of a slice: too large ones are cut.
long long sliceIndex(Trace& t, Value* v);
// a OP b (by NB_* number) and the comparison of them where one is open and stays so; null where they must be constants. A
// comparison records a fact that holds for this call and decides the answer.
Value* openNumberOp(Trace& t, int nbOp, Value* a, Value* b);
Value* openNumberCompare(Trace& t, int op, Value* a, Value* b);
// The open number among the operands of a tensor operation that can be an input of the graph; null where there is none, or
// where it must be a constant. A number on the left is put on the right where eager mode does so.
RealValue* openOperand(PyObject*& target, bool isMethod, CallArgs& args);
// A copy of v built from lists, tuples, dicts and sets of constants as a real object; null where something else is inside.
ObjectRef snapshot(Trace& t, Value* v);

// ---- numbers of the graph (Kind::Number) ----
// Adds an operation that gives an int, float or bool, of which only the type is known.
Value* recordNumber(Trace& t, PyObject* target, bool isMethod, CallArgs args, PyTypeObject* type);
// The value of a tensor with one element, as .item() gives it.
Value* itemOf(Trace& t, TensorValue* tensor);
// int(v), float(v) and bool(v) of a number.
Value* convertNumber(Trace& t, NumberValue* v, PyTypeObject* type);
// Operators and comparisons where an operand is a number; null where something else must answer (an instance's method, text).
Value* numberOp(Trace& t, int nbOp, Value* a, Value* b);
Value* numberUnary(Trace& t, char op, NumberValue* v);
Value* numberCompare(Trace& t, int op, Value* a, Value* b);

// ---- torch ----
// The operand of a node; tensors and numbers become inputs on first use.
Arg operandOf(Trace& t, Value* v);
// Adds an operation to the graph and returns its result. target: callable, or str for a tensor method.
Value* recordOp(Trace& t, PyObject* target, bool isMethod, CallArgs args);
// The same for a function whose inside is not looked at: what it returns is found with fake tensors.
Value* recordOpaque(Trace& t, PyObject* function, CallArgs args);
// True where a tensor or number of the graph is among the arguments, also inside lists, tuples and dicts.
bool hasTensor(Value* v);
bool hasTensor(const CallArgs& args);
Value* tensorAttr(Trace& t, TensorValue* tensor, PyObject* name);  // null: absent
// The handler table's answer for a callable, or null where the table does not know it.
Value* callBuiltin(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known);
// The Python function that is traced instead of a C callable, or null.
PyObject* polyfillOf(PyObject* callable);
// Raises the callable's own TypeError where its polyfill does not take these arguments.
void checkPolyfillCall(Trace& t, PyObject* callable, PyObject* polyfill, const CallArgs& args);
// A call that decorators (allow_in_graph, ...) or torch._dynamo.config say something about; `known` false for all others.
Value* callByUsersRules(Trace& t, PyObject* callable, Value* callableValue, CallArgs& args, bool& known);

std::string describe(Value* v);  // for messages
// module.qualname() of a callable, as CPython's messages about bad calls have it.
std::string callText(Trace& t, Value* callable);

}  // namespace cdynamo
