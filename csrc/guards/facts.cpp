#include "guards/facts.h"

#include <algorithm>

#include "base/error.h"

namespace cdynamo {

namespace {

uint64_t mix(uint64_t h, uint64_t v) { return (h ^ (v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2))) * 0xff51afd7ed558ccdull; }

}  // namespace

// Facts with the same key say the same: the key covers identity of everything but the metadata index of tensors
// (a source has one tensor fact) and equal constants (the same source always shows the same object in one capture).
uint64_t FactList::keyOf(const Fact& f) {
  uint64_t h = mix(0x1234567, static_cast<uint64_t>(f.kind));
  h = mix(h, reinterpret_cast<uint64_t>(f.source));
  h = mix(h, reinterpret_cast<uint64_t>(f.otherSource));
  if (f.kind == FactKind::Tensor || f.kind == FactKind::DictKeys || f.kind == FactKind::SetEquals || f.kind == FactKind::SetOrder ||
      f.kind == FactKind::EqualsConstant)
    return h;
  h = mix(h, reinterpret_cast<uint64_t>(f.object.get()));
  h = mix(h, reinterpret_cast<uint64_t>(f.name.get()));
  if (f.kind == FactKind::LengthAtMost) h = mix(h, static_cast<uint64_t>(f.number));
  if (f.kind == FactKind::IntRange) h = mix(mix(h, static_cast<uint64_t>(f.number)), static_cast<uint64_t>(f.upper));
  return h;
}

void FactList::add(Fact fact) {
  if (!seen_.insert(keyOf(fact)).second) return;
  if (placeNow_) fact.place = *placeNow_;
  if (fact.kind == FactKind::IntRange) ranges_[fact.source].push_back(facts_.size());
  facts_.push_back(std::move(fact));
}

void FactList::truncate(size_t position) {
  while (facts_.size() > position) {
    const Fact& last = facts_.back();
    if (last.kind == FactKind::Tensor) tensors_.resize(static_cast<size_t>(last.number));
    if (last.kind == FactKind::IntRange) ranges_[last.source].pop_back();
    seen_.erase(keyOf(last));
    facts_.pop_back();
  }
}

void FactList::keepOnly(const std::vector<bool>& flags) {
  std::vector<Fact> kept;
  for (size_t i = 0; i < facts_.size(); i++)
    if (flags[i]) kept.push_back(std::move(facts_[i]));
  facts_ = std::move(kept);
  ranges_.clear();
  for (size_t i = 0; i < facts_.size(); i++)
    if (facts_[i].kind == FactKind::IntRange) ranges_[facts_[i].source].push_back(i);
}

void FactList::typeIs(const Source* s, PyTypeObject* type) { add({.kind = FactKind::TypeIs, .source = s, .object = ObjectRef::share(type)}); }
void FactList::identityIs(const Source* s, PyObject* object) { add({.kind = FactKind::IdentityIs, .source = s, .object = ObjectRef::share(object)}); }
void FactList::identityIsNot(const Source* s, PyObject* object) {
  add({.kind = FactKind::IdentityIsNot, .source = s, .object = ObjectRef::share(object)});
}
void FactList::equalsConstant(const Source* s, PyObject* constant) {
  add({.kind = FactKind::EqualsConstant, .source = s, .object = ObjectRef::share(constant)});
}
void FactList::length(const Source* s, Py_ssize_t n) { add({.kind = FactKind::Length, .source = s, .number = n}); }
void FactList::lengthAtMost(const Source* s, Py_ssize_t n) { add({.kind = FactKind::LengthAtMost, .source = s, .number = n}); }
void FactList::dictLacks(const Source* s, PyObject* key) { add({.kind = FactKind::DictLacks, .source = s, .object = ObjectRef::share(key)}); }
void FactList::present(const Source* item) { add({.kind = FactKind::Present, .source = item}); }
void FactList::dictKeys(const Source* s, PyObject* keys) { add({.kind = FactKind::DictKeys, .source = s, .object = ObjectRef::share(keys)}); }
void FactList::setOrder(const Source* s, PyObject* items) { add({.kind = FactKind::SetOrder, .source = s, .object = ObjectRef::share(items)}); }
void FactList::setEquals(const Source* s, PyObject* frozen) { add({.kind = FactKind::SetEquals, .source = s, .object = ObjectRef::share(frozen)}); }
void FactList::typeLookup(PyTypeObject* type, PyObject* name, PyObject* expected) {
  add({.kind = FactKind::TypeLookup, .object = ObjectRef::share(type), .name = ObjectRef::share(name), .expected = ObjectRef::share(expected)});
}
void FactList::mro(PyTypeObject* type) { add({.kind = FactKind::Mro, .object = ObjectRef::share(type), .expected = ObjectRef::share(type->tp_mro)}); }
void FactList::functionIs(const Source* s, PyObject* function) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  add({.kind = FactKind::FunctionIs,
       .source = s,
       .object = ObjectRef::share(f->func_code),
       .number = (f->func_defaults ? 1 : 0) + (f->func_kwdefaults ? 2 : 0)});
}
void FactList::tensor(const Source* s, PyTypeObject* type, const TensorMeta& meta) {
  size_t before = facts_.size();
  add({.kind = FactKind::Tensor, .source = s, .object = ObjectRef::share(type), .number = static_cast<int64_t>(tensors_.size())});
  if (facts_.size() > before) tensors_.push_back(meta);
}
void FactList::sameObject(const Source* a, const Source* b) { add({.kind = FactKind::SameObject, .source = a, .otherSource = b}); }
void FactList::lacksKey(const Source* dict, const Source* key) { add({.kind = FactKind::LacksKey, .source = dict, .otherSource = key}); }
void FactList::distinct(const Source* s, bool fromAll) { add({.kind = FactKind::Distinct, .source = s, .number = fromAll}); }
void FactList::distinctObjects(const Source* a, const Source* b) { add({.kind = FactKind::DistinctObjects, .source = a, .otherSource = b}); }
void FactList::written(const Source* s) { add({.kind = FactKind::Written, .source = s}); }
void FactList::overlap(const Source* a, const Source* b, int64_t distance) {
  add({.kind = FactKind::Overlap, .source = a, .otherSource = b, .number = distance});
}
void FactList::lacksAttr(const Source* s, PyObject* name) { add({.kind = FactKind::LacksAttr, .source = s, .object = ObjectRef::share(name)}); }
void FactList::truth(const Source* s, bool value) { add({.kind = FactKind::DynamicBranch, .source = s, .number = value}); }

void FactList::intRange(const Source* s, int64_t lower, int64_t upper) {
  std::vector<size_t>& known = ranges_[s];
  if (!known.empty()) {
    const Fact& last = facts_[known.back()];
    if (last.number >= lower && last.upper <= upper) return;
    lower = std::max(lower, last.number);
    upper = std::min(upper, last.upper);
  }
  add({.kind = FactKind::IntRange, .source = s, .number = lower, .upper = upper});
}

void FactList::iteratorTraits(const Source* s, int64_t traits) { add({.kind = FactKind::IteratorTraits, .source = s, .number = traits}); }
void FactList::iteratorEnds(const Source* s, int64_t count, bool over) {
  add({.kind = FactKind::IteratorEnds, .source = s, .number = count, .upper = over});
}

void FactList::abcToken() { add({.kind = FactKind::AbcToken}); }

}  // namespace cdynamo
