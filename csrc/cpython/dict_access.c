#define Py_BUILD_CORE 1
#include "cpython/dict_access.h"

#include "internal/pycore_dict.h"

int dictHasOnlyStrKeys(PyObject* dict) { return ((PyDictObject*)dict)->ma_keys->dk_kind != DICT_KEYS_GENERAL; }

int dictHasKey(PyObject* dict, PyObject* key, Py_hash_t hash) { return _PyDict_Contains_KnownHash(dict, key, hash); }

int dictStore(PyObject* dict, PyObject* key, PyObject* value, Py_hash_t hash) { return _PyDict_SetItem_KnownHash(dict, key, value, hash); }

PyObject* dictItemByIdentity(PyObject* dict, PyObject* key) {
  Py_hash_t hash = Py_TYPE(key)->tp_hash == PyBaseObject_Type.tp_hash ? _Py_HashPointer(key) : (Py_hash_t)(intptr_t)key;
  return _PyDict_GetItem_KnownHash(dict, key, hash);
}
