// Known pieces of library code that the interpreter answers in C++ instead of tracing, with the same result and guards.
#pragma once
#include "interp/protocol.h"

namespace cdynamo {

// A value reached by identity: pinned by a fact that was recorded already.
Value* pinnedValue(Trace& t, PyObject* object);

// torch.nn.Module.__getattr__: looks in _parameters, _buffers, _modules. `known`: hook is that function; null then means absent.
Value* moduleGetAttr(Trace& t, PyObject* hook, InstanceValue* module, PyObject* name, bool& known);

// What torch.nn.Module.__call__ of a module without hooks comes to: its forward. Null where that does not apply.
Value* moduleForward(Trace& t, InstanceValue* module);

// Descriptors implemented in C that have no type of their own in the C API (named tuple fields, functools.cached_property,
// torch's class properties); null where unknown.
Value* bindKnownDescriptor(Trace& t, PyObject* descriptor, Value* instance, PyTypeObject* owner, PyObject* name);

// A C object whose attributes are fixed data and may be read as constants (torch.finfo, dtype, device, inspect-like objects).
bool isOpaqueReadable(PyObject* object);

// typing.List[int], list[T], collections.abc.Callable[[T], T]: made by their own code, which only looks at types. Null for all else.
Value* genericAlias(Trace& t, Value* container, Value* key);

// torch._dynamo.config and other modules of settings: their values are guarded, and changed for real while tracing.
bool isConfigModule(PyObject* module);
Value* configAttr(Trace& t, PyObject* module, PyObject* name);  // null: absent
void setConfigAttr(Trace& t, PyObject* module, PyObject* name, Value* value);

void setTensorAttr(Trace& t, TensorValue* tensor, PyObject* name, Value* value);

// What happens to an exception when it is raised: the one that is being handled becomes its context.
void linkContext(Trace& t, Value* exception);

// What a __repr__ that reprlib or dataclasses guards against cycles calls; null where `function` (Real, a Python function) is none.
Value* unguardedRepr(Trace& t, Value* function);

// The next item of one of itertools' iterators; null: exhausted.
Value* nextOfItertool(Trace& t, IteratorValue* it);

}  // namespace cdynamo
