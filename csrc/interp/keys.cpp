// Keys of dicts and sets whose __hash__ and __eq__ are Python code.
#include "cpython/compat.h"
#include "interp/protocol.h"
#include "source/evaluate.h"

namespace cdynamo {

namespace {

PyObject* hashName() {
  static PyObject* name = PyUnicode_InternFromString("__hash__");
  return name;
}

// As tuplehash.
Py_hash_t tupleHash(Trace& t, const std::vector<Value*>& items) {
  constexpr Py_uhash_t kPrime1 = 11400714785074694791ULL, kPrime2 = 14029467366897019727ULL, kPrime5 = 2870177450012600261ULL;
  Py_uhash_t sum = kPrime5;
  for (Value* v : items) {
    sum += static_cast<Py_uhash_t>(t.keyOf(v).hash) * kPrime2;
    sum = (sum << 31) | (sum >> 33);
    sum *= kPrime1;
  }
  sum += items.size() ^ (kPrime5 ^ 3527539ULL);
  return sum == static_cast<Py_uhash_t>(-1) ? 1546275796 : static_cast<Py_hash_t>(sum);
}

}  // namespace

bool isHashedByPython(PyObject* object) {
  if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
      if (isHashedByPython(PyTuple_GET_ITEM(object, i))) return true;
  }
  return hasPythonHash(object) && !PyType_Check(object) && !isEnumMember(object);
}

bool hashByProgram(Trace& t, Value* v, Py_hash_t& hash) {
  PyObject* method = lookUp(t, t.typeOf(v), hashName());
  if (v->kind == Kind::Tuple) {
    static PyObject* plain = typeLookup(&PyTuple_Type, hashName());
    if (method != plain) return false;
    hash = tupleHash(t, itemsOf(t, v));
    return true;
  }
  if (v->kind != Kind::Instance || !method || !PyFunction_Check(method)) return false;
  PyObject* answer = t.constant(call(t, bindDescriptor(t, method, v, t.typeOf(v), hashName()), {}));
  if (!answer || !PyLong_Check(answer)) raise(t, PyExc_TypeError, "__hash__ method should return an integer");
  // As slot_tp_hash: what does not fit is hashed again, and -1 is no hash.
  hash = PyLong_AsSsize_t(answer);
  if (hash == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    hash = PyObject_Hash(answer);
  }
  if (hash == -1) hash = -2;
  return true;
}

Value* plainKey(Trace& t, Value* v) { return coreUnless(t, v, {"__hash__", "__eq__"}); }

bool equalKeys(Trace& t, Value* stored, Value* asked) { return truth(t, compareOp(t, Py_EQ, stored, asked)); }

bool hasExactHash(Trace& t, Value* v) {
  if (v->kind == Kind::Tuple) {
    for (Value* item : itemsOf(t, v))
      if (!hasExactHash(t, item)) return false;
    return true;
  }
  if (v->kind == Kind::Set) {
    t.load(as<SetValue>(v));
    for (const DictKey& k : as<SetValue>(v)->items)
      if (k.value && !hasExactHash(t, k.value)) return false;
  }
  if (isReal(v) && !v->source && (isMadeAnew(realObject(v)) || t.localClass(realObject(v)))) return false;
  if (t.isConstant(v)) return true;
  PyObject* method = v->kind == Kind::Instance ? lookUp(t, t.typeOf(v), hashName()) : nullptr;
  return method && PyFunction_Check(method);
}

}  // namespace cdynamo
