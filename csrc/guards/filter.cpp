#include "guards/filter.h"

#include "base/error.h"
#include "cpython/lru_cache.h"
#include "source/evaluate.h"

namespace cdynamo {

namespace {

ObjectRef step(const Source* source, PyObject* base, const FrameInputs& inputs) {
  switch (source->kind) {
    case SourceKind::Local: return ObjectRef::share(source->index < inputs.localCount ? inputs.locals[source->index] : nullptr);
    case SourceKind::Function: return ObjectRef::share(inputs.function);
    case SourceKind::ClosureCell: return ObjectRef::share(readClosureCell(inputs.function, source->index));
    case SourceKind::Pinned: return ObjectRef::share(source->object);
    case SourceKind::Handled: return inputs.handledException();
    default: break;
  }
  if (base == nullptr) return nullptr;
  switch (source->kind) {
    case SourceKind::CellContents: return ObjectRef::share(readCell(base));
    case SourceKind::InstanceDict: return ObjectRef::share(readInstanceDict(base));
    case SourceKind::DictItem: return ObjectRef::share(readDictItem(base, source->object));
    case SourceKind::SequenceItem: return ObjectRef::share(readSequenceItem(base, source->index));
    case SourceKind::Attr: return readAttr(base, source->object);
    case SourceKind::Type: return ObjectRef::share(reinterpret_cast<PyObject*>(Py_TYPE(base)));
    case SourceKind::DequeItem: return readDequeItem(base, source->index);
    case SourceKind::WeakReferent: return readWeakReferent(base);
    case SourceKind::IteratorItem: return readIteratorItem(base, source->index);
    case SourceKind::IteratorPart: return readIteratorPart(base, source->index);
    case SourceKind::LruCache: return ObjectRef::share(lruCacheDict(base));
    case SourceKind::LruResult: return ObjectRef::share(lruResult(base));
    default: return nullptr;
  }
}

// Appends the values of the source and of what it is reached by; the source's own, or null where it is not there.
ObjectRef walk(const Source* source, const FrameInputs& inputs, PyObject* values) {
  ObjectRef base = source->base ? walk(source->base, inputs, values) : nullptr;
  ObjectRef other = source->other ? walk(source->other, inputs, values) : nullptr;
  ObjectRef own;
  if (source->kind == SourceKind::KeyedItem)
    own = ObjectRef::share(other && base ? readKeyedItem(base.get(), other.get()) : nullptr);
  else if (source->kind == SourceKind::TupleWith)
    own = other && base ? makeTupleWith(base.get(), other.get()) : ObjectRef();
  else
    own = other && base ? compute(static_cast<Arithmetic>(source->index), base.get(), other.get()) : step(source, base.get(), inputs);
  if (own) checkedStatus(PyList_Append(values, own.get()));
  return own;
}

void addRow(PyObject* rows, const std::string& name, const char* kind, bool isGlobal, PyObject* values) {
  ObjectRef tuple = checked(PyList_AsTuple(values));
  ObjectRef row = checked(Py_BuildValue("(ssOO)", name.c_str(), kind, isGlobal ? Py_True : Py_False, tuple.get()));
  checkedStatus(PyList_Append(rows, row.get()));
}

}  // namespace

ObjectRef describeFacts(const FactList& facts, const SourceTable& table, const FrameInputs& inputs) {
  ObjectRef rows = checked(PyList_New(0));
  for (const Fact& fact : facts.facts()) {
    ObjectRef values = checked(PyList_New(0));
    if (fact.source) walk(fact.source, inputs, values.get());
    const Source* root = fact.source;
    while (root && root->base) root = root->base;
    bool isGlobal = !root || root->kind == SourceKind::Pinned;
    addRow(rows.get(), fact.source ? table.name(fact.source) : "", factLabel(fact.kind), isGlobal, values.get());
  }
  ObjectRef none = checked(PyList_New(0));
  addRow(rows.get(), "", "GLOBAL_STATE", true, none.get());
  return rows;
}

bool filterFacts(FactList& facts, PyObject* flags) {
  ObjectRef list = checked(PySequence_Tuple(flags));
  size_t count = facts.facts().size();
  if (static_cast<size_t>(PyTuple_GET_SIZE(list.get())) != count + 1) {
    PyErr_SetString(PyExc_ValueError, "guard_filter_fn must return one flag for each guard");
    throw PythonError{};
  }
  std::vector<bool> keep;
  for (size_t i = 0; i <= count; i++) {
    int flag = PyObject_IsTrue(PyTuple_GET_ITEM(list.get(), static_cast<Py_ssize_t>(i)));
    checkedStatus(flag);
    keep.push_back(flag == 1);
  }
  facts.keepOnly(keep);
  return keep.back();
}

}  // namespace cdynamo
