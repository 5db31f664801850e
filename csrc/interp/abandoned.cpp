// Generators that the program drops half way, inside try or with: CPython closes them, and their handlers run.
#include <algorithm>
#include <utility>

#include "cpython/compat.h"
#include "cpython/iterators.h"
#include "cpython/weak_references.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/lifetimes.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

bool holds(const std::vector<Value*>& values, const Value* v) {
  for (const Value* held : values)
    if (held == v) return true;
  return false;
}

// Whether anything that the trace knows refers to a value. What nothing refers to any more does not count: the trace keeps all that it
// ever made.
class Holders {
 public:
  // dying: goes away with the value, as do the locals of dyingFrame.
  Holders(const Trace& t, const FrameState* dyingFrame, const Value* dying) : t_(t), dyingFrame_(dyingFrame), dying_(dying) {}

  bool isHeld(const Value* v) {
    for (const FrameState* f = t_.frame; f; f = f->parent)
      if ((f != dyingFrame_ && holds(f->locals, v)) || holds(f->stack, v) || f->result == v) return true;
    passed_.push_back(v);
    for (const auto& owned : t_.arena()) {
      Value* other = owned.get();
      if (other == dying_ || !refersTo(other, v) || isPassed(other)) continue;
      if (!isTemporary(other) || isHeld(other)) return true;
    }
    return false;
  }

 private:
  bool isPassed(const Value* v) const { return std::find(passed_.begin(), passed_.end(), v) != passed_.end(); }

  // Made by the trace, and found from other values only.
  static bool isTemporary(Value* v) {
    switch (v->kind) {
      case Kind::List:
      case Kind::Tuple:
      case Kind::Iterator: return !static_cast<HeapValue*>(v)->real && !v->source;
      case Kind::BoundMethod: return true;
      default: return false;
    }
  }

  bool refersTo(Value* other, const Value* v) const {
    switch (other->kind) {
      case Kind::List: return holds(as<ListValue>(other)->items, v);
      case Kind::Tuple: return holds(as<TupleValue>(other)->items, v);
      case Kind::Dict:
        for (const DictEntry& e : as<DictValue>(other)->entries)
          if (e.value == v || e.key.value == v) return true;
        return false;
      case Kind::Set:
        for (const DictKey& k : as<SetValue>(other)->items)
          if (k.value == v) return true;
        return false;
      case Kind::Instance:
        for (const auto& [name, value] : as<InstanceValue>(other)->slots)
          if (value == v) return true;
        return false;
      case Kind::Cell: return as<CellValue>(other)->contents == v;
      case Kind::BoundMethod: return as<BoundMethodValue>(other)->self == v;
      case Kind::Iterator: {
        auto* it = as<IteratorValue>(other);
        return it->subject == v || it->subjectOf == v || holds(it->inputs, v);
      }
      case Kind::Generator: {
        auto* g = as<GeneratorValue>(other);
        return !g->finished && g->frame && ((g->frame != dyingFrame_ && holds(g->frame->locals, v)) || holds(g->frame->stack, v));
      }
      default: return false;
    }
  }

  const Trace& t_;
  const FrameState* dyingFrame_;
  const Value* dying_;
  std::vector<const Value*> passed_;
};

bool isHeld(const Trace& t, const Value* v, const FrameState* dyingFrame, const Value* dying) {
  // C++ code that is half way may hold anything.
  for (const FrameState* f = t.frame; f && f->parent; f = f->parent)
    if (f->returnTo == ReturnTo::Native) return true;
  return Holders(t, dyingFrame, dying).isHeld(v);
}

void close(Trace& t, GeneratorValue* g) {
  StandsHere here(t);
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  try {
    closeGenerator(t, g);
  } catch (const Unsupported&) {
    here.breakHere();
    throw;
  } catch (const Raised&) {
    unsupported(BreakReason::UnsupportedMutation, "dropping a generator that raises when it is closed");
  }
  t.tail = tail;
}

}  // namespace

bool mustBeClosed(GeneratorValue* g) {
  if (!g->frame || g->running || g->finished || !g->started) return false;
  if (g->frame->code->isInsideTry(g->frame->ip)) return true;
  for (Value* v : g->frame->stack)
    if (v->kind == Kind::Generator && mustBeClosed(as<GeneratorValue>(v))) return true;
  return false;
}

bool isNeverAwaited(GeneratorValue* g) { return g->type == &PyCoro_Type && g->frame && !g->real && !g->started && !g->finished; }

void checkDropped(Trace& t, Value* v) {
  if (v->kind == Kind::Iterator) {
    openExisting(t, as<IteratorValue>(v));
    for (Value* inner : as<IteratorValue>(v)->inputs)
      if (inner) checkDropped(t, inner);
  }
  auto* g = v->kind == Kind::Generator ? as<GeneratorValue>(v) : nullptr;
  if (!g || !g->real || g->finished) return;
  bool quiet = g->frame && !mustBeClosed(g);
  if (!g->frame) {
    t.typeOf(g);
    ObjectRef code = ObjectRef::steal(iteratorPart(g->real.get(), kGeneratorCode));
    quiet = code && !decode(reinterpret_cast<PyCodeObject*>(code.get())).hasTry();
    if (quiet) t.facts.identityIs(t.sources.iteratorPart(g->source, kGeneratorCode), code.get());
  }
  if (!quiet) unsupported(BreakReason::UnsupportedMutation, "dropping a generator, which may run code when it dies");
}

void checkLeft(Trace& t, Value* v, const FrameState& f) {
  if (!f.parent || (f.code->flags() & CO_GENERATOR) || (v->kind != Kind::Generator && v->kind != Kind::Iterator)) return;
  if (v->kind == Kind::Generator && isNeverAwaited(as<GeneratorValue>(v)) && !isHeld(t, v, &f, nullptr))
    unsupported(BreakReason::UnsupportedMutation, "dropping a coroutine that was never awaited");
  // What is found in something else is held by that.
  bool carried = static_cast<HeapValue*>(v)->real && v->source && v->source->kind == SourceKind::Local;
  if (carried && !isHeld(t, v, &f, nullptr)) checkDropped(t, v);
}

void dropped(Trace& t, Value* v, const FrameState* dyingFrame) {
  if (v->kind == Kind::Generator) {
    auto* g = as<GeneratorValue>(v);
    if (!g->real && mustBeClosed(g) && !isHeld(t, g, dyingFrame, nullptr)) close(t, g);
    // What dies with the outermost frame does so when the captured code has ended.
    if (!dyingFrame && isNeverAwaited(g) && !isHeld(t, g, nullptr, nullptr))
      unsupported(BreakReason::UnsupportedMutation, "dropping a coroutine that was never awaited");
    return;
  }
  if (v->kind != Kind::Iterator || static_cast<HeapValue*>(v)->real) return;
  // A tuple lets go of its last item first.
  const std::vector<Value*>& inputs = as<IteratorValue>(v)->inputs;
  for (size_t i = inputs.size(); i-- > 0;) {
    auto* g = inputs[i] && inputs[i]->kind == Kind::Generator ? as<GeneratorValue>(inputs[i]) : nullptr;
    if (g && !g->real && mustBeClosed(g) && !isHeld(t, g, dyingFrame, v) && !isHeld(t, v, dyingFrame, nullptr)) close(t, g);
  }
}

PyTypeObject* finalizedType(PyObject* object) {
  auto isFinalized = [](PyObject* held) { return Py_TYPE(held)->tp_finalize && !PyGen_CheckExact(held); };
  if (isFinalized(object)) return Py_TYPE(object);
  for (Py_ssize_t i = 0; PyTuple_CheckExact(object) && i < PyTuple_GET_SIZE(object); i++)
    if (isFinalized(PyTuple_GET_ITEM(object, i))) return Py_TYPE(PyTuple_GET_ITEM(object, i));
  return nullptr;
}

namespace {

// The type of the existing object v, or of one that it holds, that may run code when it dies; null: there is none.
PyTypeObject* finalizedTypeOf(const Value* v) {
  if (!v->source) return nullptr;
  const auto* heap = v->kind == Kind::Instance || v->kind == Kind::Tuple ? static_cast<const HeapValue*>(v) : nullptr;
  PyObject* object = isReal(v) ? realObject(v) : heap ? heap->real.get() : nullptr;
  return object ? finalizedType(object) : nullptr;
}

// The value, and what it holds where it is a container that the trace made.
template <typename Visit>
void visitHeld(Value* v, Visit visit) {
  visit(v);
  if (v->source) return;
  if (v->kind == Kind::List)
    for (Value* item : as<ListValue>(v)->items) visit(item);
  if (v->kind == Kind::Tuple)
    for (Value* item : as<TupleValue>(v)->items) visit(item);
  if (v->kind == Kind::Dict)
    for (const DictEntry& e : as<DictValue>(v)->entries)
      if (e.value) visit(e.key.value), visit(e.value);
}

[[noreturn]] void refuseDeath(PyTypeObject* type) {
  unsupported(BreakReason::UnsupportedMutation, std::string("dropping a ") + type->tp_name + ", which may run code when it dies");
}

}  // namespace

void checkOverwritten(Trace& t, Value* old) {
  if (!old || old->kind == Kind::Tensor) return;
  if (old->kind == Kind::Generator) return checkDropped(t, old);
  if (PyTypeObject* type = finalizedTypeOf(old)) refuseDeath(type);
}

void checkLetGo(Trace& t, Value* v, const FrameState* dyingFrame) {
  if (!v->source || v->source->kind != SourceKind::Local) return;
  // Code of the program alone: what C code does at the end of an object is seen only by what breaks anyhow.
  static PyObject* finalizer = PyUnicode_InternFromString("__del__");
  PyTypeObject* type = finalizedTypeOf(v);
  PyObject* code = type ? typeLookup(type, finalizer) : nullptr;
  if (code && PyFunction_Check(code) && !isHeld(t, v, dyingFrame, nullptr)) refuseDeath(type);
}

void letGo(Trace& t, Value* v) {
  if (v->kind != Kind::Generator && v->kind != Kind::Iterator) return checkLetGo(t, v);
  checkDropped(t, v);
  dropped(t, v);
}

void checkVariable(Trace& t, Value*& variable) {
  if (!variable) return;
  std::vector<Value*> objects;
  visitHeld(variable, [&](Value* v) {
    PyObject* object = v->kind == Kind::Instance && v->source && isVariable(v->source) ? as<InstanceValue>(v)->real.get() : nullptr;
    if (object && (finalizedType(object) || hasWeakCallbacks(object))) objects.push_back(v);
  });
  if (objects.empty()) return;
  Value* old = std::exchange(variable, nullptr);
  auto dying = std::find_if(objects.begin(), objects.end(), [&](Value* v) { return !isReachable(t, v); });
  variable = old;
  if (dying != objects.end()) refuseDeath(as<InstanceValue>(*dying)->type);
}

bool isVariable(const Source* s) { return s->kind == SourceKind::Local || s->kind == SourceKind::CellContents; }

}  // namespace cdynamo
