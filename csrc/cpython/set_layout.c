#include "cpython/set_layout.h"

#include <string.h>

PyObject* cloneSet(PyObject* set) {
  PySetObject* from = (PySetObject*)set;
  PyObject* made = PyFrozenSet_Check(set) ? PyFrozenSet_New(NULL) : PySet_New(NULL);
  if (!made) return NULL;
  PySetObject* to = (PySetObject*)made;
  size_t size = (size_t)from->mask + 1;
  setentry* table = to->smalltable;
  if (size > PySet_MINSIZE) {
    table = PyMem_New(setentry, size);
    if (!table) {
      Py_DECREF(made);
      return PyErr_NoMemory();
    }
  }
  // Deleted entries hold a key of their own kind, which no set counts.
  memcpy(table, from->table, size * sizeof(setentry));
  for (size_t i = 0; i < size; i++)
    if (table[i].key && table[i].hash != -1) Py_INCREF(table[i].key);
  to->table = table;
  to->mask = from->mask;
  to->fill = from->fill;
  to->used = from->used;
  to->finger = from->finger;
  to->hash = from->hash;
  return made;
}
