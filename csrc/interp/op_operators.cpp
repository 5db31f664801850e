// Operators, attributes, subscripts, formatting, building and unpacking of containers.
#include "cpython/compat.h"
#include "interp/handlers.h"
#include "interp/intrinsics.h"
#include "interp/last_calls.h"
#include "interp/lifetimes.h"
#include "interp/protocol.h"

namespace cdynamo {

// ---- operators and attributes ----------------------------------------------------------------------------------------

namespace {

Value* callMethodLast(Trace& t, Value* method, std::vector<Value*> args, ReturnTo to = ReturnTo::Push) {
  return callLast(t, {method, {std::move(args), {}}}, to);
}

Value* unary(Trace& t, char op, const char* name, Value* v) {
  Value* method = pythonMethod(t, v, name);
  return method ? callMethodLast(t, method, {}) : unaryOp(t, op, v);
}

}  // namespace

void handleUnaryPositive(Trace& t, FrameState& f, const Instr&) { f.push(unary(t, '+', "__pos__", f.pop())); }
void handleUnaryNegative(Trace& t, FrameState& f, const Instr&) { f.push(unary(t, '-', "__neg__", f.pop())); }
void handleUnaryInvert(Trace& t, FrameState& f, const Instr&) { f.push(unary(t, '~', "__invert__", f.pop())); }

namespace {

// binaryOp, with a method of the left operand called so that it can break. The operands wait on the stack for the case
// that it gives NotImplemented.
Value* callBinaryMethod(Trace& t, FrameState& f, int op, Value* left, Value* right) {
  Value* method = leftMethod(t, op, left, right);
  if (!method) {
    LastCall last = lastOperator(t, op, left, right);
    return last ? callLast(t, std::move(last)) : binaryOp(t, op, left, right);
  }
  f.push(left);
  f.push(right);
  Value* result = callMethodLast(t, method, {right}, ReturnTo::Operator);
  f.pop();
  f.pop();
  return isReal(result, Py_NotImplemented) ? binaryOp(t, op, left, right, true) : result;
}

}  // namespace

void handleBinaryOp(Trace& t, FrameState& f, const Instr& in) {
  Value* right = f.pop();
  Value* left = f.pop();
  f.push(callBinaryMethod(t, f, in.arg, left, right));
}

void handleCompareOp(Trace& t, FrameState& f, const Instr& in) {
  Value* right = f.pop();
  Value* left = f.pop();
  LastCall last = lastComparison(t, in.arg, left, right);
  f.push(last ? callLast(t, std::move(last)) : compareOp(t, in.arg, left, right));
}

void handleIsOp(Trace& t, FrameState& f, const Instr& in) {
  Value* right = f.pop();
  Value* left = f.pop();
  f.push(t.boolean(isSame(t, left, right) != (in.arg != 0)));
}

void handleContainsOp(Trace& t, FrameState& f, const Instr& in) {
  Value* container = f.pop();
  Value* item = f.pop();
  Value* method = pythonMethod(t, container, "__contains__");
  bool found = method ? truth(t, callMethodLast(t, method, {item}, in.arg ? ReturnTo::Falsehood : ReturnTo::Truth)) : contains(t, container, item);
  f.push(t.boolean(found != (in.arg != 0)));
}

void handleBinarySubscr(Trace& t, FrameState& f, const Instr&) {
  Value* key = f.pop();
  Value* container = f.pop();
  if (Value* alias = genericAlias(t, container, key)) return f.push(alias);
  Value* method = pythonMethod(t, container, "__getitem__");
  f.push(method ? callMethodLast(t, method, {key}) : getItem(t, container, key));
}

void handleStoreSubscr(Trace& t, FrameState& f, const Instr&) {
  Value* key = f.pop();
  Value* container = f.pop();
  Value* value = f.pop();
  if (Value* method = pythonMethod(t, container, "__setitem__"))
    callMethodLast(t, method, {key, value}, ReturnTo::Discard);
  else
    setItem(t, container, key, value);
}

void handleDeleteSubscr(Trace& t, FrameState& f, const Instr&) {
  Value* key = f.pop();
  Value* container = f.pop();
  if (Value* method = pythonMethod(t, container, "__delitem__"))
    callMethodLast(t, method, {key}, ReturnTo::Discard);
  else
    delItem(t, container, key);
}

void handleLoadAttr(Trace& t, FrameState& f, const Instr& in) {
  Value* object = f.top();
  LastCall read = lastRead(t, object, in.object);
  try {
    Value* v = read ? callLast(t, std::move(read), ReturnTo::Attribute) : getAttr(t, object, in.object);
    f.pop();
    f.push(v);
    checkLetGo(t, object);
  } catch (Raised& raised) {
    if (read && isA(t, raised.exception, PyExc_AttributeError)) noteAttribute(t, raised.exception, object, in.object);
    throw;
  }
}
void handleLoadMethod(Trace& t, FrameState& f, const Instr& in) { handleLoadAttr(t, f, in); }

void handleStoreAttr(Trace& t, FrameState& f, const Instr& in) {
  Value* object = f.pop();
  Value* value = f.pop();
  t.tail = ReturnTo::Discard;
  setAttr(t, object, in.object, value);
}

void handleDeleteAttr(Trace& t, FrameState& f, const Instr& in) {
  Value* object = f.pop();
  t.tail = ReturnTo::Discard;
  delAttr(t, object, in.object);
}

// ---- building --------------------------------------------------------------------------------------------------------

void handleBuildTuple(Trace& t, FrameState& f, const Instr& in) { f.push(t.tuple(f.popMany(static_cast<size_t>(in.arg)))); }
void handleBuildList(Trace& t, FrameState& f, const Instr& in) { f.push(t.list(f.popMany(static_cast<size_t>(in.arg)))); }

void handleBuildSet(Trace& t, FrameState& f, const Instr& in) {
  auto* s = t.make<SetValue>();
  s->type = &PySet_Type;
  for (Value* v : f.popMany(static_cast<size_t>(in.arg))) t.setAdd(s, t.keyOf(v));
  f.push(s);
}

void handleBuildMap(Trace& t, FrameState& f, const Instr& in) {
  DictValue* d = t.dict();
  std::vector<Value*> items = f.popMany(static_cast<size_t>(in.arg) * 2);
  for (size_t i = 0; i < items.size(); i += 2) t.dictSet(d, t.keyOf(items[i]), items[i + 1]);
  f.push(d);
}

void handleBuildConstKeyMap(Trace& t, FrameState& f, const Instr& in) {
  PyObject* keys = t.constant(f.pop());
  DictValue* d = t.dict();
  std::vector<Value*> values = f.popMany(static_cast<size_t>(in.arg));
  for (size_t i = 0; i < values.size(); i++) t.dictSet(d, t.keyOf(t.realShared(PyTuple_GET_ITEM(keys, static_cast<Py_ssize_t>(i)))), values[i]);
  f.push(d);
}

void handleBuildString(Trace& t, FrameState& f, const Instr& in) {
  ObjectRef parts = checked(PyList_New(0));
  std::vector<Value*> items = f.popMany(static_cast<size_t>(in.arg));
  for (Value* v : items) {
    PyObject* c = t.constant(v);
    if (!c && isLateText(v)) {
      Value* late = lateJoin(t, t.string(""), items);
      if (!late) unsupported(BreakReason::UnsupportedText, "a string made from computed values");
      f.push(late);
      return;
    }
    if (!c) unsupported(BreakReason::UnsupportedText, "a string made from " + describe(v));
    checkedStatus(PyList_Append(parts.get(), c));
  }
  static PyObject* empty = PyUnicode_InternFromString("");
  f.push(t.real(checked(PyUnicode_Join(empty, parts.get()))));
}

void handleBuildSlice(Trace& t, FrameState& f, const Instr& in) {
  Value* step = in.arg == 3 ? f.pop() : t.none();
  Value* stop = f.pop();
  Value* start = f.pop();
  f.push(t.make<SliceValue>(start, stop, step));
}

void handleListAppend(Trace& t, FrameState& f, const Instr& in) {
  Value* v = f.pop();
  t.append(as<ListValue>(f.top(static_cast<size_t>(in.arg))), v);
}

void handleSetAdd(Trace& t, FrameState& f, const Instr& in) {
  Value* v = f.pop();
  t.setAdd(as<SetValue>(f.top(static_cast<size_t>(in.arg))), t.keyOf(v));
}

void handleMapAdd(Trace& t, FrameState& f, const Instr& in) {
  Value* value = f.pop();
  Value* key = f.pop();
  t.dictSet(as<DictValue>(f.top(static_cast<size_t>(in.arg))), t.keyOf(key), value);
}

namespace {

// What the instruction iterates over; where that runs code of the program, a list of what it gives, so that a break in it goes on.
Value* itemsOfOperand(Trace& t, Value* v, long most = -1, bool asksLength = false) {
  LastCall last = lastItems(t, v, most, asksLength);
  return last ? callLast(t, std::move(last), ReturnTo::Redo) : v;
}

}  // namespace

void handleListExtend(Trace& t, FrameState& f, const Instr& in) {
  Value* iterable = itemsOfOperand(t, f.pop(), -1, true);
  auto* l = as<ListValue>(f.top(static_cast<size_t>(in.arg)));
  for (Value* v : itemsOr(t, iterable, std::string("Value after * must be an iterable, not ") + t.typeOf(iterable)->tp_name)) t.append(l, v);
}

void handleSetUpdate(Trace& t, FrameState& f, const Instr& in) {
  Value* iterable = f.pop();
  auto* s = as<SetValue>(f.top(static_cast<size_t>(in.arg)));
  static PyObject* update = typeLookup(&PySet_Type, PyUnicode_InternFromString("update"));
  if (LastCall last = lastConsumer(t, update, t.realShared(update), {{s, iterable}, {}})) {
    callLast(t, std::move(last), ReturnTo::Discard);
    return;
  }
  if (SetValue* other = asSet(iterable)) iterable = other;  // read by its table, whatever its __iter__ says
  if (isReal(iterable) && PyFrozenSet_CheckExact(realObject(iterable)) && t.constant(iterable)) return t.setMerge(s, realObject(iterable));
  if (iterable->kind == Kind::Iterator)
    while (Value* v = next(t, iterable)) t.setAdd(s, t.keyOf(v));
  else
    for (Value* v : itemsOf(t, iterable)) t.setAdd(s, t.keyOf(v));
}

std::string callText(Trace& t, Value* callable) {
  auto read = [&](const char* name) -> std::string {
    Value* v = getAttrOrNull(t, callable, t.keep(checked(PyUnicode_InternFromString(name))));
    PyObject* c = v ? t.constant(v) : nullptr;
    return c && PyUnicode_Check(c) ? PyUnicode_AsUTF8(c) : "";
  };
  std::string qualname = read("__qualname__"), module = read("__module__");
  if (qualname.empty()) return std::string(t.typeOf(callable)->tp_name) + " object";
  return (module.empty() || module == "builtins" ? "" : module + ".") + qualname + "()";
}

namespace {

// Adds a mapping's items to a dict; for the keywords of a call to `callable`, a repeated key is a TypeError.
void mergeMapping(Trace& t, DictValue* into, Value* mapping, Value* callable) {
  auto put = [&](Value* key, Value* value) {
    DictKey k = t.keyOf(key);
    if (callable && t.dictGet(into, k)) {
      PyObject* name = t.constant(key);
      const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : "?";
      raise(t, PyExc_TypeError, callText(t, callable) + " got multiple values for keyword argument '" + text + "'");
    }
    t.dictSet(into, k, value);
  };
  if (DictValue* d = mergedAsDict(t, mapping)) {
    t.complete(d);
    for (size_t i = 0; i < d->entries.size(); i++)
      if (d->entries[i].value) put(d->entries[i].key.value, d->entries[i].value);
    return;
  }
  Value* keys = getAttrOrNull(t, mapping, t.keep(checked(PyUnicode_InternFromString("keys"))));
  if (!keys && callable) raise(t, PyExc_TypeError, callText(t, callable) + " argument after ** must be a mapping, not " + t.typeOf(mapping)->tp_name);
  if (!keys) raise(t, PyExc_TypeError, std::string("'") + t.typeOf(mapping)->tp_name + "' object is not a mapping");
  for (Value* key : itemsOf(t, call(t, keys, {}))) put(key, getItem(t, mapping, key));
}

}  // namespace

void handleDictUpdate(Trace& t, FrameState& f, const Instr& in) {
  Value* mapping = f.pop();
  mergeMapping(t, as<DictValue>(f.top(static_cast<size_t>(in.arg))), mapping, nullptr);
}

void handleDictMerge(Trace& t, FrameState& f, const Instr& in) {
  Value* mapping = f.pop();
  mergeMapping(t, as<DictValue>(f.top(static_cast<size_t>(in.arg))), mapping, f.top(static_cast<size_t>(in.arg) + 2));
}

void handleListToTuple(Trace& t, FrameState& f, const Instr&) {
  auto* l = as<ListValue>(f.pop());
  t.load(l);
  f.push(t.tuple(l->items));
}

void handleFormatValue(Trace& t, FrameState& f, const Instr& in) {
  Value* spec = (in.arg & 4) ? f.pop() : nullptr;
  Value* v = f.pop();
  LastCall last = (in.arg & 3) == 0 ? lastFormat(t, v, spec) : LastCall{};
  f.push(last ? callLast(t, std::move(last)) : format(t, v, spec, in.arg & 3));
}

// ---- unpacking -------------------------------------------------------------------------------------------------------

namespace {

void checkUnpackable(Trace& t, Value* v) {
  PyTypeObject* type = t.typeOf(v);
  if (!type->tp_iter && !(type->tp_as_sequence && type->tp_as_sequence->sq_item))
    raise(t, PyExc_TypeError, std::string("cannot unpack non-iterable ") + type->tp_name + " object");
}

}  // namespace

void handleUnpackSequence(Trace& t, FrameState& f, const Instr& in) {
  // One item more than wanted is read, as CPython does.
  Value* v = itemsOfOperand(t, f.pop(), in.arg + 1);
  std::vector<Value*> items;
  size_t want = static_cast<size_t>(in.arg);
  if (asList(v) || asTuple(v)) {
    items = itemsOf(t, v);
  } else {
    checkUnpackable(t, v);
    Value* it = iterate(t, v);
    while (items.size() <= want) {
      Value* item = next(t, it);
      if (!item) break;
      items.push_back(item);
    }
  }
  if (items.size() < want)
    raise(t, PyExc_ValueError, "not enough values to unpack (expected " + std::to_string(want) + ", got " + std::to_string(items.size()) + ")");
  if (items.size() > want) raise(t, PyExc_ValueError, "too many values to unpack (expected " + std::to_string(want) + ")");
  for (size_t i = want; i-- > 0;) f.push(items[i]);
}

void handleUnpackEx(Trace& t, FrameState& f, const Instr& in) {
  checkUnpackable(t, f.top());
  std::vector<Value*> items = itemsOf(t, itemsOfOperand(t, f.pop()));
  size_t before = static_cast<size_t>(unpackBefore(in.arg)), after = static_cast<size_t>(unpackAfter(in.arg));
  if (items.size() < before + after)
    raise(t, PyExc_ValueError,
          "not enough values to unpack (expected at least " + std::to_string(before + after) + ", got " + std::to_string(items.size()) + ")");
  size_t rest = items.size() - after;
  for (size_t i = items.size(); i-- > rest;) f.push(items[i]);
  f.push(t.list(std::vector<Value*>(items.begin() + static_cast<ptrdiff_t>(before), items.begin() + static_cast<ptrdiff_t>(rest))));
  for (size_t i = before; i-- > 0;) f.push(items[i]);
}

// ---- pattern matching ------------------------------------------------------------------------------------------------

void handleGetLen(Trace& t, FrameState& f, const Instr&) { f.push(t.integer(length(t, f.top()))); }

namespace {

bool hasTypeFlag(Trace& t, Value* v, unsigned long flag) { return PyType_HasFeature(t.typeOf(v), flag); }

}  // namespace

void handleMatchMapping(Trace& t, FrameState& f, const Instr&) { f.push(t.boolean(hasTypeFlag(t, f.top(), Py_TPFLAGS_MAPPING))); }
void handleMatchSequence(Trace& t, FrameState& f, const Instr&) { f.push(t.boolean(hasTypeFlag(t, f.top(), Py_TPFLAGS_SEQUENCE))); }

void handleMatchKeys(Trace& t, FrameState& f, const Instr&) {
  Value* keys = f.top(1);
  Value* subject = f.top(2);
  std::vector<Value*> values;
  DictValue *d = asDict(subject), *seen = t.dict();
  for (Value* key : itemsOf(t, keys)) {
    Value* v = nullptr;
    DictKey known = t.keyOf(key);
    if (t.dictGet(seen, known)) {
      PyObject* text = t.constant(repr(t, key));
      if (!text) unsupported(BreakReason::HashOrCompare, "a mapping pattern with the same key twice");
      raise(t, PyExc_ValueError, std::string("mapping pattern checks duplicate key (") + PyUnicode_AsUTF8(text) + ")");
    }
    t.dictSet(seen, known, key);
    if (d && subject->kind == Kind::Dict) {
      v = t.dictGet(d, known);
    } else {
      Value* missing = t.real(checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type))));
      v = call(t, getAttr(t, subject, "get"), {{key, missing}, {}});
      if (v == missing) v = nullptr;
    }
    if (!v) return f.push(t.none());
    values.push_back(v);
  }
  f.push(t.tuple(std::move(values)));
}

namespace {

// The attributes that a class pattern looks at, one after the other.
struct MatchedAttributes {
  Trace& t;
  Value* subject;
  PyTypeObject* type;
  std::vector<Value*> values{};
  std::vector<PyObject*> seen{};

  // False where the subject has no such attribute.
  bool add(PyObject* name) {
    for (PyObject* known : seen)
      if (PyUnicode_Compare(known, name) == 0) {
        ObjectRef text = checked(PyUnicode_FromFormat("%s() got multiple sub-patterns for attribute %R", type->tp_name, name));
        raise(t, PyExc_TypeError, PyUnicode_AsUTF8(text.get()));
      }
    seen.push_back(name);
    Value* v = getAttrOrNull(t, subject, name);
    if (v) values.push_back(v);
    return v != nullptr;
  }
};

}  // namespace

void handleMatchClass(Trace& t, FrameState& f, const Instr& in) {
  Value* names = f.pop();
  Value* cls = f.pop();
  Value* subject = f.pop();
  if (!isReal(cls) || !PyType_Check(realObject(cls))) raise(t, PyExc_TypeError, "called match pattern must be a class");
  if (!isInstance(t, subject, cls)) return f.push(t.none());
  auto* type = reinterpret_cast<PyTypeObject*>(t.identity(cls));
  MatchedAttributes matched{t, subject, type};
  if (in.arg > 0) {
    static PyObject* matchArgs = PyUnicode_InternFromString("__match_args__");
    Value* args = getTypeAttr(t, type, matchArgs);
    if (args && t.typeOf(args) != &PyTuple_Type)
      raise(t, PyExc_TypeError, std::string(type->tp_name) + ".__match_args__ must be a tuple (got " + t.typeOf(args)->tp_name + ")");
    std::vector<Value*> list = args ? itemsOf(t, args) : std::vector<Value*>();
    bool self = !args && PyType_HasFeature(type, _Py_TPFLAGS_MATCH_SELF);
    size_t allowed = self ? 1 : list.size();
    if (allowed < static_cast<size_t>(in.arg))
      raise(t, PyExc_TypeError,
            std::string(type->tp_name) + "() accepts " + std::to_string(allowed) + " positional sub-pattern" + (allowed == 1 ? "" : "s") + " (" +
                std::to_string(in.arg) + " given)");
    if (self) matched.values.push_back(subject);
    for (int i = 0; !self && i < in.arg; i++) {
      Value* name = list[static_cast<size_t>(i)];
      if (t.typeOf(name) != &PyUnicode_Type)
        raise(t, PyExc_TypeError, std::string("__match_args__ elements must be strings (got ") + t.typeOf(name)->tp_name + ")");
      if (!matched.add(t.constant(name))) return f.push(t.none());
    }
  }
  for (Value* name : itemsOf(t, names))
    if (!matched.add(t.constant(name))) return f.push(t.none());
  f.push(t.tuple(std::move(matched.values)));
}

}  // namespace cdynamo
