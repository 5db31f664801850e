#define Py_BUILD_CORE 1
#include "cpython/compat.h"
#include "internal/pycore_code.h"

unsigned localsplusKind(PyCodeObject* code, int slot) { return (unsigned char)PyBytes_AS_STRING(code->co_localspluskinds)[slot]; }

PyCodeObject* makeCode(const CodeParts* parts) {
  // CPython interns the strings among the constants, and those in tuples, in place. They must stay the objects that they are: it is
  // shown other constants.
  Py_ssize_t count = PyTuple_GET_SIZE(parts->consts);
  PyObject* blank = PyTuple_New(count);
  if (blank == NULL) return NULL;
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(blank, i, Py_NewRef(Py_None));
  struct _PyCodeConstructor constructor = {
      .filename = parts->filename,
      .name = parts->name,
      .qualname = parts->qualname,
      .flags = parts->flags,
      .code = parts->code,
      .firstlineno = parts->firstLine,
      .linetable = parts->lineTable,
      .consts = blank,
      .names = parts->names,
      .localsplusnames = parts->localsplusNames,
      .localspluskinds = parts->localsplusKinds,
      .argcount = parts->argcount,
      .posonlyargcount = parts->posOnlyCount,
      .kwonlyargcount = parts->kwOnlyCount,
      .stacksize = parts->stacksize,
      .exceptiontable = parts->exceptionTable,
  };
  PyCodeObject* code = _PyCode_Validate(&constructor) < 0 ? NULL : _PyCode_New(&constructor);
  if (code != NULL) Py_SETREF(code->co_consts, Py_NewRef(parts->consts));
  Py_DECREF(blank);
  return code;
}
