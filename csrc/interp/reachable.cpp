// What the traced program's frames lead to.
#include <unordered_set>

#include "interp/frame.h"
#include "interp/lifetimes.h"

namespace cdynamo {

namespace {

class Reach {
 public:
  explicit Reach(const Value* wanted) : wanted_(wanted) {}

  bool from(const FrameState* f) {
    for (; f; f = f->parent) {
      addAll(f->locals);
      addAll(f->stack);
      add(f->closure);
    }
    while (!open_.empty() && !found_) {
      Value* v = open_.back();
      open_.pop_back();
      follow(v);
    }
    return found_;
  }

 private:
  void add(Value* v) {
    if (!v || !seen_.insert(v).second) return;
    found_ |= v == wanted_;
    open_.push_back(v);
  }

  void addAll(const std::vector<Value*>& values) {
    for (Value* v : values) add(v);
  }

  void follow(Value* v) {
    switch (v->kind) {
      case Kind::List: return addAll(as<ListValue>(v)->items);
      case Kind::Tuple: return addAll(as<TupleValue>(v)->items);
      case Kind::Dict:
        for (const DictEntry& e : as<DictValue>(v)->entries)
          if (e.value) add(e.key.value), add(e.value);
        return;
      case Kind::Set:
        for (const DictKey& k : as<SetValue>(v)->items) add(k.value);
        return;
      case Kind::Instance: {
        auto* i = as<InstanceValue>(v);
        for (const auto& [name, held] : i->slots) add(held);
        add(i->dict), add(i->contents), add(i->exceptionArgs);
        return;
      }
      case Kind::Cell: return add(as<CellValue>(v)->contents);
      case Kind::Function: {
        auto* fn = as<FunctionValue>(v);
        add(fn->closure), add(fn->defaults), add(fn->kwdefaults), add(fn->dict), add(fn->names);
        return;
      }
      case Kind::BoundMethod: return add(as<BoundMethodValue>(v)->function), add(as<BoundMethodValue>(v)->self);
      case Kind::Iterator: {
        auto* it = as<IteratorValue>(v);
        add(it->subject), add(it->subjectOf);
        return addAll(it->inputs);
      }
      case Kind::Generator:
        if (auto* g = as<GeneratorValue>(v); g->frame && !g->finished) addAll(g->frame->locals), addAll(g->frame->stack);
        return;
      default: return;
    }
  }

  const Value* wanted_;
  bool found_ = false;
  std::unordered_set<const Value*> seen_;
  std::vector<Value*> open_;
};

}  // namespace

bool isReachable(const Trace& t, const Value* v) { return Reach(v).from(t.frame); }

}  // namespace cdynamo
