#include "cpython/iterators.h"

#include "cpython/generators.h"

// The layouts are CPython's own, private to its files. A type whose size is not the layout's is not known.
typedef struct {
  PyObject_HEAD Py_ssize_t index;
  PyObject* sequence;  // null: exhausted
} SequenceIterator;    // of list, tuple, str, bytes, and both kinds of reversed

typedef struct {
  PyObject_HEAD
#if PY_VERSION_HEX < 0x030C0000
      long index;
#endif
  long start;
  long step;
  long length;
} RangeIterator;

typedef struct {
  PyObject_HEAD PyObject* dict;  // null: exhausted
  Py_ssize_t used;
  Py_ssize_t position;
  PyObject* result;
  Py_ssize_t left;
} DictIterator;

typedef struct {
  PyObject_HEAD PyObject* set;  // null: exhausted
  Py_ssize_t used;
  Py_ssize_t position;
  Py_ssize_t left;
} SetIterator;

typedef struct {
  PyObject_HEAD Py_ssize_t size;
  PyObject* iterators;
  PyObject* result;
  int strict;
} Zip;

typedef struct {
  PyObject_HEAD PyObject* iterators;
  PyObject* function;
} Map;

typedef struct {
  PyObject_HEAD PyObject* function;
  PyObject* iterator;
} Filter;

typedef struct {
  PyObject_HEAD Py_ssize_t index;
  PyObject* iterator;
  PyObject* result;
  PyObject* longIndex;
  PyObject* one;
} Enumerate;

enum { kDequeBlock = 64 };

typedef struct DequeBlock {
  struct DequeBlock* left;
  PyObject* items[kDequeBlock];
  struct DequeBlock* right;
} DequeBlock;

typedef struct {
  PyObject_VAR_HEAD DequeBlock* leftBlock;
  DequeBlock* rightBlock;
  Py_ssize_t leftIndex;
  Py_ssize_t rightIndex;
  size_t state;  // moves with each change
  Py_ssize_t most;
  Py_ssize_t freeCount;
  DequeBlock* freeBlocks[16];
  PyObject* weakReferences;
} Deque;

typedef struct {
  PyObject_HEAD DequeBlock* block;
  Py_ssize_t index;
  Deque* deque;
  size_t state;
  Py_ssize_t left;
} DequeIterator;

typedef struct {
  PyObject_HEAD Py_ssize_t number;  // PY_SSIZE_T_MAX: the long one counts
  PyObject* longNumber;
  PyObject* longStep;
} Count;

static PyTypeObject *strIterator, *asciiIterator, *bytesIterator;
static PyTypeObject *dequeType, *dequeIterator, *dequeReversed, *countType;

// A type of a module, kept for good; null where it is none.
static PyTypeObject* typeOf(const char* module, const char* name) {
  PyObject* from = PyImport_ImportModule(module);
  PyObject* found = from ? PyObject_GetAttrString(from, name) : NULL;
  Py_XDECREF(from);
  return found && PyType_Check(found) ? (PyTypeObject*)found : NULL;
}

// Types that the C API does not name.
static void findTypes(void) {
  static int found = 0;
  if (found) return;
  found = 1;
  PyObject* samples[] = {PyUnicode_FromString("\xc3\xa9"), PyUnicode_FromString("a"), PyBytes_FromString("a")};
  PyTypeObject** types[] = {&strIterator, &asciiIterator, &bytesIterator};
  for (int i = 0; i < 3; i++) {
    PyObject* iterator = samples[i] ? PyObject_GetIter(samples[i]) : NULL;
    if (iterator) *types[i] = Py_TYPE(iterator);
    Py_XDECREF(iterator);
    Py_XDECREF(samples[i]);
  }
  dequeType = typeOf("_collections", "deque");
  dequeIterator = typeOf("_collections", "_deque_iterator");
  dequeReversed = typeOf("_collections", "_deque_reverse_iterator");
  countType = typeOf("itertools", "count");
  PyErr_Clear();
}

static int isSized(PyTypeObject* type, size_t size) { return type->tp_basicsize == (Py_ssize_t)size; }

static int isDictIterator(PyTypeObject* type) { return type == &PyDictIterKey_Type || type == &PyDictIterValue_Type || type == &PyDictIterItem_Type; }

static int isSequenceIterator(PyTypeObject* type) {
  findTypes();
  return type == &PyListIter_Type || type == &PyTupleIter_Type || type == &PyListRevIter_Type || type == &PyReversed_Type || type == strIterator ||
         type == asciiIterator || type == bytesIterator;
}

static int isDequeIterator(PyTypeObject* type) {
  findTypes();
  return (type == dequeIterator || type == dequeReversed) && dequeType && dequeType->tp_basicsize == (Py_ssize_t)sizeof(Deque);
}

IteratorShape iteratorShape(PyTypeObject* type) {
  if (type == &PyGen_Type) return kIteratorGenerator;
  if (type == &PyZip_Type) return isSized(type, sizeof(Zip)) ? kIteratorZip : kIteratorUnknown;
  if (type == &PyMap_Type) return isSized(type, sizeof(Map)) ? kIteratorMap : kIteratorUnknown;
  if (type == &PyFilter_Type) return isSized(type, sizeof(Filter)) ? kIteratorFilter : kIteratorUnknown;
  if (type == &PyEnum_Type) return isSized(type, sizeof(Enumerate)) ? kIteratorEnumerate : kIteratorUnknown;
  size_t size = type == &PyRangeIter_Type  ? sizeof(RangeIterator)
                : type == &PySetIter_Type  ? sizeof(SetIterator)
                : isDictIterator(type)     ? sizeof(DictIterator)
                : isSequenceIterator(type) ? sizeof(SequenceIterator)
                : isDequeIterator(type)    ? sizeof(DequeIterator)
                : type == countType        ? sizeof(Count)
                                           : 0;
  return size && isSized(type, size) ? kIteratorOfItems : kIteratorUnknown;
}

static int64_t generatorTraits(PyObject* it) {
  enum { kMostSlots = 39 };
  GeneratorFrame f;
  if (!readGenerator(it, &f) || f.slotCount > kMostSlots || f.unit < 0 || f.unit >= 1 << 21) return -1;
  int64_t traits = ((int64_t)f.unit * 2 + f.started) * 2 + (f.handled != NULL);
  for (int i = 0; i < kMostSlots; i++) traits = traits * 2 + (i < f.slotCount && f.slots[i] != NULL);
  return traits;
}

int64_t iteratorTraits(PyObject* it) {
  switch (iteratorShape(Py_TYPE(it))) {
    case kIteratorZip: {
      Zip* zip = (Zip*)it;
      if (zip->size == 0) return 0;
      return zip->iterators && PyTuple_CheckExact(zip->iterators) ? PyTuple_GET_SIZE(zip->iterators) * 2 + (zip->strict != 0) : -1;
    }
    case kIteratorMap: {
      Map* map = (Map*)it;
      return map->function && map->iterators && PyTuple_CheckExact(map->iterators) ? PyTuple_GET_SIZE(map->iterators) : -1;
    }
    case kIteratorFilter: return ((Filter*)it)->function && ((Filter*)it)->iterator ? 0 : -1;
    case kIteratorEnumerate: {
      Enumerate* e = (Enumerate*)it;
      return e->iterator && !e->longIndex && e->index >= 0 && e->index < PY_SSIZE_T_MAX / 2 ? 0 : -1;
    }
    case kIteratorOfItems: return 0;
    case kIteratorGenerator: return generatorTraits(it);
    default: return -1;
  }
}

static PyObject* itemOf(PyObject* tuple, int i) {
  return tuple && PyTuple_CheckExact(tuple) && i >= 0 && i < PyTuple_GET_SIZE(tuple) ? PyTuple_GET_ITEM(tuple, i) : NULL;
}

typedef struct {
  PyObject_HEAD PyObject* mapping;
} MappingProxy;

PyObject* contextMissing(void) {
  static PyObject* missing = NULL;
  if (!missing) missing = PyObject_GetAttrString((PyObject*)&PyContextToken_Type, "MISSING");
  return missing;
}

static PyObject* contextValue(PyObject* variable) {
  PyObject *value = NULL, *missing = contextMissing();
  if (!missing || PyContextVar_Get(variable, missing, &value) < 0) PyErr_Clear();
  return value;
}

PyObject* iteratorPart(PyObject* it, int part) {
  PyTypeObject* type = Py_TYPE(it);
  PyObject* found = NULL;
  if (type == &PyContextVar_Type) return part == kContextValue ? contextValue(it) : NULL;
  if (type == &PyDictProxy_Type) {
    if (part == kProxyMapping) found = ((MappingProxy*)it)->mapping;
    Py_XINCREF(found);
    return found;
  }
  switch (iteratorShape(type)) {
    case kIteratorZip: found = itemOf(((Zip*)it)->iterators, part); break;
    case kIteratorMap: found = part == 0 ? ((Map*)it)->function : itemOf(((Map*)it)->iterators, part - 1); break;
    case kIteratorFilter: found = part == 0 ? ((Filter*)it)->function : ((Filter*)it)->iterator; break;
    case kIteratorEnumerate: {
      if (part == 0) {
        found = ((Enumerate*)it)->iterator;
        break;
      }
      PyObject* number = PyLong_FromSsize_t(((Enumerate*)it)->index);
      if (!number) PyErr_Clear();
      return number;
    }
    case kIteratorOfItems:
      if (part != 0 || type == &PyRangeIter_Type || type == countType) return NULL;
      found = type == &PySetIter_Type ? ((SetIterator*)it)->set
              : isDictIterator(type)  ? ((DictIterator*)it)->dict
              : isDequeIterator(type) ? (PyObject*)((DequeIterator*)it)->deque
                                      : ((SequenceIterator*)it)->sequence;
      break;
    case kIteratorGenerator: {
      GeneratorFrame f;
      if (!readGenerator(it, &f)) return NULL;
      if (part == kGeneratorCode)
        found = (PyObject*)f.code;
      else if (part == kGeneratorHandled)
        found = f.handled;
      else if (part >= 0 && part < f.slotCount + f.stackDepth)
        found = part < f.slotCount ? f.slots[part] : f.stack[part - f.slotCount];
      break;
    }
    default: break;
  }
  Py_XINCREF(found);
  return found;
}

static int gave(PyObject* made, PyObject** item) {
  if (!made) PyErr_Clear();
  *item = made;
  return made ? 1 : -1;
}

static int peekSequence(SequenceIterator* it, Py_ssize_t k, PyObject** item) {
  PyTypeObject* type = Py_TYPE(it);
  PyObject* sequence = it->sequence;
  if (!sequence) return 0;
  int backwards = type == &PyListRevIter_Type || type == &PyReversed_Type;
  if (type == &PyReversed_Type && !PyTuple_CheckExact(sequence)) return -1;
  Py_ssize_t size = PyUnicode_Check(sequence) ? PyUnicode_GET_LENGTH(sequence) : Py_SIZE(sequence);
  if (backwards ? k > it->index : k >= size - it->index) return 0;
  Py_ssize_t at = backwards ? it->index - k : it->index + k;
  if (at < 0 || at >= size) return 0;
  if (PyUnicode_Check(sequence)) return gave(PyUnicode_FromOrdinal((int)PyUnicode_READ_CHAR(sequence, at)), item);
  if (PyBytes_Check(sequence)) return gave(PyLong_FromLong((unsigned char)PyBytes_AS_STRING(sequence)[at]), item);
  PyObject* found = PyList_Check(sequence) ? PyList_GET_ITEM(sequence, at) : PyTuple_Check(sequence) ? PyTuple_GET_ITEM(sequence, at) : NULL;
  if (!found) return -1;
  Py_INCREF(found);
  *item = found;
  return 1;
}

static int peekRange(RangeIterator* it, Py_ssize_t k, PyObject** item) {
#if PY_VERSION_HEX < 0x030C0000
  long first = it->index;
#else
  long first = 0;
#endif
  if (k >= it->length - first) return 0;
  return gave(PyLong_FromLong((long)((unsigned long)it->start + (unsigned long)(first + (long)k) * (unsigned long)it->step)), item);
}

static int peekDict(DictIterator* it, Py_ssize_t k, PyObject** item) {
  if (!it->dict) return 0;
  if (it->used != PyDict_GET_SIZE(it->dict)) return -1;
  PyObject *key = NULL, *value = NULL;
  Py_ssize_t position = it->position;
  for (Py_ssize_t i = 0; i <= k; i++)
    if (!PyDict_Next(it->dict, &position, &key, &value)) return 0;
  if (k >= it->left) return -1;
  PyTypeObject* type = Py_TYPE(it);
  if (type == &PyDictIterItem_Type) return gave(PyTuple_Pack(2, key, value), item);
  *item = type == &PyDictIterKey_Type ? key : value;
  Py_INCREF(*item);
  return 1;
}

static int peekSet(SetIterator* it, Py_ssize_t k, PyObject** item) {
  if (!it->set) return 0;
  if (it->used != PySet_GET_SIZE(it->set)) return -1;
  PyObject* found = NULL;
  Py_hash_t hash;
  Py_ssize_t position = it->position;
  for (Py_ssize_t i = 0; i <= k; i++)
    if (!_PySet_NextEntry(it->set, &position, &found, &hash)) return 0;
  Py_INCREF(found);
  *item = found;
  return 1;
}

static int peekDeque(DequeIterator* it, Py_ssize_t k, PyObject** item) {
  if (k >= it->left) return 0;
  if (!it->deque || it->deque->state != it->state) return -1;
  DequeBlock* block = it->block;
  Py_ssize_t at = it->index;
  if (Py_TYPE(it) == dequeIterator) {
    for (at += k; at >= kDequeBlock; at -= kDequeBlock) block = block->right;
  } else {
    for (at -= k; at < 0; at += kDequeBlock) block = block->left;
  }
  *item = block->items[at];
  Py_INCREF(*item);
  return 1;
}

static int peekCount(Count* it, Py_ssize_t k, PyObject** item) {
  if (it->longNumber || it->number >= PY_SSIZE_T_MAX - k) return -1;
  return gave(PyLong_FromSsize_t(it->number + k), item);
}

int peekIterator(PyObject* it, Py_ssize_t k, PyObject** item) {
  *item = NULL;
  PyTypeObject* type = Py_TYPE(it);
  if (k < 0 || iteratorShape(type) != kIteratorOfItems) return -1;
  if (type == &PyRangeIter_Type) return peekRange((RangeIterator*)it, k, item);
  if (type == &PySetIter_Type) return peekSet((SetIterator*)it, k, item);
  if (isDictIterator(type)) return peekDict((DictIterator*)it, k, item);
  if (isDequeIterator(type)) return peekDeque((DequeIterator*)it, k, item);
  if (type == countType) return peekCount((Count*)it, k, item);
  return peekSequence((SequenceIterator*)it, k, item);
}

int peekMayCollect(PyObject* it) { return Py_TYPE(it) == &PyDictIterItem_Type; }

void advanceEnumerate(PyObject* enumerate, Py_ssize_t count) { ((Enumerate*)enumerate)->index += count; }

PyObject* newReversed(PyObject* sequence, Py_ssize_t index) {
  SequenceIterator* made = (SequenceIterator*)PyReversed_Type.tp_alloc(&PyReversed_Type, 0);
  if (made) {
    made->index = sequence ? index : -1;
    made->sequence = Py_XNewRef(sequence);
  }
  return (PyObject*)made;
}
