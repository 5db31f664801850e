// One step along a source in C++: from the value of its base to its own value.
//
// Nothing here raises: null means that the value is not there (or could not be read), with no error set. Nothing here
// runs Python code, except readAttr where the interpreter was wrong about the attribute, and readDictItem where
// lookupMayRunPython() says so.
#pragma once
#include "base/ref.h"
#include "source/source.h"

namespace cdynamo {

// Borrowed: held by the base.
PyObject* readClosureCell(PyObject* function, int32_t index);
PyObject* readCell(PyObject* cell);
PyObject* readSequenceItem(PyObject* sequence, int32_t index);
PyObject* readDictItem(PyObject* dict, PyObject* key);
PyObject* readKeyedItem(PyObject* dict, PyObject* key);  // by the key's identity; of a tuple by the identity of its items
PyObject* readInstanceDict(PyObject* object);

// New references.
ObjectRef readAttr(PyObject* object, PyObject* name);
ObjectRef makeTupleWith(PyObject* tuple, PyObject* item);
ObjectRef readDequeItem(PyObject* deque, int32_t index);
ObjectRef readWeakReferent(PyObject* weakref);
ObjectRef readIteratorItem(PyObject* iterator, int32_t index);
ObjectRef readIteratorPart(PyObject* iterator, int32_t index);
// left OP right of exact ints and floats; null where CPython raises.
ObjectRef compute(Arithmetic op, PyObject* left, PyObject* right);

// The borrowed content of a slot (`__slots__`) of the object, where `name` is one.
struct SlotRead {
  bool isSlot = false;
  PyObject* value = nullptr;  // null: unset
};
SlotRead readSlot(PyObject* object, PyObject* name);

// Whether the iterator gives `count` items more and then ends; `over`: and still knows what it goes over, so that it could go on
// where that grows.
bool iteratorEnds(PyObject* iterator, int64_t count, bool over);

// Length of a list, tuple, dict, set, frozenset, deque or a subclass, as C code sees it; -1 for anything else.
Py_ssize_t rawLength(PyObject* container);

// Whether looking up this key in this dict could call an __eq__ written in Python.
bool lookupMayRunPython(PyObject* dict, PyObject* key);

// Whether the object's __hash__ is written in Python. As a key it is found by its identity.
bool hasPythonHash(PyObject* object);

// The type collections.deque, or null.
PyTypeObject* dequeType();

}  // namespace cdynamo
