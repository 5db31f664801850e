// torch.nn.Module: attribute lookup and calls answered in C++, with the facts that tracing the Python code would give.
#include "cpython/compat.h"
#include "cpython/lru_cache.h"
#include "interp/frame.h"
#include "interp/intrinsics.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

struct ModuleNames {
  PyObject* getattr = nullptr;     // nn.Module.__getattr__
  PyObject* call = nullptr;        // nn.Module.__call__
  PyObject* moduleDict = nullptr;  // globals of torch.nn.modules.module
  PyTypeObject* type = nullptr;    // nn.Module
  PyObject *parameters, *buffers, *modules, *forward, *callName, *compiled;
  std::vector<PyObject*> hooks;  // instance attributes that must be empty
  std::vector<PyObject*> globalHooks;
};

const ModuleNames& names() {
  static const ModuleNames table = [] {
    ModuleNames n;
    ObjectRef module = checked(PyImport_ImportModule("torch.nn.modules.module"));
    ObjectRef type = checked(PyObject_GetAttrString(module.get(), "Module"));
    n.type = reinterpret_cast<PyTypeObject*>(type.release());
    n.moduleDict = PyModule_GetDict(module.get());
    auto intern = [](const char* s) { return PyUnicode_InternFromString(s); };
    n.getattr = typeLookup(n.type, intern("__getattr__"));
    n.call = typeLookup(n.type, intern("__call__"));
    n.parameters = intern("_parameters");
    n.buffers = intern("_buffers");
    n.modules = intern("_modules");
    n.forward = intern("forward");
    n.callName = intern("__call__");
    n.compiled = intern("_compiled_call_impl");
    for (const char* h : {"_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"}) n.hooks.push_back(intern(h));
    for (const char* h : {"_global_backward_pre_hooks", "_global_backward_hooks", "_global_forward_hooks", "_global_forward_pre_hooks"})
      n.globalHooks.push_back(intern(h));
    return n;
  }();
  return table;
}

bool isEmptyDict(Trace& t, Value* v) {
  DictValue* d = v ? asDict(v) : nullptr;
  return d && t.dictLength(d) == 0;
}

}  // namespace

Value* moduleGetAttr(Trace& t, PyObject* hook, InstanceValue* module, PyObject* name, bool& known) {
  const ModuleNames& n = names();
  known = hook == n.getattr;
  if (!known) return nullptr;
  DictValue* dict = t.dictOf(module);
  for (PyObject* where : {n.parameters, n.buffers, n.modules}) {
    Value* table = t.dictGetName(dict, where);
    DictValue* d = table ? asDict(table) : nullptr;
    if (!d) continue;
    if (Value* v = t.dictGetName(d, name)) return v;
  }
  return nullptr;
}

Value* moduleForward(Trace& t, InstanceValue* module) {
  const ModuleNames& n = names();
  PyTypeObject* type = t.typeOf(module);
  if (!PyType_IsSubtype(type, n.type) || lookUp(t, type, n.callName) != n.call) return nullptr;
  DictValue* dict = t.dictOf(module);
  Value* compiled = t.dictGetName(dict, n.compiled);
  if (compiled && !isSame(t, compiled, t.none())) return nullptr;
  for (PyObject* hook : n.hooks)
    if (!isEmptyDict(t, t.dictGetName(dict, hook))) return nullptr;
  auto* globals = as<DictValue>(t.wrap(n.moduleDict, t.sources.pinned(n.moduleDict)));
  for (PyObject* hook : n.globalHooks)
    if (!isEmptyDict(t, t.dictGetName(globals, hook))) return nullptr;
  return getAttr(t, module, n.forward);
}

void noteModuleFrame(Trace& t, FrameState& f) {
  if (f.locals.empty() || !f.locals[0] || f.locals[0]->kind != Kind::Instance) return;
  auto* self = as<InstanceValue>(f.locals[0]);
  if (!self->source || f.code->name() != names().forward || !PyType_IsSubtype(self->type, names().type)) return;
  (void)t;
  f.place->module = self->source;
  f.place->moduleType = reinterpret_cast<PyObject*>(self->type);
}

// ---- descriptors without a C name ------------------------------------------------------------------------------------

Value* bindKnownDescriptor(Trace& t, PyObject* d, Value* instance) {
  PyTypeObject* kind = Py_TYPE(d);
  if (kind == lruCacheType()) return instance ? t.make<BoundMethodValue>(pinnedValue(t, d), instance) : pinnedValue(t, d);
  std::string type = kind->tp_name;
  if (type.size() > 12 && type.compare(type.size() - 12, 12, "_tuplegetter") == 0) {
    if (!instance) return pinnedValue(t, d);
    TupleValue* tuple = asTuple(instance);
    if (!tuple) return nullptr;
    ObjectRef parts = checked(PyObject_CallMethod(d, "__reduce__", nullptr));
    PyObject* index = PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0);
    t.load(tuple);
    auto at = static_cast<size_t>(PyLong_AsSsize_t(index));
    if (at >= tuple->items.size()) raise(t, PyExc_IndexError, "tuple index out of range");
    return tuple->items[at];
  }
  return nullptr;
}

bool isOpaqueReadable(PyObject* object) {
  std::string name = Py_TYPE(object)->tp_name;
  return Py_TYPE(object) == &Py_GenericAliasType || name == "torch.finfo" || name == "torch.iinfo" || name == "torch.Generator" ||
         isTorchConstantType(Py_TYPE(object)) || isTorchOperatorType(Py_TYPE(object));
}

}  // namespace cdynamo
