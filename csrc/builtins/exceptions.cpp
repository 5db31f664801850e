// What exceptions and sys say about exceptions: exc_info, with_traceback, groups.
#include "base/lookup.h"
#include "builtins/table.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

Value* sysExcInfo(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 0);
  Value* handled = t.topmostHandled();
  if (!handled) return t.tuple({t.none(), t.none(), t.none()});
  return t.tuple({typeValue(t, handled), handled, t.tracebackOf(handled)});
}

Value* sysException(Trace& t, CallArgs& a) {
  expectArgs(a, 0, 0);
  Value* handled = t.topmostHandled();
  return handled ? handled : t.none();
}

Value* withTraceback(Trace& t, CallArgs& a) {
  expectArgs(a, 2, 2);
  setAttr(t, a.args[0], t.keep(checked(PyUnicode_InternFromString("__traceback__"))), a.args[1]);
  return a.args[0];
}

// A part of a group has the traceback of the whole.
Value* copyTraceback(Trace& t, CallArgs& a) {
  if (a.args.at(1)->source || !t.setTraceback(a.args[1], t.tracebackOf(a.args.at(0))))
    unsupported(BreakReason::ExceptionTraceback, "the traceback of a group");
  return t.none();
}

Value* sameTraceback(Trace& t, CallArgs& a) { return t.boolean(isSame(t, t.tracebackOf(a.args.at(0)), t.tracebackOf(a.args.at(1)))); }

// traceback.clear_frames(tb), as unittest calls it: the frames of what the trace raised hold nothing.
Value* clearFrames(Trace& t, CallArgs& a) {
  expectArgs(a, 1, 1);
  Value* rest = a.args[0];
  while (const Trace::TracebackEntry* entry = t.asTraceback(rest)) rest = entry->next;
  if (isSame(t, rest, t.none())) return t.none();
  static PyObject* function = importedObject("traceback", "clear_frames");
  return inlineFunction(t, pinnedValue(t, function), std::move(a));
}

}  // namespace

void addExceptionBuiltins(BuiltinTable& table) {
  table.add("traceback.clear_frames", clearFrames);
  table.add("sys.exc_info", sysExcInfo);
  table.add("sys.exception", sysException);
  table.add("builtins.BaseException.with_traceback", withTraceback);
  table.add("cdynamo.polyfills.copy_traceback", copyTraceback);
  table.add("cdynamo.polyfills.same_traceback", sameTraceback);
  table.addPolyfill("builtins.BaseExceptionGroup.split", "group_split");
  table.addPolyfill("builtins.BaseExceptionGroup.subgroup", "group_subgroup");
  table.addPolyfill("builtins.BaseExceptionGroup.derive", "group_derive");
  table.addPolyfill("builtins.BaseExceptionGroup.__str__", "group_str");
}

// What BaseExceptionGroup.__new__ checks; the class of the new group may be ExceptionGroup instead.
PyTypeObject* groupClass(Trace& t, PyTypeObject* type, const CallArgs& args) {
  auto* base = reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup);
  if (args.args.size() != 2)
    raise(t, PyExc_TypeError, "BaseExceptionGroup.__new__() takes exactly 2 arguments (" + std::to_string(args.args.size()) + " given)");
  if (!PyType_IsSubtype(t.typeOf(args.args[0]), &PyUnicode_Type))
    raise(t, PyExc_TypeError,
          std::string("BaseExceptionGroup.__new__() argument 1 must be str, not ") +
              (isReal(args.args[0], Py_None) ? "None" : t.typeOf(args.args[0])->tp_name));
  if (!asList(args.args[1]) && !asTuple(args.args[1])) {
    if (isReal(args.args[1]) && !PySequence_Check(realObject(args.args[1])))
      raise(t, PyExc_TypeError, "second argument (exceptions) must be a sequence");
    if (!isReal(args.args[1])) unsupported(BreakReason::ObjectConstruction, "a group of " + describe(args.args[1]));
  }
  std::vector<Value*> members = itemsOf(t, args.args[1]);
  if (members.empty()) raise(t, PyExc_ValueError, "second argument (exceptions) must be a non-empty sequence");
  bool nestsBase = false;
  for (size_t i = 0; i < members.size(); i++) {
    PyTypeObject* member = t.typeOf(members[i]);
    if (!PyType_FastSubclass(member, Py_TPFLAGS_BASE_EXC_SUBCLASS))
      raise(t, PyExc_ValueError, "Item " + std::to_string(i) + " of second argument (exceptions) is not an exception");
    nestsBase |= !PyType_IsSubtype(member, reinterpret_cast<PyTypeObject*>(PyExc_Exception));
  }
  static PyObject* plain = PyDict_GetItemString(PyEval_GetBuiltins(), "ExceptionGroup");
  if (type == base) return nestsBase ? type : reinterpret_cast<PyTypeObject*>(plain);
  if (nestsBase && reinterpret_cast<PyObject*>(type) == plain) raise(t, PyExc_TypeError, "Cannot nest BaseExceptions in an ExceptionGroup");
  if (nestsBase && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_Exception)))
    raise(t, PyExc_TypeError, std::string("Cannot nest BaseExceptions in '") + type->tp_name + "'");
  return type;
}

}  // namespace cdynamo
