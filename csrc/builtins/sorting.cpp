// Sorting by CPython's own list.sort: which items are compared, and in what order, is what a program can see.
#include <exception>

#include "builtins/table.h"

namespace cdynamo {

namespace {

struct Sorting {
  Trace& t;
  std::exception_ptr failure;
};

// Stands for one item in the real list.
struct SortedItem {
  PyObject_HEAD Sorting* sorting;
  Value* key;
  Value* item;
};

PyObject* isLess(PyObject* left, PyObject* right, int op) {
  auto *a = reinterpret_cast<SortedItem*>(left), *b = reinterpret_cast<SortedItem*>(right);
  Sorting& sorting = *a->sorting;
  try {
    return PyBool_FromLong(truth(sorting.t, compareOp(sorting.t, op, a->key, b->key)));
  } catch (...) {
    sorting.failure = std::current_exception();
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a comparison failed");
    return nullptr;
  }
}

PyTypeObject* sortedItemType() {
  static PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(isLess)}, {0, nullptr}};
  static PyType_Spec spec = {"cdynamo._C.SortedItem", sizeof(SortedItem), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static PyObject* type = checked(PyType_FromSpec(&spec)).release();
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

std::vector<Value*> sortedItems(Trace& t, std::vector<Value*> items, Value* key, bool reverse) {
  Sorting sorting{t, nullptr};
  ObjectRef list = checked(PyList_New(0));
  for (Value* v : items) {
    auto* item = PyObject_New(SortedItem, sortedItemType());
    ObjectRef owned = checked(reinterpret_cast<PyObject*>(item));
    item->sorting = &sorting;
    item->key = key ? call1(t, key, v) : v;
    item->item = v;
    checkedStatus(PyList_Append(list.get(), owned.get()));
  }
  // The list's own reverse keeps equal items in their order.
  bool failed = (reverse && PyList_Reverse(list.get()) < 0) || PyList_Sort(list.get()) < 0 || (reverse && PyList_Reverse(list.get()) < 0);
  if (sorting.failure) {
    try {
      std::rethrow_exception(sorting.failure);
    } catch (PythonError&) {
      throw;
    } catch (...) {
      PyErr_Clear();
      throw;
    }
  }
  if (failed) throw PythonError{};
  items.clear();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) items.push_back(reinterpret_cast<SortedItem*>(PyList_GET_ITEM(list.get(), i))->item);
  return items;
}

}  // namespace cdynamo
