// What is known of a tensor's values without running anything.
#pragma once
#include <optional>

#include "graph/graph.h"

namespace cdynamo {

// The truth of a one-element tensor that the graph makes, where the ranges of random numbers tell it: `torch.rand([]) < p`
// is false for every p that is not positive. Nothing where they do not.
std::optional<bool> provenTruth(const Graph& graph, const Node* condition);

}  // namespace cdynamo
