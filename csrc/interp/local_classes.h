// Classes made by the traced program: class statements, type() with three arguments, and what is done to such classes later.
#pragma once
#include <unordered_set>

#include "interp/protocol.h"

namespace cdynamo {

// A function written in Python, existing or made by the trace.
inline bool isPythonFunction(const Value* v) { return v->kind == Kind::Function || (isReal(v) && PyFunction_Check(realObject(v))); }
// __build_class__(body, name, *bases, metaclass=..., **keywords)
Value* buildClass(Trace& t, CallArgs& args);

// The models of the classes that the traced program made, and what their namespaces hold.
std::unordered_set<PyObject*> objectsOfModels(const Trace& t);
// metaclass(name, bases, namespace)
Value* makeClass(Trace& t, PyTypeObject* meta, Value* name, Value* bases, Value* names, CallArgs keywords = {});
// factory(*args, **kwargs) with constants, which makes a class and does nothing else.
Value* makeByFactory(Trace& t, PyObject* factory, CallArgs& args);
// decorator(class, *args), which changes the class; null where the trace did not make it.
Value* decorateClass(Trace& t, PyObject* decorator, CallArgs& args);
// function(cls, *args), which changes a class that the trace made and gives a constant.
Value* doToClass(Trace& t, PyObject* function, CallArgs& args);
// Breaks where a field of the class, which is to be a dataclass, has a default that only stands for a value of the trace.
void refuseComputedFields(Trace& t, PyObject* cls);
// Sets or deletes (value null) an attribute of a class that the trace made.
void setClassAttr(Trace& t, PyTypeObject* type, PyObject* name, Value* value);

}  // namespace cdynamo
