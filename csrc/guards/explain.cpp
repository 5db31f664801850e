// Facts in words. A second, plain reading of the facts: it shares no state with the fast path.
#include "base/error.h"
#include "base/lookup.h"
#include "cpython/compat.h"
#include "cpython/dict_access.h"
#include "cpython/iterators.h"
#include "cpython/lru_cache.h"
#include "guards/constants.h"
#include "guards/program.h"
#include "source/evaluate.h"
#include "source/open_ids.h"
#include "source/quiet_text.h"

namespace cdynamo {

namespace {

std::string reprOf(PyObject* object, size_t limit = 200) {
  if (!object) return "<gone>";
  std::string whole = quietRepr(object);
  return whole.size() > limit ? whole.substr(0, limit) + "..." : whole;
}

std::string idOf(PyObject* object) { return std::to_string(reinterpret_cast<uintptr_t>(object)); }

std::string listOf(PyObject* tuple) {
  ObjectRef list = ObjectRef::steal(PySequence_List(tuple));
  if (!list) PyErr_Clear();
  return reprOf(list.get());
}

}  // namespace

const char* factLabel(FactKind kind) {
  switch (kind) {
    case FactKind::TypeIs: return "TYPE_MATCH";
    case FactKind::IdentityIs: return "ID_MATCH";
    case FactKind::IdentityIsNot: return "NOT_ID_MATCH";
    case FactKind::EqualsConstant: return "EQUALS_MATCH";
    case FactKind::Length:
    case FactKind::LengthAtMost: return "LENGTH_CHECK";
    case FactKind::DictLacks: return "DICT_NOT_CONTAINS";
    case FactKind::LacksKey: return "DICT_NOT_CONTAINS";
    case FactKind::Distinct: return "NO_OBJECT_ALIASING";
    case FactKind::Present: return "DICT_CONTAINS";
    case FactKind::DictKeys: return "DICT_KEYS_MATCH";
    case FactKind::SetEquals: return "SET_MATCH";
    case FactKind::SetOrder: return "SET_ORDER";
    case FactKind::TypeLookup: return "TYPE_ATTR_MATCH";
    case FactKind::Mro: return "TYPE_MRO_MATCH";
    case FactKind::FunctionIs: return "CLOSURE_MATCH";
    case FactKind::Tensor: return "TENSOR_MATCH";
    case FactKind::SameObject: return "OBJECT_ALIASING";
    case FactKind::DistinctObjects: return "NO_OBJECT_ALIASING";
    case FactKind::LacksAttr: return "NOT_HASATTR";
    case FactKind::AbcToken: return "ABC_TOKEN_MATCH";
    case FactKind::DynamicBranch: return "BOOL_MATCH";
    case FactKind::Written:
    case FactKind::Overlap: return "STORAGE_OVERLAPPING";
    case FactKind::IntRange: return "INT_RANGE";
    case FactKind::IteratorTraits: return "ITERATOR_MATCH";
    case FactKind::IteratorEnds: return "ITERATOR_LENGTH";
  }
  return "?";
}

class Explainer {
 public:
  static constexpr const char* kGone = "all objects that the capture is about are alive";

  explicit Explainer(const GuardProgram& program) : program_(program) {}

  std::string name(int32_t reg) const {
    return reg < 0 ? "?" : sourceName(&program_.sources_[static_cast<size_t>(reg)], program_.localNames_, program_.rootGlobals_);
  }

  // The fact as a Python-like condition.
  std::string condition(const GuardFact& fact) const {
    std::string subject = fact.reg >= 0 ? name(fact.reg) : "";
    PyObject* object = fact.object.get();
    switch (fact.kind) {
      case FactKind::TypeIs: return "___check_type_id(" + subject + ", " + idOf(object) + "), type=" + reprOf(object);
      case FactKind::IdentityIs:
        if (object == Py_None || (object && PyBool_Check(object))) return subject + " is " + reprOf(object);
        return "___check_obj_id(" + subject + ", " + idOf(object) +
               "), type=" + (object ? reprOf(reinterpret_cast<PyObject*>(Py_TYPE(object))) : "<gone>");
      case FactKind::IdentityIsNot: return subject + " is not " + (object == Py_None ? "None" : reprOf(object));
      case FactKind::EqualsConstant: return subject + " == " + reprOf(object);
      case FactKind::Length: return "len(" + subject + ") == " + std::to_string(fact.number);
      case FactKind::LengthAtMost: return "len(" + subject + ") <= " + std::to_string(fact.number);
      case FactKind::DictLacks: return "not ___dict_contains(" + reprOf(object) + ", " + subject + ")";
      case FactKind::Present: {
        const Source& item = program_.sources_[static_cast<size_t>(fact.reg)];
        std::string base = name(static_cast<int32_t>(item.base - program_.sources_.data()));
        if (item.kind == SourceKind::IteratorItem) return "___items_left(" + base + ") > " + std::to_string(item.index);
        if (item.kind == SourceKind::KeyedItem) return name(static_cast<int32_t>(item.other - program_.sources_.data())) + " in " + base;
        return "___dict_contains(" + reprOf(item.object) + ", " + base + ")";
      }
      case FactKind::LacksKey: return name(fact.other) + " not in " + subject;
      case FactKind::Distinct: return subject + " is no other input that is a key or is written to";
      case FactKind::DictKeys: return "list(dict.keys(" + subject + ")) == " + listOf(object);
      case FactKind::SetEquals: return subject + " == " + reprOf(object);
      case FactKind::SetOrder: return "tuple(" + subject + ") == " + reprOf(object);
      case FactKind::TypeLookup:
        if (fact.expected.empty()) return "not hasattr(" + reprOf(object) + ", " + reprOf(fact.name.get()) + ")";
        if (fact.number) return reprOf(object) + " has the same " + reprOf(fact.name.get()) + ", and was not changed";
        return reprOf(object) + " has the same " + reprOf(fact.name.get()) + ": " + reprOf(fact.expected.get());
      case FactKind::Mro: return reprOf(object) + " has the same __mro__";
      case FactKind::FunctionIs: return "___check_code(" + subject + ", " + reprOf(object) + ")";
      case FactKind::Tensor: return tensorCondition(fact, subject);
      case FactKind::SameObject: return subject + " is " + name(fact.other);
      case FactKind::DistinctObjects: return subject + " is not " + name(fact.other);
      case FactKind::LacksAttr: return "not hasattr(" + subject + ", " + reprOf(object) + ")";
      case FactKind::AbcToken: return "abc.get_cache_token() == " + std::to_string(fact.number);
      case FactKind::DynamicBranch: return fact.number ? "bool(" + subject + ")" : "not " + subject;
      case FactKind::Written: return "the memory of " + subject + ", which is written to, overlaps with no other input's";
      case FactKind::Overlap:
        return "the memory of " + subject + " and " + name(fact.other) + " overlaps, " + std::to_string(fact.number) + " bytes apart";
      case FactKind::IntRange: {
        if (fact.number == fact.upper) return subject + " == " + std::to_string(fact.number);
        std::string lower = fact.number == INT64_MIN ? "" : std::to_string(fact.number) + " <= ";
        std::string upper = fact.upper == INT64_MAX ? "" : " <= " + std::to_string(fact.upper);
        return lower + subject + upper;
      }
      case FactKind::IteratorTraits: return "___traits(" + subject + ") == " + std::to_string(fact.number);
      case FactKind::IteratorEnds: return "___items_left(" + subject + ") == " + std::to_string(fact.number);
    }
    return "?";
  }

  std::string firstMiss(const FrameInputs& inputs) {
    if (!program_.mortals_.areAlive()) return kGone;
    lookAt(inputs);
    for (const GuardFact& fact : program_.facts_) {
      std::string miss = missOf(fact);
      if (!miss.empty()) return withPlace(miss, fact);
    }
    for (uint32_t reg : program_.wanted_)
      if (!value(static_cast<int32_t>(reg))) return absent(static_cast<int32_t>(reg));
    return explainGlobalStateMismatch(program_.globals_);
  }

  // The fact names keys that are found by their identity.
  static bool hasObjectsAsKeys(const GuardFact& fact) {
    for (Py_ssize_t i = 0; fact.kind == FactKind::DictKeys && i < PyTuple_GET_SIZE(fact.object.get()); i++)
      if (PyObject* key = PyTuple_GET_ITEM(fact.object.get(), i); isName(key) || hasPythonHash(key)) return true;
    return false;
  }

  void changedObjects(const FrameInputs& inputs, std::set<std::string>& names) {
    lookAt(inputs);
    for (const GuardFact& fact : program_.facts_)
      if ((fact.kind == FactKind::IdentityIs || hasObjectsAsKeys(fact)) && value(fact.reg) && !missOf(fact).empty())
        names.insert(openIdName(name(fact.reg)));
  }

  // A fact may rely on the ones before it: where one does not hold, the others about that value, and what is found in it, are not asked.
  void differing(const FrameInputs& inputs, std::set<std::string>& names) {
    lookAt(inputs);
    std::vector<bool> differs(program_.sources_.size(), false);
    auto isWithin = [&](int32_t reg) {
      const Source* s = reg >= 0 ? &program_.sources_[static_cast<size_t>(reg)] : nullptr;
      for (; s; s = s->base)
        if (differs[static_cast<size_t>(s - program_.sources_.data())]) return true;
      return false;
    };
    for (const GuardFact& fact : program_.facts_) {
      if (fact.kind == FactKind::Written || fact.kind == FactKind::Overlap || isWithin(fact.reg) || isWithin(fact.other)) continue;
      if (missOf(fact).empty()) continue;
      names.insert(fact.reg >= 0 ? name(fact.reg) : "");
      if (fact.reg >= 0) differs[static_cast<size_t>(fact.reg)] = true;
    }
    if (!explainGlobalStateMismatch(program_.globals_).empty()) names.insert("");
  }

  // After changedObjects.
  void changedNumbers(std::set<std::string>& names) {
    for (const Source& item : program_.sources_) {
      if (item.kind != SourceKind::IteratorItem || item.index == 0) continue;
      auto reg = static_cast<int32_t>(item.base - program_.sources_.data());
      if (value(reg) && !readIteratorItem(value(reg), item.index)) names.insert(name(reg));
    }
    for (const GuardFact& fact : program_.facts_) {
      if (const Source* generator = generatorOf(fact); generator && !missOf(fact).empty())
        names.insert(name(static_cast<int32_t>(generator - program_.sources_.data())));
      if (fact.kind == FactKind::IteratorEnds) {
        PyObject* iterator = fact.number > 0 ? value(fact.reg) : nullptr;
        if (iterator && !iteratorEnds(iterator, fact.number, fact.upper != 0)) names.insert(name(fact.reg));
      }
      if (fact.kind == FactKind::TypeLookup && fact.object.get() && fact.expected.get() && !missOf(fact).empty()) {
        // An attribute of a class.
        Source cls{.kind = SourceKind::Pinned, .object = fact.object.get()};
        names.insert(sourceName(&cls, program_.localNames_, program_.rootGlobals_) + "." + strOf(fact.name.get()));
      }
      if (fact.kind != FactKind::EqualsConstant) continue;
      PyObject* constant = fact.object.get();
      if (!PyLong_CheckExact(constant) && !PyFloat_CheckExact(constant)) continue;
      PyObject* now = value(fact.reg);
      if (now && Py_TYPE(now) == Py_TYPE(constant) && !equalsConstant(now, constant)) names.insert(name(fact.reg));
    }
  }

  // The generator inside whose frame the fact looks, where that stands as it did but holds something that no two turns of a loop
  // have in common; null: none.
  const Source* generatorOf(const GuardFact& fact) {
    PyObject* object = fact.object.get();
    switch (fact.kind) {
      case FactKind::EqualsConstant:
        if (PyLong_CheckExact(object) || PyFloat_CheckExact(object)) return nullptr;
        break;
      case FactKind::IdentityIs:
      case FactKind::Length:
      case FactKind::DictLacks:
      case FactKind::DictKeys:
      case FactKind::SetEquals:
      case FactKind::SetOrder: break;
      default: return nullptr;
    }
    for (const Source* s = &program_.sources_[static_cast<size_t>(fact.reg)]; s->base; s = s->base) {
      if (s->kind != SourceKind::IteratorPart || s->index < 0) continue;
      PyObject* owner = value(static_cast<int32_t>(s->base - program_.sources_.data()));
      if (owner && PyGen_CheckExact(owner) && standsAsBefore(*s->base, owner)) return s->base;
    }
    return nullptr;
  }

  bool standsAsBefore(const Source& generator, PyObject* now) const {
    for (const GuardFact& fact : program_.facts_)
      if (fact.kind == FactKind::IteratorTraits && &program_.sources_[static_cast<size_t>(fact.reg)] == &generator)
        return iteratorTraits(now) == fact.number;
    return false;
  }

  // The text of a fact, and in a second column the line and place where the capture relied on it.
  std::string withPlace(std::string text, const GuardFact& fact) const {
    if (fact.place < 0) return text;
    const GuardProgram::Place& place = program_.places_[static_cast<size_t>(fact.place)];
    if (text.size() < 60) text.resize(60, ' ');
    std::string line = sourceLine(place);
    if (!line.empty()) text += "  # " + line;
    return text + "  # " + strOf(place.file.get()) + ":" + std::to_string(place.line) + " in " + strOf(place.function.get());
  }

  void describeTree(std::vector<std::string>& lines) const {
    lines = {"TREE_GUARD_MANAGER:", "+- RootGuardManager", "| +- GLOBAL_STATE: ___check_global_state()"};
    if (!program_.mortals_.areAlive()) return lines.push_back(kGone);
    for (const GuardFact& fact : program_.facts_)
      if (fact.reg < 0) lines.push_back("| " + leaf(fact));
    for (const Source& source : program_.sources_)
      if (source.base == nullptr) describeManager(source, "| ", lines);
  }

 private:
  void lookAt(const FrameInputs& inputs) {
    inputs_ = &inputs;
    values_.resize(program_.sources_.size());
    tried_.resize(program_.sources_.size(), false);
  }

  static std::string strOf(PyObject* text) {
    const char* utf8 = PyUnicode_AsUTF8(text);
    if (utf8 == nullptr) PyErr_Clear();
    return utf8 ? utf8 : "?";
  }

  static std::string sourceLine(const GuardProgram::Place& place) {
    ObjectRef line = ObjectRef::steal(PyObject_CallFunction(importedObject("linecache", "getline"), "Oi", place.file.get(), place.line));
    ObjectRef stripped = ObjectRef::steal(line ? PyObject_CallMethod(line.get(), "strip", nullptr) : nullptr);
    if (!stripped) PyErr_Clear();
    return stripped ? strOf(stripped.get()) : "";
  }

  std::string leaf(const GuardFact& fact) const { return "+- " + withPlace(std::string(factLabel(fact.kind)) + ": " + condition(fact), fact); }

  void describeManager(const Source& source, const std::string& indent, std::vector<std::string>& lines) const {
    int32_t reg = static_cast<int32_t>(&source - program_.sources_.data());
    bool isGlobals = source.kind == SourceKind::Pinned && source.object == program_.rootGlobals_;
    lines.push_back(indent + "+- GuardManager: source=" + (isGlobals ? "G" : name(reg)) + ", accessed_by=" + accessor(source));
    for (const GuardFact& fact : program_.facts_)
      if (fact.reg == reg) lines.push_back(indent + "| " + leaf(fact));
    for (const Source& child : program_.sources_)
      if (child.base == &source) describeManager(child, indent + "| ", lines);
  }

  std::string accessor(const Source& source) const {
    std::string index = "(" + std::to_string(source.index) + ")";
    switch (source.kind) {
      case SourceKind::Local: {
        std::string key = name(static_cast<int32_t>(&source - program_.sources_.data()));
        return "FrameLocalsGuardAccessor(key=" + key.substr(2, key.size() - 3) + ", framelocals_idx=" + std::to_string(source.index) + ")";
      }
      case SourceKind::Function: return "FunctionGuardAccessor";
      case SourceKind::ClosureCell: return "ClosureGuardAccessor" + index;
      case SourceKind::CellContents: return "CellContentsGuardAccessor";
      case SourceKind::Pinned: return source.object == program_.rootGlobals_ ? "GlobalsGuardAccessor" : "PinnedGuardAccessor";
      case SourceKind::InstanceDict: return "GetGenericDictGuardAccessor";
      case SourceKind::DictItem: return "DictGetItemGuardAccessor(" + reprOf(source.object) + ")";
      case SourceKind::KeyedItem: return "DictGetItemGuardAccessor(" + name(static_cast<int32_t>(source.other - program_.sources_.data())) + ")";
      case SourceKind::SequenceItem: return "SequenceGetItemGuardAccessor" + index;
      case SourceKind::DequeItem: return "DequeGetItemGuardAccessor" + index;
      case SourceKind::Attr: return "GetAttrGuardAccessor(" + strOf(source.object) + ")";
      case SourceKind::Type: return "TypeGuardAccessor";
      case SourceKind::WeakReferent: return "WeakRefCallGuardAccessor";
      case SourceKind::Arithmetic: return "ArithmeticGuardAccessor";
      case SourceKind::Handled: return "HandledExceptionGuardAccessor";
      case SourceKind::NumberTensor: return "NumberTensorGuardAccessor";
      case SourceKind::IteratorItem: return "IteratorItemGuardAccessor" + index;
      case SourceKind::IteratorPart: return "IteratorPartGuardAccessor" + index;
      case SourceKind::ArrayTensor: return "ArrayTensorGuardAccessor";
      case SourceKind::TupleWith: return "TupleWithGuardAccessor";
      case SourceKind::LruCache: return "LruCacheGuardAccessor";
      case SourceKind::LruResult: return "LruResultGuardAccessor";
    }
    return "?";
  }

  std::string tensorCondition(const GuardFact& fact, const std::string& subject) const {
    const TensorMeta& meta = program_.tensorMetas_[static_cast<size_t>(fact.number)];
    auto dims = [](const Dims& values) {
      std::string text = "[";
      for (uint32_t i = 0; i < values.size(); i++) text += (i ? ", " : "") + (values[i] < 0 ? "None" : std::to_string(values[i]));
      return text + "]";
    };
    ObjectRef dtype = ObjectRef::steal(dtypeObject(meta.dtype)), device = ObjectRef::steal(deviceObject(meta.device));
    return "check_tensor(" + subject + ", " + reinterpret_cast<PyTypeObject*>(fact.object.get())->tp_name + ", " + reprOf(dtype.get()) +
           ", device=" + reprOf(device.get()) + ", requires_grad=" + (meta.requiresGrad ? "True" : "False") + ", size=" + dims(meta.sizes) +
           ", stride=" + dims(meta.strides) + ")";
  }

  // Null where the value cannot be reached.
  PyObject* value(int32_t reg) {
    size_t i = static_cast<size_t>(reg);
    if (tried_[i]) return values_[i].get();
    tried_[i] = true;
    const Source& source = program_.sources_[i];
    PyObject* base = nullptr;
    if (source.base && (base = value(static_cast<int32_t>(source.base - program_.sources_.data()))) == nullptr) return nullptr;
    PyObject* other = source.other ? value(static_cast<int32_t>(source.other - program_.sources_.data())) : nullptr;
    values_[i] = read(source, base, other);
    return values_[i].get();
  }

  ObjectRef read(const Source& source, PyObject* base, PyObject* other) const {
    switch (source.kind) {
      case SourceKind::Local: return ObjectRef::share(source.index < inputs_->localCount ? inputs_->locals[source.index] : nullptr);
      case SourceKind::Function: return ObjectRef::share(inputs_->function);
      case SourceKind::ClosureCell: return ObjectRef::share(inputs_->function ? readClosureCell(inputs_->function, source.index) : nullptr);
      case SourceKind::CellContents: return ObjectRef::share(readCell(base));
      case SourceKind::Pinned: return ObjectRef::share(source.object);
      case SourceKind::InstanceDict: return ObjectRef::share(readInstanceDict(base));
      case SourceKind::DictItem: return ObjectRef::share(readDictItem(base, source.object));
      case SourceKind::KeyedItem: return ObjectRef::share(other ? readKeyedItem(base, other) : nullptr);
      case SourceKind::SequenceItem: return ObjectRef::share(readSequenceItem(base, source.index));
      case SourceKind::Attr: return readAttr(base, source.object);
      case SourceKind::Type: return ObjectRef::share(Py_TYPE(base));
      case SourceKind::DequeItem: return readDequeItem(base, source.index);
      case SourceKind::WeakReferent: return readWeakReferent(base);
      case SourceKind::Arithmetic: return other ? compute(static_cast<Arithmetic>(source.index), base, other) : ObjectRef();
      case SourceKind::Handled: return inputs_->handledException();
      case SourceKind::NumberTensor: return ObjectRef::steal(makeNumberTensor(base));
      case SourceKind::IteratorItem: return readIteratorItem(base, source.index);
      case SourceKind::IteratorPart: return readIteratorPart(base, source.index);
      case SourceKind::ArrayTensor: return ObjectRef::steal(makeArrayTensor(base));
      case SourceKind::TupleWith: return other ? makeTupleWith(base, other) : ObjectRef();
      case SourceKind::LruCache: return ObjectRef::share(lruCacheDict(base));
      case SourceKind::LruResult: return ObjectRef::share(lruResult(base));
    }
    return {};
  }

  // Says which link of the chain is the first one that is not there.
  std::string absent(int32_t reg) {
    const Source* source = &program_.sources_[static_cast<size_t>(reg)];
    auto number = [&](const Source* s) { return static_cast<int32_t>(s - program_.sources_.data()); };
    while (source->base && (!value(number(source->base)) || (source->other && !value(number(source->other)))))
      source = value(number(source->base)) ? source->other : source->base;
    std::string base = source->base ? name(number(source->base)) : "";
    switch (source->kind) {
      case SourceKind::DictItem: return "___dict_contains(" + reprOf(source->object) + ", " + base + ")";
      case SourceKind::KeyedItem: return name(number(source->other)) + " in " + base;
      case SourceKind::SequenceItem:
      case SourceKind::DequeItem: return "len(" + base + ") > " + std::to_string(source->index);
      case SourceKind::Attr: return "hasattr(" + base + ", " + reprOf(source->object) + ")";
      case SourceKind::InstanceDict: return "hasattr(" + base + ", '__dict__')";
      case SourceKind::Arithmetic: return name(number(source)) + " can be computed";
      case SourceKind::ArrayTensor: return "torch.from_numpy(" + base + ") can be made";
      case SourceKind::NumberTensor: return "-9223372036854775808 <= " + base + " <= 9223372036854775807";
      case SourceKind::IteratorItem: return "___items_left(" + base + ") > " + std::to_string(source->index);
      default: return name(number(source)) + " is bound";
    }
  }

  // Said once, by the first of the facts about memory.
  std::string memoryMiss(const GuardFact& fact) {
    std::vector<PyObject*> values;
    for (size_t reg = 0; reg < program_.sources_.size(); reg++) values.push_back(value(static_cast<int32_t>(reg)));
    MemoryGuard::Overlap pair{};
    bool overlapsNow = false;
    if (!program_.memory_.firstMiss(values.data(), pair, overlapsNow)) return {};
    return condition(fact) + "  # actual: that of " + name(static_cast<int32_t>(pair.first)) + " and " + name(static_cast<int32_t>(pair.second)) +
           (overlapsNow ? " overlaps" : " does not overlap so");
  }

  std::string missOf(const GuardFact& fact) {
    PyObject* subject = fact.reg >= 0 ? value(fact.reg) : nullptr;
    if (fact.reg >= 0 && subject == nullptr) return absent(fact.reg);
    auto unless = [&](bool held, const std::string& actual) {
      return held ? std::string() : condition(fact) + (actual.empty() ? "" : "  # actual: " + actual);
    };
    PyObject* object = fact.object.get();
    switch (fact.kind) {
      case FactKind::TypeIs:
        return unless(Py_IS_TYPE(subject, reinterpret_cast<PyTypeObject*>(object)), reprOf(reinterpret_cast<PyObject*>(Py_TYPE(subject))));
      case FactKind::IdentityIs: return unless(subject == object, object == Py_None ? reprOf(subject) : "id " + idOf(subject));
      case FactKind::IdentityIsNot: return unless(subject != object, "");
      case FactKind::Present: return {};
      case FactKind::EqualsConstant: return unless(equalsConstant(subject, object), reprOf(subject));
      case FactKind::Length: return unless(rawLength(subject) == fact.number, std::to_string(rawLength(subject)));
      case FactKind::LengthAtMost: return unless(rawLength(subject) <= fact.number, std::to_string(rawLength(subject)));
      case FactKind::DictLacks: return unless(PyDict_Check(subject) && !readDictItem(subject, object), "");
      case FactKind::LacksKey: {
        PyObject* key = value(fact.other);
        if (key == nullptr) return absent(fact.other);
        return unless(PyDict_Check(subject) && !readKeyedItem(subject, key), "");
      }
      case FactKind::Distinct: {
        auto valueOf = [this](uint32_t reg) { return value(static_cast<int32_t>(reg)); };
        int64_t shared = program_.distinct_.sharedWith(static_cast<uint32_t>(fact.reg), fact.number != 0, valueOf);
        return shared < 0 ? "" : condition(fact) + "  # actual: it is " + name(static_cast<int32_t>(shared));
      }
      case FactKind::DictKeys: {
        ObjectRef keys = ObjectRef::steal(PyDict_Check(subject) ? PyMapping_Keys(subject) : nullptr);
        if (!keys) PyErr_Clear();
        return unless(dictKeysAre(subject, object), reprOf(keys.get()));
      }
      case FactKind::SetOrder: return unless(setOrderIs(subject, object), reprOf(subject));
      case FactKind::SetEquals: return unless(setItemsAre(subject, fact.expected.get()), reprOf(subject));
      case FactKind::TypeLookup: {
        if (!object) return condition(fact);
        PyObject* found = typeLookup(reinterpret_cast<PyTypeObject*>(object), fact.name.get());
        bool same = found == fact.expected.get() && (found != nullptr || fact.expected.empty());
        if (fact.number && fact.number != typeVersion(reinterpret_cast<PyTypeObject*>(object))) return condition(fact);
        return unless(same, found ? reprOf(found) : "no such attribute");
      }
      case FactKind::Mro: return object && mroNumber(reinterpret_cast<PyTypeObject*>(object)) == fact.number ? "" : condition(fact);
      case FactKind::FunctionIs: return functionMiss(fact, subject);
      case FactKind::Tensor: return tensorMiss(fact, subject);
      case FactKind::SameObject:
      case FactKind::DistinctObjects: {
        PyObject* other = value(fact.other);
        if (other == nullptr) return absent(fact.other);
        return unless((subject == other) == (fact.kind == FactKind::SameObject), "");
      }
      case FactKind::Written:
      case FactKind::Overlap: return memoryMiss(fact);
      case FactKind::LacksAttr: return unless(!readAttr(subject, object), "");
      case FactKind::AbcToken: return unless(program_.abcTokenIs(fact.number), "");
      case FactKind::DynamicBranch: return unless(constantTruth(subject) == fact.number, reprOf(subject));
      case FactKind::IntRange: return unless(intIsWithin(subject, fact.number, fact.upper), reprOf(subject));
      case FactKind::IteratorTraits: return unless(iteratorTraits(subject) == fact.number, "");
      case FactKind::IteratorEnds: return unless(iteratorEnds(subject, fact.number, fact.upper != 0), "");
    }
    return "?";
  }

  std::string functionMiss(const GuardFact& fact, PyObject* subject) {
    if (!PyFunction_Check(subject)) return condition(fact) + "  # actual: " + reprOf(subject);
    auto* function = reinterpret_cast<PyFunctionObject*>(subject);
    if (function->func_code != fact.object.get()) return condition(fact) + "  # actual: " + reprOf(function->func_code);
    if ((function->func_defaults != nullptr) != ((fact.number & 1) != 0))
      return name(fact.reg) + (fact.number & 1 ? ".__defaults__ is not None" : ".__defaults__ is None");
    if ((function->func_kwdefaults != nullptr) != ((fact.number & 2) != 0))
      return name(fact.reg) + (fact.number & 2 ? ".__kwdefaults__ is not None" : ".__kwdefaults__ is None");
    return {};
  }

  std::string tensorMiss(const GuardFact& fact, PyObject* subject) {
    TensorGuard expected = program_.tensors_[program_.guardOfMeta_[static_cast<size_t>(fact.number)]];
    const TensorMeta& meta = program_.tensorMetas_[static_cast<size_t>(fact.number)];
    bool seen = expected.keySet != 0;
    if (!seen) {
      // No tensor has passed yet, so the dispatch keys are not known: those of this one are taken.
      TensorGuard actual;
      if (makeTensorGuard(subject, actual)) expected.keySet = actual.keySet;
      expected.dtype = meta.dtype;
      expected.device = meta.device;
      expected.requiresGrad = meta.requiresGrad;
      expected.sizes = meta.sizes;
      expected.strides = meta.strides;
    }
    std::string text = explainTensorMismatch(subject, expected, name(fact.reg));
    TensorMeta now;
    TensorOddity oddity = TensorOddity::None;
    if (text.empty() && !seen && !readTensorMeta(subject, now, &oddity))
      return "tensor '" + name(fact.reg) + "' is not a plain one: " + describeOddity(oddity);
    if (text.empty() && !seen &&
        (now.isInference != meta.isInference || now.isConj != meta.isConj || now.isNeg != meta.isNeg || now.layout != meta.layout))
      return "tensor '" + name(fact.reg) + "' dispatch key set mismatch. expected " + condition(fact);
    return text;
  }

  const GuardProgram& program_;
  const FrameInputs* inputs_ = nullptr;
  std::vector<ObjectRef> values_;
  std::vector<bool> tried_;
};

std::string GuardProgram::explainMiss(const FrameInputs& inputs) const { return Explainer(*this).firstMiss(inputs); }

void GuardProgram::addChangedNumbers(const FrameInputs& inputs, std::set<std::string>& names) const {
  if (!mortals_.areAlive()) return;
  Explainer explainer(*this);
  explainer.changedObjects(inputs, names);
  if (isForSameObjects(inputs)) explainer.changedNumbers(names);
}

void GuardProgram::addDiffering(const FrameInputs& inputs, std::set<std::string>& names) const {
  if (mortals_.areAlive()) Explainer(*this).differing(inputs, names);
}

std::vector<std::string> GuardProgram::describeTree() const {
  std::vector<std::string> lines;
  Explainer(*this).describeTree(lines);
  return lines;
}

std::vector<std::string> GuardProgram::describe() const {
  Explainer explainer(*this);
  std::vector<std::string> lines{"GLOBAL_STATE: ___check_global_state()"};
  if (!mortals_.areAlive()) return {Explainer::kGone};
  for (const Source& source : sources_)
    if (source.kind == SourceKind::DictItem && source.base->kind != SourceKind::InstanceDict && source.base->kind != SourceKind::Pinned)
      lines.push_back("DICT_CONTAINS: ___dict_contains(" + reprOf(source.object) + ", " + sourceName(source.base, localNames_, rootGlobals_) + ")");
  for (const GuardFact& fact : facts_) lines.push_back(std::string(factLabel(fact.kind)) + ": " + explainer.condition(fact));
  return lines;
}

}  // namespace cdynamo
