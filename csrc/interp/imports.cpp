// import statements, __import__ and importlib.import_module: done for real while tracing, as the program would.
#include "base/lookup.h"
#include "builtins/table.h"
#include "interp/handlers.h"
#include "interp/intrinsics.h"

namespace cdynamo {

namespace {

// What sys.modules says is what an import gives: guarded there.
Value* moduleValue(Trace& t, ObjectRef module) {
  PyObject* modules = PyImport_GetModuleDict();
  ObjectRef name = PyModule_Check(module.get()) ? ObjectRef::steal(PyModule_GetNameObject(module.get())) : nullptr;
  PyErr_Clear();
  if (name && PyDict_GetItemWithError(modules, name.get()) == module.get())
    return t.wrap(module.get(), t.sources.dictItem(t.sources.pinned(modules), name.get()));
  return t.real(std::move(module));
}

[[noreturn]] void cannotImport(Trace& t, Value* from, PyObject* name) {
  PyObject* module = isReal(from) ? realObject(from) : nullptr;
  ObjectRef package = module ? ObjectRef::steal(PyObject_GetAttrString(module, "__name__")) : nullptr;
  PyErr_Clear();
  ObjectRef file = module && PyModule_Check(module) ? ObjectRef::steal(PyModule_GetFilenameObject(module)) : nullptr;
  PyErr_Clear();
  ObjectRef shown = package ? package : checked(PyUnicode_FromString("<unknown module name>"));
  ObjectRef text;
  if (file) {
    ObjectRef spec = ObjectRef::steal(PyObject_GetAttrString(module, "__spec__"));
    ObjectRef initializing = spec ? ObjectRef::steal(PyObject_GetAttrString(spec.get(), "_initializing")) : nullptr;
    PyErr_Clear();
    const char* format = initializing && PyObject_IsTrue(initializing.get()) == 1
                             ? "cannot import name %R from partially initialized module %R (most likely due to a circular import) (%S)"
                             : "cannot import name %R from %R (%S)";
    text = checked(PyUnicode_FromFormat(format, name, shown.get(), file.get()));
  } else {
    text = checked(PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", name, shown.get()));
  }
  PyErr_SetImportError(text.get(), package.get(), file.get());
  raiseCurrent(t);
}

Value* builtinImport(Trace& t, CallArgs& a) {
  Value* given[5] = {};
  const char* names[] = {"name", "globals", "locals", "fromlist", "level"};
  if (a.args.size() > 5 || a.args.empty()) unsupported(BreakReason::Import, "__import__ with odd arguments");
  for (size_t i = 0; i < a.args.size(); i++) given[i] = a.args[i];
  for (size_t i = 0; i < 5; i++)
    if (Value* v = a.takeKeyword(names[i])) {
      if (given[i])
        raise(t, PyExc_TypeError,
              "argument for __import__() given by name ('" + std::string(names[i]) + "') and position (" + std::to_string(i + 1) + ")");
      given[i] = v;
    }
  PyObject* name = t.constant(given[0]);
  PyObject* from = given[3] ? t.snapshot(given[3]) : nullptr;
  std::optional<long long> level = given[4] ? asInteger(t, given[4]) : 0;
  if (!name || !a.kwargs.empty() || !level || *level > 0 || (given[3] && !from)) unsupported(BreakReason::Import, "__import__ with computed names");
  return moduleValue(t, native(t, PyImport_ImportModuleLevelObject(name, nullptr, nullptr, from, static_cast<int>(*level))));
}

Value* importlibImport(Trace& t, CallArgs& a) {
  static PyObject* import = importedObject("importlib", "import_module");
  Value* package = a.args.size() > 1 ? a.args[1] : a.keyword("package");
  PyObject* name = a.args.empty() ? nullptr : t.constant(a.args[0]);
  PyObject* from = package ? t.constant(package) : nullptr;
  if (!name || a.args.size() > 2 || (package && !from)) unsupported(BreakReason::Import, "importlib.import_module with computed names");
  return moduleValue(t, native(t, PyObject_CallFunctionObjArgs(import, name, from, nullptr)));
}

}  // namespace

void addImportBuiltins(BuiltinTable& table) {
  table.add("builtins.__import__", builtinImport);
  table.add("importlib.import_module", importlibImport);
}

void handleImportName(Trace& t, FrameState& f, const Instr& in) {
  Value* fromlist = f.pop();
  Value* level = f.pop();
  PyObject* from = t.constant(fromlist);
  std::optional<long long> n = asInteger(t, level);
  if (!from || !n) unsupported(BreakReason::Import, "an import with computed names");
  f.push(moduleValue(t, native(t, PyImport_ImportModuleLevelObject(in.object, f.globals, nullptr, from, static_cast<int>(*n)))));
}

void handleImportFrom(Trace& t, FrameState& f, const Instr& in) {
  Value* module = f.top();
  Value* v = getAttrOrNull(t, module, in.object);
  if (!v) {
    PyObject* object = isReal(module) ? realObject(module) : nullptr;
    ObjectRef name = object && PyModule_Check(object) ? ObjectRef::steal(PyModule_GetNameObject(object)) : nullptr;
    PyErr_Clear();
    ObjectRef full = name ? ObjectRef::steal(PyUnicode_FromFormat("%U.%U", name.get(), in.object)) : nullptr;
    PyObject* sub = full ? PyDict_GetItemWithError(PyImport_GetModuleDict(), full.get()) : nullptr;
    if (!sub) cannotImport(t, module, in.object);
    v = t.wrap(sub, t.sources.dictItem(t.sources.pinned(PyImport_GetModuleDict()), full.get()));
  }
  f.push(v);
}

}  // namespace cdynamo
