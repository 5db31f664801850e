// From facts to the program: which registers there are, which facts a version covers, and in what order the rest is checked.
#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "cpython/compat.h"
#include "cpython/dict_access.h"
#include "guards/constants.h"
#include "guards/program.h"

namespace cdynamo {

class ProgramBuilder {
 public:
  ProgramBuilder(const FactList& facts, const SourceTable& table, const std::vector<const Source*>& wanted,
                 const std::unordered_set<PyObject*>& owned)
      : facts_(facts), wanted_(wanted), owned_(owned), program_(new GuardProgram()), registerOf_(table.size(), -1), needed_(table.size(), nullptr) {
    program_->localNames_ = table.localNames();
    program_->rootGlobals_ = table.rootGlobals();
  }

  std::unique_ptr<GuardProgram> build(const GlobalState& globals, bool guardGlobals) {
    program_->globals_ = globals;
    guardGlobals_ = guardGlobals;
    collectSources();
    noteKnownTypes();
    noteExistingKeys();
    placeRegisters();
    convertFacts();
    makeDictGroups();
    sortIntoLevels();
    makeMemoryGuard();
    emit();
    program_->state_ = program_->freshState();
    return std::move(program_);
  }

 private:
  using Op = GuardProgram::Op;
  using Step = GuardProgram::Step;
  static constexpr size_t kOps = static_cast<size_t>(Op::GlobalStateIs) + 1;
  using LevelSteps = std::array<std::vector<Step>, kOps>;

  // The object of a source that cannot be another one in any call: pinned, or an item of a pinned tuple. Null for all others.
  static PyObject* fixedObject(const Source* source) {
    if (source->kind == SourceKind::Pinned) return source->object;
    PyObject* tuple = source->kind == SourceKind::SequenceItem ? fixedObject(source->base) : nullptr;
    return tuple && PyTuple_CheckExact(tuple) && source->index < PyTuple_GET_SIZE(tuple) ? PyTuple_GET_ITEM(tuple, source->index) : nullptr;
  }

  // Whether only the capture may have such an object.
  static bool isOwned(const Source* source) {
    while (source->base) source = source->base;
    return source->owned();
  }

  // What it says of an object that never changes stands for ever: nothing is to be checked, and a tuple need not be kept.
  static bool isForEver(const Fact& fact) {
    if (fact.kind != FactKind::TypeIs && fact.kind != FactKind::Length && fact.kind != FactKind::EqualsConstant) return false;
    PyObject* object = fixedObject(fact.source);
    return object && (PyTuple_CheckExact(object) || PyLong_CheckExact(object) || PyUnicode_CheckExact(object) || PyFloat_CheckExact(object));
  }

  void need(const Source* source) {
    for (; source && needed_[source->id] == nullptr; source = source->base) {
      needed_[source->id] = source;
      if (fixedObject(source)) return;
      need(source->other);
    }
  }

  static bool makesTensor(const Source* source) { return source->kind == SourceKind::NumberTensor || source->kind == SourceKind::ArrayTensor; }

  void collectSources() {
    for (const Fact& fact : facts_.facts()) {
      if (fact.kind == FactKind::Present || isForEver(fact)) continue;
      need(fact.source);
      need(fact.otherSource);
    }
    for (const Source* source : wanted_) need(source);
    for (const Fact& fact : facts_.facts()) {
      if (fact.kind != FactKind::Present || needed_[fact.source->id]) continue;  // what is read anyway is present
      need(fact.source);
      onlyPresent_.insert(fact.source);
    }
    // A base is always made before the sources that use it, so ascending ids see bases first.
    std::vector<int32_t> levelOf(needed_.size(), 0);
    for (const Source* source : needed_) {
      if (source == nullptr) continue;
      if (makesTensor(source)) continue;
      int32_t level = source->base && !fixedObject(source) ? levelOf[source->base->id] + 1 : 0;
      if (source->other) level = std::max(level, levelOf[source->other->id] + 1);
      levelOf[source->id] = level;
      if (level >= static_cast<int32_t>(levels_.size())) levels_.resize(level + 1);
      levels_[level].push_back(source);
    }
    // Tensors are made when all else holds.
    std::vector<const Source*> last;
    for (const Source* source : needed_)
      if (source && makesTensor(source)) last.push_back(source);
    if (!last.empty()) levels_.push_back(std::move(last));
  }

  // What the facts say of the types of sources: a run knows it once it has passed the register's level.
  void noteKnownTypes() {
    typeOfSource_.assign(needed_.size(), nullptr);
    isTensorSource_.assign(needed_.size(), false);
    for (const Fact& fact : facts_.facts()) {
      if ((fact.kind != FactKind::TypeIs && fact.kind != FactKind::Tensor) || isForEver(fact)) continue;
      typeOfSource_[fact.source->id] = reinterpret_cast<PyTypeObject*>(fact.object.get());
      if (fact.kind == FactKind::Tensor) isTensorSource_[fact.source->id] = true;
    }
  }

  // Objects that some dict or type of the program has: what dies is named as it is, and no equal that only the capture has.
  void noteExistingKeys() {
    for (const Source* source : needed_)
      if (PyObject* object = source ? fixedObject(source) : nullptr; object && !isOwned(source)) existing_.insert(object);
    for (const Fact& fact : facts_.facts())
      if (fact.kind == FactKind::DictKeys || fact.kind == FactKind::SetOrder)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fact.object.get()); i++) existing_.insert(PyTuple_GET_ITEM(fact.object.get(), i));
  }

  // Hashes by identity, or is a key that exists.
  bool isOneOfAKind(PyObject* key) const { return Py_TYPE(key)->tp_hash == PyBaseObject_Type.tp_hash || existing_.count(key); }

  // Where the object can die it is watched; the program is of no use once it is dead.
  bool watches(PyObject* object) {
    if (!object || owned_.count(object)) return false;
    auto [found, isNew] = canDie_.try_emplace(object, false);
    if (isNew && (found->second = Mortals::canDie(object))) program_->mortals_.watch(object);
    return found->second;
  }

  void holdNamed(const Source& source) {
    bool existing = source.kind == SourceKind::Pinned ? !source.owned() : isOneOfAKind(source.object);
    if (!existing || !watches(source.object)) program_->keys_.push_back(ObjectRef::share(source.object));
  }

  // A dict of a frozenset's items, each its own value: see setItemsAre.
  ObjectRef itemsDictOf(PyObject* frozen) {
    ObjectRef dict = checked(PyDict_New());
    PyObject* item = nullptr;
    Py_hash_t hash = 0;
    for (Py_ssize_t at = 0; _PySet_NextEntry(frozen, &at, &item, &hash);) {
      ObjectRef named = program_->mortals_.named(item);
      checkedStatus(dictStore(dict.get(), named.get(), named.get(), hash));
    }
    return dict;
  }

  Held heldObject(const Fact& fact) {
    PyObject* object = fact.object.get();
    switch (fact.kind) {
      case FactKind::IdentityIs:
      case FactKind::IdentityIsNot:
        if (object && (PyType_Check(object) || PyFunction_Check(object)) && watches(object)) return Held::watched(object);
        return Held::identity(object);
      case FactKind::TypeIs:
      case FactKind::Tensor:
      case FactKind::TypeLookup:
      case FactKind::Mro: return watches(object) ? Held::watched(object) : Held::strong(object);
      case FactKind::DictLacks: return isOneOfAKind(object) && watches(object) ? Held::watched(object) : Held::strong(object);
      case FactKind::DictKeys:
      case FactKind::SetOrder: return Held::strong(program_->mortals_.named(object).get());
      case FactKind::SetEquals: {
        ObjectRef items = checked(PySequence_Tuple(object)), named = program_->mortals_.named(items.get());
        return Held::strong(named.get() == items.get() ? object : named.get());
      }
      case FactKind::FunctionIs: return Held::identity(object);
      default: return Held::strong(object);
    }
  }

  // An object that holds nothing of the class in which it was found: a descriptor of a builtin type, a class or static method without a closure.
  static bool standsAlone(PyObject* object) {
    PyTypeObject* kind = Py_TYPE(object);
    if (kind == &PyWrapperDescr_Type || kind == &PyMethodDescr_Type || kind == &PyGetSetDescr_Type || kind == &PyMemberDescr_Type)
      return !PyType_HasFeature(reinterpret_cast<PyDescrObject*>(object)->d_type, Py_TPFLAGS_HEAPTYPE);
    if (kind != &PyClassMethod_Type && kind != &PyStaticMethod_Type) return false;
    ObjectRef function = ObjectRef::steal(PyObject_GetAttrString(object, "__func__"));
    if (!function) return PyErr_Clear(), false;
    if (!PyFunction_Check(function.get())) return false;
    auto* fn = reinterpret_cast<PyFunctionObject*>(function.get());
    auto isEmpty = [](PyObject* dict) { return !dict || (PyDict_Check(dict) && PyDict_GET_SIZE(dict) == 0); };
    return !fn->func_closure && !fn->func_defaults && !fn->func_kwdefaults && isEmpty(fn->func_annotations) && isEmpty(fn->func_dict);
  }

  // What a class that can die has must not keep it alive. Where no weak reference can be made to it (a property, a static method), the fact
  // is about the class as it is now.
  void holdLookup(const Fact& fact, GuardFact& made) {
    PyObject* expected = fact.expected.get();
    auto* type = reinterpret_cast<PyTypeObject*>(fact.object.get());
    bool alone = expected && standsAlone(expected);
    bool leadsOn = expected && !alone && !PyType_SUPPORTS_WEAKREFS(Py_TYPE(expected)) && PyType_IS_GC(Py_TYPE(expected));
    if (leadsOn && program_->mortals_.isWatched(fact.object.get()) && typeLookup(type, fact.name.get()) == expected) made.number = typeVersion(type);
    made.expected = alone ? Held::strong(expected) : made.number || watches(expected) ? Held::watched(expected) : Held::identity(expected);
  }

  // The classes are not kept alive: where one dies, nothing can be said any more.
  void holdMro(const Fact& fact, GuardFact& made) {
    PyObject* classes = fact.expected.get();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); i++) watches(PyTuple_GET_ITEM(classes, i));
    made.number = mroNumber(reinterpret_cast<PyTypeObject*>(fact.object.get()));
  }

  // baseType: null where it is not known.
  static Op loadOf(SourceKind kind, PyTypeObject* baseType) {
    switch (kind) {
      case SourceKind::Local: return Op::LoadLocal;
      case SourceKind::Function: return Op::LoadFunction;
      case SourceKind::ClosureCell: return Op::LoadClosureCell;
      case SourceKind::CellContents: return Op::LoadCell;
      case SourceKind::InstanceDict: return baseType && dictSlotOffset(baseType) ? Op::LoadDictSlot : Op::LoadInstanceDict;
      case SourceKind::KeyedItem: return Op::LoadKeyedItem;
      case SourceKind::SequenceItem: return Op::LoadSequenceItem;
      case SourceKind::Attr: return Op::LoadAttr;
      case SourceKind::Type: return Op::LoadType;
      case SourceKind::DequeItem: return Op::LoadDequeItem;
      case SourceKind::WeakReferent: return Op::LoadWeakReferent;
      case SourceKind::Arithmetic: return Op::LoadArithmetic;
      case SourceKind::Handled: return Op::LoadHandled;
      case SourceKind::NumberTensor: return Op::LoadNumberTensor;
      case SourceKind::IteratorItem: return Op::LoadIteratorItem;
      case SourceKind::IteratorPart: return Op::LoadIteratorPart;
      case SourceKind::ArrayTensor: return Op::LoadArrayTensor;
      case SourceKind::TupleWith: return Op::LoadTupleWith;
      case SourceKind::LruCache: return Op::LoadLruCache;
      case SourceKind::LruResult: return Op::LoadLruResult;
      case SourceKind::Pinned:
      case SourceKind::DictItem: break;
    }
    return Op::LoadLocal;  // not loaded: valid from the start, or with its dict
  }

  // Registers are numbered in the order in which a run makes them valid: by level, items of dicts before live loads, those in the
  // order of the operations. So all registers below one that is being loaded are valid.
  void placeRegisters() {
    auto& sources = program_->sources_;
    for (size_t level = 0; level < levels_.size(); level++) {
      std::vector<const Source*>& here = levels_[level];
      std::stable_sort(here.begin(), here.end(), [&](const Source* a, const Source* b) { return orderKey(a) < orderKey(b); });
      for (const Source* source : here) {
        registerOf_[source->id] = static_cast<int32_t>(sources.size());
        knownType_.push_back(typeOfSource_[source->id]);
        knownTensor_.push_back(isTensorSource_[source->id]);
        Source copy = *source;
        if (PyObject* object = fixedObject(source)) {
          copy.object = object;
          copy.base = nullptr;
          copy.kind = SourceKind::Pinned;
          copy.index = isOwned(source);
        }
        copy.id = static_cast<int32_t>(level);  // in the program's copies: the level
        sources.push_back(copy);
        if (copy.object) holdNamed(copy);
        if (source->kind == SourceKind::Local) program_->localsNeeded_ = std::max<Py_ssize_t>(program_->localsNeeded_, source->index + 1);
      }
      levelEnd_.push_back(static_cast<uint32_t>(sources.size()));
    }
    for (Source& source : sources) {
      if (source.base) source.base = &sources[registerOf_[source.base->id]];
      if (source.other) source.other = &sources[registerOf_[source.other->id]];
    }
    for (const Source* source : wanted_) program_->wanted_.push_back(static_cast<uint32_t>(registerOf_[source->id]));
  }

  std::tuple<int, int, int32_t> orderKey(const Source* source) const {
    int32_t base = source->base ? registerOf_[source->base->id] : -1;
    if (fixedObject(source)) return {0, 1, -1};
    if (source->kind == SourceKind::DictItem) return {0, 0, base};
    return {1, static_cast<int>(loadOf(source->kind, source->base ? typeOfSource_[source->base->id] : nullptr)), base};
  }

  // A range of an int that a later fact narrows.
  bool isSuperseded(size_t index) const {
    const auto& facts = facts_.facts();
    if (facts[index].kind != FactKind::IntRange) return false;
    for (size_t i = index + 1; i < facts.size(); i++)
      if (facts[i].kind == FactKind::IntRange && facts[i].source == facts[index].source) return true;
    return false;
  }

  int32_t placeOf(const TracePlace* place) {
    if (place == nullptr) return -1;
    auto [found, isNew] = placeNumbers_.try_emplace(place, static_cast<int32_t>(program_->places_.size()));
    if (isNew) {
      auto* code = reinterpret_cast<PyCodeObject*>(place->code);
      program_->places_.push_back({ObjectRef::share(code->co_filename), ObjectRef::share(code->co_name), place->line});
    }
    return found->second;
  }

  void convertFacts() {
    for (size_t i = 0; i < facts_.facts().size(); i++) {
      const Fact& fact = facts_.facts()[i];
      if ((fact.kind == FactKind::Present && !onlyPresent_.count(fact.source)) || isForEver(fact)) continue;
      if (isSuperseded(i)) continue;
      GuardFact made{
          .kind = fact.kind, .object = {}, .name = {}, .expected = {}, .number = fact.number, .upper = fact.upper, .place = placeOf(fact.place)};
      if (fact.source) made.reg = registerOf_[fact.source->id];
      if (fact.otherSource) made.other = registerOf_[fact.otherSource->id];
      made.object = heldObject(fact);
      made.name = Held::strong(fact.name.get());
      if (fact.kind == FactKind::TypeLookup)
        holdLookup(fact, made);
      else if (fact.kind == FactKind::Mro)
        holdMro(fact, made);
      else
        made.expected = Held::strong(fact.expected.get());
      if (fact.kind == FactKind::SetEquals) {
        made.expected = Held::strong(itemsDictOf(fact.object.get()).get());
      }
      if (fact.kind == FactKind::AbcToken && !program_->abcTokenFunction_) {
        ObjectRef module = checked(PyImport_ImportModule("_abc"));
        program_->abcTokenFunction_ = checked(PyObject_GetAttrString(module.get(), "get_cache_token"));
      }
      // As it is now: what the engine imported while it captured may have registered classes of its own.
      if (fact.kind == FactKind::AbcToken) {
        made.number = PyLong_AsLongLong(checked(PyObject_CallNoArgs(program_->abcTokenFunction_.get())).get());
        if (made.number == -1 && PyErr_Occurred()) throw PythonError{};
      }
      program_->facts_.push_back(std::move(made));
    }
    program_->tensorMetas_ = facts_.tensors();
    program_->guardOfMeta_.resize(program_->tensorMetas_.size(), 0);
  }

  // Metadata that the guards do not look at (leaf, offset) may differ among those that share a guard.
  static bool sameGuard(const TensorMeta& a, const TensorMeta& b) {
    return a.dtype == b.dtype && a.device == b.device && a.layout == b.layout && a.requiresGrad == b.requiresGrad && a.isInference == b.isInference &&
           a.isConj == b.isConj && a.isNeg == b.isNeg && a.sizes == b.sizes && a.strides == b.strides;
  }

  uint32_t guardFor(const GuardFact& fact) {
    auto* type = reinterpret_cast<PyTypeObject*>(fact.object.get());
    const TensorMeta& meta = program_->tensorMetas_[static_cast<size_t>(fact.number)];
    uint64_t hash = reinterpret_cast<uint64_t>(type) + static_cast<uint64_t>(meta.dtype) * 31 + meta.requiresGrad;
    for (int64_t size : meta.sizes) hash = (hash ^ static_cast<uint64_t>(size)) * 0x9E3779B97F4A7C15ull;
    auto [begin, end] = guardsByHash_.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (program_->tensors_[it->second.guard].type == type && sameGuard(meta, program_->tensorMetas_[it->second.meta])) return it->second.guard;
    uint32_t guard = static_cast<uint32_t>(program_->tensors_.size());
    program_->tensors_.emplace_back().type = type;
    guardsByHash_.emplace(hash, SharedGuard{guard, static_cast<uint32_t>(fact.number)});
    return guard;
  }

  const Source& source(int32_t reg) const { return program_->sources_[static_cast<size_t>(reg)]; }
  uint32_t number(const Source* s) const { return static_cast<uint32_t>(s - program_->sources_.data()); }
  bool isDictItem(int32_t reg) const { return source(reg).kind == SourceKind::DictItem; }

  bool knownDict(int32_t reg) const {
    const Source& s = source(reg);
    if (s.kind == SourceKind::InstanceDict) return true;
    if (s.kind == SourceKind::Pinned) return PyDict_Check(s.object);
    return knownType_[reg] && PyType_HasFeature(knownType_[reg], Py_TPFLAGS_DICT_SUBCLASS);
  }

  bool keysStandWithVersion(const GuardFact& fact) const {
    if (PyTuple_GET_SIZE(fact.object.get()) <= 1) return true;
    PyTypeObject* type = knownType_[fact.reg];
    return type && !PyType_IsSubtype(type, &PyODict_Type);
  }

  void makeDictGroups() {
    std::vector<bool> isGroup(program_->sources_.size(), false);
    for (const Source& s : program_->sources_)
      if (s.kind == SourceKind::DictItem) isGroup[number(s.base)] = true;
    for (const GuardFact& fact : program_->facts_)
      if (fact.kind == FactKind::DictLacks || (fact.kind == FactKind::DictKeys && keysStandWithVersion(fact))) isGroup[fact.reg] = true;
    groupOf_.assign(program_->sources_.size(), -1);
    for (uint32_t reg = 0; reg < isGroup.size(); reg++) {
      if (!isGroup[reg]) continue;
      groupOf_[reg] = static_cast<int32_t>(program_->dictGroups_.size());
      program_->dictGroups_.push_back({reg, levelEnd_[static_cast<size_t>(source(reg).id)], {}, {}, {}});
      program_->dictRegisters_.push_back(reg);
    }
    for (const Source& s : program_->sources_)
      if (s.kind == SourceKind::DictItem) program_->dictGroups_[groupOf_[number(s.base)]].children.push_back({number(&s), s.object});
    setFirstRegisters();
  }

  // Children are numbered in the order of their groups, after everything of the groups' own level.
  void setFirstRegisters() {
    uint32_t next = 0;
    int32_t level = -1;
    for (GuardProgram::DictGroup& group : program_->dictGroups_) {
      int32_t here = source(group.reg).id;
      if (here != level) next = levelEnd_[here];
      level = here;
      group.firstRegister = next;
      next += static_cast<uint32_t>(group.children.size());
      CD_CHECK(group.children.empty() || group.children.front().reg == group.firstRegister, "registers of dict items are out of order");
    }
  }

  void sortIntoLevels() {
    steps_.resize(levels_.size() ? levels_.size() : 1);
    for (uint32_t reg = 0; reg < program_->sources_.size(); reg++) addLoad(reg);
    for (uint32_t i = 0; i < program_->facts_.size(); i++) addFact(i);
    for (const GuardProgram::DictGroup& group : program_->dictGroups_) {
      int32_t reg = static_cast<int32_t>(group.reg);
      if (knownDict(reg)) continue;
      if (isDictItem(reg))
        ownerGroup(reg).mustBeDicts.push_back(group.reg);
      else
        at(source(reg).id, Op::IsDict).push_back({group.reg, 0, {.number = 0}});
    }
  }

  std::vector<Step>& at(int32_t level, Op op) { return steps_[static_cast<size_t>(level)][static_cast<size_t>(op)]; }
  GuardProgram::DictGroup& ownerGroup(int32_t reg) { return program_->dictGroups_[groupOf_[number(source(reg).base)]]; }

  void addLoad(uint32_t reg) {
    const Source& s = source(static_cast<int32_t>(reg));
    uint32_t base = s.base ? number(s.base) : 0;
    if (s.kind == SourceKind::Pinned || s.kind == SourceKind::DictItem) return;
    PyTypeObject* baseType = s.base ? knownType_[base] : nullptr;
    Op op = loadOf(s.kind, baseType);
    auto& steps = at(s.id, op);
    switch (op) {
      case Op::LoadAttr: return steps.push_back({base, reg, {.object = s.object}});
      case Op::LoadArithmetic: return steps.push_back({base, reg, {.right = {number(s.other), static_cast<Arithmetic>(s.index)}}});
      case Op::LoadTupleWith:
      case Op::LoadKeyedItem: return steps.push_back({base, reg, {.number = number(s.other)}});
      case Op::LoadDictSlot: return steps.push_back({base, reg, {.number = dictSlotOffset(baseType)}});
      default: return steps.push_back({base, reg, {.number = s.index}});
    }
  }

  // An instance of such a type can never be given another __class__.
  static bool typeIsForLife(PyTypeObject* type) {
    return PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) && !PyType_IsSubtype(type, &PyModule_Type);
  }

  // True where the fact stands as long as the register's value is the same object.
  static bool followsFromIdentity(const GuardFact& fact) {
    switch (fact.kind) {
      case FactKind::IdentityIs:
      case FactKind::IdentityIsNot:
      case FactKind::EqualsConstant:
      case FactKind::IntRange:
      case FactKind::DynamicBranch: return true;
      case FactKind::TypeIs: return typeIsForLife(reinterpret_cast<PyTypeObject*>(fact.object.get()));
      default: return false;
    }
  }

  void addFact(uint32_t index) {
    const GuardFact& fact = program_->facts_[index];
    if (fact.kind == FactKind::TypeLookup || fact.kind == FactKind::Mro) return addTypeFact(index);
    if (fact.kind == FactKind::AbcToken) return other(0, index);
    if (fact.kind == FactKind::Present) return;                                    // reading it is the check
    if (fact.kind == FactKind::Written || fact.kind == FactKind::Overlap) return;  // in the memory guard
    if (fact.kind == FactKind::Distinct) return program_->distinct_.add(static_cast<uint32_t>(fact.reg), fact.number != 0);
    if (isDictItem(fact.reg) && followsFromIdentity(fact)) return ownerGroup(fact.reg).facts.push_back(index);
    uint32_t reg = static_cast<uint32_t>(fact.reg);
    int32_t level = source(fact.reg).id;
    int32_t group = groupOf_[reg];
    auto withObject = [&](Op op) { at(level, op).push_back({reg, index, {.object = fact.object.raw()}}); };
    auto withNumber = [&](Op op, int64_t operand) { at(level, op).push_back({reg, index, {.number = operand}}); };
    switch (fact.kind) {
      case FactKind::TypeIs: return withObject(Op::TypeIs);
      case FactKind::IdentityIs: return withObject(fact.object.isWeak() ? Op::IsReferent : Op::IsObject);
      case FactKind::EqualsConstant: return withObject(Op::EqualsConstant);
      case FactKind::Length:
        if (group >= 0) return program_->dictGroups_[group].facts.push_back(index);
        if (!knownDict(fact.reg)) return withNumber(Op::Length, fact.number);
        return withNumber(fact.number ? Op::DictLength : Op::EmptyDicts, fact.number);
      case FactKind::DictKeys:
        if (group >= 0 && keysStandWithVersion(fact)) return program_->dictGroups_[group].facts.push_back(index);
        return other(level, index);
      case FactKind::DictLacks: return program_->dictGroups_[group].facts.push_back(index);
      case FactKind::FunctionIs: return withNumber(Op::FunctionIs, 0);
      case FactKind::Tensor: program_->guardOfMeta_[static_cast<size_t>(fact.number)] = guardFor(fact); return withNumber(Op::Tensors, fact.number);
      case FactKind::SameObject:
      case FactKind::DistinctObjects:
        level = std::max(level, source(fact.other).id);
        return withNumber(fact.kind == FactKind::SameObject ? Op::SameObject : Op::DistinctObjects, fact.other);
      case FactKind::LacksKey: return other(std::max(level, source(fact.other).id), index);
      default: return other(level, index);
    }
  }

  void other(int32_t level, uint32_t index) {
    int64_t valid = levelEnd_.empty() ? 0 : levelEnd_[static_cast<size_t>(level)];
    at(level, Op::OtherFact).push_back({0, index, {.number = valid}});
  }

  void makeMemoryGuard() {
    enum : uint8_t { Unused, Read, Written };
    std::vector<uint8_t> use(program_->sources_.size(), Unused);
    for (uint32_t reg : program_->wanted_)
      if (knownTensor_[reg]) use[reg] = Read;
    for (const GuardFact& fact : program_->facts_) {
      if (fact.kind == FactKind::Written) use[fact.reg] = Written;
      if (fact.kind != FactKind::Overlap) continue;
      use[fact.reg] = std::max<uint8_t>(use[fact.reg], Read);
      use[fact.other] = std::max<uint8_t>(use[fact.other], Read);
      program_->memory_.addOverlap({static_cast<uint32_t>(fact.reg), static_cast<uint32_t>(fact.other), fact.number});
    }
    for (uint32_t reg = 0; reg < use.size(); reg++)
      if (use[reg] != Unused) program_->memory_.add(reg, use[reg] == Written);
  }

  void addTypeFact(uint32_t index) {
    auto* type = reinterpret_cast<PyTypeObject*>(program_->facts_[index].object.get());
    auto [found, isNew] = typeGroupOf_.try_emplace(type, program_->typeGroups_.size());
    if (isNew) program_->typeGroups_.push_back({type, {}});
    program_->typeGroups_[found->second].facts.push_back(index);
  }

  void emit() {
    size_t group = 0;
    const auto& groups = program_->dictGroups_;
    for (size_t level = 0; level < steps_.size(); level++) {
      for (size_t op = 0; op < kOps; op++) emitBatch(static_cast<Op>(op), steps_[level][op]);
      if (level == 0) {
        if (guardGlobals_) program_->batches_.push_back({Op::GlobalStateIs, 0, 0});
        if (!program_->typeGroups_.empty()) program_->batches_.push_back({Op::TypeVersions, 0, static_cast<uint32_t>(program_->typeGroups_.size())});
      }
      size_t first = group;
      while (group < groups.size() && source(static_cast<int32_t>(groups[group].reg)).id == static_cast<int32_t>(level)) group++;
      if (group > first) program_->batches_.push_back({Op::DictVersions, static_cast<uint32_t>(first), static_cast<uint32_t>(group)});
    }
    if (!program_->memory_.empty()) program_->batches_.push_back({Op::Memory, 0, 0});
    if (!program_->distinct_.empty()) program_->batches_.push_back({Op::Distinct, 0, 0});
  }

  void emitBatch(Op op, const std::vector<Step>& steps) {
    if (steps.empty()) return;
    if (op == Op::EmptyDicts) return emitEmptyDicts(steps);
    if (op == Op::Tensors) return emitTensors(steps);
    auto& all = program_->steps_;
    uint32_t begin = static_cast<uint32_t>(all.size());
    all.insert(all.end(), steps.begin(), steps.end());
    for (const Step& step : steps) {
      if (op > Op::LoadArrayTensor) break;
      CD_CHECK(static_cast<int64_t>(step.aux) > lastLoaded_, "registers are not loaded in their order");
      lastLoaded_ = step.aux;
    }
    program_->batches_.push_back({op, begin, static_cast<uint32_t>(all.size())});
  }

  void emitEmptyDicts(const std::vector<Step>& steps) {
    auto& all = program_->emptyDicts_;
    uint32_t begin = static_cast<uint32_t>(all.size());
    for (const Step& step : steps) all.push_back(step.reg);
    program_->batches_.push_back({Op::EmptyDicts, begin, static_cast<uint32_t>(all.size())});
  }

  void emitTensors(const std::vector<Step>& steps) {
    auto& all = program_->tensorChecks_;
    uint32_t begin = static_cast<uint32_t>(all.size());
    auto guardOf = [&](const Step& step) { return program_->guardOfMeta_[static_cast<size_t>(step.word.number)]; };
    // Equal tensors next to each other: the same guard and the same branches again and again.
    std::vector<Step> sorted = steps;
    std::stable_sort(sorted.begin(), sorted.end(), [&](const Step& a, const Step& b) { return guardOf(a) < guardOf(b); });
    for (const Step& step : sorted) {
      all.push_back({step.reg, guardOf(step)});
      program_->tensorFacts_.push_back(step.aux);
    }
    program_->batches_.push_back({Op::Tensors, begin, static_cast<uint32_t>(all.size())});
  }

  struct SharedGuard {
    uint32_t guard;
    uint32_t meta;
  };

  const FactList& facts_;
  const std::vector<const Source*>& wanted_;
  const std::unordered_set<PyObject*>& owned_;
  std::unordered_set<const Source*> onlyPresent_;
  std::unique_ptr<GuardProgram> program_;
  std::vector<int32_t> registerOf_;    // by the table's source id
  std::vector<const Source*> needed_;  // by id; null: not needed
  std::vector<std::vector<const Source*>> levels_;
  std::vector<PyTypeObject*> typeOfSource_;  // by the table's source id
  std::vector<bool> isTensorSource_;         // by the table's source id
  std::unordered_set<PyObject*> existing_;
  std::unordered_map<PyObject*, bool> canDie_;  // what Mortals said of objects that facts and sources name, most of them many times
  int64_t lastLoaded_ = -1;
  std::vector<uint32_t> levelEnd_;        // number of registers up to and with the level
  std::vector<PyTypeObject*> knownType_;  // by register
  std::vector<bool> knownTensor_;         // by register
  std::vector<int32_t> groupOf_;          // by register
  std::unordered_map<PyTypeObject*, size_t> typeGroupOf_;
  std::unordered_map<const TracePlace*, int32_t> placeNumbers_;
  std::unordered_multimap<uint64_t, SharedGuard> guardsByHash_;
  std::vector<LevelSteps> steps_;
  bool guardGlobals_ = true;
};

std::unique_ptr<GuardProgram> GuardProgram::build(const FactList& facts, const SourceTable& table, std::vector<const Source*> wanted,
                                                  const GlobalState& globals, bool guardGlobals, const std::unordered_set<PyObject*>& owned) {
  return ProgramBuilder(facts, table, wanted, owned).build(globals, guardGlobals);
}

}  // namespace cdynamo
