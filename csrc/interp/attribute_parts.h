// What the files about attributes share.
#pragma once
#include <string>

#include "interp/protocol.h"

namespace cdynamo {

// The interned string, kept for the life of the process.
PyObject* interned(const char* text);
// What a function keeps beside its __dict__, and a program may set.
bool isFunctionName(const std::string& attribute);
// For messages.
std::string textOf(PyObject* name);

inline bool hasInstanceDict(PyTypeObject* type) { return type->tp_dictoffset != 0 || PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT); }
inline bool isDataDescriptor(PyObject* d) { return Py_TYPE(d)->tp_descr_set != nullptr; }

// What a property says that lacks its getter, setter or deleter.
[[noreturn]] void propertyError(Trace& t, PyObject* property, PyTypeObject* type, const char* part);

// The attributes that an existing threading.local has in this thread; null where object is none.
DictValue* threadDict(Trace& t, Value* object);

// What an existing mappingproxy shows; null where v is none.
Value* mappingOfProxy(Trace& t, Value* v);
// A new proxy of a dict.
Value* proxyOf(Trace& t, Value* mapping);
// The comparison where one is such a proxy; null where none is.
Value* compareProxies(Trace& t, int op, Value* a, Value* b);

// Writes to a place of the instance that is no entry of its dictionary; value null: deleted.
void setSlot(Trace& t, InstanceValue* i, PyObject* name, Value* value);
// The name by which a slot or getter of C code is known: its own, whatever name it was found under. Raises TypeError where it is none of
// the object's type; breaks where another one of the type has that name.
PyObject* slotName(Trace& t, PyObject* descriptor, Value* instance);

}  // namespace cdynamo
