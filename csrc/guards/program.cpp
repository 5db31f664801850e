#include "guards/program.h"

#include "base/error.h"
#include "cpython/compat.h"
#include "cpython/dict_access.h"
#include "cpython/iterators.h"
#include "cpython/lru_cache.h"
#include "guards/constants.h"
#include "source/evaluate.h"

namespace cdynamo {

namespace {

// How many steps before its use a value's memory is asked for. The loops are short, so what they wait for is memory.
constexpr uint32_t kAhead = 16;

bool isFunctionWith(PyObject* value, const GuardFact& fact) {
  if (!PyFunction_Check(value)) return false;
  auto* function = reinterpret_cast<PyFunctionObject*>(value);
  return function->func_code == fact.object.get() && (function->func_defaults ? 1 : 0) + (function->func_kwdefaults ? 2 : 0) == fact.number;
}

// The slot is unset, or the C attribute raises AttributeError. Python code is not run: anything else counts as there.
bool lacksAttr(PyObject* value, PyObject* name) {
  if (PyCell_Check(value)) return PyCell_GET(value) == nullptr;  // its contents, which is all that is asked of one
  PyObject* descriptor = typeLookup(Py_TYPE(value), name);
  if (descriptor == nullptr) return true;
  SlotRead slot = readSlot(value, name);
  if (slot.isSlot) return slot.value == nullptr;
  if (!Py_IS_TYPE(descriptor, &PyGetSetDescr_Type) && !Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return false;
  auto type = ObjectRef::share(Py_TYPE(value));
  ObjectRef found = ObjectRef::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, value, type.get()));
  if (found) return false;
  bool lacks = PyErr_ExceptionMatches(PyExc_AttributeError);
  PyErr_Clear();
  return lacks;
}

bool sizesMatch(const Dims& expected, const Dims& actual) {
  if (expected.size() != actual.size()) return false;
  for (uint32_t i = 0; i < expected.size(); i++)
    if (expected[i] >= 0 && expected[i] != actual[i]) return false;
  return true;
}

}  // namespace

GuardProgram::~GuardProgram() = default;

bool GuardProgram::check(const FrameInputs& inputs, PyObject** wantedOut) {
  if (inputs.localCount < localsNeeded_ || !mortals_.areAlive()) return false;
  if (running_) [[unlikely]] {
    // Python code that a run had to call (or another thread meanwhile) calls the same function: a state of its own.
    State own = freshState();
    std::vector<ObjectRef> temporaries;
    bool held = run(own, inputs, temporaries);
    for (ObjectRef& t : temporaries) temporaries_.push_back(std::move(t));
    if (held)
      for (size_t i = 0; i < wanted_.size(); i++) wantedOut[i] = own.registers[wanted_[i]];
    return held;
  }
  return runAndGive(state_, inputs, wantedOut);
}

bool GuardProgram::runAndGive(State& state, const FrameInputs& inputs, PyObject** wantedOut) {
  releaseTemporaries();
  running_ = true;
  bool held = run(state, inputs, temporaries_);
  running_ = false;
  if (!held) {
    releaseTemporaries();
    return false;
  }
  PyObject* const* registers = state.registers.data();
  for (size_t i = 0; i < wanted_.size(); i++) wantedOut[i] = registers[wanted_[i]];
  return true;
}

void GuardProgram::dropTemporaries() {
  if (running_) return;
  std::vector<ObjectRef> dying;
  dying.swap(temporaries_);
}

GuardProgram::State GuardProgram::freshState() const {
  State state;
  state.registers.resize(sources_.size(), nullptr);
  for (size_t i = 0; i < sources_.size(); i++)
    if (sources_[i].kind == SourceKind::Pinned) state.registers[i] = sources_[i].object;
  state.dictVersions.resize(dictGroups_.size(), 0);
  state.typeVersions.resize(typeGroups_.size(), 0);
  return state;
}

ObjectRef FrameInputs::handledException() const {
  if (handled) return ObjectRef::share(handled);
  ObjectRef now = ObjectRef::steal(PyErr_GetHandledException());
  return now ? now : ObjectRef::share(Py_None);
}

void GuardProgram::holdRegisters(State& state, uint32_t count, std::vector<ObjectRef>& temporaries) {
  for (; state.held < count; state.held++) temporaries.push_back(ObjectRef::share(state.registers[state.held]));
}

// Making the dict of an object that keeps its values inline allocates, so that the collector may run finalizers.
PyObject* GuardProgram::makeInstanceDict(State& state, const Step& step, std::vector<ObjectRef>& temporaries) {
  holdRegisters(state, step.aux, temporaries);
  return readInstanceDict(state.registers[step.reg]);
}

bool GuardProgram::run(State& state, const FrameInputs& inputs, std::vector<ObjectRef>& temporaries) {
  state.held = 0;
  PyObject** const regs = state.registers.data();
  const Step* const steps = state.differing ? part_->steps.data() : steps_.data();
  for (const Batch& batch : state.differing ? part_->batches : batches_) {
    // What an earlier batch ran may have been the end of something that is named here.
    if (!mortals_.areAlive()) [[unlikely]]
      return false;
    const Step* step = steps + batch.begin;
    const Step* const end = steps + batch.end;
    switch (batch.op) {
      case Op::LoadLocal:
        for (; step != end; step++)
          if ((regs[step->aux] = inputs.locals[step->word.number]) == nullptr) return false;
        break;
      case Op::LoadFunction:
        for (; step != end; step++)
          if ((regs[step->aux] = inputs.function) == nullptr) return false;
        break;
      case Op::LoadClosureCell:
        for (; step != end; step++)
          if (!inputs.function || (regs[step->aux] = readClosureCell(inputs.function, static_cast<int32_t>(step->word.number))) == nullptr)
            return false;
        break;
      case Op::LoadCell:
        for (; step != end; step++)
          if ((regs[step->aux] = readCell(regs[step->reg])) == nullptr) return false;
        break;
      case Op::LoadDictSlot:
        for (; step != end; step++) {
          if (step + kAhead < end) __builtin_prefetch(reinterpret_cast<char*>(regs[step[kAhead].reg]) + step[kAhead].word.number);
          PyObject* dict = dictAtSlot(regs[step->reg], step->word.number);
          if (dict == nullptr) [[unlikely]]
            dict = makeInstanceDict(state, *step, temporaries);
          if (dict == nullptr) return false;
          regs[step->aux] = dict;
        }
        break;
      case Op::LoadInstanceDict:
        for (; step != end; step++) {
          PyObject* dict = peekInstanceDict(regs[step->reg]);
          if (dict == nullptr) [[unlikely]]
            dict = makeInstanceDict(state, *step, temporaries);
          if (dict == nullptr) return false;
          regs[step->aux] = dict;
        }
        break;
      case Op::LoadSequenceItem:
        for (; step != end; step++)
          if ((regs[step->aux] = readSequenceItem(regs[step->reg], static_cast<int32_t>(step->word.number))) == nullptr) return false;
        break;
      case Op::LoadType:
        for (; step != end; step++) regs[step->aux] = reinterpret_cast<PyObject*>(Py_TYPE(regs[step->reg]));
        break;
      case Op::LoadAttr:
        for (; step != end; step++) {
          PyObject* object = regs[step->reg];
          SlotRead slot = readSlot(object, step->word.object);
          if (!slot.isSlot) {
            holdRegisters(state, step->aux, temporaries);
            temporaries.push_back(readAttr(object, step->word.object));
            slot.value = temporaries.back().get();
          }
          if ((regs[step->aux] = slot.value) == nullptr) return false;
        }
        break;
      case Op::LoadDequeItem:
        for (; step != end; step++) {
          temporaries.push_back(readDequeItem(regs[step->reg], static_cast<int32_t>(step->word.number)));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadWeakReferent:
        for (; step != end; step++) {
          temporaries.push_back(readWeakReferent(regs[step->reg]));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadHandled:
        for (; step != end; step++) {
          temporaries.push_back(inputs.handledException());
          regs[step->aux] = temporaries.back().get();
        }
        break;
      case Op::LoadKeyedItem:
        for (; step != end; step++)
          if ((regs[step->aux] = readKeyedItem(regs[step->reg], regs[step->word.number])) == nullptr) return false;
        break;
      case Op::LoadArithmetic:
        // Numbers are no concern of the collector: nothing runs here.
        for (; step != end; step++) {
          temporaries.push_back(compute(step->word.right.op, regs[step->reg], regs[step->word.right.reg]));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadNumberTensor:
        holdRegisters(state, step->aux, temporaries);
        for (; step != end; step++) {
          temporaries.push_back(ObjectRef::steal(makeNumberTensor(regs[step->reg])));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadIteratorItem:
        for (; step != end; step++) {
          if (peekMayCollect(regs[step->reg])) holdRegisters(state, step->aux, temporaries);
          temporaries.push_back(readIteratorItem(regs[step->reg], static_cast<int32_t>(step->word.number)));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadIteratorPart:
        for (; step != end; step++) {
          temporaries.push_back(readIteratorPart(regs[step->reg], static_cast<int32_t>(step->word.number)));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadArrayTensor:
        holdRegisters(state, step->aux, temporaries);
        for (; step != end; step++) {
          temporaries.push_back(ObjectRef::steal(makeArrayTensor(regs[step->reg])));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadTupleWith:
        holdRegisters(state, step->aux, temporaries);  // an allocation may start the collector
        for (; step != end; step++) {
          temporaries.push_back(makeTupleWith(regs[step->reg], regs[step->word.number]));
          if ((regs[step->aux] = temporaries.back().get()) == nullptr) return false;
        }
        break;
      case Op::LoadLruCache:
        for (; step != end; step++)
          if ((regs[step->aux] = lruCacheDict(regs[step->reg])) == nullptr) return false;
        break;
      case Op::LoadLruResult:
        for (; step != end; step++)
          if ((regs[step->aux] = lruResult(regs[step->reg])) == nullptr) return false;
        break;
      case Op::TypeIs:
        for (; step != end; step++) {
          if (step + kAhead < end) __builtin_prefetch(regs[step[kAhead].reg]);
          if (reinterpret_cast<PyObject*>(Py_TYPE(regs[step->reg])) != step->word.object) return false;
        }
        break;
      case Op::IsObject:
        for (; step != end; step++)
          if (regs[step->reg] != step->word.object) return false;
        break;
      case Op::IsReferent:
        for (; step != end; step++)
          if (regs[step->reg] == Py_None || regs[step->reg] != PyWeakref_GET_OBJECT(step->word.object)) return false;
        break;
      case Op::EqualsConstant:
        for (; step != end; step++)
          if (regs[step->reg] != step->word.object && !equalsConstant(regs[step->reg], step->word.object)) return false;
        break;
      case Op::Length:
        for (; step != end; step++)
          if (rawLength(regs[step->reg]) != step->word.number) return false;
        break;
      case Op::DictLength:
        for (; step != end; step++)
          if (PyDict_GET_SIZE(regs[step->reg]) != step->word.number) return false;
        break;
      case Op::FunctionIs:
        for (; step != end; step++)
          if (!isFunctionWith(regs[step->reg], facts_[step->aux])) return false;
        break;
      case Op::SameObject:
        for (; step != end; step++)
          if (regs[step->reg] != regs[step->word.number]) return false;
        break;
      case Op::DistinctObjects:
        for (; step != end; step++)
          if (regs[step->reg] == regs[step->word.number]) return false;
        break;
      case Op::IsDict:
        for (; step != end; step++)
          if (!PyDict_Check(regs[step->reg])) return false;
        break;
      case Op::OtherFact:
        for (; step != end; step++)
          if (!mortals_.areAlive() || !holds(facts_[step->aux], state, temporaries, static_cast<uint32_t>(step->word.number))) return false;
        break;
      case Op::DictVersions: {
        const uint32_t* const dicts = dictRegisters_.data();
        const uint64_t* const versions = state.dictVersions.data();
        for (uint32_t i = batch.begin; i != batch.end; i++) {
          if (i + kAhead < batch.end) __builtin_prefetch(regs[dicts[i + kAhead]]);
          if (dictVersionInline(regs[dicts[i]]) != versions[i]) [[unlikely]]
            if (!refreshDict(state, i, temporaries)) return false;
        }
        break;
      }
      case Op::EmptyDicts: {
        const uint32_t* const dicts = emptyDicts_.data();
        for (uint32_t i = batch.begin; i != batch.end; i++) {
          if (i + kAhead < batch.end) __builtin_prefetch(regs[dicts[i + kAhead]]);
          if (PyDict_GET_SIZE(regs[dicts[i]]) != 0) return false;
        }
        break;
      }
      case Op::Tensors:
        if (!runTensors(state, batch)) return false;
        break;
      case Op::TypeVersions:
        for (uint32_t i = batch.begin; i != batch.end; i++) {
          unsigned version = typeVersionInline(typeGroups_[i].type);
          if (version == 0 || version != state.typeVersions[i]) [[unlikely]]
            if (!refreshType(state, i)) return false;
        }
        break;
      case Op::Memory:
        if (!memory_.holds(regs)) return false;
        break;
      case Op::Distinct:
        if (!distinct_.holds(regs)) return false;
        break;
      case Op::GlobalStateIs:
        if (!globalStateMatches(globals_)) return false;
        break;
    }
  }
  return true;
}

bool GuardProgram::refreshDict(State& state, uint32_t index, std::vector<ObjectRef>& temporaries) {
  const DictGroup& group = dictGroups_[index];
  PyObject** regs = state.registers.data();
  PyObject* dict = regs[group.reg];
  uint64_t version = dictVersionInline(dict);
  state.dictVersions[index] = 0;
  bool held = false;
  uint32_t valid = group.firstRegister;
  for (const DictChild& child : group.children) {
    if (!mortals_.areAlive()) return false;
    ObjectRef key = ObjectRef::share(child.key);
    if (!held && lookupMayRunPython(dict, child.key)) {
      holdRegisters(state, valid, temporaries);
      held = true;
    }
    PyObject* value = readDictItem(dict, child.key);
    if (value == nullptr) return false;
    if (held) temporaries.push_back(ObjectRef::share(value));
    regs[child.reg] = value;
  }
  for (uint32_t reg : group.mustBeDicts)
    if (!PyDict_Check(regs[reg])) return false;
  valid += static_cast<uint32_t>(group.children.size());
  for (uint32_t fact : group.facts) {
    if (state.differing && !part_->facts[fact]) continue;
    if (!mortals_.areAlive() || !holds(facts_[fact], state, temporaries, valid)) return false;
  }
  state.dictVersions[index] = version;
  return true;
}

int64_t mroNumber(const PyTypeObject* type) {
  uint64_t number = 0;
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); i++)
    number = (number ^ reinterpret_cast<uintptr_t>(PyTuple_GET_ITEM(type->tp_mro, i))) * 0x9E3779B97F4A7C15ull;
  return static_cast<int64_t>(number);
}

bool GuardProgram::refreshType(State& state, uint32_t index) {
  const TypeGroup& group = typeGroups_[index];
  state.typeVersions[index] = 0;
  unsigned version = typeVersion(group.type);
  for (uint32_t number : group.facts) {
    const GuardFact& fact = facts_[number];
    if (fact.kind == FactKind::Mro) {
      if (mroNumber(group.type) != fact.number) return false;
      continue;
    }
    if (fact.number != 0 && fact.number != version) return false;
    PyObject* found = typeLookup(group.type, fact.name.get());
    if (found != fact.expected.get() || (found == nullptr && !fact.expected.empty())) return false;
  }
  state.typeVersions[index] = version;
  return true;
}

bool GuardProgram::holds(const GuardFact& fact, State& state, std::vector<ObjectRef>& temporaries, uint32_t validBelow) {
  PyObject* const* regs = state.registers.data();
  PyObject* value = fact.reg >= 0 ? regs[fact.reg] : nullptr;
  switch (fact.kind) {
    case FactKind::TypeIs: return reinterpret_cast<PyObject*>(Py_TYPE(value)) == fact.object.get();
    case FactKind::IdentityIs: return value == fact.object.get();
    case FactKind::IdentityIsNot: return value != fact.object.get();
    case FactKind::EqualsConstant: return equalsConstant(value, fact.object.get());
    case FactKind::Present: return true;
    case FactKind::Length: return rawLength(value) == fact.number;
    case FactKind::LengthAtMost: return rawLength(value) >= 0 && rawLength(value) <= fact.number;
    case FactKind::DictLacks: {
      if (!PyDict_Check(value)) return false;
      ObjectRef key = ObjectRef::share(fact.object.get());
      if (lookupMayRunPython(value, fact.object.get())) holdRegisters(state, validBelow, temporaries);
      if (int found = PyDict_Contains(value, fact.object.get()); found != 0) {
        if (found < 0) PyErr_Clear();
        return false;
      }
      return true;
    }
    case FactKind::LacksKey: return PyDict_Check(value) && !readKeyedItem(value, regs[fact.other]);
    case FactKind::Distinct: return false;  // in the guard for all of them
    case FactKind::DictKeys:
      if (PyODict_Check(value)) holdRegisters(state, validBelow, temporaries);  // its iterator is allocated
      return dictKeysAre(value, fact.object.get());
    case FactKind::SetEquals:
      if (compareMayRunPython(fact.object.get())) holdRegisters(state, validBelow, temporaries);
      return setItemsAre(value, fact.expected.get());
    case FactKind::SetOrder:
      if (compareMayRunPython(fact.object.get())) holdRegisters(state, validBelow, temporaries);
      return setOrderIs(value, fact.object.get());
    case FactKind::TypeLookup:
    case FactKind::Mro: return false;  // in a type group
    case FactKind::Written:
    case FactKind::Overlap: return false;  // in the memory guard
    case FactKind::FunctionIs: return isFunctionWith(value, fact);
    case FactKind::Tensor: return checkTensor(value, tensors_[guardOfMeta_[static_cast<size_t>(fact.number)]]);
    case FactKind::SameObject: return value == regs[fact.other];
    case FactKind::DistinctObjects: return value != regs[fact.other];
    case FactKind::LacksAttr:
      if (!readSlot(value, fact.object.get()).isSlot) holdRegisters(state, validBelow, temporaries);  // an exception is made
      return lacksAttr(value, fact.object.get());
    case FactKind::AbcToken: return abcTokenIs(fact.number);
    case FactKind::DynamicBranch: return constantTruth(value) == fact.number;
    case FactKind::IntRange: return intIsWithin(value, fact.number, fact.upper);
    case FactKind::IteratorTraits: return iteratorTraits(value) == fact.number;
    case FactKind::IteratorEnds:
      if (peekMayCollect(value)) holdRegisters(state, validBelow, temporaries);
      return iteratorEnds(value, fact.number, fact.upper != 0);
  }
  return false;
}

bool GuardProgram::runTensors(State& state, const Batch& batch) {
  PyObject* const* regs = state.registers.data();
  uint32_t i = batch.begin;
  while ((i += checkTensors(regs, tensors_.data(), tensorChecks_.data() + i, batch.end - i)) != batch.end) {
    TensorGuard& guard = tensors_[tensorChecks_[i].guard];
    if (guard.keySet != 0 || !learnTensor(guard, facts_[tensorFacts_[i]], regs[tensorChecks_[i].value])) return false;
  }
  return true;
}

// A fact about a tensor is plain metadata; the dispatch keys of a tensor that has this metadata are taken over when
// the first one passes.
bool GuardProgram::learnTensor(TensorGuard& guard, const GuardFact& fact, PyObject* value) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != fact.object.get()) return false;
  const TensorMeta& expected = tensorMetas_[static_cast<size_t>(fact.number)];
  TensorMeta actual;
  if (!readTensorMeta(value, actual)) return false;
  if (actual.dtype != expected.dtype || !(actual.device == expected.device) || actual.layout != expected.layout ||
      actual.requiresGrad != expected.requiresGrad || actual.isInference != expected.isInference || actual.isConj != expected.isConj ||
      actual.isNeg != expected.isNeg || !sizesMatch(expected.sizes, actual.sizes) || !sizesMatch(expected.strides, actual.strides))
    return false;
  TensorGuard learned;
  if (!makeTensorGuard(value, learned)) return false;
  learned.type = reinterpret_cast<PyTypeObject*>(fact.object.get());
  learned.sizes = expected.sizes;
  learned.strides = expected.strides;
  guard = learned;
  return true;
}

bool GuardProgram::abcTokenIs(int64_t token) const {
  ObjectRef now = ObjectRef::steal(PyObject_CallNoArgs(abcTokenFunction_.get()));
  long long number = now ? PyLong_AsLongLong(now.get()) : -1;
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return number == token;
}

bool GuardProgram::canEverHold() const {
  if (!mortals_.areAlive()) return false;
  for (const GuardFact& fact : facts_) {
    bool identity = fact.kind != FactKind::IdentityIsNot && fact.object.isWeak() && fact.object.get() == nullptr;
    bool lookup = fact.expected.isWeak() && fact.expected.get() == nullptr;
    if (identity || lookup) return false;
  }
  return true;
}

bool GuardProgram::isForSameObjects(const FrameInputs& inputs) const {
  for (const GuardFact& fact : facts_) {
    if (fact.kind != FactKind::IdentityIs || !fact.object.isWeak()) continue;
    const Source& source = sources_[static_cast<size_t>(fact.reg)];
    if (source.kind != SourceKind::Local || source.index >= inputs.localCount) continue;
    PyObject* object = fact.object.get();
    if (object && (PyType_Check(object) || PyFunction_Check(object))) continue;
    if (inputs.locals[source.index] != object) return false;
  }
  return true;
}

}  // namespace cdynamo
