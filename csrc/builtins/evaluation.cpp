// eval, exec and compile of constant text.
#include "base/exceptions.h"
#include "base/lookup.h"
#include "base/warning_watch.h"
#include "builtins/table.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

bool isSameError(PyObject* one, PyObject* other) {
  if (Py_TYPE(one) != Py_TYPE(other)) return false;
  ObjectRef text = checked(PyObject_Str(one)), otherText = checked(PyObject_Str(other));
  return PyUnicode_Compare(text.get(), otherText.get()) == 0;
}

// Compiled as in the frame that asks: its __future__ imports hold there too. Breaks where the compiler warns, which it does by a
// SyntaxError where warnings are errors.
ObjectRef compiled(Trace& t, PyObject* source, PyObject* filename, PyObject* mode) {
  static PyObject* compile = importedObject("builtins", "compile");
  const int flags = t.frame->code->flags() & PyCF_MASK;
  ObjectRef number = checked(PyLong_FromLong(flags));
  auto attempt = [&](WarningWatch::Action warnings) {
    WarningWatch watch(warnings);
    return ObjectRef::steal(PyObject_CallFunctionObjArgs(compile, source, filename, mode, number.get(), Py_True, nullptr));
  };
  if (ObjectRef code = attempt(WarningWatch::Raise)) return code;
  ObjectRef first = takeException();
  ObjectRef code = attempt(WarningWatch::Ignore);
  ObjectRef second = takeException();
  if (code || !isSameError(first.get(), second.get())) unsupported(BreakReason::Output, "code that the compiler warns about");
  restoreException(second.get());
  raiseCurrent(t);
}

Value* builtinCompile(Trace& t, CallArgs& a) {
  if (a.args.size() != 3 || !a.kwargs.empty()) unsupported(BreakReason::UnknownFunction, "compile() with flags");
  PyObject* parts[3];
  for (size_t i = 0; i < 3; i++) {
    parts[i] = t.constant(a.args[i]);
    if (!parts[i] || !(PyUnicode_CheckExact(parts[i]) || (i == 0 && PyBytes_CheckExact(parts[i]))))
      unsupported(BreakReason::UnknownFunction, "compile() of what is no constant text");
  }
  return t.real(compiled(t, parts[0], parts[1], parts[2]));
}

bool hasInnerCode(PyCodeObject* code) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++)
    if (PyCode_Check(PyTuple_GET_ITEM(code->co_consts, i))) return true;
  return false;
}

bool storesNames(const Code& code) {
  for (const Instr& in : code.instrs())
    if (in.op == Op::StoreName || in.op == Op::DeleteName) return true;
  return false;
}

// The code of the first argument: a code object, or a text that is compiled.
PyCodeObject* codeOf(Trace& t, Value* v, bool expression) {
  PyObject* given = isReal(v) && PyCode_Check(realObject(v)) ? t.identity(v) : t.constant(v);
  if (given && PyUnicode_CheckExact(given)) {
    ObjectRef text = ObjectRef::share(given), blanks = checked(PyUnicode_FromString(" \t"));
    if (expression) text = checked(PyObject_CallMethod(given, "lstrip", "O", blanks.get()));
    ObjectRef filename = checked(PyUnicode_FromString("<string>")), mode = checked(PyUnicode_FromString(expression ? "eval" : "exec"));
    given = t.keep(compiled(t, text.get(), filename.get(), mode.get()));
  }
  if (!given || !PyCode_Check(given)) unsupported(BreakReason::UnknownFunction, "eval() or exec() of what is no constant text");
  auto* code = reinterpret_cast<PyCodeObject*>(given);
  if (code->co_nfreevars || (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)))
    unsupported(BreakReason::UnknownFunction, "eval() or exec() of the code of a function");
  return code;
}

// The dict to look names up in; null: not given.
DictValue* namespaceOf(Trace& t, const CallArgs& a, size_t i) {
  if (a.args.size() <= i || isReal(a.args[i], Py_None)) return nullptr;
  Value* v = a.args[i];
  if (v->kind != Kind::Dict || t.typeOf(v) != &PyDict_Type) unsupported(BreakReason::UnknownFunction, "eval() or exec() with " + describe(v));
  return as<DictValue>(v);
}

template <bool expression>
Value* evaluate(Trace& t, CallArgs& a) {
  if (!a.kwargs.empty() || a.args.empty() || a.args.size() > 3) unsupported(BreakReason::UnknownFunction, "eval() or exec() with keywords");
  PyCodeObject* code = codeOf(t, a.args[0], expression);
  const Code& body = decode(code);
  DictValue *globals = namespaceOf(t, a, 1), *locals = namespaceOf(t, a, 2);
  if (!globals && !locals) {
    // Of a function they are a copy, which nobody sees again: what is stored there stays with CPython.
    if (storesNames(body)) unsupported(BreakReason::UnknownFunction, "exec() that changes the names of the function");
    static PyObject* ask = importedObject("builtins", "locals");
    locals = asDict(call(t, t.realShared(ask), {}));
  }
  PyObject* real = globals ? globals->real.get() : t.frame->globals;
  // Functions keep the dict itself.
  if (!real && hasInnerCode(code)) unsupported(BreakReason::UnknownFunction, "eval() or exec() of functions in a dict that was made here");
  if (globals) {
    static PyObject* name = PyUnicode_InternFromString("__builtins__");
    Value* builtins = t.dictGetName(globals, name);
    static PyObject* module = checked(PyImport_ImportModule("builtins")).release();
    PyObject* dict = PyModule_GetDict(module);
    if (!builtins) t.dictSet(globals, t.keyOf(t.realShared(name)), pinnedValue(t, dict));
    auto* heap = builtins ? dynamic_cast<HeapValue*>(builtins) : nullptr;
    if (builtins && !isReal(builtins, module) && (!heap || heap->real.get() != dict))
      unsupported(BreakReason::UnknownFunction, "eval() or exec() with other builtins");
    if (real && globals->source && globals->source->kind != SourceKind::Pinned) t.facts.identityIs(globals->source, real);
  }
  auto* function = t.make<FunctionValue>();
  function->type = &PyFunction_Type;
  function->code = reinterpret_cast<PyObject*>(code);
  function->globals = real ? real : t.frame->globals;
  FrameState* f = newFrame(t, body, function, function->globals, nullptr);
  if (globals) f->globalsDict = globals;
  f->names = locals ? locals : f->globalsDict;
  runFrame(t, *f);
  Value* result = f->result;
  t.recycleFrame(f);
  return expression ? result : t.none();
}

}  // namespace

void addEvaluation(BuiltinTable& table) {
  table.add("builtins.compile", builtinCompile);
  table.add("builtins.eval", evaluate<true>);
  table.add("builtins.exec", evaluate<false>);
}

}  // namespace cdynamo
