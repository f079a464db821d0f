// Which devices a graph may be prepared for; none of them is in this machine.
#include <gtest/gtest.h>

#include "fixture.hpp"

namespace sl::test {
namespace {

struct Case {
  const char* device;
  bool can;
};

class Legality : public testing::TestWithParam<Case> {};

TEST_P(Legality, OptionalIsTakenOrLeftAndRequiredIsTakenOrFails) {
  const auto& [device, can] = GetParam();
  for (const Regular answer : {Regular::yes, Regular::no}) {
    const auto graph = make_chain(4, [](std::size_t) { return taken_text; });
    const std::string before = graph->dump();
    Ready ready(*graph, device, true);
    ready.options.regular = [answer](const GraphEditor&, Node, const NodePlan&) -> Result<Regular> { return answer; };
    const Outcome outcome = replace(*graph, ready.options);
    EXPECT_EQ(outcome.error.has_value(), !can && answer == Regular::no);
    EXPECT_EQ(outcome.report.count(Action::take), can ? 4 : 0);
    if (!can) {
      EXPECT_EQ(graph->dump(), before);
    }
    if (outcome.error) {
      EXPECT_NE(outcome.error->message.find(ready.options.device.name), std::string::npos);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Legality,
                         testing::Values(Case{"a100", true}, Case{"h100", true}, Case{"h200", true},
                                         Case{"rtx4090", true}, Case{"rtx5090", true}, Case{"b200", true},
                                         Case{"mi300x", false}),
                         [](const auto& info) { return std::string(info.param.device); });

TEST(Legality, DecidingAgreesWithPreflight) {
  for (const char* device : {"a100", "h200", "mi300x", "rtx5090"}) {
    for (const char* text : {taken_text, kept_text, impossible_text, "g32mb1ic128ih56oc128oh56kh3ph1 dt=bf16 tag=nhwc",
                             "g8mb1ic8ih10oc16oh10kh3ph1", "g64ic64ih1iw4096oc64oh1ow4094kh1kw3"}) {
      for (const std::vector<std::string>& only : {std::vector<std::string>{}, {"dw_flat"}, {"grp_plane"}}) {
        Target target = make_target(device);
        target.only = only;
        const ConvProblem problem = parse(text).value();
        const Preflight pre = preflight(problem, target.device, Regular::yes, target.only, target.disabled);
        const NodePlan plan = ConvDecider(target).decide(problem);
        EXPECT_EQ(plan.servable, pre.verdict != Verdict::unsupported) << text << " on " << device;
        if (!plan.servable) {
          EXPECT_EQ(plan.reason, pre.reason);
        }
      }
    }
  }
}

TEST(Legality, PlannersOfUsersAreHeldToTheirCapability) {
  struct Row {
    int needs;
    const char* device;
    bool can;
  };
  for (const Row& row : {Row{80, "a100", true}, Row{90, "a100", false}, Row{90, "h200", true}, Row{90, "b200", true},
                         Row{120, "rtx5090", true}, Row{120, "b200", false}, Row{50, "mi300x", false}}) {
    MemoryGraph graph;
    const Value x = graph.add_value("x");
    const Node node = graph.add_node("my::Blur", "blur", {x}, {"y"});
    graph.add_output(graph.output(node, 0));
    Planner planner;
    planner.min_capability = row.needs;
    planner.plan = [](const GraphEditor&, Node) -> Result<NodePlan> {
      NodePlan plan;
      plan.signature = "my::Blur";
      plan.servable = plan.take = true;
      return plan;
    };
    planner.lower = [](const GraphEditor& editor, Node old, const NodePlan&) -> Result<NewNode> {
      NodeView view;
      SL_TRY(editor.view(old, view));
      NewNode made;
      made.op = "my::FastBlur";
      made.inputs = view.inputs;
      made.replaces = view.outputs;
      return made;
    };
    PlannerRegistry planners;
    ASSERT_TRUE(planners.add("my::Blur", planner).ok());
    PassOptions options;
    options.planners = &planners;
    options.device = *described_device(row.device);
    const Outcome outcome = replace(graph, options);
    ASSERT_FALSE(outcome.error);
    EXPECT_EQ(outcome.report.count(Action::take), row.can ? 1 : 0) << row.needs << " on " << row.device;
    if (!row.can) {
      EXPECT_EQ(outcome.report.nodes[0].verdict, Verdict::unsupported);
      EXPECT_NE(outcome.report.nodes[0].reason.find(std::to_string(row.needs)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sl::test
