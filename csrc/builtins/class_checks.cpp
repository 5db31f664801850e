// isinstance and issubclass by CPython's rules: tuples and unions, __instancecheck__ and __subclasscheck__, abstract base classes, objects
// that show another __class__ than their type.
#include <cstring>

#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

enum class Question { Instance, Subclass };

const char* functionName(Question q) { return q == Question::Instance ? "isinstance" : "issubclass"; }
PyObject* checkName(Question q) { return interned(q == Question::Instance ? "__instancecheck__" : "__subclasscheck__"); }

[[noreturn]] void badClassInfo(Trace& t, Question q) {
  raise(t, PyExc_TypeError,
        q == Question::Instance ? "isinstance() arg 2 must be a type, a tuple of types, or a union"
                                : "issubclass() arg 2 must be a class, a tuple of classes, or a union");
}

PyTypeObject* asType(Trace& t, Value* v) {
  return isReal(v) && PyType_Check(realObject(v)) ? reinterpret_cast<PyTypeObject*>(t.identity(v)) : nullptr;
}

// What v.__class__ is, where that is another class than type(v); null elsewhere.
PyTypeObject* shownClass(Trace& t, Value* v) {
  if (isReal(v) && PyWeakref_CheckProxy(realObject(v))) unsupported(BreakReason::UnsupportedAttribute, "the class of a weak proxy");
  if (v->kind != Kind::Instance) return nullptr;
  PyTypeObject* type = t.typeOf(v);
  // An object of our own library stands for one of another.
  if (auto* shown = reinterpret_cast<PyTypeObject*>(realObject(typeValue(t, v))); shown != type) return shown;
  static PyObject* plain = typeLookup(&PyBaseObject_Type, interned("__class__"));
  PyObject* read = lookUp(t, type, interned("__getattribute__"));
  if (lookUp(t, type, interned("__class__")) == plain && (!read || Py_TYPE(read) == &PyWrapperDescr_Type)) return nullptr;
  Value* shown = getAttrOrNull(t, v, interned("__class__"));
  return shown ? asType(t, shown) : nullptr;
}

// An object that is no class has __bases__ all the same: CPython goes through them.
bool looksLikeClass(Trace& t, Value* v) {
  Value* bases = getAttrOrNull(t, v, interned("__bases__"));
  return bases && PyType_FastSubclass(t.typeOf(bases), Py_TPFLAGS_TUPLE_SUBCLASS);
}

// What type.__instancecheck__ and type.__subclasscheck__ say.
bool plainAnswer(Trace& t, Question q, Value* v, Value* cls) {
  PyTypeObject* type = asType(t, cls);
  if (q == Question::Instance) {
    if (!type) {
      if (!looksLikeClass(t, cls)) badClassInfo(t, q);
      unsupported(BreakReason::BuiltinCall, "isinstance() with an object that looks like a class");
    }
    if (isSubtype(t, t.typeOf(v), type)) return true;
    PyTypeObject* shown = shownClass(t, v);
    return shown && isSubtype(t, shown, type);
  }
  PyTypeObject* derived = asType(t, v);
  if (derived && type) return isSubtype(t, derived, type);
  if (!derived && !looksLikeClass(t, v)) raise(t, PyExc_TypeError, "issubclass() arg 1 must be a class");
  if (!type && !looksLikeClass(t, cls)) badClassInfo(t, q);
  unsupported(BreakReason::BuiltinCall, "issubclass() with an object that looks like a class");
}

// ---- abstract base classes -------------------------------------------------------------------------------------------

PyObject* abcCheck(Question q) {
  static auto* meta = reinterpret_cast<PyTypeObject*>(importedObject("abc", "ABCMeta"));
  static PyObject *instance = typeLookup(meta, checkName(Question::Instance)), *subclass = typeLookup(meta, checkName(Question::Subclass));
  return q == Question::Instance ? instance : subclass;
}

// A __subclasshook__ is run by CPython, which remembers the answer: not where the trace made it, nor code of the program with a class that
// the trace made.
void checkHook(Trace& t, PyTypeObject* cls, PyTypeObject* derived) {
  if (typeLookup(cls, interned("__subclasses__")))
    unsupported(BreakReason::BuiltinCall, std::string("a subclass check of ") + cls->tp_name + ", which has a __subclasses__ of its own");
  PyObject* hook = typeLookup(cls, interned("__subclasshook__"));
  if (!hook || Py_TYPE(hook) != &PyClassMethod_Type) return;
  ObjectRef function = checked(PyObject_GetAttrString(hook, "__func__"));
  bool made = t.models.count(function.get()) || t.models.count(hook), library = false;
  PyObject* module = PyFunction_Check(function.get()) ? PyDict_GetItemString(PyFunction_GET_GLOBALS(function.get()), "__name__") : nullptr;
  if (module && PyUnicode_Check(module)) {
    std::string name = textOf(module);
    ObjectRef top = checked(PyUnicode_FromString(name.substr(0, name.find('.')).c_str()));
    static PyObject* names = importedObject("sys", "stdlib_module_names");
    library = PySequence_Contains(names, top.get()) == 1;
  }
  if (made || (!library && t.localClass(derived)))
    unsupported(BreakReason::BuiltinCall, std::string("a subclass check of ") + cls->tp_name + ", which has a __subclasshook__");
}

void checkHooks(Trace& t, PyTypeObject* cls, PyTypeObject* derived) {
  checkHook(t, cls, derived);
  for (auto& [model, record] : t.localClasses) {
    auto* local = reinterpret_cast<PyTypeObject*>(model);
    if (PyType_IsSubtype(local, cls)) checkHook(t, local, derived);
  }
}

bool askCPython(Trace& t, Question q, PyObject* object, PyTypeObject* cls) {
  auto* of = reinterpret_cast<PyObject*>(cls);
  int answer = q == Question::Instance ? PyObject_IsInstance(object, of) : PyObject_IsSubclass(object, of);
  if (answer < 0) raiseCurrent(t);
  return answer != 0;
}

// ABCMeta.__subclasscheck__
bool abcSubclass(Trace& t, Value* derived, PyTypeObject* cls) {
  PyTypeObject* type = asType(t, derived);
  if (!type) raise(t, PyExc_TypeError, "issubclass() arg 1 must be a class");
  checkHooks(t, cls, type);
  t.facts.abcToken();
  return native(t, PyObject_CallFunctionObjArgs(abcCheck(Question::Subclass), cls, type, nullptr)).get() == Py_True;
}

bool answerOf(Trace& t, Question q, Value* v, Value* info);

// An object of v's type, which is all that is asked of it; null where none can be had.
ObjectRef objectLike(Trace& t, Value* v) {
  auto* heap = dynamic_cast<HeapValue*>(v);
  if (isReal(v)) return ObjectRef::share(realObject(v));
  if (heap && heap->real) return heap->real;
  PyTypeObject* type = t.typeOf(v);
  if (v->kind != Kind::Instance || type->tp_new != PyBaseObject_Type.tp_new || PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT)) return {};
  return checked(PyBaseObject_Type.tp_new(type, checked(PyTuple_New(0)).get(), nullptr));
}

// ABCMeta.__instancecheck__
bool abcInstance(Trace& t, Value* v, Value* cls) {
  auto* type = reinterpret_cast<PyTypeObject*>(realObject(cls));
  PyTypeObject *own = t.typeOf(v), *shown = shownClass(t, v);
  bool plain = lookUp(t, Py_TYPE(type), checkName(Question::Subclass)) == abcCheck(Question::Subclass);
  // Protocols ask who asks.
  if (ObjectRef object = plain && (!shown || shown == own) ? objectLike(t, v) : ObjectRef()) {
    checkHooks(t, type, own);
    t.facts.abcToken();
    return native(t, PyObject_CallFunctionObjArgs(abcCheck(Question::Instance), realObject(cls), object.get(), nullptr)).get() == Py_True;
  }
  auto ask = [&](PyTypeObject* derived) {
    Value* value = pinnedValue(t, reinterpret_cast<PyObject*>(derived));
    return plain ? abcSubclass(t, value, type) : answerOf(t, Question::Subclass, value, cls);
  };
  return (shown && shown != own && ask(shown)) || ask(own);
}

// ---- the answer of one class -----------------------------------------------------------------------------------------

// torch.FloatTensor and its like: every tensor of that dtype and device.
bool isLegacyInstance(Trace& t, TensorValue* tensor, PyObject* cls) {
  t.observe(tensor);
  auto flag = [&](const char* name) {
    ObjectRef answer = checked(PyObject_GetAttrString(cls, name));
    return answer.get() == Py_True;
  };
  ObjectRef dtype = checked(PyObject_GetAttrString(cls, "dtype"));
  DType wanted;
  const TensorMeta& m = tensor->meta;
  return dtypeFrom(dtype.get(), wanted) && wanted == m.dtype && !flag("is_sparse") && m.device.type == (flag("is_cuda") ? 1 : 0);
}

bool tensorMatches(Trace& t, TensorValue* tensor, PyTypeObject* cls) {
  if (isSubtype(t, t.typeOf(tensor), cls)) return true;
  auto* object = reinterpret_cast<PyObject*>(cls);
  if (std::strcmp(Py_TYPE(cls)->tp_name, "torch.tensortype") == 0) return isLegacyInstance(t, tensor, object);
  if (!tensor->real) return false;  // torch.nn.Parameter asks for _is_param
  return askCPython(t, Question::Instance, tensor->real, cls);
}

// A check that is C code of a metaclass.
bool nativeAnswer(Trace& t, Question q, Value* v, PyTypeObject* cls) {
  auto* heap = dynamic_cast<HeapValue*>(v);
  PyObject *object = isReal(v) ? t.identity(v) : heap ? heap->real.get() : nullptr, *type = reinterpret_cast<PyObject*>(t.typeOf(v));
  if (q == Question::Subclass && !asType(t, v)) raise(t, PyExc_TypeError, "issubclass() arg 1 must be a class");
  if (q == Question::Subclass || !object) return askCPython(t, Question::Subclass, q == Question::Subclass ? object : type, cls);
  return askCPython(t, Question::Instance, object, cls);
}

bool unionAnswer(Trace& t, Question q, Value* v, PyObject* alias) {
  ObjectRef args = checked(PyObject_GetAttrString(alias, "__args__"));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args.get()); i++)
    if (PyType_IsSubtype(Py_TYPE(PyTuple_GET_ITEM(args.get(), i)), &Py_GenericAliasType))
      raise(t, PyExc_TypeError, std::string(functionName(q)) + "() argument 2 cannot be a parameterized generic");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args.get()); i++) {
    PyObject* arg = PyTuple_GET_ITEM(args.get(), i);
    if (PyType_Check(arg) && answerOf(t, q, v, pinnedValue(t, arg))) return true;
  }
  return false;
}

bool answerOf(Trace& t, Question q, Value* v, Value* info) {
  PyTypeObject* cls = asType(t, info);
  if (cls && q == Question::Instance && t.typeOf(v) == cls) return true;
  if (cls && Py_TYPE(cls) == &PyType_Type) return plainAnswer(t, q, v, info);
  if (asTuple(info) || (isReal(info) && PyTuple_Check(realObject(info)))) {
    RecursiveCall nested(t, q == Question::Instance ? " in __instancecheck__" : " in __subclasscheck__");
    for (Value* item : itemsOf(t, info))
      if (answerOf(t, q, v, item)) return true;
    return false;
  }
  PyTypeObject* meta = t.typeOf(info);
  static auto* unionType = reinterpret_cast<PyTypeObject*>(importedObject("types", "UnionType"));
  if (meta == unionType) return unionAnswer(t, q, v, t.identity(info));
  if (PyType_IsSubtype(meta, &Py_GenericAliasType))
    raise(t, PyExc_TypeError, std::string(functionName(q)) + "() argument 2 cannot be a parameterized generic");
  PyObject* check = lookUp(t, meta, checkName(q));
  if (!check || check == typeLookup(&PyType_Type, checkName(q))) return plainAnswer(t, q, v, info);
  if (cls && q == Question::Instance && isTensor(v)) return tensorMatches(t, as<TensorValue>(v), cls);
  if (cls && check == abcCheck(q)) return q == Question::Instance ? abcInstance(t, v, info) : abcSubclass(t, v, cls);
  if (cls && Py_TYPE(check) == &PyMethodDescr_Type) return nativeAnswer(t, q, v, cls);
  RecursiveCall nested(t, q == Question::Instance ? " in __instancecheck__" : " in __subclasscheck__");
  Value* bound = Py_TYPE(check)->tp_descr_get ? bindDescriptor(t, check, info, meta, checkName(q)) : pinnedValue(t, check);
  return truth(t, call1(t, bound, v));
}

// ---- what is called --------------------------------------------------------------------------------------------------

template <Question q>
Value* builtinCheck(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(answerOf(t, q, a.args[0], a.args[1]));
}

// type.__instancecheck__(cls, v)
template <Question q>
Value* typeCheck(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  return t.boolean(plainAnswer(t, q, a.args[1], a.args[0]));
}

Value* abcInstanceCheck(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  if (!asType(t, a.args[0])) throw WrongArguments{};
  return t.boolean(abcInstance(t, a.args[1], a.args[0]));
}
Value* abcSubclassCheck(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  PyTypeObject* cls = asType(t, a.args[0]);
  if (!cls) throw WrongArguments{};
  return t.boolean(abcSubclass(t, a.args[1], cls));
}

}  // namespace

bool isInstance(Trace& t, Value* v, Value* classInfo) { return answerOf(t, Question::Instance, v, classInfo); }
bool isSubclass(Trace& t, Value* cls, Value* classInfo) { return answerOf(t, Question::Subclass, cls, classInfo); }

namespace {

// _abc_init(cls) and _abc_register(cls, subclass): done to the model, and again where the class is made.
template <const char* name>
Value* changeOfAbc(Trace& t, CallArgs& a) {
  static PyObject* function = importedObject("_abc", name);
  noKeywords(a);
  return doToClass(t, function, a);
}
constexpr char kAbcInit[] = "_abc_init", kAbcRegister[] = "_abc_register";

}  // namespace

void addClassChecks(BuiltinTable& table) {
  table.add("_abc._abc_init", changeOfAbc<kAbcInit>);
  table.add("_abc._abc_register", changeOfAbc<kAbcRegister>);
  table.add("builtins.isinstance", builtinCheck<Question::Instance>);
  table.add("builtins.issubclass", builtinCheck<Question::Subclass>);
  table.addType(&PyType_Type, "__instancecheck__", typeCheck<Question::Instance>);
  table.addType(&PyType_Type, "__subclasscheck__", typeCheck<Question::Subclass>);
  table.add("_abc._abc_instancecheck", abcInstanceCheck);
  table.add("_abc._abc_subclasscheck", abcSubclassCheck);
}

}  // namespace cdynamo
