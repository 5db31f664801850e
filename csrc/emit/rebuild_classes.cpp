// Classes that the traced program made.
#include "cpython/compat.h"
#include "emit/rebuild.h"
#include "interp/protocol.h"

namespace cdynamo {

void Rebuilder::loadType(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  if (t.localClass(object))
    load(t.models.at(object));
  else
    a.loadConst(object);
}

void Rebuilder::makeClass(Value* v) {
  PyObject* model = realObject(v);
  LocalClass* c = t.localClass(model);
  // What may hold the class itself is put in when that is there; its place in the namespace is kept.
  auto isEarly = [&](const LocalClass::Entry& e) {
    return isBuilt(e.value) || e.value->kind == Kind::Function || e.value->kind == Kind::Property ||
           PyUnicode_CompareWithASCIIString(e.name.get(), "__slots__") == 0;
  };
  load(c->meta);
  a.loadConst(c->name.get());
  loadAll(c->bases);
  a.buildTuple(static_cast<int>(c->bases.size()));
  std::vector<LocalClass::Entry> late;
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
  a.call(3);
  int slot = newTemp();
  freshTemps_[model] = slot;
  a.copyTop();
  a.storeFast(slot);
  late.insert(late.end(), c->writes.begin(), c->writes.end());
  if (late.empty()) return;
  later([this, v, late] {
    for (const LocalClass::Entry& e : late) {
      a.loadConst(attributeOf(PyType_Type, e.value ? "__setattr__" : "__delattr__"));
      load(v);
      a.loadConst(e.name.get());
      if (e.value) load(e.value);
      a.call(e.value ? 3 : 2);
      a.popTop();
    }
  });
}

}  // namespace cdynamo
