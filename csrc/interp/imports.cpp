// import statements, __import__ and importlib.import_module. What is loaded is looked up, what is not is imported for real while tracing:
// where that cannot be seen, else the import is left to CPython.
#include "base/exceptions.h"
#include "base/lookup.h"
#include "base/own_library.h"
#include "builtins/table.h"
#include "bytecode/assembler.h"
#include "bytecode/code.h"
#include "interp/handlers.h"
#include "interp/intrinsics.h"
#include "interp/pending.h"

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

DictValue* loadedModules(Trace& t) {
  PyObject* modules = PyImport_GetModuleDict();
  return as<DictValue>(t.wrap(modules, t.sources.pinned(modules)));
}

// The module of that name as sys.modules has it, for the program as for CPython. Null: not there, or there is no telling. Borrowed.
PyObject* loadedModule(DictValue* modules, PyObject* name) {
  PyObject* real = PyDict_GetItemWithError(modules->real.get(), name);
  auto found = modules->index.find(DictKey{nullptr, name, PyObject_Hash(name)});
  if (found == modules->index.end()) return real;
  Value* v = modules->entries[found->second].value;
  return v && isReal(v) && realObject(v) == real ? real : nullptr;
}

PyObject* bootstrap(const char* name) { return importedObject("importlib._bootstrap", name); }

// The full name of a module that code with these globals imports; null where that cannot be said. Clears errors.
ObjectRef fullName(PyObject* name, PyObject* globals, int level) {
  if (level == 0) return ObjectRef::share(name);
  ObjectRef package = globals ? ObjectRef::steal(PyObject_CallOneArg(bootstrap("_calc___package__"), globals)) : nullptr;
  ObjectRef full = package ? ObjectRef::steal(PyObject_CallFunction(bootstrap("_resolve_name"), "OOi", name, package.get(), level)) : nullptr;
  PyErr_Clear();
  return full;
}

// Whether the import only looks up what is loaded.
bool isLoaded(DictValue* modules, PyObject* name, PyObject* from) {
  PyObject* module = loadedModule(modules, name);
  if (!module || module == Py_None) return false;
  const bool names = from && PyTuple_Check(from) && PyTuple_GET_SIZE(from) != 0;
  if (!names) {
    Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
    ObjectRef front = dot > 0 ? checked(PyUnicode_Substring(name, 0, dot)) : nullptr;
    return !front || loadedModule(modules, front.get());
  }
  if (!PyModule_Check(module)) return true;
  PyObject* held = PyModule_GetDict(module);
  if (!PyDict_GetItemString(held, "__path__")) return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); i++) {
    PyObject* asked = PyTuple_GET_ITEM(from, i);
    if (!PyUnicode_Check(asked)) return false;
    if (PyUnicode_CompareWithASCIIString(asked, "*") == 0 ? PyDict_GetItemString(held, "__all__") != nullptr : !PyDict_GetItemWithError(held, asked))
      return false;
  }
  return true;
}

// Whether nothing has to be run to find that there is no such module.
bool isMissing(DictValue* modules, PyObject* name) {
  ObjectRef parts = checked(PyUnicode_Split(name, checked(PyUnicode_FromString(".")).get(), -1)), path = ObjectRef::share(Py_None), prefix;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts.get()); i++) {
    PyObject* part = PyList_GET_ITEM(parts.get(), i);
    prefix = prefix ? checked(PyUnicode_FromFormat("%U.%U", prefix.get(), part)) : ObjectRef::share(part);
    PyObject* module = loadedModule(modules, prefix.get());
    ObjectRef found = module ? nullptr : ObjectRef::steal(PyObject_CallFunctionObjArgs(bootstrap("_find_spec"), prefix.get(), path.get(), nullptr));
    path = module ? ObjectRef::steal(PyObject_GetAttrString(module, "__path__")) : nullptr;
    PyErr_Clear();
    if (!module || !path) return found.get() == Py_None;
  }
  return false;
}

// What the import system itself reads was changed by the program, or looked at in a way that an import makes untrue.
bool isWatched(Trace& t, DictValue* modules) {
  if (modules->mutated || modules->complete) return true;
  for (const DictEntry& entry : modules->entries)
    if (!entry.value) return true;
  PyObject* sys = importedObject("sys", "__dict__");
  for (HeapValue* changed : t.mutated()) {
    PyObject* real = changed->real.get();
    for (const char* name : {"path", "meta_path", "path_hooks", "path_importer_cache"})
      if (real == sys || real == PyDict_GetItemString(sys, name)) return true;
  }
  return false;
}

// Calls it from a frame with the name and the line of the program's: there warnings of a module's own code are told.
ObjectRef callFromFrame(Trace& t, PyObject* callable, ObjectRef args) {
  const FrameState& f = *t.frame;
  CodeSpec spec = CodeSpec::named(f.code->pyCode());
  spec.addLocal(checked(PyUnicode_InternFromString("callee")).get());
  spec.argcount = 1;
  Assembler a(std::move(spec));
  a.setPosition(f.code->at(f.ip).pos);
  a.prologue();
  a.loadFast(0);
  a.call(0);
  a.returnValue();
  Ref<PyCodeObject> code = a.finish();
  ObjectRef caller = checked(PyFunction_New(reinterpret_cast<PyObject*>(code.get()), f.globals));
  ObjectRef all = checked(PySequence_Concat(checked(PyTuple_Pack(1, callable)).get(), args.get()));
  ObjectRef callee = checked(PyObject_Call(importedObject("functools", "partial"), all.get(), nullptr));
  ObjectRef module = ObjectRef::steal(PyObject_CallOneArg(caller.get(), callee.get()));
  if (!module) {
    // The trace adds that frame's line itself.
    ObjectRef error = takeException(), traceback = ObjectRef::steal(PyException_GetTraceback(error.get()));
    ObjectRef inner = traceback ? checked(PyObject_GetAttrString(traceback.get(), "tb_next")) : nullptr;
    if (inner) checkedStatus(PyException_SetTraceback(error.get(), inner.get()));
    restoreException(error.get());
    raiseCurrent(t);
  }
  return module;
}

// Breaks where CPython must do the import. True: it only looks up what is loaded.
bool checkImport(Trace& t, PyObject* name, PyObject* globals, PyObject* from, int level) {
  DictValue* modules = loadedModules(t);
  ObjectRef full = fullName(name, globals, level);
  if (full && isLoaded(modules, full.get(), from)) return true;
  const std::string what = std::string("importing ") + PyUnicode_AsUTF8(full ? full.get() : name);
  if (isWatched(t, modules)) unsupported(BreakReason::Import, what + " after a look at what is loaded");
  // Under fullgraph it is done out of its turn, as torch.compile does it.
  if (isPending(t) && !t.options.fullgraph && !(full && isMissing(modules, full.get())))
    unsupported(BreakReason::Import, what + ", whose code could see what the program did before");
  return false;
}

// What the import gives; `import` is CPython's __import__.
Value* import(Trace& t, PyObject* import, PyObject* name, PyObject* globals, PyObject* from, int level) {
  if (checkImport(t, name, globals, from, level))
    return moduleValue(t, native(t, PyImport_ImportModuleLevelObject(name, globals, nullptr, from, level)));
  PyObject *none = Py_None, *names = from ? from : none;
  return moduleValue(t, callFromFrame(t, import, checked(Py_BuildValue("(OOOOi)", name, globals ? globals : none, none, names, level))));
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
  if (!PyUnicode_Check(name)) raise(t, PyExc_TypeError, "module name must be a string");
  return import(t, importedObject("builtins", "__import__"), name, nullptr, from, 0);
}

Value* importlibImport(Trace& t, CallArgs& a) {
  static PyObject* import = importedObject("importlib", "import_module");
  Value* package = a.args.size() > 1 ? a.args[1] : a.keyword("package");
  PyObject* name = a.args.empty() ? nullptr : t.constant(a.args[0]);
  PyObject* from = package ? t.constant(package) : nullptr;
  if (!name || a.args.size() > 2 || (package && !from)) unsupported(BreakReason::Import, "importlib.import_module with computed names");
  bool loaded = true;
  if (PyUnicode_Check(name)) {
    const bool relative = PyUnicode_GET_LENGTH(name) != 0 && PyUnicode_READ_CHAR(name, 0) == '.';
    ObjectRef full = relative && from
                         ? ObjectRef::steal(PyObject_CallFunctionObjArgs(importedObject("importlib.util", "resolve_name"), name, from, nullptr))
                         : ObjectRef::share(name);
    PyErr_Clear();
    static PyObject* itself = checked(Py_BuildValue("(s)", "__name__")).release();
    loaded = !full || checkImport(t, full.get(), nullptr, itself, 0);
  }
  ObjectRef given = from ? checked(PyTuple_Pack(2, name, from)) : checked(PyTuple_Pack(1, name));
  return moduleValue(t, loaded ? native(t, PyObject_Call(import, given.get(), nullptr)) : callFromFrame(t, import, std::move(given)));
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
  static PyObject* name = PyUnicode_InternFromString("__import__");
  PyObject* function = PyDict_GetItemWithError(f.builtins, name);
  if (f.builtins != ownBuiltins()) {
    Value* v = t.dictGetName(f.builtinsDict, name);
    if (!v || !isReal(v) || !PyCFunction_Check(t.identity(v))) unsupported(BreakReason::Import, "an import by another __import__");
  }
  f.push(import(t, function, in.object, f.globals, from, static_cast<int>(*n)));
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
