#include "graph_onnx/planner.hpp"

#include <any>
#include <utility>

#include "graph_onnx/attributes.hpp"
#include "graph_onnx/conv.hpp"

namespace sl::graph {
namespace {

constexpr std::int64_t node_version = 1;  // of ai.sluice::Conv2d's attributes (docs/graph.md)

Result<NodePlan> plan_conv(const OnnxEditor& editor, Node node, ConvDecider& decider) {
  SL_ASSIGN(const OnnxConv conv, read_conv(editor, node));
  if (!conv.reason.empty()) {
    NodePlan plan;
    plan.signature = "Conv " + conv.signature;
    plan.reason = conv.reason;
    return plan;
  }
  std::vector<ConvCall> calls;
  SL_ASSIGN(OnnxActivation behind, activation_behind(editor, node));
  if (behind.activation != Activation::none) {
    ConvProblem folded = conv.problem;
    folded.activation = behind.activation;
    folded.alpha = behind.alpha;
    folded.beta = behind.beta;
    calls.push_back({folded, std::move(behind.nodes), folded});
  }
  calls.push_back({conv.problem, {}, conv.problem});
  return decider.decide(std::move(calls));
}

Result<NewNode> lower_conv(const OnnxEditor& editor, Node node, const NodePlan& plan, const Target& target) {
  const auto* problem = std::any_cast<ConvProblem>(&plan.payload);
  if (problem == nullptr) return Error{Code::internal, "the plan holds no convolution"};
  NodeView view;
  SL_TRY(editor.view(node, view));
  NewNode made;
  made.op = "ai.sluice::Conv2d";
  made.name = view.name;
  made.inputs = view.inputs;
  made.replaces = view.outputs;
  if (!plan.absorbs.empty()) {
    NodeView last;
    SL_TRY(editor.view(plan.absorbs.back(), last));
    made.replaces = last.outputs;
  }
  SL_ASSIGN(made.attributes, copy_attributes(editor.proto(node)));
  made.attributes.push_back(Attribute::of("sluice_version", node_version));
  made.attributes.push_back(Attribute::of("sluice_problem", problem->to_string()));
  made.attributes.push_back(Attribute::of("sluice_device", target.device.name));
  made.attributes.push_back(Attribute::of("activation", std::string(name(problem->activation))));
  made.attributes.push_back(Attribute::of("activation_alpha", static_cast<double>(problem->alpha)));
  made.attributes.push_back(Attribute::of("activation_beta", static_cast<double>(problem->beta)));
  return made;
}

}  // namespace

Outcome replace_convolutions(OnnxEditor& editor, const OnnxOptions& options, GraphEditor* seen) {
  ConvDecider decider(options.target);
  Planner conv;
  conv.plan = [&](const GraphEditor&, Node node) { return plan_conv(editor, node, decider); };
  conv.lower = [&](const GraphEditor&, Node node, const NodePlan& plan) {
    return lower_conv(editor, node, plan, options.target);
  };
  PlannerRegistry planners;
  (void)planners.add("Conv", std::move(conv));
  PassOptions pass;
  pass.planners = &planners;
  pass.device = options.target.device;
  pass.dry_run = options.dry_run;
  pass.log = options.log;
  if (options.regular) {
    pass.regular = [&](const GraphEditor&, Node, const NodePlan& plan) -> Result<Regular> {
      const auto* chosen = std::any_cast<ConvProblem>(&plan.payload);
      if (chosen == nullptr) return options.regular(nullptr);
      ConvProblem alone = *chosen;  // an activation that the plan folds in is another node's to the regular lowering
      alone.activation = Activation::none;
      alone.alpha = alone.beta = 0.0F;
      return options.regular(&alone);
    };
  }
  return replace(seen == nullptr ? editor : *seen, pass);
}

}  // namespace sl::graph
