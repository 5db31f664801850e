#include "guards/mortals.h"

#include "base/error.h"
#include "cpython/compat.h"
#include "cpython/weak_references.h"
#include "source/quiet_text.h"

namespace cdynamo {

namespace {

// ---- what its module holds -------------------------------------------------------------------------------------------

PyObject* itemOf(PyObject* dict, PyObject* name) {
  PyObject* item = dict && PyDict_Check(dict) && name ? PyDict_GetItemWithError(dict, name) : nullptr;
  if (!item) PyErr_Clear();
  return item;
}

// Whether the object, a class or function, is found in its module under its qualified name (a function: or what was made of it there).
bool isHeldByModule(PyObject* object, PyObject* module, PyObject* qualname) {
  PyObject* found = module && PyUnicode_Check(module) ? itemOf(PyImport_GetModuleDict(), module) : nullptr;
  if (!found || !PyModule_Check(found) || !qualname) return false;
  static PyObject* dot = checked(PyUnicode_InternFromString(".")).release();
  ObjectRef parts = ObjectRef::steal(PyUnicode_Split(qualname, dot, -1));
  if (!parts) return PyErr_Clear(), false;
  PyObject* inside = PyModule_GetDict(found);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts.get()); i++) {
    found = inside ? itemOf(inside, PyList_GET_ITEM(parts.get(), i)) : nullptr;
    if (!found) return false;
    inside = PyType_Check(found) ? typeDict(reinterpret_cast<PyTypeObject*>(found)) : nullptr;
  }
  return found == object || (PyFunction_Check(object) && !PyFunction_Check(found));
}

// ---- names -----------------------------------------------------------------------------------------------------------

struct Name {
  PyObject ob_base;
  PyObject* named;  // not owned: only compared
  PyObject* text;
};

Name* asName(PyObject* object) { return reinterpret_cast<Name*>(object); }

void freeName(PyObject* self) {
  ObjectRef text = ObjectRef::steal(asName(self)->text), type = ObjectRef::steal(Py_TYPE(self));
  PyObject_Free(self);
}

PyObject* nameText(PyObject* self) { return ObjectRef::share(asName(self)->text).release(); }

PyObject* compareName(PyObject* self, PyObject* other, int op) {
  if (!isName(self) || (op != Py_EQ && op != Py_NE)) return ObjectRef::share(Py_NotImplemented).release();
  bool same = self == other || asName(self)->named == other;
  return ObjectRef::share(same == (op == Py_EQ) ? Py_True : Py_False).release();
}

PyType_Slot nameSlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(freeName)},
                           {Py_tp_repr, reinterpret_cast<void*>(nameText)},
                           {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
                           {Py_tp_richcompare, reinterpret_cast<void*>(compareName)},
                           {0, nullptr}};
PyType_Spec nameSpec = {"cdynamo._C.Name", sizeof(Name), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, nameSlots};

// Null until the first name is made.
PyTypeObject* nameType = nullptr;

ObjectRef nameOf(PyObject* object) {
  const std::string shown = quietRepr(object);
  ObjectRef text = checked(PyUnicode_DecodeUTF8(shown.data(), static_cast<Py_ssize_t>(shown.size()), "replace"));
  if (!nameType) nameType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&nameSpec)).release());
  ObjectRef made = checked(reinterpret_cast<PyObject*>(PyObject_New(Name, nameType)));
  asName(made.get())->named = object;
  asName(made.get())->text = text.release();
  return made;
}

// ---- deaths ----------------------------------------------------------------------------------------------------------

void freeFlag(PyObject* capsule) { delete static_cast<std::shared_ptr<bool>*>(PyCapsule_GetPointer(capsule, nullptr)); }

PyObject* noteDeath(PyObject* capsule, PyObject*) {
  auto* alive = static_cast<std::shared_ptr<bool>*>(PyCapsule_GetPointer(capsule, nullptr));
  if (!alive) return nullptr;
  **alive = false;
  return ObjectRef::share(Py_None).release();
}

PyMethodDef noteDeathDef = {"note_death", noteDeath, METH_O, nullptr};

}  // namespace

bool isName(PyObject* object) { return Py_TYPE(object) == nameType; }
bool isNameOf(PyObject* name, PyObject* object) { return asName(name)->named == object; }

bool Mortals::canDie(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_SUPPORTS_WEAKREFS(type) || PyModule_Check(object) || PyCFunction_Check(object) || PyCode_Check(object) || PyMethod_Check(object))
    return false;
  if (PyFunction_Check(object)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    return !isHeldByModule(object, function->func_module, function->func_qualname);
  }
  if (!PyType_Check(object)) return true;
  auto* cls = reinterpret_cast<PyTypeObject*>(object);
  if (!PyType_HasFeature(cls, Py_TPFLAGS_HEAPTYPE)) return false;
  static PyObject* moduleName = checked(PyUnicode_InternFromString("__module__")).release();
  return !isHeldByModule(object, itemOf(typeDict(cls), moduleName), reinterpret_cast<PyHeapTypeObject*>(cls)->ht_qualname);
}

bool Mortals::keepsAlive(PyObject* object) {
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
    if (PyObject* item = PyTuple_GET_ITEM(object, i); canDie(item) || keepsAlive(item)) return true;
  return false;
}

void Mortals::watch(PyObject* object) {
  if (isWatched(object)) return;
  if (!onDeath_) {
    setOwnWeakCallback(noteDeath);
    auto flag = std::make_unique<std::shared_ptr<bool>>(alive_);
    ObjectRef capsule = checked(PyCapsule_New(flag.get(), nullptr, freeFlag));
    flag.release();
    onDeath_ = checked(PyCFunction_New(&noteDeathDef, capsule.get()));
  }
  watchers_.emplace(object, checked(PyWeakref_NewRef(object, onDeath_.get())));
}

ObjectRef Mortals::named(PyObject* key) {
  if (canDie(key)) {
    watch(key);
    return nameOf(key);
  }
  if (!PyTuple_CheckExact(key)) return ObjectRef::share(key);
  bool any = false;
  ObjectRef items = checked(PyTuple_New(PyTuple_GET_SIZE(key)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
    ObjectRef item = named(PyTuple_GET_ITEM(key, i));
    any |= item.get() != PyTuple_GET_ITEM(key, i);
    PyTuple_SET_ITEM(items.get(), i, item.release());
  }
  return any ? items : ObjectRef::share(key);
}

}  // namespace cdynamo
