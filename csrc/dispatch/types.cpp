#include "dispatch/types.h"

#include <cstring>

#include "base/error.h"
#include "dispatch/cache.h"
#include "dispatch/callable.h"
#include "dispatch/capture_api.h"
#include "dispatch/frame_hook.h"
#include "dispatch/module_call.h"
#include "dispatch/settings.h"
#include "dispatch/test_api.h"

namespace cdynamo {

namespace {

constexpr const char* kStances[] = {"default",           "force_eager",        "eager_on_recompile",
                                    "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile"};

PyObject* orNone(const ObjectRef& object) { return object ? object.get() : Py_None; }

bool setCallback(ObjectRef& place, PyObject* given) {
  if (given == nullptr) return true;
  if (given != Py_None && !PyCallable_Check(given)) {
    PyErr_SetString(PyExc_TypeError, "a callback must be callable or None");
    return false;
  }
  ObjectRef old = std::exchange(place, given == Py_None ? ObjectRef() : ObjectRef::share(given));
  return true;
}

bool setStance(Stance& stance, const char* name) {
  if (name == nullptr) return true;
  for (size_t i = 0; i < std::size(kStances); i++)
    if (std::strcmp(kStances[i], name) == 0) {
      stance = static_cast<Stance>(i);
      return true;
    }
  PyErr_Format(PyExc_ValueError, "unknown stance '%s'", name);
  return false;
}

PyObject* configure(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stance",          "recompile_limit", "accumulated_limit", "strict",      "on_miss",     "on_recompile",   "on_limit",
                                "on_engine_error", "other_backend",   "force_backend",     "break_every", "skip_blocks", "only_differing", nullptr};
  DispatchSettings& settings = dispatchSettings();
  const char* stance = nullptr;
  int limit = settings.recompileLimit, total = settings.accumulatedLimit, strict = settings.strict;
  int force = settings.forceBackend, every = settings.breakEvery, blocks = settings.skipBlocks, differing = settings.onlyDiffering;
  PyObject *onMiss = nullptr, *onRecompile = nullptr, *onLimit = nullptr, *onEngineError = nullptr, *otherBackend = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ziipOOOOOpipp", const_cast<char**>(names), &stance, &limit, &total, &strict, &onMiss,
                                   &onRecompile, &onLimit, &onEngineError, &otherBackend, &force, &every, &blocks, &differing))
    return nullptr;
  ObjectRef before = ObjectRef::steal(Py_BuildValue("{s:s,s:i,s:i,s:O,s:i,s:O,s:O,s:O,s:O}", "stance", kStances[static_cast<size_t>(settings.stance)],
                                                    "recompile_limit", settings.recompileLimit, "accumulated_limit", settings.accumulatedLimit,
                                                    "strict", settings.strict ? Py_True : Py_False, "break_every", settings.breakEvery, "on_miss",
                                                    orNone(settings.onMiss), "on_recompile", orNone(settings.onRecompile), "on_limit",
                                                    orNone(settings.onLimit), "on_engine_error", orNone(settings.onEngineError)));
  if (!before || !setStance(settings.stance, stance)) return nullptr;
  settings.recompileLimit = limit;
  settings.accumulatedLimit = total;
  settings.strict = strict;
  settings.forceBackend = force;
  settings.breakEvery = every;
  settings.skipBlocks = blocks;
  settings.onlyDiffering = differing;
  if (!setCallback(settings.onMiss, onMiss) || !setCallback(settings.onRecompile, onRecompile) || !setCallback(settings.onLimit, onLimit) ||
      !setCallback(settings.onEngineError, onEngineError) || !setCallback(settings.otherBackend, otherBackend))
    return nullptr;
  return before.release();
}

PyObject* resetCaches(PyObject*, PyObject*) {
  CodeCache::resetAll();
  return ObjectRef::share(Py_None).release();
}

PyObject* cacheCount(PyObject*, PyObject*) { return PyLong_FromSize_t(CodeCache::count()); }

PyObject* changeEagerDepth(PyObject*, PyObject* args) {
  int change = 0;
  if (!PyArg_ParseTuple(args, "|i", &change)) return nullptr;
  if (eagerDepth() + change < 0) {
    PyErr_SetString(PyExc_ValueError, "the eager depth cannot be negative");
    return nullptr;
  }
  eagerDepth() += change;
  return PyLong_FromLong(eagerDepth());
}

PyObject* changeRunOnly(PyObject*, PyObject* args) {
  int change = 0;
  if (!PyArg_ParseTuple(args, "|i", &change)) return nullptr;
  runOnlyDepth() += change;
  return PyLong_FromLong(runOnlyDepth());
}

PyObject* inCompiledRegion(PyObject*, PyObject*) { return PyBool_FromLong(CaptureScope::active() || frameHookIsOn()); }

PyMethodDef functions[] = {
    {"configure", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(configure)), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"reset_caches", resetCaches, METH_NOARGS, nullptr},
    {"cache_count", cacheCount, METH_NOARGS, nullptr},
    {"eager_depth", changeEagerDepth, METH_VARARGS, nullptr},
    {"run_only", changeRunOnly, METH_VARARGS, "run_only(change): while above zero, calls on this thread make no captures."},
    {"in_compiled_region", inCompiledRegion, METH_NOARGS, "Whether this thread is in a compiled function."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void addDispatchTypes(PyObject* module) {
  checkedStatus(PyModule_AddObjectRef(module, "CompiledFunction", makeCompiledFunctionType().get()));
  checkedStatus(PyModule_AddObjectRef(module, "CompiledModuleCall", makeCompiledModuleCallType().get()));
  checkedStatus(PyModule_AddFunctions(module, functions));
  addDispatchTestFunctions(module);
}

}  // namespace cdynamo
