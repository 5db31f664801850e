// Exceptions that the trace made: type, arguments, chain, attributes.
#include <algorithm>

#include "cpython/compat.h"
#include "emit/rebuild.h"
#include "emit/traceback.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

// The C type that a class of exceptions is built on.
PyTypeObject* cBase(PyTypeObject* type) {
  while (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) type = type->tp_base;
  return type;
}

// Whether __init__ sets more than __new__: fields beside the arguments, or these themselves (__new__ of MemoryError takes none).
bool hasFields(PyTypeObject* base) {
  return base->tp_basicsize != reinterpret_cast<PyTypeObject*>(PyExc_BaseException)->tp_basicsize ||
         base == reinterpret_cast<PyTypeObject*>(PyExc_MemoryError);
}

}  // namespace

void Rebuilder::makeException(InstanceValue* i) {
  PyTypeObject* base = cBase(i->type);
  auto args = itemsOf(t, i->exceptionArgs);
  a.loadConst(attributeOf(*base, "__new__"));
  loadType(i->type);
  loadAll(args);
  // A group looks at its members.
  if (PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup))) fillAll();
  a.call(static_cast<int>(args.size()) + 1);
  storeTemp(i);
  later([this, i, base, args] {
    addTraceback(i);
    if (hasFields(base)) {
      a.loadConst(attributeOf(*base, "__init__"));
      load(i);
      loadAll(args);
      a.call(static_cast<int>(args.size()) + 1);
      a.popTop();
    }
    auto slots = i->slots;
    auto is = [](PyObject* slot, const char* text) { return PyUnicode_CompareWithASCIIString(slot, text) == 0; };
    // Setting the cause suppresses the context: whether it is suppressed comes last.
    std::stable_partition(i->slots.begin(), i->slots.end(), [&](auto& entry) { return !is(entry.first.get(), "__suppress_context__"); });
    // The members of a group are there from the start.
    std::erase_if(i->slots, [&](auto& entry) { return is(entry.first.get(), "exceptions"); });
    fillAttributes(i);
    i->slots = std::move(slots);
  });
}

void Rebuilder::addTraceback(Value* exception) {
  Value* traceback = t.tracebackOf(exception);
  if (isReal(traceback, Py_None)) return;
  load(traceback);
  load(exception);
  a.storeAttr("__traceback__");
}

// A frame in a traceback shows what is there anyhow and what takes no code of a class to make: nothing is given up for a variable.
bool Rebuilder::canLoad(Value* v, int depth) const {
  constexpr int kDeepest = 4;
  if (!v || v == t.unbound() || depth > kDeepest) return false;
  if (isBuilt(v) || (v->kind == Kind::Real && freshTemps_.count(realObject(v)))) return true;
  auto all = [&](const std::vector<Value*>& items) {
    return std::all_of(items.begin(), items.end(), [&](Value* item) { return canLoad(item, depth + 1); });
  };
  switch (v->kind) {
    case Kind::List: return all(as<ListValue>(v)->items);
    case Kind::Tuple: return all(as<TupleValue>(v)->items);
    case Kind::Dict: {
      auto* d = as<DictValue>(v);
      return d->type == &PyDict_Type && std::all_of(d->entries.begin(), d->entries.end(), [&](const DictEntry& e) {
               return !e.value || (canLoad(e.value, depth + 1) && (!e.key.value || canLoad(e.key.value, depth + 1)));
             });
    }
    default: return false;
  }
}

void Rebuilder::makeTraceback(Value* v) {
  // Outermost first, up to one that is there.
  std::vector<Value*> entries;
  Value* last = v;
  for (; !last->source && !freshTemps_.count(realObject(last)) && !isReal(last, Py_None); last = t.asTraceback(last)->next) {
    if (!t.asTraceback(last)) refuse(last);
    entries.push_back(last);
  }
  load(last);
  for (size_t i = entries.size(); i-- > 0;) {
    const Trace::TracebackEntry* entry = t.asTraceback(entries[i]);
    // [tb_next] -> [new_traceback(tb_next, code, globals, offset, leftAt, slot, local, slot, local, ...)]
    a.loadConst(tracebackMaker());
    a.swap(2);
    a.loadConst(entry->code);
    a.loadConst(entry->globals);
    a.loadConst(number(entry->offset));
    a.loadConst(number(entry->leftAt));
    int count = 5;
    for (size_t local = 0; local < entry->locals.size(); local++) {
      if (!canLoad(entry->locals[local])) continue;
      a.loadConst(number(static_cast<long long>(local)));
      load(entry->locals[local]);
      count += 2;
    }
    a.call(count);
    int slot = newTemp();
    freshTemps_[realObject(entries[i])] = slot;
    a.copyTop();
    a.storeFast(slot);
  }
}

void Rebuilder::makeRealException(Value* v) {
  PyObject* object = realObject(v);
  PyTypeObject* base = cBase(Py_TYPE(object));
  ObjectRef args = checked(PyObject_GetAttrString(object, "args"));
  auto loadArgs = [this](const ObjectRef& items) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++) load(t.realShared(PyTuple_GET_ITEM(items.get(), i)));
    return static_cast<int>(PyTuple_GET_SIZE(items.get()));
  };
  a.loadConst(attributeOf(*base, "__new__"));
  loadType(Py_TYPE(object));
  a.call(loadArgs(args) + 1);
  int slot = newTemp();
  freshTemps_[object] = slot;
  a.copyTop();
  a.storeFast(slot);
  later([this, v, object, slot, base, args, loadArgs] {
    addTraceback(v);
    auto set = [&](const char* attribute, Value* v) {
      load(v);
      a.loadFast(slot);
      a.storeAttr(attribute);
    };
    if (hasFields(base)) {
      a.loadConst(attributeOf(*base, "__init__"));
      a.loadFast(slot);
      a.call(loadArgs(args) + 1);
      a.popTop();
    }
    for (const char* field : {"name", "obj", "path", "filename", "filename2"}) {
      if (!typeLookup(base, name(field))) continue;
      ObjectRef held = ObjectRef::steal(PyObject_GetAttrString(object, field));
      if (!held) PyErr_Clear();
      if (held && held.get() != Py_None) set(field, t.real(std::move(held)));
    }
    if (PyObject* dict = instanceDict(object)) {
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
        if (!PyUnicode_Check(key)) continue;
        Value* v = t.realShared(value);
        if (PyList_CheckExact(value)) {
          std::vector<Value*> items;
          for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++) items.push_back(t.realShared(PyList_GET_ITEM(value, i)));
          v = t.list(std::move(items));
        }
        load(v);
        a.loadFast(slot);
        a.storeAttr(key);
      }
    }
    if (ObjectRef cause = ObjectRef::steal(PyException_GetCause(object))) set("__cause__", t.real(std::move(cause)));
    if (ObjectRef context = ObjectRef::steal(PyException_GetContext(object))) set("__context__", t.real(std::move(context)));
    ObjectRef suppressed = checked(PyObject_GetAttrString(object, "__suppress_context__"));
    if (suppressed.get() == Py_True) set("__suppress_context__", t.boolean(true));
    // Setting the cause suppresses the context: whether it is suppressed comes last.
    for (bool last : {false, true})
      for (const DictEntry& e : t.exceptionAttributes(object)->entries) {
        bool suppress = PyUnicode_CompareWithASCIIString(e.key.constant, "__suppress_context__") == 0;
        if (e.value && suppress == last) {
          load(e.value);
          a.loadFast(slot);
          a.storeAttr(e.key.constant);
        }
      }
  });
}

}  // namespace cdynamo
