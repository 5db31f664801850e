#include "values/trace.h"

#include <cstring>

#include "base/exceptions.h"
#include "cpython/classes.h"
#include "cpython/compat.h"
#include "cpython/iterators.h"
#include "guards/mortals.h"
#include "interp/frame.h"
#include "torch/bridge.h"
#include "torch/types.h"
#include "values/namespaces.h"

namespace cdynamo {

void unsupported(BreakReason reason, std::string what) { throw Unsupported{reason, std::move(what)}; }

Trace::Trace(std::vector<std::string> localNames, PyObject* rootGlobals) : sources(std::move(localNames), rootGlobals) {
  facts.followPlace(&place);
  none_ = make<RealValue>(ObjectRef::share(Py_None));
  true_ = make<RealValue>(ObjectRef::share(Py_True));
  false_ = make<RealValue>(ObjectRef::share(Py_False));
  unbound_ = make<UnboundValue>();
}

namespace {

// Best effort: what the traced program entered is left, whatever happens.
void leave(PyObject* exit, PyObject* mode) {
  if (!exit) return;
  ObjectRef done = ObjectRef::steal(PyObject_CallOneArg(exit, mode));
  if (!done) PyErr_Clear();
}

}  // namespace

Trace::~Trace() {
  while (!entered_.empty()) {
    leave(entered_.back().exit.get(), entered_.back().mode.get());
    entered_.pop_back();
  }
  // Models die when the collector finds them: until then nobody is to meet them.
  for (auto& [model, record] : localClasses) hideFromBases(reinterpret_cast<PyTypeObject*>(model));
}

void Trace::enterState(InstanceValue* manager, ObjectRef mode, ObjectRef exit, Node* node, bool gradBefore) {
  entered_.push_back({manager, std::move(mode), std::move(exit), node, gradBefore});
  journal.onRollback([this] {
    leave(entered_.back().exit.get(), entered_.back().mode.get());
    entered_.pop_back();
  });
}

bool Trace::leaveState(InstanceValue* manager, Node*& node) {
  if (entered_.empty() || entered_.back().manager != manager) return false;
  node = entered_.back().node;
  EnteredState left = std::move(entered_.back());
  entered_.pop_back();
  leave(left.exit.get(), left.mode.get());
  journal.onRollback([this, left] {
    ObjectRef again = ObjectRef::steal(left.mode ? PyObject_CallMethod(left.mode.get(), "__enter__", nullptr) : nullptr);
    if (!again) PyErr_Clear();
    entered_.push_back(left);
  });
  return true;
}

DictValue* Trace::exceptionAttributes(PyObject* exception) {
  DictValue*& attributes = exceptionAttributes_[exception];
  if (!attributes) attributes = dict();
  return attributes;
}

Node* Trace::record(const SettingCall& call) {
  std::vector<Arg> operands;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(call.args.get()); i++) {
    operands.emplace_back();
    operands.back().object = ObjectRef::share(PyTuple_GET_ITEM(call.args.get(), i));
  }
  std::vector<std::pair<ObjectRef, Arg>> keywords;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; call.kwargs && PyDict_Next(call.kwargs.get(), &at, &name, &value);) {
    Arg arg;
    arg.object = ObjectRef::share(value);
    keywords.emplace_back(ObjectRef::share(name), std::move(arg));
  }
  Node* node = graph.add(NodeOp::CallFunction, call.function, std::move(operands), std::move(keywords));
  node->place = place;
  node->switchesMode = true;
  return node;
}

void Trace::rollBack(const Checkpoint& to) {
  journal.rollBack(to.journal);
  facts.truncate(to.facts);
  graph.truncate(to.nodes);
}

Value* Trace::real(ObjectRef object) {
  if (object.get() == Py_None) return none_;
  if (object.get() == Py_True) return true_;
  if (object.get() == Py_False) return false_;
  if (!models.empty())
    if (auto found = models.find(object.get()); found != models.end()) return found->second;
  return make<RealValue>(std::move(object));
}

TupleValue* Trace::tuple(std::vector<Value*> items, PyTypeObject* type) {
  auto* made = make<TupleValue>();
  made->items = std::move(items);
  made->type = type;
  return made;
}

ListValue* Trace::list(std::vector<Value*> items) {
  auto* made = make<ListValue>();
  made->items = std::move(items);
  made->type = &PyList_Type;
  return made;
}

DictValue* Trace::dict() {
  auto* made = make<DictValue>();
  made->type = &PyDict_Type;
  return made;
}

PyObject* Trace::keep(ObjectRef object) {
  PyObject* borrowed = object.get();
  kept_.push_back(std::move(object));
  return borrowed;
}

TracePlace* Trace::makePlace() {
  places_.push_back(std::make_unique<TracePlace>());
  return places_.back().get();
}

namespace {

// Immutable builtin values that CPython can work on by itself.
bool isPlainConstantType(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBool_Type || type == Py_TYPE(Py_None) ||
         type == &PyBytes_Type || type == &PyComplex_Type || type == Py_TYPE(Py_Ellipsis) || type == Py_TYPE(Py_NotImplemented) ||
         type == &PyRange_Type || isTorchConstantType(type) || isNumpyScalarType(type);
}

bool isConstantTree(PyObject* object) {
  if (isPlainConstantType(Py_TYPE(object))) return true;
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
      if (!isConstantTree(PyTuple_GET_ITEM(object, i))) return false;
    return true;
  }
  if (PySlice_Check(object)) {
    auto* s = reinterpret_cast<PySliceObject*>(object);
    return isConstantTree(s->start) && isConstantTree(s->stop) && isConstantTree(s->step);
  }
  if (PyFrozenSet_CheckExact(object)) {
    ObjectRef items = checked(PySequence_Tuple(object));
    return isConstantTree(items.get());
  }
  return false;
}

// Enums made by pybind11: SDPBackend, ProfilerActivity.
bool isPybindEnum(PyTypeObject* type) {
  return std::strcmp(Py_TYPE(type)->tp_name, "pybind11_type") == 0 && PyDict_GetItemString(typeDict(type), "__entries") != nullptr;
}

// Objects that are constants by identity: their own operators are C code without effects.
bool isIdentityConstantType(PyTypeObject* type) {
  return type == &PyFunction_Type || type == &PyCFunction_Type || PyType_FastSubclass(type, Py_TPFLAGS_TYPE_SUBCLASS) || type == &PyModule_Type ||
         type == &PyCode_Type || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyGetSetDescr_Type ||
         type == &PyMemberDescr_Type || type == &PyClassMethodDescr_Type || type == &Py_GenericAliasType || PyType_IsSubtype(type, &PyModule_Type) ||
         isTorchOperatorType(type) || std::strcmp(type->tp_name, "functools._lru_cache_wrapper") == 0 ||
         std::strcmp(type->tp_name, "re.Pattern") == 0 || isPybindEnum(type) || isNumpyDtypeType(type);
}

// Attributes are found by C code of the type's own (threading.local), not in a dictionary of the instance.
bool readsAttributesInC(PyTypeObject* type) {
  static PyObject* name = PyUnicode_InternFromString("__getattribute__");
  PyObject* found = typeLookup(type, name);
  return found && Py_TYPE(found) == &PyWrapperDescr_Type &&
         reinterpret_cast<PyWrapperDescrObject*>(found)->d_wrapped != reinterpret_cast<void*>(PyObject_GenericGetAttr);
}

PyObject* fieldsName() {
  static PyObject* name = PyUnicode_InternFromString("_fields");
  return name;
}

}  // namespace

Value* Trace::twinOf(PyObject* object, const Source* source) {
  auto found = twins_.find(object);
  if (found == twins_.end()) return nullptr;
  Value* twin = found->second;
  if (!twin->source || !source || twin->source == source) return twin;
  // Guards name the keys of a dict or set by what is in them. That it is this very tuple could only be said by keeping it.
  if ((source->kind == SourceKind::Pinned || twin->source->kind == SourceKind::Pinned) && Mortals::keepsAlive(object))
    unsupported(BreakReason::HashOrCompare, "a tuple with objects in it, which is a key and also held elsewhere");
  facts.sameObject(source, twin->source);
  return twin;
}

HeapValue* Trace::knownTwin(PyObject* object) const {
  auto found = twins_.find(object);
  return found == twins_.end() || found->second->kind == Kind::Tensor ? nullptr : static_cast<HeapValue*>(found->second);
}

Value* Trace::wrap(PyObject* object, const Source* source) {
  if (!models.empty())
    if (auto found = models.find(object); found != models.end()) return found->second;
  auto known = bySource_.find(source);
  if (known != bySource_.end()) {
    bool same = known->second->kind == Kind::Real ? realObject(known->second) == object : true;
    if (same) return known->second;
  }
  PyTypeObject* type = Py_TYPE(object);
  if (source && source->kind == SourceKind::InstanceDict && type != &PyDict_Type)
    unsupported(BreakReason::UnsupportedAttribute, std::string("an object whose __dict__ is a ") + type->tp_name);
  Value* made = nullptr;
  auto remember = [&](Value* v) {
    v->source = source;
    bySource_[source] = v;
    return v;
  };
  if (isPlainConstantType(type) || isIdentityConstantType(type)) {
    auto* v = make<RealValue>(ObjectRef::share(object));
    v->open = (type == &PyLong_Type || type == &PyFloat_Type) && startsOpen(object, source);
    return remember(v);
  }
  if (Value* twin = twinOf(object, source)) {
    bySource_[source] = twin;
    return twin;
  }
  if (isTensor(object)) {
    auto* t = make<TensorValue>();
    t->type = type;
    t->real = keep(ObjectRef::share(object));
    keep(ObjectRef::share(type));
    if (!readTensorMeta(object, t->meta)) {
      // Left as a real object: it can be passed through, not computed with.
      return remember(make<RealValue>(ObjectRef::share(object)));
    }
    inputTensors_.push_back(t);
    made = t;
  } else {
    HeapValue* heap = nullptr;
    if (type == &PyList_Type || type == dequeType()) {
      auto* v = make<ListValue>();
      v->loaded = false;
      heap = v;
    } else if (PyTuple_Check(object) && (type->tp_dictoffset == 0 || typeLookup(type, fieldsName()))) {
      auto* v = make<TupleValue>();
      v->loaded = false;
      heap = v;
    } else if (type == &PyDict_Type || type == &PyODict_Type || std::strcmp(type->tp_name, "collections.defaultdict") == 0) {
      auto* v = make<DictValue>();
      v->complete = false;
      heap = v;
    } else if (type == &PySet_Type || type == &PyFrozenSet_Type) {
      auto* v = make<SetValue>();
      v->loaded = false;
      heap = v;
    } else if (type == &PyCell_Type) {
      auto* v = make<CellValue>();
      v->loaded = false;
      heap = v;
    } else if (const IteratorShape shape = iteratorShape(type); shape == kIteratorGenerator) {
      heap = make<GeneratorValue>();
    } else if (shape != kIteratorUnknown) {
      heap = make<IteratorValue>(IteratorValue::Existing);
    } else if (type == namespaceType() ||
               (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyExceptionInstance_Check(object) && !readsAttributesInC(type))) {
      auto* v = make<InstanceValue>();
      if (PyDict_Check(object)) {
        auto* c = make<DictValue>();
        c->complete = false;
        v->contents = c;
      } else if (PyList_Check(object)) {
        auto* c = make<ListValue>();
        c->loaded = false;
        v->contents = c;
      } else if (PyTuple_Check(object)) {
        auto* c = make<TupleValue>();
        c->loaded = false;
        v->contents = c;
      } else if (PyAnySet_Check(object)) {
        auto* c = make<SetValue>();
        c->loaded = false;
        v->contents = c;
      }
      if (v->contents) {
        v->contents->real = ObjectRef::share(object);
        v->contents->type = type;
        v->contents->source = source;
        v->contents->holder = v;
      }
      heap = v;
    }
    if (heap == nullptr && type == ndarrayType())
      if (Value* array = wrapArray(object, source)) return remember(array);
    if (heap == nullptr) return remember(make<RealValue>(ObjectRef::share(object)));
    heap->real = ObjectRef::share(object);
    heap->type = type;
    made = heap;
  }
  twins_[object] = made;
  return remember(made);
}

Value* Trace::wrapArray(PyObject* object, const Source* source) {
  ObjectRef made = ObjectRef::steal(makeArrayTensor(object));
  TensorMeta meta;
  if (!made || !readTensorMeta(made.get(), meta)) return nullptr;
  auto* tensor = make<TensorValue>();
  tensor->type = tensorType();
  tensor->real = keep(std::move(made));
  tensor->meta = meta;
  tensor->source = sources.arrayTensor(source);
  inputTensors_.push_back(tensor);
  auto* array = make<ArrayValue>(tensor);
  array->real = keep(ObjectRef::share(object));
  array->type = ndarrayType();
  twins_[object] = array;
  return array;
}

PyTypeObject* Trace::typeOf(Value* v) {
  switch (v->kind) {
    case Kind::Real: {
      PyObject* object = realObject(v);
      if (v->source && v->source->kind != SourceKind::Arithmetic) facts.typeIs(v->source, Py_TYPE(object));
      return Py_TYPE(object);
    }
    case Kind::Tensor: {
      auto* t = as<TensorValue>(v);
      if (t->source && !t->observed) facts.typeIs(t->source, t->type);
      return t->type;
    }
    case Kind::BoundMethod: {
      Value* fn = as<BoundMethodValue>(v)->function;
      PyTypeObject* kind = isReal(fn) ? Py_TYPE(realObject(fn)) : nullptr;
      if (kind == &PyWrapperDescr_Type) return &_PyMethodWrapper_Type;
      return kind == &PyMethodDescr_Type || kind == &PyClassMethodDescr_Type ? &PyCFunction_Type : &PyMethod_Type;
    }
    case Kind::Slice: return &PySlice_Type;
    case Kind::Super: return &PySuper_Type;
    case Kind::Function: return &PyFunction_Type;
    case Kind::Property: return as<PropertyValue>(v)->type;
    case Kind::DictView: {
      auto what = as<DictViewValue>(v)->what;
      return what == DictViewValue::Keys ? &PyDictKeys_Type : what == DictViewValue::Values ? &PyDictValues_Type : &PyDictItems_Type;
    }
    case Kind::Number: return as<NumberValue>(v)->type;
    case Kind::Array: {
      auto* array = as<ArrayValue>(v);
      if (array->source) facts.typeIs(array->source, array->type);
      return array->type;
    }
    case Kind::Unbound: throw EngineError("type of an unbound local");
    default: {
      auto* h = static_cast<HeapValue*>(v);
      if (h->source) facts.typeIs(h->source, h->type);
      return h->type;
    }
  }
}

PyObject* Trace::constant(Value* v) {
  switch (v->kind) {
    case Kind::Instance: {
      // Members of IntEnum, StrEnum and their like are singletons that CPython can work on as on numbers and text.
      PyObject* object = as<InstanceValue>(v)->real.get();
      if (!object || !(PyLong_Check(object) || PyUnicode_Check(object) || PyFloat_Check(object)) || !isEnumMember(object)) return nullptr;
      if (v->source) facts.identityIs(v->source, object);
      return object;
    }
    case Kind::Real: {
      PyObject* object = realObject(v);
      PyTypeObject* type = Py_TYPE(object);
      if (v->source == nullptr) return type == &PyBaseObject_Type ? nullptr : object;  // object() is another one in every call
      if (v->source->kind == SourceKind::Arithmetic) {
        specialise(v->source);
        return object;
      }
      if (isPlainConstantType(type)) {
        if (object == Py_None || object == Py_True || object == Py_False)
          facts.identityIs(v->source, object);
        else
          facts.equalsConstant(v->source, object);
        return object;
      }
      if (isIdentityConstantType(type)) return identity(v);
      return nullptr;
    }
    case Kind::Tuple: {
      auto* t = as<TupleValue>(v);
      if (t->constant) return t->constant.get();
      if (t->real && t->source && !t->loaded && t->type == &PyTuple_Type && isConstantTree(t->real.get())) {
        facts.equalsConstant(t->source, t->real.get());
        t->constant = t->real;
        return t->constant.get();
      }
      load(t);
      std::vector<PyObject*> items;
      for (Value* item : t->items) {
        PyObject* c = isNumber(item) ? nullptr : constant(item);
        if (c == nullptr || localClass(c)) return nullptr;
        items.push_back(c);
      }
      if (t->real) return (t->constant = t->real).get();
      ObjectRef made = checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
      for (size_t i = 0; i < items.size(); i++) PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(items[i]).release());
      if (t->type != &PyTuple_Type) {
        if (localClass(t->type)) return nullptr;
        ObjectRef args = checked(PyTuple_Pack(1, made.get()));
        if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(t->type), "_make"))
          made = checked(PyTuple_Type.tp_new(t->type, args.get(), nullptr));
        else
          made = checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(t->type), made.get()));
      }
      t->constant = std::move(made);
      return t->constant.get();
    }
    case Kind::Slice: {
      auto* s = as<SliceValue>(v);
      PyObject *a = constant(s->start), *b = constant(s->stop), *c = constant(s->step);
      if (!a || !b || !c) return nullptr;
      return keep(checked(PySlice_New(a, b, c)));
    }
    case Kind::Set: {
      auto* s = as<SetValue>(v);
      if (s->type != &PyFrozenSet_Type) return nullptr;
      load(s);
      for (const DictKey& k : s->items)
        if (!k.constant) return nullptr;
      ObjectRef made = setLayout(s);
      return made ? keep(std::move(made)) : nullptr;
    }
    case Kind::Number:
      unsupported(BreakReason::NumberValue,
                  std::string("the value of ") + (as<NumberValue>(v)->earlyCall < 0 ? "a number of the graph" : "a random number"));
    default: return nullptr;
  }
}

PyObject* Trace::identity(Value* v) {
  PyObject* object = realObject(v);
  if (v->source == nullptr || v->source->kind == SourceKind::Pinned) return object;
  if (v->source->kind == SourceKind::Arithmetic) return constant(v);  // a new object in each call
  if (PyFunction_Check(object) && !(v->source->kind == SourceKind::DictItem && v->source->base->kind == SourceKind::Pinned)) {
    // The same code in a new function object is the same function to us.
    facts.functionIs(v->source, object);
    return object;
  }
  facts.identityIs(v->source, object);
  return object;
}

void Trace::observe(TensorValue* t) {
  if (t->observed || !t->source) return;
  facts.tensor(t->source, t->type, t->meta);
  journal.set(t->observed, true);
}

namespace {

// Marked by mark_static_address(x, guard=True).
bool hasFixedAddress(PyObject* tensor) {
  PyObject* dict = instanceDict(tensor);
  PyObject* kind = dict ? PyDict_GetItemString(dict, "_dynamo_static_input_type") : nullptr;
  return kind && PyUnicode_Check(kind) && PyUnicode_CompareWithASCIIString(kind, "guarded") == 0;
}

}  // namespace

Node* Trace::nodeOf(TensorValue* t) {
  if (t->node) return t->node;
  CD_CHECK(t->source != nullptr, "a tensor without node and source");
  observe(t);
  if (hasFixedAddress(t->real)) facts.identityIs(t->source, t->real);
  Node* node = graph.add(NodeOp::Placeholder, checked(PyUnicode_FromString(sources.name(t->source).c_str())), {}, {});
  node->source = t->source;
  node->example = t->real;
  node->result.kind = ResultMeta::Tensor;
  node->result.tensor = t->meta;
  node->place = place;
  journal.set(t->node, node);
  return node;
}

void Trace::noteTensorWrite(TensorValue* v) {
  checkLateReads(v);
  for (TensorValue* root = v; root; root = root->base) {
    if (!root->source || root->written) continue;
    journal.set(root->written, true);
    if (root->meta.requiresGrad && !writesWithGrad && gradEnabled()) journal.set(writesWithGrad, true);
    writtenTensors_.push_back(root);
    journal.onRollback([this] { writtenTensors_.pop_back(); });
  }
}

void raise(Trace& t, PyObject* type, const std::string& message) {
  ObjectRef text = checked(PyUnicode_FromString(message.c_str()));
  throw Raised{t.real(checked(PyObject_CallOneArg(type, text.get())))};
}

void raiseCurrent(Trace& t) {
  ObjectRef exception = takeException();
  if (!exception) throw EngineError("a CPython call failed without an exception");
  if (PyErr_GivenExceptionMatches(exception.get(), PyExc_MemoryError))
    unsupported(BreakReason::UnsupportedOperator, "an operation for which there is not enough memory");
  if (PyErr_GivenExceptionMatches(exception.get(), PyExc_KeyboardInterrupt)) {
    restoreException(exception.get());
    throw PythonError{};
  }
  // Where it was raised is for the trace to say.
  PyException_SetTraceback(exception.get(), Py_None);
  throw Raised{t.real(std::move(exception))};
}

}  // namespace cdynamo
