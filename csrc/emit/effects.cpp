// Replays on existing objects what the trace did to them.
#include "cpython/compat.h"
#include "emit/rebuild.h"
#include "torch/types.h"

namespace cdynamo {

void Rebuilder::writeBack(HeapValue* h) {
  if (!written_.insert(h).second) return;
  switch (h->kind) {
    case Kind::List:
      if (!as<ListValue>(h)->loaded) {
        fillContents(h, h, h->type == dequeType() ? h->type : &PyList_Type);
      } else if (h->type == &PyList_Type) {
        loadList(as<ListValue>(h)->items);
        load(h);
        a.loadConst(keep(checked(PySlice_New(nullptr, nullptr, nullptr))));
        a.storeSubscr();
      } else {
        PyTypeObject& base = h->type == dequeType() ? *dequeType() : PyList_Type;
        callOn(base, "clear", h);
        fillContents(h, h, &base);
      }
      break;
    case Kind::Dict: writeDict(as<DictValue>(h)); break;
    case Kind::Set: replay(h, as<SetValue>(h)); break;
    case Kind::Cell:
      if (as<CellValue>(h)->contents) {
        load(as<CellValue>(h)->contents);
        load(h);
        a.storeAttr("cell_contents");
      } else {
        load(h);
        a.deleteAttr(name("cell_contents"));
      }
      break;
    case Kind::Instance:
      for (auto& [slot, v] : as<InstanceValue>(h)->slots) {
        // A slot that was set and deleted may have been empty before: it is filled first.
        if (!v) setAttribute(h, slot.get(), t.none());
        setAttribute(h, slot.get(), v);
      }
      break;
    case Kind::Generator: placeExisting(as<GeneratorValue>(h)); break;
    case Kind::Iterator: moveExisting(as<IteratorValue>(h)); break;
    default: refuse(h);
  }
}

void Rebuilder::callOn(PyTypeObject& type, const char* method, HeapValue* h) {
  a.loadConst(attributeOf(type, method));
  load(h);
  a.call(1);
  a.popTop();
}

void Rebuilder::writeDict(DictValue* d) {
  bool plain = d->type == &PyDict_Type;
  PyTypeObject& base = PyType_IsSubtype(d->type, &PyODict_Type) ? PyODict_Type : PyDict_Type;
  std::unordered_map<DictKey, bool, DictKeyHash, DictKeyEqual> deleted;
  for (const DictEntry& e : d->entries) {
    if (!e.written || e.value) continue;
    auto* held = e.key.asked ? dynamic_cast<HeapValue*>(e.key.value) : nullptr;
    PyObject* key = held ? held->real.get() : e.key.constant;
    if (!key) continue;
    // Deleted, unless it never was there.
    int had = PyDict_Contains(d->real.get(), key);
    if (had <= 0) {
      PyErr_Clear();
      continue;
    }
    if (!deleted.emplace(e.key, true).second) continue;
    a.loadConst(attributeOf(base, "__delitem__"));
    load(d);
    if (e.key.value)
      load(e.key.value);
    else
      a.loadConst(e.key.constant);
    a.call(2);
    a.popTop();
  }
  for (const DictEntry& e : d->entries) {
    if (!e.written || !e.value) continue;
    if (e.key.effects) refuse(d, " with a key whose __hash__ has effects");
    completeKey(e.key);
    if (plain) {
      load(e.value);
      load(d);
      load(e.key.value);
      a.storeSubscr();
    } else {
      a.loadConst(attributeOf(base, "__setitem__"));
      load(d);
      load(e.key.value);
      load(e.value);
      a.call(3);
      a.popTop();
    }
  }
}

}  // namespace cdynamo
