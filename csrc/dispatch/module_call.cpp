#include "dispatch/module_call.h"

#include <structmember.h>

#include <array>
#include <cstddef>
#include <new>

#include "base/error.h"
#include "cpython/compat.h"
#include "cpython/dict_access.h"

namespace cdynamo {

namespace {

constexpr size_t kHookDicts = 4;
constexpr const char* kHookNames[kHookDicts] = {"_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"};
constexpr const char* kGlobalHookNames[kHookDicts] = {"_global_backward_hooks", "_global_backward_pre_hooks", "_global_forward_hooks",
                                                      "_global_forward_pre_hooks"};

// The hook dicts that a namespace names, found again where the namespace changed.
struct HookDicts {
  uint64_t version = 0;
  std::array<PyObject*, kHookDicts> dicts{};  // borrowed from the namespace, while its version stands
  PyObject* forward = nullptr;                // its own "forward", or null

  // False where one of them is missing or not a dict.
  bool refresh(PyObject* space, const std::array<ObjectRef, kHookDicts>& names, PyObject* forwardName) {
    uint64_t now = dictVersionInline(space);
    if (now == version) return true;
    version = 0;
    for (size_t i = 0; i < kHookDicts; i++) {
      dicts[i] = PyDict_GetItemWithError(space, names[i].get());
      if (dicts[i] == nullptr) PyErr_Clear();
      if (dicts[i] == nullptr || !PyDict_Check(dicts[i])) return false;
    }
    forward = PyDict_GetItemWithError(space, forwardName);
    if (forward == nullptr) PyErr_Clear();
    version = now;
    return true;
  }
  bool allEmpty() const {
    for (PyObject* dict : dicts)
      if (PyDict_GET_SIZE(dict) != 0) return false;
    return true;
  }
};

struct Parts {
  ObjectRef module;
  ObjectRef forward;
  ObjectRef call;
  ObjectRef type;          // the module's class when this was made
  ObjectRef ownForward;    // "forward" in the instance's dict then, or null
  ObjectRef classForward;  // what the class gave then, or null
  ObjectRef globals;       // namespace of torch.nn.modules.module, or null
  ObjectRef forwardName;
  std::array<ObjectRef, kHookDicts> names, globalNames;
  HookDicts hooks, globalHooks;
};

struct CompiledModuleCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* weakrefs;
  Parts parts;
};

Parts& partsOf(PyObject* self) { return reinterpret_cast<CompiledModuleCall*>(self)->parts; }

bool onlyForward(Parts& parts) {
  PyObject* module = parts.module.get();
  if (reinterpret_cast<PyObject*>(Py_TYPE(module)) != parts.type.get() || !parts.globals) return false;
  PyObject* fields = instanceDict(module);
  if (fields == nullptr || !parts.hooks.refresh(fields, parts.names, parts.forwardName.get())) return false;
  if (!parts.globalHooks.refresh(parts.globals.get(), parts.globalNames, parts.forwardName.get())) return false;
  if (parts.hooks.forward != parts.ownForward.get() || !parts.hooks.allEmpty() || !parts.globalHooks.allEmpty()) return false;
  return parts.ownForward || typeLookup(Py_TYPE(module), parts.forwardName.get()) == parts.classForward.get();
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Parts& parts = partsOf(self);
  if (!parts.module) {
    PyErr_SetString(PyExc_RuntimeError, "this compiled module has been cleared by the garbage collector");
    return nullptr;
  }
  ObjectRef target = onlyForward(parts) ? parts.forward : parts.call;
  return PyObject_Vectorcall(target.get(), args, nargsf, kwnames);
}

void fill(Parts& parts, PyObject* module) {
  parts.type = ObjectRef::share(Py_TYPE(module));
  parts.forwardName = checked(PyUnicode_InternFromString("forward"));
  for (size_t i = 0; i < kHookDicts; i++) {
    parts.names[i] = checked(PyUnicode_InternFromString(kHookNames[i]));
    parts.globalNames[i] = checked(PyUnicode_InternFromString(kGlobalHookNames[i]));
  }
  PyObject* fields = instanceDict(module);
  PyObject* own = fields ? PyDict_GetItemWithError(fields, parts.forwardName.get()) : nullptr;
  if (own == nullptr && PyErr_Occurred()) throw PythonError{};
  parts.ownForward = ObjectRef::share(own);
  parts.classForward = ObjectRef::share(typeLookup(Py_TYPE(module), parts.forwardName.get()));
  ObjectRef torchModule = ObjectRef::steal(PyImport_ImportModule("torch.nn.modules.module"));
  if (!torchModule) PyErr_Clear();
  if (torchModule) parts.globals = ObjectRef::share(PyModule_GetDict(torchModule.get()));
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"module", "forward", "call", nullptr};
  PyObject *module, *forward, *callTarget;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO", const_cast<char**>(names), &module, &forward, &callTarget)) return nullptr;
  ObjectRef self = ObjectRef::steal(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  auto* made = reinterpret_cast<CompiledModuleCall*>(self.get());
  made->vectorcall = call;
  new (&made->parts) Parts();
  made->parts.module = ObjectRef::share(module);
  made->parts.forward = ObjectRef::share(forward);
  made->parts.call = ObjectRef::share(callTarget);
  try {
    fill(made->parts, module);
  } catch (const PythonError&) {
    return nullptr;
  }
  return self.release();
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Parts& parts = partsOf(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(parts.module.get());
  Py_VISIT(parts.forward.get());
  Py_VISIT(parts.call.get());
  Py_VISIT(parts.type.get());
  Py_VISIT(parts.ownForward.get());
  Py_VISIT(parts.classForward.get());
  Py_VISIT(parts.globals.get());
  return 0;
}

int clear(PyObject* self) {
  Parts& parts = partsOf(self);
  for (ObjectRef* part : {&parts.module, &parts.forward, &parts.call, &parts.ownForward, &parts.classForward}) {
    ObjectRef dying;
    dying.swap(*part);
  }
  return 0;
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<CompiledModuleCall*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  partsOf(self).~Parts();
  auto type = ObjectRef::steal(Py_TYPE(self));
  Py_TYPE(self)->tp_free(self);
}

PyObject* repr(PyObject* self) {
  const ObjectRef& module = partsOf(self).module;
  return PyUnicode_FromFormat("<cdynamo.compiled module %s>", module ? Py_TYPE(module.get())->tp_name : "(cleared)");
}

PyObject* usesForward(PyObject* self, PyObject*) {
  Parts& parts = partsOf(self);
  return PyBool_FromLong(parts.module && onlyForward(parts));
}

PyMethodDef methods[] = {
    {"uses_forward", usesForward, METH_NOARGS, "Whether a call now would go to forward alone."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledModuleCall, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledModuleCall, weakrefs), READONLY, nullptr},
    {"module", T_OBJECT, offsetof(CompiledModuleCall, parts) + offsetof(Parts, module), READONLY, nullptr},
    {"forward", T_OBJECT, offsetof(CompiledModuleCall, parts) + offsetof(Parts, forward), READONLY, nullptr},
    {"call", T_OBJECT, offsetof(CompiledModuleCall, parts) + offsetof(Parts, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, static_cast<void*>(methods)},
    {Py_tp_members, static_cast<void*>(members)},
    {0, nullptr},
};

PyType_Spec spec = {"cdynamo._C.CompiledModuleCall", sizeof(CompiledModuleCall), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

ObjectRef makeCompiledModuleCallType() { return checked(PyType_FromSpec(&spec)); }

}  // namespace cdynamo
