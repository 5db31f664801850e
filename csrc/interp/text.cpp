// Text of symbolic values: repr, str, format, and what messages call them.
#include <unordered_map>

#include "base/lookup.h"
#include "base/stack_room.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/intrinsics.h"
#include "interp/local_classes.h"
#include "interp/protocol.h"
#include "interp/special_methods.h"
#include "interp/stand_ins.h"
#include "interp/torch_function.h"
#include "shapes/layout.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

constexpr const char* kPartsWereSet = "the text of an exception whose parts were set";

// object(): its text is its address, which is another one in every call.
bool showsAddress(Value* v) { return isReal(v) && !v->source && Py_TYPE(realObject(v)) == &PyBaseObject_Type; }

// CPython is making the text of the object now, in a frame outside of the trace: inside of it another one is shown.
bool isBeingShown(Value* v) {
  auto* heap = dynamic_cast<HeapValue*>(v);
  PyObject* state = heap && heap->real ? PyThreadState_GetDict() : nullptr;
  PyObject* shown = state ? PyDict_GetItemString(state, "Py_Repr") : nullptr;
  for (Py_ssize_t i = 0; shown && PyList_Check(shown) && i < PyList_GET_SIZE(shown); i++)
    if (PyList_GET_ITEM(shown, i) == heap->real.get()) return true;
  return false;
}

ObjectRef snapshotOf(Trace& t, Value* v, std::unordered_map<Value*, PyObject*>& made) {
  if (auto found = made.find(v); found != made.end()) return ObjectRef::share(found->second);
  if (isNumber(v)) return nullptr;
  if (stackIsNearlyFull()) unsupported(BreakReason::RecursionLimit, "a deeply nested object");
  if (v->kind != Kind::Tuple && v->kind != Kind::Set)
    if (PyObject* c = t.constant(v)) return ObjectRef::share(c);
  auto all = [&](const std::vector<Value*>& items, auto&& add) {
    for (Value* item : items) {
      ObjectRef copy = snapshotOf(t, item, made);
      if (!copy) return false;
      add(copy.get());
    }
    return true;
  };
  switch (v->kind) {
    case Kind::List: {
      auto* l = as<ListValue>(v);
      if (l->type == dequeType()) {
        t.load(l);
        ObjectRef empty = checked(PyTuple_New(0)), bound = l->maxlen < 0 ? ObjectRef::share(Py_None) : checked(PyLong_FromLongLong(l->maxlen));
        ObjectRef deque = checked(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(l->type), empty.get(), bound.get(), nullptr));
        made[v] = deque.get();
        return all(l->items, [&](PyObject* o) { ObjectRef done = checked(PyObject_CallMethod(deque.get(), "append", "(O)", o)); }) ? deque : nullptr;
      }
      if (l->type != &PyList_Type) return nullptr;
      ObjectRef list = checked(PyList_New(0));
      made[v] = list.get();
      return all(itemsOf(t, v), [&](PyObject* o) { checkedStatus(PyList_Append(list.get(), o)); }) ? list : nullptr;
    }
    case Kind::Tuple: {
      if (as<TupleValue>(v)->type != &PyTuple_Type) return ObjectRef::share(t.constant(v));
      ObjectRef list = checked(PyList_New(0));
      if (!all(itemsOf(t, v), [&](PyObject* o) { checkedStatus(PyList_Append(list.get(), o)); })) return nullptr;
      return checked(PyList_AsTuple(list.get()));
    }
    case Kind::Set: {
      auto* s = as<SetValue>(v);
      if (s->holder) return nullptr;
      t.load(s);
      for (const DictKey& k : s->items)
        if (k.value && !snapshotOf(t, k.value, made)) return nullptr;
      return t.setLayout(s);
    }
    case Kind::Dict: {
      auto* d = as<DictValue>(v);
      Value* factory = defaultFactory(t, d);
      if (d->type != &PyDict_Type && d->type != &PyODict_Type && !factory) return nullptr;
      ObjectRef dict = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(d->type)));
      if (factory) {
        PyObject* c = t.constant(factory);
        if (!c) return nullptr;
        checkedStatus(PyObject_SetAttrString(dict.get(), "default_factory", c));
      }
      made[v] = dict.get();
      t.complete(d);
      for (size_t i = 0; i < d->entries.size(); i++) {
        if (!d->entries[i].value) continue;
        if (!d->entries[i].key.constant) return nullptr;
        ObjectRef copy = snapshotOf(t, d->entries[i].value, made);
        if (!copy) return nullptr;
        checkedStatus(PyObject_SetItem(dict.get(), d->entries[i].key.constant, copy.get()));
      }
      return dict;
    }
    case Kind::DictView: {
      auto* view = as<DictViewValue>(v);
      ObjectRef dict = snapshotOf(t, view->owner, made);
      const char* name = view->what == DictViewValue::Keys ? "keys" : view->what == DictViewValue::Values ? "values" : "items";
      return dict ? checked(PyObject_CallMethod(dict.get(), name, nullptr)) : ObjectRef();
    }
    case Kind::Instance: {
      // C code that looks at types gets the object that it stands for.
      PyTypeObject* type = standsFor(v);
      if (type != &PyByteArray_Type && type != &PyDictProxy_Type) return nullptr;
      Value* part = t.dictGetName(t.dictOf(as<InstanceValue>(v)), interned(type == &PyByteArray_Type ? "_data" : "_mapping"));
      ObjectRef copy = part ? snapshotOf(t, part, made) : nullptr;
      return copy ? checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), copy.get())) : ObjectRef();
    }
    default: return nullptr;
  }
}

}  // namespace

ObjectRef snapshot(Trace& t, Value* v) {
  std::unordered_map<Value*, PyObject*> made;
  return snapshotOf(t, v, made);
}

PyObject* Trace::snapshot(Value* v) {
  if (isNumber(v)) return constant(v);
  ObjectRef copy = cdynamo::snapshot(*this, v);
  return copy ? keep(std::move(copy)) : nullptr;
}

namespace {

// "".join of texts, now or after the graph.
Value* joinText(Trace& t, const std::vector<Value*>& parts) {
  ObjectRef texts = checked(PyList_New(0));
  for (Value* part : parts) {
    PyObject* c = t.constant(part);
    if (!c || !PyUnicode_Check(c)) {
      if (Value* late = lateJoin(t, t.string(""), parts)) return late;
      unsupported(BreakReason::UnsupportedOperator, "a text made from " + describe(part));
    }
    checkedStatus(PyList_Append(texts.get(), c));
  }
  ObjectRef empty = checked(PyUnicode_FromString(""));
  return t.real(native(t, PyUnicode_Join(empty.get(), texts.get())));
}

// What a method of the program gave for a text.
Value* textBy(Trace& t, const char* method, Value* made) {
  PyTypeObject* type = t.typeOf(made);
  if (!PyType_IsSubtype(type, &PyUnicode_Type)) raise(t, PyExc_TypeError, std::string(method) + " returned non-string (type " + type->tp_name + ")");
  return made;
}

Value* slotRepr(Trace& t, Value* v) {
  if (isTensor(v) || isLateText(v) || isNumber(v) || showsAddress(v))
    if (Value* late = lateText(t, importedObject("builtins", "repr"), {{v}, {}})) return late;
  // By Python code of importlib, which reads what the trace may have written.
  if (isReal(v) && PyModule_Check(realObject(v))) unsupported(BreakReason::UnsupportedText, "the text of a module");
  if (isBeingShown(v)) unsupported(BreakReason::UnsupportedText, "the text of " + describe(v) + " inside of its own text");
  if (Value* method = isReal(v) ? pythonSpecial(t, v, "__repr__") : nullptr) return call(t, method, {});
  if (ObjectRef copy = snapshot(t, v)) return t.real(native(t, PyObject_Repr(copy.get())));
  if (Value* core = coreUnless(t, v, {"__repr__"})) return repr(t, core);
  if (++t.depth > t.options.maxInlineDepth) unsupported(BreakReason::RecursionLimit, "the text of a deeply nested object");
  struct Leave {
    int& depth;
    ~Leave() { depth--; }
  } leave{t.depth};
  auto joined = [&](const std::vector<Value*>& items, const char* open, const char* close) {
    std::vector<Value*> parts{t.string(open)};
    for (size_t i = 0; i < items.size(); i++) {
      if (i) parts.push_back(t.string(", "));
      parts.push_back(repr(t, items[i]));
    }
    parts.push_back(t.string(close));
    return joinText(t, parts);
  };
  if (v->kind == Kind::List && as<ListValue>(v)->type == &PyList_Type) return joined(itemsOf(t, v), "[", "]");
  if (v->kind == Kind::Tuple && as<TupleValue>(v)->type == &PyTuple_Type) {
    auto items = itemsOf(t, v);
    return joined(items, "(", items.size() == 1 ? ",)" : ")");
  }
  if (v->kind == Kind::Dict && as<DictValue>(v)->type == &PyDict_Type) {
    auto* d = as<DictValue>(v);
    t.complete(d);
    std::vector<Value*> parts{t.string("{")};
    for (size_t i = 0; i < d->entries.size(); i++) {
      DictEntry e = d->entries[i];
      if (!e.value) continue;
      if (parts.size() > 1) parts.push_back(t.string(", "));
      parts.push_back(repr(t, e.key.value));
      parts.push_back(t.string(": "));
      parts.push_back(repr(t, e.value));
    }
    parts.push_back(t.string("}"));
    return joinText(t, parts);
  }
  if (v->kind == Kind::Instance) {
    Value* method = specialMethod(t, v, "__repr__");
    auto* bound = method && method->kind == Kind::BoundMethod ? as<BoundMethodValue>(method) : nullptr;
    if (method && (!bound || isPythonFunction(bound->function) || (isReal(bound->function) && polyfillOf(realObject(bound->function)))))
      return call(t, method, {});
    auto* i = as<InstanceValue>(v);
    static PyObject* reprName = PyUnicode_InternFromString("__repr__");
    static PyObject* plain = typeLookup(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), reprName);
    if (i->exceptionArgs && lookUp(t, i->type, reprName) == plain) {
      auto args = itemsOf(t, i->exceptionArgs);
      PyObject* text = t.constant(repr(t, args.size() == 1 ? args[0] : t.tuple(args)));
      ObjectRef typeName = checked(PyType_GetName(i->type));
      return t.real(checked(PyUnicode_FromFormat(args.size() == 1 ? "%U(%U)" : "%U%U", typeName.get(), text)));
    }
  }
  unsupported(BreakReason::UnsupportedText, "the text of " + describe(v));
}

Value* slotStr(Trace& t, Value* v) {
  if (isLateText(v) && t.typeOf(v) == &PyUnicode_Type) return v;
  if (isLateText(v)) return lateText(t, reinterpret_cast<PyObject*>(&PyUnicode_Type), {{v}, {}});
  if (isTensor(v) || isNumber(v))
    if (Value* late = lateText(t, reinterpret_cast<PyObject*>(&PyUnicode_Type), {{v}, {}})) return late;
  if (isReal(v) && PyExceptionInstance_Check(realObject(v)) && !v->source) {
    if (t.typeOf(v)->tp_str != reinterpret_cast<PyTypeObject*>(PyExc_BaseException)->tp_str)
      for (const DictEntry& e : t.exceptionAttributes(realObject(v))->entries)
        if (PyUnicode_READ_CHAR(e.key.constant, 0) != '_') unsupported(BreakReason::UnsupportedText, kPartsWereSet);
  }
  if (isReal(v)) {
    if (Value* method = pythonSpecial(t, v, "__str__")) return call(t, method, {});
    if (pythonSpecial(t, v, "__repr__") || PyModule_Check(realObject(v))) return repr(t, v);
  }
  if (PyObject* c = t.constant(v)) return t.real(native(t, PyObject_Str(c)));
  if (Value* core = coreUnless(t, v, {"__str__"})) {
    // __str__ = int.__repr__, as in IntEnum
    static PyObject *strName = PyUnicode_InternFromString("__str__"), *reprName = PyUnicode_InternFromString("__repr__");
    PyObject* d = lookUp(t, t.typeOf(v), strName);
    if (d && Py_TYPE(d) == &PyWrapperDescr_Type && reinterpret_cast<PyDescrObject*>(d)->d_type == coreType(t.typeOf(v)) &&
        reinterpret_cast<PyDescrObject*>(d)->d_name == reprName)
      return repr(t, core);
    // __str__ = object.__str__
    if (d && Py_TYPE(d) == &PyWrapperDescr_Type && reinterpret_cast<PyDescrObject*>(d)->d_type == &PyBaseObject_Type) return repr(t, v);
    if (t.typeOf(core) == &PyUnicode_Type || !overrides(t, v, "__repr__")) return str(t, core);
  }
  if (v->kind == Kind::Instance) {
    auto* i = as<InstanceValue>(v);
    Value* method = specialMethod(t, v, "__str__");
    auto* bound = method && method->kind == Kind::BoundMethod ? as<BoundMethodValue>(method) : nullptr;
    if (method && (!bound || isPythonFunction(bound->function))) return call(t, method, {});
    if (i->exceptionArgs) {
      static PyObject* strName = PyUnicode_InternFromString("__str__");
      static PyObject* plain = typeLookup(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), strName);
      auto args = itemsOf(t, i->exceptionArgs);
      if (PyObject* polyfill = polyfillOf(lookUp(t, i->type, strName))) return call1(t, pinnedValue(t, polyfill), v);
      if (lookUp(t, i->type, strName) != plain) {
        // KeyError and its like: asked of a real one with the same arguments.
        for (const auto& [name, value] : i->slots)
          if (PyUnicode_READ_CHAR(name.get(), 0) != '_') unsupported(BreakReason::UnsupportedText, kPartsWereSet);
        PyObject* copies = t.snapshot(i->exceptionArgs);
        PyTypeObject* base = i->type;
        while (PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
        if (!copies || lookUp(t, i->type, strName) != typeLookup(base, strName))
          unsupported(BreakReason::UnsupportedText, "the text of " + describe(v));
        ObjectRef made = native(t, PyObject_Call(reinterpret_cast<PyObject*>(base), copies, nullptr));
        return t.real(native(t, PyObject_Str(made.get())));
      }
      if (args.empty()) return t.string("");
      return args.size() == 1 ? str(t, args[0]) : repr(t, i->exceptionArgs);
    }
  }
  if (isReal(v) && PyExceptionInstance_Check(realObject(v))) {
    static PyObject* strName = PyUnicode_InternFromString("__str__");
    static PyObject* plain = typeLookup(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), strName);
    PyObject* method = lookUp(t, t.typeOf(v), strName);
    if (PyFunction_Check(method)) return call(t, specialMethod(t, v, "__str__"), {});
    if (method == plain) {
      Value* args = getAttr(t, v, "args");
      std::vector<Value*> items = itemsOf(t, args);
      if (items.empty()) return t.string("");
      return items.size() == 1 ? str(t, items[0]) : repr(t, args);
    }
  }
  return slotRepr(t, v);
}

}  // namespace

Value* repr(Trace& t, Value* v) { return textBy(t, "__repr__", slotRepr(t, v)); }
Value* str(Trace& t, Value* v) { return textBy(t, "__str__", slotStr(t, v)); }

Value* format(Trace& t, Value* v, Value* spec, int conversion) {
  if (conversion == 1) v = str(t, v);
  if (conversion == 2) v = repr(t, v);
  if (conversion == 3) {
    PyObject* c = t.snapshot(v);
    v = c ? t.real(native(t, PyObject_ASCII(c))) : call1(t, pinnedValue(t, importedObject("cdynamo.polyfills", "ascii")), v);
  }
  if (isReal(v) && PyModule_Check(realObject(v))) v = repr(t, v);
  PyObject* cs = spec ? t.constant(spec) : nullptr;
  if (spec && !cs) unsupported(BreakReason::UnsupportedText, "a format specification made from " + describe(spec));
  if (Value* core = coreUnless(t, v, {"__format__"});
      core && ((!overrides(t, v, "__str__") && (t.typeOf(core) == &PyUnicode_Type || !overrides(t, v, "__repr__"))) ||
               (cs && PyUnicode_GET_LENGTH(cs) != 0))) {
    Value* made = onCores(
        t, [&] { return format(t, core, spec, 0); }, PyExc_ValueError);
    // Where there is nothing to do to it CPython gives the object itself.
    if (cs && PyUnicode_GET_LENGTH(cs) != 0 && t.typeOf(core) == &PyUnicode_Type && t.constant(made) && t.constant(made) == t.constant(core))
      unsupported(BreakReason::UnsupportedText, "a text of a class of its own, which is given back");
    return made;
  }
  const bool specified = cs && (!PyUnicode_Check(cs) || PyUnicode_GET_LENGTH(cs) != 0);
  if (isTensor(v) && specified && !isOverridden(t, CallArgs{{v}, {}})) {
    auto* tensor = as<TensorValue>(v);
    t.observe(tensor);
    if (tensor->type != tensorType() || !tensor->meta.sizes.empty())
      raise(t, PyExc_TypeError, std::string("unsupported format string passed to ") + tensor->type->tp_name + ".__format__");
  }
  if (specified && (isNumber(v) || isTensor(v) || isLateText(v))) {
    // A specification that fails must fail here: another value of the type is asked.
    ObjectRef one = ObjectRef::share(Py_True);
    if (isTensor(v) && isComplex(as<TensorValue>(v)->meta.dtype))
      one = checked(PyComplex_FromDoubles(1, 1));
    else if (isTensor(v) && !isIntegral(as<TensorValue>(v)->meta.dtype, true))
      one = checked(PyFloat_FromDouble(1));
    else if (isTensor(v) && as<TensorValue>(v)->meta.dtype != DType::Bool)
      one = checked(PyLong_FromLong(1));
    else if (!isTensor(v))
      one = checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(t.typeOf(v)), Py_True));
    ObjectRef shown = ObjectRef::steal(PyObject_Format(one.get(), cs));
    if (!shown) {
      PyErr_Clear();
      unsupported(BreakReason::UnsupportedText, "a format specification that fails");
    }
  }
  if (isTensor(v) || isLateText(v) || isNumber(v))
    if (Value* late = lateText(t, importedObject("builtins", "format"), spec ? CallArgs{{v, spec}, {}} : CallArgs{{v}, {}})) return late;
  if (v->kind == Kind::Instance || (isReal(v) && PyExceptionInstance_Check(realObject(v)))) {
    Value* method = specialMethod(t, v, "__format__");
    auto* bound = method && method->kind == Kind::BoundMethod ? as<BoundMethodValue>(method) : nullptr;
    if (method && (!bound || isPythonFunction(bound->function))) return call1(t, method, spec ? spec : t.string(""));
  }
  PyObject* c = t.constant(v);
  if (!c) {
    static PyObject* formatName = PyUnicode_InternFromString("__format__");
    const bool plain = lookUp(t, t.typeOf(v), formatName) == typeLookup(&PyBaseObject_Type, formatName), given = cs && PyUnicode_GET_LENGTH(cs) != 0;
    if (plain && given) raise(t, PyExc_TypeError, std::string("unsupported format string passed to ") + t.typeOf(v)->tp_name + ".__format__");
    if (!plain && !isTensor(v) && !isLateText(v) && (given || !coreOf(t, v)))
      unsupported(BreakReason::UnsupportedText, "__format__ of " + describe(v));
    v = str(t, v);
    if (isLateText(v)) return cs ? lateText(t, importedObject("builtins", "format"), {{v, spec}, {}}) : v;
    c = t.constant(v);
    if (!c) unsupported(BreakReason::UnsupportedOperator, "formatting " + describe(v));
  }
  return t.real(native(t, PyObject_Format(c, cs)));
}

std::string describe(Value* v) {
  switch (v->kind) {
    case Kind::Real: {
      PyObject* object = realObject(v);
      ObjectRef module, name;
      // What has attributes by code of the program is not asked.
      getattrofunc reads = Py_TYPE(object)->tp_getattro;
      const bool inC =
          !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) || reads == PyObject_GenericGetAttr || reads == PyType_Type.tp_getattro;
      if (PyCallable_Check(object) && inC) {
        name = ObjectRef::steal(PyObject_GetAttrString(object, "__qualname__"));
        PyErr_Clear();
        module = ObjectRef::steal(PyObject_GetAttrString(object, "__module__"));
        PyErr_Clear();
      }
      if (name && PyUnicode_Check(name.get())) {
        std::string prefix = module && PyUnicode_Check(module.get()) ? std::string(PyUnicode_AsUTF8(module.get())) + "." : "";
        return prefix + PyUnicode_AsUTF8(name.get());
      }
      return std::string("a ") + Py_TYPE(object)->tp_name + " object";
    }
    case Kind::Tensor: return "a tensor";
    case Kind::BoundMethod: return "the method " + describe(as<BoundMethodValue>(v)->function);
    case Kind::Function: return std::string("function ") + PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(as<FunctionValue>(v)->code)->co_qualname);
    case Kind::Slice: return "a slice";
    case Kind::Super: return "super()";
    case Kind::Iterator: return "an iterator";
    case Kind::Generator: return "a generator";
    case Kind::DictView: return "a dict view";
    case Kind::Property: return "a descriptor";
    case Kind::Number: return std::string("a captured ") + as<NumberValue>(v)->type->tp_name;
    case Kind::Array: return "a numpy array";
    case Kind::Unbound: return "an unbound local";
    default: return std::string("a ") + static_cast<HeapValue*>(v)->type->tp_name + " object";
  }
}

}  // namespace cdynamo
