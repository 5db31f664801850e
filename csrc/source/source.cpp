#include "source/source.h"

#include "base/error.h"
#include "cpython/iterators.h"
#include "source/quiet_text.h"

namespace cdynamo {

SourceTable::SourceTable(std::vector<std::string> localNames, PyObject* rootGlobals)
    : localNames_(std::move(localNames)), rootGlobals_(rootGlobals) {}

namespace {

// What a small int is known by, whatever object has its value: no object has an odd address. Null for all else.
PyObject* smallIntMark(PyObject* object) {
  if (!object || !PyLong_CheckExact(object)) return nullptr;
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow || value >= (1LL << 61) || value < -(1LL << 61)) return nullptr;
  return reinterpret_cast<PyObject*>(static_cast<uintptr_t>(value) << 1 | 1);
}

}  // namespace

const Source* SourceTable::intern(SourceKind kind, int32_t index, const Source* base, PyObject* object, const Source* other) {
  PyObject* mark = smallIntMark(object);
  if (object && PyUnicode_CheckExact(object) && !PyUnicode_CHECK_INTERNED(object)) {
    PyObject* name = ObjectRef::share(object).release();
    PyUnicode_InternInPlace(&name);
    owned_.push_back(ObjectRef::steal(name));
    object = name;
  } else if (object && !mark &&
             (PyLong_CheckExact(object) || PyTuple_CheckExact(object) || (PyFloat_CheckExact(object) && kind != SourceKind::Pinned))) {
    // Keys equal in value but not in identity: find an equal one among this base's items (rare, short lists).
    for (const Source& s : sources_) {
      if (s.kind != kind || s.base != base || s.object == nullptr || Py_TYPE(s.object) != Py_TYPE(object)) continue;
      int equal = PyObject_RichCompareBool(s.object, object, Py_EQ);
      if (equal < 0) throw PythonError{};
      if (equal) return &s;
    }
  }
  Key key{kind, index, base, mark ? mark : object, other};
  auto found = interned_.find(key);
  if (found != interned_.end()) return found->second;
  if (object) owned_.push_back(ObjectRef::share(object));
  sources_.push_back(Source{kind, index, static_cast<int32_t>(sources_.size()), base, object, other});
  const Source* made = &sources_.back();
  interned_.emplace(key, made);
  return made;
}

const Source* SourceTable::local(int32_t slot) { return intern(SourceKind::Local, slot, nullptr, nullptr); }
const Source* SourceTable::function() { return intern(SourceKind::Function, 0, nullptr, nullptr); }
const Source* SourceTable::closureCell(int32_t i) { return intern(SourceKind::ClosureCell, i, nullptr, nullptr); }
const Source* SourceTable::pinned(PyObject* object) { return intern(SourceKind::Pinned, 0, nullptr, object); }
const Source* SourceTable::owned(PyObject* object) { return intern(SourceKind::Pinned, 1, nullptr, object); }
const Source* SourceTable::cellContents(const Source* base) { return intern(SourceKind::CellContents, 0, base, nullptr); }
const Source* SourceTable::instanceDict(const Source* base) { return intern(SourceKind::InstanceDict, 0, base, nullptr); }
const Source* SourceTable::dictItem(const Source* base, PyObject* key) { return intern(SourceKind::DictItem, 0, base, key); }
const Source* SourceTable::keyedItem(const Source* base, const Source* key) { return intern(SourceKind::KeyedItem, 0, base, nullptr, key); }
const Source* SourceTable::sequenceItem(const Source* base, int32_t i) { return intern(SourceKind::SequenceItem, i, base, nullptr); }
const Source* SourceTable::dequeItem(const Source* base, int32_t i) { return intern(SourceKind::DequeItem, i, base, nullptr); }
const Source* SourceTable::attr(const Source* base, PyObject* name) { return intern(SourceKind::Attr, 0, base, name); }
const Source* SourceTable::type(const Source* base) { return intern(SourceKind::Type, 0, base, nullptr); }
const Source* SourceTable::weakReferent(const Source* base) { return intern(SourceKind::WeakReferent, 0, base, nullptr); }
const Source* SourceTable::arithmetic(Arithmetic op, const Source* left, const Source* right) {
  return intern(SourceKind::Arithmetic, static_cast<int32_t>(op), left, nullptr, right);
}
const Source* SourceTable::handled() { return intern(SourceKind::Handled, 0, nullptr, nullptr); }
const Source* SourceTable::numberTensor(const Source* base) { return intern(SourceKind::NumberTensor, 0, base, nullptr); }
const Source* SourceTable::iteratorItem(const Source* base, int32_t i) { return intern(SourceKind::IteratorItem, i, base, nullptr); }
const Source* SourceTable::iteratorPart(const Source* base, int32_t i) { return intern(SourceKind::IteratorPart, i, base, nullptr); }
const Source* SourceTable::arrayTensor(const Source* base) { return intern(SourceKind::ArrayTensor, 0, base, nullptr); }
const Source* SourceTable::tupleWith(const Source* base, const Source* item) { return intern(SourceKind::TupleWith, 0, base, nullptr, item); }
const Source* SourceTable::lruCache(const Source* base) { return intern(SourceKind::LruCache, 0, base, nullptr); }
const Source* SourceTable::lruResult(const Source* base) { return intern(SourceKind::LruResult, 0, base, nullptr); }

namespace {

std::string strOf(PyObject* name) {
  const char* utf8 = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (utf8) return utf8;
  PyErr_Clear();
  return quietRepr(name);
}

}  // namespace

std::string SourceTable::name(const Source* source) const { return sourceName(source, localNames_, rootGlobals_); }

std::string sourceName(const Source* s, const std::vector<std::string>& localNames, PyObject* rootGlobals) {
  switch (s->kind) {
    case SourceKind::Local: {
      bool known = static_cast<size_t>(s->index) < localNames.size();
      return "L['" + (known ? localNames[s->index] : std::to_string(s->index)) + "']";
    }
    case SourceKind::Function: return "F";
    case SourceKind::ClosureCell: return "F.__closure__[" + std::to_string(s->index) + "]";
    case SourceKind::CellContents: return sourceName(s->base, localNames, rootGlobals) + ".cell_contents";
    case SourceKind::Pinned: {
      if (PyModule_Check(s->object) || PyType_Check(s->object) || PyFunction_Check(s->object)) {
        ObjectRef text = ObjectRef::steal(PyObject_GetAttrString(s->object, PyModule_Check(s->object) ? "__name__" : "__qualname__"));
        if (text) return strOf(text.get());
        PyErr_Clear();
      }
      if (PyLong_CheckExact(s->object) || PyFloat_CheckExact(s->object) || PyTuple_CheckExact(s->object)) return quietRepr(s->object);
      return std::string("<").append(Py_TYPE(s->object)->tp_name).append(">");
    }
    case SourceKind::InstanceDict: return sourceName(s->base, localNames, rootGlobals) + ".__dict__";
    case SourceKind::DictItem:
      if (s->base->kind == SourceKind::Pinned && PyDict_Check(s->base->object) && PyUnicode_Check(s->object)) {
        if (s->base->object == rootGlobals) return "G['" + strOf(s->object) + "']";
        PyObject* module = PyDict_GetItemString(s->base->object, "__name__");
        if (module && PyUnicode_Check(module)) return strOf(module) + "." + strOf(s->object);
      }
      if (s->base->kind == SourceKind::InstanceDict) return sourceName(s->base->base, localNames, rootGlobals) + "." + strOf(s->object);
      return sourceName(s->base, localNames, rootGlobals) + "[" + quietRepr(s->object) + "]";
    case SourceKind::KeyedItem: return sourceName(s->base, localNames, rootGlobals) + "[" + sourceName(s->other, localNames, rootGlobals) + "]";
    case SourceKind::SequenceItem:
    case SourceKind::DequeItem: return sourceName(s->base, localNames, rootGlobals) + "[" + std::to_string(s->index) + "]";
    case SourceKind::Attr: return sourceName(s->base, localNames, rootGlobals) + "." + strOf(s->object);
    case SourceKind::Type: return "type(" + sourceName(s->base, localNames, rootGlobals) + ")";
    case SourceKind::WeakReferent: return sourceName(s->base, localNames, rootGlobals) + "()";
    case SourceKind::Arithmetic: {
      constexpr const char* signs[] = {" + ", " - ", "*", "//", "%", "/", " < ", " <= ", " == ", " != ", " > ", " >= "};
      auto part = [&](const Source* side) {
        std::string text = sourceName(side, localNames, rootGlobals);
        return side->kind == SourceKind::Arithmetic ? "(" + text + ")" : text;
      };
      return part(s->base) + signs[s->index] + part(s->other);
    }
    case SourceKind::IteratorItem: return "___item(" + sourceName(s->base, localNames, rootGlobals) + ", " + std::to_string(s->index) + ")";
    case SourceKind::IteratorPart:
      if (s->index == kContextValue) return sourceName(s->base, localNames, rootGlobals) + ".get()";
      return "___part(" + sourceName(s->base, localNames, rootGlobals) + ", " + std::to_string(s->index) + ")";
    case SourceKind::NumberTensor:
    case SourceKind::ArrayTensor: return sourceName(s->base, localNames, rootGlobals);
    case SourceKind::TupleWith:
      return "(*" + sourceName(s->base, localNames, rootGlobals) + ", " + sourceName(s->other, localNames, rootGlobals) + ")";
    case SourceKind::LruCache: return "___lru_cache(" + sourceName(s->base, localNames, rootGlobals) + ")";
    case SourceKind::LruResult: return sourceName(s->base, localNames, rootGlobals);
    case SourceKind::Handled: return "sys.exception()";
  }
  return "?";
}

}  // namespace cdynamo
