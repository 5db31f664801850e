// Stack shuffles, constants, locals, cells, globals and names.
#include <utility>

#include "base/own_library.h"
#include "cpython/compat.h"
#include "interp/handlers.h"
#include "interp/intrinsics.h"
#include "interp/lifetimes.h"
#include "interp/protocol.h"

namespace cdynamo {

void handleNop(Trace&, FrameState&, const Instr&) {}
void handleResume(Trace&, FrameState&, const Instr&) {}
void handlePopTop(Trace& t, FrameState& f, const Instr&) { letGo(t, f.pop()); }
void handleCopy(Trace&, FrameState& f, const Instr& in) { f.push(f.top(static_cast<size_t>(in.arg))); }

void handleSwap(Trace&, FrameState& f, const Instr& in) {
  std::vector<Value*> items = f.popMany(static_cast<size_t>(in.arg));
  std::swap(items.front(), items.back());
  for (Value* v : items) f.push(v);
}

void handleLoadConst(Trace& t, FrameState& f, const Instr& in) { f.push(t.realShared(in.object)); }

namespace {

std::string slotName(const FrameState& f, int slot) {
  const char* name = PyUnicode_AsUTF8(f.code->localName(slot));
  return name ? name : "?";
}

}  // namespace

void handleLoadFast(Trace& t, FrameState& f, const Instr& in) {
  Value* v = f.locals[static_cast<size_t>(in.arg)];
  if (v == nullptr || v->kind == Kind::Unbound)
    raise(t, PyExc_UnboundLocalError, "cannot access local variable '" + slotName(f, in.arg) + "' where it is not associated with a value");
  f.push(v);
}

namespace {

// Breaks where a weak reference shows the death of an existing object, where the program deletes it or the list that holds it.
void checkWatched(Value* old) {
  PyObject* object = nullptr;
  if (old->source && (old->kind == Kind::Instance || old->kind == Kind::List)) object = as<HeapValue>(old)->real.get();
  if (old->source && isReal(old) && !PyType_Check(realObject(old)) && !PyModule_Check(realObject(old))) object = realObject(old);
  if (object && PyList_CheckExact(object)) {
    PyObject* watched = nullptr;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object) && !watched; i++)
      if (PyObject* item = PyList_GET_ITEM(object, i); PyType_HasFeature(Py_TYPE(item), Py_TPFLAGS_HEAPTYPE) && hasWeakReferences(item))
        watched = item;
    object = watched;
  }
  if (object && hasWeakReferences(object))
    unsupported(BreakReason::UnsupportedMutation, std::string("deleting a ") + Py_TYPE(object)->tp_name + " that has weak references");
}

// The variable holds v from now on (null: nothing), and lets go of what it held; as it was where that breaks.
void setVariable(Trace& t, Value*& variable, Value* v) {
  Value* old = std::exchange(variable, v);
  if (!old || old == v) return;
  try {
    dropped(t, old);
  } catch (const Unsupported&) {
    variable = old;
    throw;
  }
}

}  // namespace

void handleStoreFast(Trace& t, FrameState& f, const Instr& in) {
  Value* old = f.locals[static_cast<size_t>(in.arg)];
  checkOverwritten(t, old);
  checkVariable(t, f.locals[static_cast<size_t>(in.arg)]);
  Value* v = f.pop();
  setVariable(t, f.locals[static_cast<size_t>(in.arg)], v->kind == Kind::Unbound ? nullptr : v);
  if (v->kind == Kind::Tensor) {
    auto* tensor = as<TensorValue>(v);
    if (tensor->node && tensor->node->op != NodeOp::Placeholder && tensor->node->nameHint.empty()) tensor->node->nameHint = slotName(f, in.arg);
  }
}

void handleDeleteFast(Trace& t, FrameState& f, const Instr& in) {
  if (f.locals[static_cast<size_t>(in.arg)] == nullptr)
    raise(t, PyExc_UnboundLocalError, "cannot access local variable '" + slotName(f, in.arg) + "' where it is not associated with a value");
  Value* old = f.locals[static_cast<size_t>(in.arg)];
  checkOverwritten(t, old);
  checkWatched(old);
  checkVariable(t, f.locals[static_cast<size_t>(in.arg)]);
  setVariable(t, f.locals[static_cast<size_t>(in.arg)], nullptr);
}

void handleLoadFastAndClear(Trace& t, FrameState& f, const Instr& in) {
  Value*& slot = f.locals[static_cast<size_t>(in.arg)];
  f.push(slot ? slot : t.unbound());
  slot = nullptr;
}

// ---- globals and names -----------------------------------------------------------------------------------------------

namespace {

Value* loadGlobalOrNull(Trace& t, FrameState& f, PyObject* name) {
  if (f.builtins == ownBuiltins()) {
    // Nothing changes what our own library means by a name.
    PyObject* object = PyDict_GetItemWithError(f.globals, name);
    if (!object && !PyErr_Occurred()) object = PyDict_GetItemWithError(f.builtins, name);
    if (!object && PyErr_Occurred()) throw PythonError();
    return object ? pinnedValue(t, object) : nullptr;
  }
  if (Value* v = t.dictGetName(f.globalsDict, name)) return v;
  return t.dictGetName(f.builtinsDict, name);
}

[[noreturn]] void nameError(Trace& t, PyObject* name, const char* words = "name '%U' is not defined") {
  ObjectRef args = checked(Py_BuildValue("(N)", PyUnicode_FromFormat(words, name)));
  ObjectRef keywords = checked(Py_BuildValue("{s:O}", "name", name));
  throw Raised{t.real(checked(PyObject_Call(PyExc_NameError, args.get(), keywords.get())))};
}

}  // namespace

void handleLoadGlobal(Trace& t, FrameState& f, const Instr& in) {
  Value* v = loadGlobalOrNull(t, f, in.object);
  if (!v) nameError(t, in.object);
  f.push(v);
}

void handleStoreGlobal(Trace& t, FrameState& f, const Instr& in) {
  Value* v = f.pop();
  t.dictSet(f.globalsDict, t.keyOf(t.realShared(in.object)), v);
}

void handleDeleteGlobal(Trace& t, FrameState& f, const Instr& in) {
  if (!t.dictDelete(f.globalsDict, t.keyOf(t.realShared(in.object)))) nameError(t, in.object);
}

namespace {

// A name of a class body; null: not there. Where __prepare__ gave an object of a subclass of dict, that is asked.
Value* nameInBody(Trace& t, FrameState& f, PyObject* name) {
  if (!f.names) return nullptr;
  if (!f.names->holder) return t.dictGetName(f.names, name);
  try {
    return getItem(t, f.names->holder, t.realShared(name));
  } catch (Raised& raised) {
    if (!isA(t, raised.exception, PyExc_KeyError)) throw;
    return nullptr;
  }
}

void storeInBody(Trace& t, FrameState& f, PyObject* name, Value* v) {
  if (f.names && f.names->holder) return setItem(t, f.names->holder, t.realShared(name), v);
  t.dictSet(f.names ? f.names : f.globalsDict, t.keyOf(t.realShared(name)), v);
}

}  // namespace

void handleLoadName(Trace& t, FrameState& f, const Instr& in) {
  if (Value* v = nameInBody(t, f, in.object)) return f.push(v);
  handleLoadGlobal(t, f, in);
}

void handleStoreName(Trace& t, FrameState& f, const Instr& in) { storeInBody(t, f, in.object, f.pop()); }

void handleDeleteName(Trace& t, FrameState& f, const Instr& in) {
  if (f.names && f.names->holder) {
    if (!nameInBody(t, f, in.object)) nameError(t, in.object);
    return delItem(t, f.names->holder, t.realShared(in.object));
  }
  if (!t.dictDelete(f.names ? f.names : f.globalsDict, t.keyOf(t.realShared(in.object)))) nameError(t, in.object);
}

void handleLoadLocals(Trace&, FrameState& f, const Instr&) {
  if (!f.names) unsupported(BreakReason::UnsupportedOpcode, "the locals of a module body");
  f.push(holderOf(f.names));
}

void handleSetupAnnotations(Trace& t, FrameState& f, const Instr&) {
  if (!f.names) unsupported(BreakReason::UnsupportedOpcode, "annotations of a module body");
  static PyObject* name = PyUnicode_InternFromString("__annotations__");
  if (!nameInBody(t, f, name)) storeInBody(t, f, name, t.dict());
}

void handleLoadFromDictOrGlobals(Trace& t, FrameState& f, const Instr& in) {
  Value* mapping = f.pop();
  DictValue* d = asDict(mapping);
  Value* v = d ? t.dictGetName(d, in.object) : nullptr;
  if (!v) v = loadGlobalOrNull(t, f, in.object);
  if (!v) nameError(t, in.object);
  f.push(v);
}

// ---- cells -----------------------------------------------------------------------------------------------------------

namespace {

CellValue* cellAt(FrameState& f, int slot) {
  Value* v = f.locals[static_cast<size_t>(slot)];
  CD_CHECK(v && v->kind == Kind::Cell, "a cell slot without a cell");
  return as<CellValue>(v);
}

Value* derefOrRaise(Trace& t, FrameState& f, int slot) {
  Value* v = t.cellContents(cellAt(f, slot));
  if (v) return v;
  if (slot >= f.code->firstFree())
    nameError(t, f.code->localName(slot), "cannot access free variable '%U' where it is not associated with a value in enclosing scope");
  raise(t, PyExc_UnboundLocalError, "cannot access local variable '" + slotName(f, slot) + "' where it is not associated with a value");
}

}  // namespace

void handleMakeCell(Trace& t, FrameState& f, const Instr& in) {
  Value*& slot = f.locals[static_cast<size_t>(in.arg)];
  auto* cell = t.make<CellValue>();
  cell->type = &PyCell_Type;
  cell->contents = slot;
  slot = cell;
}

void handleCopyFreeVars(Trace&, FrameState& f, const Instr& in) {
  CD_CHECK(f.closure != nullptr, "free variables without a closure");
  auto* cells = as<TupleValue>(f.closure);
  size_t first = f.locals.size() - static_cast<size_t>(in.arg);
  for (size_t i = 0; i < static_cast<size_t>(in.arg); i++) f.locals[first + i] = cells->items[i];
}

void handleLoadClosure(Trace&, FrameState& f, const Instr& in) { f.push(f.locals[static_cast<size_t>(in.arg)]); }
void handleLoadDeref(Trace& t, FrameState& f, const Instr& in) { f.push(derefOrRaise(t, f, in.arg)); }

void handleLoadClassDeref(Trace& t, FrameState& f, const Instr& in) {
  Value* v = nameInBody(t, f, f.code->localName(in.arg));
  f.push(v ? v : derefOrRaise(t, f, in.arg));
}

void handleLoadFromDictOrDeref(Trace& t, FrameState& f, const Instr& in) {
  DictValue* d = asDict(f.pop());
  Value* v = d ? t.dictGetName(d, f.code->localName(in.arg)) : nullptr;
  f.push(v ? v : derefOrRaise(t, f, in.arg));
}

void handleStoreDeref(Trace& t, FrameState& f, const Instr& in) {
  CellValue* cell = cellAt(f, in.arg);
  checkOverwritten(t, t.cellContents(cell));
  checkVariable(t, cell->contents);
  Value* v = f.pop();
  t.setCell(cell, v);
}

void handleDeleteDeref(Trace& t, FrameState& f, const Instr& in) {
  Value* old = derefOrRaise(t, f, in.arg);
  checkOverwritten(t, old);
  checkWatched(old);
  t.setCell(cellAt(f, in.arg), nullptr);
}

void handleLoadBuildClass(Trace& t, FrameState& f, const Instr&) {
  PyObject* build = PyDict_GetItemString(f.builtins, "__build_class__");
  if (!build) raise(t, PyExc_NameError, "__build_class__ not found");
  f.push(t.realShared(build));
}

void handleLoadAssertionError(Trace& t, FrameState& f, const Instr&) { f.push(t.realShared(PyExc_AssertionError)); }

}  // namespace cdynamo
