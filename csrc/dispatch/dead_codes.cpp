#include "dispatch/dead_codes.h"

#include "base/error.h"
#include "bytecode/code.h"
#include "dispatch/cache.h"
#include "emit/generator_code.h"
#include "emit/resume.h"

namespace cdynamo {

void forgetDeadCodes() {
  if (CaptureScope::anywhere()) return;
  CodeCache::purgeAll();
  // One that goes may have held others.
  for (bool again = true; again;) {
    again = false;
    std::vector<std::shared_ptr<const Code>> codes = uncallableCodes();
    for (const auto& [code, count] : CodeCache::ownCodes())
      if (Py_REFCNT(code) == count + 1) codes.push_back(decodeShared(code));
    for (const auto& code : codes) {
      CodeCache::forget(reinterpret_cast<PyObject*>(code->pyCode()));
      forgetGeneratorCodes(code->pyCode());
    }
    for (const auto& code : codes) {
      if (!dropDecoded(code)) continue;
      forgetTraits(code->pyCode());
      again = true;
    }
  }
}

namespace {

PyObject* afterCollection(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* generation = count == 2 && PyDict_Check(args[1]) ? PyDict_GetItemString(args[1], "generation") : nullptr;
  bool full = generation && PyLong_Check(generation) && PyLong_AsLong(generation) == 2;
  if (full && PyUnicode_Check(args[0]) && PyUnicode_CompareWithASCIIString(args[0], "stop") == 0) forgetDeadCodes();
  return ObjectRef::share(Py_None).release();
}

PyMethodDef afterCollectionDef = {"after_collection", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(afterCollection)), METH_FASTCALL,
                                  nullptr};

}  // namespace

void watchCollections() {
  ObjectRef gc = checked(PyImport_ImportModule("gc")), callbacks = checked(PyObject_GetAttrString(gc.get(), "callbacks"));
  ObjectRef function = checked(PyCFunction_New(&afterCollectionDef, nullptr));
  checkedStatus(PyList_Append(callbacks.get(), function.get()));
}

}  // namespace cdynamo
