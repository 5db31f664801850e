#define Py_BUILD_CORE 1
#include "cpython/dict_access.h"

#include "internal/pycore_dict.h"

int dictHasOnlyStrKeys(PyObject* dict) { return ((PyDictObject*)dict)->ma_keys->dk_kind != DICT_KEYS_GENERAL; }
