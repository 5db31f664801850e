// Generators: a synthetic function whose code is the generator's own, entered where it stands.
#include <map>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "emit/generator_code.h"
#include "emit/generator_helpers.h"
#include "emit/rebuild.h"
#include "interp/frame.h"
#include "interp/protocol.h"

namespace cdynamo {

void Rebuilder::makeFreshGenerator(GeneratorValue* g) {
  const FrameState& f = *g->frame;
  const Code& code = *f.code;
  if (g->type == &_PyAsyncGenASend_Type || g->type == &_PyAsyncGenAThrow_Type) {
    // Polyfills: drive_async_generator(generator, sent, thrown), async_generator_close(generator).
    load(f.locals[0]);
    a.loadMethod(g->type == &_PyAsyncGenASend_Type ? "asend" : code.argcount() == 1 ? "aclose" : "athrow");
    if (code.argcount() > 1) load(f.locals[g->type == &_PyAsyncGenASend_Type ? 1 : 2]);
    a.call(code.argcount() > 1 ? 1 : 0);
    return storeTemp(g);
  }
  auto positional = static_cast<size_t>(code.argcount()), named = static_cast<size_t>(code.kwOnlyCount());
  load(g->function);
  bool plain = named == 0 && !code.hasVarArgs() && !code.hasVarKeywords();
  for (size_t i = 0; i < positional; i++) load(f.locals[i]);
  if (plain) {
    a.call(static_cast<int>(positional));
    return storeTemp(g);
  }
  a.buildList(static_cast<int>(positional));
  if (code.hasVarArgs()) {
    load(f.locals[positional + named]);
    a.emit(Op::ListExtend, 1);
  }
  a.emit(Op::ListToTuple);
  for (size_t i = positional; i < positional + named; i++) {
    a.loadConst(code.localName(static_cast<int>(i)));
    load(f.locals[i]);
  }
  a.buildMap(static_cast<int>(named));
  if (code.hasVarKeywords()) {
    fillAll();  // what ** gives must be there
    load(f.locals[positional + named + code.hasVarArgs()]);
    fillAll();
    a.emit(Op::DictMerge, 1);
  }
  a.callFunctionEx(true);
  storeTemp(g);
}

void Rebuilder::makeGenerator(GeneratorValue* g) {
  const FrameState& f = *g->frame;
  if (g->running) {
    // Its frame is carried by itself.
    a.loadConst(runningGeneratorFunction());
    load(g->function);
    a.call(1);
    return storeTemp(g);
  }
  if (!g->started && !g->finished) return makeFreshGenerator(g);
  if (g->type != &PyGen_Type && !(g->finished && g->type == &PyCoro_Type)) refuse(g, ", which has begun");
  const Code& code = *f.code;
  SuspendedGenerator state;
  std::vector<Value*> arguments, cells;
  if (!g->finished) {
    state.at = f.ip;
    for (int slot = 0; slot < code.localsplusCount(); slot++) {
      Value* v = f.locals[static_cast<size_t>(slot)];
      if (code.isCellOrFree(slot)) {
        cells.push_back(v);
        continue;
      }
      state.bound.push_back(v != nullptr);
      if (v) arguments.push_back(v);
    }
    if (Value* self = selfForSuper(f)) {
      state.selfFirst = true;
      arguments.insert(arguments.begin(), self);
    }
    for (Value* v : f.stack) {
      state.stack.push_back(v->kind != Kind::Unbound);
      if (v->kind != Kind::Unbound) arguments.push_back(v);
    }
    state.handling = g->handled != nullptr;
    if (g->handled) arguments.push_back(g->handled);
  }
  Ref<PyCodeObject> entry = generatorCode(code, state, g->finished);
  bool real = isReal(g->function);
  a.loadConst(reinterpret_cast<PyObject*>(&PyFunction_Type));
  a.loadConst(keep(ObjectRef::share(entry.get())));
  a.loadConst(f.globals);
  if (real) {
    load(g->function);
    a.loadAttr("__name__");
  } else {
    a.loadNone();
  }
  a.loadNone();
  if (cells.empty()) {
    a.loadNone();
  } else {
    loadAll(cells);
    a.buildTuple(static_cast<int>(cells.size()));
  }
  a.call(5);
  if (real && PyUnicode_Compare(reinterpret_cast<PyFunctionObject*>(realObject(g->function))->func_qualname, code.qualname()) != 0) {
    a.copyTop();
    load(g->function);
    a.loadAttr("__qualname__");
    a.swap(2);
    a.storeAttr("__qualname__");
  }
  loadAll(arguments);
  a.call(static_cast<int>(arguments.size()));
  advance(1);
  storeTemp(g);
}

std::vector<Value*> Rebuilder::heldBy(const GeneratorValue* g) {
  if (g->running || g->finished || !g->frame) return {};
  std::vector<Value*> held = g->frame->locals;
  held.insert(held.end(), g->frame->stack.begin(), g->frame->stack.end());
  held.push_back(g->handled);
  for (Value*& v : held)
    if (v && v->kind == Kind::Unbound) v = nullptr;
  return held;
}

void Rebuilder::placeExisting(GeneratorValue* g) {
  const bool waits = !g->running && !g->finished;
  a.loadConst(waits ? placeGeneratorFunction() : g->running ? leaveGeneratorFunction() : endGeneratorFunction());
  load(g);
  if (waits) {
    const FrameState& f = *g->frame;
    a.loadConst(number(f.code->at(f.ip).offset.value / 2));
    std::vector<Value*> held = heldBy(g);
    for (Value* v : held) {
      if (v)
        load(v);
      else
        a.loadConst(unboundSlot());
    }
    a.buildTuple(static_cast<int>(held.size()));
  }
  a.call(waits ? 3 : 1);
  a.popTop();
}

// super() without arguments reads the first slot of the frame: where the code may call it and that slot is not a plain
// local, the object must be put there.
Value* Rebuilder::selfForSuper(const FrameState& f) {
  const Code& code = *f.code;
  bool mayCall = false;
  for (int slot = code.firstFree(); slot < code.localsplusCount(); slot++)
    mayCall |= PyUnicode_CompareWithASCIIString(code.localName(slot), "__class__") == 0;
  if (!mayCall || code.argcount() == 0 || code.localKind(0) != Code::LocalKind::ArgCell) return nullptr;
  return f.locals[0] ? t.cellContents(as<CellValue>(f.locals[0])) : nullptr;
}

}  // namespace cdynamo
