// CPython's own iterators, looked at without being moved: what they will give, and what they go over. Plain C, as compat.h; no
// function here runs Python code, raises or throws.
#pragma once
#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  kIteratorUnknown,
  kIteratorOfItems,    // over a list, tuple, range, dict, set, str, bytes or deque, and count: its items can be peeked at
  kIteratorZip,        // parts: its iterators
  kIteratorMap,        // parts: the function, then its iterators
  kIteratorFilter,     // parts: the function, the iterator
  kIteratorEnumerate,  // parts: the iterator, the number of the next item
  kIteratorGenerator,  // parts: locals, cells and free variables, then its stack; kGeneratorCode, kGeneratorHandled
} IteratorShape;
IteratorShape iteratorShape(PyTypeObject* type);
enum { kGeneratorHandled = -1, kGeneratorCode = -2 };
// The only part of a mappingproxy, which is read in the same way: what it shows.
enum { kProxyMapping = -3 };
// The only part of a contextvars.ContextVar: what it is set to in this context, or contextvars.Token.MISSING.
enum { kContextValue = -4 };
PyObject* contextMissing(void);  // that object; borrowed, null with an error

// What else must be the same where a shape is relied on: the number of a zip's or map's iterators, whether a zip is strict; where
// in its code a generator stands, which slots are bound, whether it handles an exception.
// -1: not as the shape says.
int64_t iteratorTraits(PyObject* iterator);

// A part by number; of an iterator over items: 0, what it goes over. A new reference, or null where there is none.
PyObject* iteratorPart(PyObject* iterator, int part);

// Item number k from where it stands. 1: *item is a new reference, 0: it ends before, -1: it will raise, or is not known.
int peekIterator(PyObject* iterator, Py_ssize_t k, PyObject** item);
// True where peeking allocates what the collector tracks.
int peekMayCollect(PyObject* iterator);

// The number of the next item grows, and no item is taken.
void advanceEnumerate(PyObject* enumerate, Py_ssize_t count);

// A builtins.reversed that gives sequence[index] next; none of the sequence's own code runs. sequence null: it has ended.
PyObject* newReversed(PyObject* sequenceOrNull, Py_ssize_t index);

#ifdef __cplusplus
}
#endif
