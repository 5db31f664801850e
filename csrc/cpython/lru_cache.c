#include "cpython/lru_cache.h"

#include <string.h>

// ---- a function that gives what it was told --------------------------------------------------------------------------------

// Its self is (cache, function, result); without the result it raises. The cache gets its own function back before anything else
// can run.
static PyObject** functionOf(PyObject* cache);

static PyObject* giveResult(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)args;
  (void)kwargs;
  PyObject** function = functionOf(PyTuple_GET_ITEM(self, 0));
  if (function) {
    PyObject* before = *function;
    *function = Py_NewRef(PyTuple_GET_ITEM(self, 1));
    Py_DECREF(before);  // the caller has another reference
  }
  if (PyTuple_GET_SIZE(self) > 2) return Py_NewRef(PyTuple_GET_ITEM(self, 2));
  PyErr_SetString(PyExc_RuntimeError, "no result");
  return NULL;
}

static PyMethodDef giver = {"give_result", (PyCFunction)(void (*)(void))giveResult, METH_VARARGS | METH_KEYWORDS, NULL};

// ---- where the fields are ---------------------------------------------------------------------------------------------------

static struct {
  int tried;
  PyTypeObject* type;
  PyTypeObject* link;         // of the items of a cache with a limit
  PyObject* keywordMark;      // between the arguments and the keywords of a key
  Py_ssize_t dict, function;  // offsets in a cache
  Py_ssize_t result;          // in a link
} layout;

// The offset of a field that holds the object; 0: none does.
static Py_ssize_t findField(PyObject* holder, PyObject* object) {
  for (Py_ssize_t at = sizeof(PyObject); at + (Py_ssize_t)sizeof(PyObject*) <= Py_TYPE(holder)->tp_basicsize; at += sizeof(PyObject*))
    if (*(PyObject**)((char*)holder + at) == object) return at;
  return 0;
}

// A dict with one item, of a type that only the caches use.
static int findDict(PyObject* object, void* found) {
  if (!PyDict_CheckExact(object) || PyDict_GET_SIZE(object) != 1) return 0;
  PyObject *key, *item;
  Py_ssize_t at = 0;
  if (PyDict_Next(object, &at, &key, &item) && strstr(Py_TYPE(item)->tp_name, "_lru_list_elem")) *(PyObject**)found = object;
  return 0;
}

static PyObject* makeCache(PyObject* functools, PyObject* function) {
  PyObject* decorator = PyObject_CallMethod(functools, "lru_cache", "i", 2);
  PyObject* cache = decorator ? PyObject_CallOneArg(decorator, function) : NULL;
  Py_XDECREF(decorator);
  return cache;
}

static void readLayout(PyObject* cache, PyObject* function, PyObject* result) {
  PyObject* dict = NULL;
  Py_TYPE(cache)->tp_traverse(cache, findDict, &dict);
  if (!dict) return;
  PyObject *key, *item;
  Py_ssize_t at = 0;
  PyDict_Next(dict, &at, &key, &item);
  layout.dict = findField(cache, dict);
  layout.function = findField(cache, function);
  layout.result = findField(item, result);
  if (!layout.dict || !layout.function || !layout.result || !PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 3) return;
  layout.keywordMark = Py_NewRef(PyTuple_GET_ITEM(key, 0));
  layout.link = (PyTypeObject*)Py_NewRef(Py_TYPE(item));
  layout.type = (PyTypeObject*)Py_NewRef(Py_TYPE(cache));
}

static void learn(void) {
  layout.tried = 1;
  PyObject* functools = PyImport_ImportModule("functools");
  PyObject* result = PyObject_CallNoArgs((PyObject*)&PyBaseObject_Type);
  PyObject* self = result ? PyTuple_Pack(3, Py_None, Py_None, result) : NULL;
  PyObject* function = self ? PyCFunction_New(&giver, self) : NULL;
  PyObject* cache = functools && function ? makeCache(functools, function) : NULL;
  PyObject* empty = PyTuple_New(0);
  PyObject* kwargs = Py_BuildValue("{s:i}", "keyword", 1);
  PyObject* given = cache && empty && kwargs && Py_TYPE(cache)->tp_traverse ? PyObject_Call(cache, empty, kwargs) : NULL;
  if (given == result && given) readLayout(cache, function, result);
  PyErr_Clear();
  Py_XDECREF(given);
  Py_XDECREF(kwargs);
  Py_XDECREF(empty);
  Py_XDECREF(cache);
  Py_XDECREF(function);
  Py_XDECREF(self);
  Py_XDECREF(result);
  Py_XDECREF(functools);
}

PyTypeObject* lruCacheType(void) {
  if (!layout.tried) learn();
  return layout.type;
}

static int isCache(PyObject* object) { return lruCacheType() && Py_IS_TYPE(object, layout.type); }

static PyObject** functionOf(PyObject* cache) {
  return layout.type && Py_IS_TYPE(cache, layout.type) ? (PyObject**)((char*)cache + layout.function) : NULL;
}

// ---- reading and writing ----------------------------------------------------------------------------------------------------

PyObject* lruCacheDict(PyObject* cache) { return isCache(cache) ? *(PyObject**)((char*)cache + layout.dict) : NULL; }

PyObject* lruFunction(PyObject* cache) { return isCache(cache) ? *functionOf(cache) : NULL; }

PyObject* lruResult(PyObject* item) { return layout.link && Py_IS_TYPE(item, layout.link) ? *(PyObject**)((char*)item + layout.result) : item; }

Py_ssize_t lruMaxSize(PyObject* cache) {
  PyObject* info = PyObject_CallMethod(cache, "cache_info", NULL);
  PyObject* size = info ? PyObject_GetAttrString(info, "maxsize") : NULL;
  Py_ssize_t answer = size == Py_None ? -1 : size ? PyLong_AsSsize_t(size) : -2;
  if (PyErr_Occurred()) answer = -2;
  Py_XDECREF(size);
  Py_XDECREF(info);
  return answer;
}

PyObject* lruKey(PyObject* args, PyObject* kwargs, int typed) {
  Py_ssize_t count = PyTuple_GET_SIZE(args), named = kwargs ? PyDict_GET_SIZE(kwargs) : 0;
  if (!typed && !named) {
    PyObject* only = count == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    return Py_NewRef(only && (PyUnicode_CheckExact(only) || PyLong_CheckExact(only)) ? only : args);
  }
  PyObject* key = PyTuple_New(count + (named ? 2 * named + 1 : 0) + (typed ? count + named : 0));
  if (!key) return NULL;
  Py_ssize_t next = 0, at = 0;
  PyObject *name, *value;
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(key, next++, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  if (named) PyTuple_SET_ITEM(key, next++, Py_NewRef(layout.keywordMark));
  while (named && PyDict_Next(kwargs, &at, &name, &value)) {
    PyTuple_SET_ITEM(key, next++, Py_NewRef(name));
    PyTuple_SET_ITEM(key, next++, Py_NewRef(value));
  }
  for (Py_ssize_t i = 0; typed && i < count; i++) PyTuple_SET_ITEM(key, next++, Py_NewRef(Py_TYPE(PyTuple_GET_ITEM(args, i))));
  for (at = 0; typed && named && PyDict_Next(kwargs, &at, &name, &value);) PyTuple_SET_ITEM(key, next++, Py_NewRef(Py_TYPE(value)));
  return key;
}

int lruCalled(PyObject* cache, PyObject* args, PyObject* kwargs, PyObject* result) {
  if (!isCache(cache)) {
    PyErr_SetString(PyExc_TypeError, "not an lru_cache");
    return -1;
  }
  PyObject** function = functionOf(cache);
  PyObject* own = *function;  // held by self
  PyObject* self = result ? PyTuple_Pack(3, cache, own, result) : PyTuple_Pack(2, cache, own);
  PyObject* stand_in = self ? PyCFunction_New(&giver, self) : NULL;
  if (!stand_in) {
    Py_XDECREF(self);
    return -1;
  }
  *function = Py_NewRef(stand_in);
  Py_DECREF(own);
  PyObject* given = PyObject_Call(cache, args, kwargs);
  if (*function == stand_in) {  // it was there already
    *function = Py_NewRef(own);
    Py_DECREF(stand_in);
  }
  int failed = given == NULL && (result != NULL || !PyErr_ExceptionMatches(PyExc_RuntimeError));
  if (!failed) PyErr_Clear();
  Py_XDECREF(given);
  Py_DECREF(stand_in);
  Py_DECREF(self);
  return failed ? -1 : 0;
}
