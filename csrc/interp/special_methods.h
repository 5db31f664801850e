// What items and iteration both ask of a type.
#pragma once
#include <string>

#include "interp/break_reasons.h"
#include "interp/protocol.h"

namespace cdynamo {

// A Python-level special method of an instance, or null where the type's is C code.
Value* pythonSpecial(Trace& t, Value* v, const char* name);

// Before it is said that a type cannot do something: an existing object of a C type may well, by a slot that is not modelled.
template <typename HasSlot>
void checkModelled(Trace& t, Value* v, const char* what, HasSlot&& hasSlot) {
  auto* i = v->kind == Kind::Instance ? as<InstanceValue>(v) : nullptr;
  if (!isReal(v) && (!i || !i->real)) return;
  PyTypeObject* type = t.typeOf(v);
  static PyMappingMethods noMapping{};
  static PySequenceMethods noSequence{};
  if (hasSlot(*type, type->tp_as_mapping ? *type->tp_as_mapping : noMapping, type->tp_as_sequence ? *type->tp_as_sequence : noSequence))
    unsupported(BreakReason::UnsupportedIteration, std::string(what) + " " + describe(v));
}

}  // namespace cdynamo
