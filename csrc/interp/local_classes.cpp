#include "interp/local_classes.h"

#include <cstring>

#include "base/lookup.h"
#include "cpython/classes.h"
#include "cpython/compat.h"
#include "interp/attribute_parts.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

PyObject* named(const char* text) { return PyUnicode_InternFromString(text); }

bool is(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

PyTypeObject* abcMeta() {
  static auto* type = reinterpret_cast<PyTypeObject*>(importedObject("abc", "ABCMeta"));
  return type;
}

// The metaclass has these methods from type.
bool inherits(Trace& t, PyTypeObject* meta, std::initializer_list<const char*> names) {
  for (const char* text : names) {
    PyObject* name = t.keep(checked(PyUnicode_InternFromString(text)));
    if (lookUp(t, meta, name) != typeLookup(&PyType_Type, name)) return false;
  }
  return true;
}

// Calling it runs no Python code of the program.
bool isPlainMeta(Trace& t, PyTypeObject* meta) {
  return meta == &PyType_Type || meta == abcMeta() || inherits(t, meta, {"__new__", "__init__", "__prepare__", "__call__", "mro"});
}

// What runs for a new subclass is nothing, or code of the library that looks at that class alone: CPython runs it for the model, and again
// where the class is made.
bool hasPlainSubclassHook(Trace& t, PyTypeObject* base) {
  static PyObject* name = named("__init_subclass__");
  static auto hookOf = [](const char* module, const char* type) {
    return typeLookup(reinterpret_cast<PyTypeObject*>(importedObject(module, type)), name);
  };
  static PyObject *ofEnum = hookOf("enum", "Enum"), *ofGeneric = hookOf("typing", "Generic");
  PyObject* hook = lookUp(t, base, name);
  return hook == typeLookup(&PyBaseObject_Type, name) || hook == ofEnum || hook == ofGeneric;
}

bool isOfObject(Trace& t, PyTypeObject* base) {
  static PyObject* name = named("__init_subclass__");
  return lookUp(t, base, name) == typeLookup(&PyBaseObject_Type, name);
}

// A class whose bases have an __init_subclass__ of the program, which is traced: made below a base whose hook does nothing, and then put
// where it belongs. Null where its layout does not allow that.
ObjectRef makeQuietly(PyTypeObject* meta, PyObject* name, PyObject* bases, PyObject* names) {
  ObjectRef quiet = checked(PyTuple_Pack(1, importedObject("cdynamo.polyfills", "QuietBase")));
  ObjectRef below = checked(PySequence_Concat(quiet.get(), bases)), args = checked(PyTuple_Pack(3, name, below.get(), names));
  ObjectRef made = ObjectRef::steal(PyType_Type.tp_new(meta, args.get(), nullptr));
  if (made && PyObject_SetAttrString(made.get(), "__bases__", bases) == 0) return made;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
  PyErr_Clear();
  return {};
}

ObjectRef modelOf(Trace& t, Value* v);

// Registers the object as what stands for v.
ObjectRef standsFor(Trace& t, ObjectRef object, Value* v) {
  t.models[t.keep(object)] = v;
  return object;
}

ObjectRef modelFunction(Trace& t, FunctionValue* fn) {
  ObjectRef made = checked(PyFunction_New(fn->code, fn->globals));
  // Nobody is to call it; who does finds empty cells rather than none.
  if (int free = reinterpret_cast<PyCodeObject*>(fn->code)->co_nfreevars) {
    ObjectRef cells = checked(PyTuple_New(free));
    for (int i = 0; i < free; i++) PyTuple_SET_ITEM(cells.get(), i, checked(PyCell_New(nullptr)).release());
    checkedStatus(PyFunction_SetClosure(made.get(), cells.get()));
  }
  for (DictValue* attributes : {fn->names, fn->dict})
    for (size_t i = 0; attributes && i < attributes->entries.size(); i++) {
      const DictEntry& e = attributes->entries[i];
      PyObject* constant = e.value && e.key.constant ? t.constant(e.value) : nullptr;
      if (constant) checkedStatus(PyObject_SetAttr(made.get(), e.key.constant, constant));
    }
  return standsFor(t, std::move(made), fn);
}

ObjectRef modelProperty(Trace& t, PropertyValue* p) {
  auto part = [&](Value* v) { return v ? modelOf(t, v) : ObjectRef::share(Py_None); };
  ObjectRef get = part(p->get), set = part(p->set), del = part(p->del), doc = part(p->doc);
  auto* type = reinterpret_cast<PyObject*>(p->type);
  ObjectRef made = p->type == &PyProperty_Type ? native(t, PyObject_CallFunctionObjArgs(type, get.get(), set.get(), del.get(), doc.get(), nullptr))
                                               : native(t, PyObject_CallOneArg(type, get.get()));
  return standsFor(t, std::move(made), p);
}

// An object that lookups take for v: of the same type where that matters to them.
ObjectRef modelOf(Trace& t, Value* v) {
  for (auto& [object, value] : t.models)
    if (value == v) return ObjectRef::share(object);
  // An int that is open is held to its value too: the object that would stand for it may be any other int's.
  if (PyObject* constant = t.constant(v)) return ObjectRef::share(constant);
  if (ObjectRef copy = snapshot(t, v)) return standsFor(t, std::move(copy), v);
  switch (v->kind) {
    case Kind::Function: return modelFunction(t, as<FunctionValue>(v));
    case Kind::Property: return modelProperty(t, as<PropertyValue>(v));
    case Kind::Tuple: {
      auto* tuple = as<TupleValue>(v);
      if (tuple->type != &PyTuple_Type || tuple->source) break;
      ObjectRef made = checked(PyTuple_New(static_cast<Py_ssize_t>(tuple->items.size())));
      for (size_t i = 0; i < tuple->items.size(); i++)
        PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), modelOf(t, tuple->items[i]).release());
      return standsFor(t, std::move(made), v);
    }
    case Kind::Super: {
      // One without an object is bound where it is read.
      auto* super = as<SuperValue>(v);
      if (super->self) unsupported(BreakReason::ClassStatement, "a class that holds a super object");
      return standsFor(t, checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PySuper_Type), reinterpret_cast<PyObject*>(super->thisClass))), v);
    }
    case Kind::Real:
      if (Py_TYPE(realObject(v))->tp_descr_get || Py_TYPE(realObject(v))->tp_descr_set || !v->source) {
        t.identity(v);
        return standsFor(t, ObjectRef::share(realObject(v)), v);
      }
      break;
    case Kind::Instance: {
      auto* i = as<InstanceValue>(v);
      PyTypeObject* type = t.typeOf(v);
      if (i->real) {
        if (i->source) t.facts.identityIs(i->source, i->real.get());
        return standsFor(t, i->real, v);
      }
      if (type->tp_new == PyBaseObject_Type.tp_new ||
          (!i->contents && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_base == &PyBaseObject_Type)) {
        ObjectRef nothing = checked(PyTuple_New(0));
        ObjectRef made = standsFor(t, native(t, PyBaseObject_Type.tp_new(type, nothing.get(), nullptr)), v);
        // Fields of dataclasses are read by C++ and Python code alike.
        static PyObject* field = importedObject("dataclasses", "Field");
        if (reinterpret_cast<PyObject*>(type) == field)
          for (auto& [slot, held] : i->slots)
            if (held) checkedStatus(PyObject_GenericSetAttr(made.get(), slot.get(), modelOf(t, held).get()));
        return made;
      }
      if (type->tp_descr_get || type->tp_descr_set)
        unsupported(BreakReason::ClassStatement, std::string("a class with a descriptor of type ") + type->tp_name);
      break;
    }
    default: break;
  }
  return standsFor(t, checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type))), v);
}

// Read by the machinery that makes classes: must be what it is.
bool isReadByType(PyObject* name) {
  for (const char* special : {"__slots__", "__qualname__", "__module__", "__doc__"})
    if (is(name, special)) return true;
  return false;
}

PyTypeObject* asClass(Trace& t, Value* v) {
  return isReal(v) && PyType_Check(realObject(v)) ? reinterpret_cast<PyTypeObject*>(t.identity(v)) : nullptr;
}

// CPython's choice of the metaclass. What is no class may stand among the bases: its type counts.
PyTypeObject* metaclassOf(Trace& t, PyTypeObject* meta, const std::vector<Value*>& bases) {
  for (Value* base : bases) {
    PyTypeObject* other = asClass(t, base) ? Py_TYPE(realObject(base)) : t.typeOf(base);
    if (isSubtype(t, meta, other)) continue;
    if (!isSubtype(t, other, meta))
      raise(t, PyExc_TypeError,
            "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the metaclasses of all its bases");
    meta = other;
  }
  return meta;
}

std::vector<PyTypeObject*> basesOf(Trace& t, const std::vector<Value*>& values) {
  std::vector<PyTypeObject*> bases;
  for (Value* v : values) {
    bases.push_back(asClass(t, v));
    if (!bases.back()) unsupported(BreakReason::ClassStatement, "a class whose base is " + describe(v));
  }
  return bases;
}

// The values that need __set_name__ are put in after the class is made: CPython must not call it on what only stands for them.
PyObject* setNameOf(Trace& t, Value* v) {
  static PyObject* name = named("__set_name__");
  return v->kind == Kind::Instance ? lookUp(t, t.typeOf(v), name) : nullptr;
}

struct Namespace {
  std::vector<std::pair<PyObject*, Value*>> entries;
  Value* cell = nullptr;  // __classcell__
};

Namespace namespaceOf(Trace& t, DictValue* names) {
  Namespace made;
  t.complete(names);
  for (const DictEntry& e : names->entries) {
    if (!e.value) continue;
    if (!e.key.constant || !PyUnicode_CheckExact(e.key.constant)) unsupported(BreakReason::ClassStatement, "a namespace with keys that are no names");
    if (is(e.key.constant, "__classcell__")) {
      made.cell = e.value;
      if (made.cell->kind != Kind::Cell) {
        ObjectRef shown = checked(PyObject_Repr(reinterpret_cast<PyObject*>(t.typeOf(made.cell))));
        raise(t, PyExc_TypeError, std::string("__classcell__ must be a nonlocal cell, not ") + PyUnicode_AsUTF8(shown.get()));
      }
    } else
      made.entries.emplace_back(e.key.constant, e.value);
  }
  static PyObject* moduleName = named("__module__");
  if (names->index.count(DictKey{nullptr, moduleName, PyObject_Hash(moduleName)}) == 0) {
    PyObject* module = PyDict_GetItemString(t.frame->globals, "__name__");
    if (module) made.entries.emplace_back(moduleName, t.realShared(module));
  }
  return made;
}

// ABCMeta asks each value for __isabstractmethod__: what stands for one that only the program knows must not answer.
void checkAbstract(Trace& t, Value* v) {
  static PyObject* name = named("__isabstractmethod__");
  auto refuse = [] { unsupported(BreakReason::ClassStatement, "an abstract base class with a computed __isabstractmethod__"); };
  if (v->kind == Kind::Property)
    for (Value* part : {as<PropertyValue>(v)->get, as<PropertyValue>(v)->set, as<PropertyValue>(v)->del})
      if (part) checkAbstract(t, part);
  DictValue* dict = v->kind == Kind::Function ? as<FunctionValue>(v)->dict : v->kind == Kind::Instance ? as<InstanceValue>(v)->dict : nullptr;
  Value* held = dict ? t.dictGetName(dict, name) : nullptr;
  if (held && (v->kind == Kind::Instance || !t.isConstant(held))) refuse();
  if (v->kind == Kind::Instance && lookUp(t, t.typeOf(v), name)) refuse();
}

Value* createClass(Trace& t, PyTypeObject* meta, PyObject* name, const std::vector<Value*>& baseValues, DictValue* names, CallArgs keywords = {}) {
  std::vector<PyTypeObject*> bases = basesOf(t, baseValues);
  if (!inherits(t, meta, {"mro"})) unsupported(BreakReason::ClassStatement, std::string("a class of the metaclass ") + meta->tp_name);
  bool hooked = false;
  for (PyTypeObject* base : bases) {
    hooked = hooked || !hasPlainSubclassHook(t, base);
    // Code of C, or of a class of C code, that looks at the real class.
    if (hooked && (meta != &PyType_Type || !hasInstanceDict(base)))
      unsupported(BreakReason::ClassStatement, std::string("a subclass of ") + base->tp_name + ", which has an __init_subclass__");
  }
  if (!hooked && !keywords.kwargs.empty())
    for (PyTypeObject* base : bases)
      if (!isOfObject(t, base)) unsupported(BreakReason::ClassStatement, "a class statement with keywords");
  Namespace space = namespaceOf(t, names);
  ObjectRef dict = checked(PyDict_New());
  for (auto& [key, v] : space.entries) {
    ObjectRef held;
    if (meta == abcMeta()) checkAbstract(t, v);
    if (hooked && is(key, "__slots__")) unsupported(BreakReason::ClassStatement, "a class with slots below an __init_subclass__");
    if (setNameOf(t, v)) {
      held = ObjectRef::share(Py_None);
    } else if (isReadByType(key)) {
      PyObject* real = t.snapshot(v);
      if (!real) unsupported(BreakReason::ClassStatement, "a class with a computed " + std::string(PyUnicode_AsUTF8(key)));
      held = ObjectRef::share(real);
      if (!t.isConstant(v)) t.models[t.keep(held)] = v;
    } else {
      held = modelOf(t, v);
    }
    checkedStatus(PyDict_SetItem(dict.get(), key, held.get()));
  }
  ObjectRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(bases.size())));
  for (size_t i = 0; i < bases.size(); i++) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(bases[i]).release());
  // type.__new__ itself: what the metaclass does around it is traced. That of ABCMeta only adds to it.
  ObjectRef args = checked(PyTuple_Pack(3, name, tuple.get(), dict.get()));
  ObjectRef made = hooked ? makeQuietly(meta, name, tuple.get(), dict.get()) : ObjectRef();
  if (hooked && !made) unsupported(BreakReason::ClassStatement, "a class of this layout below an __init_subclass__");
  if (!made)
    made = native(
        t, meta == abcMeta() ? PyObject_Call(reinterpret_cast<PyObject*>(meta), args.get(), nullptr) : PyType_Type.tp_new(meta, args.get(), nullptr));
  PyObject* model = t.keep(made);
  auto record = std::make_unique<LocalClass>();
  record->hooked = hooked;
  record->meta = pinnedValue(t, reinterpret_cast<PyObject*>(meta));
  record->name = ObjectRef::share(name);
  record->bases = baseValues;
  for (auto& [key, v] : space.entries) record->entries.push_back({ObjectRef::share(key), v});
  Value* cls = t.make<RealValue>(made);
  t.models[model] = cls;
  t.localClasses[model] = std::move(record);
  for (auto& [key, v] : space.entries)
    if (setNameOf(t, v)) checkedStatus(PyType_Type.tp_setattro(model, key, modelOf(t, v).get()));
  if (space.cell) t.setCell(as<CellValue>(space.cell), cls);
  for (auto& [key, v] : space.entries)
    if (PyObject* setName = setNameOf(t, v)) {
      static PyObject* setNameName = named("__set_name__");
      try {
        call(t, bindDescriptor(t, setName, v, t.typeOf(v), setNameName), {{cls, t.realShared(key)}, {}});
      } catch (Raised& raised) {
        std::string text = std::string("Error calling __set_name__ on '") + t.typeOf(v)->tp_name + "' instance '" + PyUnicode_AsUTF8(key) + "' in '" +
                           PyUnicode_AsUTF8(name) + "'";
        if (!setNameErrorIsWrapped()) {
          call1(t, getAttr(t, raised.exception, "add_note"), t.real(checked(PyUnicode_FromString(text.c_str()))));
          throw;
        }
        raiseFrom(t, PyExc_RuntimeError, text, raised.exception);
      }
    }
  if (!hooked && !keywords.kwargs.empty())
    raise(t, PyExc_TypeError, std::string(PyUnicode_AsUTF8(name)) + ".__init_subclass__() takes no keyword arguments");
  if (hooked) {
    auto* type = reinterpret_cast<PyTypeObject*>(model);
    call(t, getAttr(t, t.make<SuperValue>(type, cls, type), "__init_subclass__"), std::move(keywords));
  }
  return cls;
}

// What stands for a base that is no class: what its __mro_entries__ gives.
std::vector<Value*> resolvedBases(Trace& t, const std::vector<Value*>& stated) {
  static PyObject* name = named("__mro_entries__");
  std::vector<Value*> bases;
  for (Value* v : stated) {
    Value* entries = isReal(v) && PyType_Check(realObject(v)) ? nullptr : getAttrOrNull(t, v, name);
    if (!entries) {
      bases.push_back(v);
      continue;
    }
    Value* given = call1(t, entries, t.tuple(stated));
    if (!PyType_FastSubclass(t.typeOf(given), Py_TPFLAGS_TUPLE_SUBCLASS)) raise(t, PyExc_TypeError, "__mro_entries__ must return a tuple");
    for (Value* base : itemsOf(t, given)) bases.push_back(base);
  }
  return bases;
}

}  // namespace

Value* makeClass(Trace& t, PyTypeObject* meta, Value* name, Value* bases, Value* names, CallArgs keywords) {
  PyObject* text = t.constant(name);
  // What is no str, tuple or dict, CPython names in its message.
  auto mustBe = [&](int number, const char* type, Value* v) {
    raise(t, PyExc_TypeError,
          std::string("type.__new__() argument ") + std::to_string(number) + " must be " + type + ", not " +
              (isReal(v, Py_None) ? "None" : t.typeOf(v)->tp_name));
  };
  if (!PyType_IsSubtype(t.typeOf(name), &PyUnicode_Type)) mustBe(1, "str", name);
  if (!PyType_FastSubclass(t.typeOf(bases), Py_TPFLAGS_TUPLE_SUBCLASS)) mustBe(2, "tuple", bases);
  if (!asDict(names)) mustBe(3, "dict", names);
  if (!text || !PyUnicode_Check(text)) unsupported(BreakReason::ClassStatement, "a class whose name is " + describe(name));
  std::vector<Value*> baseValues = itemsOf(t, bases);
  static PyObject* entriesName = named("__mro_entries__");
  for (Value* base : baseValues)
    if (!asClass(t, base) && getAttrOrNull(t, base, entriesName))
      raise(t, PyExc_TypeError, "type() doesn't support MRO entry resolution; use types.new_class()");
  PyTypeObject* winner = metaclassOf(t, meta, baseValues);
  if (winner != meta) unsupported(BreakReason::ClassStatement, std::string("a class of the metaclass ") + winner->tp_name);
  return createClass(t, meta, text, baseValues, asDict(names), std::move(keywords));
}

namespace {

// The metaclass must have handed the cell of __class__ on to type.__new__, once.
void checkClassCell(Trace& t, CellValue* cell, Value* name, Value* cls) {
  if (!isReal(cls) || !PyType_Check(realObject(cls))) return;
  Value* held = t.cellContents(cell);
  if (held == cls) return;
  auto shown = [&](Value* v) { return std::string(PyUnicode_AsUTF8(t.constant(repr(t, v)))); };
  std::string defining = " defining " + shown(name) + " as " + shown(cls);
  if (!held) raise(t, PyExc_RuntimeError, "__class__ not set" + defining + ". Was __classcell__ propagated to type.__new__?");
  raise(t, PyExc_TypeError, "__class__ set to " + shown(held) + defining);
}

}  // namespace

Value* buildClass(Trace& t, CallArgs& args) {
  Value* metaValue = args.takeKeyword("metaclass");
  if (args.args.size() < 2 || args.args[0]->kind != Kind::Function) unsupported(BreakReason::ClassStatement, "__build_class__ called by the program");
  auto* body = as<FunctionValue>(args.args[0]);
  PyObject* name = t.constant(args.args[1]);
  const std::vector<Value*> stated(args.args.begin() + 2, args.args.end());
  std::vector<Value*> baseValues = resolvedBases(t, stated);
  PyTypeObject* meta = &PyType_Type;
  if (metaValue)
    meta = asClass(t, metaValue);
  else if (!baseValues.empty())
    meta = asClass(t, baseValues[0]) ? Py_TYPE(realObject(baseValues[0])) : t.typeOf(baseValues[0]);
  // Null: any callable makes the class.
  if (meta) meta = metaclassOf(t, meta, baseValues);
  bool plain = meta && PyType_IsSubtype(meta, &PyType_Type) && isPlainMeta(t, meta);
  // Each draws a number from a counter that backends draw from too.
  static auto* functionMeta = reinterpret_cast<PyTypeObject*>(importedObject("torch.autograd.function", "FunctionMeta"));
  if (meta && PyType_IsSubtype(meta, functionMeta)) unsupported(BreakReason::ClassStatement, "a torch.autograd.Function made in the function");
  DictValue* names = t.dict();
  CallArgs given{{args.args[1], t.tuple(baseValues)}, args.kwargs};
  static PyObject* statedName = named("__orig_bases__");
  Value* metaclass = meta ? pinnedValue(t, reinterpret_cast<PyObject*>(meta)) : metaValue;
  static PyObject* prepare = named("__prepare__");
  bool isType = meta && PyType_IsSubtype(meta, &PyType_Type);
  Value* preparing = isType && inherits(t, meta, {"__prepare__"}) ? nullptr : getAttrOrNull(t, metaclass, prepare);
  if (preparing) {
    names = asDict(call(t, preparing, given));
    if (!names || names->real) unsupported(BreakReason::ClassStatement, "a class whose __prepare__ gives no new dict");
  }
  FrameState* f = newFrame(t, decode(reinterpret_cast<PyCodeObject*>(body->code)), body, body->globals, body->closure);
  f->names = names;
  runFrame(t, *f);
  Value* cell = f->result;
  t.recycleFrame(f);
  if (baseValues != stated) setItem(t, holderOf(names), t.realShared(statedName), t.tuple(stated));
  if (plain) return createClass(t, meta, name, baseValues, names, {{}, args.kwargs});
  given.args.push_back(holderOf(names));
  if (!cell || cell->kind != Kind::Cell) return call(t, metaclass, std::move(given));
  t.tail = ReturnTo::Native;
  Value* cls = call(t, metaclass, std::move(given));
  checkClassCell(t, as<CellValue>(cell), args.args[1], cls);
  return cls;
}

Value* doToClass(Trace& t, PyObject* function, CallArgs& args) {
  LocalClass* record = isReal(args.args.at(0)) ? t.localClass(realObject(args.args[0])) : nullptr;
  std::vector<PyObject*> values;
  for (Value* v : args.args) {
    if (!record || !isReal(v)) unsupported(BreakReason::ClassStatement, "a change of a class that exists, or with computed arguments");
    values.push_back(t.identity(v));
  }
  Value* result = t.real(native(t, PyObject_Vectorcall(function, values.data(), values.size(), nullptr)));
  LocalClass::Entry entry{ObjectRef{}, t.realShared(function)};
  entry.args.assign(args.args.begin() + 1, args.args.end());
  record->writes.push_back(std::move(entry));
  t.journal.onRollback([record] { record->writes.pop_back(); });
  return result;
}

Value* makeByFactory(Trace& t, PyObject* factory, CallArgs& args) {
  std::vector<PyObject*> constants;
  for (Value* v : args.args) constants.push_back(t.snapshot(v));
  ObjectRef names = checked(PyTuple_New(static_cast<Py_ssize_t>(args.kwargs.size())));
  for (size_t i = 0; i < args.kwargs.size(); i++) {
    constants.push_back(t.snapshot(args.kwargs[i].second));
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(args.kwargs[i].first).release());
  }
  for (PyObject* c : constants)
    if (!c) unsupported(BreakReason::ClassStatement, "a class made of computed values");
  ObjectRef made = native(t, PyObject_Vectorcall(factory, constants.data(), args.args.size(), names.get()));
  auto record = std::make_unique<LocalClass>();
  record->factory = t.realShared(factory);
  // As they are now: the program may change its lists later.
  auto asIs = [&](Value* v) { return v->kind == Kind::List || v->kind == Kind::Set ? t.list(itemsOf(t, v)) : v; };
  for (Value* v : args.args) record->args.push_back(asIs(v));
  for (auto& [name, v] : args.kwargs) record->keywords.push_back({ObjectRef::share(name), asIs(v)});
  PyObject* model = t.keep(made);
  Value* cls = t.make<RealValue>(made);
  t.models[model] = cls;
  t.localClasses[model] = std::move(record);
  return cls;
}

namespace {

// A decorator of CPython reads annotations, and whether defaults have a hash: what only stands for such a value must not be seen by it.
void refuseStandIn(Trace& t, PyObject* held) {
  auto found = Py_TYPE(held) == &PyBaseObject_Type ? t.models.find(held) : t.models.end();
  if (found != t.models.end() && t.typeOf(found->second)->tp_hash == PyObject_HashNotImplemented)
    unsupported(BreakReason::ClassStatement, "a decorator of a class with computed annotations or defaults");
}

void refuseStandIns(Trace& t, PyTypeObject* type) {
  PyObject *key, *held;
  for (Py_ssize_t at = 0; PyDict_Next(typeDict(type), &at, &key, &held);) {
    refuseStandIn(t, held);
    if (std::strcmp(Py_TYPE(held)->tp_name, "Field") != 0) continue;
    if (ObjectRef value = ObjectRef::steal(PyObject_GetAttrString(held, "default")))
      refuseStandIn(t, value.get());
    else
      PyErr_Clear();
  }
}

}  // namespace

void refuseComputedFields(Trace& t, PyObject* cls) {
  PyObject *key, *held;
  auto refuse = [&](PyObject* object) {
    auto found = object ? t.models.find(object) : t.models.end();
    if (found == t.models.end() || isReal(found->second, object)) return;
    auto* heap = dynamic_cast<HeapValue*>(found->second);
    if (!heap || heap->real.get() != object) unsupported(BreakReason::ClassStatement, "a dataclass with slots and computed defaults");
  };
  PyObject* hints = PyDict_GetItemString(typeDict(reinterpret_cast<PyTypeObject*>(cls)), "__annotations__");
  for (Py_ssize_t at = 0; PyDict_Next(typeDict(reinterpret_cast<PyTypeObject*>(cls)), &at, &key, &held);) {
    if (!hints || PyDict_Contains(hints, key) != 1) continue;
    if (std::strcmp(Py_TYPE(held)->tp_name, "Field") != 0) {
      refuse(held);
      continue;
    }
    for (const char* part : {"default", "default_factory"}) {
      ObjectRef value = ObjectRef::steal(PyObject_GetAttrString(held, part));
      if (!value) PyErr_Clear();
      refuse(value.get());
    }
    ObjectRef isArgument = ObjectRef::steal(PyObject_GetAttrString(held, "init"));
    if (!isArgument) PyErr_Clear();
    if (isArgument.get() == Py_False) unsupported(BreakReason::ClassStatement, "a dataclass with slots and a field that is no argument");
  }
}

Value* decorateClass(Trace& t, PyObject* decorator, CallArgs& args) {
  Value* cls = args.args.at(0);
  LocalClass* record = isReal(cls) ? t.localClass(realObject(cls)) : nullptr;
  if (!record) return nullptr;
  std::vector<PyObject*> values{realObject(cls)};
  for (size_t i = 1; i < args.args.size(); i++) {
    values.push_back(t.constant(args.args[i]));
    if (!values.back()) unsupported(BreakReason::ClassStatement, "a decorator of a class with computed arguments");
  }
  if (!args.kwargs.empty()) unsupported(BreakReason::ClassStatement, "a decorator of a class with keywords");
  refuseStandIns(t, reinterpret_cast<PyTypeObject*>(realObject(cls)));
  ObjectRef made = native(t, PyObject_Vectorcall(decorator, values.data(), values.size(), nullptr));
  if (made.get() != realObject(cls)) {
    // The model was changed all the same: no way back to it.
    unsupported(BreakReason::ClassStatement, "a decorator that gives another class");
  }
  // What it has put into the class is read as it is now.
  std::erase_if(t.models, [](auto& entry) { return std::strcmp(Py_TYPE(entry.first)->tp_name, "Field") == 0; });
  LocalClass::Entry entry{ObjectRef{}, t.realShared(decorator)};
  entry.args.assign(args.args.begin() + 1, args.args.end());
  record->writes.push_back(std::move(entry));
  // A rollback leaves a class that no instruction can reach: the whole statement is run again.
  t.journal.onRollback([record] { record->writes.pop_back(); });
  return cls;
}

namespace {

// The bases are these already.
bool hasBases(Trace& t, PyTypeObject* type, Value* value) {
  if (!PyType_FastSubclass(t.typeOf(value), Py_TPFLAGS_TUPLE_SUBCLASS)) return false;
  std::vector<Value*> items = itemsOf(t, value);
  bool same = static_cast<Py_ssize_t>(items.size()) == PyTuple_GET_SIZE(type->tp_bases);
  for (size_t i = 0; same && i < items.size(); i++) same = isReal(items[i], PyTuple_GET_ITEM(type->tp_bases, static_cast<Py_ssize_t>(i)));
  return same;
}

}  // namespace

void setClassAttr(Trace& t, PyTypeObject* type, PyObject* name, Value* value) {
  PyObject* onMeta = lookUp(t, Py_TYPE(type), name);
  auto* object = reinterpret_cast<PyObject*>(type);
  if (value && is(name, "__bases__") && hasBases(t, type, value)) return;
  const bool text =
      value && (is(name, "__qualname__") || is(name, "__name__") || is(name, "__module__") || is(name, "__doc__")) && t.isConstant(value);
  const bool kept = text || is(name, "__annotations__");  // a setter of type that puts it into the class
  if (onMeta && Py_TYPE(onMeta)->tp_descr_set && !kept)
    unsupported(BreakReason::AttributeWrite, std::string("setting '") + PyUnicode_AsUTF8(name) + "' of a class");
  LocalClass* record = t.localClass(object);
  ObjectRef before = text ? checked(PyObject_GetAttr(object, name)) : ObjectRef::share(PyDict_GetItemWithError(typeDict(type), name));
  ObjectRef held = text ? ObjectRef::share(t.constant(value)) : value ? modelOf(t, value) : ObjectRef{};
  if (PyType_Type.tp_setattro(object, name, held.get()) < 0) raiseCurrent(t);
  record->writes.push_back({ObjectRef::share(name), value});
  t.writes++;
  t.journal.onRollback([record, object, before, attribute = ObjectRef::share(name)] {
    record->writes.pop_back();
    if (PyType_Type.tp_setattro(object, attribute.get(), before.get()) < 0) PyErr_Clear();
  });
}

namespace {

// A static method, a property and their like hold functions of their class.
void addHeld(PyObject* object, std::unordered_set<PyObject*>& all) {
  all.insert(object);
  if (PyFunction_Check(object) || PyType_Check(object) || !Py_TYPE(object)->tp_traverse || !Py_TYPE(object)->tp_descr_get) return;
  Py_TYPE(object)->tp_traverse(
      object,
      [](PyObject* inner, void* to) {
        if (PyFunction_Check(inner)) static_cast<std::unordered_set<PyObject*>*>(to)->insert(inner);
        return 0;
      },
      &all);
}

}  // namespace

std::unordered_set<PyObject*> objectsOfModels(const Trace& t) {
  std::unordered_set<PyObject*> all;
  for (const auto& [model, record] : t.localClasses) {
    all.insert(model);
    PyObject *key = nullptr, *held = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(typeDict(reinterpret_cast<PyTypeObject*>(model)), &at, &key, &held);) addHeld(held, all);
  }
  for (const auto& [object, value] : t.models)
    if (!value->source) all.insert(object);
  return all;
}

}  // namespace cdynamo
