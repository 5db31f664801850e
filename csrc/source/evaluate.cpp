#include "source/evaluate.h"

#include <structmember.h>

#include <utility>

#include "cpython/compat.h"
#include "cpython/dict_access.h"
#include "cpython/iterators.h"

namespace cdynamo {

PyObject* readClosureCell(PyObject* function, int32_t index) {
  if (!PyFunction_Check(function)) return nullptr;
  PyObject* closure = reinterpret_cast<PyFunctionObject*>(function)->func_closure;
  if (closure == nullptr || !PyTuple_Check(closure) || index < 0 || index >= PyTuple_GET_SIZE(closure)) return nullptr;
  return PyTuple_GET_ITEM(closure, index);
}

PyObject* readCell(PyObject* cell) { return PyCell_Check(cell) ? PyCell_GET(cell) : nullptr; }

PyObject* readSequenceItem(PyObject* sequence, int32_t index) {
  if (index < 0) return nullptr;
  if (PyTuple_Check(sequence)) return index < PyTuple_GET_SIZE(sequence) ? PyTuple_GET_ITEM(sequence, index) : nullptr;
  if (PyList_Check(sequence)) return index < PyList_GET_SIZE(sequence) ? PyList_GET_ITEM(sequence, index) : nullptr;
  return nullptr;
}

namespace {

// By the very object that is the key: no code of the program is run.
PyObject* itemOfKey(PyObject* dict, PyObject* key) {
  PyObject *held = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &held, &value);)
    if (held == key) return value;
  return nullptr;
}

}  // namespace

bool hasPythonHash(PyObject* object) {
  static PyObject* name = PyUnicode_InternFromString("__hash__");
  if (!PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) return false;
  PyObject* method = typeLookup(Py_TYPE(object), name);
  return method && PyFunction_Check(method);
}

PyObject* readDictItem(PyObject* dict, PyObject* key) {
  if (!PyDict_Check(dict)) return nullptr;
  if (hasPythonHash(key)) return itemOfKey(dict, key);
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (value != nullptr || !PyErr_Occurred()) return value;
  // Its __hash__ or somebody's __eq__ fails: the key itself may be there all the same.
  PyErr_Clear();
  return itemOfKey(dict, key);
}

PyObject* readKeyedItem(PyObject* dict, PyObject* key) {
  if (!PyDict_Check(dict)) return nullptr;
  PyObject* value = PyTuple_CheckExact(key) ? PyDict_GetItemWithError(dict, key) : dictItemByIdentity(dict, key);
  if (value == nullptr && PyErr_Occurred()) PyErr_Clear();
  return value;
}

PyObject* readInstanceDict(PyObject* object) { return instanceDict(object); }

SlotRead readSlot(PyObject* object, PyObject* name) {
  PyObject* descriptor = typeLookup(Py_TYPE(object), name);
  if (descriptor == nullptr || !Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return {};
  auto* member = reinterpret_cast<PyMemberDescrObject*>(descriptor);
  if (!PyObject_TypeCheck(object, member->d_common.d_type)) return {};
  if (member->d_member->type != T_OBJECT_EX) return {};
  return {true, *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + member->d_member->offset)};
}

ObjectRef readAttr(PyObject* object, PyObject* name) {
  SlotRead slot = readSlot(object, name);
  if (slot.isSlot) return ObjectRef::share(slot.value);
  ObjectRef value = ObjectRef::steal(PyObject_GetAttr(object, name));
  if (!value) PyErr_Clear();
  return value;
}

ObjectRef makeTupleWith(PyObject* tuple, PyObject* item) {
  if (!PyTuple_CheckExact(tuple)) return {};
  Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  ObjectRef longer = ObjectRef::steal(PyTuple_New(count + 1));
  if (!longer) {
    PyErr_Clear();
    return {};
  }
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(longer.get(), i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  PyTuple_SET_ITEM(longer.get(), count, Py_NewRef(item));
  return longer;
}

PyTypeObject* dequeType() {
  static ObjectRef* type = [] {
    ObjectRef module = ObjectRef::steal(PyImport_ImportModule("collections"));
    ObjectRef found = module ? ObjectRef::steal(PyObject_GetAttrString(module.get(), "deque")) : ObjectRef();
    PyErr_Clear();
    return new ObjectRef(found && PyType_Check(found.get()) ? found : ObjectRef());
  }();
  return reinterpret_cast<PyTypeObject*>(type->get());
}

namespace {

PySequenceMethods* dequeMethods(PyObject* object) {
  PyTypeObject* type = dequeType();
  return type && PyObject_TypeCheck(object, type) ? type->tp_as_sequence : nullptr;
}

}  // namespace

ObjectRef readDequeItem(PyObject* deque, int32_t index) {
  PySequenceMethods* methods = dequeMethods(deque);
  if (methods == nullptr || index < 0 || index >= methods->sq_length(deque)) return {};
  ObjectRef value = ObjectRef::steal(methods->sq_item(deque, index));
  if (!value) PyErr_Clear();
  return value;
}

ObjectRef readWeakReferent(PyObject* weakref) { return PyWeakref_Check(weakref) ? ObjectRef::share(PyWeakref_GET_OBJECT(weakref)) : ObjectRef(); }

ObjectRef readIteratorItem(PyObject* iterator, int32_t index) {
  PyObject* item = nullptr;
  peekIterator(iterator, index, &item);
  return ObjectRef::steal(item);
}

ObjectRef readIteratorPart(PyObject* iterator, int32_t index) { return ObjectRef::steal(iteratorPart(iterator, index)); }

bool iteratorEnds(PyObject* iterator, int64_t count, bool over) {
  PyObject* item = nullptr;
  int after = peekIterator(iterator, static_cast<Py_ssize_t>(count), &item);
  ObjectRef::steal(std::exchange(item, nullptr));
  if (after != 0) return false;
  if (count > 0 && !readIteratorItem(iterator, static_cast<int32_t>(count) - 1)) return false;
  return static_cast<bool>(readIteratorPart(iterator, 0)) == over;
}

namespace {

bool isNumber(PyObject* object) { return PyLong_CheckExact(object) || PyFloat_CheckExact(object); }

}  // namespace

ObjectRef compute(Arithmetic op, PyObject* left, PyObject* right) {
  if (!isNumber(left) || !isNumber(right)) return {};
  PyObject* made = nullptr;
  switch (op) {
    case Arithmetic::Add: made = PyNumber_Add(left, right); break;
    case Arithmetic::Sub: made = PyNumber_Subtract(left, right); break;
    case Arithmetic::Mul: made = PyNumber_Multiply(left, right); break;
    case Arithmetic::FloorDiv: made = PyNumber_FloorDivide(left, right); break;
    case Arithmetic::Mod: made = PyNumber_Remainder(left, right); break;
    case Arithmetic::TrueDiv: made = PyNumber_TrueDivide(left, right); break;
    default: made = PyObject_RichCompare(left, right, static_cast<int>(op) - static_cast<int>(Arithmetic::Less)); break;
  }
  if (!made) PyErr_Clear();
  return ObjectRef::steal(made);
}

Py_ssize_t rawLength(PyObject* container) {
  if (PyList_Check(container) || PyTuple_Check(container)) return Py_SIZE(container);
  if (PyDict_Check(container)) return PyDict_GET_SIZE(container);
  if (PyAnySet_Check(container)) return PySet_GET_SIZE(container);
  PySequenceMethods* methods = dequeMethods(container);
  return methods ? methods->sq_length(container) : -1;
}

bool lookupMayRunPython(PyObject* dict, PyObject* key) { return !PyUnicode_CheckExact(key) || !dictHasOnlyStrKeys(dict); }

}  // namespace cdynamo
