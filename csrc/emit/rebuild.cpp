#include "emit/rebuild.h"

#include "base/lookup.h"
#include "base/own_library.h"
#include "cpython/compat.h"
#include "emit/helpers.h"
#include "emit/late_calls.h"
#include "guards/mortals.h"
#include "interp/protocol.h"
#include "torch/types.h"
#include "values/namespaces.h"

namespace cdynamo {

namespace {

// Deeper nests of tuples, functions and iterators are refused; lists, dicts and instances may nest without limit.
constexpr int kMaxDepth = 1000;

CodeSpec specLike(PyCodeObject* like) {
  CodeSpec s = CodeSpec::named(like);
  for (const char* name : {"graph_inputs", "objects", "graph_outputs"}) s.addLocal(checked(PyUnicode_InternFromString(name)).get());
  s.argcount = 2;
  return s;
}

PyObject* asObject(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }

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

int Rebuilder::outputOf(Node* node) {
  auto& outs = t.graph.outputs;
  for (size_t i = 0; i < outs.size(); i++)
    if (outs[i] == node) return static_cast<int>(i);
  outs.push_back(node);
  return static_cast<int>(outs.size() - 1);
}

void Rebuilder::refuse(Value* v, const char* why) { unsupported(BreakReason::Unreconstructable, "returning or keeping " + describe(v) + why); }

// ---- temporaries -----------------------------------------------------------------------------------------------------

int Rebuilder::newTemp() {
  std::string text = "tmp_" + std::to_string(temps_.size() + freshTemps_.size());
  return a.spec().addLocal(name(text.c_str()));
}

void Rebuilder::storeTemp(Value* v) {
  int slot = newTemp();
  temps_[v] = slot;
  a.copyTop();
  a.storeFast(slot);
}

void Rebuilder::loadTemp(Value* v) { a.loadFast(temps_.at(v)); }

bool Rebuilder::isLeaf(Value* v) const {
  if (v->kind == Kind::Number) return true;
  if (v->kind == Kind::Real) return !isMadeAnew(realObject(v)) && !PyTraceBack_Check(realObject(v)) && !t.localClass(realObject(v));
  if (v->kind == Kind::Tensor) return as<TensorValue>(v)->attrs.empty() && as<TensorValue>(v)->type == tensorType();
  auto* heap = dynamic_cast<HeapValue*>(v);
  return heap && heap->real;
}

void Rebuilder::loadObject(const Source* s) {
  if (s->kind == SourceKind::Pinned && (s->owned() || !Mortals::canDie(s->object))) return a.loadConst(s->object);
  auto [place, added] = objectAt_.emplace(s, objects.size());
  if (added) objects.push_back(s);
  a.loadFast(kObjects);
  a.loadConst(number(static_cast<long long>(place->second)));
  a.binarySubscr();
}

bool Rebuilder::loadKnown(Value* v) {
  if (v->source) return loadObject(v->source), true;
  if (v->kind == Kind::Real) {
    auto found = freshTemps_.find(realObject(v));
    if (found != freshTemps_.end()) return a.loadFast(found->second), true;
    if (!isLeaf(v)) return false;
    a.loadConst(realObject(v));
    return true;
  }
  if (temps_.count(v)) return loadTemp(v), true;
  auto* heap = dynamic_cast<HeapValue*>(v);
  if (!heap || !heap->real) return false;
  a.loadConst(heap->real.get());
  return true;
}

// ---- making and filling ----------------------------------------------------------------------------------------------

void Rebuilder::load(Value* v) {
  if (!loadKnown(v)) {
    if (++depth_ > kMaxDepth) refuse(v, ", which is nested too deeply");
    if (!making_.insert(v).second) refuse(v, ", which holds itself");
    make(v);
    making_.erase(v);
    depth_--;
  }
  if (depth_ == 0) fillAll();
}

void Rebuilder::loadList(const std::vector<Value*>& items) {
  constexpr size_t kPiece = 64;
  if (items.size() <= kPiece) {
    loadAll(items);
    return a.buildList(static_cast<int>(items.size()));
  }
  a.buildList(0);
  for (size_t at = 0; at < items.size(); at += kPiece) {
    auto begin = items.begin() + static_cast<ptrdiff_t>(at);
    std::vector<Value*> piece(begin, begin + static_cast<ptrdiff_t>(std::min(kPiece, items.size() - at)));
    loadAll(piece);
    a.buildList(static_cast<int>(piece.size()));
    a.emit(Op::ListExtend, 1);
  }
}

void Rebuilder::loadTuple(const std::vector<Value*>& items) {
  if (items.size() <= 64) {
    loadAll(items);
    return a.buildTuple(static_cast<int>(items.size()));
  }
  loadList(items);
  a.emit(Op::ListToTuple, 0);
}

void Rebuilder::loadAll(const std::vector<Value*>& items) {
  for (Value* v : items) load(v);
}

void Rebuilder::fillAll() {
  depth_++;
  while (!fills_.empty()) {
    auto fill = std::move(fills_.front());
    fills_.pop_front();
    fill();
  }
  depth_--;
}

void Rebuilder::make(Value* v) {
  switch (v->kind) {
    case Kind::Real: return makeReal(v);
    case Kind::Tensor: {
      auto* tensor = as<TensorValue>(v);
      if (tensor->type != tensorType()) a.loadConst(attributeOf(*tensorType(), "as_subclass"));
      if (tensor->node->op == NodeOp::Placeholder && tensor->node->source) {
        loadObject(tensor->node->source);
      } else {
        a.loadFast(kOutputs);
        a.loadConst(number(outputOf(tensor->node)));
        a.binarySubscr();
      }
      if (tensor->type != tensorType()) {
        loadType(tensor->type);
        a.call(2);
      }
      storeTemp(v);
      if (tensor->attrs.empty()) return;
      return later([this, tensor] {
        for (auto& [key, value] : tensor->attrs) {
          load(value);
          load(tensor);
          a.storeAttr(key.get());
        }
      });
    }
    case Kind::List: return makeList(as<ListValue>(v));
    case Kind::Tuple: return makeTuple(as<TupleValue>(v), as<TupleValue>(v)->type);
    case Kind::Dict: return makeDict(as<DictValue>(v));
    case Kind::Set: return makeSet(as<SetValue>(v));
    case Kind::Slice: {
      auto* s = as<SliceValue>(v);
      loadAll({s->start, s->stop, s->step});
      a.buildSlice(3);
      return storeTemp(v);
    }
    case Kind::Cell: {
      a.loadConst(asObject(&PyCell_Type));
      a.call(0);
      storeTemp(v);
      auto* cell = as<CellValue>(v);
      if (!cell->contents) return;
      return later([this, cell] {
        load(cell->contents);
        load(cell);
        a.storeAttr("cell_contents");
      });
    }
    case Kind::Function: return makeFunction(as<FunctionValue>(v));
    case Kind::BoundMethod: return makeBoundMethod(as<BoundMethodValue>(v));
    case Kind::Instance: return makeInstance(as<InstanceValue>(v));
    case Kind::DictView: {
      auto* view = as<DictViewValue>(v);
      auto* d = as<DictValue>(view->owner);
      PyTypeObject& base = PyType_IsSubtype(d->type, &PyODict_Type) ? PyODict_Type : PyDict_Type;
      a.loadConst(attributeOf(base, view->what == DictViewValue::Keys ? "keys" : view->what == DictViewValue::Values ? "values" : "items"));
      load(holderOf(d));
      a.call(1);
      return storeTemp(v);
    }
    case Kind::Super: {
      auto* s = as<SuperValue>(v);
      a.loadConst(asObject(&PySuper_Type));
      loadType(s->thisClass);
      if (s->self) load(s->self);
      a.call(s->self ? 2 : 1);
      return storeTemp(v);
    }
    case Kind::Property: {
      auto* p = as<PropertyValue>(v);
      a.loadConst(asObject(p->type));
      if (p->type == &PyProperty_Type) {
        for (Value* part : {p->get, p->set, p->del, p->doc}) load(part ? part : t.none());
        a.call(4);
      } else {
        load(p->get);
        a.call(1);
      }
      return storeTemp(v);
    }
    case Kind::Number: {
      auto* number = as<NumberValue>(v);
      if (number->earlyCall >= 0) {
        a.loadFast(earlySlots[static_cast<size_t>(number->earlyCall)]);
      } else {
        a.loadFast(kOutputs);
        a.loadConst(this->number(outputOf(number->node)));
        a.binarySubscr();
      }
      return storeTemp(v);
    }
    case Kind::Array: {
      auto* array = as<ArrayValue>(v);
      a.loadConst(importedObject("cdynamo._numpy", array->type == ndarrayType() ? "to_array" : "to_scalar"));
      load(array->tensor);
      a.call(1);
      return storeTemp(v);
    }
    case Kind::Iterator: return makeIterator(as<IteratorValue>(v));
    case Kind::Generator: return makeGenerator(as<GeneratorValue>(v));
    case Kind::Unbound: refuse(v);
  }
}

void Rebuilder::makeReal(Value* v) {
  PyObject* object = realObject(v);
  if (PyTraceBack_Check(object)) return makeTraceback(v);
  if (t.localClass(object)) return makeClass(v);
  if (PyExceptionInstance_Check(object)) return makeRealException(v);
  a.loadConst(asObject(&PyBaseObject_Type));
  a.call(0);
  int slot = newTemp();
  freshTemps_[object] = slot;
  a.copyTop();
  a.storeFast(slot);
}

// ---- containers ------------------------------------------------------------------------------------------------------

void Rebuilder::makeList(ListValue* l) {
  bool built = true;
  for (Value* v : l->items) built = built && isBuilt(v);
  if (l->type == &PyList_Type && built) {
    loadList(l->items);
    return storeTemp(l);
  }
  if (l->type == &PyList_Type) {
    a.buildList(0);
  } else {
    a.loadConst(asObject(l->type));
    if (l->maxlen >= 0) {
      a.buildList(0);
      a.loadConst(number(l->maxlen));
    }
    a.call(l->maxlen >= 0 ? 2 : 0);
  }
  storeTemp(l);
  if (!l->items.empty()) later([this, l] { fillContents(l, l, l->type); });
}

void Rebuilder::makeTuple(TupleValue* v, PyTypeObject* type) {
  bool python = type != &PyTuple_Type && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && attributeOf(*type, "__new__") != nullptr;
  if (python) python = PyObject_HasAttrString(asObject(type), "_make") != 0;
  if (python) a.loadConst(attributeOf(PyTuple_Type, "__new__"));
  if (type != &PyTuple_Type) loadType(type);
  loadTuple(v->items);
  if (type != &PyTuple_Type) a.call(python ? 2 : 1);
  storeTemp(v);
}

void Rebuilder::makeDict(DictValue* d) {
  if (d->instance) {
    load(d->instance);
    a.loadAttr("__dict__");
    return storeTemp(d);
  }
  bool built = d->type == &PyDict_Type;
  int live = 0;
  for (const DictEntry& e : d->entries) {
    if (!e.value) continue;
    built = built && !e.key.asked && isBuilt(e.value) && isBuilt(e.key.value);
    live++;
  }
  if (built) {
    for (const DictEntry& e : d->entries)
      if (e.value) loadAll({e.key.value, e.value});
    a.buildMap(live);
    return storeTemp(d);
  }
  if (d->type == &PyDict_Type) {
    a.buildMap(0);
  } else {
    a.loadConst(asObject(d->type));
    if (d->defaultFactory) load(d->defaultFactory);
    a.call(d->defaultFactory ? 1 : 0);
  }
  storeTemp(d);
  PyTypeObject* base = PyType_IsSubtype(d->type, &PyODict_Type) ? &PyODict_Type : &PyDict_Type;
  if (!live && !d->attributes) return;
  later([this, d, base] {
    fillContents(d, d, base);
    if (!d->attributes) return;
    for (const DictEntry& e : d->attributes->entries)
      if (e.value) storeItem(d->attributes, d->attributes, e, &PyDict_Type);
  });
}

void Rebuilder::makeSet(SetValue* s) {
  for (const DictKey& k : s->items)
    if (k.effects) refuse(s, " with an item whose __hash__ has effects");
  if (s->start) {
    a.loadConst(copySetFunction());
    a.loadConst(s->start.get());
    a.call(1);
    storeTemp(s);
    if (!s->history.empty()) later([this, s] { replay(s, s); });
    return;
  }
  a.loadConst(asObject(s->type));
  bool frozen = s->type == &PyFrozenSet_Type;
  if (frozen) {
    for (const DictKey& k : s->items) completeKey(k);
    for (const DictKey& k : s->items) load(k.value);
    a.buildList(static_cast<int>(s->items.size()));
  }
  a.call(frozen ? 1 : 0);
  storeTemp(s);
  if (!frozen && !s->history.empty()) later([this, s] { replay(s, s); });
}

void Rebuilder::completeKey(const DictKey& k) {
  if (!k.asked) return;
  load(k.value);
  a.popTop();
  fillAll();
  writeBackKey(k.value);
}

// What the trace did to an existing key, and to what it holds, is done before its __hash__ looks.
void Rebuilder::writeBackKey(Value* v, int depth) {
  auto* i = v->kind == Kind::Instance ? as<InstanceValue>(v) : nullptr;
  if (!i || !i->real || depth > kMaxDepth) return;
  for (HeapValue* part : {static_cast<HeapValue*>(i), static_cast<HeapValue*>(i->dict)})
    if (part && part->real && part->mutated) writeBack(part);
  for (const auto& [slot, held] : i->slots)
    if (held) writeBackKey(held, depth + 1);
  if (!i->dict) return;
  for (size_t at = 0; at < i->dict->entries.size(); at++)
    if (Value* held = i->dict->entries[at].value) writeBackKey(held, depth + 1);
}

void Rebuilder::replay(Value* self, SetValue* s) {
  using Change = SetValue::Change;
  for (const Change& change : s->history) {
    if (change.key.effects) refuse(self, " with an item whose __hash__ has effects");
    completeKey(change.key);
  }
  for (size_t i = 0; i < s->history.size();) {
    const Change& first = s->history[i];
    if (first.what == Change::Call) {
      Py_ssize_t count = PyTuple_GET_SIZE(first.merged);
      a.loadConst(PyTuple_GET_ITEM(first.merged, 0));
      load(self);
      for (Py_ssize_t at = 1; at < count; at++) a.loadConst(PyTuple_GET_ITEM(first.merged, at));
      a.call(static_cast<int>(count));
      a.popTop();
      i++;
      continue;
    }
    // One by one: difference_update may make the table anew.
    a.loadConst(attributeOf(PySet_Type, first.what == Change::Discard ? "discard" : "update"));
    load(self);
    if (first.what == Change::Merge) {
      a.loadConst(first.merged);
      i++;
    } else if (first.what == Change::Discard) {
      load(first.key.value);
      i++;
    } else {
      int count = 0;
      for (; i < s->history.size() && s->history[i].what == Change::Add; i++, count++) load(s->history[i].key.value);
      a.buildList(count);
    }
    a.call(2);
    a.popTop();
  }
}

void Rebuilder::storeItem(Value* self, DictValue* d, const DictEntry& e, PyTypeObject* base) {
  completeKey(e.key);
  if (e.key.asked && base == &PyDict_Type && hasExactHash(t, e.key.value)) {
    // The program's own __hash__ was asked in the trace: it may say something else by now.
    a.loadConst(storeHashedFunction());
    loadAll({self, e.key.value, e.value});
    a.loadConst(number(e.key.hash));
    a.call(4);
    return a.popTop();
  }
  if (e.key.effects) refuse(d, " with a key whose __hash__ has effects");
  if (d->type == &PyDict_Type) {
    loadAll({e.value, self, e.key.value});
    return a.storeSubscr();
  }
  a.loadConst(attributeOf(*base, "__setitem__"));
  loadAll({self, e.key.value, e.value});
  a.call(3);
  a.popTop();
}

void Rebuilder::fillContents(Value* self, HeapValue* contents, PyTypeObject* base) {
  if (contents->kind == Kind::Set) return replay(self, as<SetValue>(contents));
  if (contents->kind == Kind::Dict) {
    for (const DictEntry& e : as<DictValue>(contents)->entries)
      if (e.value) storeItem(self, as<DictValue>(contents), e, base);
    return;
  }
  const std::vector<Value*>& items = as<ListValue>(contents)->items;
  if (items.empty()) return;
  a.loadConst(attributeOf(*base, "extend"));
  load(self);
  loadList(items);
  a.call(2);
  a.popTop();
}

// ---- functions -------------------------------------------------------------------------------------------------------

void Rebuilder::makeFunction(FunctionValue* fn) {
  if (makeKeyFunction(fn)) return;
  a.loadConst(asObject(&PyFunction_Type));
  a.loadConst(fn->code);
  a.loadConst(fn->globals);
  a.loadNone();
  a.loadNone();
  if (fn->closure) {
    auto cells = itemsOf(t, fn->closure);
    loadAll(cells);
    a.buildTuple(static_cast<int>(cells.size()));
  } else {
    a.loadNone();
  }
  a.call(5);
  storeTemp(fn);
  auto set = [this, fn](const char* attribute, Value* v) {
    if (!v) return;
    load(v);
    load(fn);
    a.storeAttr(attribute);
  };
  later([this, fn, set] {
    set("__defaults__", fn->defaults);
    set("__kwdefaults__", fn->kwdefaults);
    if (fn->annotations && fn->annotations->kind == Kind::Dict) set("__annotations__", fn->annotations);
    if (fn->annotations && fn->annotations->kind != Kind::Dict) {
      // As the compiler leaves them: name, value, name, value.
      auto flat = itemsOf(t, fn->annotations);
      loadAll(flat);
      a.buildMap(static_cast<int>(flat.size() / 2));
      load(fn);
      a.storeAttr("__annotations__");
    }
    for (DictValue* attributes : {fn->names, fn->dict})
      for (size_t i = 0; attributes && i < attributes->entries.size(); i++) {
        const DictEntry& e = attributes->entries[i];
        if (!e.value || !e.key.constant) continue;
        load(e.value);
        load(fn);
        a.storeAttr(e.key.constant);
      }
  });
}

void Rebuilder::makeBoundMethod(BoundMethodValue* m) {
  PyTypeObject* kind = isReal(m->function) ? Py_TYPE(realObject(m->function)) : nullptr;
  if ((kind == &PyWrapperDescr_Type || kind == &PyMethodDescr_Type) && isReal(m->self, Py_None)) {
    // None stands for no object where __get__ is called.
    load(m->self);
    a.loadAttr(PyUnicode_AsUTF8(reinterpret_cast<PyDescrObject*>(realObject(m->function))->d_name));
  } else if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type) {
    load(m->function);
    a.loadAttr("__get__");
    if (kind == &PyClassMethodDescr_Type) a.loadNone();
    load(m->self);
    if (kind != &PyClassMethodDescr_Type) {
      // The class is not left out: CPython 3.11 crashes without it for methods that ask for their class (METH_METHOD).
      a.loadConst(asObject(&PyType_Type));
      a.copyTop(2);
      a.call(1);
    }
    a.call(2);
  } else if (isReal(m->function) && PyFunction_Check(realObject(m->function)) &&
             isOwnLibrary(reinterpret_cast<PyFunctionObject*>(realObject(m->function))->func_globals, "__name__")) {
    // The object of the library has a method of that name.
    load(m->self);
    a.loadAttr(PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(realObject(m->function))->func_name));
  } else {
    a.loadConst(asObject(&PyMethod_Type));
    loadAll({m->function, m->self});
    a.call(2);
  }
  storeTemp(m);
}

void Rebuilder::makePartial(InstanceValue* i) {
  Value *fn = nullptr, *args = nullptr, *keywords = nullptr;
  for (auto& [slot, v] : i->slots) {
    if (PyUnicode_CompareWithASCIIString(slot.get(), "func") == 0) fn = v;
    if (PyUnicode_CompareWithASCIIString(slot.get(), "args") == 0) args = v;
    if (PyUnicode_CompareWithASCIIString(slot.get(), "keywords") == 0) keywords = v;
  }
  a.loadConst(asObject(i->type));
  // Callables of the library that do nothing yet: the parts come by the state, so that cycles close.
  a.loadConst(asObject(&PyBaseObject_Type));
  a.call(1);
  storeTemp(i);
  later([this, i, fn, args, keywords] {
    load(i);
    a.loadMethod("__setstate__");
    loadAll({fn, args, keywords});
    a.loadNone();
    a.buildTuple(4);
    a.call(1);
    a.popTop();
    if (!i->dict) return;
    for (const DictEntry& e : i->dict->entries)
      if (e.value && e.key.constant) setAttribute(i, e.key.constant, e.value);
  });
}

// ---- instances -------------------------------------------------------------------------------------------------------

void Rebuilder::makeInstance(InstanceValue* i) {
  if (i->lateText) {
    emitLateCall(a, *i->lateText, [&](Value* v) { load(v); });
    return storeTemp(i);
  }
  PyTypeObject* type = i->type;
  if (isOwnLibrary(typeDict(type), "__module__")) {
    if (makeStandIn(i)) return;
    refuse(i, ", for which no object of the library can be made");
  }
  if (type == partialType()) return makePartial(i);
  if (i->exceptionArgs) return makeException(i);
  PyTypeObject* base = i->core ? coreType(type) : PyType_IsSubtype(type, namespaceType()) ? namespaceType() : &PyBaseObject_Type;
  if (i->contents)
    base = i->contents->kind == Kind::List         ? &PyList_Type
           : i->contents->kind == Kind::Tuple      ? &PyTuple_Type
           : i->contents->kind == Kind::Set        ? (PyType_IsSubtype(type, &PyFrozenSet_Type) ? &PyFrozenSet_Type : &PySet_Type)
           : PyType_IsSubtype(type, &PyODict_Type) ? &PyODict_Type
                                                   : &PyDict_Type;
  a.loadConst(attributeOf(*base, "__new__"));
  loadType(type);
  bool immutable = i->contents && (i->contents->kind == Kind::Tuple || base == &PyFrozenSet_Type);
  if (immutable) {
    auto items = i->contents->kind == Kind::Tuple ? as<TupleValue>(i->contents)->items : unorderedItems(t, i->contents);
    if (i->contents->kind == Kind::Set)
      for (const DictKey& k : as<SetValue>(i->contents)->items) {
        if (k.effects) refuse(i, " with an item whose __hash__ has effects");
        completeKey(k);
      }
    loadAll(items);
    a.buildTuple(static_cast<int>(items.size()));
  }
  if (i->core) load(i->core);
  a.call(immutable || i->core ? 2 : 1);
  storeTemp(i);
  later([this, i, base, immutable] {
    if (i->contents && !immutable) fillContents(i, i->contents, base);
    fillAttributes(i);
  });
}

void Rebuilder::fillAttributes(InstanceValue* i) {
  if (i->dict) {
    for (const DictEntry& e : i->dict->entries) {
      if (!e.value) continue;
      PyObject* key = e.key.constant && PyUnicode_CheckExact(e.key.constant) ? e.key.constant : nullptr;
      PyObject* onType = key ? typeLookup(i->type, key) : nullptr;
      if (key && !(onType && Py_TYPE(onType)->tp_descr_set)) {
        setAttribute(i, key, e.value);
        continue;
      }
      load(e.value);
      a.loadConst(attributeOf(PyBaseObject_Type, "__getattribute__"));
      load(i);
      a.loadConst(name("__dict__"));
      a.call(2);
      load(e.key.value);
      a.storeSubscr();
    }
  }
  for (auto& [slot, v] : i->slots)
    if (v) setAttribute(i, slot.get(), v);
}

void Rebuilder::setAttribute(Value* self, PyObject* attribute, Value* v) {
  auto* heap = dynamic_cast<HeapValue*>(self);
  if (v && heap && heap->type && heap->type->tp_setattro == PyObject_GenericSetAttr) {
    loadAll({v, self});
    return a.storeAttr(attribute);
  }
  a.loadConst(attributeOf(PyBaseObject_Type, v ? "__setattr__" : "__delattr__"));
  load(self);
  a.loadConst(attribute);
  if (v) load(v);
  a.call(v ? 3 : 2);
  a.popTop();
}

}  // namespace cdynamo
