// What preflight and routing say of a convolution on a target device, in the words of a NodePlan.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/planner.hpp"

namespace sl::graph {

/// The device that the graph is prepared for; it need not be in this machine.
struct Target {
  DeviceInfo device;
  std::shared_ptr<const RoutingTable> table;   ///< must not be null
  bool force_take = false;                     ///< take whatever a kernel can serve
  std::vector<std::string> only, disabled;     ///< schedules, as preflight() reads them
  std::shared_ptr<const Sanitized> sanitized;  ///< the same
};

/// One way to read a node as a convolution: alone, or with the activation behind it.
struct ConvCall {
  ConvProblem problem;
  std::vector<Node> absorbs;
  std::any payload;
};

/// Pure, but for remembering its answers: networks repeat their calls. Not thread-safe.
class ConvDecider {
 public:
  explicit ConvDecider(Target target) : target_(std::move(target)) {}

  /// Everything but `absorbs` and `payload`. A problem that validate() refuses is not servable, and the reason says
  /// why.
  NodePlan decide(const ConvProblem&, std::string_view op = "Conv");
  /// The plan of the first call that is taken, else of the first that can be served, else of the last. Requires one.
  NodePlan decide(std::vector<ConvCall> calls, std::string_view op = "Conv");
  const Target& target() const { return target_; }

 private:
  NodePlan decide_new(const ConvProblem&) const;

  Target target_;
  std::unordered_map<ConvProblem, NodePlan> known_;
};

}  // namespace sl::graph
