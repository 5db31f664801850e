// The extension module cdynamo._C: each room adds its own part.
#include "base/error.h"
#include "builtins/table.h"
#include "bytecode/python_api.h"
#include "dispatch/dead_codes.h"
#include "dispatch/types.h"
#include "graph/executable.h"
#include "guards/test_api.h"
#include "interp/break_reasons.h"
#include "interp/capture.h"
#include "shapes/python.h"

namespace cdynamo {
namespace {

#define CD_TEXT_OF(x) #x
#define CD_TEXT(x) CD_TEXT_OF(x)

int execModule(PyObject* module) {
  try {
    ObjectRef builtFor = checked(Py_BuildValue("(ss)", CD_TEXT(PY_MAJOR_VERSION) "." CD_TEXT(PY_MINOR_VERSION), CDYNAMO_TORCH_VERSION));
    checkedStatus(PyModule_AddObjectRef(module, "built_for", builtFor.get()));
    addGraphTypes(module);
    addBytecodeFunctions(module);
    addShapeFunctions(module);
    addGuardTestType(module);
    addDispatchTypes(module);
    addBreakFunctions(module);
    addCaptureFunctions(module);
    addLruCacheFunctions(module);
    watchCollections();
    return 0;
  } catch (const PythonError&) {
  } catch (const EngineError& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  }
  return -1;
}

PyModuleDef_Slot moduleSlots[] = {{Py_mod_exec, reinterpret_cast<void*>(execModule)}, {0, nullptr}};
PyModuleDef moduleDefinition = {PyModuleDef_HEAD_INIT, "cdynamo._C", "The engine of cdynamo.", 0, nullptr, moduleSlots, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace cdynamo

PyMODINIT_FUNC PyInit__C() { return PyModuleDef_Init(&cdynamo::moduleDefinition); }
