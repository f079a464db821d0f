// Whether what a planner wants to insert can stand where it wants it.
#pragma once

#include <vector>

#include "graph/editor.hpp"

namespace sl::graph {

/// A new node that takes the place of anything but what `node` and `absorbs` make, or that reads what they make, would
/// leave a graph with a cycle or a value that nobody makes. Looks only.
Status check_lowering(const GraphEditor&, Node node, const std::vector<Node>& absorbs, const NewNode& made);

}  // namespace sl::graph
