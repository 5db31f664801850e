#include "emit/late_calls.h"

#include "base/error.h"

namespace cdynamo {

namespace {

// f(target, args, kwargs), which looks like a frame of the user's function at that line and calls target(*args, **kwargs), or
// inner(target, args, kwargs) where there is an inner frame.
ObjectRef makeFrame(const Effect::Place& place, PyObject* inner) {
  auto* code = reinterpret_cast<PyCodeObject*>(place.code);
  CodeSpec spec;
  spec.name = ObjectRef::share(code->co_name);
  spec.qualname = ObjectRef::share(code->co_qualname);
  spec.filename = ObjectRef::share(code->co_filename);
  spec.firstLine = code->co_firstlineno;
  for (const char* name : {"target", "args", "kwargs"}) spec.addLocal(checked(PyUnicode_InternFromString(name)).get());
  spec.argcount = 3;
  Assembler a(std::move(spec));
  a.setLine(place.line);
  a.prologue();
  if (inner) a.loadConst(inner);
  for (int i = 0; i < 3; i++) a.loadFast(i);
  if (inner)
    a.call(3);
  else
    a.callFunctionEx(true);
  a.returnValue();
  Ref<PyCodeObject> made = a.finish();
  return checked(PyFunction_New(made.object(), place.globals));
}

}  // namespace

void emitLateCall(Assembler& a, const LateCall& call, const LoadValue& load) {
  a.loadConst(call.callable);
  for (Value* v : call.args) load(v);
  if (!call.kwargs.empty() && call.args.size() + call.kwargs.size() > Assembler::kMostArguments) {
    a.buildTuple(static_cast<int>(call.args.size()));
    for (const auto& [name, v] : call.kwargs) {
      a.loadConst(name);
      load(v);
    }
    a.buildMap(static_cast<int>(call.kwargs.size()));
    return a.callFunctionEx(true);
  }
  ObjectRef names = checked(PyTuple_New(static_cast<Py_ssize_t>(call.kwargs.size())));
  for (size_t i = 0; i < call.kwargs.size(); i++) {
    load(call.kwargs[i].second);
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(call.kwargs[i].first).release());
  }
  a.call(static_cast<int>(call.args.size() + call.kwargs.size()), call.kwargs.empty() ? nullptr : names.get());
}

void emitEffect(Assembler& a, const Effect& effect, PyCodeObject* like, const LoadValue& load) {
  const Position before = a.position();
  size_t inner = effect.frames.size();
  if (inner && effect.frames.back().code == reinterpret_cast<PyObject*>(like)) a.setLine(effect.frames[--inner].line);
  if (inner == 0) {
    emitLateCall(a, effect.call, load);
  } else {
    ObjectRef frame;
    for (size_t i = 0; i < inner; i++) frame = makeFrame(effect.frames[i], frame.get());
    a.loadConst(frame.get());
    a.loadConst(effect.call.callable);
    for (Value* v : effect.call.args) load(v);
    a.buildTuple(static_cast<int>(effect.call.args.size()));
    for (auto& [name, v] : effect.call.kwargs) {
      a.loadConst(name);
      load(v);
    }
    a.buildMap(static_cast<int>(effect.call.kwargs.size()));
    a.call(3);
  }
  a.popTop();
  a.setPosition(before);
}

}  // namespace cdynamo
