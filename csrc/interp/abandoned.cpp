// Generators that the program drops half way, inside try or with: CPython closes them, and their handlers run.
#include <utility>

#include "cpython/iterators.h"
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

// Whether anything that the trace knows refers to v; `dying` is going away with it.
bool isHeld(const Trace& t, const Value* v, const FrameState* dyingFrame, const Value* dying) {
  for (const FrameState* f = t.frame; f; f = f->parent)
    if ((f != dyingFrame && holds(f->locals, v)) || holds(f->stack, v)) return true;
  for (const auto& owned : t.arena()) {
    Value* other = owned.get();
    if (other == v || other == dying) continue;
    switch (other->kind) {
      case Kind::List:
        if (holds(as<ListValue>(other)->items, v)) return true;
        break;
      case Kind::Tuple:
        if (holds(as<TupleValue>(other)->items, v)) return true;
        break;
      case Kind::Dict:
        for (const DictEntry& e : as<DictValue>(other)->entries)
          if (e.value == v || e.key.value == v) return true;
        break;
      case Kind::Set:
        for (const DictKey& k : as<SetValue>(other)->items)
          if (k.value == v) return true;
        break;
      case Kind::Instance:
        for (const auto& [name, value] : as<InstanceValue>(other)->slots)
          if (value == v) return true;
        break;
      case Kind::Cell:
        if (as<CellValue>(other)->contents == v) return true;
        break;
      case Kind::BoundMethod:
        if (as<BoundMethodValue>(other)->self == v) return true;
        break;
      case Kind::Iterator: {
        auto* it = as<IteratorValue>(other);
        if (it->subject == v || it->subjectOf == v || holds(it->inputs, v)) return true;
        break;
      }
      case Kind::Generator: {
        auto* g = as<GeneratorValue>(other);
        if (!g->finished && g->frame && (holds(g->frame->locals, v) || holds(g->frame->stack, v))) return true;
        break;
      }
      default: break;
    }
  }
  return false;
}

void close(Trace& t, GeneratorValue* g) {
  Checkpoint before = t.checkpoint();
  FrameState* frame = t.frame;
  const TracePlace* place = t.place;
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  try {
    closeGenerator(t, g);
  } catch (const Unsupported&) {
    // Left as it is: made real and dropped when the captured code has ended.
    t.rollBack(before);
    t.failedFrame = nullptr;
    t.failedPlace = nullptr;
  } catch (const Raised&) {
    t.rollBack(before);
  }
  t.frame = frame;
  t.place = place;
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

void dropped(Trace& t, Value* v, const FrameState* dyingFrame) {
  if (v->kind == Kind::Generator) {
    auto* g = as<GeneratorValue>(v);
    if (!g->real && mustBeClosed(g) && !isHeld(t, g, dyingFrame, nullptr)) close(t, g);
    // What dies with its frame does so when the captured code has ended.
    if (!dyingFrame && isNeverAwaited(g) && !isHeld(t, g, nullptr, nullptr))
      unsupported(BreakReason::UnsupportedMutation, "dropping a coroutine that was never awaited");
    return;
  }
  if (v->kind != Kind::Iterator || static_cast<HeapValue*>(v)->real) return;
  for (Value* inner : as<IteratorValue>(v)->inputs) {
    auto* g = inner && inner->kind == Kind::Generator ? as<GeneratorValue>(inner) : nullptr;
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

void checkOverwritten(Trace& t, Value* old) {
  if (!old || old->kind == Kind::Tensor) return;
  if (old->kind == Kind::Generator) return checkDropped(t, old);
  auto* heap = old->kind == Kind::Instance || old->kind == Kind::Tuple ? as<HeapValue>(old) : nullptr;
  PyObject* object = isReal(old) ? realObject(old) : heap ? heap->real.get() : nullptr;
  if (PyTypeObject* type = object && old->source ? finalizedType(object) : nullptr)
    unsupported(BreakReason::UnsupportedMutation, std::string("dropping a ") + type->tp_name + ", which may run code when it dies");
}

}  // namespace cdynamo
