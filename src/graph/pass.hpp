// Planned replacement: classify every node of the untouched graph, then replace the chosen ones, all or nothing.
#pragma once

#include <functional>
#include <optional>

#include "core/log.hpp"
#include "graph/planner.hpp"
#include "graph/report.hpp"

namespace sl::graph {

/// What the caller's regular lowering can compile. Looks at the graph, never edits it.
using RegularPredicate = std::function<Result<Regular>(const GraphEditor&, Node, const NodePlan&)>;

struct PassOptions {
  const PlannerRegistry* planners = nullptr;
  DeviceInfo device;         ///< the target: planners with a min_capability are held to it
  RegularPredicate regular;  ///< empty = it can compile everything
  bool dry_run = false;      ///< plan only
  const Log* log = nullptr;  ///< where warnings go besides the report
};

struct Outcome {
  Report report;  ///< of as many nodes as were planned where `error` is set
  std::optional<ReplacementError> error;
};

/// Plans first: every node whose op has a planner is classified before the first edit.
///   UNSUPPORTED (no kernel, the regular lowering can): left alone.
///   OPTIONAL (both can): replaced where routing takes it; if replacing it fails, that node's edits are undone, the
///     regular lowering keeps it and a warning says why.
///   REQUIRED (the regular lowering cannot): replaced; where no kernel can serve it the pass fails before any edit,
///   with
///     every such node; where replacing it fails, every edit of the pass is undone.
/// A planner, the predicate or the editor failing while planning fails the pass, the graph untouched. Linear in nodes
/// and uses. Throws nothing; when memory runs out, the error is out_of_memory and the graph as it was.
Outcome replace(GraphEditor&, const PassOptions&) noexcept;

}  // namespace sl::graph
