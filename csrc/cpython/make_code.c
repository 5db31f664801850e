#define Py_BUILD_CORE 1
#include "cpython/compat.h"
#include "internal/pycore_code.h"

unsigned localsplusKind(PyCodeObject* code, int slot) { return (unsigned char)PyBytes_AS_STRING(code->co_localspluskinds)[slot]; }

PyCodeObject* makeCode(const CodeParts* parts) {
  struct _PyCodeConstructor constructor = {
      .filename = parts->filename,
      .name = parts->name,
      .qualname = parts->qualname,
      .flags = parts->flags,
      .code = parts->code,
      .firstlineno = parts->firstLine,
      .linetable = parts->lineTable,
      .consts = parts->consts,
      .names = parts->names,
      .localsplusnames = parts->localsplusNames,
      .localspluskinds = parts->localsplusKinds,
      .argcount = parts->argcount,
      .posonlyargcount = parts->posOnlyCount,
      .kwonlyargcount = parts->kwOnlyCount,
      .stacksize = parts->stacksize,
      .exceptiontable = parts->exceptionTable,
  };
  if (_PyCode_Validate(&constructor) < 0) return NULL;
  return _PyCode_New(&constructor);
}
