// Attributes of existing classes that the traced program sets, or that were seen to change from call to call.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// The namespace of an existing class.
DictValue* classDict(Trace& t, PyTypeObject* type);
// What the program has set under that name in the class, or in a base that comes first; null: what the class itself says holds.
Value* writtenClassAttr(Trace& t, PyTypeObject* type, PyObject* name);
// False: it cannot be followed.
bool setExistingClassAttr(Trace& t, PyTypeObject* type, PyObject* name, Value* value);
// How an attribute that is another one in each call is reached; null: `found` is a fact about the class.
const Source* changingClassAttr(Trace& t, PyTypeObject* type, PyObject* name, PyObject* found);

}  // namespace cdynamo
