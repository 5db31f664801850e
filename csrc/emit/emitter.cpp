#include "emit/emitter.h"

#include "base/lookup.h"
#include "emit/effects.h"
#include "emit/rebuild.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

class Emitter : public Rebuilder {
 public:
  Emitter(Trace& trace, PyCodeObject* like) : Rebuilder(trace, like), like_(like) {
    emitted.graphBox = checked(PyList_New(1));
    PyList_SET_ITEM(emitted.graphBox.get(), 0, ObjectRef::share(Py_None).release());
  }

  Emitted run(Value* result, bool gradAtEntry) {
    if (tryDirect(result, gradAtEntry)) return std::move(emitted);
    begin();
    load(result);
    return end(gradAtEntry);
  }

  Emitted suspend(const std::vector<Value*>& values, int line, bool gradAtEntry) {
    a.setLine(line);
    begin();
    loadAll(values);
    a.buildTuple(static_cast<int>(values.size()));
    return end(gradAtEntry);
  }

 private:
  // Calls the graph.
  void begin() {
    a.prologue();
    if (t.graph.callCount() > 0) {
      a.loadConst(emitted.graphBox.get());
      a.loadConst(number(0));
      a.binarySubscr();
      a.loadFast(kInputs);
      a.callFunctionEx(false);
      a.storeFast(kOutputs);
    }
  }

  // The result is on the stack: everything is rebuilt before anything is written back.
  Emitted end(bool gradAtEntry) {
    prepareEffects();
    replay(false);
    writeEffects();
    replay(true);
    if (gradEnabled() != gradAtEntry) {
      a.loadConst(importedObject("torch._C", "_set_grad_enabled"));
      a.loadConst(gradEnabled() ? Py_True : Py_False);
      a.call(1);
      a.popTop();
    }
    a.returnValue();
    emitted.code = a.finish();
    emitted.objects = std::move(objects);
    return std::move(emitted);
  }

  bool tryDirect(Value* result, bool gradAtEntry) {
    if (!isTensor(result) || result->source || !t.mutated().empty() || !t.effects().empty() || gradEnabled() != gradAtEntry ||
        t.graph.callCount() == 0)
      return false;
    auto* tensor = as<TensorValue>(result);
    if (!tensor->attrs.empty() || tensor->type != tensorType()) return false;
    emitted.direct = outputOf(tensor->node);
    return true;
  }

  // ---- effects ----

  // Loads every value that a write needs, so that the writes themselves only move finished objects.
  void prepareEffects() {
    auto build = [&](Value* v) {
      if (!v || v->source || isReal(v) || isBuilt(v)) return;
      load(v);
      a.popTop();
    };
    for (const Effect& effect : t.effects()) {
      for (Value* v : effect.call.args) build(v);
      for (auto& [key, v] : effect.call.kwargs) build(v);
    }
    for (HeapValue* h : t.mutated()) {
      if (h->kind == Kind::List)
        for (Value* v : as<ListValue>(h)->items) build(v);
      if (h->kind == Kind::Dict)
        for (const DictEntry& e : as<DictValue>(h)->entries)
          if (e.written) build(e.value);
      if (h->kind == Kind::Cell) build(as<CellValue>(h)->contents);
      if (h->kind == Kind::Instance)
        for (auto& [slot, v] : as<InstanceValue>(h)->slots) build(v);
    }
  }

  void replay(bool afterWrites) {
    for (const Effect& effect : t.effects())
      if (effect.afterWrites == afterWrites) emitEffect(a, effect, like_, [&](Value* v) { load(v); });
  }

  void writeEffects() {
    for (HeapValue* h : t.mutated()) {
      switch (h->kind) {
        case Kind::List:
          if (!as<ListValue>(h)->loaded) {
            fillContents(h, h, &PyList_Type);
          } else if (h->type == &PyList_Type) {
            loadAll(as<ListValue>(h)->items);
            a.buildList(static_cast<int>(as<ListValue>(h)->items.size()));
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
        case Kind::Set:
          callOn(PySet_Type, "clear", h);
          fillContents(h, h, &PySet_Type);
          break;
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
          for (auto& [slot, v] : as<InstanceValue>(h)->slots) setAttribute(h, slot.get(), v);
          break;
        default: refuse(h);
      }
    }
  }

  void callOn(PyTypeObject& type, const char* method, HeapValue* h) {
    a.loadConst(attributeOf(type, method));
    load(h);
    a.call(1);
    a.popTop();
  }

  void writeDict(DictValue* d) {
    bool plain = d->type == &PyDict_Type;
    PyTypeObject& base = PyType_IsSubtype(d->type, &PyODict_Type) ? PyODict_Type : PyDict_Type;
    std::unordered_map<DictKey, bool, DictKeyHash, DictKeyEqual> deleted;
    for (const DictEntry& e : d->entries) {
      if (!e.written || e.value || !e.key.constant) continue;
      // Deleted, unless it never was there.
      int had = PyDict_Contains(d->real.get(), e.key.constant);
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

  PyCodeObject* like_;
  Emitted emitted;
};

}  // namespace

Emitted emitReturn(Trace& t, PyCodeObject* like, Value* result, bool gradAtEntry) { return Emitter(t, like).run(result, gradAtEntry); }

Emitted emitSuspend(Trace& t, PyCodeObject* like, int line, const std::vector<Value*>& values, bool gradAtEntry) {
  return Emitter(t, like).suspend(values, line, gradAtEntry);
}

}  // namespace cdynamo
