// What descriptors give: functions, properties, methods and fields of C types, and those written in Python.
#include "base/lookup.h"
#include "base/ref.h"
// After Python.h, which it does not include.
#include <structmember.h>

#include <cstddef>

#include "cpython/classes.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"

namespace cdynamo {

void checkClassMethod(Trace& t, Value* function) {
  PyTypeObject* type = t.typeOf(function);
  if (!type->tp_call) unsupported(BreakReason::UnsupportedDescriptor, "a classmethod around something that cannot be called");
  if (type->tp_descr_get && type != &PyFunction_Type && type != &PyMethod_Type)
    unsupported(BreakReason::UnsupportedDescriptor, std::string("a classmethod around a descriptor of type ") + type->tp_name);
}

void propertyError(Trace& t, PyObject* property, PyTypeObject* type, const char* part) {
  PyObject* name = propertyName(property);
  ObjectRef shown = name ? checked(PyObject_Repr(name)) : nullptr;
  ObjectRef owner = checked(PyObject_Repr(checked(PyType_GetQualName(type)).get()));
  raise(t, PyExc_AttributeError, "property " + (shown ? textOf(shown.get()) + " " : "") + "of " + textOf(owner.get()) + " object has no " + part);
}

PyObject* slotName(Trace& t, PyObject* descriptor, Value* instance) {
  auto* d = reinterpret_cast<PyDescrObject*>(descriptor);
  PyTypeObject* type = t.typeOf(instance);
  if (!PyType_IsSubtype(type, d->d_type))
    raise(t, PyExc_TypeError,
          "descriptor '" + textOf(d->d_name) + "' for '" + d->d_type->tp_name + "' objects doesn't apply to a '" + type->tp_name + "' object");
  PyObject* found = typeLookup(type, d->d_name);
  if (found == descriptor) return d->d_name;
  const bool isNew = instance->kind == Kind::Instance && !as<InstanceValue>(instance)->real;
  if (!isNew || (found && Py_TYPE(found) == &PyMemberDescr_Type))
    unsupported(BreakReason::UnsupportedDescriptor, "'" + textOf(d->d_name) + "' of a class, which a subclass defines anew");
  return d->d_name;
}

namespace {

// gi_running, cr_code, ...: where a generator of the trace stands. Null: only CPython can tell.
Value* generatorPart(Trace& t, GeneratorValue* g, const std::string& name) {
  if (g->real || name.size() < 4 || name[2] != '_') return nullptr;
  const std::string what = name.substr(3);
  if (what == "running") return t.boolean(g->running);
  if (what == "suspended") return t.boolean(g->started && !g->running && !g->finished);
  if (what == "code") return t.realShared(reinterpret_cast<PyObject*>(g->frame->code->pyCode()));
  return what == "frame" && g->finished ? t.none() : nullptr;
}

}  // namespace

Value* proxyOf(Trace& t, Value* mapping) {
  InstanceValue* proxy = makeInstance(t, reinterpret_cast<PyTypeObject*>(importedObject("cdynamo._stand_ins", "mappingproxy")));
  t.dictSet(t.dictOf(proxy), t.keyOf(t.realShared(interned("_mapping"))), mapping);
  return proxy;
}

Value* bindDescriptor(Trace& t, PyObject* d, Value* instance, PyTypeObject* owner, PyObject* name) {
  PyTypeObject* kind = Py_TYPE(d);
  if (kind == &PyFunction_Type) {
    Value* fn = pinnedValue(t, d);
    return instance ? static_cast<Value*>(t.make<BoundMethodValue>(fn, instance)) : fn;
  }
  if (kind == &PyStaticMethod_Type || kind == &PyClassMethod_Type) {
    ObjectRef inner = checked(PyObject_GetAttrString(d, "__func__"));
    Value* fn = pinnedValue(t, inner.get());
    if (kind == &PyStaticMethod_Type) return fn;
    checkClassMethod(t, fn);
    Value* self = instance && instance->kind == Kind::Real && PyType_Check(realObject(instance)) && owner == Py_TYPE(realObject(instance))
                      ? instance
                      : pinnedValue(t, reinterpret_cast<PyObject*>(owner));
    return t.make<BoundMethodValue>(fn, self);
  }
  if (kind == &PyProperty_Type) {
    if (!instance) return pinnedValue(t, d);
    ObjectRef getter = checked(PyObject_GetAttrString(d, "fget"));
    if (getter.get() == Py_None) propertyError(t, d, t.typeOf(instance), "getter");
    return call1(t, pinnedValue(t, getter.get()), instance);
  }
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type) {
    if (kind == &PyClassMethodDescr_Type) return t.make<BoundMethodValue>(t.realShared(d), pinnedValue(t, reinterpret_cast<PyObject*>(owner)));
    if (!instance) return t.realShared(d);
    return t.make<BoundMethodValue>(t.realShared(d), instance);
  }
  if (kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type) {
    if (!instance) return t.realShared(d);
    name = slotName(t, d, instance);
    static PyObject* plainClass = typeLookup(&PyBaseObject_Type, interned("__class__"));
    if (d == plainClass) return typeValue(t, instance);
    if (instance->kind == Kind::Instance) {
      auto* i = as<InstanceValue>(instance);
      std::string attribute = textOf(name);
      if (attribute == "__dict__") return t.dictOf(i);
      if (attribute == "__class__") return typeValue(t, instance);
      for (auto& [slot, v] : i->slots)
        if (slot.get() == name) return v;
      // real, imag, numerator: of the plain value.
      if (i->core && reinterpret_cast<PyDescrObject*>(d)->d_type == coreType(i->type)) return getAttrOrNull(t, i->core, name);
      if (!i->real) {
        if (i->exceptionArgs) {
          if (attribute == "args") return i->exceptionArgs;
          if (attribute == "__traceback__") return t.tracebackOf(instance);
          if (attribute == "__cause__" || attribute == "__context__") return t.none();
          if (attribute == "__suppress_context__") return t.boolean(false);
          auto* args = asTuple(i->exceptionArgs);
          size_t given = args ? args->items.size() : 0;
          if (attribute == "value") return given ? args->items[0] : t.none();
          if (attribute == "code") return !given ? t.none() : given == 1 ? args->items[0] : static_cast<Value*>(args);
          if (PyType_IsSubtype(i->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup)) && given == 2) {
            if (attribute == "message") return args->items[0];
            if (attribute == "exceptions") {
              Value* members = t.tuple(itemsOf(t, args->items[1]));
              setSlot(t, i, name, members);
              return members;
            }
          }
          if (Value* field = exceptionField(t, i, reinterpret_cast<PyDescrObject*>(d)->d_type, attribute)) return field;
        }
        if (kind == &PyMemberDescr_Type || i->exceptionArgs) return nullptr;
        // What the trace made has no weak reference yet: making one breaks.
        if (attribute == "__weakref__" && !i->isReferenced) return t.none();
        unsupported(BreakReason::UnsupportedAttribute, "attribute '" + attribute + "' of a new " + owner->tp_name + " object");
      }
      ObjectRef held = ObjectRef::steal(PyObject_GetAttr(i->real.get(), name));
      if (!held) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) raiseCurrent(t);
        PyErr_Clear();
        if (i->source) t.facts.lacksAttr(i->source, name);
        return nullptr;
      }
      if (!i->source) return t.real(std::move(held));
      return t.wrap(held.get(), t.sources.attr(i->source, name));
    }
    if (isReal(instance)) {
      if (PyTraceBack_Check(realObject(instance))) {
        if (textOf(name) == "tb_frame") unsupported(BreakReason::ExceptionTraceback, "the frame of a traceback");
        if (const Trace::TracebackEntry* entry = t.asTraceback(instance); entry && textOf(name) == "tb_next") return entry->next;
      }
      if (PyExceptionInstance_Check(realObject(instance)) && textOf(name) == "__traceback__") return t.tracebackOf(instance);
      if (PyExceptionInstance_Check(realObject(instance)) && !instance->source)
        if (Value* v = t.dictGetName(t.exceptionAttributes(realObject(instance)), name)) return v;
      ObjectRef held = ObjectRef::steal(PyObject_GetAttr(realObject(instance), name));
      if (!held) raiseCurrent(t);
      // Made for the one who reads it, who may change it.
      if (!instance->source && Py_REFCNT(held.get()) == 1 && (PyDict_CheckExact(held.get()) || PyList_CheckExact(held.get())))
        unsupported(BreakReason::UnsupportedAttribute, "attribute '" + textOf(name) + "' of " + describe(instance));
      if (!instance->source) return t.real(std::move(held));
      return t.wrap(held.get(), t.sources.attr(instance->source, name));
    }
    if (textOf(name) == "__class__") return typeValue(t, instance);
    if (instance->kind == Kind::Generator)
      if (Value* part = generatorPart(t, as<GeneratorValue>(instance), textOf(name))) return part;
    if (instance->kind == Kind::DictView && textOf(name) == "mapping") return proxyOf(t, as<DictViewValue>(instance)->owner);
    if (instance->kind == Kind::List && textOf(name) == "maxlen") {
      auto* deque = as<ListValue>(instance);
      t.load(deque);
      return deque->maxlen < 0 ? t.none() : t.integer(deque->maxlen);
    }
    if (instance->kind == Kind::Dict && textOf(name) == "default_factory") return defaultFactory(t, as<DictValue>(instance));
    if (instance->kind == Kind::Dict && textOf(name) == "__dict__")
      if (DictValue* attributes = t.dictOf(as<DictValue>(instance))) return attributes;
    if (instance->kind == Kind::Tuple && kind == &PyMemberDescr_Type && PyType_IsSubtype(owner, &PyTuple_Type)) {
      // A field of a struct sequence is an item of the tuple.
      auto* tuple = as<TupleValue>(instance);
      t.load(tuple);
      size_t at =
          (static_cast<size_t>(reinterpret_cast<PyMemberDescrObject*>(d)->d_member->offset) - offsetof(PyTupleObject, ob_item)) / sizeof(PyObject*);
      if (at < tuple->items.size()) return tuple->items[at];
      // Beyond the items: readable by name only, and None in one that was made of its items.
      if (!tuple->real) return t.none();
      ObjectRef held = checked(PyObject_GetAttr(tuple->real.get(), name));
      return tuple->source ? t.wrap(held.get(), t.sources.attr(tuple->source, name)) : t.real(std::move(held));
    }
    unsupported(BreakReason::UnsupportedAttribute, "attribute '" + textOf(name) + "' of a " + owner->tp_name + " object");
  }
  if (Value* v = bindKnownDescriptor(t, d, instance)) return v;
  if (kind == &PySuper_Type) {
    // One that was made without an object is bound to the instance.
    ObjectRef bound = checked(PyObject_GenericGetAttr(d, interned("__self_class__"))),
              of = checked(PyObject_GenericGetAttr(d, interned("__thisclass__")));
    if (!instance || bound.get() != Py_None) return pinnedValue(t, d);
    return call(t, t.realShared(reinterpret_cast<PyObject*>(&PySuper_Type)), {{pinnedValue(t, of.get()), instance}, {}});
  }
  // A descriptor written in Python: its __get__ is a function on its type.
  PyObject* getter = lookUp(t, kind, interned("__get__"));
  if (getter && PyFunction_Check(getter)) {
    Value* self = pinnedValue(t, d);
    return call(t, pinnedValue(t, getter), {{self, instance ? instance : t.none(), pinnedValue(t, reinterpret_cast<PyObject*>(owner))}, {}});
  }
  if (getter) unsupported(BreakReason::UnsupportedDescriptor, "the descriptor '" + textOf(name) + "' of type " + kind->tp_name);
  return pinnedValue(t, d);
}

}  // namespace cdynamo
