// Iterators that existed before the trace: their items are looked at, and they are moved after the graph.
#include "cpython/iterators.h"
#include "interp/intrinsics.h"
#include "interp/lifetimes.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

Value* part(Trace& t, IteratorValue* it, int i) {
  ObjectRef object = ObjectRef::steal(iteratorPart(it->real.get(), i));
  if (!object) unsupported(BreakReason::UnsupportedNext, "the next item of " + describe(it));
  return t.wrap(object.get(), t.sources.iteratorPart(it->source, i));
}

void open(Trace& t, IteratorValue* it) {
  int64_t traits = iteratorTraits(it->real.get());
  if (traits < 0) unsupported(BreakReason::UnsupportedNext, "the next item of " + describe(it));
  t.facts.iteratorTraits(it->source, traits);
  std::vector<Value*> inputs;
  auto take = [&](int from, int64_t count) {
    for (int64_t i = 0; i < count; i++) inputs.push_back(part(t, it, from + static_cast<int>(i)));
  };
  auto become = [&](IteratorValue::What what) {
    t.journal.set(it->inputs, std::move(inputs));
    t.journal.set(it->what, what);
  };
  switch (iteratorShape(it->type)) {
    case kIteratorZip:
      take(0, traits / 2);
      t.journal.set(it->strict, traits % 2 != 0);
      return become(IteratorValue::Zip);
    case kIteratorMap:
      take(1, traits);
      t.journal.set(it->subject, part(t, it, 0));
      return become(IteratorValue::Map);
    case kIteratorFilter:
      take(1, 1);
      t.journal.set(it->subject, part(t, it, 0));
      return become(IteratorValue::Filter);
    default:
      take(0, 2);
      // Another number in every call, and mostly nobody looks at it.
      as<RealValue>(inputs[1])->open = true;
      return become(IteratorValue::Enumerate);
  }
}

// Writes that leave the keys of a dict as they are.
bool keepsKeys(DictValue* d) {
  for (const DictEntry& e : d->entries) {
    if (!e.written) continue;
    bool plain = e.key.constant && (PyUnicode_CheckExact(e.key.constant) || PyLong_CheckExact(e.key.constant));
    if (!plain || !e.value || PyDict_Contains(d->real.get(), e.key.constant) != 1) return false;
  }
  return true;
}

// What it goes over must still be as it is for real.
void checkUnchanged(Trace& t, IteratorValue* it) {
  ObjectRef over = ObjectRef::steal(iteratorPart(it->real.get(), 0));
  HeapValue* known = over ? t.knownTwin(over.get()) : nullptr;
  if (known && known->kind == Kind::Instance && as<InstanceValue>(known)->contents) known = as<InstanceValue>(known)->contents;
  if (!known || !known->mutated) return;
  if (it->type == &PyDictIterKey_Type && known->kind == Kind::Dict && keepsKeys(as<DictValue>(known))) return;
  unsupported(BreakReason::UnsupportedNext, "the next item of " + describe(it) + " over what was changed meanwhile");
}

}  // namespace

void openExisting(Trace& t, IteratorValue* it) {
  if (it->what != IteratorValue::Existing || iteratorShape(it->type) == kIteratorOfItems) return;
  t.typeOf(it);
  open(t, it);
}

Value* nextOfExisting(Trace& t, IteratorValue* it) {
  t.typeOf(it);
  openExisting(t, it);
  if (it->what != IteratorValue::Existing) return next(t, it);
  // As many items as there were at the capture, in one capture, only where that does not change from call to call.
  if (it->position > 0 && t.options.openNames && t.options.openNames->count(t.sources.name(it->source)))
    unsupported(BreakReason::UnsupportedNext, "the next item of " + describe(it) + ", which had another number of items before");
  checkUnchanged(t, it);
  PyObject* found = nullptr;
  int there = peekIterator(it->real.get(), static_cast<Py_ssize_t>(it->position), &found);
  ObjectRef item = ObjectRef::steal(found);
  if (there < 0) unsupported(BreakReason::UnsupportedNext, "the next item of " + describe(it));
  t.touch(it);
  if (there == 0) {
    bool over = static_cast<bool>(ObjectRef::steal(iteratorPart(it->real.get(), 0)));
    t.facts.iteratorEnds(it->source, it->position, over);
    t.journal.set(it->done, true);
    return nullptr;
  }
  // The iterator of a dict's items holds the last one until it is asked again.
  if (PyTypeObject* type = finalizedType(item.get()))
    unsupported(BreakReason::UnsupportedNext,
                std::string("the next item of ") + describe(it) + ", a " + type->tp_name + ", which may run code when it dies");
  const Source* source = t.sources.iteratorItem(it->source, static_cast<int32_t>(it->position));
  t.facts.present(source);
  t.journal.set(it->position, it->position + 1);
  return t.wrap(item.get(), source);
}

Value* numberOfExisting(Trace& t, IteratorValue* enumerate) {
  auto* first = as<RealValue>(enumerate->inputs[1]);
  Value* number = first;
  if (enumerate->position > 0) number = binaryOp(t, 0, first, t.integer(enumerate->position));
  t.touch(enumerate);
  return number;
}

void guardExistingIterators(Trace& t) {
  for (HeapValue* moved : t.mutated()) {
    auto* it = moved->kind == Kind::Iterator ? as<IteratorValue>(moved) : nullptr;
    if (!it || it->what != IteratorValue::Existing) continue;
    ObjectRef over = ObjectRef::steal(iteratorPart(it->real.get(), 0));
    if (!over || PyTuple_Check(over.get()) || PyUnicode_Check(over.get()) || PyBytes_Check(over.get())) continue;
    for (HeapValue* written : t.mutated()) {
      if (!written->source || written->kind == Kind::Iterator || Py_TYPE(written->real.get()) != Py_TYPE(over.get()) ||
          written->real.get() == over.get())
        continue;
      t.facts.distinctObjects(written->source, t.sources.iteratorPart(it->source, 0));
    }
  }
}

}  // namespace cdynamo
