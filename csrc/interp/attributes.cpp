// Attribute access by CPython's lookup rules: type, MRO, descriptors, instance dictionary, __getattr__.
#include "base/ref.h"
// After Python.h, which it does not include.
#include <structmember.h>

#include <cstddef>
#include <cstring>

#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/protocol.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

PyObject* interned(const char* text) {
  static std::unordered_map<std::string, PyObject*> table;
  PyObject*& name = table[text];
  if (!name) name = PyUnicode_InternFromString(text);
  return name;
}

std::string textOf(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) PyErr_Clear();
  return text ? text : "?";
}

bool hasInstanceDict(PyTypeObject* type) { return type->tp_dictoffset != 0 || PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT); }

bool isDataDescriptor(PyObject* d) { return Py_TYPE(d)->tp_descr_set != nullptr; }

}  // namespace

PyObject* lookUp(Trace& t, PyTypeObject* type, PyObject* name) {
  PyObject* found = typeLookup(type, name);
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !t.localClass(type)) t.facts.typeLookup(type, name, found);
  return found;
}

namespace {

void setSlot(Trace& t, InstanceValue* i, PyObject* name, Value* value) {
  t.touch(i);
  t.journal.onRollback([i, old = i->slots] { i->slots = old; });
  for (auto& [slot, v] : i->slots)
    if (slot.get() == name) {
      v = value;
      return;
    }
  i->slots.emplace_back(ObjectRef::share(name), value);
}

}  // namespace

Value* pinnedValue(Trace& t, PyObject* object) { return t.wrap(object, t.sources.pinned(object)); }

void checkClassMethod(Trace& t, Value* function) {
  PyTypeObject* type = t.typeOf(function);
  if (type->tp_descr_get && type != &PyFunction_Type && type != &PyMethod_Type)
    unsupported(BreakReason::UnsupportedDescriptor, std::string("a classmethod around a descriptor of type ") + type->tp_name);
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
    if (getter.get() == Py_None) raise(t, PyExc_AttributeError, "property '" + textOf(name) + "' of '" + owner->tp_name + "' object has no getter");
    return call1(t, pinnedValue(t, getter.get()), instance);
  }
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type) {
    if (kind == &PyClassMethodDescr_Type) return t.make<BoundMethodValue>(t.realShared(d), pinnedValue(t, reinterpret_cast<PyObject*>(owner)));
    if (!instance) return t.realShared(d);
    return t.make<BoundMethodValue>(t.realShared(d), instance);
  }
  if (kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type) {
    if (!instance) return t.realShared(d);
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
        }
        return nullptr;
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
      if (PyTraceBack_Check(realObject(instance))) unsupported(BreakReason::ExceptionTraceback, "an attribute of a traceback");
      if (PyExceptionInstance_Check(realObject(instance)) && textOf(name) == "__traceback__") return t.tracebackOf(instance);
      if (PyExceptionInstance_Check(realObject(instance)) && !instance->source)
        if (Value* v = t.dictGetName(t.exceptionAttributes(realObject(instance)), name)) return v;
      ObjectRef held = ObjectRef::steal(PyObject_GetAttr(realObject(instance), name));
      if (!held) raiseCurrent(t);
      if (!instance->source) return t.real(std::move(held));
      return t.wrap(held.get(), t.sources.attr(instance->source, name));
    }
    if (textOf(name) == "__class__") return typeValue(t, instance);
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
  if (Value* v = bindKnownDescriptor(t, d, instance, owner, name)) return v;
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

// ---- reading ---------------------------------------------------------------------------------------------------------

Value* getTypeAttr(Trace& t, PyTypeObject* type, PyObject* name) {
  PyTypeObject* meta = Py_TYPE(type);
  PyObject* onMeta = lookUp(t, meta, name);
  Value* self = pinnedValue(t, reinterpret_cast<PyObject*>(type));
  if (onMeta && isDataDescriptor(onMeta) && Py_TYPE(onMeta)->tp_descr_get) {
    std::string attribute = textOf(name);
    if (Py_TYPE(onMeta) == &PyGetSetDescr_Type || Py_TYPE(onMeta) == &PyMemberDescr_Type) {
      ObjectRef held = ObjectRef::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
      if (!held) raiseCurrent(t);
      // __dict__, __mro__, __name__, ...: read as they are now; the type's version stands for them.
      if (attribute == "__dict__") return t.real(std::move(held));
      if (t.localClass(type)) {
        if (!PyTuple_CheckExact(held.get())) return t.real(std::move(held));
        std::vector<Value*> items;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(held.get()); i++) items.push_back(pinnedValue(t, PyTuple_GET_ITEM(held.get(), i)));
        return t.tuple(std::move(items));
      }
      return t.wrap(held.get(), t.sources.attr(t.sources.pinned(reinterpret_cast<PyObject*>(type)), name));
    }
    return bindDescriptor(t, onMeta, self, meta, name);
  }
  PyObject* found = lookUp(t, type, name);
  if (found) {
    // The model's own object, which the program may write to.
    static PyObject* fieldType = importedObject("_collections", "_tuplegetter");
    if (reinterpret_cast<PyObject*>(Py_TYPE(found)) == fieldType && t.localClass(type))
      unsupported(BreakReason::UnsupportedDescriptor, "field '" + textOf(name) + "' of a named tuple made in the function");
    if (Py_TYPE(found)->tp_descr_get) return bindDescriptor(t, found, nullptr, type, name);
    return pinnedValue(t, found);
  }
  if (onMeta) return bindDescriptor(t, onMeta, self, meta, name);
  return nullptr;
}

namespace {

Value* instanceDictGet(Trace& t, Value* object, PyObject* name) {
  switch (object->kind) {
    case Kind::Instance: {
      auto* i = as<InstanceValue>(object);
      if (!hasInstanceDict(i->type)) return nullptr;
      DictValue* d = t.dictOf(i);
      return d ? t.dictGetName(d, name) : nullptr;
    }
    case Kind::Dict: {
      DictValue* d = t.dictOf(as<DictValue>(object));
      return d ? t.dictGetName(d, name) : nullptr;
    }
    case Kind::Function: {
      auto* fn = as<FunctionValue>(object);
      return fn->dict ? t.dictGetName(fn->dict, name) : nullptr;
    }
    case Kind::Real: {
      PyObject* real = instanceDict(realObject(object));
      if (!real) return nullptr;
      if (!object->source) {
        if (PyExceptionInstance_Check(realObject(object)))
          if (Value* v = t.dictGetName(t.exceptionAttributes(realObject(object)), name)) return v;
        PyObject* held = PyDict_GetItemWithError(real, name);
        return held ? t.realShared(held) : nullptr;
      }
      Value* d = t.wrap(real, t.sources.instanceDict(object->source));
      return t.dictGetName(as<DictValue>(d), name);
    }
    case Kind::Tensor: {
      auto* tensor = as<TensorValue>(object);
      for (auto& [key, v] : tensor->attrs)
        if (key.get() == name) return v;
      if (!tensor->real || !tensor->source) return nullptr;
      PyObject* real = instanceDict(tensor->real);
      if (!real) return nullptr;
      Value* d = t.wrap(real, t.sources.instanceDict(tensor->source));
      return t.dictGetName(as<DictValue>(d), name);
    }
    default: return nullptr;
  }
}

}  // namespace

Value* genericGetAttr(Trace& t, Value* object, PyTypeObject* type, PyObject* name) {
  PyObject* d = lookUp(t, type, name);
  if (d && isDataDescriptor(d) && Py_TYPE(d)->tp_descr_get) {
    if (Value* v = bindDescriptor(t, d, object, type, name)) return v;
    if (Py_TYPE(d) == &PyGetSetDescr_Type || Py_TYPE(d) == &PyMemberDescr_Type) return nullptr;
  }
  if (Value* v = instanceDictGet(t, object, name)) return v;
  if (!d) return nullptr;
  if (Py_TYPE(d)->tp_descr_get) return bindDescriptor(t, d, object, type, name);
  return pinnedValue(t, d);
}

namespace {

Value* moduleAttr(Trace& t, Value* module, PyObject* name) {
  PyObject* object = realObject(module);
  PyObject* dict = PyModule_GetDict(object);
  const Source* source = module->source ? module->source : t.sources.pinned(object);
  if (source->kind != SourceKind::Pinned) t.facts.identityIs(source, object);
  PyObject* onDemand = PyDict_GetItemString(dict, "_lazy_modules");  // of torch
  bool lazy = onDemand && PyAnySet_Check(onDemand) && PySet_Contains(onDemand, name) == 1;
  // A namespace of torch.ops puts what it finds into its own dictionary, as an import does: before anything is said about that.
  if (PyDict_Contains(dict, name) == 0 && (lazy || (typeLookup(Py_TYPE(object), interned("__getattr__")) && !isConfigModule(object)))) {
    ObjectRef loaded = ObjectRef::steal(PyObject_GetAttr(object, name));
    if (!loaded) PyErr_Clear();
  }
  // The module's dictionary is the module's for its whole life.
  Value* d = t.wrap(dict, t.sources.pinned(dict));
  if (Value* v = t.dictGetName(as<DictValue>(d), name)) return v;
  PyObject* generic = typeLookup(Py_TYPE(object), name);
  if (generic) {
    // Made, and kept, when it is first read.
    if (textOf(name) == "__annotations__") unsupported(BreakReason::UnsupportedAttribute, "the annotations of a module that has none yet");
    ObjectRef held = native(t, PyObject_GetAttr(object, name));
    return t.real(std::move(held));
  }
  if (isConfigModule(object)) return configAttr(t, object, name);
  Value* hook = t.dictGetName(as<DictValue>(d), interned("__getattr__"));
  if (hook && !lazy) return call1(t, hook, t.realShared(name));
  if (lazy || typeLookup(Py_TYPE(object), interned("__getattr__"))) {
    // A lazy module (torch.ops, packages that import on demand): loaded for real, as the program would.
    ObjectRef held = ObjectRef::steal(PyObject_GetAttr(object, name));
    if (!held) {
      if (!PyErr_ExceptionMatches(PyExc_AttributeError)) raiseCurrent(t);
      PyErr_Clear();
      return nullptr;
    }
    PyObject* now = PyDict_GetItemWithError(dict, name);
    if (now == held.get()) return t.wrap(now, t.sources.dictItem(t.sources.pinned(dict), name));
    return pinnedValue(t, held.get());
  }
  return nullptr;
}

Value* superAttr(Trace& t, SuperValue* super, PyObject* name) {
  std::string attribute = textOf(name);
  auto own = [&]() -> Value* {
    if (attribute == "__thisclass__") return pinnedValue(t, reinterpret_cast<PyObject*>(super->thisClass));
    if (attribute == "__self__") return super->self ? super->self : t.none();
    if (attribute == "__self_class__") return super->self ? pinnedValue(t, reinterpret_cast<PyObject*>(super->startType)) : t.none();
    PyObject* d = typeLookup(&PySuper_Type, name);
    return d ? bindDescriptor(t, d, super, &PySuper_Type, name) : nullptr;
  };
  if (attribute == "__class__") return t.realShared(reinterpret_cast<PyObject*>(&PySuper_Type));
  if (!super->self) return own();
  PyObject* mro = super->startType->tp_mro;
  Py_ssize_t n = PyTuple_GET_SIZE(mro), i = 0;
  while (i < n && PyTuple_GET_ITEM(mro, i) != reinterpret_cast<PyObject*>(super->thisClass)) i++;
  for (i++; i < n; i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    PyObject* found = PyDict_GetItemWithError(typeDict(base), name);
    if (!found) continue;
    // The MRO and this base's own entry are what the answer rests on.
    lookUp(t, super->startType, interned("__mro_entries__"));
    lookUp(t, base, name);
    bool onClass =
        isReal(super->self) && PyType_Check(realObject(super->self)) && realObject(super->self) == reinterpret_cast<PyObject*>(super->startType);
    if (!Py_TYPE(found)->tp_descr_get) return pinnedValue(t, found);
    return bindDescriptor(t, found, onClass ? nullptr : super->self, super->startType, name);
  }
  return own();
}

// The symbolic form of a real super object.
SuperValue* superValue(Trace& t, Value* object) {
  PyObject* real = realObject(object);
  auto part = [&](const char* attribute) {
    ObjectRef held = checked(PyObject_GenericGetAttr(real, interned(attribute)));
    return object->source ? t.wrap(held.get(), t.sources.attr(object->source, interned(attribute))) : t.real(std::move(held));
  };
  t.typeOf(object);
  auto* thisClass = reinterpret_cast<PyTypeObject*>(t.identity(part("__thisclass__")));
  Value* start = part("__self_class__");
  if (isReal(start, Py_None)) return t.make<SuperValue>(thisClass, nullptr, nullptr);
  return t.make<SuperValue>(thisClass, part("__self__"), reinterpret_cast<PyTypeObject*>(t.identity(start)));
}

Value* functionAttr(Trace& t, FunctionValue* fn, PyObject* name) {
  std::string attribute = textOf(name);
  auto* code = reinterpret_cast<PyCodeObject*>(fn->code);
  if (fn->dict)
    if (Value* v = t.dictGetName(fn->dict, name)) return v;
  if (attribute == "__name__") return t.realShared(code->co_name);
  if (attribute == "__qualname__") return t.realShared(code->co_qualname);
  if (attribute == "__code__") return t.realShared(fn->code);
  if (attribute == "__defaults__") return fn->defaults ? fn->defaults : t.none();
  if (attribute == "__kwdefaults__") return fn->kwdefaults ? fn->kwdefaults : t.none();
  if (attribute == "__closure__") return fn->closure ? fn->closure : t.none();
  if (attribute == "__annotations__") {
    if (fn->annotations && fn->annotations->kind == Kind::Dict) return fn->annotations;
    // As the compiler leaves them: name, value, name, value.
    DictValue* notes = t.dict();
    auto flat = fn->annotations ? itemsOf(t, fn->annotations) : std::vector<Value*>{};
    for (size_t i = 0; i + 1 < flat.size(); i += 2) t.dictSet(notes, t.keyOf(flat[i]), flat[i + 1]);
    t.journal.set(fn->annotations, static_cast<Value*>(notes));
    return notes;
  }
  if (attribute == "__module__") {
    PyObject* module = PyDict_GetItemString(fn->globals, "__name__");
    return module ? t.realShared(module) : t.none();
  }
  if (attribute == "__doc__") {
    PyObject* doc = PyTuple_GET_SIZE(code->co_consts) ? PyTuple_GET_ITEM(code->co_consts, 0) : Py_None;
    return t.realShared(PyUnicode_Check(doc) ? doc : Py_None);
  }
  if (attribute == "__dict__") {
    if (!fn->dict) t.journal.set(fn->dict, t.dict());
    return fn->dict;
  }
  if (attribute == "__globals__") return t.wrap(fn->globals, t.sources.pinned(fn->globals));
  if (attribute == "__class__") return t.realShared(reinterpret_cast<PyObject*>(&PyFunction_Type));
  if (attribute == "__get__") return t.make<BoundMethodValue>(t.realShared(typeLookup(&PyFunction_Type, name)), fn);
  if (attribute == "__call__") return fn;
  return nullptr;
}

// The part of getattr that __getattribute__ stands for; null where it would raise AttributeError.
Value* attributeOf(Trace& t, Value* object, PyObject* name) {
  switch (object->kind) {
    case Kind::Tensor: {
      auto* tensor = as<TensorValue>(object);
      if (isOverridden(t, CallArgs{{tensor}, {}}))
        if (Value* v = overriddenAttr(t, tensor, name)) return v;
      bool own = tensor->type == tensorType() || typeLookup(tensor->type, name) == typeLookup(tensorType(), name);
      if (Value* v = own ? tensorAttr(t, tensor, name) : nullptr) return v;
      return genericGetAttr(t, object, t.typeOf(object), name);
    }
    case Kind::Super: {
      auto* s = as<SuperValue>(object);
      return superAttr(t, s, name);
    }
    case Kind::Function: return functionAttr(t, as<FunctionValue>(object), name);
    case Kind::BoundMethod: {
      auto* m = as<BoundMethodValue>(object);
      std::string attribute = textOf(name);
      if (attribute == "__self__") return m->self;
      if (attribute == "__func__") return m->function;
      if (attribute == "__class__") return t.realShared(reinterpret_cast<PyObject*>(&PyMethod_Type));
      return getAttrOrNull(t, m->function, name);
    }
    case Kind::Slice: {
      auto* s = as<SliceValue>(object);
      std::string attribute = textOf(name);
      if (attribute == "start") return s->start;
      if (attribute == "stop") return s->stop;
      if (attribute == "step") return s->step;
      return genericGetAttr(t, object, &PySlice_Type, name);
    }
    case Kind::Cell: {
      if (textOf(name) == "cell_contents") {
        Value* v = t.cellContents(as<CellValue>(object));
        if (!v) raise(t, PyExc_ValueError, "Cell is empty");
        return v;
      }
      return nullptr;
    }
    case Kind::Property: {
      auto* p = as<PropertyValue>(object);
      std::string attribute = textOf(name);
      if (attribute == "fget" || attribute == "__func__" || attribute == "__wrapped__") return p->get;
      if (attribute == "fset") return p->set ? p->set : t.none();
      if (attribute == "fdel") return p->del ? p->del : t.none();
      if (attribute == "__doc__" && p->type == &PyProperty_Type) return p->doc ? p->doc : getAttr(t, p->get, name);
      if (attribute == "__isabstractmethod__") {
        for (Value* part : {p->get, p->set, p->del})
          if (Value* flag = part ? getAttrOrNull(t, part, name) : nullptr; flag && truth(t, flag)) return t.boolean(true);
        return t.boolean(false);
      }
      PyObject* d = typeLookup(p->type, name);
      if (d && (Py_TYPE(d) == &PyMethodDescr_Type || Py_TYPE(d) == &PyWrapperDescr_Type)) return t.make<BoundMethodValue>(t.realShared(d), p);
      if (p->type != &PyProperty_Type) return getAttrOrNull(t, p->get, name);
      return nullptr;
    }
    case Kind::Real: {
      PyObject* real = realObject(object);
      if (PyType_Check(real)) {
        auto* type = reinterpret_cast<PyTypeObject*>(t.identity(object));
        return getTypeAttr(t, type, name);
      }
      if (PyModule_Check(real)) return moduleAttr(t, object, name);
      if (PyMethod_Check(real)) {
        if (typeLookup(&PyMethod_Type, name)) return genericGetAttr(t, object, t.typeOf(object), name);
        static PyObject* func = PyUnicode_InternFromString("__func__");
        return getAttrOrNull(t, bindDescriptor(t, typeLookup(&PyMethod_Type, func), object, t.typeOf(object), func), name);
      }
      PyTypeObject* type = t.typeOf(object);
      if (type == &PySuper_Type) return superAttr(t, superValue(t, object), name);
      if (PyFunction_Check(real) || type->tp_getattro == PyObject_GenericGetAttr || type->tp_getattro == nullptr)
        return genericGetAttr(t, object, type, name);
      // C types with their own attribute code: an answer that is C data can still be read.
      if (!object->source || isOpaqueReadable(real)) {
        ObjectRef held = ObjectRef::steal(PyObject_GetAttr(real, name));
        if (!held) {
          if (!PyErr_ExceptionMatches(PyExc_AttributeError)) raiseCurrent(t);
          PyErr_Clear();
          return nullptr;
        }
        if (!object->source) return t.real(std::move(held));
        t.identity(object);
        return t.real(std::move(held));
      }
      unsupported(BreakReason::UnsupportedAttribute, std::string("attribute '") + textOf(name) + "' of a " + type->tp_name + " object");
    }
    case Kind::Array: return arrayAttr(t, as<ArrayValue>(object), name);
    case Kind::Number: unsupported(BreakReason::NumberValue, "attribute '" + textOf(name) + "' of " + describe(object));
    default: return genericGetAttr(t, object, t.typeOf(object), name);
  }
}

}  // namespace

void attributeError(Trace& t, Value* object, PyObject* name) {
  std::string text;
  if (isReal(object) && PyType_Check(realObject(object)))
    text = std::string("type object '") + reinterpret_cast<PyTypeObject*>(realObject(object))->tp_name + "' has no attribute '" + textOf(name) + "'";
  else if (isReal(object) && PyModule_Check(realObject(object))) {
    ObjectRef module = ObjectRef::steal(PyModule_GetNameObject(realObject(object)));
    PyErr_Clear();
    text = "module '" + (module ? textOf(module.get()) : "?") + "' has no attribute '" + textOf(name) + "'";
  } else
    text = std::string("'") + t.typeOf(object)->tp_name + "' object has no attribute '" + textOf(name) + "'";
  ObjectRef args = checked(Py_BuildValue("(s)", text.c_str())), keywords = checked(Py_BuildValue("{s:O}", "name", name));
  Value* error = t.real(checked(PyObject_Call(PyExc_AttributeError, args.get(), keywords.get())));
  t.dictSet(t.exceptionAttributes(realObject(error)), t.keyOf(t.realShared(interned("obj"))), object);
  throw Raised{error};
}

namespace {

// getattr(object, name): null where it raises AttributeError, which is then left in `error` if code of the program raised it.
Value* tryGetAttr(Trace& t, Value* object, PyObject* name, Value*& error) {
  auto attempt = [&](auto&& read) -> Value* {
    try {
      return read();
    } catch (Raised& raised) {
      if (!PyType_IsSubtype(t.typeOf(raised.exception), reinterpret_cast<PyTypeObject*>(PyExc_AttributeError))) throw;
      error = raised.exception;
      t.failedPlace = nullptr;
      return nullptr;
    }
  };
  bool isClass = isReal(object) && PyType_Check(realObject(object)) && Py_TYPE(realObject(object)) != &PyType_Type;
  if (object->kind != Kind::Instance && !isClass) return attempt([&] { return attributeOf(t, object, name); });
  if (isClass) t.identity(object);
  PyTypeObject* type = t.typeOf(object);
  static PyObject* getattributeName = PyUnicode_InternFromString("__getattribute__");
  static PyObject* getattrName = PyUnicode_InternFromString("__getattr__");
  static PyObject* objectGetattribute = typeLookup(&PyBaseObject_Type, getattributeName);
  PyObject* custom = lookUp(t, type, getattributeName);
  bool generic = custom == objectGetattribute || (custom && Py_TYPE(custom) == &PyWrapperDescr_Type);
  Value* found = attempt([&] {
    return generic && isClass ? attributeOf(t, object, name)
           : generic          ? genericGetAttr(t, object, type, name)
                              : call(t, bindDescriptor(t, custom, object, type, getattributeName), {{t.realShared(name)}, {}});
  });
  if (found) return found;
  PyObject* hook = lookUp(t, type, getattrName);
  if (!hook) return nullptr;
  error = nullptr;
  if (bool known = false; isClass)
    return attempt([&] { return call1(t, bindDescriptor(t, hook, object, type, getattrName), t.realShared(name)); });
  else if (Value* v = moduleGetAttr(t, hook, as<InstanceValue>(object), name, known))
    return v;
  else if (known)
    return nullptr;
  return attempt([&] { return call1(t, bindDescriptor(t, hook, object, type, getattrName), t.realShared(name)); });
}

}  // namespace

Value* getAttrOrNull(Trace& t, Value* object, PyObject* name) {
  Value* error = nullptr;
  return tryGetAttr(t, object, name, error);
}

Value* getAttr(Trace& t, Value* object, PyObject* name) {
  Value* error = nullptr;
  Value* v = tryGetAttr(t, object, name, error);
  if (!v && error) throw Raised{error};
  if (!v) attributeError(t, object, name);
  return v;
}

Value* getAttr(Trace& t, Value* object, const char* name) { return getAttr(t, object, interned(name)); }

Value* specialMethod(Trace& t, Value* object, const char* name) {
  PyObject* attribute = interned(name);
  PyTypeObject* type = t.typeOf(object);
  PyObject* d = lookUp(t, type, attribute);
  if (!d) return nullptr;
  if (!Py_TYPE(d)->tp_descr_get) return pinnedValue(t, d);
  return bindDescriptor(t, d, object, type, attribute);
}

Value* pythonMethod(Trace& t, Value* object, const char* name) {
  if (object->kind != Kind::Instance) return nullptr;
  PyObject* attribute = interned(name);
  PyTypeObject* type = as<InstanceValue>(object)->type;
  PyObject* d = typeLookup(type, attribute);
  if (!d || !PyFunction_Check(d)) return nullptr;
  return bindDescriptor(t, lookUp(t, t.typeOf(object), attribute), object, type, attribute);
}

// ---- writing ---------------------------------------------------------------------------------------------------------

namespace {

// What calls of the function read. False for all other attributes.
bool setFunctionField(Trace& t, FunctionValue* fn, const std::string& name, Value* value) {
  bool none = !value || isReal(value, Py_None);
  if (name == "__defaults__" || name == "__kwdefaults__") {
    bool positional = name == "__defaults__";
    if (!none && !(positional ? static_cast<Value*>(asTuple(value)) : asDict(value)) && !(isReal(value) && PyTuple_Check(realObject(value))))
      raise(t, PyExc_TypeError, name + " must be set to a " + (positional ? "tuple" : "dict") + " object");
    t.journal.set(positional ? fn->defaults : fn->kwdefaults, none ? nullptr : value);
    return true;
  }
  if (name == "__annotations__") {
    t.journal.set(fn->annotations, none ? nullptr : value);
    return true;
  }
  if (name == "__code__" || name == "__closure__" || name == "__globals__" || name == "__builtins__")
    unsupported(BreakReason::AttributeWrite, "setting '" + name + "' of a function");
  return false;
}

// An attribute of a real object that the trace does not model otherwise. False: it cannot be followed.
bool setRealAttr(Trace& t, Value* object, PyObject* name, Value* value) {
  PyObject* real = realObject(object);
  PyTypeObject* type = t.typeOf(object);
  bool exception = PyExceptionInstance_Check(real);
  if (!exception && !PyFunction_Check(real)) return false;
  PyObject* d = lookUp(t, type, name);
  DictValue* attributes = nullptr;
  if (exception && !object->source) {
    if (textOf(name) == "args" || !value) return false;
    if (textOf(name) == "__cause__") setRealAttr(t, object, interned("__suppress_context__"), t.boolean(true));
    attributes = t.exceptionAttributes(real);
  } else {
    if (d && isDataDescriptor(d)) return false;
    PyObject* dict = object->source ? instanceDict(real) : nullptr;
    if (!dict) return false;
    attributes = as<DictValue>(t.wrap(dict, t.sources.instanceDict(object->source)));
  }
  DictKey key = t.keyOf(t.realShared(name));
  if (value)
    t.dictSet(attributes, key, value);
  else if (!t.dictDelete(attributes, key))
    raise(t, PyExc_AttributeError, std::string("'") + type->tp_name + "' object has no attribute '" + textOf(name) + "'");
  return true;
}

}  // namespace

namespace {

// A descriptor whose __set__ or __delete__ is Python code.
bool pythonSetter(PyObject* d) {
  for (const char* name : {"__set__", "__delete__"})
    if (PyObject* found = typeLookup(Py_TYPE(d), interned(name)); found && PyFunction_Check(found)) return true;
  return false;
}

// Sets __class__ or __dict__ of an instance that the trace made. False: it cannot be followed.
bool replacePart(Trace& t, InstanceValue* i, PyObject* name, Value* value) {
  std::string attribute = textOf(name);
  if (attribute == "__dict__") {
    DictValue* d = value->kind == Kind::Dict ? as<DictValue>(value) : nullptr;
    if (!d) raise(t, PyExc_TypeError, std::string("__dict__ must be set to a dictionary, not a '") + t.typeOf(value)->tp_name + "'");
    if (d->real || d->instance || d->type != &PyDict_Type || i->type->tp_dictoffset == 0) return false;
    if (i->dict) t.journal.set(i->dict->instance, nullptr);
    t.journal.set(d->instance, i);
    t.journal.set(i->dict, d);
    return true;
  }
  if (attribute != "__class__" || i->contents || i->exceptionArgs || i->lateText || i->type->tp_new != PyBaseObject_Type.tp_new) return false;
  // CPython says whether the two classes are alike enough.
  PyObject* type = isReal(value) ? t.identity(value) : Py_None;
  if (!PyType_Check(type)) raise(t, PyExc_TypeError, std::string("__class__ must be set to a class, not '") + t.typeOf(value)->tp_name + "' object");
  ObjectRef nothing = checked(PyTuple_New(0));
  ObjectRef blank = checked(PyBaseObject_Type.tp_new(i->type, nothing.get(), nullptr));
  if (PyObject_GenericSetAttr(blank.get(), name, type) < 0) raiseCurrent(t);
  auto* to = reinterpret_cast<PyTypeObject*>(type);
  if (lookUp(t, to, interned("__del__"))) unsupported(BreakReason::FinalizerClass, std::string("making a ") + to->tp_name + ", which has a __del__");
  t.keep(ObjectRef::share(type));
  t.journal.set(i->type, to);
  t.writes++;
  return true;
}

// What the setters of BaseException's parts refuse.
void checkExceptionPart(Trace& t, const std::string& name, Value* value) {
  bool cause = name == "__cause__";
  if (!cause && name != "__context__" && name != "args") return;
  if (!value) raise(t, PyExc_TypeError, name + " may not be deleted");
  if (name == "args" || isReal(value, Py_None) || PyType_FastSubclass(t.typeOf(value), Py_TPFLAGS_BASE_EXC_SUBCLASS)) return;
  raise(t, PyExc_TypeError, std::string("exception ") + (cause ? "cause" : "context") + " must be None or derive from BaseException");
}

}  // namespace

void genericSetAttr(Trace& t, Value* object, PyObject* name, Value* value) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  if (PyType_FastSubclass(t.typeOf(object), Py_TPFLAGS_BASE_EXC_SUBCLASS) && !object->source && textOf(name) == "__traceback__") {
    if (!value) raise(t, PyExc_TypeError, "__traceback__ may not be deleted");
    if (t.setTraceback(object, value)) return;
    if (t.typeOf(value) != &PyTraceBack_Type) raise(t, PyExc_TypeError, "__traceback__ must be a traceback or None");
    unsupported(BreakReason::ExceptionTraceback, "setting the traceback of an exception");
  }
  if (PyType_FastSubclass(t.typeOf(object), Py_TPFLAGS_BASE_EXC_SUBCLASS)) checkExceptionPart(t, textOf(name), value);
  if (object->kind != Kind::Instance) {
    if (object->kind == Kind::Function) {
      auto* fn = as<FunctionValue>(object);
      if (setFunctionField(t, fn, textOf(name), value)) return;
      if (!fn->dict) t.journal.set(fn->dict, t.dict());
      if (value)
        t.dictSet(fn->dict, t.keyOf(t.realShared(name)), value);
      else if (!t.dictDelete(fn->dict, t.keyOf(t.realShared(name))))
        attributeError(t, object, name);
      return;
    }
    if (isReal(object) && PyType_Check(realObject(object)) && t.localClass(realObject(object)))
      return setClassAttr(t, reinterpret_cast<PyTypeObject*>(realObject(object)), name, value);
    if (isReal(object) && setRealAttr(t, object, name, value)) return;
    if (object->kind == Kind::Tuple || object->kind == Kind::List || object->kind == Kind::Dict || object->kind == Kind::Set) {
      // No room for attributes: CPython says so in the words of the type.
      PyTypeObject* type = t.typeOf(object);
      PyObject* d = lookUp(t, type, name);
      if (type->tp_dictoffset == 0 && type->tp_setattro == PyObject_GenericSetAttr &&
          !(d && PyType_HasFeature(Py_TYPE(d), Py_TPFLAGS_HEAPTYPE) && pythonSetter(d))) {
        ObjectRef nothing = checked(PyTuple_New(0));
        ObjectRef blank =
            checked(type->tp_new == PyTuple_Type.tp_new || object->kind == Kind::Tuple ? PyTuple_Type.tp_new(type, nothing.get(), nullptr)
                                                                                       : type->tp_new(type, nothing.get(), nullptr));
        if (PyObject_GenericSetAttr(blank.get(), name, value ? Py_None : nullptr) < 0) raiseCurrent(t);
      }
    }
    if (DictValue* attributes = object->kind == Kind::Dict ? t.dictOf(as<DictValue>(object)) : nullptr)
      if (PyObject* d = lookUp(t, t.typeOf(object), name); !d || !isDataDescriptor(d)) {
        DictKey key = t.keyOf(t.realShared(name));
        if (value) return t.dictSet(attributes, key, value);
        if (!t.dictDelete(attributes, key)) attributeError(t, object, name);
        return;
      }
    unsupported(BreakReason::AttributeWrite, "setting attribute '" + textOf(name) + "' on " + describe(object));
  }
  auto* i = as<InstanceValue>(object);
  PyTypeObject* type = t.typeOf(object);
  PyObject* d = lookUp(t, type, name);
  if (d && isDataDescriptor(d)) {
    if (Py_TYPE(d) == &PyMemberDescr_Type && (reinterpret_cast<PyMemberDescrObject*>(d)->d_member->flags & READONLY))
      raise(t, PyExc_AttributeError, "readonly attribute");
    if (Py_TYPE(d) == &PyProperty_Type) {
      ObjectRef setter = checked(PyObject_GetAttrString(d, value ? "fset" : "fdel"));
      if (setter.get() == Py_None)
        raise(t, PyExc_AttributeError, "property '" + textOf(name) + "' of '" + type->tp_name + "' object has no " + (value ? "setter" : "deleter"));
      CallArgs args{{object}, {}};
      if (value) args.args.push_back(value);
      t.tail = tail;
      call(t, pinnedValue(t, setter.get()), std::move(args));
      return;
    }
    if (Py_TYPE(d) == &PyMemberDescr_Type || (Py_TYPE(d) == &PyGetSetDescr_Type && PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS))) {
      if (i->exceptionArgs && textOf(name) == "args" && value) value = t.tuple(itemsOf(t, value));
      if (i->exceptionArgs && textOf(name) == "args") t.journal.set(i->exceptionArgs, value);
      if (i->exceptionArgs && textOf(name) == "__cause__") setSlot(t, i, interned("__suppress_context__"), t.boolean(true));
      if (!value && !bindDescriptor(t, d, object, type, name)) raise(t, PyExc_AttributeError, textOf(name));
      return setSlot(t, i, name, value);
    }
    if (Py_TYPE(d) == &PyGetSetDescr_Type && !i->real && value && replacePart(t, i, name, value)) return;
    PyObject* setter = lookUp(t, Py_TYPE(d), interned(value ? "__set__" : "__delete__"));
    if (setter && PyFunction_Check(setter)) {
      CallArgs args{{pinnedValue(t, d), object}, {}};
      if (value) args.args.push_back(value);
      t.tail = tail;
      call(t, pinnedValue(t, setter), std::move(args));
      return;
    }
    unsupported(BreakReason::AttributeWrite, "setting '" + textOf(name) + "' of a " + type->tp_name + " object");
  }
  DictValue* dict = hasInstanceDict(i->type) ? t.dictOf(i) : nullptr;
  if (!dict) raise(t, PyExc_AttributeError, std::string("'") + type->tp_name + "' object has no attribute '" + textOf(name) + "'");
  if (value) {
    t.dictSet(dict, t.keyOf(t.realShared(name)), value);
  } else if (!t.dictDelete(dict, t.keyOf(t.realShared(name)))) {
    raise(t, PyExc_AttributeError, std::string("'") + type->tp_name + "' object has no attribute '" + textOf(name) + "'");
  }
}

namespace {

// A C type's own __setattr__ or __delattr__, and not another of its methods under that name (__setattr__ = dict.__setitem__).
bool isAttributeSlot(PyObject* wrapper) {
  PyObject* name = reinterpret_cast<PyDescrObject*>(wrapper)->d_name;
  return name == interned("__setattr__") || name == interned("__delattr__");
}

// The __setattr__ / __delattr__ of the type, or null where it is object's.
Value* customSetter(Trace& t, Value* object, const char* which) {
  PyTypeObject* type = t.typeOf(object);
  PyObject* d = lookUp(t, type, interned(which));
  if (!d || (Py_TYPE(d) == &PyWrapperDescr_Type && isAttributeSlot(d))) return nullptr;
  return bindDescriptor(t, d, object, type, interned(which));
}

}  // namespace

void setAttr(Trace& t, Value* object, PyObject* name, Value* value) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  if (object->kind == Kind::Tensor) return setTensorAttr(t, as<TensorValue>(object), name, value);
  if (isReal(object) && PyModule_Check(realObject(object))) {
    PyObject* dict = PyModule_GetDict(realObject(object));
    t.identity(object);
    if (isConfigModule(realObject(object))) return setConfigAttr(t, realObject(object), name, value);
    if (Value* setter = customSetter(t, object, "__setattr__")) {
      t.tail = tail;
      call(t, setter, {{t.realShared(name), value}, {}});
      return;
    }
    Value* d = t.wrap(dict, t.sources.pinned(dict));
    return t.dictSet(as<DictValue>(d), t.keyOf(t.realShared(name)), value);
  }
  if (object->kind == Kind::Instance) {
    if (Value* setter = customSetter(t, object, "__setattr__")) {
      t.tail = tail;
      call(t, setter, {{t.realShared(name), value}, {}});
      return;
    }
  }
  t.tail = tail;
  genericSetAttr(t, object, name, value);
}

void delAttr(Trace& t, Value* object, PyObject* name) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  if (object->kind == Kind::Instance) {
    if (Value* setter = customSetter(t, object, "__delattr__")) {
      t.tail = tail;
      call(t, setter, {{t.realShared(name)}, {}});
      return;
    }
  }
  t.tail = tail;
  genericSetAttr(t, object, name, nullptr);
}

}  // namespace cdynamo
