// Planned replacement through the C ABI: the caller's planners and predicate as the pass wants them.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/context.hpp"
#include "capi/errors.hpp"
#include "capi/graph_editor.hpp"
#include "capi/versioned.hpp"
#include "graph/conv_decider.hpp"
#include "graph/guard.hpp"
#include "graph/pass.hpp"
#include "graph/target.hpp"

/// What a planner's callback fills.
struct sluice_node_plan {
  std::vector<sl::graph::ConvCall> calls;  ///< readings as a convolution
  sl::graph::NodePlan plan;                ///< otherwise
  bool set = false;
};

namespace sl::capi {
namespace {

using graph::GraphEditor;
using graph::Node;

/// A planner of the caller, copied: the structs need to live only during the call, but a copy knows its version.
struct CallerPlanner {
  sluice_planner calls = SLUICE_PLANNER_INIT;
  std::shared_ptr<graph::ConvDecider> decider;

  Result<graph::NodePlan> plan(Node node) const {
    sluice_node_plan filled;
    forget_callback_error();
    SL_TRY(callback_status("plan", calls.plan(calls.user, static_cast<std::uint64_t>(node), &filled)));
    if (!filled.calls.empty()) {
      for (graph::ConvCall& call : filled.calls) call.payload = call.problem;
      return decider->decide(std::move(filled.calls), calls.op);
    }
    if (filled.set) return std::move(filled.plan);
    return Error{Code::invalid,
                 "callback plan said nothing, must call sluice_node_plan_conv2d or sluice_node_plan_set"};
  }

  static Result<graph::NewNode> usual(const GraphEditor& editor, Node node, const graph::NodePlan& plan) {
    graph::NodeView view;
    SL_TRY(editor.view(node, view));
    graph::NewNode made;
    made.op = "ai.sluice::Conv2d";
    made.name = view.name;
    made.inputs = view.inputs;
    if (!plan.absorbs.empty()) {
      graph::NodeView last;
      SL_TRY(editor.view(plan.absorbs.back(), last));
      made.replaces = last.outputs;
    } else {
      made.replaces = view.outputs;
    }
    if (const auto* problem = std::any_cast<ConvProblem>(&plan.payload)) {
      made.attributes.push_back(graph::Attribute::of("version", std::int64_t{1}));
      made.attributes.push_back(graph::Attribute::of("problem", problem->to_string()));
    }
    return made;
  }

  Result<graph::NewNode> lower(const GraphEditor& editor, Node node, const graph::NodePlan& plan) const {
    SL_ASSIGN(graph::NewNode start, usual(editor, node, plan));
    if (calls.lower == nullptr) {
      if (!plan.payload.has_value())
        return Error{Code::invalid, std::string("the planner of ") + calls.op +
                                        " has lower = NULL, which serves only plans by sluice_node_plan_conv2d"};
      return start;
    }
    NewNodeView view(start);
    sluice_node_plan shown;
    shown.plan = plan;
    forget_callback_error();
    SL_TRY(callback_status("lower", calls.lower(calls.user, static_cast<std::uint64_t>(node), &shown, view.get())));
    return read_new_node(*view.get());
  }
};

Status add_planners(const sluice_replace_options& options, const std::shared_ptr<graph::ConvDecider>& decider,
                    graph::PlannerRegistry& registry) {
  if (options.planners == nullptr && options.planner_count > 0)
    return Error{Code::invalid, "sluice_replace_options.planners = NULL, must point to planner_count planners"};
  for (std::size_t i = 0; i < options.planner_count; ++i) {
    const sluice_planner* given = options.planners[i];
    const std::string field = "sluice_replace_options.planners[" + std::to_string(i) + "]";
    if (given == nullptr) return Error{Code::invalid, field + " = NULL, must be a sluice_planner"};
    CallerPlanner caller;
    caller.decider = decider;
    constexpr std::size_t least = offsetof(sluice_planner, plan) + sizeof(given->plan);
    SL_TRY(read_versioned(given, least, "sluice_planner", caller.calls));
    if (caller.calls.op == nullptr) return Error{Code::invalid, field + "->op = NULL, must name an operator"};
    if (caller.calls.plan == nullptr) return Error{Code::invalid, field + "->plan = NULL, must be a function"};
    graph::Planner planner;
    planner.min_capability = caller.calls.min_capability;
    planner.plan = [caller](const GraphEditor&, Node node) { return caller.plan(node); };
    planner.lower = [caller](const GraphEditor& editor, Node node, const graph::NodePlan& plan) {
      return caller.lower(editor, node, plan);
    };
    SL_TRY(registry.add(caller.calls.op, std::move(planner)));
  }
  return {};
}

graph::RegularPredicate predicate(const sluice_replace_options& options) {
  if (options.regular == nullptr) return {};
  return [call = options.regular, user = options.regular_user](const GraphEditor&, Node node,
                                                               const graph::NodePlan& plan) -> Result<Regular> {
    forget_callback_error();
    const int32_t answer = call(user, static_cast<std::uint64_t>(node), plan.signature.c_str());
    if (answer == 0 || answer == 1) return answer == 1 ? Regular::yes : Regular::no;
    SL_TRY(callback_status("regular", SLUICE_INTERNAL));
    return Regular::yes;  // not reached: INTERNAL is an error
  };
}

Result<graph::Target> make_target(const sluice_replace_options& options, const Log& log) {
  SL_ASSIGN(Environment environment, read_environment());
  graph::Target target;
  if (options.device != nullptr) {
    SL_ASSIGN(target.device, graph::target_device(options.device));
  } else if (options.context != nullptr) {
    target.device = options.context->device->info();
  } else {
    return Error{Code::invalid, "sluice_replace_options.device = NULL, must name a device where context is NULL too"};
  }
  if (options.routing_table != nullptr) environment.routing_table = options.routing_table;
  SL_ASSIGN(TableChoice tables, find_routing_table(target.device, environment.routing_table, log));
  target.table = std::move(tables.table);
  target.force_take = options.force_take != 0;
  if (!environment.force_schedule.empty()) target.only.push_back(environment.force_schedule);
  target.disabled = environment.disabled_schedules;
  SL_ASSIGN(target.sanitized, find_sanitized(environment.sanitized));
  return target;
}

LogSink sink_of(const sluice_replace_options& options) {
  if (options.log == nullptr) return {};
  return [callback = options.log, user = options.log_user](LogLevel level, std::string_view message) {
    callback(static_cast<sluice_log_level>(level), std::string(message).c_str(), user);
  };
}

char* copy_of(const std::string& text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

Result<std::pair<sluice_graph_editor, sluice_replace_options>> known(const sluice_graph_editor* editor,
                                                                     const sluice_replace_options* options) {
  if (editor == nullptr) return Error{Code::invalid, "editor = NULL, must be a sluice_graph_editor"};
  if (options == nullptr) return Error{Code::invalid, "options = NULL, must be a sluice_replace_options"};
  std::pair<sluice_graph_editor, sluice_replace_options> out{SLUICE_GRAPH_EDITOR_INIT, SLUICE_REPLACE_OPTIONS_INIT};
  constexpr std::size_t least_editor = offsetof(sluice_graph_editor, undo_erase) + sizeof(editor->undo_erase);
  SL_TRY(read_versioned(editor, least_editor, "sluice_graph_editor", out.first));
  SL_TRY(check_editor(out.first));
  constexpr std::size_t least = offsetof(sluice_replace_options, device) + sizeof(options->device);
  SL_TRY(read_versioned(options, least, "sluice_replace_options", out.second));
  return out;
}

sluice_status replace(const sluice_graph_editor* given_editor, const sluice_replace_options* given, char** report) {
  if (report != nullptr) *report = nullptr;
  auto structs = known(given_editor, given);
  if (!structs.ok()) return sl::capi::report(std::move(structs).error());
  const sluice_replace_options& options = structs->second;
  const Log log(sink_of(options), LogLevel::warning);
  Result<graph::Target> target = make_target(options, log);
  if (!target.ok()) return sl::capi::report(std::move(target).error());
  graph::PassOptions pass;
  pass.device = target->device;
  const auto decider = std::make_shared<graph::ConvDecider>(std::move(target).value());
  graph::PlannerRegistry planners;
  if (Status status = add_planners(options, decider, planners); !status.ok())
    return sl::capi::report(std::move(status).error());
  pass.planners = &planners;
  pass.regular = predicate(options);
  pass.dry_run = options.dry_run != 0;
  pass.log = &log;
  CallbackEditor editor(structs->first);
  forget_callback_error();

  graph::Outcome outcome = graph::replace(editor, pass);
  if (report != nullptr) {
    try {
      *report = copy_of(graph::to_json(outcome.report, outcome.error ? &*outcome.error : nullptr));
    } catch (...) {
      *report = nullptr;
    }
  }
  if (!outcome.error) return SLUICE_OK;
  return sl::capi::report({outcome.error->code, std::move(outcome.error->message)});
}

sluice_status add_call(sluice_node_plan* plan, const sluice_conv2d_args* args, const sluice_node* absorbs,
                       std::size_t count) {
  if (plan == nullptr) return invalid("plan = NULL, must be the plan that the callback was given");
  if (args == nullptr) return invalid("args = NULL, must point to a sluice_conv2d_args");
  if (absorbs == nullptr && count > 0) return invalid("absorbs = NULL, must point to absorb_count nodes");
  sluice_conv2d_args known = SLUICE_CONV2D_ARGS_INIT;
  constexpr std::size_t least = offsetof(sluice_conv2d_args, y) + sizeof(sluice_tensor);
  if (Status status = read_versioned(args, least, "sluice_conv2d_args", known); !status.ok())
    return report(std::move(status).error());
  Call call;
  Error error;
  if (read_call(known, Data::optional, call, error) != Code::ok) return report(std::move(error));
  if (call.strided != nullptr) return invalid(describe_strided(call));
  graph::ConvCall made;
  made.problem = call.problem;
  for (std::size_t i = 0; i < count; ++i) made.absorbs.push_back(Node{absorbs[i]});
  plan->calls.push_back(std::move(made));
  return SLUICE_OK;
}

}  // namespace
}  // namespace sl::capi

using namespace sl;
using namespace sl::capi;

extern "C" {

sluice_status sluice_node_plan_conv2d(sluice_node_plan* plan, const sluice_conv2d_args* args,
                                      const sluice_node* absorbs, size_t absorb_count) {
  return guarded([&] { return add_call(plan, args, absorbs, absorb_count); });
}

sluice_status sluice_node_plan_set(sluice_node_plan* plan, const char* signature, int32_t servable, int32_t take,
                                   const char* reason, double speedup, const sluice_node* absorbs,
                                   size_t absorb_count) {
  return guarded([&]() -> sluice_status {
    if (plan == nullptr) return invalid("plan = NULL, must be the plan that the callback was given");
    if (signature == nullptr) return invalid("signature = NULL, must name the call");
    if (absorbs == nullptr && absorb_count > 0) return invalid("absorbs = NULL, must point to absorb_count nodes");
    graph::NodePlan made;
    made.signature = signature;
    made.servable = servable != 0;
    made.take = take != 0;
    made.reason = reason == nullptr ? "" : reason;
    made.speedup = speedup;
    for (std::size_t i = 0; i < absorb_count; ++i) made.absorbs.push_back(Node{absorbs[i]});
    plan->plan = std::move(made);
    plan->set = true;
    plan->calls.clear();
    return SLUICE_OK;
  });
}

sluice_status sluice_graph_replace(const sluice_graph_editor* editor, const sluice_replace_options* options,
                                   char** report) {
  return guarded([&] { return replace(editor, options, report); });
}

}  // extern "C"
