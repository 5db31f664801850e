// Version-stable access to what CPython keeps in internal structures. Plain C: the .c files may include its internal
// headers, nobody else does. No function here throws.
#pragma once
#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- code objects ----------------------------------------------------------------------------------------------------

// Bits of localsplusKind(). Hidden: a local of a comprehension that 3.12 inlined into a class or module body.
enum { kLocalsplusHidden = 0x10, kLocalsplusLocal = 0x20, kLocalsplusCell = 0x40, kLocalsplusFree = 0x80 };
unsigned localsplusKind(PyCodeObject* code, int slot);

// What a new code object is made of. Everything is borrowed.
typedef struct CodeParts {
  PyObject* filename;
  PyObject* name;
  PyObject* qualname;
  int flags;
  PyObject* code;  // bytes
  int firstLine;
  PyObject* lineTable;        // bytes
  PyObject* exceptionTable;   // bytes
  PyObject* consts;           // tuple
  PyObject* names;            // tuple of str
  PyObject* localsplusNames;  // tuple of str
  PyObject* localsplusKinds;  // bytes, one per name
  int argcount;
  int posOnlyCount;
  int kwOnlyCount;
  int stacksize;
} CodeParts;
// A new reference, or null with a Python error set (also where CPython finds the parts inconsistent).
PyCodeObject* makeCode(const CodeParts* parts);

// ---- dicts, types, instances -----------------------------------------------------------------------------------------

// Changes when the type or one of its bases is changed. Gives the type a version where it has none and may have one;
// 0: no version can be given, so nothing may be concluded from it. Never raises.
unsigned typeVersion(PyTypeObject* type);
// The version that the type has now, 0 if none: for the guard path, no work done.
unsigned peekTypeVersion(PyTypeObject* type);

// The attribute as the type's MRO gives it, no descriptor called: borrowed, null without error where there is none.
PyObject* typeLookup(PyTypeObject* type, PyObject* name);
// The type's own attributes, bases not asked: borrowed.
PyObject* typeDict(PyTypeObject* type);

// The instance's __dict__ (borrowed), made if CPython keeps the values inline; null where the type has none. Clears
// any error (memory) rather than raise.
PyObject* instanceDict(PyObject* object);
// Whether a weak reference points to the object.
int hasWeakReferences(PyObject* object);

// The __dict__ that exists now (borrowed) or null: nothing is made. Null also where the values are still inline.
PyObject* peekInstanceDict(PyObject* object);

#ifdef __cplusplus
}
#endif
