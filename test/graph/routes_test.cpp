// Every route through the pass.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace sl::test {
namespace {

/// conv1 (graph output as well) and conv2 -> Relu; the others' problems are as given.
std::unique_ptr<MemoryGraph> graph_of(const std::string& problem, std::size_t layers = 3) {
  return make_chain(layers, [problem](std::size_t) { return problem; });
}

RegularPredicate regular(Regular answer) {
  return [answer](const GraphEditor&, Node, const NodePlan&) -> Result<Regular> { return answer; };
}

std::size_t count_op(const MemoryGraph& graph, std::string_view op) {
  std::vector<Node> nodes;
  EXPECT_TRUE(graph.nodes(nodes).ok());
  return static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](Node node) { return *graph.op(node) == op; }));
}

void expect_whole(const MemoryGraph& graph) {
  const Status status = graph.check();
  EXPECT_TRUE(status.ok()) << status.error().message << "\n" << graph.dump();
}

TEST(Routes, OpsWithoutAPlannerAreLeftAlone) {
  const auto graph = graph_of(taken_text);
  const std::string before = graph->dump();
  Ready ready(*graph);
  const PlannerRegistry none;
  ready.options.planners = &none;
  const Outcome outcome = replace(*graph, ready.options);
  EXPECT_FALSE(outcome.error);
  EXPECT_TRUE(outcome.report.nodes.empty());
  EXPECT_EQ(outcome.report.graph_nodes, 9);
  EXPECT_EQ(graph->dump(), before);
}

TEST(Routes, UnsupportedIsLeftAloneWithItsReason) {
  const auto graph = graph_of(impossible_text);
  const std::string before = graph->dump();
  const Outcome outcome = replace(*graph, Ready(*graph).options);
  ASSERT_FALSE(outcome.error);
  EXPECT_EQ(outcome.report.count(Verdict::unsupported), 3);
  EXPECT_EQ(outcome.report.count(Action::keep), 3);
  EXPECT_NE(outcome.report.nodes[0].reason.find("no schedule can run"), std::string::npos);
  EXPECT_NE(outcome.report.nodes[0].signature.find("Conv "), std::string::npos);
  EXPECT_NE(outcome.report.nodes[0].signature.find("iw600000000"), std::string::npos);
  EXPECT_EQ(graph->dump(), before);
}

TEST(Routes, OptionalIsKeptWhereNoRuleTakesIt) {
  const auto graph = graph_of(kept_text);
  const std::string before = graph->dump();
  const Outcome outcome = replace(*graph, Ready(*graph).options);
  ASSERT_FALSE(outcome.error);
  EXPECT_EQ(outcome.report.count(Verdict::optional), 3);
  EXPECT_EQ(outcome.report.count(Action::keep), 3);
  EXPECT_NE(outcome.report.nodes[0].rule.find("keep"), std::string::npos);
  EXPECT_EQ(graph->dump(), before);
}

TEST(Routes, OptionalIsTakenWhereARuleTakesIt) {
  const auto graph = graph_of(taken_text);
  const Outcome outcome = replace(*graph, Ready(*graph).options);
  ASSERT_FALSE(outcome.error) << outcome.error->message;
  expect_whole(*graph);
  EXPECT_EQ(outcome.report.count(Action::take), 3);
  EXPECT_GT(outcome.report.nodes[0].speedup, 1.0);
  EXPECT_EQ(count_op(*graph, "Conv"), 0U);
  EXPECT_EQ(count_op(*graph, "ai.sluice::Conv2d"), 3U);
  EXPECT_EQ(count_op(*graph, "Relu"), 3U) << "the table has no rule with an activation";
  EXPECT_NE(graph->dump().find("\"y0\""), std::string::npos) << "an output of the graph keeps its name";
  EXPECT_EQ(graph->dump().find("\"y0'\""), std::string::npos);
}

TEST(Routes, AnActivationIsAbsorbedOnlyWhereNobodyElseReadsBetween) {
  const auto graph = graph_of(taken_text);
  const Outcome outcome = replace(*graph, Ready(*graph, "h200", true).options);
  ASSERT_FALSE(outcome.error) << outcome.error->message;
  expect_whole(*graph);
  EXPECT_EQ(outcome.report.nodes[0].absorbed, 0) << "y0 is an output of the graph";
  EXPECT_EQ(outcome.report.nodes[1].absorbed, 1);
  EXPECT_EQ(count_op(*graph, "Relu"), 1U);
  EXPECT_EQ(count_op(*graph, "Add"), 3U);
}

TEST(Routes, RequiredIsTakenWhateverRoutingSays) {
  const auto graph = graph_of(kept_text);
  Ready ready(*graph);
  ready.options.regular = regular(Regular::no);
  const Outcome outcome = replace(*graph, ready.options);
  ASSERT_FALSE(outcome.error) << outcome.error->message;
  EXPECT_EQ(outcome.report.count(Verdict::required), 3);
  EXPECT_EQ(outcome.report.count(Action::take), 3);
  EXPECT_EQ(count_op(*graph, "Conv"), 0U);
}

TEST(Routes, RequiredThatNoKernelServesFailsBeforeAnyEditAndNamesAll) {
  const auto graph = make_chain(5, [](std::size_t i) { return i % 2 == 0 ? taken_text : impossible_text; });
  const std::string before = graph->dump();
  Ready ready(*graph);
  ready.options.regular = regular(Regular::no);
  FaultyEditor editor(*graph);
  const Outcome outcome = replace(editor, ready.options);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, Code::unsupported);
  EXPECT_EQ(outcome.error->state, GraphState::untouched);
  ASSERT_EQ(outcome.error->failures.size(), 2U);
  for (const auto& [failure, name] :
       {std::pair(outcome.error->failures[0], "conv1"), std::pair(outcome.error->failures[1], "conv3")}) {
    EXPECT_EQ(failure.name, name);
    EXPECT_NE(outcome.error->message.find(failure.signature), std::string::npos);
    EXPECT_NE(outcome.error->message.find(failure.reason), std::string::npos);
  }
  EXPECT_EQ(graph->dump(), before);
  EXPECT_EQ(editor.undos, 0);
}

TEST(Routes, DryRunReportsTheSameAndEditsNothing) {
  const auto graph = graph_of(taken_text);
  const std::string before = graph->dump();
  Ready ready(*graph);
  ready.options.dry_run = true;
  const Outcome dry = replace(*graph, ready.options);
  EXPECT_EQ(graph->dump(), before);
  ready.options.dry_run = false;
  const Outcome wet = replace(*graph, ready.options);
  EXPECT_EQ(dry.report.count(Action::take), wet.report.count(Action::take));
}

TEST(Routes, ASecondPassFindsNothingToDo) {
  const auto graph = graph_of(taken_text);
  ASSERT_FALSE(replace(*graph, Ready(*graph).options).error);
  const std::string once = graph->dump();
  const Outcome again = replace(*graph, Ready(*graph).options);
  EXPECT_TRUE(again.report.nodes.empty());
  EXPECT_EQ(graph->dump(), once);
}

TEST(Routes, TwoPlannersCannotReplaceOneNodeTwice) {
  const auto graph = graph_of(taken_text, 2);
  Ready ready(*graph, "h200", true);
  Planner relu = conv_planner(*graph, ready.decider);  // its plan is replaced; lowering is the same
  relu.plan = [](const GraphEditor&, Node) -> Result<NodePlan> {
    NodePlan plan;
    plan.signature = "Relu";
    plan.servable = plan.take = true;
    return plan;
  };
  ASSERT_TRUE(ready.planners.add("Relu", relu).ok());
  EXPECT_FALSE(ready.planners.add("Relu", relu).ok()) << "one planner an op";
  const Outcome outcome = replace(*graph, ready.options);
  ASSERT_FALSE(outcome.error) << outcome.error->message;
  expect_whole(*graph);
  EXPECT_EQ(outcome.report.count(Action::absorbed), 1);
  EXPECT_EQ(outcome.report.count(Action::take), 3);
  EXPECT_EQ(count_op(*graph, "Relu"), 0U);
}

TEST(Routes, RegistryRefusesWhatCannotWork) {
  PlannerRegistry planners;
  EXPECT_FALSE(planners.add("", Planner()).ok());
  EXPECT_FALSE(planners.add("Conv", Planner()).ok());
  EXPECT_EQ(planners.find("Conv"), nullptr);
  MemoryGraph graph;
  PassOptions options;
  const Outcome outcome = replace(graph, options);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, Code::invalid);
}

TEST(Routes, TheReportIsJson) {
  const auto graph = make_chain(4, [](std::size_t i) { return i == 0 ? impossible_text : taken_text; });
  Ready ready(*graph);
  const Outcome fine = replace(*graph, ready.options);
  auto json = nlohmann::json::parse(to_json(fine.report, nullptr));
  EXPECT_EQ(json["device"], "NVIDIA H200");
  EXPECT_EQ(json["verdicts"]["OPTIONAL"], 3);
  EXPECT_EQ(json["actions"]["take"], 3);
  EXPECT_TRUE(json["error"].is_null());
  const auto broken = graph_of(impossible_text);
  Ready required(*broken);
  required.options.regular = regular(Regular::no);
  const Outcome failed = replace(*broken, required.options);
  ASSERT_TRUE(failed.error);
  json = nlohmann::json::parse(to_json(failed.report, &*failed.error));
  EXPECT_EQ(json["error"]["graph"], "untouched");
  EXPECT_EQ(json["error"]["failures"].size(), 3U);
}

}  // namespace
}  // namespace sl::test
