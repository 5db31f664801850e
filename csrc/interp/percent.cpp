#include "interp/percent.h"

#include "base/lookup.h"
#include "interp/intrinsics.h"

namespace cdynamo {

Value* percentText(Trace& t, PyObject* format, Value* formatValue, Value* values) {
  // "..." % (...): the parts as real copies, or as their text where only that is asked for.
  if (asDict(values)) {
    ObjectRef copy = snapshot(t, values);
    if (!copy) unsupported(BreakReason::UnsupportedText, "% with " + describe(values));
    return t.real(native(t, PyUnicode_Format(format, copy.get())));
  }
  std::vector<Value*> parts = asTuple(values) ? itemsOf(t, asTuple(values)) : std::vector<Value*>{values};
  ObjectRef args = checked(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  bool late = false;
  for (size_t i = 0; i < parts.size(); i++) {
    ObjectRef part = isTensor(parts[i]) || isLateText(parts[i]) || isNumber(parts[i]) ? nullptr : snapshot(t, parts[i]);
    if (!part) {
      const char* utf8 = PyUnicode_AsUTF8(format);
      if (!utf8) PyErr_Clear();
      std::string text = utf8 ? utf8 : "%";
      size_t fields = 0;
      for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 2)) {
        if (at + 1 >= text.size() || (text[at + 1] != 's' && text[at + 1] != '%'))
          unsupported(BreakReason::UnsupportedText, "% with " + describe(parts[i]));
        fields += text[at + 1] == 's';
      }
      // What no field takes is not asked for its text; an object with items may be left over.
      const bool taken = i < fields;
      if (!taken && !asTuple(values) && !isTensor(parts[i]) && t.typeOf(parts[i])->tp_as_mapping && t.typeOf(parts[i])->tp_as_mapping->mp_subscript)
        unsupported(BreakReason::UnsupportedText, "% with " + describe(parts[i]));
      parts[i] = taken || isTensor(parts[i]) ? str(t, parts[i]) : t.none();
      PyObject* c = t.constant(parts[i]);
      late |= !c;
      part = ObjectRef::share(c ? c : Py_None);
    } else {
      parts[i] = t.real(part);
    }
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), part.release());
  }
  if (late) {
    Value* made = lateText(t, importedObject("operator", "mod"), {{formatValue, t.tuple(parts)}, {}});
    return made ? made : throw Unsupported{BreakReason::UnsupportedOperator, "% with computed values"};
  }
  // What is no tuple is given as it is: a format without fields takes a list.
  return t.real(native(t, PyUnicode_Format(format, asTuple(values) ? args.get() : PyTuple_GET_ITEM(args.get(), 0))));
}

}  // namespace cdynamo
