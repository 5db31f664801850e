// Texts that show tensors: what they say is known only after the graph has run.
#include "base/lookup.h"
#include "interp/protocol.h"
#include "torch/types.h"

namespace cdynamo {

bool isLateText(Value* v) { return v->kind == Kind::Instance && as<InstanceValue>(v)->lateText; }

namespace {

bool readsPlainly(Trace& t, Value* v) {
  if (isLateText(v) || isNumber(v)) return true;
  if (isTensor(v)) {
    static auto* parameter = reinterpret_cast<PyTypeObject*>(importedObject("torch.nn", "Parameter"));
    PyTypeObject* type = t.typeOf(v);
    return (type == tensorType() || type == parameter) && t.vmapLevel == 0;
  }
  if (v->kind == Kind::Tuple && as<TupleValue>(v)->type == &PyTuple_Type && !t.isConstant(v)) {
    for (Value* item : itemsOf(t, v))
      if (!readsPlainly(t, item)) return false;
    return true;
  }
  return t.isConstant(v) || (isReal(v) && !v->source);
}

void noteReads(Trace& t, Value* v) {
  if (isTensor(v)) t.readLater(as<TensorValue>(v));
  if (v->kind == Kind::Tuple)
    for (Value* item : as<TupleValue>(v)->items) noteReads(t, item);
}

}  // namespace

bool canReadLater(Trace& t, Value* v) {
  if (!readsPlainly(t, v)) return false;
  noteReads(t, v);
  return true;
}

Value* lateText(Trace& t, PyObject* callable, CallArgs args) {
  for (Value* v : args.args)
    if (!canReadLater(t, v)) return nullptr;
  for (auto& [name, v] : args.kwargs)
    if (!canReadLater(t, v)) return nullptr;
  auto* text = t.make<InstanceValue>();
  text->type = &PyUnicode_Type;
  text->lateText = std::make_unique<LateCall>(LateCall{t.keep(ObjectRef::share(callable)), std::move(args.args), std::move(args.kwargs)});
  return text;
}

Value* lateJoin(Trace& t, Value* separator, const std::vector<Value*>& parts) {
  static PyObject* join = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyUnicode_Type), "join")).release();
  return lateText(t, join, {{separator, t.tuple(parts)}, {}});
}

}  // namespace cdynamo
