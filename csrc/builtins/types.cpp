// type, super, object's own methods, functools.partial.
#include "torch/types.h"

#include <cstring>

#include "base/lookup.h"
#include "base/own_library.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/stand_ins.h"
#include "torch/bridge.h"
#include "values/tuples.h"

namespace cdynamo {

Value* typeValue(Trace& t, Value* v) {
  PyObject* type = reinterpret_cast<PyObject*>(shownType(t, v));
  return t.wrap(type, t.sources.pinned(type));
}

Value* sizeOf(Trace& t, std::vector<Value*> sizes) {
  for (size_t i = 0; i < sizes.size(); i++) {
    if (isNumber(sizes[i]) || t.typeOf(sizes[i]) == &PyLong_Type) continue;
    Value* index = indexValue(t, sizes[i]);
    if (!index)
      raise(t, PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item " + std::to_string(i) + " is '" + t.typeOf(sizes[i])->tp_name + "')");
    sizes[i] = t.typeOf(index) == &PyLong_Type ? index : t.integer(PyLong_AsLongLong(t.constant(index)));
  }
  return t.tuple(std::move(sizes), sizeType());
}

namespace {

Value* builtinType(Trace& t, CallArgs& a) {
  if (a.args.size() == 1 && a.kwargs.empty()) return typeValue(t, a.args[0]);
  if (a.args.size() == 1) raise(t, PyExc_TypeError, "type() takes no keyword arguments");
  if (a.args.size() != 3) raise(t, PyExc_TypeError, "type() takes 1 or 3 arguments");
  return makeClass(t, &PyType_Type, a.args[0], a.args[1], a.args[2], {{}, a.kwargs});
}

// type.__new__(metaclass, name, bases, namespace)
Value* typeNew(Trace& t, CallArgs& a) {
  if (a.args.size() != 4 || !isReal(a.args[0]) || !PyType_Check(realObject(a.args[0])))
    unsupported(BreakReason::ClassStatement, "type.__new__ with other arguments");
  return makeClass(t, reinterpret_cast<PyTypeObject*>(t.identity(a.args[0])), a.args[1], a.args[2], a.args[3], {{}, a.kwargs});
}

// type.__init__(cls, name, bases, namespace): says how it may be called, and does nothing.
Value* typeInit(Trace& t, CallArgs& a) {
  if (a.args.size() == 2 && !a.kwargs.empty()) raise(t, PyExc_TypeError, "type.__init__() takes no keyword arguments");
  if (a.args.size() != 2 && a.args.size() != 4) raise(t, PyExc_TypeError, "type.__init__() takes 1 or 3 arguments");
  return t.none();
}

// As CPython: a setter in C of a base must not pass over that of a C type in between.
void checkSetter(Trace& t, Value* self, setattrofunc setter, const char* what) {
  static const setattrofunc python = reinterpret_cast<PyTypeObject*>(importedObject("enum", "EnumMeta"))->tp_setattro;
  PyTypeObject *type = t.typeOf(self), *defining = type;
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = mro ? PyTuple_GET_SIZE(mro) : 0; i-- > 0;) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    if (base->tp_setattro == python || base->tp_setattro != type->tp_setattro) continue;
    defining = base;
    break;
  }
  for (PyTypeObject* base = defining; base && base->tp_setattro != setter; base = base->tp_base)
    if (base->tp_setattro != python) raise(t, PyExc_TypeError, std::string("can't apply this ") + what + " to " + type->tp_name + " object");
}

// type.__setattr__(cls, name, value) and type.__delattr__(cls, name)
Value* typeSetattr(Trace& t, CallArgs& a) {
  noKeywords(a);
  PyObject* cls = !a.args.empty() && isReal(a.args[0]) ? realObject(a.args[0]) : nullptr;
  PyObject* name = a.args.size() > 1 ? t.constant(a.args[1]) : nullptr;
  if (!cls || !PyType_Check(cls) || !name || !PyUnicode_Check(name)) throw WrongArguments{};
  checkSetter(t, a.args[0], PyType_Type.tp_setattro, a.args.size() > 2 ? "__setattr__" : "__delattr__");
  if (!t.localClass(cls)) unsupported(BreakReason::AttributeWrite, std::string("setting '") + PyUnicode_AsUTF8(name) + "' of a class that exists");
  setClassAttr(t, reinterpret_cast<PyTypeObject*>(cls), name, a.args.size() > 2 ? a.args[2] : nullptr);
  return t.none();
}

Value* builtinSuper(Trace& t, CallArgs& a) {
  if (!a.kwargs.empty()) raise(t, PyExc_TypeError, "super() takes no keyword arguments");
  Value* cls = nullptr;
  Value* self = nullptr;
  if (a.args.empty()) {
    FrameState* f = t.frame;
    const Code& code = *f->code;
    if (code.argcount() == 0) raise(t, PyExc_RuntimeError, "super(): no arguments");
    self = f->locals[0];
    if (self && code.isCellOrFree(0)) self = t.cellContents(as<CellValue>(self));
    if (!self) raise(t, PyExc_RuntimeError, "super(): arg[0] deleted");
    for (int i = code.firstFree(); i < code.localsplusCount(); i++)
      if (PyUnicode_CompareWithASCIIString(code.localName(i), "__class__") == 0) {
        cls = t.cellContents(as<CellValue>(f->locals[static_cast<size_t>(i)]));
        if (!cls) raise(t, PyExc_RuntimeError, "super(): empty __class__ cell");
      }
    if (!cls) raise(t, PyExc_RuntimeError, "super(): __class__ cell not found");
  } else if (a.args.size() == 2) {
    cls = a.args[0];
    self = a.args[1];
  } else if (a.args.size() == 1) {
    cls = a.args[0];
  } else {
    raise(t, PyExc_TypeError, "super() expected at most 2 arguments, got " + std::to_string(a.args.size()));
  }
  if (!isReal(cls) || !PyType_Check(realObject(cls)))
    raise(t, PyExc_TypeError, std::string("super() argument 1 must be a type, not ") + t.typeOf(cls)->tp_name);
  auto* thisClass = reinterpret_cast<PyTypeObject*>(t.identity(cls));
  if (self && standsFor(self)) unsupported(BreakReason::BuiltinCall, "super() of " + describe(self));
  PyTypeObject* start;
  if (!self || isReal(self, Py_None)) return t.make<SuperValue>(thisClass, nullptr, nullptr);
  if (isReal(self) && PyType_Check(realObject(self)) && isSubtype(t, reinterpret_cast<PyTypeObject*>(realObject(self)), thisClass))
    start = reinterpret_cast<PyTypeObject*>(t.identity(self));
  else
    start = t.typeOf(self);
  if (!isSubtype(t, start, thisClass)) raise(t, PyExc_TypeError, "super(type, obj): obj must be an instance or subtype of type");
  return t.make<SuperValue>(thisClass, self, start);
}

// ---- object's methods ------------------------------------------------------------------------------------------------

// tp_new and tp_init are what the lookups of __new__ and __init__ have made of them.
void observeMaking(Trace& t, PyTypeObject* type) {
  for (const char* name : {"__new__", "__init__"}) lookUp(t, type, interned(name));
}

Value* objectInit(Trace& t, CallArgs& a) {
  if (a.args.size() < 2 && a.kwargs.empty()) return t.none();
  PyTypeObject* type = t.typeOf(a.args.at(0));
  observeMaking(t, type);
  if (type->tp_init != PyBaseObject_Type.tp_init)
    raise(t, PyExc_TypeError, "object.__init__() takes exactly one argument (the instance to initialize)");
  if (type->tp_new == PyBaseObject_Type.tp_new)
    raise(t, PyExc_TypeError, std::string(type->tp_name) + ".__init__() takes exactly one argument (the instance to initialize)");
  return t.none();
}

Value* objectNew(Trace& t, CallArgs& a) {
  if (a.args.empty()) raise(t, PyExc_TypeError, "object.__new__(): not enough arguments");
  if (!isReal(a.args[0]) || !PyType_Check(realObject(a.args[0])))
    raise(t, PyExc_TypeError, std::string("object.__new__(X): X is not a type object (") + t.typeOf(a.args[0])->tp_name + ")");
  auto* type = reinterpret_cast<PyTypeObject*>(t.identity(a.args[0]));
  PyTypeObject* solid = type;
  while (solid && PyType_HasFeature(solid, Py_TPFLAGS_HEAPTYPE) && solid->tp_new != PyBaseObject_Type.tp_new) solid = solid->tp_base;
  while (solid && PyType_HasFeature(solid, Py_TPFLAGS_HEAPTYPE)) solid = solid->tp_base;
  if (solid && solid->tp_new != PyBaseObject_Type.tp_new)
    raise(t, PyExc_TypeError, std::string("object.__new__(") + type->tp_name + ") is not safe, use " + solid->tp_name + ".__new__()");
  if (type == &PyBaseObject_Type && a.args.size() == 1 && a.kwargs.empty())
    return t.real(checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type))));
  // More arguments are left to an __init__ of the class, where it has one and no __new__ of its own.
  if (a.args.size() > 1 || !a.kwargs.empty()) {
    observeMaking(t, type);
    if (type->tp_new != PyBaseObject_Type.tp_new) raise(t, PyExc_TypeError, "object.__new__() takes exactly one argument (the type to instantiate)");
    if (type->tp_init == PyBaseObject_Type.tp_init) raise(t, PyExc_TypeError, std::string(type->tp_name) + "() takes no arguments");
  }
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) unsupported(BreakReason::ObjectConstruction, std::string("object.__new__ of ") + type->tp_name);
  return makeInstance(t, type);
}

// What tuple.__new__ and frozenset.__new__ say about arguments: keywords are left to an __init__ of the class.
void checkImmutableArguments(Trace& t, PyTypeObject* type, PyTypeObject* base, const CallArgs& a) {
  static PyObject* initName = PyUnicode_InternFromString("__init__");
  if (!a.kwargs.empty() && lookUp(t, type, initName) == typeLookup(base, initName))
    raise(t, PyExc_TypeError, std::string(base->tp_name) + "() takes no keyword arguments");
  if (a.args.size() > 2)
    raise(t, PyExc_TypeError,
          std::string(base == &PyTuple_Type ? base->tp_name : type->tp_name) + " expected at most 1 argument, got " +
              std::to_string(a.args.size() - 1));
}

// dict.__new__, list.__new__, set.__new__, tuple.__new__ of a Python subclass.
Value* containerNew(Trace& t, CallArgs& a) {
  auto* type = reinterpret_cast<PyTypeObject*>(t.identity(a.args.at(0)));
  if (type == sizeType()) return sizeOf(t, a.args.size() > 1 ? itemsOf(t, a.args[1]) : std::vector<Value*>{});
  if (PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS)) {
    checkImmutableArguments(t, type, &PyTuple_Type, a);
    std::vector<Value*> items = a.args.size() > 1 ? itemsOf(t, a.args[1]) : std::vector<Value*>{};
    static PyObject* fields = PyUnicode_InternFromString("_fields");
    if (type == &PyTuple_Type || (typeLookup(type, fields) && type->tp_dictoffset == 0 && isPlainTuple(type))) return t.tuple(std::move(items), type);
    InstanceValue* i = makeInstance(t, type);
    as<TupleValue>(i->contents)->items = std::move(items);
    return i;
  }
  if (type == &PyDict_Type || type == &PyODict_Type) {
    DictValue* d = t.dict();
    d->type = type;
    return d;
  }
  if (type == &PyList_Type) return t.list({});
  if (PyType_IsSubtype(type, &PyFrozenSet_Type)) checkImmutableArguments(t, type, &PyFrozenSet_Type, a);
  if (type == &PySet_Type || type == &PyFrozenSet_Type) {
    auto* s = t.make<SetValue>();
    s->type = type;
    return s;
  }
  InstanceValue* i = makeInstance(t, type);
  if (PyType_IsSubtype(type, &PyFrozenSet_Type) && a.args.size() > 1)
    for (Value* v : itemsOf(t, a.args[1])) t.setAdd(as<SetValue>(i->contents), t.keyOf(v));
  return i;
}

// int.__new__, str.__new__, ... of a Python subclass: an instance around the plain value.
template <PyTypeObject& base>
Value* coreNew(Trace& t, CallArgs& a) {
  if (a.args.empty() || !isReal(a.args[0]) || !PyType_Check(realObject(a.args[0])))
    raise(t, PyExc_TypeError, std::string(base.tp_name) + ".__new__(X): X is not a type object");
  auto* type = reinterpret_cast<PyTypeObject*>(t.identity(a.args[0]));
  if (!PyType_IsSubtype(type, &base))
    raise(t, PyExc_TypeError,
          std::string(base.tp_name) + ".__new__(" + type->tp_name + "): " + type->tp_name + " is not a subtype of " + base.tp_name);
  if (type != &base && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    raise(t, PyExc_TypeError, std::string(base.tp_name) + ".__new__(" + type->tp_name + ") is not safe, use " + type->tp_name + ".__new__()");
  CallArgs rest{{a.args.begin() + 1, a.args.end()}, a.kwargs};
  Value* plain = call(t, t.realShared(reinterpret_cast<PyObject*>(&base)), std::move(rest));
  if (type == &base) return plain;
  if (t.typeOf(plain) != &base || isLateText(plain)) unsupported(BreakReason::ObjectConstruction, std::string("making a ") + type->tp_name);
  InstanceValue* i = makeInstance(t, type);
  i->core = plain;
  return i;
}

Value* objectSetattr(Trace& t, CallArgs& a) {
  expectArgs(a, 3, 3);
  checkSetter(t, a.args[0], PyObject_GenericSetAttr, "__setattr__");
  genericSetAttr(t, a.args[0], nameArgument(t, a.args[1], "__setattr__"), a.args[2]);
  return t.none();
}
Value* objectDelattr(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  checkSetter(t, a.args[0], PyObject_GenericSetAttr, "__delattr__");
  genericSetAttr(t, a.args[0], nameArgument(t, a.args[1], "__delattr__"), nullptr);
  return t.none();
}
Value* objectGetattribute(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  PyObject* name = nameArgument(t, a.args[1], "__getattribute__");
  Value* v = genericGetAttr(t, a.args[0], t.typeOf(a.args[0]), name);
  if (!v) attributeError(t, a.args[0], name);
  return v;
}
Value* objectEq(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return isSame(t, a.args[0], a.args[1]) ? t.boolean(true) : t.realShared(Py_NotImplemented);
}
Value* objectNe(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  Value* v = call1(t, specialMethod(t, a.args[0], "__eq__"), a.args[1]);
  return isReal(v, Py_NotImplemented) ? v : t.boolean(!truth(t, v));
}
Value* objectOrder(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.realShared(Py_NotImplemented);
}
Value* objectInitSubclass(Trace& t, CallArgs&) { return t.none(); }

Value* functionGet(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 3);
  if (isReal(a.args[1], Py_None)) {
    if (a.args.size() < 3 || isReal(a.args[2], Py_None)) raise(t, PyExc_TypeError, "__get__(None, None) is invalid");
    return a.args[0];
  }
  return t.make<BoundMethodValue>(a.args[0], a.args[1]);
}
Value* functionCall(Trace& t, CallArgs& a) {
  Value* fn = a.args.at(0);
  CallArgs rest{{a.args.begin() + 1, a.args.end()}, a.kwargs};
  return call(t, fn, std::move(rest));
}
Value* methodType(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  if (!t.typeOf(a.args[0])->tp_call) raise(t, PyExc_TypeError, "first argument must be callable");
  if (isReal(a.args[1], Py_None)) raise(t, PyExc_TypeError, "instance must not be None");
  return t.make<BoundMethodValue>(a.args[0], a.args[1]);
}

Value* exceptionInit(Trace& t, CallArgs& a) {
  if (!a.kwargs.empty()) raise(t, PyExc_TypeError, std::string(t.typeOf(a.args.at(0))->tp_name) + "() takes no keyword arguments");
  auto* i = a.args.at(0)->kind == Kind::Instance ? as<InstanceValue>(a.args[0]) : nullptr;
  if (!i) unsupported(BreakReason::ObjectConstruction, "initialising an exception");
  t.journal.set(i->exceptionArgs, static_cast<Value*>(t.tuple({a.args.begin() + 1, a.args.end()})));
  return t.none();
}

Value* exceptionAddNote(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  if (!PyType_IsSubtype(t.typeOf(a.args[1]), &PyUnicode_Type))
    raise(t, PyExc_TypeError, std::string("note must be a str, not '") + t.typeOf(a.args[1])->tp_name + "'");
  static PyObject* name = PyUnicode_InternFromString("__notes__");
  Value* notes = getAttrOrNull(t, a.args[0], name);
  if (!notes) {
    notes = t.list({});
    setAttr(t, a.args[0], name, notes);
  }
  if (notes->kind != Kind::List) unsupported(BreakReason::MethodCall, "add_note where __notes__ is no list");
  t.append(as<ListValue>(notes), a.args[1]);
  return t.none();
}

Value* typeCall(Trace& t, CallArgs& a) {
  Value* cls = a.args.at(0);
  if (!isReal(cls) || !PyType_Check(realObject(cls)))
    raise(t, PyExc_TypeError, std::string("descriptor '__call__' requires a 'type' object but received a '") + t.typeOf(cls)->tp_name + "'");
  CallArgs rest{{a.args.begin() + 1, a.args.end()}, a.kwargs};
  return construct(t, reinterpret_cast<PyTypeObject*>(t.identity(cls)), cls, std::move(rest));
}

Value* typeMro(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  static PyObject* mro = typeLookup(&PyType_Type, interned("mro"));
  if (!isReal(a.args[0]) || !PyType_Check(realObject(a.args[0]))) throw WrongArguments{};
  auto* type = reinterpret_cast<PyTypeObject*>(t.identity(a.args[0]));
  getTypeAttr(t, type, interned("__bases__"));
  ObjectRef classes = native(t, PyObject_CallOneArg(mro, reinterpret_cast<PyObject*>(type)));
  std::vector<Value*> items;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(classes.get()); i++) items.push_back(pinnedValue(t, PyList_GET_ITEM(classes.get(), i)));
  return t.list(std::move(items));
}

// ---- inspect ---------------------------------------------------------------------------------------------------------

// The real callable that a value stands for, its code guarded; null where the trace made it.
ObjectRef realCallable(Trace& t, Value* v) {
  if (isReal(v)) return ObjectRef::share(t.identity(v));
  if (v->kind == Kind::BoundMethod) {
    auto* m = as<BoundMethodValue>(v);
    ObjectRef fn = realCallable(t, m->function);
    auto* self = dynamic_cast<HeapValue*>(m->self);
    if (!fn || !self || !self->real) return nullptr;
    t.typeOf(self);
    return checked(PyMethod_New(fn.get(), self->real.get()));
  }
  if (v->kind == Kind::Instance && as<InstanceValue>(v)->real && PyCallable_Check(as<InstanceValue>(v)->real.get())) {
    t.typeOf(v);
    return as<InstanceValue>(v)->real;
  }
  return nullptr;
}

// What the program may have put on a function for inspect to look at.
bool saysItself(Trace& t, Value* v) {
  if (v->kind == Kind::BoundMethod) v = as<BoundMethodValue>(v)->function;
  if (!isReal(v) || !PyFunction_Check(realObject(v))) return false;
  for (const char* name : {"__signature__", "__text_signature__", "__wrapped__"})
    if (getAttrOrNull(t, v, interned(name))) return true;
  return false;
}

// The function's defaults are in every call what they are now.
void guardDefaults(Trace& t, PyObject* function) {
  if (PyMethod_Check(function)) function = PyMethod_GET_FUNCTION(function);
  if (!PyFunction_Check(function)) return;
  for (const char* name : {"__defaults__", "__kwdefaults__", "__annotations__"}) {
    ObjectRef held = checked(PyObject_GetAttr(function, interned(name)));
    t.facts.identityIs(t.sources.attr(t.sources.pinned(function), interned(name)), held.get());
  }
}

// A signature says how a callable may be called: made by Python itself from the real callable, used as a constant.
Value* inspectSignature(Trace& t, CallArgs& a) {
  static PyObject* signature = importedObject("inspect", "signature");
  expectArgs(a, 1, 1);
  ObjectRef callable = realCallable(t, a.args[0]);
  // What the trace made is looked at by the code of inspect.
  if (!callable || t.models.count(callable.get()) || saysItself(t, a.args[0])) return inlineFunction(t, pinnedValue(t, signature), a);
  if (PyType_Check(callable.get()))
    for (const char* name : {"__init__", "__new__", "__signature__"})
      if (PyObject* found = lookUp(t, reinterpret_cast<PyTypeObject*>(callable.get()), interned(name))) guardDefaults(t, found);
  guardDefaults(t, callable.get());
  return t.real(native(t, PyObject_CallOneArg(signature, callable.get())));
}

// ---- functools.partial -----------------------------------------------------------------------------------------------

}  // namespace

PyTypeObject* partialType() {
  static auto* type = reinterpret_cast<PyTypeObject*>(importedObject("functools", "partial"));
  return type;
}

namespace {

Value* makePartial(Trace& t, CallArgs& a) {
  if (a.args.empty()) raise(t, PyExc_TypeError, "type 'partial' takes at least one argument");
  Value* fn = a.args[0];
  if (fn->kind != Kind::Function && fn->kind != Kind::BoundMethod && !t.typeOf(fn)->tp_call)
    raise(t, PyExc_TypeError, "the first argument must be callable");
  std::vector<Value*> args(a.args.begin() + 1, a.args.end());
  DictValue* keywords = t.dict();
  // One without attributes of its own is taken apart.
  DictValue* attributes = fn->kind == Kind::Instance && t.typeOf(fn) == partialType() ? t.dictOf(as<InstanceValue>(fn)) : nullptr;
  if (attributes && t.dictLength(attributes) == 0) {
    std::vector<Value*> inner = itemsOf(t, getAttr(t, fn, "args"));
    args.insert(args.begin(), inner.begin(), inner.end());
    DictValue* kw = asDict(getAttr(t, fn, "keywords"));
    t.complete(kw);
    for (const DictEntry& e : kw->entries)
      if (e.value) t.dictSet(keywords, e.key, e.value);
    fn = getAttr(t, fn, "func");
  }
  for (auto& [name, v] : a.kwargs) t.dictSet(keywords, t.keyOf(t.realShared(name)), v);
  InstanceValue* p = makeInstance(t, partialType());
  auto slot = [&](const char* name, Value* v) { p->slots.emplace_back(ObjectRef::steal(PyUnicode_InternFromString(name)), v); };
  slot("func", fn);
  slot("args", t.tuple(std::move(args)));
  slot("keywords", keywords);
  return p;
}

Value* partialCall(Trace& t, CallArgs& a) {
  ReturnTo tail = std::exchange(t.tail, ReturnTo::Native);
  Value* p = a.args.at(0);
  CallArgs call_;
  call_.args = itemsOf(t, getAttr(t, p, "args"));
  call_.args.insert(call_.args.end(), a.args.begin() + 1, a.args.end());
  DictValue* kw = asDict(getAttr(t, p, "keywords"));
  t.complete(kw);
  for (const DictEntry& e : kw->entries) {
    if (!e.value) continue;
    bool overridden = false;
    for (auto& [name, v] : a.kwargs) overridden |= PyUnicode_Compare(name, e.key.constant) == 0;
    if (!overridden) {
      PyObject* name = ObjectRef::share(e.key.constant).release();
      PyUnicode_InternInPlace(&name);
      call_.kwargs.emplace_back(t.keep(ObjectRef::steal(name)), e.value);
    }
  }
  for (auto& kv : a.kwargs) call_.kwargs.push_back(kv);
  Value* function = getAttr(t, p, "func");
  t.tail = tail;
  return call(t, function, std::move(call_));
}

}  // namespace

void addTypeBuiltins(BuiltinTable& table) {
  table.add("builtins.type", builtinType);
  table.add("builtins.super", builtinSuper);
  table.add("builtins.object.__init__", objectInit);
  table.add("builtins.object.__new__", objectNew);
  table.add("builtins.object.__setattr__", objectSetattr);
  table.add("builtins.object.__delattr__", objectDelattr);
  for (PyTypeObject* type : {&PyBaseObject_Type, &PyDict_Type, &PyList_Type, &PyTuple_Type, &PySet_Type, &PyFrozenSet_Type, &PyODict_Type})
    table.addType(type, "__getattribute__", objectGetattribute);
  table.add("builtins.object.__eq__", objectEq);
  table.add("builtins.object.__ne__", objectNe);
  for (const char* name : {"__lt__", "__le__", "__gt__", "__ge__"}) table.addType(&PyBaseObject_Type, name, objectOrder);
  table.add("builtins.object.__init_subclass__", objectInitSubclass);
  for (const char* path : {"builtins.dict.__new__", "builtins.list.__new__", "builtins.tuple.__new__", "builtins.set.__new__",
                           "builtins.frozenset.__new__", "collections.OrderedDict.__new__"})
    table.add(path, containerNew);
  table.add("builtins.int.__new__", coreNew<PyLong_Type>);
  table.add("builtins.float.__new__", coreNew<PyFloat_Type>);
  table.add("builtins.complex.__new__", coreNew<PyComplex_Type>);
  table.add("builtins.str.__new__", coreNew<PyUnicode_Type>);
  table.add("builtins.bytes.__new__", coreNew<PyBytes_Type>);
  table.add("types.FunctionType.__get__", functionGet);
  table.add("types.FunctionType.__call__", functionCall);
  table.add("types.MethodType.__call__", functionCall);
  for (PyTypeObject* type : {&PyCFunction_Type, &PyMethodDescr_Type, &PyWrapperDescr_Type}) table.addType(type, "__call__", functionCall);
  table.add("types.MethodType", methodType);
  table.add("builtins.BaseException.add_note", exceptionAddNote);
  // Those without an __init__ of their own.
  PyObject *name, *object;
  for (Py_ssize_t at = 0; PyDict_Next(PyEval_GetBuiltins(), &at, &name, &object);) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    if (PyExceptionClass_Check(object) && type->tp_init == reinterpret_cast<PyTypeObject*>(PyExc_BaseException)->tp_init &&
        PyDict_GetItemString(typeDict(type), "__init__"))
      table.addType(type, "__init__", exceptionInit);
  }
  table.add("builtins.type.__call__", typeCall);
  table.add("builtins.type.mro", typeMro);
  table.add("builtins.type.__new__", typeNew);
  table.addType(&PyType_Type, "__init__", typeInit);
  table.addType(&PyType_Type, "__setattr__", typeSetattr);
  table.addType(&PyType_Type, "__delattr__", typeSetattr);
  table.add("inspect.signature", inspectSignature);
  table.add("functools.partial", makePartial);
  table.add("functools.partial.__call__", partialCall);
}

}  // namespace cdynamo
