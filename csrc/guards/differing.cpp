// The facts that tell the captures of one code object apart: all that is checked under set_stance(skip_guard_eval_unsafe=True).
#include "guards/program.h"
#include "source/source.h"

namespace cdynamo {

void GuardProgram::selectDiffering(const std::set<std::string>& names) {
  auto part = std::make_unique<Part>();
  part->nameCount = names.size();
  std::vector<bool> registers;
  for (const Source& source : sources_) registers.push_back(names.count(sourceName(&source, localNames_, rootGlobals_)) != 0);
  const bool ofNoSource = names.count("") != 0;
  bool distinct = false;
  for (const GuardFact& fact : facts_) {
    bool checked = fact.reg >= 0 ? registers[static_cast<size_t>(fact.reg)] : ofNoSource;
    part->facts.push_back(checked);
    distinct |= checked && fact.kind == FactKind::Distinct;
  }
  for (const Batch& batch : batches_) {
    switch (batch.op) {
      case Op::DictVersions:
      case Op::TypeVersions:
      case Op::GlobalStateIs:
        if (batch.op == Op::DictVersions || ofNoSource) part->batches.push_back(batch);
        continue;
      case Op::Distinct:
        if (distinct) part->batches.push_back(batch);
        continue;
      case Op::Memory: continue;
      case Op::Tensors:
        for (uint32_t i = batch.begin; i != batch.end; i++)
          if (part->facts[tensorFacts_[i]]) part->batches.push_back({Op::Tensors, i, i + 1});
        continue;
      case Op::EmptyDicts:
        for (uint32_t i = batch.begin; i != batch.end; i++)
          if (registers[emptyDicts_[i]]) part->batches.push_back({Op::EmptyDicts, i, i + 1});
        continue;
      default: break;
    }
    bool always = batch.op <= Op::TypeIs || batch.op == Op::IsDict;
    auto begin = static_cast<uint32_t>(part->steps.size());
    for (uint32_t i = batch.begin; i != batch.end; i++)
      if (always || part->facts[steps_[i].aux]) part->steps.push_back(steps_[i]);
    auto end = static_cast<uint32_t>(part->steps.size());
    if (end > begin) part->batches.push_back({batch.op, begin, end});
  }
  part->state = freshState();
  part->state.differing = true;
  part_ = std::move(part);
}

bool GuardProgram::checkDiffering(const FrameInputs& inputs, const std::set<std::string>& names, PyObject** wantedOut) {
  if (inputs.localCount < localsNeeded_ || !mortals_.areAlive()) return false;
  if (running_) return check(inputs, wantedOut);
  if (!part_ || part_->nameCount != names.size()) selectDiffering(names);
  return runAndGive(part_->state, inputs, wantedOut);
}

}  // namespace cdynamo
