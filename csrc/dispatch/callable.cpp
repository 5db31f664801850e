#include "dispatch/callable.h"

#include <structmember.h>

#include <cstddef>
#include <new>

#include "base/error.h"
#include "dispatch/bind.h"
#include "dispatch/driver.h"
#include "dispatch/frame_hook.h"
#include "dispatch/settings.h"

namespace cdynamo {

namespace {

struct Parts {
  ObjectRef callable;  // what was given: called where a call runs eagerly
  ObjectRef function;  // the Python function in it, or null
  ObjectRef self;      // first argument of a bound method, or null
  ObjectRef options;
  std::shared_ptr<CodeCache> cache;
  int recompileLimit = -1;
};

struct CompiledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  Parts parts;
};

Parts& partsOf(PyObject* self) { return reinterpret_cast<CompiledFunction*>(self)->parts; }

bool mustRunEagerly(const Parts& parts) {
  return !parts.function || dispatchSettings().stance == Stance::ForceEager || CaptureScope::active() || eagerDepth() > 0;
}

// Generators are not frames that a call runs: left to CPython. Async functions are not either, which the capture says.
bool canCapture(PyObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(function)->func_code);
  return (code->co_flags & CO_GENERATOR) == 0;
}

CodeCache* cacheOf(Parts& parts) {
  PyObject* code = reinterpret_cast<PyFunctionObject*>(parts.function.get())->func_code;
  if (parts.cache && parts.cache->code() == code) [[likely]]
    return parts.cache.get();
  try {
    parts.cache = CodeCache::find(code, parts.options.get());
  } catch (const PythonError&) {
    PyErr_Clear();
    return nullptr;
  }
  return parts.cache.get();
}

// The cache under set_stance(force_backend=...). Null with an error set where there is no such backend.
std::shared_ptr<CodeCache> forcedCache(Parts& parts) {
  ObjectRef other = dispatchSettings().otherBackend;
  ObjectRef options = ObjectRef::steal(PyObject_CallFunctionObjArgs(other.get(), parts.options.get(), Py_None, nullptr));
  if (!options) return nullptr;
  try {
    return CodeCache::find(parts.cache->code(), options.get());
  } catch (const PythonError&) {
    return nullptr;
  }
}

// Null without an error set where the call is to be made eagerly.
PyObject* tryCompiled(Parts& parts, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (cacheOf(parts) == nullptr) return nullptr;
  std::shared_ptr<CodeCache> cache = parts.cache;
  if (dispatchSettings().forceBackend) {
    cache = forcedCache(parts);
    if (!cache) return nullptr;
  }
  if (cache->onlyEager() || !canCapture(parts.function.get())) return nullptr;
  BoundFrame frame;
  if (!bindArguments(parts.function.get(), parts.self.get(), args, nargsf, kwnames, frame)) return nullptr;
  FrameInputs inputs{frame.slots.data(), static_cast<Py_ssize_t>(frame.slots.size()), parts.function.get()};
  return callToEnd(cache, inputs, parts.recompileLimit);
}

// The function could not be captured; what it calls may be.
PyObject* callWithHook(Parts& parts, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  ObjectRef callable = parts.callable;
  FrameHookScope scope(parts.options.get(), parts.recompileLimit, reinterpret_cast<PyFunctionObject*>(parts.function.get())->func_code);
  return PyObject_Vectorcall(callable.get(), args, nargsf, kwnames);
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Parts& parts = partsOf(self);
  if (!mustRunEagerly(parts)) {
    PyObject* result = tryCompiled(parts, args, nargsf, kwnames);
    if (result != nullptr || PyErr_Occurred()) return result;
    if (parts.callable && parts.function) return callWithHook(parts, args, nargsf, kwnames);
  }
  if (!parts.callable) {
    PyErr_SetString(PyExc_RuntimeError, "this compiled function has been cleared by the garbage collector");
    return nullptr;
  }
  return PyObject_Vectorcall(parts.callable.get(), args, nargsf, kwnames);
}

void splitCallable(Parts& parts, PyObject* callable) {
  parts.callable = ObjectRef::share(callable);
  if (PyFunction_Check(callable)) {
    parts.function = parts.callable;
  } else if (PyMethod_Check(callable) && PyFunction_Check(PyMethod_GET_FUNCTION(callable))) {
    parts.function = ObjectRef::share(PyMethod_GET_FUNCTION(callable));
    parts.self = ObjectRef::share(PyMethod_GET_SELF(callable));
  }
}

bool wrapAttributes(PyObject* self, PyObject* callable) {
  ObjectRef functools = ObjectRef::steal(PyImport_ImportModule("functools"));
  if (!functools) return false;
  return static_cast<bool>(ObjectRef::steal(PyObject_CallMethod(functools.get(), "update_wrapper", "OO", self, callable)));
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"callable", "options", "recompile_limit", nullptr};
  PyObject *callable, *options = Py_None;
  int limit = -1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|Oi", const_cast<char**>(names), &callable, &options, &limit)) return nullptr;
  if (!PyCallable_Check(callable)) return PyErr_Format(PyExc_TypeError, "a callable is needed, not %.200s", Py_TYPE(callable)->tp_name);
  ObjectRef self = ObjectRef::steal(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  auto* made = reinterpret_cast<CompiledFunction*>(self.get());
  made->vectorcall = call;
  new (&made->parts) Parts();
  splitCallable(made->parts, callable);
  made->parts.options = ObjectRef::share(options);
  made->parts.recompileLimit = limit;
  if (!wrapAttributes(self.get(), callable)) return nullptr;
  return self.release();
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* compiled = reinterpret_cast<CompiledFunction*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(compiled->dict);
  Py_VISIT(compiled->parts.callable.get());
  // As many references as are held: the function is held twice where it is the callable itself.
  Py_VISIT(compiled->parts.function.get());
  Py_VISIT(compiled->parts.self.get());
  Py_VISIT(compiled->parts.options.get());
  return 0;
}

int clear(PyObject* self) {
  Parts& parts = partsOf(self);
  auto dict = ObjectRef::steal(std::exchange(reinterpret_cast<CompiledFunction*>(self)->dict, nullptr));
  ObjectRef callable, function, first;
  callable.swap(parts.callable);
  function.swap(parts.function);
  first.swap(parts.self);
  return 0;
}

void destroy(PyObject* self) {
  auto* compiled = reinterpret_cast<CompiledFunction*>(self);
  PyObject_GC_UnTrack(self);
  if (compiled->weakrefs) PyObject_ClearWeakRefs(self);
  clear(self);
  compiled->parts.cache.reset();
  CodeCache::leave(std::move(compiled->parts.options));
  compiled->parts.~Parts();
  auto type = ObjectRef::steal(Py_TYPE(self));
  Py_TYPE(self)->tp_free(self);
}

PyObject* repr(PyObject* self) {
  const ObjectRef& callable = partsOf(self).callable;
  if (!callable) return PyUnicode_FromString("<cdynamo.compiled (cleared)>");
  ObjectRef name = ObjectRef::steal(PyObject_GetAttrString(callable.get(), "__qualname__"));
  if (!name) {
    PyErr_Clear();
    name = ObjectRef::steal(PyObject_Repr(callable.get()));
  }
  return name ? PyUnicode_FromFormat("<cdynamo.compiled %S>", name.get()) : nullptr;
}

PyObject* descriptorGet(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return ObjectRef::share(self).release();
  return PyMethod_New(self, object);
}

PyObject* original(PyObject* self, void*) {
  const ObjectRef& callable = partsOf(self).callable;
  return ObjectRef::share(callable ? callable.get() : Py_None).release();
}

PyObject* optionsOf(PyObject* self, void*) { return ObjectRef(partsOf(self).options).release(); }

PyObject* skipReason(PyObject* self, void*) {
  Parts& parts = partsOf(self);
  CodeCache* cache = parts.function ? cacheOf(parts) : nullptr;
  if (cache == nullptr || cache->skipReason().empty()) return ObjectRef::share(Py_None).release();
  return PyUnicode_DecodeUTF8(cache->skipReason().data(), static_cast<Py_ssize_t>(cache->skipReason().size()), "replace");
}

ObjectRef describeEntry(const Entry& entry) {
  ObjectRef lines = checked(PyList_New(0));
  for (const std::string& text : entry.guards->describe()) {
    ObjectRef line = checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    checkedStatus(PyList_Append(lines.get(), line.get()));
  }
  PyObject* record = entry.record ? entry.record.get() : Py_None;
  PyObject* runs = entry.direct ? entry.graph.get() : entry.function.get();
  return checked(Py_BuildValue("{s:O,s:K,s:O,s:O,s:I,s:O}", "guards", lines.get(), "hits", static_cast<unsigned long long>(entry.hits), "direct",
                               entry.direct ? Py_True : Py_False, "function", runs, "graph_inputs", entry.graphInputCount, "record", record));
}

PyObject* entries(PyObject* self, PyObject*) {
  Parts& parts = partsOf(self);
  try {
    ObjectRef list = checked(PyList_New(0));
    CodeCache* cache = parts.function ? cacheOf(parts) : nullptr;
    if (cache == nullptr) return list.release();
    std::vector<std::shared_ptr<Entry>> held = cache->entries();
    for (const auto& entry : held) checkedStatus(PyList_Append(list.get(), describeEntry(*entry).get()));
    return list.release();
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* reset(PyObject* self, PyObject*) {
  Parts& parts = partsOf(self);
  std::shared_ptr<CodeCache> cache = parts.cache;
  if (cache) cache->clear();
  return ObjectRef::share(Py_None).release();
}

PyMethodDef methods[] = {
    {"entries", entries, METH_NOARGS, "One dict per capture, the one used last first."},
    {"reset", reset, METH_NOARGS, "Forgets the captures of this function's code under these options."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef getsets[] = {
    {"_torchdynamo_orig_callable", original, nullptr, nullptr, nullptr},
    {"options", optionsOf, nullptr, nullptr, nullptr},
    {"skip_reason", skipReason, nullptr, "Why the function is not captured any more, or None.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunction, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_descr_get, reinterpret_cast<void*>(descriptorGet)},
    {Py_tp_methods, static_cast<void*>(methods)},
    {Py_tp_getset, static_cast<void*>(getsets)},
    {Py_tp_members, static_cast<void*>(members)},
    {0, nullptr},
};

PyType_Spec spec = {"cdynamo._C.CompiledFunction", sizeof(CompiledFunction), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};

}  // namespace

ObjectRef makeCompiledFunctionType() { return checked(PyType_FromSpec(&spec)); }

}  // namespace cdynamo
