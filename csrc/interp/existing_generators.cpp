// Generators that existed before the trace: their frames are read where they stand, and put back where the trace leaves them.
#include "cpython/generators.h"
#include "cpython/iterators.h"
#include "emit/resume.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

[[noreturn]] void refuse(Trace& t, GeneratorValue* g, const char* why) {
  bool loop = t.frame && t.frame->code->at(t.frame->ip).op == Op::ForIter;
  unsupported(loop ? BreakReason::UnsupportedNext : BreakReason::ForeignGenerator, "the next item of " + describe(g) + why);
}

void load(Trace& t, GeneratorValue* g) {
  t.typeOf(g);
  PyObject* real = g->real.get();
  GeneratorFrame at;
  if (!readGenerator(real, &at)) refuse(t, g, " that runs or has ended");
  int64_t traits = iteratorTraits(real);
  // Where the last capture was for another state, this one leaves the generator to CPython: what it holds changes from turn to turn.
  if (t.options.openNames && t.options.openNames->count(t.sources.name(g->source))) refuse(t, g, " whose state differs from call to call");
  const Code& code = decode(at.code);
  // Those of parameters() and the like hold sets and names that are others in every turn.
  if (isLibraryCode(code)) refuse(t, g, " of torch itself");
  InstrIndex index = code.indexOf(UnitOffset{at.unit}.bytes());
  if (traits < 0 || index < 0 || !hasPlainYields(code) || code.at(index).op != (at.started ? Op::YieldValue : Op::ReturnGenerator))
    refuse(t, g, " in the middle of a call's arguments");
  if (at.stackDepth != (at.started ? code.depthAt(index) - 1 : 0)) refuse(t, g, " in the middle of a call's arguments");
  t.facts.identityIs(t.sources.iteratorPart(g->source, kGeneratorCode), reinterpret_cast<PyObject*>(at.code));
  t.facts.iteratorTraits(g->source, traits);
  auto part = [&](PyObject* object, int number) { return object ? t.wrap(object, t.sources.iteratorPart(g->source, number)) : nullptr; };
  FrameState* f = newFrame(t, code, t.realShared(at.function), at.globals, nullptr);
  t.keep(ObjectRef::share(at.code));
  for (int i = 0; i < at.slotCount; i++) f->locals[static_cast<size_t>(i)] = part(at.slots[i], i);
  for (int i = 0; i < at.stackDepth; i++) f->push(at.stack[i] ? part(at.stack[i], at.slotCount + i) : t.unbound());
  f->ip = index;
  f->nextIp = at.started ? index + 1 : index;
  f->generator = g;
  f->place->line = code.lineOf(index);
  t.journal.set(g->frame, f);
  t.journal.set(g->started, at.started != 0);
  t.journal.set(g->handled, part(at.handled, kGeneratorHandled));
}

}  // namespace

Value* stopIterationWith(Trace& t, Value* result) {
  if (!result || isReal(result, Py_None)) return t.real(checked(PyObject_CallNoArgs(PyExc_StopIteration)));
  InstanceValue* e = makeInstance(t, reinterpret_cast<PyTypeObject*>(PyExc_StopIteration));
  e->exceptionArgs = t.tuple({result});
  return e;
}

FrameState& frameOf(Trace& t, GeneratorValue* g) {
  if (!g->frame) load(t, g);
  return *g->frame;
}

}  // namespace cdynamo
