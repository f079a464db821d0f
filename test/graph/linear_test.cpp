// The pass is linear: 100,000 nodes with 10,000 convolutions in at most two seconds, little of it spent on the undo
// log.
#include <gtest/gtest.h>

#include <ctime>

#include "fixture.hpp"

namespace sl::test {
namespace {

/// 10 nodes a layer: a convolution, Relu, Add, and seven that nobody plans. `distinct` convolutions differ in height.
std::unique_ptr<MemoryGraph> make_large(std::size_t layers, std::size_t distinct) {
  auto graph = std::make_unique<MemoryGraph>();
  Value x = graph->add_value("input");
  const Value w = graph->add_value("w", "shared");
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string size = std::to_string(8 + i % distinct);
    const Node conv =
        graph->add_node("Conv", "conv" + std::to_string(i), {x, w}, {"y" + std::to_string(i)},
                        {problem_attribute("g144mb1ic144ih" + size + "iw56oc144oh" + size + "ow56kh3kw3ph1pw1")});
    x = graph->output(conv, 0);
    for (int j = 0; j < 9; ++j) {
      const Node node = graph->add_node(j == 0 ? "Relu" : "Add", "", {x}, {""});
      x = graph->output(node, 0);
    }
  }
  graph->add_output(x);
  return graph;
}

double seconds_of(std::size_t layers, std::size_t distinct, bool fail_commit, Report& report) {
  const auto graph = make_large(layers, distinct);
  Ready ready(*graph, "h200", true);
  FaultyEditor editor(*graph);
  editor.fail_commit = fail_commit;
  const std::clock_t start = std::clock();  // of this process: other work on the machine does not count
  Outcome outcome = replace(editor, ready.options);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(outcome.error.has_value(), fail_commit) << (outcome.error ? outcome.error->message : "");
  EXPECT_EQ(outcome.report.graph_nodes, static_cast<std::int64_t>(10 * layers));
  EXPECT_EQ(outcome.report.count(Action::take), static_cast<std::int64_t>(layers));
  report = std::move(outcome.report);
  return seconds;
}

void print(const char* what, double seconds, const Report& report) {
  std::printf("%-46s %6.3f s: plan %6.3f, rewrite %6.3f, of it undo log %6.3f\n", what, seconds, report.times.plan,
              report.times.rewrite, report.times.undo_log);
}

TEST(Linear, AHundredThousandNodes) {
  Report report;
  const double repeated = seconds_of(10'000, 64, false, report);
  print("100000 nodes, 10000 convolutions, 64 distinct", repeated, report);
  EXPECT_LT(report.times.undo_log, 0.5 * (report.times.plan + report.times.rewrite));
  const double all_distinct = seconds_of(10'000, 10'000, false, report);
  print("the same, 10000 distinct", all_distinct, report);
  EXPECT_LT(report.times.undo_log, 0.5 * (report.times.plan + report.times.rewrite));
  const double undone = seconds_of(10'000, 64, true, report);
  print("all rewritten, then all undone", undone, report);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(repeated, 2.0);
  EXPECT_LT(all_distinct, 2.0);
  EXPECT_LT(undone, 2.0);
#endif
}

}  // namespace
}  // namespace sl::test
