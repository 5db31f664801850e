// Numbers that only the run of the capture knows: what is recorded for them, and what needs their value and breaks.
#include <cmath>

#include "base/lookup.h"
#include "interp/protocol.h"
#include "shapes/layout.h"

namespace cdynamo {

namespace {

PyObject* operatorOf(const char* name) { return importedObject("operator", name); }

[[noreturn]] void needsValue(Trace& t, Value* a, Value* b) {
  t.constant(isNumber(a) ? a : b);
  throw EngineError("the value of a captured number was given");
}

// Whether v is a number of which the type is known: of the graph, or a constant int, float or bool.
PyTypeObject* numericType(Trace& t, Value* v) {
  if (isNumber(v)) return as<NumberValue>(v)->type;
  if (!isReal(v)) return nullptr;
  PyTypeObject* type = t.typeOf(v);
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ? type : nullptr;
}

// Something else decides what the operator does: a method of an instance, or text.
bool isForeign(Value* v) { return v->kind == Kind::Instance || v->kind == Kind::Tensor || v->kind == Kind::Array; }

bool isNonzeroConstant(Trace& t, Value* v) {
  if (isNumber(v)) return false;
  PyObject* c = t.constant(v);
  return c && PyObject_IsTrue(c) == 1;
}

bool fitsInt64(PyObject* number) {
  int overflow = 0;
  if (PyLong_Check(number)) PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow == 0;
}

}  // namespace

Value* itemOf(Trace& t, TensorValue* tensor) {
  t.observe(tensor);
  DType dtype = tensor->meta.dtype;
  bool real = isFloating(dtype);
  if (tensor->meta.numel() != 1 || !(real || isIntegral(dtype, true)) || t.vmapLevel != 0)
    unsupported(BreakReason::ScalarRead, "the value of a tensor with other than one real number");
  static PyObject* item = PyUnicode_InternFromString("item");
  return recordNumber(t, item, true, {{tensor}, {}}, real ? &PyFloat_Type : dtype == DType::Bool ? &PyBool_Type : &PyLong_Type);
}

Value* convertNumber(Trace& t, NumberValue* v, PyTypeObject* type) {
  if (v->type == type) return v;
  if (v->type == &PyBool_Type) needsValue(t, v, v);
  if (type == &PyBool_Type) return recordNumber(t, operatorOf("ne"), false, {{v, t.integer(0)}, {}}, type);
  return recordNumber(t, importedObject("torch", type == &PyLong_Type ? "sym_int" : "sym_float"), false, {{v}, {}}, type);
}

Value* numberOp(Trace& t, int base, Value* a, Value* b) {
  if (isForeign(a) || isForeign(b)) return nullptr;
  if (base == 6 && isReal(a) && PyUnicode_Check(realObject(a))) return nullptr;
  PyTypeObject *ta = numericType(t, a), *tb = numericType(t, b);
  if (!ta || !tb) needsValue(t, a, b);
  CallArgs operands{{a, b}, {}};
  if (ta == &PyBool_Type || tb == &PyBool_Type) {
    if (ta == tb && (base == 1 || base == 7)) return recordNumber(t, operatorOf(base == 1 ? "and_" : "or_"), false, operands, ta);
    needsValue(t, a, b);
  }
  for (Value* v : {a, b})
    if (isReal(v) && !fitsInt64(t.constant(v))) needsValue(t, a, b);
  bool real = ta == &PyFloat_Type || tb == &PyFloat_Type;
  switch (base) {
    case 0:
    case 5:
    case 10: return recordNumber(t, operatorFunction(base), false, operands, real ? &PyFloat_Type : &PyLong_Type);
    case 11:
      if (isNonzeroConstant(t, b)) return recordNumber(t, operatorFunction(base), false, operands, &PyFloat_Type);
      break;
    case 2:
    case 6:
      if (!real && isNonzeroConstant(t, b)) return recordNumber(t, operatorFunction(base), false, operands, &PyLong_Type);
      break;
    case 8:
      // The type of the result, and whether there is one, depend on both values.
      if (!real && isReal(b) && asInteger(t, b).value_or(-1) >= 0) return recordNumber(t, operatorFunction(base), false, operands, &PyLong_Type);
      break;
    default: break;
  }
  needsValue(t, a, b);
}

Value* numberUnary(Trace& t, char op, NumberValue* v) {
  if (v->type == &PyBool_Type || op == '~') needsValue(t, v, v);
  if (op == '+') return v;
  return recordNumber(t, operatorOf(op == '-' ? "neg" : "abs"), false, {{v}, {}}, v->type);
}

Value* numberCompare(Trace& t, int op, Value* a, Value* b) {
  static constexpr const char* names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  if (isForeign(a) || isForeign(b)) return nullptr;
  PyTypeObject *ta = numericType(t, a), *tb = numericType(t, b);
  if (!ta || !tb) {
    Value* other = ta ? b : a;
    bool differs = !isReal(other) || !PyNumber_Check(realObject(other)) || PyUnicode_Check(realObject(other));
    if (differs && (op == Py_EQ || op == Py_NE)) return t.boolean(op == Py_NE);
    needsValue(t, a, b);
  }
  if (ta == &PyBool_Type || tb == &PyBool_Type) needsValue(t, a, b);
  return recordNumber(t, operatorOf(names[op]), false, {{a, b}, {}}, &PyBool_Type);
}

}  // namespace cdynamo
