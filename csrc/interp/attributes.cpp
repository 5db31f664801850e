// Reading attributes by CPython's lookup rules: type, MRO, descriptors, instance dictionary, __getattr__.
#include "base/lookup.h"
#include "cpython/compat.h"
#include "interp/arrays.h"
#include "interp/attribute_parts.h"
#include "interp/class_attributes.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/stand_ins.h"
#include "interp/torch_function.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

PyObject* interned(const char* text) {
  static std::unordered_map<std::string, PyObject*> table;
  PyObject*& name = table[text];
  if (!name) name = checked(PyUnicode_InternFromString(text)).release();
  return name;
}

std::string textOf(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) PyErr_Clear();
  return text ? text : "?";
}

PyObject* lookUp(Trace& t, PyTypeObject* type, PyObject* name) {
  PyObject* found = typeLookup(type, name);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || t.localClass(type)) return found;
  if (writtenClassAttr(t, type, name))
    unsupported(BreakReason::UnsupportedAttribute, "attribute '" + textOf(name) + "' of a class, which the program has set");
  if (const Source* source = changingClassAttr(t, type, name, found))
    t.facts.typeIs(source, Py_TYPE(found));
  else
    t.facts.typeLookup(type, name, found);
  return found;
}

namespace {

void guardMro(Trace& t, PyTypeObject* type) {
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !t.localClass(type)) t.facts.mro(type);
}

}  // namespace

bool isSubtype(Trace& t, PyTypeObject* type, PyTypeObject* base) {
  if (type == base || base == &PyBaseObject_Type) return true;
  guardMro(t, type);
  return PyType_IsSubtype(type, base) != 0;
}

namespace {

// What lookUp has found and is no descriptor.
Value* heldByClass(Trace& t, PyTypeObject* type, PyObject* name, PyObject* found) {
  bool plain = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !t.localClass(type);
  const Source* source = plain ? changingClassAttr(t, type, name, found) : nullptr;
  return source ? t.wrap(found, source) : pinnedValue(t, found);
}

}  // namespace

Value* pinnedValue(Trace& t, PyObject* object) { return t.wrap(object, t.sources.pinned(object)); }

Value* getTypeAttr(Trace& t, PyTypeObject* type, PyObject* name) {
  PyTypeObject* meta = Py_TYPE(type);
  PyObject* onMeta = lookUp(t, meta, name);
  Value* self = pinnedValue(t, reinterpret_cast<PyObject*>(type));
  if (onMeta && isDataDescriptor(onMeta) && Py_TYPE(onMeta)->tp_descr_get) {
    std::string attribute = textOf(name);
    if (Py_TYPE(onMeta) == &PyGetSetDescr_Type || Py_TYPE(onMeta) == &PyMemberDescr_Type) {
      if (attribute == "__annotations__" && t.localClass(type)) {
        // A class that has none gets them here.
        if (!PyDict_GetItemWithError(typeDict(type), name)) setClassAttr(t, type, name, t.dict());
        return pinnedValue(t, PyDict_GetItemWithError(typeDict(type), name));
      }
      if (attribute == "__dict__" && !t.localClass(type)) {
        // A proxy of the dict of an existing class: what is read of it is guarded as with any dict.
        return proxyOf(t, classDict(t, type));
      }
      ObjectRef held = ObjectRef::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
      if (!held) raiseCurrent(t);
      // __dict__, __mro__, __name__, ...: read as they are now; the type's version stands for them.
      if (attribute == "__dict__") return t.real(std::move(held));
      if (attribute == "__flags__") {
        // One of them is CPython's own, which it changes as it likes; whether the class is abstract is what a program can change.
        lookUp(t, type, interned("__abstractmethods__"));
        return t.real(std::move(held));
      }
      if (t.localClass(type)) {
        if (!PyTuple_CheckExact(held.get())) return t.real(std::move(held));
        std::vector<Value*> items;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(held.get()); i++) items.push_back(pinnedValue(t, PyTuple_GET_ITEM(held.get(), i)));
        return t.tuple(std::move(items));
      }
      // dict.__doc__: a new text for each who asks, and always the same one.
      if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && PyUnicode_CheckExact(held.get()) && Py_REFCNT(held.get()) == 1)
        return t.real(std::move(held));
      return t.wrap(held.get(), t.sources.attr(t.sources.pinned(reinterpret_cast<PyObject*>(type)), name));
    }
    return bindDescriptor(t, onMeta, self, meta, name);
  }
  if (Value* written = writtenClassAttr(t, type, name)) return written;
  PyObject* found = lookUp(t, type, name);
  if (found) {
    // The model's own object, which the program may write to.
    static PyObject* fieldType = importedObject("_collections", "_tuplegetter");
    if (reinterpret_cast<PyObject*>(Py_TYPE(found)) == fieldType && t.localClass(type))
      unsupported(BreakReason::UnsupportedDescriptor, "field '" + textOf(name) + "' of a named tuple made in the function");
    if (Py_TYPE(found)->tp_descr_get) return bindDescriptor(t, found, nullptr, type, name);
    return heldByClass(t, type, name, found);
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
  if (Value* written = writtenClassAttr(t, type, name)) {
    Value* own = instanceDictGet(t, object, name);
    return own ? own : written;
  }
  PyObject* d = lookUp(t, type, name);
  if (d && isDataDescriptor(d) && Py_TYPE(d)->tp_descr_get) {
    if (Value* v = bindDescriptor(t, d, object, type, name)) return v;
    if (Py_TYPE(d) == &PyGetSetDescr_Type || Py_TYPE(d) == &PyMemberDescr_Type) return nullptr;
  }
  if (Value* v = instanceDictGet(t, object, name)) return v;
  if (!d) return nullptr;
  if (Py_TYPE(d)->tp_descr_get) return bindDescriptor(t, d, object, type, name);
  return heldByClass(t, type, name, d);
}

namespace {

Value* moduleAttr(Trace& t, Value* module, PyObject* name) {
  PyObject* object = realObject(module);
  PyObject* dict = PyModule_GetDict(object);
  PyObject* read = lookUp(t, Py_TYPE(object), interned("__getattribute__"));
  if (read && Py_TYPE(read) != &PyWrapperDescr_Type)
    return call1(t, bindDescriptor(t, read, module, Py_TYPE(object), interned("__getattribute__")), t.realShared(name));
  if (!dict) unsupported(BreakReason::UnsupportedAttribute, "a module that is not initialised");
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
  PyObject* onType = lookUp(t, Py_TYPE(object), name);
  static PyObject* ownDict = typeLookup(&PyModule_Type, interned("__dict__"));
  if (onType == ownDict && onType) return d;
  if (onType && isDataDescriptor(onType) && textOf(name) != "__annotations__") return bindDescriptor(t, onType, module, Py_TYPE(object), name);
  if (Value* v = t.dictGetName(as<DictValue>(d), name)) return v;
  if (onType) {
    // Made, and kept, when it is first read.
    if (textOf(name) == "__annotations__") unsupported(BreakReason::UnsupportedAttribute, "the annotations of a module that has none yet");
    return Py_TYPE(onType)->tp_descr_get ? bindDescriptor(t, onType, module, Py_TYPE(object), name) : pinnedValue(t, onType);
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
  guardMro(t, super->startType);
  PyObject* mro = super->startType->tp_mro;
  Py_ssize_t n = PyTuple_GET_SIZE(mro), i = 0;
  while (i < n && PyTuple_GET_ITEM(mro, i) != reinterpret_cast<PyObject*>(super->thisClass)) i++;
  for (i++; i < n; i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    PyObject* found = PyDict_GetItemWithError(typeDict(base), name);
    if (!found) continue;
    // The MRO and this base's own entry are what the answer rests on.
    lookUp(t, base, name);
    bool onClass =
        isReal(super->self) && PyType_Check(realObject(super->self)) && realObject(super->self) == reinterpret_cast<PyObject*>(super->startType);
    if (!Py_TYPE(found)->tp_descr_get) return heldByClass(t, base, name, found);
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

}  // namespace

bool isFunctionName(const std::string& attribute) {
  static const bool hasTypeParams = typeLookup(&PyFunction_Type, interned("__type_params__")) != nullptr;
  return attribute == "__name__" || attribute == "__qualname__" || attribute == "__module__" || attribute == "__doc__" ||
         (hasTypeParams && attribute == "__type_params__");
}

namespace {

Value* functionAttr(Trace& t, FunctionValue* fn, PyObject* name) {
  std::string attribute = textOf(name);
  auto* code = reinterpret_cast<PyCodeObject*>(fn->code);
  if (fn->names)
    if (Value* v = t.dictGetName(fn->names, name)) return v;
  if (fn->dict && !isFunctionName(attribute))
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
  if (isFunctionName(attribute)) return t.tuple({});  // __type_params__
  PyObject* d = typeLookup(&PyFunction_Type, name);
  return d ? bindDescriptor(t, d, fn, &PyFunction_Type, name) : nullptr;
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
      if (attribute == "__call__") return m;
      PyObject* own = typeLookup(&PyMethod_Type, name);
      if (own && (Py_TYPE(own) == &PyWrapperDescr_Type || Py_TYPE(own) == &PyMethodDescr_Type)) return t.make<BoundMethodValue>(t.realShared(own), m);
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
      if (p->type == &PyProperty_Type) return nullptr;
      // Copied from what they are made of.
      if (attribute == "__dict__") unsupported(BreakReason::UnsupportedAttribute, std::string("the attributes of a ") + p->type->tp_name);
      for (const char* copied : {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__"})
        if (attribute == copied) return getAttrOrNull(t, p->get, name);
      return instanceDictGet(t, p->get, name);
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
      if (DictValue* attributes = threadDict(t, object)) {
        if (lookUp(t, type, name))
          unsupported(BreakReason::UnsupportedAttribute, std::string("attribute '") + textOf(name) + "' of a threading.local");
        return t.dictGetName(attributes, name);
      }
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
    PyObject* dict = PyModule_GetDict(realObject(object));
    Value* held = dict ? t.dictGetName(as<DictValue>(t.wrap(dict, t.sources.pinned(dict))), interned("__name__")) : nullptr;
    PyObject* module = held ? t.constant(held) : nullptr;
    text = (module && PyUnicode_Check(module) ? "module '" + textOf(module) + "'" : "module") + " has no attribute '" + textOf(name) + "'";
  } else
    text = std::string("'") + shownType(t, object)->tp_name + "' object has no attribute '" + textOf(name) + "'";
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
      if (!isA(t, raised.exception, PyExc_AttributeError)) throw;
      error = raised.exception;
      t.failedPlace = nullptr;
      return nullptr;
    }
  };
  bool isClass = isReal(object) && PyType_Check(realObject(object)) && Py_TYPE(realObject(object)) != &PyType_Type;
  if (object->kind != Kind::Instance && !isClass) return attempt([&] { return attributeOf(t, object, name); });
  if (isClass) t.identity(object);
  if (PyTypeObject* other = standsFor(object); other && isSeenByProgram(t)) {
    bool known = false;
    Value* v = standInAttr(t, object, other, name, known);
    if (known) return v;
  }
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
  if (!v && error) {
    noteAttribute(t, error, object, name);
    throw Raised{error};
  }
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

}  // namespace cdynamo
