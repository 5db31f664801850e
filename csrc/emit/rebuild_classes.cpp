// Classes that the traced program made.
#include "base/lookup.h"
#include "cpython/compat.h"
#include "emit/rebuild.h"
#include "interp/protocol.h"

namespace cdynamo {

void Rebuilder::loadType(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  if (t.localClass(object))
    load(t.models.at(object));
  else
    loadObject(t.sources.pinned(object));
}

void Rebuilder::makeClass(Value* v) {
  PyObject* model = realObject(v);
  LocalClass* c = t.localClass(model);
  std::vector<LocalClass::Entry> late;
  if (c->factory) {
    load(c->factory);
    // With all that they hold: the factory reads it.
    auto loadFilled = [&](Value* part) {
      load(part);
      fillAll();
    };
    for (Value* part : c->args) loadFilled(part);
    ObjectRef names = checked(PyTuple_New(static_cast<Py_ssize_t>(c->keywords.size())));
    for (size_t i = 0; i < c->keywords.size(); i++) {
      loadFilled(c->keywords[i].value);
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), ObjectRef::share(c->keywords[i].name.get()).release());
    }
    a.call(static_cast<int>(c->args.size() + c->keywords.size()), c->keywords.empty() ? nullptr : keep(std::move(names)));
  } else {
    bool decorated = false;
    for (const LocalClass::Entry& e : c->writes) decorated |= !e.name;
    // What may hold the class itself is put in when that is there; its place in the namespace is kept. A decorator needs it before.
    auto isEarly = [&](const LocalClass::Entry& e) {
      return decorated || isBuilt(e.value) || e.value->kind == Kind::Function || e.value->kind == Kind::Property ||
             PyUnicode_CompareWithASCIIString(e.name.get(), "__slots__") == 0 ||
             PyUnicode_CompareWithASCIIString(e.name.get(), "__orig_bases__") == 0;  // read by Generic.__init_subclass__
    };
    // What a metaclass of the program does around type.__new__ was traced.
    static auto* abcMeta = reinterpret_cast<PyTypeObject*>(importedObject("abc", "ABCMeta"));
    static PyObject* quiet = importedObject("cdynamo.polyfills", "QuietBase");
    bool called = Py_TYPE(model) == &PyType_Type || Py_TYPE(model) == abcMeta;
    if (!called) a.loadConst(attributeOf(PyType_Type, "__new__"));
    load(c->meta);
    a.loadConst(c->name.get());
    // Below a base whose hook does nothing: the real one was traced.
    if (c->hooked) a.loadConst(quiet);
    loadAll(c->bases);
    a.buildTuple(static_cast<int>(c->bases.size()) + c->hooked);
    for (const LocalClass::Entry& e : c->entries) {
      a.loadConst(e.name.get());
      if (isEarly(e)) {
        load(e.value);
      } else {
        a.loadNone();
        late.push_back(e);
      }
    }
    a.buildMap(static_cast<int>(c->entries.size()));
    if (decorated) fillAll();
    a.call(called ? 3 : 4);
  }
  int slot = newTemp();
  freshTemps_[model] = slot;
  a.copyTop();
  a.storeFast(slot);
  if (c->hooked) {
    a.loadConst(attributeOf(PyType_Type, "__setattr__"));
    load(v);
    a.loadConst(keep(checked(PyUnicode_InternFromString("__bases__"))));
    loadAll(c->bases);
    a.buildTuple(static_cast<int>(c->bases.size()));
    a.call(3);
    a.popTop();
  }
  // Decorators at once, while what they read is there.
  size_t at = 0;
  for (size_t i = 0; i < c->writes.size(); i++)
    if (!c->writes[i].name) at = i + 1;
  for (size_t i = 0; i < at; i++) writeClass(v, c->writes[i]);
  late.insert(late.end(), c->writes.begin() + static_cast<ptrdiff_t>(at), c->writes.end());
  if (late.empty()) return;
  later([this, v, late] {
    for (const LocalClass::Entry& e : late) writeClass(v, e);
  });
}

void Rebuilder::writeClass(Value* cls, const LocalClass::Entry& e) {
  if (!e.name) {
    fillAll();
    load(e.value);
    load(cls);
    loadAll(e.args);
    a.call(static_cast<int>(e.args.size()) + 1);
    return a.popTop();
  }
  a.loadConst(attributeOf(PyType_Type, e.value ? "__setattr__" : "__delattr__"));
  load(cls);
  a.loadConst(e.name.get());
  if (e.value) load(e.value);
  a.call(e.value ? 3 : 2);
  a.popTop();
}

}  // namespace cdynamo
