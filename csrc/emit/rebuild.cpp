#include "emit/rebuild.h"

#include "base/lookup.h"
#include "cpython/compat.h"
#include "emit/traceback.h"
#include "interp/frame.h"
#include "interp/protocol.h"
#include "torch/types.h"

namespace cdynamo {

PyTypeObject* partialType();

namespace {

CodeSpec specLike(PyCodeObject* like) {
  CodeSpec s;
  s.name = ObjectRef::share(like->co_name);
  s.qualname = ObjectRef::share(like->co_qualname);
  s.filename = ObjectRef::share(like->co_filename);
  s.firstLine = like->co_firstlineno;
  for (const char* name : {"graph_inputs", "objects", "graph_outputs"}) s.addLocal(checked(PyUnicode_InternFromString(name)).get());
  s.argcount = 2;
  return s;
}

}  // namespace

PyObject* attributeOf(PyTypeObject& type, const char* name) {
  ObjectRef key = checked(PyUnicode_InternFromString(name));
  PyObject* d = typeLookup(&type, key.get());
  CD_CHECK(d != nullptr, name);
  return d;
}

Rebuilder::Rebuilder(Trace& trace, PyCodeObject* like) : t(trace), a(specLike(like)) { a.setLine(like->co_firstlineno); }

PyObject* Rebuilder::number(long long n) { return keep(checked(PyLong_FromLongLong(n))); }
PyObject* Rebuilder::name(const char* text) { return keep(checked(PyUnicode_InternFromString(text))); }

PyObject* Rebuilder::builtin(const char* text) {
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), text);
  CD_CHECK(found != nullptr, text);
  return keep(ObjectRef::share(found));
}

int Rebuilder::outputOf(Node* node) {
  auto& outs = t.graph.outputs;
  for (size_t i = 0; i < outs.size(); i++)
    if (outs[i] == node) return static_cast<int>(i);
  outs.push_back(node);
  return static_cast<int>(outs.size() - 1);
}

// ---- temporaries: an object is built once ----
void Rebuilder::storeTemp(Value* v) {
  std::string text = "tmp_" + std::to_string(temps_.size());
  int slot = a.spec().addLocal(name(text.c_str()));
  temps_[v] = slot;
  a.copyTop();
  a.storeFast(slot);
}
bool Rebuilder::loadTemp(Value* v) {
  auto found = temps_.find(v);
  if (found == temps_.end()) return false;
  a.loadFast(found->second);
  return true;
}

void Rebuilder::loadObject(const Source* s) {
  if (s->kind == SourceKind::Pinned) return a.loadConst(s->object);
  size_t i = 0;
  while (i < objects.size() && objects[i] != s) i++;
  if (i == objects.size()) objects.push_back(s);
  a.loadFast(kObjects);
  a.loadConst(number(static_cast<long long>(i)));
  a.binarySubscr();
}

void Rebuilder::refuse(Value* v) { unsupported(BreakReason::Unreconstructable, "returning or keeping " + describe(v)); }

void Rebuilder::loadAll(const std::vector<Value*>& items) {
  for (Value* v : items) load(v);
}

void Rebuilder::load(Value* v) {
  if (++depth_ > 2000) refuse(v);
  loadValue(v);
  depth_--;
}

void Rebuilder::loadValue(Value* v) {
  if (v->source) return loadObject(v->source);
  if (loadTemp(v)) return;
  if (v->kind == Kind::Real) return loadReal(v);
  auto* heap = dynamic_cast<HeapValue*>(v);
  if (heap && heap->real) return a.loadConst(heap->real.get());
  switch (v->kind) {
    case Kind::Tensor: {
      auto* tensor = as<TensorValue>(v);
      if (tensor->type != tensorType()) refuse(v);
      a.loadFast(kOutputs);
      a.loadConst(number(outputOf(tensor->node)));
      a.binarySubscr();
      storeTemp(v);
      for (auto& [key, value] : tensor->attrs) {
        load(value);
        a.loadFast(temps_[v]);
        a.storeAttr(key.get());
      }
      return;
    }
    case Kind::List: {
      if (as<ListValue>(v)->type == dequeType()) {
        auto* d = as<ListValue>(v);
        a.loadConst(reinterpret_cast<PyObject*>(d->type));
        loadAll(d->items);
        a.buildList(static_cast<int>(d->items.size()));
        a.loadConst(d->maxlen < 0 ? Py_None : number(d->maxlen));
        a.call(2);
        storeTemp(v);
        return;
      }
      a.buildList(0);
      storeTemp(v);
      for (Value* item : as<ListValue>(v)->items) {
        load(item);
        a.emit(Op::ListAppend, 1);
      }
      return;
    }
    case Kind::Tuple: return loadTuple(as<TupleValue>(v));
    case Kind::Dict: return loadDict(as<DictValue>(v));
    case Kind::Set: {
      auto* s = as<SetValue>(v);
      a.loadConst(reinterpret_cast<PyObject*>(s->type));
      for (const DictKey& k : s->items) load(k.value);
      a.buildList(static_cast<int>(s->items.size()));
      a.call(1);
      storeTemp(v);
      return;
    }
    case Kind::Slice: {
      auto* s = as<SliceValue>(v);
      load(s->start);
      load(s->stop);
      load(s->step);
      a.buildSlice(3);
      return;
    }
    case Kind::Cell: {
      auto* c = as<CellValue>(v);
      a.loadConst(reinterpret_cast<PyObject*>(&PyCell_Type));
      a.call(0);
      storeTemp(v);
      if (c->contents) {
        load(c->contents);
        a.loadFast(temps_[v]);
        a.storeAttr("cell_contents");
      }
      return;
    }
    case Kind::Function: return loadFunction(as<FunctionValue>(v));
    case Kind::BoundMethod: {
      auto* m = as<BoundMethodValue>(v);
      if (isReal(m->function) && !PyFunction_Check(realObject(m->function))) {
        load(m->function);
        a.loadAttr("__get__");
        load(m->self);
        // The class is not left out: CPython 3.11 crashes without it for methods that ask for their class (METH_METHOD).
        a.loadConst(reinterpret_cast<PyObject*>(&PyType_Type));
        a.copyTop(2);
        a.call(1);
        a.call(2);
      } else {
        a.loadConst(reinterpret_cast<PyObject*>(&PyMethod_Type));
        load(m->function);
        load(m->self);
        a.call(2);
      }
      storeTemp(v);
      return;
    }
    case Kind::Instance: return loadInstance(as<InstanceValue>(v));
    case Kind::DictView: {
      auto* view = as<DictViewValue>(v);
      load(view->owner);
      a.loadMethod(view->what == DictViewValue::Keys ? "keys" : view->what == DictViewValue::Values ? "values" : "items");
      a.call(0);
      storeTemp(v);
      return;
    }
    case Kind::Super: {
      auto* s = as<SuperValue>(v);
      a.loadConst(reinterpret_cast<PyObject*>(&PySuper_Type));
      a.loadConst(reinterpret_cast<PyObject*>(s->thisClass));
      load(s->self);
      a.call(2);
      return;
    }
    case Kind::Iterator: return loadIterator(as<IteratorValue>(v));
    default: refuse(v);
  }
}

// A constant; but an object with an identity of its own that the trace made is made anew in every call.
void Rebuilder::loadReal(Value* v) {
  PyObject* object = realObject(v);
  if (PyTraceBack_Check(object)) refuse(v);
  if (Py_TYPE(object) == &PyBaseObject_Type) {
    a.loadConst(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
    a.call(0);
    return storeTemp(v);
  }
  if (!PyExceptionInstance_Check(object)) return a.loadConst(object);
  PyObject* dict = instanceDict(object);
  bool plain = !dict || PyDict_GET_SIZE(dict) == 0;
  for (auto get : {PyException_GetCause, PyException_GetContext}) plain &= !ObjectRef::steal(get(object));
  ObjectRef args = checked(PyObject_GetAttrString(object, "args"));
  if (!plain || PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) || PyErr_GivenExceptionMatches(object, PyExc_AttributeError) ||
      PyErr_GivenExceptionMatches(object, PyExc_NameError) || PyErr_GivenExceptionMatches(object, PyExc_ImportError))
    refuse(v);
  a.loadConst(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args.get()); i++) a.loadConst(keep(ObjectRef::share(PyTuple_GET_ITEM(args.get(), i))));
  a.call(static_cast<int>(PyTuple_GET_SIZE(args.get())));
  storeTemp(v);
  addTraceback(v);
}

void Rebuilder::addTraceback(Value* exception) {
  auto found = t.tracebacks.find(exception);
  if (found == t.tracebacks.end()) return;
  a.loadConst(tracebackAdder());
  a.loadFast(temps_[exception]);
  a.loadConst(keep(tracebackPlaces(found->second)));
  a.call(2);
  a.popTop();
}

void Rebuilder::loadTuple(TupleValue* v) {
  if (v->type == &PyTuple_Type) {
    loadAll(v->items);
    a.buildTuple(static_cast<int>(v->items.size()));
  } else if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(v->type), "_make")) {
    a.loadConst(attributeOf(PyTuple_Type, "__new__"));
    a.loadConst(reinterpret_cast<PyObject*>(v->type));
    loadAll(v->items);
    a.buildTuple(static_cast<int>(v->items.size()));
    a.call(2);
  } else {
    a.loadConst(reinterpret_cast<PyObject*>(v->type));
    loadAll(v->items);
    a.buildTuple(static_cast<int>(v->items.size()));
    a.call(1);
  }
  storeTemp(v);
}

void Rebuilder::loadDict(DictValue* d) {
  if (d->type == &PyDict_Type) {
    a.buildMap(0);
  } else {
    a.loadConst(reinterpret_cast<PyObject*>(d->type));
    if (d->defaultFactory) {
      load(d->defaultFactory);
      a.call(1);
    } else {
      a.call(0);
    }
  }
  storeTemp(d);
  for (const DictEntry& e : d->entries) {
    if (!e.value) continue;
    load(e.value);
    a.loadFast(temps_[d]);
    load(e.key.value);
    a.storeSubscr();
  }
}

void Rebuilder::loadFunction(FunctionValue* fn) {
  static PyTypeObject* functionType = &PyFunction_Type;
  a.loadConst(reinterpret_cast<PyObject*>(functionType));
  a.loadConst(fn->code);
  a.loadConst(fn->globals);
  a.loadNone();
  if (fn->defaults)
    load(fn->defaults);
  else
    a.loadNone();
  // A cell that holds the function itself must be known before it is filled: cells are made here, filled below.
  std::vector<CellValue*> late;
  if (fn->closure) {
    auto cells = itemsOf(t, fn->closure);
    for (Value* cell : cells) {
      if (cell->source || temps_.count(cell) || cell->kind != Kind::Cell || as<CellValue>(cell)->real) {
        load(cell);
        continue;
      }
      a.loadConst(reinterpret_cast<PyObject*>(&PyCell_Type));
      a.call(0);
      storeTemp(cell);
      late.push_back(as<CellValue>(cell));
    }
    a.buildTuple(static_cast<int>(cells.size()));
  } else {
    a.loadNone();
  }
  a.call(5);
  storeTemp(fn);
  for (CellValue* cell : late) {
    if (!cell->contents) continue;
    load(cell->contents);
    a.loadFast(temps_[cell]);
    a.storeAttr("cell_contents");
  }
  if (fn->kwdefaults) {
    load(fn->kwdefaults);
    a.loadFast(temps_[fn]);
    a.storeAttr("__kwdefaults__");
  }
  if (fn->dict)
    for (const DictEntry& e : fn->dict->entries) {
      if (!e.value || !e.key.constant) continue;
      load(e.value);
      a.loadFast(temps_[fn]);
      a.storeAttr(e.key.constant);
    }
}

void Rebuilder::loadInstance(InstanceValue* i) {
  PyTypeObject* type = i->type;
  PyObject* typeObject = reinterpret_cast<PyObject*>(type);
  PyObject* module = PyDict_GetItemString(typeDict(type), "__module__");
  // The stand-in for an object of the library must not be seen outside.
  if (module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "cdynamo.polyfills") == 0) refuse(i);
  if (type == partialType()) {
    Value *fn = nullptr, *args = nullptr, *keywords = nullptr;
    for (auto& [slot, v] : i->slots) {
      if (PyUnicode_CompareWithASCIIString(slot.get(), "func") == 0) fn = v;
      if (PyUnicode_CompareWithASCIIString(slot.get(), "args") == 0) args = v;
      if (PyUnicode_CompareWithASCIIString(slot.get(), "keywords") == 0) keywords = v;
    }
    a.loadConst(typeObject);
    load(fn);
    auto items = itemsOf(t, args);
    loadAll(items);
    a.buildTuple(static_cast<int>(items.size()) + 1);
    load(keywords);
    a.callFunctionEx(true);
    storeTemp(i);
    return;
  }
  if (i->exceptionArgs) {
    a.loadConst(attributeOf(*type, "__new__"));
    a.loadConst(typeObject);
    auto items = itemsOf(t, i->exceptionArgs);
    loadAll(items);
    a.call(static_cast<int>(items.size()) + 1);
    storeTemp(i);
    addTraceback(i);
  } else {
    PyTypeObject* base = &PyBaseObject_Type;
    if (i->contents)
      base = i->contents->kind == Kind::List         ? &PyList_Type
             : i->contents->kind == Kind::Tuple      ? &PyTuple_Type
             : i->contents->kind == Kind::Set        ? (PyType_IsSubtype(type, &PyFrozenSet_Type) ? &PyFrozenSet_Type : &PySet_Type)
             : PyType_IsSubtype(type, &PyODict_Type) ? &PyODict_Type
                                                     : &PyDict_Type;
    a.loadConst(attributeOf(*base, "__new__"));
    a.loadConst(typeObject);
    bool immutable = i->contents && (i->contents->kind == Kind::Tuple || base == &PyFrozenSet_Type);
    if (immutable) {
      auto items = i->contents->kind == Kind::Tuple ? as<TupleValue>(i->contents)->items : itemsOf(t, i->contents);
      loadAll(items);
      a.buildTuple(static_cast<int>(items.size()));
    }
    a.call(immutable ? 2 : 1);
    storeTemp(i);
    if (i->contents && !immutable) fillContents(i, i->contents, base);
  }
  if (i->dict) {
    for (const DictEntry& e : i->dict->entries) {
      if (!e.value) continue;
      load(e.value);
      a.loadFast(temps_[i]);
      a.loadAttr("__dict__");
      load(e.key.value);
      a.storeSubscr();
    }
  }
  for (auto& [slot, v] : i->slots) {
    if (!v) continue;
    setAttribute(i, slot.get(), v);
  }
}

void Rebuilder::setAttribute(Value* self, PyObject* attribute, Value* v) {
  a.loadConst(attributeOf(PyBaseObject_Type, v ? "__setattr__" : "__delattr__"));
  load(self);
  a.loadConst(attribute);
  if (v) load(v);
  a.call(v ? 3 : 2);
  a.popTop();
}

void Rebuilder::fillContents(Value* self, HeapValue* contents, PyTypeObject* base) {
  if (contents->kind == Kind::Dict) {
    for (const DictEntry& e : as<DictValue>(contents)->entries) {
      if (!e.value) continue;
      a.loadConst(attributeOf(*base, "__setitem__"));
      load(self);
      load(e.key.value);
      load(e.value);
      a.call(3);
      a.popTop();
    }
    return;
  }
  bool list = contents->kind == Kind::List;
  std::vector<Value*> items;
  if (list)
    items = as<ListValue>(contents)->items;
  else
    for (const DictKey& k : as<SetValue>(contents)->items) items.push_back(k.value);
  a.loadConst(attributeOf(*base, list ? "extend" : "update"));
  load(self);
  loadAll(items);
  a.buildList(static_cast<int>(items.size()));
  a.call(2);
  a.popTop();
}

void Rebuilder::loadIterator(IteratorValue* it) {
  switch (it->what) {
    case IteratorValue::Sequence: {
      if (!it->inputs.empty() || (it->subject->kind == Kind::List && as<ListValue>(it->subject)->type != &PyList_Type)) refuse(it);
      if (it->subjectOf) {
        if (it->position != 0 || it->done) refuse(it);
        load(it->subjectOf);
        a.getIter();
        break;
      }
      if (it->done) {
        // Used up for good, whatever happens to the list.
        a.loadConst(builtin("iter"));
        it->subject->kind == Kind::List ? a.buildList(0) : a.buildTuple(0);
        a.call(1);
        storeTemp(it);
        a.popTop();
        a.loadConst(builtin("next"));
        a.loadFast(temps_[it]);
        a.loadNone();
        a.call(2);
        a.popTop();
        a.loadFast(temps_[it]);
        return;
      }
      load(it->subject);
      a.getIter();
      if (it->position == 0) break;
      storeTemp(it);
      a.loadMethod("__setstate__");
      a.loadConst(number(it->position));
      a.call(1);
      a.popTop();
      a.loadFast(temps_[it]);
      return;
    }
    case IteratorValue::Range:
      a.loadConst(reinterpret_cast<PyObject*>(&PyRange_Type));
      a.loadConst(number(it->position));
      a.loadConst(number(it->stop));
      a.loadConst(number(it->step));
      a.call(3);
      a.getIter();
      break;
    case IteratorValue::Zip:
    case IteratorValue::Map: {
      if (it->strict) refuse(it);
      a.loadConst(reinterpret_cast<PyObject*>(it->what == IteratorValue::Zip ? &PyZip_Type : &PyMap_Type));
      int extra = 0;
      if (it->what == IteratorValue::Map) {
        load(it->subject);
        extra = 1;
      }
      loadAll(it->inputs);
      a.call(static_cast<int>(it->inputs.size()) + extra);
      break;
    }
    case IteratorValue::Enumerate:
      a.loadConst(reinterpret_cast<PyObject*>(&PyEnum_Type));
      load(it->inputs[0]);
      a.loadConst(number(it->position));
      a.call(2);
      break;
    default: refuse(it);
  }
  storeTemp(it);
}

}  // namespace cdynamo
