// A finished graph, cut loose from the trace that made it: it owns all that it needs to run or to be shown as torch.fx.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace cdynamo {

// One level of the user's stack, as TracePlace, but owning.
struct ProgramPlace {
  ObjectRef code;  // PyCodeObject
  int32_t line = 0;
  int32_t caller = -1;     // position in Program::places, -1: the root frame
  std::string modulePath;  // of the nn.Module whose forward runs here, or empty
  ObjectRef moduleType;
};

// Plain data. Node pointers (in arguments and outputs) point into `graph`, which never moves its nodes.
struct Program {
  Graph graph;
  std::vector<ProgramPlace> places;
  std::vector<int32_t> placeOf;          // by node id; -1: unknown
  std::vector<std::string> sourceNames;  // by placeholder, in order
  std::vector<const Node*> placeholders;

  // Takes the graph over: places and names are copied out of the trace; `place`, `source` and `example` of every node
  // become null, so that nothing of the trace (nor a user's tensor) is reached from here.
  Program(Graph&& captured, const SourceTable& sources);
  // As above, for a graph that was made by hand: names are given by placeholder, places by node.
  Program(Graph&& made, std::vector<std::string> names, std::vector<ProgramPlace> madePlaces, std::vector<int32_t> madePlaceOf);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reports every Python object that is owned here; returns the first non-zero answer of visit.
  int traverse(visitproc visit, void* context) const;
  // Drops all nodes, for the garbage collector.
  void clear();

 private:
  void collectPlaceholders();
};

}  // namespace cdynamo
