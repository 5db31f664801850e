// Iterators of the library in the state that the trace left them in, and what polyfills stand in for.
#include <cstring>

#include "base/exceptions.h"
#include "base/lookup.h"
#include "base/own_library.h"
#include "bytecode/code.h"
#include "cpython/compat.h"
#include "cpython/iterators.h"
#include "emit/helpers.h"
#include "emit/rebuild.h"
#include "interp/protocol.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

// `def __iter__(self): return self`: calling it once more is not seen.
bool returnsItself(PyObject* function) {
  const Code& code = decode(reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(function)->func_code));
  std::vector<const Instr*> steps;
  for (const Instr& in : code.instrs())
    if (in.op != Op::Resume && in.op != Op::Nop) steps.push_back(&in);
  return steps.size() == 2 && steps[0]->op == Op::LoadFast && steps[0]->arg == 0 && steps[1]->op == Op::ReturnValue;
}

Value* fieldOf(InstanceValue* i, const char* name) {
  if (!i->dict) return nullptr;
  for (const DictEntry& e : i->dict->entries)
    if (e.value && e.key.constant && PyUnicode_CompareWithASCIIString(e.key.constant, name) == 0) return e.value;
  return nullptr;
}

bool isMissing(Value* v) { return !v || isReal(v, importedObject("cdynamo.polyfills", "_missing")); }

}  // namespace

void Rebuilder::loadItertool(const char* name) { a.loadConst(importedObject("itertools", name)); }

void Rebuilder::advance(int64_t count) {
  if (count <= 0) return;
  a.loadConst(advanceFunction());
  a.swap(2);
  a.loadConst(number(count));
  a.call(2);
}

void Rebuilder::setPosition(int64_t position) {
  a.copyTop();
  a.loadMethod("__setstate__");
  a.loadConst(number(position));
  a.call(1);
  a.popTop();
}

void Rebuilder::loadInner(Value* v) {
  if (v->kind == Kind::Instance) {
    PyTypeObject* type = as<InstanceValue>(v)->type;
    PyObject* method = typeLookup(type, name("__iter__"));
    if (method && PyFunction_Check(method) && !isOwnLibrary(typeDict(type), "__module__") && !returnsItself(method))
      refuse(v, ", whose __iter__ would run once more");
  }
  load(v);
}

void Rebuilder::loadComplete(HeapValue* h) {
  load(holderOf(h));
  fillAll();
  if (h->mutated) writeBack(h);
}

void Rebuilder::makeIterator(IteratorValue* it) {
  auto inners = [&] {
    for (Value* v : it->inputs) loadInner(v);
    return static_cast<int>(it->inputs.size());
  };
  // [.., head...] -> [.., chain((head...), inner)]
  auto chained = [&](Value* head, Value* inner) {
    loadItertool("chain");
    load(head);
    a.buildTuple(1);
    loadInner(inner);
    a.call(2);
  };
  switch (it->what) {
    case IteratorValue::Sequence: return makeSequenceIterator(it);
    case IteratorValue::Reversed: return makeReversed(it);
    case IteratorValue::DictItems: return makeDictIterator(it);
    case IteratorValue::Range:
      a.loadConst(reinterpret_cast<PyObject*>(&PyRange_Type));
      for (int64_t n : {it->position, it->stop, it->step}) a.loadConst(number(n));
      a.call(3);
      a.getIter();
      break;
    case IteratorValue::Zip: {
      a.loadConst(reinterpret_cast<PyObject*>(&PyZip_Type));
      int n = inners();
      if (it->strict) a.loadConst(Py_True);
      a.call(n + it->strict, it->strict ? keep(checked(Py_BuildValue("(s)", "strict"))) : nullptr);
      break;
    }
    case IteratorValue::Map:
    case IteratorValue::Filter:
    case IteratorValue::StarMap:
    case IteratorValue::Compress: {
      a.loadConst(reinterpret_cast<PyObject*>(it->type));
      bool function = it->what != IteratorValue::Compress;
      if (function) load(it->subject);
      a.call(inners() + function);
      break;
    }
    case IteratorValue::Enumerate:
      a.loadConst(reinterpret_cast<PyObject*>(&PyEnum_Type));
      loadInner(it->inputs[0]);
      a.loadConst(number(it->position));
      a.call(2);
      break;
    case IteratorValue::Chain:
      if (it->done) {
        loadItertool("chain");
        a.call(0);
        advance(1);
        break;
      }
      loadItertool("chain");
      a.loadAttr("from_iterable");
      if (it->subject)
        chained(it->subject, it->subjectOf);
      else
        loadInner(it->subjectOf);
      a.call(1);
      break;
    case IteratorValue::Repeat: {
      bool counted = it->stop >= 0;
      loadItertool("repeat");
      load(it->subject);
      if (counted) a.loadConst(number(std::max<int64_t>(0, it->stop - it->position)));
      a.call(counted ? 2 : 1);
      break;
    }
    case IteratorValue::Count:
      loadItertool("count");
      if (it->subject) {
        loadAll({it->subject, it->inputs[0]});
      } else {
        a.loadConst(number(it->position));
        a.loadConst(number(it->step));
      }
      a.call(2);
      break;
    case IteratorValue::Islice: {
      // What it counts starts anew where the inner iterator stands.
      int64_t seen = it->inputs.size() > 1 ? asInteger(t, it->inputs[1]).value_or(0) : 0;
      loadItertool("islice");
      if (it->done) {
        a.buildTuple(0);
        a.loadConst(number(0));
        a.call(2);
        advance(1);
        break;
      }
      loadInner(it->inputs[0]);
      a.loadConst(number(std::max<int64_t>(0, it->position - seen)));
      a.loadConst(it->stop < 0 ? Py_None : number(std::max<int64_t>(0, it->stop - seen)));
      a.loadConst(number(it->step));
      a.call(4);
      break;
    }
    case IteratorValue::CallIter:
      a.loadConst(importedObject("builtins", "iter"));
      if (it->done) {
        a.loadConst(reinterpret_cast<PyObject*>(&PyBool_Type));
        a.loadConst(Py_False);
      } else {
        loadAll({it->subject, it->inputs[0]});
      }
      a.call(2);
      if (it->done) advance(1);
      break;
    case IteratorValue::ItemProtocol:
      a.loadConst(sequenceIteratorFunction());
      if (it->done)
        a.buildTuple(0);
      else
        load(it->subject);
      a.call(1);
      if (it->done)
        advance(1);
      else if (it->position)
        setPosition(it->position);
      break;
    case IteratorValue::Cycle: {
      // The saved items are read once more, by the new object itself.
      auto& saved = as<ListValue>(it->subject)->items;
      loadItertool("cycle");
      loadItertool("chain");
      loadAll(saved);
      a.buildTuple(static_cast<int>(saved.size()));
      if (!it->strict) loadInner(it->inputs[0]);
      a.call(it->strict ? 1 : 2);
      a.call(1);
      // Past the first round it has been through them all: one item more makes it notice.
      advance(static_cast<int64_t>(saved.size()) + (it->strict ? it->position : 0));
      break;
    }
    case IteratorValue::Accumulate: {
      loadItertool("accumulate");
      bool pending = it->strict;
      if (it->subjectOf && !pending)
        chained(it->subjectOf, it->inputs[0]);
      else
        loadInner(it->inputs[0]);
      load(it->subject);
      if (pending) load(it->subjectOf);
      a.call(pending ? 3 : 2, pending ? keep(checked(Py_BuildValue("(s)", "initial"))) : nullptr);
      if (it->subjectOf && !pending) advance(1);
      break;
    }
    case IteratorValue::TakeWhile:
      loadItertool("takewhile");
      if (it->done) {
        a.loadConst(importedObject("operator", "not_"));
        a.loadConst(keep(checked(Py_BuildValue("(O)", Py_True))));
      } else {
        load(it->subject);
        inners();
      }
      a.call(2);
      if (it->done) advance(1);
      break;
    case IteratorValue::DropWhile:
      loadItertool("dropwhile");
      if (it->strict) {
        a.loadConst(importedObject("operator", "not_"));
        chained(t.boolean(true), it->inputs[0]);
      } else {
        load(it->subject);
        inners();
      }
      a.call(2);
      if (it->strict) advance(1);
      break;
    case IteratorValue::Pairwise:
      loadItertool("pairwise");
      if (it->done)
        a.buildTuple(0);
      else if (it->subject)
        chained(it->subject, it->inputs[0]);
      else
        inners();
      a.call(1);
      if (it->done) advance(1);
      break;
    case IteratorValue::Rows: {
      a.loadConst(reinterpret_cast<PyObject*>(it->type));
      loadAll(it->inputs);
      int extra = it->stop >= 0;
      PyObject* keyword = extra && it->strict ? keep(checked(Py_BuildValue("(s)", "repeat"))) : nullptr;
      if (extra) a.loadConst(number(it->stop));
      a.call(static_cast<int>(it->inputs.size()) + extra, keyword);
      advance(it->position + it->done);
      break;
    }
    case IteratorValue::ZipLongest: {
      loadItertool("zip_longest");
      for (Value* v : it->inputs) {
        if (v)
          loadInner(v);
        else
          a.buildTuple(0);
      }
      load(it->subject);
      a.call(static_cast<int>(it->inputs.size()) + 1, keep(checked(Py_BuildValue("(s)", "fillvalue"))));
      break;
    }
    case IteratorValue::Existing: refuse(it);
  }
  storeTemp(it);
}

void Rebuilder::makeSequenceIterator(IteratorValue* it) {
  auto* set = it->inputs.empty() ? nullptr : as<SetValue>(it->inputs[0]);
  auto* list = it->subject->kind == Kind::List ? as<ListValue>(it->subject) : nullptr;
  bool deque = list && list->type == dequeType();
  if (it->subjectOf) {
    load(it->subjectOf);
    a.getIter();
    advance(it->position + it->done);
    return storeTemp(it);
  }
  if (it->done) {
    // Used up for good, whatever happens to what it went over.
    if (set || deque) {
      a.loadConst(reinterpret_cast<PyObject*>(set ? &PySet_Type : dequeType()));
      a.call(0);
    } else {
      list ? a.buildList(0) : a.buildTuple(0);
    }
    a.getIter();
    advance(1);
    return storeTemp(it);
  }
  if (set) {
    if (static_cast<int64_t>(set->items.size()) != it->stop) refuse(it, " over a set that was changed meanwhile");
    a.loadConst(attributeOf(*(PyType_IsSubtype(set->type, &PyFrozenSet_Type) ? &PyFrozenSet_Type : &PySet_Type), "__iter__"));
    loadComplete(set);
    a.call(1);
    advance(it->position);
    return storeTemp(it);
  }
  if (deque) {
    a.loadConst(importedObject("_collections", "_deque_iterator"));
    loadComplete(list);
    a.loadConst(number(it->position));
    a.call(2);
    return storeTemp(it);
  }
  auto* subject = static_cast<HeapValue*>(it->subject);
  a.loadConst(attributeOf(list ? PyList_Type : PyTuple_Type, "__iter__"));
  load(holderOf(subject));
  a.call(1);
  storeTemp(it);
  if (it->position == 0) return;
  if (!list) return setPosition(it->position);
  // The list must be as long as it will be.
  later([this, it, list] {
    if (list->mutated) writeBack(list);
    load(it);
    setPosition(it->position);
    a.popTop();
  });
}

// Only its own state: what it is made of is moved by itself.
void Rebuilder::moveExisting(IteratorValue* it) {
  bool enumerate = it->what == IteratorValue::Enumerate;
  a.loadConst(enumerate ? advanceNumberFunction() : advanceFunction());
  load(it);
  a.loadConst(number(it->position + it->done));
  a.call(2);
  a.popTop();
}

void Rebuilder::makeReversed(IteratorValue* it) {
  DictValue* whole = it->subjectOf && it->subjectOf->kind == Kind::Dict ? as<DictValue>(it->subjectOf) : nullptr;
  if (whole && iterationState(whole) == it->stop) {
    // By the method of the builtin class: what it is the contents of may have one of its own.
    a.loadConst(attributeOf(PyType_IsSubtype(whole->type, &PyODict_Type) ? PyODict_Type : PyDict_Type, "__reversed__"));
    loadComplete(whole);
    a.call(1);
    advance(it->position + it->done);
    return storeTemp(it);
  }
  a.loadConst(reinterpret_cast<PyObject*>(&PyReversed_Type));
  if (it->subjectOf) {
    // Over what cannot change, or a dict that must not.
    Value* v = it->subjectOf;
    if (v->kind == Kind::Instance && !it->done) refuse(it, " over an object with its own __len__ and __getitem__");
    DictValue* d = iteratedDict(v);
    if (d && !it->done && iterationState(d) != it->stop) refuse(it, " over a dict that was changed meanwhile");
    if (it->done && !d) {
      a.buildTuple(0);
      a.call(1);
      advance(1);
      return storeTemp(it);
    }
    if (d) {
      loadComplete(d);
      a.popTop();
    }
    load(v);
    a.call(1);
    advance(it->position + it->done);
    return storeTemp(it);
  }
  auto* list = as<ListValue>(it->subject);
  int64_t index = it->stop - it->position;
  bool done = it->done || index < 0 || index >= static_cast<int64_t>(list->items.size());
  if (list->type == dequeType()) {
    a.popTop();
    a.loadConst(importedObject("_collections", "_deque_reverse_iterator"));
    loadComplete(list);
    a.loadConst(number(it->position));
    a.call(2);
    if (it->done) advance(1);
    return storeTemp(it);
  }
  if (done)
    a.buildList(0);
  else
    load(holderOf(list));
  a.call(1);
  if (done) advance(1);
  storeTemp(it);
  if (done) return;
  later([this, it, list, index] {
    if (list->mutated) writeBack(list);
    load(it);
    setPosition(index);
    a.popTop();
  });
}

void Rebuilder::makeDictIterator(IteratorValue* it) {
  auto* d = as<DictValue>(it->subject);
  if (!it->done && iterationState(d) != it->stop) refuse(it, " over a dict that was changed meanwhile");
  PyTypeObject& base = PyType_IsSubtype(d->type, &PyODict_Type) ? PyODict_Type : PyDict_Type;
  a.loadConst(attributeOf(base, it->step == DictViewValue::Keys ? "keys" : it->step == DictViewValue::Values ? "values" : "items"));
  int64_t passed = 0;
  if (it->done) {
    a.loadConst(reinterpret_cast<PyObject*>(&base));
    a.call(0);
    passed = 1;
  } else {
    for (size_t i = 0; i < static_cast<size_t>(it->position) && i < d->entries.size(); i++) passed += d->entries[i].value != nullptr;
    loadComplete(d);
  }
  a.call(1);
  a.getIter();
  advance(passed);
  storeTemp(it);
}

// ---- stand-ins -------------------------------------------------------------------------------------------------------

bool Rebuilder::makeKeyFunction(FunctionValue* fn) {
  auto* code = reinterpret_cast<PyCodeObject*>(fn->code);
  if (!isOwnLibrary(fn->globals, "__name__") || PyUnicode_CompareWithASCIIString(code->co_qualname, "cmp_to_key.<locals>.<lambda>") != 0)
    return false;
  auto cells = itemsOf(t, fn->closure);
  a.loadConst(importedObject("functools", "cmp_to_key"));
  load(t.cellContents(as<CellValue>(cells[0])));
  a.call(1);
  storeTemp(fn);
  return true;
}

namespace {

PyObject* makeReversed(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "new_reversed(sequence, index)");
  Py_ssize_t index = PyLong_AsSsize_t(args[1]);
  if (index == -1 && PyErr_Occurred()) return nullptr;
  return newReversed(args[0] == Py_None ? nullptr : args[0], index);
}

PyMethodDef reversedDef = {"new_reversed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(makeReversed)), METH_FASTCALL, nullptr};

PyObject* reversedMaker() {
  static PyObject* function = checked(PyCFunction_New(&reversedDef, nullptr)).release();
  return function;
}

}  // namespace

bool Rebuilder::makeStandIn(InstanceValue* i) {
  auto is = [&](const char* name) { return std::strcmp(i->type->tp_name, name) == 0; };
  auto field = [&](const char* name) { return fieldOf(i, name); };
  if (is("itemgetter") || is("attrgetter")) {
    a.loadConst(importedObject("operator", i->type->tp_name));
    load(field(is("itemgetter") ? "items" : "attrs"));
    a.callFunctionEx(false);
  } else if (is("methodcaller")) {
    a.loadConst(importedObject("operator", "methodcaller"));
    load(field("name"));
    a.buildTuple(1);
    a.buildList(0);
    a.swap(2);
    a.emit(Op::ListExtend, 1);
    load(field("args"));
    a.emit(Op::ListExtend, 1);
    a.emit(Op::ListToTuple);
    load(field("kwargs"));
    fillAll();
    a.callFunctionEx(true);
  } else if (is("PendingHandle")) {
    // Filled when the hook is registered.
    a.loadConst(attributeOf(PyBaseObject_Type, "__new__"));
    a.loadConst(importedObject("torch.utils.hooks", "RemovableHandle"));
    a.call(1);
  } else if (is("_CompareKey")) {
    a.loadConst(importedObject("functools", "cmp_to_key"));
    load(field("compare"));
    a.call(1);
    load(field("obj"));
    a.call(1);
  } else if (is("_Branch")) {
    // All branches are copies of one that stands at the start.
    auto* seen = as<ListValue>(field("seen"));
    auto found = teeBases_.find(seen);
    if (found == teeBases_.end()) {
      loadItertool("tee");
      loadItertool("chain");
      loadAll(seen->items);
      a.buildTuple(static_cast<int>(seen->items.size()));
      loadInner(field("data"));
      a.call(2);
      a.loadConst(number(1));
      a.call(2);
      a.loadConst(number(0));
      a.binarySubscr();
      int slot = newTemp();
      a.storeFast(slot);
      found = teeBases_.emplace(seen, slot).first;
    }
    a.loadFast(found->second);
    a.loadMethod("__copy__");
    a.call(0);
    advance(asInteger(t, field("at")).value_or(0));
  } else if (is("_Groups")) {
    makeGroups(i);
  } else if (is("_Group")) {
    auto* parent = as<InstanceValue>(field("parent"));
    loadItertool("_grouper");
    if (fieldOf(parent, "group") == i) {
      load(parent);
    } else {
      // Another group is the current one: this one has ended.
      loadItertool("groupby");
      a.buildTuple(0);
      a.call(1);
    }
    load(field("target"));
    a.call(2);
  } else if (is("reversed")) {
    a.loadConst(reversedMaker());
    load(field("_sequence"));
    load(field("_at"));
    a.call(2);
  } else if (PyObject* parts = PyDict_GetItemString(typeDict(i->type), "__made_of__")) {
    a.loadConst(PyDict_GetItemString(typeDict(i->type), "__made_by__"));
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(parts); k++) load(field(PyUnicode_AsUTF8(PyTuple_GET_ITEM(parts, k))));
    a.call(static_cast<int>(PyTuple_GET_SIZE(parts)));
  } else {
    return false;
  }
  storeTemp(i);
  return true;
}

namespace {

// object.__setstate__(state) without the warning that newer Pythons give for those of itertools: nobody asked for it.
PyObject* setState(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "set_state(object, state)");
  ObjectRef warnings = ObjectRef::steal(PyImport_ImportModule("warnings"));
  ObjectRef quiet = warnings ? ObjectRef::steal(PyObject_CallMethod(warnings.get(), "catch_warnings", nullptr)) : nullptr;
  if (!quiet || !ObjectRef::steal(PyObject_CallMethod(quiet.get(), "__enter__", nullptr))) return nullptr;
  ObjectRef filtered = ObjectRef::steal(PyObject_CallMethod(warnings.get(), "simplefilter", "s", "ignore"));
  ObjectRef done = filtered ? ObjectRef::steal(PyObject_CallMethod(args[0], "__setstate__", "(O)", args[1])) : nullptr;
  ObjectRef failure = takeException();
  ObjectRef left = ObjectRef::steal(PyObject_CallMethod(quiet.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (!left) return nullptr;
  if (!done) restoreException(failure.get());
  return done.release();
}

PyMethodDef setStateDef = {"set_state", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(setState)), METH_FASTCALL, nullptr};

PyObject* stateSetter() {
  static PyObject* function = checked(PyCFunction_New(&setStateDef, nullptr)).release();
  return function;
}

}  // namespace

// [..] -> [.., groupby]. Its state is (current key, current value, key of the group that is read).
void Rebuilder::makeGroups(InstanceValue* i) {
  Value *target = fieldOf(i, "target"), *key = fieldOf(i, "current_key"), *value = fieldOf(i, "current");
  if (isMissing(key) != isMissing(value) || (isMissing(target) && !isMissing(key))) refuse(i);
  loadItertool("groupby");
  loadInner(fieldOf(i, "data"));
  load(fieldOf(i, "key"));
  a.call(2);
  if (isMissing(target)) return;
  bool taken = isMissing(key);
  a.loadConst(stateSetter());
  a.copyTop(2);
  if (taken)
    loadAll({target, t.none(), target});
  else
    loadAll({key, value, target});
  a.buildTuple(3);
  a.call(2);
  a.popTop();
  if (!taken) return;
  // The current item was given away: a group takes the one that was put in its place.
  a.copyTop();
  loadItertool("_grouper");
  a.swap(2);
  load(target);
  a.call(2);
  advance(1);
  a.popTop();
}

}  // namespace cdynamo
