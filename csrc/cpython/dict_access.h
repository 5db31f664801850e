// Loads that the guard path makes thousands of times per call, inline. The rest of the access is in compat.h.
#pragma once
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// True where every key of the dict is an exact str, so that a lookup with a str cannot run anybody's __eq__.
int dictHasOnlyStrKeys(PyObject* dict);
// key in dict, dict[key] = value, without asking the key for its hash. -1 with an error set where a comparison failed.
int dictHasKey(PyObject* dict, PyObject* key, Py_hash_t hash);
int dictStore(PyObject* dict, PyObject* key, PyObject* value, Py_hash_t hash);

// The value under a key that hashes by its address: as object.__hash__ does, or, of a type with a hash of its own, as
// torch.Tensor's, by its id(). Borrowed, or null. Runs no __hash__.
PyObject* dictItemByIdentity(PyObject* dict, PyObject* key);

#ifdef __cplusplus
}
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
// Changes with every change of the dict. No live dict ever has version 0, and no two dicts share a version.
static inline uint64_t dictVersionInline(PyObject* dict) { return ((PyDictObject*)dict)->ma_version_tag; }
#pragma GCC diagnostic pop

// peekTypeVersion() of compat.h without the call.
static inline unsigned typeVersionInline(PyTypeObject* type) {
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

// Where an instance of exactly this type keeps its dict pointer, in bytes from the object; 0: not at a fixed place.
static inline ptrdiff_t dictSlotOffset(PyTypeObject* type) {
  if (PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) return -3 * (ptrdiff_t)sizeof(PyObject*);
  return type->tp_dictoffset > 0 ? type->tp_dictoffset : 0;
}

// The dict at such a place, or null where there is none yet (null, or a tagged pointer to inline values).
static inline PyObject* dictAtSlot(PyObject* object, ptrdiff_t offset) {
  PyObject* word = *(PyObject**)((char*)object + offset);
  return ((uintptr_t)word & 1) ? NULL : word;
}
