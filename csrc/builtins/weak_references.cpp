// weakref: references to existing objects, and what they point to.
#include <algorithm>

#include "base/lookup.h"
#include "builtins/table.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/lifetimes.h"
#include "interp/references.h"
#include "interp/stand_ins.h"

namespace cdynamo {

namespace {

// What a reference that the trace made points to; null where v is none.
Value* madeReferent(Value* v) {
  auto* i = v->kind == Kind::Instance && as<InstanceValue>(v)->type == &_PyWeakref_RefType ? as<InstanceValue>(v) : nullptr;
  return i && i->lateText ? i->lateText->args.at(0) : nullptr;
}

// An object of the trace: CPython has one reference without a callback for it.
Value* referenceTo(Trace& t, InstanceValue* object) {
  if (object->isReferenced)
    for (const auto& owned : t.arena())
      if (madeReferent(owned.get()) == object) return owned.get();
  auto* made = t.make<InstanceValue>();
  made->type = &_PyWeakref_RefType;
  made->lateText = std::make_unique<LateCall>(LateCall{reinterpret_cast<PyObject*>(&_PyWeakref_RefType), {object}, {}});
  object->isReferenced = true;
  return made;
}

// Whether a frame has the object itself: it lives.
bool isAlive(const Trace& t, const Value* object) {
  for (const FrameState* f = t.frame; f; f = f->parent) {
    auto has = [&](const std::vector<Value*>& values) {
      return std::any_of(values.begin(), values.end(),
                         [&](Value* v) { return v == object || (v && v->kind == Kind::Cell && as<CellValue>(v)->contents == object); });
    };
    if (has(f->locals) || has(f->stack)) return true;
  }
  return false;
}

// weakref.ref(object) of an object that exists: made when it leaves the frame. CPython has one such reference for an object; one is made
// now too, so that the program cannot drop the object unseen.
Value* makeReference(Trace& t, CallArgs& a) {
  Value* v = a.args.size() == 1 && a.kwargs.empty() ? a.args[0] : nullptr;
  if (v && !PyType_SUPPORTS_WEAKREFS(shownType(t, v)))
    raise(t, PyExc_TypeError, std::string("cannot create weak reference to '") + shownType(t, v)->tp_name + "' object");
  if (v && v->kind == Kind::Instance && !v->source && !as<InstanceValue>(v)->real) return referenceTo(t, as<InstanceValue>(v));
  auto* heap = dynamic_cast<HeapValue*>(v);
  PyObject* object = heap && heap->source ? heap->real.get() : nullptr;
  if (!object) unsupported(BreakReason::ObjectConstruction, "making a weak reference to an object that is not known before, or with a callback");
  t.typeOf(v);
  PyObject* reference = t.keep(native(t, PyWeakref_NewRef(object, nullptr)));
  if (auto known = t.models.find(reference); known != t.models.end()) return known->second;
  auto* made = t.make<InstanceValue>();
  made->type = &_PyWeakref_RefType;
  made->lateText = std::make_unique<LateCall>(LateCall{reinterpret_cast<PyObject*>(&_PyWeakref_RefType), {v}, {}});
  return t.models[reference] = made;
}

// reference()
Value* weakReferent(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* v = a.args[0];
  if (Value* object = madeReferent(v)) {
    if (!object->source && !isAlive(t, object)) unsupported(BreakReason::UnknownFunction, "calling a weak reference to an object that may have died");
    return object;
  }
  auto* heap = dynamic_cast<HeapValue*>(v);
  PyObject* reference = isReal(v) ? realObject(v) : heap ? heap->real.get() : nullptr;
  if (!reference || !PyWeakref_CheckRef(reference) || !v->source) unsupported(BreakReason::UnknownFunction, "calling a weak reference");
  t.typeOf(v);
  ObjectRef object = ObjectRef::share(PyWeakref_GET_OBJECT(reference));
  HeapValue* twin = t.knownTwin(object.get());
  if (twin && twin->source && isVariable(twin->source) && !isReachable(t, twin))
    unsupported(BreakReason::UnsupportedMutation, "calling a weak reference to an object that the program has let go of");
  return t.wrap(t.keep(object), t.sources.weakReferent(v->source));
}

}  // namespace

bool isSameReference(Trace& t, Value* a, Value* b, bool& known) {
  Value *ofA = madeReferent(a), *ofB = madeReferent(b);
  known = !ofA != !ofB;
  if (!known) return false;
  auto* object = static_cast<HeapValue*>(ofA ? ofA : ofB);
  Value* other = ofA ? b : a;
  auto* heap = dynamic_cast<HeapValue*>(other);
  PyObject* reference = isReal(other) ? t.identity(other) : heap ? heap->real.get() : nullptr;
  if (!reference || !PyWeakref_CheckRefExact(reference)) return false;
  if (heap && heap->source) t.facts.identityIs(heap->source, reference);
  t.facts.identityIs(object->source, object->real.get());
  return checked(PyWeakref_NewRef(object->real.get(), nullptr)).get() == reference;
}

void addWeakReferences(BuiltinTable& table) {
  table.add("weakref.ref", makeReference);
  table.addType(&_PyWeakref_RefType, "__call__", weakReferent);
}

}  // namespace cdynamo
