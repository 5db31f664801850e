#include "interp/bodies.h"

#include <algorithm>

#include "base/lookup.h"
#include "torch/bridge.h"
#include "torch/types.h"

namespace cdynamo {

BodyScope::BodyScope(Trace& t)
    : t_(t),
      begin_(t.graph.position()),
      effects_(t.effects().size()),
      written_(t.writtenTensors().size()),
      outerSerial_(t.bodySerial),
      outerWrote_(t.wroteOutsideBody) {
  t.bodySerial = t.lastSerial() + 1;
  t.wroteOutsideBody = false;
}

BodyScope::~BodyScope() {
  t_.bodySerial = outerSerial_;
  // What the body wrote to may be outside of the one around it too.
  t_.wroteOutsideBody = outerWrote_ || (outerSerial_ && t_.wroteOutsideBody);
}

bool BodyScope::hasEffects() const { return wroteOutside() || t_.effects().size() != effects_ || t_.writtenTensors().size() != written_; }

TraceGradMode::TraceGradMode(Trace& t, bool enabled) : before_(gradEnabled()) {
  setGradEnabled(enabled);
  t.journal.onRollback([before = before_] { setGradEnabled(before); });
}

TraceGradMode::~TraceGradMode() { setGradEnabled(before_); }

bool collectTensors(Trace& t, Value* v, std::vector<TensorValue*>& found) {
  auto all = [&](const std::vector<Value*>& items) {
    return std::all_of(items.begin(), items.end(), [&](Value* item) { return collectTensors(t, item, found); });
  };
  switch (v->kind) {
    case Kind::Tensor:
      if (std::find(found.begin(), found.end(), as<TensorValue>(v)) == found.end()) found.push_back(as<TensorValue>(v));
      return true;
    case Kind::Real: return true;
    case Kind::List: return all(as<ListValue>(v)->items);
    case Kind::Tuple: return all(as<TupleValue>(v)->items);
    case Kind::Dict:
      for (const DictEntry& e : as<DictValue>(v)->entries)
        if (e.value && !collectTensors(t, e.value, found)) return false;
      return !as<DictValue>(v)->attributes || collectTensors(t, as<DictValue>(v)->attributes, found);
    case Kind::Instance: {
      auto* i = as<InstanceValue>(v);
      if (i->lateText) return false;
      for (auto& [name, value] : i->slots)
        if (value && !collectTensors(t, value, found)) return false;
      if (i->contents && !collectTensors(t, i->contents, found)) return false;
      return !i->dict || collectTensors(t, i->dict, found);
    }
    case Kind::Slice: return true;
    default: return false;
  }
}

Arg nodeArg(Node* node) {
  Arg arg;
  arg.kind = Arg::NodeRef;
  arg.node = node;
  return arg;
}

Arg constantArg(ObjectRef object) {
  Arg arg;
  arg.object = std::move(object);
  return arg;
}

Node* addBody(Trace& t, const char* prefix, PyObject* program) {
  size_t count = 0;
  std::string start = std::string(prefix) + "_";
  for (const Node& node : t.graph.nodes()) {
    if (node.op != NodeOp::GetAttr || !node.target) continue;
    const char* name = PyUnicode_AsUTF8(node.target.get());
    count += name && std::string(name).compare(0, start.size(), start) == 0;
  }
  ObjectRef name = checked(PyUnicode_FromString((start + std::to_string(count)).c_str()));
  std::vector<Arg> args;
  args.push_back(constantArg(ObjectRef::share(program)));
  Node* node = t.graph.add(NodeOp::GetAttr, std::move(name), std::move(args), {});
  node->place = t.place;
  return node;
}

std::vector<Node*> addBodyCall(Trace& t, PyObject* target, std::vector<Arg> args, std::vector<std::pair<ObjectRef, Arg>> kwargs,
                               std::vector<TensorMeta> results) {
  Node* node = t.graph.add(NodeOp::CallFunction, ObjectRef::share(target), std::move(args), std::move(kwargs));
  node->place = t.place;
  node->result.kind = ResultMeta::Tuple;
  std::vector<Node*> items;
  for (TensorMeta& meta : results) {
    ResultMeta& result = node->result.items.emplace_back();
    result.kind = ResultMeta::Tensor;
    result.tensor = std::move(meta);
  }
  for (size_t i = 0; i < results.size(); i++) {
    std::vector<Arg> operands;
    operands.push_back(nodeArg(node));
    operands.push_back(constantArg(checked(PyLong_FromSize_t(i))));
    Node* item = t.graph.add(NodeOp::CallFunction, ObjectRef::share(importedObject("operator", "getitem")), std::move(operands), {});
    item->place = t.place;
    item->result = node->result.items[i];
    items.push_back(item);
  }
  return items;
}

void setOutputTree(PyObject* program, ObjectRef tree) { checkedStatus(PyObject_SetAttrString(program, "output_tree", tree.get())); }

TensorValue* tensorOf(Trace& t, Node* node, const TensorMeta& meta) {
  auto* v = t.make<TensorValue>();
  v->node = node;
  v->meta = meta;
  v->type = tensorType();
  v->observed = true;
  return v;
}

}  // namespace cdynamo
