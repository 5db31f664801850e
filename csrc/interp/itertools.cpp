// The next item of itertools' iterators, as their C code gives it.
#include "interp/intrinsics.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

constexpr int kAdd = 0;  // NB_ADD

// The index tuple of row number `at`, from CPython's own iterator over indices; null where there are no more. Borrowed.
PyObject* rowAt(Trace& t, IteratorValue* it, int64_t at) {
  PyObject* rows = it->rows.get();
  while (PyList_GET_SIZE(rows) - 1 <= at) {
    ObjectRef row = ObjectRef::steal(PyIter_Next(PyList_GET_ITEM(rows, 0)));
    if (!row && PyErr_Occurred()) raiseCurrent(t);
    if (!row) return nullptr;
    checkedStatus(PyList_Append(rows, row.get()));
  }
  return PyList_GET_ITEM(rows, at + 1);
}

}  // namespace

Value* nextOfItertool(Trace& t, IteratorValue* it) {
  auto finish = [&]() -> Value* {
    t.journal.set(it->done, true);
    return nullptr;
  };
  switch (it->what) {
    case IteratorValue::Cycle: {
      auto* saved = as<ListValue>(it->subject);
      if (!it->strict) {
        if (Value* v = next(t, it->inputs[0])) {
          t.append(saved, v);
          return v;
        }
        t.journal.set(it->strict, true);
      }
      if (saved->items.empty()) return nullptr;
      Value* v = saved->items[static_cast<size_t>(it->position)];
      t.journal.set(it->position, (it->position + 1) % static_cast<int64_t>(saved->items.size()));
      return v;
    }
    case IteratorValue::Accumulate: {
      if (it->strict) {
        t.journal.set(it->strict, false);
        return it->subjectOf;
      }
      Value* v = next(t, it->inputs[0]);
      if (!v) return nullptr;
      if (it->subjectOf)
        v = isReal(it->subject, Py_None) ? binaryOp(t, kAdd, it->subjectOf, v) : call(t, it->subject, CallArgs{{it->subjectOf, v}, {}});
      t.journal.set(it->subjectOf, v);
      return v;
    }
    case IteratorValue::StarMap: {
      Value* row = next(t, it->inputs[0]);
      return row ? call(t, it->subject, CallArgs{itemsOf(t, row), {}}) : nullptr;
    }
    case IteratorValue::TakeWhile: {
      Value* v = next(t, it->inputs[0]);
      if (!v) return nullptr;
      return truth(t, call1(t, it->subject, v)) ? v : finish();
    }
    case IteratorValue::DropWhile:
      for (;;) {
        Value* v = next(t, it->inputs[0]);
        if (!v || it->strict) return v;
        if (truth(t, call1(t, it->subject, v))) continue;
        t.journal.set(it->strict, true);
        return v;
      }
    case IteratorValue::Compress:
      for (;;) {
        Value* v = next(t, it->inputs[0]);
        Value* selected = v ? next(t, it->inputs[1]) : nullptr;
        if (!selected) return nullptr;
        if (truth(t, selected)) return v;
      }
    case IteratorValue::Pairwise: {
      // What it reads may come back to it: the first item is known before the second is asked for.
      Value* old = it->subject;
      if (!old) {
        old = next(t, it->inputs[0]);
        t.journal.set(it->subject, it->done ? nullptr : old);
        if (!old) return finish();
        if (it->done) return nullptr;
      }
      Value* v = next(t, it->inputs[0]);
      t.journal.set(it->subject, v);
      return v ? t.tuple({old, v}) : finish();
    }
    case IteratorValue::Rows: {
      PyObject* row = rowAt(t, it, it->position);
      if (!row) return finish();
      std::vector<Value*> items;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(row); i++) {
        // The pools of a product repeat; the others have one.
        auto* pool = as<TupleValue>(it->inputs[static_cast<size_t>(i) % it->inputs.size()]);
        items.push_back(pool->items[PyLong_AsSize_t(PyTuple_GET_ITEM(row, i))]);
      }
      t.journal.set(it->position, it->position + 1);
      return t.tuple(std::move(items));
    }
    case IteratorValue::ZipLongest: {
      if (it->position == 0) return nullptr;
      std::vector<Value*> row;
      for (size_t i = 0; i < it->inputs.size(); i++) {
        Value* v = it->inputs[i] ? next(t, it->inputs[i]) : nullptr;
        if (!v && it->inputs[i]) {
          auto left = it->inputs;
          left[i] = nullptr;
          t.journal.set(it->inputs, std::move(left));
          t.journal.set(it->position, it->position - 1);
          if (it->position == 0) return nullptr;
        }
        row.push_back(v ? v : it->subject);
      }
      return t.tuple(std::move(row));
    }
    default: throw EngineError("an iterator of an unknown kind");
  }
}

}  // namespace cdynamo
