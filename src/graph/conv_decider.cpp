#include "graph/conv_decider.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace sl::graph {
namespace {

bool named(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What preflight() says, without the configurations that it lists: hundreds for one problem. The size-generic
/// schedules are asked first: they serve nearly everything, and others search their configurations to answer.
bool servable(const ConvProblem& problem, const Target& target) {
  const auto can = [&](const Schedule* schedule) {
    if (!target.only.empty() && !named(target.only, schedule->name)) return false;
    return !named(target.disabled, schedule->name) && device_supports(schedule->min_capability, target.device) &&
           !schedule->can_run(problem, target.device) && may_try(*schedule, target.device, target.sanitized.get());
  };
  const auto schedules = all_schedules();
  const auto generic = [&](const Schedule* schedule) { return schedule->size_generic && can(schedule); };
  return std::any_of(schedules.begin(), schedules.end(), generic) ||
         std::any_of(schedules.begin(), schedules.end(), can);
}

double expected_speedup(const RoutingTable& table, const Route& route) {
  if (!route.take) return 0;
  for (const Rule& rule : table.rules()) {
    if (rule.name == route.rule) return rule.evidence ? rule.evidence->median_speedup : 0;
  }
  return 0;
}

}  // namespace

NodePlan ConvDecider::decide(const ConvProblem& problem, std::string_view op) {
  auto found = known_.find(problem);
  if (found == known_.end()) found = known_.emplace(problem, decide_new(problem)).first;
  NodePlan plan = found->second;
  plan.signature.insert(0, std::string(op) + " ");
  return plan;
}

NodePlan ConvDecider::decide(std::vector<ConvCall> calls, std::string_view op) {
  std::optional<NodePlan> best;
  for (ConvCall& call : calls) {
    NodePlan plan = decide(call.problem, op);
    if (best && best->servable && !plan.take) continue;
    plan.absorbs = std::move(call.absorbs);
    plan.payload = std::move(call.payload);
    best = std::move(plan);
    if (best->take) break;
  }
  return *std::move(best);
}

NodePlan ConvDecider::decide_new(const ConvProblem& problem) const {
  NodePlan plan;
  plan.signature = problem.to_string();
  if (const Status valid = validate(problem); !valid.ok()) {
    plan.reason = valid.error().message;
    return plan;
  }
  if (!servable(problem, target_)) {
    plan.reason =
        preflight(problem, target_.device, Regular::yes, target_.only, target_.disabled, target_.sanitized.get())
            .reason;
    return plan;
  }
  plan.servable = true;
  const Route route = target_.table->decide(problem, target_.device);
  plan.take = route.take || target_.force_take;
  plan.rule = route.rule;
  plan.reason = route.take || !target_.force_take ? route.reason : "forced: routing would keep it";
  plan.speedup = expected_speedup(*target_.table, route);
  return plan;
}

}  // namespace sl::graph
