#include "emit/resume.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/lookup.h"
#include "bytecode/assembler.h"
#include "bytecode/liveness.h"
#include "cpython/compat.h"
#include "emit/adopted_cells.h"
#include "guards/mortals.h"
#include "interp/protocol.h"

namespace cdynamo {

namespace {

// What about a code object matters to its continuations.
struct Traits {
  bool readsFrame = false;  // may look at its own locals by name: all are carried
  bool readsSelf = false;   // super() without arguments reads the first parameter
  bool plainYields = true;
  bool library = false;     // torch's own
  bool transforms = false;  // of torch.func: tensors inside its frames are wrapped for one level and mean nothing outside
};

bool isCall(Op op) { return op == Op::Call || op == Op::CallFunctionEx; }

// Whether a yield lies between the load of what is called and the call.
bool yieldsInArguments(const Code& code, InstrIndex call) {
  const Instr& in = code.at(call);
  int callee = code.depthAt(call) - 1 - (in.op == Op::Call ? in.arg : 1 + (in.arg & 1));
  for (InstrIndex i = call; i-- > 0 && code.depthAt(i) > callee;)
    if (code.at(i).op == Op::YieldValue) return true;
  return false;
}

std::unordered_map<PyCodeObject*, Traits>& allTraits() {
  static auto& table = *new std::unordered_map<PyCodeObject*, Traits>;
  return table;
}

const Traits& traitsOf(const Code& code) {
  auto [found, fresh] = allTraits().try_emplace(code.pyCode());
  Traits& traits = found->second;
  if (!fresh) return traits;
  const char* file = PyUnicode_AsUTF8(code.filename());
  if (!file) PyErr_Clear();
  traits.transforms = file && std::strstr(file, "/torch/_functorch/");
  traits.library = file && std::strstr(file, "/torch/");
  for (InstrIndex i = 0; i < code.size(); i++) traits.plainYields = traits.plainYields && !(isCall(code.at(i).op) && yieldsInArguments(code, i));
  for (const Instr& in : code.instrs()) {
    if (operandOf(in.op) != Operand::Name) continue;
    const char* name = PyUnicode_AsUTF8(in.object);
    if (!name) {
      PyErr_Clear();
      continue;
    }
    for (const char* reader : {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "breakpoint", "set_trace", "stack"})
      traits.readsFrame |= std::strcmp(name, reader) == 0;
    traits.readsSelf |= std::strcmp(name, "super") == 0;
  }
  return traits;
}

struct Key {
  InstrIndex index;
  bool handled;
  std::vector<int> locals;
  std::vector<bool> stack;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    size_t h = static_cast<size_t>(k.index) * 2 + k.handled;
    for (int slot : k.locals) h = h * 1000003 + static_cast<size_t>(slot);
    return h * 1000003 + std::hash<std::vector<bool>>()(k.stack);
  }
};

}  // namespace

struct PointsOfCode : std::enable_shared_from_this<PointsOfCode> {
  explicit PointsOfCode(std::shared_ptr<const Code> c) : code(std::move(c)) {}
  ~PointsOfCode();
  PointsOfCode(const PointsOfCode&) = delete;
  PointsOfCode& operator=(const PointsOfCode&) = delete;

  const ResumePoint* intern(InstrIndex index, std::vector<int> locals, std::vector<bool> stack, bool handled);

  std::shared_ptr<const Code> code;

 private:
  std::unordered_map<Key, std::unique_ptr<ResumePoint>, KeyHash> points_;
};

namespace {

// Never destroyed, as the interpreter is gone when static destructors run. Whoever holds a point holds them all.
auto& pointTable() {
  static auto& table = *new std::unordered_map<PyCodeObject*, std::weak_ptr<PointsOfCode>>;
  return table;
}
auto& chainsBySignature() {
  static auto& table = *new std::unordered_map<PyObject*, const ResumeChain*>;
  return table;
}

std::shared_ptr<PointsOfCode> pointsOf(const Code& code) {
  std::weak_ptr<PointsOfCode>& known = pointTable()[code.pyCode()];
  std::shared_ptr<PointsOfCode> points = known.lock();
  if (!points) known = points = std::make_shared<PointsOfCode>(decodeShared(code.pyCode()));
  return points;
}

ObjectRef text(const std::string& s) { return checked(PyUnicode_InternFromString(s.c_str())); }

}  // namespace

PointsOfCode::~PointsOfCode() { pointTable().erase(code->pyCode()); }

const ResumePoint* PointsOfCode::intern(InstrIndex index, std::vector<int> locals, std::vector<bool> stack, bool handled) {
  Key key{index, handled, std::move(locals), std::move(stack)};
  auto& slot = points_[key];
  if (slot) return slot.get();
  slot = std::make_unique<ResumePoint>();
  slot->all = this;
  slot->code = code;
  slot->index = index;
  slot->locals = std::move(key.locals);
  slot->stack = std::move(key.stack);
  slot->handled = handled;
  for (bool carried : slot->stack) slot->stackValues += carried;
  slot->cells = cellSlots(*code).size();
  return slot.get();
}

void forgetTraits(PyCodeObject* code) { allTraits().erase(code); }

namespace {

bool isCarried(const Code& code, const LiveSet& live, int slot) {
  if (code.isCellOrFree(slot)) return false;
  const Traits& traits = traitsOf(code);
  return live.contains(slot) || traits.readsFrame || (traits.readsSelf && slot == 0);
}

// The function of a point's values under construction: parameters, the code's other locals, its cells as free variables.
struct PointFunction {
  // releases: the last parameter is called first.
  explicit PointFunction(const ResumePoint& point, bool releases = false) : a(CodeSpec::like(point.code->pyCode())), at(point) {
    const Code& code = *point.code;
    CodeSpec& spec = a.spec();
    spec.localsplus.clear();
    spec.flags &= ~(CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
    spec.posOnlyCount = spec.kwOnlyCount = 0;
    slots.assign(static_cast<size_t>(code.localsplusCount()), -1);
    for (int slot : point.locals) slots[static_cast<size_t>(slot)] = spec.addLocal(code.localName(slot));
    for (size_t i = 0; i < point.stack.size(); i++) stack.push_back(point.stack[i] ? spec.addLocal(text("___stack" + std::to_string(i)).get()) : -1);
    const int handled = point.handled ? spec.addLocal(text("___handled").get()) : -1;
    const int release = releases ? spec.addLocal(text("___release").get()) : -1;
    spec.argcount = static_cast<int>(spec.localsplus.size());
    for (int slot = 0; slot < code.localsplusCount(); slot++)
      if (!code.isCellOrFree(slot) && slots[static_cast<size_t>(slot)] < 0) slots[static_cast<size_t>(slot)] = spec.addLocal(code.localName(slot));
    if (point.stackValues != point.stack.size())
      for (int i = 0; i <= code.maxDepth(); i++) temps.push_back(spec.addLocal(text("___slot" + std::to_string(i)).get()));
    AdoptedCells cells(code, spec, slots);
    a.setLine(code.lineOf(point.index));
    a.prologue();
    cells.adopt(a);
    if (releases) {
      a.loadFast(release);
      a.deleteFast(release);
      a.call(0);
      a.popTop();
    }
    for (size_t i = 0; i < stack.size(); i++) {
      if (stack[i] < 0) {
        a.emit(Op::LoadFastAndClear, temps.back());
        continue;
      }
      a.loadFast(stack[i]);
      a.deleteFast(stack[i]);
    }
    if (point.handled) a.deleteFast(handled);
  }

  Assembler a;
  const ResumePoint& at;
  std::vector<int> slots;  // our slot for each of the code's
  std::vector<int> stack;  // our slot for each stack value; -1: none
  std::vector<int> temps;  // for moving a stack with marks of unbound locals in it
};

}  // namespace

std::vector<int> cellSlots(const Code& code) {
  std::vector<int> slots;
  for (int slot = 0; slot < code.localsplusCount(); slot++)
    if (code.isCellOrFree(slot)) slots.push_back(slot);
  return slots;
}

bool hasPlainYields(const Code& code) { return traitsOf(code).plainYields; }

bool isLibraryCode(const Code& code) { return traitsOf(code).library; }

bool isResumable(const Code& code) {
  if ((code.flags() & (CO_OPTIMIZED | CO_NEWLOCALS)) != (CO_OPTIMIZED | CO_NEWLOCALS)) return false;
  if (code.flags() & (CO_COROUTINE | CO_ASYNC_GENERATOR)) return false;
  if ((code.flags() & CO_GENERATOR) && !hasPlainYields(code)) return false;
  if (traitsOf(code).transforms) return false;
  // super() reads the first parameter from where CPython put it.
  return !(traitsOf(code).readsSelf && code.localsplusCount() > 0 && code.isCellOrFree(0) && code.argcount() > 0);
}

namespace {

const ResumePoint* pointIn(PointsOfCode& points, InstrIndex index, const std::vector<LocalState>& states, std::vector<bool> stack, bool handled) {
  const Code& code = *points.code;
  LiveSet live = liveAt(code, index);
  std::vector<int> locals;
  for (int slot = 0; slot < code.localsplusCount(); slot++) {
    LocalState state = states[static_cast<size_t>(slot)];
    if (code.isCellOrFree(slot) || state == LocalState::Unbound) continue;
    if (state == LocalState::Kept || isCarried(code, live, slot)) locals.push_back(slot);
  }
  return points.intern(index, std::move(locals), std::move(stack), handled);
}

}  // namespace

PointRef resumePoint(const Code& code, InstrIndex index, const std::vector<LocalState>& locals, std::vector<bool> stack, bool handled) {
  std::shared_ptr<PointsOfCode> points = pointsOf(code);
  const ResumePoint* point = pointIn(*points, index, locals, std::move(stack), handled);
  return PointRef(std::move(points), point);
}

const ResumePoint* keeping(const ResumePoint& point, const std::vector<int>& slots) {
  std::vector<int> locals = point.locals;
  locals.insert(locals.end(), slots.begin(), slots.end());
  std::sort(locals.begin(), locals.end());
  return point.all->intern(point.index, std::move(locals), point.stack, point.handled);
}

bool isForeign(PyObject* object) {
  static const destructor ofClass = reinterpret_cast<PyTypeObject*>(importedObject("cdynamo.polyfills", "QuietBase"))->tp_dealloc;
  PyTypeObject* type = Py_TYPE(object);
  while (type->tp_dealloc == ofClass && type->tp_base) type = type->tp_base;
  const std::string_view name = type->tp_name;
  return name.find('.') != name.npos && !name.starts_with("torch.") && !name.starts_with("numpy.");
}

bool isDeathVisible(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_finalize || type->tp_del || PyWeakref_Check(object)) return true;
  if (type == &PyZip_Type || type == &PyMap_Type || type == &PyFilter_Type || type == &PyEnum_Type) return true;  // a generator may be inside
  if (PyType_Check(object)) return Mortals::canDie(object);                                                       // its bases see it
  if (PyModule_Check(object)) return false;
  return hasWeakReferences(object) || isForeign(object);
}

namespace {

// What a chain is known by, without holding anything.
using ChainKey = std::vector<std::tuple<const ResumePoint*, ReturnTo, PyObject*>>;

ChainKey keyOf(const std::vector<ResumeChain::Frame>& frames) {
  ChainKey key;
  for (const ResumeChain::Frame& f : frames) key.emplace_back(f.at.get(), f.returnTo, f.globals.get());
  return key;
}

struct ChainHash {
  size_t operator()(const ChainKey& key) const {
    size_t h = key.size();
    for (const auto& [at, returnTo, globals] : key)
      h = (h * 1000003 + (reinterpret_cast<size_t>(at) >> 4)) * 31 + static_cast<size_t>(returnTo) + (reinterpret_cast<size_t>(globals) >> 4);
    return h;
  }
};

auto& chainTable() {
  static auto& table = *new std::unordered_map<ChainKey, std::weak_ptr<const ResumeChain>, ChainHash>;
  return table;
}

Ref<PyCodeObject> makeSignature(const std::vector<ResumeChain::Frame>& frames) {
  const ResumePoint& innermost = *frames.back().at;
  CodeSpec spec = CodeSpec::named(innermost.code->pyCode());
  for (size_t i = 0; i < frames.size(); i++) {
    // Names of the outer frames carry their distance.
    const ResumePoint& at = *frames[i].at;
    std::string suffix = i + 1 == frames.size() ? "" : "___" + std::to_string(frames.size() - 1 - i);
    for (int slot : at.locals) {
      const char* name = PyUnicode_AsUTF8(at.code->localName(slot));
      if (!name) throw PythonError{};
      spec.addLocal(text(name + suffix).get());
    }
    for (size_t k = 0; k < at.stack.size(); k++)
      if (at.stack[k]) spec.addLocal(text("___stack" + std::to_string(k) + suffix).get());
    if (at.handled) spec.addLocal(text("___handled" + suffix).get());
    if (at.isGenerator()) spec.addLocal(text("___generator" + suffix).get());
  }
  spec.argcount = static_cast<int>(spec.localsplus.size());
  for (const ResumeChain::Frame& f : frames)
    for (int slot : cellSlots(*f.at->code)) spec.addFree(f.at->code->localName(slot));
  Assembler a(std::move(spec));
  a.setLine(innermost.code->lineOf(innermost.index));
  a.prologue();
  a.loadNone();
  a.returnValue();
  return a.finish();
}

}  // namespace

std::shared_ptr<const ResumeChain> resumeChain(std::vector<ResumeChain::Frame> frames) {
  ChainKey key = keyOf(frames);
  auto found = chainTable().find(key);
  if (found != chainTable().end())
    if (auto known = found->second.lock()) return known;
  auto made = std::make_shared<ResumeChain>();
  made->signature = makeSignature(frames);
  made->frames = std::move(frames);
  chainsBySignature()[made->signature.object()] = made.get();
  chainTable()[std::move(key)] = made;
  return made;
}

ResumeChain::~ResumeChain() {
  chainTable().erase(keyOf(frames));
  chainsBySignature().erase(signature.object());
}

const ResumeChain* resumeChainOf(PyObject* code) {
  auto found = chainsBySignature().find(code);
  return found == chainsBySignature().end() ? nullptr : found->second;
}

PyCodeObject* ResumePoint::continuation() const {
  if (continuation_) return continuation_.get();
  PointFunction f(*this, true);
  std::vector<Label> labels = f.a.newLabels(code->size());
  f.a.jump(labels[static_cast<size_t>(index)]);
  f.a.copyCode(*code, labels, f.slots);
  continuation_ = f.a.finish();
  return continuation_.get();
}

namespace {

// The first instruction from here on that does something: so that all ways to one place meet in one point.
InstrIndex canonical(const Code& code, InstrIndex i) {
  for (InstrIndex n = 0; n < code.size(); n++) {
    Op op = code.at(i).op;
    if (op == Op::Jump || op == Op::JumpBackward)
      i = code.at(i).target;
    else if (op == Op::Nop)
      i++;
    else
      break;
  }
  return i;
}

// The edge to instruction `to`, with `kept` slots of the stack and then `pushed` new values.
ResumeEdge edgeTo(const ResumePoint& from, InstrIndex to, size_t kept, const std::vector<int>& pushed) {
  to = canonical(*from.code, to);
  LiveSet live = liveAt(*from.code, to), before = liveAt(*from.code, from.index);
  ResumeEdge edge;
  std::vector<int> locals;
  for (size_t i = 0; i < from.locals.size(); i++) {
    // What was kept without being readable is kept on.
    if (isCarried(*from.code, before, from.locals[i]) && !isCarried(*from.code, live, from.locals[i])) continue;
    locals.push_back(from.locals[i]);
    edge.take.push_back(static_cast<int>(i));
  }
  std::vector<bool> stack(from.stack.begin(), from.stack.begin() + static_cast<ptrdiff_t>(kept));
  int value = static_cast<int>(from.locals.size());
  for (bool carried : stack)
    if (carried) edge.take.push_back(value++);
  for (int p : pushed) {
    stack.push_back(true);
    edge.take.push_back(p);
  }
  if (from.handled) edge.take.push_back(static_cast<int>(from.valueCount()) - 1);
  edge.to = from.all->intern(to, std::move(locals), std::move(stack), from.handled);
  return edge;
}

class StepWriter {
 public:
  explicit StepWriter(const ResumePoint& point) : f_(point), at_(point), made_(std::make_unique<ResumeStep>()) {}

  std::unique_ptr<ResumeStep> write() {
    const Code& code = *at_.code;
    Instr in = code.at(at_.index);
    const Handler* handler = code.handlerOf(at_.index);
    Label jumped = f_.a.newLabel(), raised = f_.a.newLabel();
    if (handler) f_.a.beginHandler(raised, handler->lasti, handler->depth);
    if (operandOf(in.op) == Operand::Local) in.arg = f_.slots[static_cast<size_t>(in.arg)];
    if (in.op == Op::Reraise) in.arg = 0;  // the place to restore is one of another code object
    bool jumps = operandOf(in.op) == Operand::Jump;
    jumps ? f_.a.copyJump(in, jumped) : f_.a.copy(in);
    if (handler) f_.a.endHandler();
    f_.a.setPosition(in.pos);
    const size_t depth = at_.stack.size();
    if (fallsThrough(in.op)) exit(at_.index + 1, lowest(depth, code.depthAt(at_.index + 1)), false);
    if (jumps) {
      f_.a.bind(jumped);
      InstrIndex target = in.target;
      if (in.op == Op::Send) {
        f_.a.emit(Op::EndSend);
        target++;
      }
      exit(target, lowest(depth, code.depthAt(target)), false);
    }
    if (handler) {
      f_.a.bind(raised);
      if (handler->lasti) {
        // Means something in this code object only.
        f_.a.swap(2);
        f_.a.popTop();
        f_.a.loadConst(checked(PyLong_FromLong(0)).get());
        f_.a.swap(2);
      }
      exit(handler->target, static_cast<size_t>(handler->depth), true);
    }
    made_->code = f_.a.finish();
    return std::move(made_);
  }

 private:
  static size_t lowest(size_t before, int after) { return std::min(before, static_cast<size_t>(after)); }

  // Returns everything that the point behind the exit carries. The lowest `same` slots of the stack are as before.
  void exit(InstrIndex to, size_t same, bool raised) {
    const Code& code = *at_.code;
    const Instr& in = code.at(at_.index);
    std::vector<LocalState> locals(static_cast<size_t>(code.localsplusCount()), LocalState::Unbound);
    LiveSet before = liveAt(code, at_.index);
    for (int slot : at_.locals) locals[static_cast<size_t>(slot)] = isCarried(code, before, slot) ? LocalState::Bound : LocalState::Kept;
    // The store was left to CPython for the sake of an object's death: the new one may be such an object too.
    if (!raised && in.op == Op::StoreFast) locals[static_cast<size_t>(in.arg)] = LocalState::Kept;
    if (!raised && (in.op == Op::DeleteFast || in.op == Op::LoadFastAndClear)) locals[static_cast<size_t>(in.arg)] = LocalState::Unbound;
    std::vector<bool> stack(static_cast<size_t>(code.depthAt(to)), true);
    for (size_t i = 0; i < same; i++) stack[i] = at_.stack[i];
    if (!raised) moveMarks(in, locals, stack);
    to = canonical(code, to);
    const ResumePoint* point = pointIn(*at_.all, to, locals, stack, at_.handled);
    if (point->stackValues != point->stack.size()) {
      // Marks of unbound locals cannot go into a tuple: all slots are moved to locals, and those with values loaded again.
      for (size_t i = stack.size(); i-- > 0;) f_.a.storeFast(f_.temps[i]);
      for (size_t i = 0; i < stack.size(); i++)
        if (stack[i]) f_.a.loadFast(f_.temps[i]);
    }
    for (int slot : point->locals) f_.a.loadFast(f_.slots[static_cast<size_t>(slot)]);
    f_.a.loadConst(checked(PyLong_FromSize_t(made_->exits.size())).get());
    f_.a.buildTuple(static_cast<int>(point->stackValues + point->locals.size()) + 1);
    // The exception's traceback holds this frame: variables are not to be seen, nor live on, as they were before the handler ran.
    if (raised) {
      std::vector<int> ours = f_.temps;
      for (int slot : at_.locals) ours.push_back(f_.slots[static_cast<size_t>(slot)]);
      for (int slot : ours) {
        f_.a.loadConst(Py_None);
        f_.a.storeFast(slot);
        f_.a.deleteFast(slot);
      }
    }
    f_.a.returnValue();
    made_->exits.push_back(point);
  }

  // Instructions that move the marks of unbound locals about.
  void moveMarks(const Instr& in, std::vector<LocalState>& locals, std::vector<bool>& stack) const {
    const std::vector<bool>& before = at_.stack;
    if (in.op == Op::Swap) {
      size_t other = before.size() - static_cast<size_t>(in.arg);
      stack.back() = before[other];
      stack[other] = before.back();
    } else if (in.op == Op::Copy) {
      stack.back() = before[before.size() - static_cast<size_t>(in.arg)];
    } else if (in.op == Op::LoadFastAndClear) {
      bool bound = false;
      for (int slot : at_.locals) bound |= slot == in.arg;
      stack.back() = bound;
    } else if (in.op == Op::StoreFast && !before.back()) {
      locals[static_cast<size_t>(in.arg)] = LocalState::Unbound;
    }
  }

  PointFunction f_;
  const ResumePoint& at_;
  std::unique_ptr<ResumeStep> made_;
};

}  // namespace

const ResumeStep& ResumePoint::step() const {
  if (!step_) step_ = StepWriter(*this).write();
  return *step_;
}

const ResumeEdge& ResumePoint::returnEdge(ReturnTo action) const {
  auto& edge = return_[static_cast<size_t>(action)];
  if (!edge) {
    std::vector<int> pushed;
    if (action != ReturnTo::Discard && action != ReturnTo::Init) pushed.push_back(-1);
    size_t kept = stack.size() - (action == ReturnTo::Operator ? 2 : action == ReturnTo::Attribute ? 1 : 0);
    edge = std::make_unique<ResumeEdge>(edgeTo(*this, action == ReturnTo::Redo ? index : index + 1, kept, pushed));
  }
  return *edge;
}

const ResumeEdge* ResumePoint::raiseEdge() const {
  const Handler* handler = code->handlerOf(index);
  if (!handler) return nullptr;
  if (!raise_) {
    std::vector<int> pushed;
    if (handler->lasti) pushed.push_back(-2);
    pushed.push_back(-1);
    raise_ = std::make_unique<ResumeEdge>(edgeTo(*this, handler->target, static_cast<size_t>(handler->depth), pushed));
  }
  return raise_.get();
}

const ResumeEdge& ResumePoint::exhaustedEdge(ReturnTo action) const {
  InstrIndex target = code->at(index).target;
  if (action == ReturnTo::Sent) {
    // At the target, EndSend drops the receiver.
    if (!sent_) sent_ = std::make_unique<ResumeEdge>(edgeTo(*this, target + 1, stack.size() - 1, {-1}));
    return *sent_;
  }
  if (!exhausted_) exhausted_ = std::make_unique<ResumeEdge>(edgeTo(*this, target, stack.size() - 1, {}));
  return *exhausted_;
}

PyCodeObject* ResumePoint::carrier() const {
  if (carrier_) return carrier_.get();
  CodeSpec spec = CodeSpec::named(code->pyCode());
  spec.addLocal(text("callee").get());
  spec.argcount = 1;
  Assembler a(std::move(spec));
  a.setPosition(code->at(index).pos);
  a.prologue();
  a.loadFast(0);
  a.deleteFast(0);  // what is called may hold the exception, whose traceback will hold this frame
  a.call(0);
  a.returnValue();
  carrier_ = a.finish();
  return carrier_.get();
}

PyObject* ResumePoint::reflectedOperator(PyObject* left, PyObject* right) const {
  const Instr& in = code->at(index);
  if (Py_TYPE(left) != Py_TYPE(right)) {
    ObjectRef method = checked(PyUnicode_InternFromString(reflectedMethod(in.arg)));
    if (PyObject* function = typeLookup(Py_TYPE(right), method.get())) {
      PyObject* operands[] = {right, left};
      ObjectRef result = ObjectRef::steal(PyObject_Vectorcall(function, operands, 2, nullptr));
      if (!result || result.get() != Py_NotImplemented) return result.release();
    }
  }
  return PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %s: '%.100s' and '%.100s'", operatorSymbol(in.arg), Py_TYPE(left)->tp_name,
                      Py_TYPE(right)->tp_name);
}

}  // namespace cdynamo
