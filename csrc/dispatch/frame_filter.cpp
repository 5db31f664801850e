#include "dispatch/frame_filter.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/lookup.h"
#include "cpython/compat.h"
#include "cpython/dict_access.h"
#include "torch/bridge.h"

namespace cdynamo {

namespace {

// Of installed packages, those that are tools and not a part of anybody's model. Names of single modules end in .py.
const std::unordered_set<std::string_view>& infrastructure() {
  static const auto& names = *new std::unordered_set<std::string_view>{
      "IPython",       "PIL",         "_distutils_hack",
      "_pytest",       "coverage",    "debugpy",
      "filelock",      "fsspec",      "functorch",
      "hypothesis",    "ipykernel",   "jinja2",
      "joblib",        "markupsafe",  "matplotlib",
      "mpmath",        "networkx",    "numpy",
      "onnx",          "packaging",   "onnxruntime",
      "optree",        "pandas",      "pip",
      "pkg_resources", "pluggy",      "psutil",
      "pytest",        "requests",    "rich",
      "scipy",         "setuptools",  "sklearn",
      "sympy",         "tensorboard", "tensorflow",
      "tensorrt",      "torchgen",    "tqdm",
      "triton",        "urllib3",     "typing_extensions.py",
      "xarray",        "yaml",
  };
  return names;
}

// The folder of a module that has been imported, with a slash at its end; empty where there is none.
std::string folderOf(const char* module) {
  ObjectRef name = checked(PyUnicode_FromString(module));
  ObjectRef imported = ObjectRef::steal(PyImport_GetModule(name.get()));
  ObjectRef file = ObjectRef::steal(imported ? PyObject_GetAttrString(imported.get(), "__file__") : nullptr);
  const char* text = file && PyUnicode_Check(file.get()) ? PyUnicode_AsUTF8(file.get()) : nullptr;
  PyErr_Clear();
  std::string path = text ? text : "";
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

bool startsWith(std::string_view text, std::string_view prefix) { return !prefix.empty() && text.substr(0, prefix.size()) == prefix; }

// The first part of the path below a folder of installed packages; empty where the file is in none.
std::string_view installedPackage(std::string_view file) {
  for (std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    size_t at = file.rfind(folder);
    if (at == std::string_view::npos) continue;
    std::string_view rest = file.substr(at + folder.size());
    return rest.substr(0, rest.find('/'));
  }
  return {};
}

bool isInfrastructureFile(std::string_view file) {
  static const std::string &standardLibrary = *new std::string(folderOf("os")), &torch = *new std::string(folderOf("torch")),
                           &own = *new std::string(folderOf("cdynamo"));
  if (startsWith(file, "<frozen ") || startsWith(file, "<__array_function__") || startsWith(file, torch) || startsWith(file, own)) return true;
  std::string_view package = installedPackage(file);
  return package.empty() ? startsWith(file, standardLibrary) : infrastructure().count(package) > 0;
}

// The standard library makes these from text.
bool isNamedTupleConstructor(PyCodeObject* code, const char* file) {
  return std::string_view(file) == "<string>" && PyTuple_GET_SIZE(code->co_names) == 1 &&
         PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, 0), "_tuple_new") == 0;
}

PyObject* dictItem(PyObject* dict, PyObject* name) {
  PyObject* value = PyDict_GetItemWithError(dict, name);
  if (value == nullptr) PyErr_Clear();
  return value;
}

PyObject* interned(const char* text) {
  PyObject* name = PyUnicode_InternFromString(text);
  if (name == nullptr) PyErr_Clear();
  return name;
}

bool isTorchModule(PyObject* module) {
  const char* name = PyModule_GetName(module);
  if (name == nullptr) PyErr_Clear();
  std::string_view text = name ? name : "";
  return text == "torch" || startsWith(text, "torch.");
}

// Looks through plain containers and instances, as far as that is cheap: what cannot be said quickly may hold a tensor.
class TensorSearch {
 public:
  bool mayHold(PyObject* object, int depth = 0) {
    PyTypeObject* type = Py_TYPE(object);
    if (isPlain(object, type)) return false;
    if (depth > kDepth || ++seen_ > kObjects) return true;
    if (PyModule_Check(object)) return isTorchModule(object);
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); i++)
        if (mayHold(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return true;
      return false;
    }
    if (PyDict_CheckExact(object)) return dictMayHold(object, depth);
    if (PyType_Check(object)) return isOfTorch(reinterpret_cast<PyTypeObject*>(object));
    // An instance of a class that Python code made, of nothing but object.
    bool plainInstance = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_base == &PyBaseObject_Type && !isOfTorch(type);
    PyObject* dict = plainInstance ? peekInstanceDict(object) : nullptr;
    return dict == nullptr || dictMayHold(dict, depth);
  }

 private:
  static constexpr int kDepth = 3;
  static constexpr int kObjects = 64;

  static bool isPlain(PyObject* object, PyTypeObject* type) {
    return type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyUnicode_Type || object == Py_None ||
           type == &PyBytes_Type || type == &PyComplex_Type || type == &PyRange_Type || type == &PySlice_Type || object == Py_Ellipsis;
  }

  bool dictMayHold(PyObject* dict, int depth) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value))
      if (mayHold(value, depth + 1)) return true;
    return false;
  }

  static bool isOfTorch(PyTypeObject* type) {
    static auto* module = reinterpret_cast<PyTypeObject*>(importedObject("torch.nn", "Module"));
    static auto* tensor = reinterpret_cast<PyTypeObject*>(importedObject("torch", "Tensor"));
    return PyType_IsSubtype(type, module) || PyType_IsSubtype(type, tensor);
  }

  int seen_ = 0;
};

bool globalsUseTensors(PyObject* globals, PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    PyObject* value = dictItem(globals, PyTuple_GET_ITEM(names, i));
    // Functions and classes that the code only calls are frames of their own.
    if (value == nullptr || PyFunction_Check(value)) continue;
    if (TensorSearch().mayHold(value)) return true;
  }
  return false;
}

}  // namespace

bool isNeverCaptured(PyCodeObject* code) {
  constexpr int kFunction = CO_OPTIMIZED | CO_NEWLOCALS;
  if ((code->co_flags & kFunction) != kFunction) return true;
  if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) return true;
  Py_ssize_t length = 0;
  const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  if (file == nullptr) {
    PyErr_Clear();  // surrogates: a file of the user's
    return false;
  }
  if (isNamedTupleConstructor(code, file)) return true;
  return isInfrastructureFile({file, static_cast<size_t>(length)});
}

DisableMark disableMark(PyObject* function) {
  static PyObject *disable = interned("_torchdynamo_disable"), *recursive = interned("_torchdynamo_disable_recursive"),
                  *wrapper = interned("_torchdynamo_wrapper_id");
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  if (dict == nullptr || !disable || !recursive || !wrapper || dictItem(dict, disable) != Py_True) return DisableMark::None;
  PyObject* marked = dictItem(dict, wrapper);
  if (marked == nullptr) return DisableMark::Itself;
  // functools.wraps copies the marks to wrappers that mean nothing by them.
  void* id = PyLong_Check(marked) ? PyLong_AsVoidPtr(marked) : nullptr;
  if (id == nullptr) PyErr_Clear();
  if (id != function) return DisableMark::None;
  return dictItem(dict, recursive) == Py_True ? DisableMark::AndBelow : DisableMark::Itself;
}

bool mayUseTensors(const FrameInputs& inputs, GlobalsMemo& memo) {
  for (Py_ssize_t i = 0; i < inputs.localCount; i++)
    if (inputs.locals[i] && TensorSearch().mayHold(inputs.locals[i])) return true;
  auto* function = reinterpret_cast<PyFunctionObject*>(inputs.function);
  PyObject* closure = function->func_closure;
  for (Py_ssize_t i = 0; closure && i < PyTuple_GET_SIZE(closure); i++) {
    PyObject* content = PyCell_GET(PyTuple_GET_ITEM(closure, i));
    if (content && !PyFunction_Check(content) && TensorSearch().mayHold(content)) return true;
  }
  uint64_t version = dictVersionInline(function->func_globals);
  if (memo.version != version)
    memo = {version, globalsUseTensors(function->func_globals, reinterpret_cast<PyCodeObject*>(function->func_code)->co_names)};
  return memo.useTensors;
}

}  // namespace cdynamo
