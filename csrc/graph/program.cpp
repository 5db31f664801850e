#include "graph/program.h"

#include <unordered_map>

#include "base/error.h"

namespace cdynamo {

namespace {

// Copies chains of TracePlace, each distinct place once.
class PlaceCopier {
 public:
  PlaceCopier(const SourceTable& sources, std::vector<ProgramPlace>& places) : sources_(sources), places_(places) {}

  int32_t copy(const TracePlace* place) {
    if (place == nullptr) return -1;
    if (place == last_) return lastIndex_;
    auto found = known_.find(place);
    if (found != known_.end()) return found->second;
    int32_t caller = copy(place->caller);
    ProgramPlace& made = places_.emplace_back();
    made.code = ObjectRef::share(place->code);
    made.line = place->line;
    made.caller = caller;
    if (place->module) {
      made.modulePath = moduleName(place->module);
      made.moduleType = ObjectRef::share(place->moduleType);
    }
    int32_t index = static_cast<int32_t>(places_.size() - 1);
    known_.emplace(place, index);
    last_ = place;
    lastIndex_ = index;
    return index;
  }

 private:
  const std::string& moduleName(const Source* source) {
    auto [entry, isNew] = moduleNames_.try_emplace(source);
    if (isNew) entry->second = sources_.name(source);
    return entry->second;
  }

  const SourceTable& sources_;
  std::vector<ProgramPlace>& places_;
  std::unordered_map<const TracePlace*, int32_t> known_;
  std::unordered_map<const Source*, std::string> moduleNames_;
  const TracePlace* last_ = nullptr;
  int32_t lastIndex_ = -1;
};

// Of an input that is made in each call; the inputs of a body have none.
std::string nameOf(const Node& node) {
  if (!node.target) return {};
  const char* name = PyUnicode_AsUTF8(node.target.get());
  if (name == nullptr) throw PythonError{};
  return name;
}

int traverseArg(const Arg& operand, visitproc visit, void* arg) {
  Py_VISIT(operand.object.object());
  for (const Arg& item : operand.items) {
    if (int answer = traverseArg(item, visit, arg)) return answer;
  }
  return 0;
}

int traverseResult(const ResultMeta& result, visitproc visit, void* arg) {
  Py_VISIT(result.object.object());
  for (const ResultMeta& item : result.items) {
    if (int answer = traverseResult(item, visit, arg)) return answer;
  }
  return 0;
}

}  // namespace

Program::Program(Graph&& captured, const SourceTable& sources) : graph(std::move(captured)) {
  PlaceCopier copier(sources, places);
  placeOf.reserve(graph.nodes().size());
  for (Node& node : graph.nodes()) {
    placeOf.push_back(copier.copy(node.place));
    if (node.op == NodeOp::Placeholder) sourceNames.push_back(node.source ? sources.name(node.source) : nameOf(node));
    node.place = nullptr;
    node.source = nullptr;
    node.example = nullptr;
  }
  collectPlaceholders();
}

Program::Program(Graph&& made, std::vector<std::string> names, std::vector<ProgramPlace> madePlaces, std::vector<int32_t> madePlaceOf)
    : graph(std::move(made)), places(std::move(madePlaces)), placeOf(std::move(madePlaceOf)), sourceNames(std::move(names)) {
  collectPlaceholders();
}

void Program::collectPlaceholders() {
  for (const Node& node : graph.nodes()) {
    if (node.op == NodeOp::Placeholder) placeholders.push_back(&node);
  }
}

int Program::traverse(visitproc visit, void* arg) const {
  for (const Node& node : graph.nodes()) {
    Py_VISIT(node.target.object());
    for (const Arg& operand : node.args) {
      if (int answer = traverseArg(operand, visit, arg)) return answer;
    }
    for (const auto& [name, operand] : node.kwargs) {
      Py_VISIT(name.object());
      if (int answer = traverseArg(operand, visit, arg)) return answer;
    }
    if (int answer = traverseResult(node.result, visit, arg)) return answer;
  }
  for (const ProgramPlace& place : places) {
    Py_VISIT(place.code.object());
    Py_VISIT(place.moduleType.object());
  }
  return 0;
}

void Program::clear() {
  placeholders.clear();
  placeOf.clear();
  graph.outputs.clear();
  Graph dropped = std::move(graph);
  graph = Graph();
  std::vector<ProgramPlace> droppedPlaces = std::move(places);
  places.clear();
}

}  // namespace cdynamo
