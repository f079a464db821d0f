// A fault at every step and callback, for one node and the k-th of many: the graph is byte-identical after undo.
#include <gtest/gtest.h>

#include "failing_new.hpp"
#include "fixture.hpp"

namespace sl::test {
namespace {

constexpr Fault faults[] = {Fault::error, Fault::exception, Fault::alien_exception};

std::unique_ptr<MemoryGraph> graph_of(std::size_t layers) {
  return make_chain(layers, [](std::size_t) { return taken_text; });
}

RegularPredicate all(Regular answer) {
  return [answer](const GraphEditor&, Node, const NodePlan&) -> Result<Regular> { return answer; };
}

/// What a pass must leave that took exactly the convolutions that `report` says were taken: made by a pass without
/// faults whose planner takes those alone.
std::string expected(std::size_t layers, const Report& report) {
  const auto graph = graph_of(layers);
  Ready ready(*graph, "h200", true);
  Planner planner = conv_planner(*graph, ready.decider);
  planner.plan = [inner = planner.plan, &report, i = std::size_t{0}](const GraphEditor& editor,
                                                                     Node node) mutable -> Result<NodePlan> {
    SL_ASSIGN(NodePlan plan, inner(editor, node));
    plan.take = report.nodes[i++].action == Action::take;
    return plan;
  };
  PlannerRegistry planners;
  EXPECT_TRUE(planners.add("Conv", planner).ok());
  ready.options.planners = &planners;
  EXPECT_FALSE(replace(*graph, ready.options).error);
  return graph->dump();
}

/// The oracle: after an error the graph is as before, and otherwise exactly what the report says.
void check(const MemoryGraph& graph, const std::string& before, const Outcome& outcome, std::size_t layers) {
  const Status whole = graph.check();
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  if (outcome.error) {
    ASSERT_NE(outcome.error->state, GraphState::damaged) << outcome.error->undo_error;
    ASSERT_EQ(graph.dump(), before);
  } else {
    ASSERT_EQ(graph.dump(), expected(layers, outcome.report));
    ASSERT_EQ(outcome.report.count(Action::undone), static_cast<std::int64_t>(outcome.report.warnings.size()));
  }
}

struct Run {
  std::size_t layers;
  Regular regular;
};

class Faults : public testing::TestWithParam<Run> {};

TEST_P(Faults, AtEveryCallOfTheEditor) {
  const auto [layers, regular] = GetParam();
  std::int64_t undone = 0, failed = 0;
  for (const Fault fault : faults) {
    for (std::int64_t k = 0;; ++k) {
      const auto graph = graph_of(layers);
      const std::string before = graph->dump();
      Ready ready(*graph, "h200", true);
      ready.options.regular = all(regular);
      FaultyEditor editor(*graph);
      editor.fail_at = k;
      editor.fault = fault;
      const Outcome outcome = replace(editor, ready.options);
      ASSERT_NO_FATAL_FAILURE(check(*graph, before, outcome, layers)) << "call " << k;
      undone += outcome.report.count(Action::undone);
      failed += outcome.error.has_value() ? 1 : 0;
      if (editor.calls <= k) {  // no call was left to fail
        ASSERT_FALSE(outcome.error);
        ASSERT_EQ(outcome.report.count(Action::take), static_cast<std::int64_t>(layers));
        break;
      }
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(undone > 0, regular == Regular::yes) << "an OPTIONAL node is undone alone, a REQUIRED one fails the pass";
}

TEST_P(Faults, AtEveryCallback) {
  const auto [layers, regular] = GetParam();
  for (const char* which : {"plan", "regular", "lower"}) {
    for (const Fault fault : faults) {
      for (std::size_t k = 0; k < layers; ++k) {
        const auto graph = graph_of(layers);
        const std::string before = graph->dump();
        Ready ready(*graph, "h200", true);
        std::size_t calls = 0;
        const auto fails = [&](const char* here) -> Status {
          if (std::string_view(here) != which) return {};
          return calls++ == k ? raise(fault) : Status();
        };
        Planner planner = conv_planner(*graph, ready.decider);
        planner.plan = [&, inner = planner.plan](const GraphEditor& e, Node n) -> Result<NodePlan> {
          SL_TRY(fails("plan"));
          return inner(e, n);
        };
        planner.lower = [&, inner = planner.lower](const GraphEditor& e, Node n, const NodePlan& p) -> Result<NewNode> {
          SL_TRY(fails("lower"));
          return inner(e, n, p);
        };
        ready.options.regular = [&, answer = regular](const GraphEditor&, Node, const NodePlan&) -> Result<Regular> {
          SL_TRY(fails("regular"));
          return answer;
        };
        PlannerRegistry planners;
        ASSERT_TRUE(planners.add("Conv", planner).ok());
        ready.options.planners = &planners;
        const Outcome outcome = replace(*graph, ready.options);
        ASSERT_NO_FATAL_FAILURE(check(*graph, before, outcome, layers)) << which << " " << k;
        const bool lowering = std::string_view(which) == "lower";
        EXPECT_EQ(outcome.error.has_value(), !lowering || regular == Regular::no);
        if (!outcome.error) {
          ASSERT_EQ(outcome.report.count(Action::undone), 1);
          EXPECT_NE(outcome.report.warnings[0].find("conv" + std::to_string(k)), std::string::npos);
          EXPECT_NE(outcome.report.warnings[0].find(outcome.report.nodes[k].signature), std::string::npos);
        } else {
          EXPECT_NE(outcome.error->message.find("conv" + std::to_string(k)), std::string::npos);
          EXPECT_EQ(outcome.error->state, lowering && k > 0 ? GraphState::restored : GraphState::untouched);
          if (lowering) {
            EXPECT_EQ(outcome.error->failures.at(0).name, "conv" + std::to_string(k));
          }
        }
      }
    }
  }
}

TEST_P(Faults, AtEveryAllocation) {
  const auto [layers, regular] = GetParam();
  const auto warm = graph_of(2);
  Ready first(*warm, "h200", true);
  const auto decider = first.decider;  // it remembers: deciding is another room's
  first.options.dry_run = true;
  ASSERT_FALSE(replace(*warm, first.options).error);
  for (const bool for_good : {false, true}) {
    for (std::int64_t k = 0;; ++k) {
      const auto graph = graph_of(layers);
      const std::string before = graph->dump();
      Ready ready(*graph, "h200", true);
      ready.options.regular = all(regular);
      PlannerRegistry planners;
      ASSERT_TRUE(planners.add("Conv", conv_planner(*graph, decider)).ok());
      ready.options.planners = &planners;
      bool failed = false;
      const Outcome outcome = [&] {
        const FailingNew failing(k, for_good);
        Outcome result = replace(*graph, ready.options);
        failed = failing.failed();
        return result;
      }();
      ASSERT_NO_FATAL_FAILURE(check(*graph, before, outcome, layers)) << "allocation " << k;
      if (outcome.error) {
        ASSERT_EQ(outcome.error->code, Code::out_of_memory) << outcome.error->message;
      }
      if (!failed) break;
    }
  }
}

TEST_P(Faults, AFailingUndoIsNeverHidden) {
  const auto [layers, regular] = GetParam();
  for (const Fault fault : faults) {
    for (std::int64_t k = 0;; ++k) {
      const auto graph = graph_of(layers);
      Ready ready(*graph, "h200", true);
      ready.options.regular = all(regular);
      FaultyEditor editor(*graph);
      editor.fail_commit = true;  // every edit must be undone
      editor.fail_undo_at = k;
      editor.fault = fault;
      const std::string before = graph->dump();
      const Outcome outcome = replace(editor, ready.options);
      ASSERT_TRUE(outcome.error);
      if (editor.undos <= k) {
        EXPECT_EQ(outcome.error->state, GraphState::restored);
        EXPECT_EQ(outcome.error->code, Code::environment);
        EXPECT_EQ(graph->dump(), before);
        break;
      }
      EXPECT_EQ(outcome.error->state, GraphState::damaged);
      EXPECT_EQ(outcome.error->code, Code::internal);
      EXPECT_EQ(editor.undos, k + 1) << "nothing is undone on top of a failed undo";
      EXPECT_NE(outcome.error->undo_error.find("undoing edit"), std::string::npos);
      EXPECT_NE(outcome.error->message.find("damaged"), std::string::npos);
      EXPECT_NE(outcome.error->message.find("disk full"), std::string::npos) << "the first cause is still there";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(One, Faults, testing::Values(Run{1, Regular::yes}, Run{1, Regular::no}));
INSTANTIATE_TEST_SUITE_P(Many, Faults, testing::Values(Run{5, Regular::yes}, Run{5, Regular::no}));

TEST(Faults, AFailingUndoOfAnOptionalNodeIsReportedToo) {
  const auto graph = graph_of(3);
  Ready ready(*graph, "h200", true);
  Planner planner = conv_planner(*graph, ready.decider);
  planner.lower = [inner = planner.lower](const GraphEditor& e, Node n, const NodePlan& p) -> Result<NewNode> {
    SL_ASSIGN(NewNode made, inner(e, n, p));
    NodeView view;
    SL_TRY(e.view(n, view));
    if (view.name == "conv1") made.replaces = {no_value};  // erasing will fail: its output is still used
    return made;
  };
  PlannerRegistry planners;
  ASSERT_TRUE(planners.add("Conv", planner).ok());
  ready.options.planners = &planners;
  FaultyEditor editor(*graph);
  editor.fail_undo_at = 0;
  const Outcome outcome = replace(editor, ready.options);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->state, GraphState::damaged);
  EXPECT_NE(outcome.error->message.find("must not be used"), std::string::npos);
  EXPECT_NE(outcome.error->message.find("conv1"), std::string::npos);
  EXPECT_NE(outcome.error->message.find("is still used"), std::string::npos) << "the first cause is still there";
}

TEST(Faults, AWrongLoweringOfOneNodeLeavesTheOthersReplaced) {
  const auto graph = graph_of(4);
  const std::string before = graph->dump();
  Ready ready(*graph, "h200", true);
  Planner planner = conv_planner(*graph, ready.decider);
  planner.lower = [inner = planner.lower](const GraphEditor& e, Node n, const NodePlan& p) -> Result<NewNode> {
    SL_ASSIGN(NewNode made, inner(e, n, p));
    if (made.name == "conv2") made.inputs.push_back(Value{123456});
    return made;
  };
  PlannerRegistry planners;
  ASSERT_TRUE(planners.add("Conv", planner).ok());
  ready.options.planners = &planners;
  const Outcome outcome = replace(*graph, ready.options);
  ASSERT_NO_FATAL_FAILURE(check(*graph, before, outcome, 4));
  EXPECT_EQ(outcome.report.count(Action::take), 3);
  EXPECT_EQ(outcome.report.nodes[2].action, Action::undone);
  EXPECT_NE(outcome.report.warnings.at(0).find("123456"), std::string::npos);
}

}  // namespace
}  // namespace sl::test
