// Nodes that another replacement would stand for: whatever becomes of that replacement, none of them slips through.
#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.hpp"

namespace sl::test {
namespace {

struct Case {
  const char* name;
  bool conv_fails;           ///< its lowering does, so that the node is undone
  bool relu_servable;        ///< by a planner of its own
  Regular relu;              ///< whether the regular lowering can compile Relu
  const char* action;        ///< of Relu's row in the end; "" where the pass fails
  std::size_t relus_remain;  ///< of two; relu0 is served in any case
};

const Case cases[] = {
    {"absorbed", false, true, Regular::yes, "absorbed", 1},
    {"absorbed_required", false, true, Regular::no, "absorbed", 0},
    {"absorbed_required_unservable", false, false, Regular::no, "absorbed", 0},
    {"given_back", true, true, Regular::yes, "take", 0},
    {"given_back_required", true, true, Regular::no, "take", 0},
    {"given_back_kept", true, false, Regular::yes, "keep", 1},
    {"given_back_required_unservable", true, false, Regular::no, "", 2},
};

class Absorbed : public testing::TestWithParam<Case> {};

/// conv0 is a graph output, so its Relu is on its own; conv1 absorbs its Relu.
TEST_P(Absorbed, Relu) {
  const Case& row = GetParam();
  const auto graph = make_chain(2, [](std::size_t) { return taken_text; });
  const std::string before = graph->dump();
  Ready ready(*graph, "h200", true);
  Planner conv = conv_planner(*graph, ready.decider);
  Planner relu = conv;
  relu.plan = [&row](const GraphEditor& editor, Node node) -> Result<NodePlan> {
    NodeView view;
    SL_TRY(editor.view(node, view));
    NodePlan plan;
    plan.signature = "Relu";
    plan.servable = row.relu_servable || view.name == "relu0";
    plan.take = view.name != "relu0" || row.conv_fails;
    plan.reason = plan.servable ? "" : "no kernel for it";
    return plan;
  };
  conv.lower = [&row, inner = conv.lower](const GraphEditor& e, Node n, const NodePlan& plan) -> Result<NewNode> {
    if (row.conv_fails && !plan.absorbs.empty()) return Error{Code::device, "injected"};
    return inner(e, n, plan);
  };
  PlannerRegistry planners;
  ASSERT_TRUE(planners.add("Conv", conv).ok());
  ASSERT_TRUE(planners.add("Relu", relu).ok());
  ready.options.planners = &planners;
  ready.options.regular = [&row](const GraphEditor& editor, Node node, const NodePlan&) -> Result<Regular> {
    SL_ASSIGN(const std::string_view op, editor.op(node));
    return op == "Relu" ? row.relu : Regular::yes;
  };
  const Outcome outcome = replace(*graph, ready.options);
  const Status whole = graph->check();
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  const bool fails = std::string_view(row.action).empty();
  ASSERT_EQ(outcome.error.has_value(), fails) << (outcome.error ? outcome.error->message : "");
  if (fails) {
    EXPECT_EQ(outcome.error->state, GraphState::restored);
    EXPECT_EQ(graph->dump(), before);
    ASSERT_EQ(outcome.error->failures.size(), 1U);
    EXPECT_EQ(outcome.error->failures[0].name, "relu1");
    for (const char* part : {"no kernel for it", "conv1", "Relu"})
      EXPECT_NE(outcome.error->message.find(part), std::string::npos) << outcome.error->message;
    return;
  }
  ASSERT_EQ(outcome.report.nodes.size(), 4U);
  EXPECT_EQ(outcome.report.nodes[2].action, row.conv_fails ? Action::undone : Action::take);
  EXPECT_EQ(outcome.report.nodes[3].name, "relu1");
  EXPECT_EQ(name(outcome.report.nodes[3].action), row.action);
  std::vector<Node> nodes;
  ASSERT_TRUE(graph->nodes(nodes).ok());
  EXPECT_EQ(static_cast<std::size_t>(
                std::count_if(nodes.begin(), nodes.end(), [&](Node node) { return *graph->op(node) == "Relu"; })),
            row.relus_remain);
}

INSTANTIATE_TEST_SUITE_P(Routes, Absorbed, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

/// What a lowering says that would leave a cycle or a hole is refused before the first edit of the node.
TEST(AbsorbedLowering, MayReplaceOnlyWhatGoesAndReadOnlyWhatStays) {
  for (const bool reads : {false, true}) {
    const auto graph = make_chain(2, [](std::size_t) { return taken_text; });
    Ready ready(*graph, "h200", true);
    Planner planner = conv_planner(*graph, ready.decider);
    planner.lower = [reads, inner = planner.lower](const GraphEditor& e, Node n, const NodePlan& p) -> Result<NewNode> {
      SL_ASSIGN(NewNode made, inner(e, n, p));
      NodeView view;
      SL_TRY(e.view(n, view));
      if (view.name != "conv1") return made;
      (reads ? made.inputs : made.replaces)[0] = reads ? view.outputs[0] : view.inputs[0];
      return made;
    };
    PlannerRegistry planners;
    ASSERT_TRUE(planners.add("Conv", planner).ok());
    ready.options.planners = &planners;
    const Outcome outcome = replace(*graph, ready.options);
    ASSERT_FALSE(outcome.error);
    EXPECT_EQ(outcome.report.count(Action::take), 1);
    EXPECT_EQ(outcome.report.count(Action::undone), 1);
    EXPECT_NE(outcome.report.warnings.at(0).find(reads ? "the new node reads" : "the new node replaces"),
              std::string::npos)
        << outcome.report.warnings[0];
  }
}

}  // namespace
}  // namespace sl::test
