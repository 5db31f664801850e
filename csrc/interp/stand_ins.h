// Objects of cdynamo/_stand_ins.py, as the program sees them.
#pragma once
#include "values/trace.h"

namespace cdynamo {

// The class that an object of our own library stands for; null: v is no such object.
PyTypeObject* standsFor(const Value* v);
// The class that the program sees.
PyTypeObject* shownType(Trace& t, Value* v);
// Whether code of the program, and not the stand-in's own, is being traced.
bool isSeenByProgram(const Trace& t);
// What the program reads as v.name where v stands for an object of the class. `known`: this is the answer, null means absent. Breaks
// where the class has something under that name and the stand-in has not.
Value* standInAttr(Trace& t, Value* v, PyTypeObject* type, PyObject* name, bool& known);

}  // namespace cdynamo
