// Setting and deleting attributes by CPython's rules: __setattr__, data descriptors, slots, the instance dictionary.
#include "base/ref.h"
// After Python.h, which it does not include.
#include <structmember.h>

#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/class_attributes.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/stand_ins.h"

namespace cdynamo {

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

namespace {

bool isMadeClass(Trace& t, Value* v) { return isReal(v) && PyType_Check(realObject(v)) && t.localClass(realObject(v)); }

// Types whose objects have no attributes that could be set.
bool isBarePrimitive(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type || type == &PyBytes_Type ||
         type == &PyComplex_Type || type == Py_TYPE(Py_None);
}

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
  if (isFunctionName(name)) {
    bool text = name == "__name__" || name == "__qualname__";
    if (text && (!value || !PyType_IsSubtype(t.typeOf(value), &PyUnicode_Type))) raise(t, PyExc_TypeError, name + " must be set to a string object");
    if (name == "__type_params__" && (!value || !PyType_FastSubclass(t.typeOf(value), Py_TPFLAGS_TUPLE_SUBCLASS)))
      raise(t, PyExc_TypeError, "__type_params__ must be set to a tuple");
    if (!fn->names) t.journal.set(fn->names, t.dict());
    t.dictSet(fn->names, t.keyOf(t.string(name.c_str())), value ? value : t.none());
    return true;
  }
  if (name == "__code__" || name == "__closure__" || name == "__globals__" || name == "__builtins__")
    unsupported(BreakReason::AttributeWrite, "setting '" + name + "' of a function");
  return false;
}

// An existing function has that name or text already: guarded, and nothing to do.
bool isKept(Trace& t, Value* function, PyObject* name, Value* value) {
  if (!isFunctionName(textOf(name))) return false;
  PyObject* constant = t.constant(value);
  ObjectRef held = checked(PyObject_GetAttr(realObject(function), name));
  if (!constant || !PyUnicode_CheckExact(constant) || !PyUnicode_CheckExact(held.get()) || PyUnicode_Compare(held.get(), constant) != 0) return false;
  t.facts.equalsConstant(t.sources.attr(t.sources.pinned(t.identity(function)), name), t.keep(std::move(held)));
  return true;
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
    if (d && isDataDescriptor(d)) return value && isKept(t, object, name, value);
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
PyObject* newClass(Trace& t, Value* value) {
  PyObject* type = isReal(value) ? t.identity(value) : Py_None;
  if (!PyType_Check(type)) raise(t, PyExc_TypeError, std::string("__class__ must be set to a class, not '") + t.typeOf(value)->tp_name + "' object");
  return type;
}

// What an object is given to hear why it cannot be set; null: deleted.
PyObject* sampleOf(Trace& t, PyObject* name, Value* value) {
  if (!value) return nullptr;
  return textOf(name) == "__class__" ? newClass(t, value) : Py_None;
}

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
  PyObject* type = newClass(t, value);
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

}  // namespace

void genericSetAttr(Trace& t, Value* object, PyObject* name, Value* value) {
  if (PyTypeObject* other = standsFor(object); other && isSeenByProgram(t))
    unsupported(BreakReason::AttributeWrite, "setting '" + textOf(name) + "' of a " + other->tp_name + " object");
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
    if (object->kind == Kind::Cell && textOf(name) == "cell_contents") return t.setCell(as<CellValue>(object), value);
    if (isMadeClass(t, object)) return setClassAttr(t, reinterpret_cast<PyTypeObject*>(realObject(object)), name, value);
    if (isReal(object) && PyType_Check(realObject(object)) && t.typeOf(object)->tp_setattro == PyType_Type.tp_setattro &&
        setExistingClassAttr(t, reinterpret_cast<PyTypeObject*>(t.identity(object)), name, value))
      return;
    if (isReal(object) && setRealAttr(t, object, name, value)) return;
    if (PyObject* c = isReal(object) ? t.constant(object) : nullptr; c && isBarePrimitive(Py_TYPE(c))) {
      if (PyObject_GenericSetAttr(c, name, sampleOf(t, name, value)) < 0) raiseCurrent(t);
      CD_CHECK(false, "an attribute was set on a constant");
    }
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
        if (PyObject_GenericSetAttr(blank.get(), name, sampleOf(t, name, value)) < 0) raiseCurrent(t);
      }
    }
    if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0)
      unsupported(BreakReason::AttributeWrite, "setting '__dict__' of " + describe(object));
    if (DictValue* attributes = object->kind == Kind::Dict ? t.dictOf(as<DictValue>(object)) : threadDict(t, object))
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
    if (Py_TYPE(d) == &PyMemberDescr_Type || Py_TYPE(d) == &PyGetSetDescr_Type) name = slotName(t, d, object);
    if (Py_TYPE(d) == &PyMemberDescr_Type && (reinterpret_cast<PyMemberDescrObject*>(d)->d_member->flags & READONLY))
      raise(t, PyExc_AttributeError, "readonly attribute");
    if (Py_TYPE(d) == &PyProperty_Type) {
      ObjectRef setter = checked(PyObject_GetAttrString(d, value ? "fset" : "fdel"));
      if (setter.get() == Py_None) propertyError(t, d, type, value ? "setter" : "deleter");
      CallArgs args{{object}, {}};
      if (value) args.args.push_back(value);
      t.tail = tail;
      call(t, pinnedValue(t, setter.get()), std::move(args));
      return;
    }
    bool ofObject = textOf(name) == "__dict__" || textOf(name) == "__class__";
    if (Py_TYPE(d) == &PyMemberDescr_Type ||
        (Py_TYPE(d) == &PyGetSetDescr_Type && PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) && !ofObject)) {
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
  if (!dict)
    raise(t, PyExc_AttributeError,
          std::string("'") + type->tp_name +
              (d ? "' object attribute '" + textOf(name) + "' is read-only" : "' object has no attribute '" + textOf(name) + "'"));
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
    if (PyObject* found = lookUp(t, Py_TYPE(realObject(object)), name); !dict || (found && isDataDescriptor(found)))
      unsupported(BreakReason::AttributeWrite, "setting '" + textOf(name) + "' of a module");
    Value* d = t.wrap(dict, t.sources.pinned(dict));
    return t.dictSet(as<DictValue>(d), t.keyOf(t.realShared(name)), value);
  }
  if (object->kind == Kind::Instance || isMadeClass(t, object)) {
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
  if (object->kind == Kind::Instance || isMadeClass(t, object)) {
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
