// Replays on existing objects what the trace did to them.
#include "cpython/compat.h"
#include "cpython/dict_access.h"
#include "emit/helpers.h"
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
      } else if (h->type == dequeType() && as<ListValue>(h)->resizes == 0) {
        // Item by item: iterators over it go on.
        a.loadConst(assignItemsFunction());
        load(h);
        loadList(as<ListValue>(h)->items);
        a.call(2);
        a.popTop();
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
  if (d->ofClass) {
    for (const DictEntry& e : d->entries) {
      if (!e.written || !e.value) continue;
      load(e.value);
      a.loadConst(reinterpret_cast<PyObject*>(d->ofClass));
      a.storeAttr(e.key.constant);
    }
    return;
  }
  PyTypeObject& base = PyType_IsSubtype(d->type, &PyODict_Type) ? PyODict_Type : PyDict_Type;
  // Deleted, unless it never was there.
  auto wasThere = [&](const DictEntry& e) {
    auto* held = e.key.asked ? dynamic_cast<HeapValue*>(e.key.value) : nullptr;
    PyObject* key = held ? held->real.get() : e.key.constant;
    int had = key ? dictHasKey(d->real.get(), key, e.key.hash) : 0;
    if (had < 0) PyErr_Clear();
    return had > 0;
  };
  std::unordered_map<DictKey, bool, DictKeyHash, DictKeyEqual> deleted;
  std::vector<const DictEntry*> gone;
  bool keepsSome = !d->complete;
  for (const DictEntry& e : d->entries) {
    if (!e.value && e.written && wasThere(e) && deleted.emplace(e.key, true).second) gone.push_back(&e);
    if (e.value) keepsSome |= !e.written || (!deleted.count(e.key) && wasThere(e));
  }
  if (gone.size() > 1 && !keepsSome) {
    callOn(base, "clear", d);
    gone.clear();
  }
  for (const DictEntry* e : gone) {
    a.loadConst(attributeOf(base, "__delitem__"));
    load(d);
    if (e->key.value)
      load(e->key.value);
    else
      a.loadConst(e->key.constant);
    a.call(2);
    a.popTop();
  }
  for (const DictEntry& e : d->entries)
    if (e.written && e.value) storeItem(d, d, e, &base);
}

}  // namespace cdynamo
