// Planners: who classifies a node of an operator, and what takes its place. Ops with no planner are left alone.
#pragma once

#include <any>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_info.hpp"
#include "graph/editor.hpp"
#include "routing/routing.hpp"

namespace sl::graph {

/// What a planner says of one node, from the untouched graph.
struct NodePlan {
  std::string signature;  ///< op, shapes, dtypes, layout, attributes: how messages name the call
  bool servable = false;  ///< some kernel can serve the node on the target device
  bool take = false;      ///< routing takes it; asked only where the regular lowering can compile the node too
  std::string reason;     ///< why it is not servable, or why it is kept or taken
  std::string rule;       ///< the routing rule that decided
  double speedup = 0;     ///< expected, over the regular lowering; 0 = not known
  /// Further nodes that the new one stands for (an activation behind a convolution), from the node towards the outputs.
  /// Nothing but these may read the values between them.
  std::vector<Node> absorbs;
  std::any payload;  ///< the planner's own, for its lowering
};

/// Both callbacks look at the graph and never edit it. They may fail or throw; the pass then undoes what it did.
struct Planner {
  int min_capability = 0;  ///< what its kernels need of the target, 10 * major + minor; 0 = the plan says
  std::function<Result<NodePlan>(const GraphEditor&, Node)> plan;
  std::function<Result<NewNode>(const GraphEditor&, Node, const NodePlan&)> lower;
};

/// Planners by operator.
class PlannerRegistry {
 public:
  /// An error where the name is empty, a callback is missing, or the operator has one already.
  Status add(std::string op, Planner);
  const Planner* find(std::string_view op) const;

 private:
  struct Row {
    std::string op;
    Planner planner;
  };
  std::vector<Row> rows_;  // few: a scan is as quick as a map
};

}  // namespace sl::graph
