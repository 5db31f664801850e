// What object, type, super and descriptors offer to be called by hand; functions of the library known by their code.
#include <string_view>

#include "base/lookup.h"
#include "builtins/table.h"
#include "cpython/compat.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "source/open_ids.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// ---- id --------------------------------------------------------------------------------------------------------------

Value* remember(Trace& t, Value* v, Value* id) {
  t.ids[v] = id;
  t.journal.onRollback([&t, v] { t.ids.erase(v); });
  return id;
}

// Another number in each call, computed when it leaves the frame. It can be a key.
Value* idOfFresh(Trace& t, Value* v) {
  auto* id = t.make<InstanceValue>();
  id->type = &PyLong_Type;
  id->lateText = std::make_unique<LateCall>(LateCall{importedObject("builtins", "id"), {v}, {}});
  return remember(t, v, id);
}

// deepcopy looks objects up by id in a memo: where the trace made that, nobody sees which numbers they are.
bool isForMemo(Trace& t, Value* v) {
  static PyObject* globals = PyModule_GetDict(checked(PyImport_ImportModule("copy")).get());
  if (t.frame->globals != globals) return false;
  if (isReal(v) && v->source && !t.isConstant(v)) return false;
  for (int i = 0; i < t.frame->code->argcount(); i++) {
    Value* local = t.frame->locals[static_cast<size_t>(i)];
    if (PyUnicode_CompareWithASCIIString(t.frame->code->localName(i), "memo") == 0 && local && local->kind == Kind::Dict)
      return !as<DictValue>(local)->real;
  }
  return false;
}

Value* builtinId(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* v = a.args[0];
  if (auto known = t.ids.find(v); known != t.ids.end()) return known->second;
  if (isForMemo(t, v)) return idOfFresh(t, v);
  if (isOpenId(t.options.openNames, t.sources, v->source)) {
    t.facts.distinct(v->source, true);
    return idOfFresh(t, v);
  }
  PyObject* object = nullptr;
  auto* heap = dynamic_cast<HeapValue*>(v);
  if (isReal(v)) {
    object = t.identity(v);
  } else if (heap && heap->real && heap->source) {
    object = heap->real.get();
    t.facts.identityIs(heap->source, object);
  } else if (isTensor(v) && as<TensorValue>(v)->real && v->source) {
    object = as<TensorValue>(v)->real;
    t.facts.identityIs(v->source, object);
  }
  if (object && (t.localClass(object) || (!v->source && isMadeAnew(object)))) return idOfFresh(t, v);
  if (!object && !heap && !isTensor(v)) unsupported(BreakReason::BuiltinCall, "the id of " + describe(v));
  return object ? remember(t, v, t.real(checked(PyLong_FromVoidPtr(object)))) : idOfFresh(t, v);
}

// ---- descriptors by hand ---------------------------------------------------------------------------------------------

// descriptor.__get__(instance, owner=None)
Value* descriptorGet(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 3);
  Value *instance = a.args[1], *owner = a.args.size() > 2 ? a.args[2] : t.none();
  bool noInstance = isReal(instance, Py_None), noOwner = isReal(owner, Py_None);
  if (noInstance && noOwner) raise(t, PyExc_TypeError, "__get__(None, None) is invalid");
  PyTypeObject* type = nullptr;
  if (!noOwner) {
    if (!isReal(owner) || !PyType_Check(realObject(owner))) unsupported(BreakReason::UnsupportedDescriptor, "__get__ with an owner that is no class");
    type = reinterpret_cast<PyTypeObject*>(t.identity(owner));
  } else {
    type = t.typeOf(instance);
  }
  if (a.args[0]->kind == Kind::Property) {
    auto* p = as<PropertyValue>(a.args[0]);
    if (p->type == &PyProperty_Type && !noInstance && isReal(p->get, Py_None))
      raise(t, PyExc_AttributeError, std::string("property of '") + t.typeOf(instance)->tp_name + "' object has no getter");
    if (p->type == &PyProperty_Type) return noInstance ? p : call1(t, p->get, instance);
    if (p->type == &PyStaticMethod_Type) return p->get;
    checkClassMethod(t, p->get);
    return t.make<BoundMethodValue>(p->get, pinnedValue(t, reinterpret_cast<PyObject*>(type)));
  }
  if (!isReal(a.args[0])) unsupported(BreakReason::UnsupportedDescriptor, "__get__ of " + describe(a.args[0]));
  PyObject* d = t.identity(a.args[0]);
  PyTypeObject* kind = Py_TYPE(d);
  bool ofC = kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type || kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type;
  static PyObject* unnamed = PyUnicode_InternFromString("?");
  PyObject* name = ofC ? reinterpret_cast<PyDescrObject*>(d)->d_name : unnamed;
  if (ofC && !noInstance) {
    PyTypeObject *of = reinterpret_cast<PyDescrObject*>(d)->d_type, *given = t.typeOf(instance);
    if (!PyType_IsSubtype(given, of))
      raise(t, PyExc_TypeError,
            std::string("descriptor '") + PyUnicode_AsUTF8(name) + "' for '" + of->tp_name + "' objects doesn't apply to a '" + given->tp_name +
                "' object");
    // type.__dict__["__mro__"].__get__(cls)
    if (isReal(instance) && PyType_Check(realObject(instance)) && typeLookup(given, name) == d)
      if (Value* v = getTypeAttr(t, reinterpret_cast<PyTypeObject*>(t.identity(instance)), name)) return v;
  }
  if (Value* v = bindDescriptor(t, d, noInstance ? nullptr : instance, type, name)) return v;
  raise(t, PyExc_AttributeError, PyUnicode_AsUTF8(name));
}

Value* superGet(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 3);
  if (a.args[0]->kind != Kind::Super) unsupported(BreakReason::UnboundSuper, "super().__get__ of " + describe(a.args[0]));
  auto* s = as<SuperValue>(a.args[0]);
  if (s->self || isReal(a.args[1], Py_None)) return s;
  return call(t, t.realShared(reinterpret_cast<PyObject*>(&PySuper_Type)),
              {{pinnedValue(t, reinterpret_cast<PyObject*>(s->thisClass)), a.args[1]}, {}});
}

// typing.NewType("X", int)(v)
Value* identityFunction(Trace&, CallArgs& a) {
  expectArgs(a, 1, 1);
  return a.args[0];
}

Value* objectSubclasshook(Trace& t, CallArgs&) { return t.realShared(Py_NotImplemented); }
Value* typePrepare(Trace& t, CallArgs&) { return t.dict(); }

// ---- factories and decorators of classes -----------------------------------------------------------------------------

// collections.namedtuple, which asks the caller's frame for the name of its module.
Value* namedTuple(Trace& t, CallArgs& a) {
  static PyObject* factory = importedObject("collections", "namedtuple");
  static PyObject* moduleName = PyUnicode_InternFromString("module");
  if (!a.keyword("module")) {
    PyObject* module = PyDict_GetItemString(t.frame->globals, "__name__");
    if (!module) unsupported(BreakReason::ClassStatement, "a named tuple in code without a module");
    a.kwargs.emplace_back(moduleName, t.realShared(module));
  }
  return makeByFactory(t, factory, a);
}

Value* processDataclass(Trace& t, CallArgs& a) {
  static PyObject* decorator = importedObject("dataclasses", "_process_class");
  constexpr size_t kFrozen = 6, kSlots = 9, kWeakrefSlot = 10;
  if (a.args.size() > kWeakrefSlot && truth(t, a.args[kSlots])) {
    // A second class is made of the first one.
    static PyObject* addSlots = importedObject("dataclasses", "_add_slots");
    if (isReal(a.args[0])) refuseComputedFields(t, realObject(a.args[0]));
    CallArgs plain = a;
    plain.args[kSlots] = plain.args[kWeakrefSlot] = t.boolean(false);
    if (Value* v = decorateClass(t, decorator, plain)) return call(t, pinnedValue(t, addSlots), {{v, a.args[kFrozen], a.args[kWeakrefSlot]}, {}});
  } else if (Value* v = decorateClass(t, decorator, a)) {
    return v;
  }
  unsupported(BreakReason::ClassStatement, "a dataclass of a class that exists");
}

// ---- tensors ---------------------------------------------------------------------------------------------------------

// copy.deepcopy(tensor) where the tensor has its memory to itself.
Value* tensorDeepcopy(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  auto* tensor = isTensor(a.args[0]) ? as<TensorValue>(a.args[0]) : nullptr;
  DictValue* memo = asDict(a.args[1]);
  if (!tensor || !memo || tensor->type != tensorType() || tensor->base || tensor->viewed || !tensor->attrs.empty())
    unsupported(BreakReason::MethodCall, "deepcopy of " + describe(a.args[0]));
  t.observe(tensor);
  if (tensor->meta.requiresGrad || tensor->real) unsupported(BreakReason::MethodCall, "deepcopy of this tensor");
  CallArgs self{{tensor}, {}};
  DictKey key = t.keyOf(builtinId(t, self));
  if (Value* known = t.dictGet(memo, key)) return known;
  static PyObject* clone = PyUnicode_InternFromString("clone");
  Value* made = recordOp(t, clone, true, {{tensor}, {}});
  t.dictSet(memo, key, made);
  return made;
}

// ---- known by their code ---------------------------------------------------------------------------------------------

// The code object named `path` (dotted) among the constants of a function's code.
PyObject* innerCode(const char* module, const char* function, std::initializer_list<const char*> path) {
  PyObject* found = PyFunction_GET_CODE(importedObject(module, function));
  for (const char* name : path) {
    PyObject *constants = reinterpret_cast<PyCodeObject*>(found)->co_consts, *next = nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
      PyObject* c = PyTuple_GET_ITEM(constants, i);
      if (PyCode_Check(c) && PyUnicode_CompareWithASCIIString(reinterpret_cast<PyCodeObject*>(c)->co_name, name) == 0) next = c;
    }
    if (!next) return nullptr;
    found = next;
  }
  return found;
}

Value* freeVariable(Trace& t, PyObject* code, Value* closure, const char* name) {
  ObjectRef names = checked(PyCode_GetFreevars(reinterpret_cast<PyCodeObject*>(code)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); i++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names.get(), i), name) == 0)
      return t.cellContents(as<CellValue>(as<TupleValue>(closure)->items[static_cast<size_t>(i)]));
  return nullptr;
}

// The wrapper of reprlib.recursive_repr and of dataclasses: "..." for an object whose text is being made.
Value* recursiveRepr(Trace& t, PyObject* code, Value* closure, CallArgs& a) {
  static std::vector<Value*> running;
  Value* function = freeVariable(t, code, closure, "user_function");
  Value* fill = freeVariable(t, code, closure, "fillvalue");
  if (!function || a.args.size() != 1) return nullptr;
  // Those whose text is being made by frames outside of the trace.
  Value* outside = freeVariable(t, code, closure, "repr_running");
  if (SetValue* s = outside ? asSet(outside) : nullptr; s && length(t, s) != 0)
    unsupported(BreakReason::UnsupportedText, "the text of an object inside of another one's");
  for (Value* v : running)
    if (v == a.args[0]) return fill ? fill : t.string("...");
  struct Entered {
    explicit Entered(Value* v) { running.push_back(v); }
    ~Entered() { running.pop_back(); }
  } entered(a.args[0]);
  return call(t, function, a);
}

// functools.singledispatch: the implementation for a class, from the registry as the trace knows it. The real dispatch would write its cache.
Value* dispatched(Trace& t, PyObject* code, Value* closure, CallArgs& a) {
  static PyObject *find = importedObject("functools", "_find_impl"), *cacheType = importedObject("weakref", "WeakKeyDictionary");
  Value *registry = freeVariable(t, code, closure, "registry"), *cache = freeVariable(t, code, closure, "dispatch_cache");
  DictValue* known = registry ? asDict(registry) : nullptr;
  if (!known || !cache || reinterpret_cast<PyObject*>(t.typeOf(cache)) != cacheType) return nullptr;
  if (a.args.size() != 1 || !isReal(a.args[0]) || !PyType_Check(realObject(a.args[0]))) return nullptr;
  t.complete(known);
  t.facts.abcToken();
  if (Value* exact = t.dictGet(known, t.keyOf(a.args[0]))) return exact;
  ObjectRef numbers = checked(PyDict_New());
  for (size_t i = 0; i < known->entries.size(); i++) {
    const DictEntry& e = known->entries[i];
    if (!e.value) continue;
    if (!isReal(e.key.value)) return nullptr;
    checkedStatus(PyDict_SetItem(numbers.get(), realObject(e.key.value), checked(PyLong_FromSize_t(i)).get()));
  }
  ObjectRef found = native(t, PyObject_CallFunctionObjArgs(find, t.identity(a.args[0]), numbers.get(), nullptr));
  return PyLong_Check(found.get()) ? known->entries[PyLong_AsSize_t(found.get())].value : nullptr;
}

}  // namespace

Value* callKnownCode(Trace& t, PyObject* code, Value* closure, CallArgs& args) {
  static PyObject* dataclassRepr = innerCode("dataclasses", "_recursive_repr", {"wrapper"});
  static PyObject* otherRepr = innerCode("reprlib", "recursive_repr", {"decorating_function", "wrapper"});
  static PyObject* dispatch = innerCode("functools", "singledispatch", {"dispatch"});
  if (code == dataclassRepr || code == otherRepr) return recursiveRepr(t, code, closure, args);
  if (code == dispatch) return dispatched(t, code, closure, args);
  return nullptr;
}

namespace {

// The function's name where it is one of module math, else nothing.
std::string_view mathFunction(PyObject* callable) {
  PyObject* owner = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  const char* module = owner && PyModule_Check(owner) ? PyModule_GetName(owner) : nullptr;
  if (!module || std::string_view(module) != "math") return {};
  return reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
}

}  // namespace

Value* roundedByItself(Trace& t, PyObject* callable, const CallArgs& a) {
  std::string_view name = mathFunction(callable);
  if ((name != "floor" && name != "ceil" && name != "trunc") || a.args.size() != 1 || a.args[0]->kind != Kind::Instance) return nullptr;
  std::string special = "__" + std::string(name) + "__";
  return overrides(t, a.args[0], special.c_str()) ? call(t, specialMethod(t, a.args[0], special.c_str()), {}) : nullptr;
}

bool convertNumbers(Trace& t, PyObject* callable, CallArgs& a) {
  PyObject* owner = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (!owner || !PyModule_Check(owner)) return false;
  const std::string_view name = mathFunction(callable);
  bool math = !name.empty();
  if (name == "trunc") return false;                                                                           // asks for nothing but __trunc__
  if (std::string_view(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name) == "ord") return false;  // wants a text
  bool ofInts = false, changed = false;
  for (std::string_view one : {"gcd", "lcm", "comb", "perm", "factorial", "isqrt"}) ofInts |= name == one;
  for (Value*& v : a.args) {
    // What is no number is refused before the next argument is asked.
    if (math && isReal(v) && !PyNumber_Check(realObject(v))) return false;
    if (v->kind != Kind::Instance) continue;
    const bool index = ofInts || (name == "ldexp" && &v != a.args.data());
    Value* method = math && !index ? specialMethod(t, v, "__float__") : nullptr;
    Value* number = method ? call(t, method, {}) : isTensor(v) ? nullptr : indexValue(t, v);
    if (!number) return false;
    v = number;
    changed = true;
  }
  return changed;
}

void addObjectBuiltins(BuiltinTable& table) {
  table.add("builtins.id", builtinId);
  for (PyTypeObject* type : {&PyClassMethod_Type, &PyStaticMethod_Type, &PyProperty_Type, &PyMemberDescr_Type, &PyGetSetDescr_Type,
                             &PyMethodDescr_Type, &PyWrapperDescr_Type})
    table.addType(type, "__get__", descriptorGet);
  table.addType(&PySuper_Type, "__get__", superGet);
  table.add("builtins.object.__subclasshook__", objectSubclasshook);
  table.add("builtins.type.__prepare__", typePrepare);
  table.add("_typing._idfunc", identityFunction);
  table.add("collections.namedtuple", namedTuple);
  table.add("dataclasses._process_class", processDataclass);
  table.add("torch.Tensor.__deepcopy__", tensorDeepcopy);
}

}  // namespace cdynamo
