// Planned replacement through the C ABI and its C++ wrapper, over the in-memory graph.
#include <gtest/gtest.h>

#include <stdexcept>

#include "graph/memory_graph.hpp"
#include "sluice/sluice.hpp"

namespace sl::test {
namespace {

using graph::MemoryGraph;
using graph::Node;
using graph::Value;

sluice_status code(const Status& status) {
  return status.ok()
             ? SLUICE_OK
             : sluice_graph_error(static_cast<sluice_status>(status.error().code), status.error().message.c_str());
}

graph::Use use_of(const sluice_use& use) {
  return {use.graph_output != 0 ? graph::Use::Kind::graph_output : graph::Use::Kind::operand, Node{use.user},
          use.index};
}

/// The in-memory graph as a user's own; fails call number `fail_at`.
class UserGraph : public sluice::GraphEditor {
 public:
  explicit UserGraph(MemoryGraph& graph) : graph_(graph) {}
  int fail_at = -1, calls = 0;
  bool throws = false;

  sluice_status nodes(std::vector<sluice_node>& out) override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    std::vector<Node> nodes;
    const sluice_status status = code(graph_.nodes(nodes));
    for (const Node node : nodes) out.push_back(static_cast<std::uint64_t>(node));
    return status;
  }
  const char* op(sluice_node node) override { return text(&graph::NodeView::op, node); }
  const char* name(sluice_node node) override { return text(&graph::NodeView::name, node); }
  sluice_status inputs(sluice_node node, std::vector<sluice_value>& out) override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    for (const Value value : view(node).inputs) out.push_back(static_cast<std::uint64_t>(value));
    return SLUICE_OK;
  }
  sluice_status outputs(sluice_node node, std::vector<sluice_value>& out) override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    for (const Value value : view(node).outputs) out.push_back(static_cast<std::uint64_t>(value));
    return SLUICE_OK;
  }
  sluice_status uses(sluice_value value, std::vector<sluice_use>& out) override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    std::vector<graph::Use> uses;
    const sluice_status status = code(graph_.uses(Value{value}, uses));
    for (const graph::Use& use : uses)
      out.push_back(
          {use.kind == graph::Use::Kind::graph_output ? 1 : 0, static_cast<std::uint64_t>(use.user), use.index});
    return status;
  }
  sluice_status insert(sluice_node before, const sluice_new_node& node, sluice_node& inserted) override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    graph::NewNode made;
    made.op = node.op;
    made.name = node.name;
    for (std::size_t i = 0; i < node.input_count; ++i) made.inputs.push_back(Value{node.inputs[i]});
    for (std::size_t i = 0; i < node.replace_count; ++i) made.replaces.push_back(Value{node.replaces[i]});
    for (std::size_t i = 0; i < node.attribute_count; ++i) {
      const sluice_attribute& a = node.attributes[i];
      made.attributes.push_back(a.kind == SLUICE_ATTRIBUTE_TEXT ? graph::Attribute::of(a.name, std::string(a.text))
                                                                : graph::Attribute::of(a.name, a.integer));
    }
    const Result<Node> at = graph_.insert(Node{before}, made);
    if (!at.ok()) return code(at.error());
    inserted = static_cast<std::uint64_t>(*at);
    return SLUICE_OK;
  }
  sluice_status rewire(const sluice_use& use, sluice_value from, sluice_value to, std::uint64_t& place) override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    const Result<graph::Place> at = graph_.rewire(use_of(use), Value{from}, Value{to});
    if (!at.ok()) return code(at.error());
    place = *at;
    return SLUICE_OK;
  }
  sluice_status erase(sluice_node node) override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    return code(graph_.erase(Node{node}));
  }
  sluice_status undo_insert(sluice_node node) override { return code(graph_.undo_insert(Node{node})); }
  sluice_status undo_rewire(const sluice_use& use, sluice_value from, sluice_value to, std::uint64_t place) override {
    return code(graph_.undo_rewire(use_of(use), Value{from}, Value{to}, place));
  }
  sluice_status undo_erase(sluice_node node) override { return code(graph_.undo_erase(Node{node})); }
  sluice_status commit() override {
    if (const sluice_status status = step(); status != SLUICE_OK) return status;
    return code(graph_.commit());
  }

 private:
  const graph::NodeView& view(sluice_node node) {
    if (!graph_.view(Node{node}, view_).ok()) throw std::out_of_range("no such node");
    return view_;
  }
  const char* text(std::string graph::NodeView::*field, sluice_node node) {
    return step() == SLUICE_OK ? (view(node).*field).c_str() : nullptr;
  }
  sluice_status step() {
    if (calls++ != fail_at) return SLUICE_OK;
    if (throws) throw std::runtime_error("thrown by a callback");
    return sluice_graph_error(SLUICE_DEVICE_ERROR, "said by a callback");
  }
  MemoryGraph& graph_;
  graph::NodeView view_;
};

/// Every "Conv" is a depthwise 3x3 of `channels`.
class UserConv : public sluice::ConvPlanner {
 public:
  explicit UserConv(std::int64_t channels = 144) : ConvPlanner("Conv"), channels_(channels) {}
  sluice_status plan(sluice_node, sluice::NodePlan& plan) override {
    const std::int64_t c = channels_;
    sluice::Conv2d call;
    call.x(nullptr, SLUICE_F16, {32, c, 56, 56})
        .w(nullptr, SLUICE_F16, {c, 1, 3, 3})
        .y(nullptr, SLUICE_F16, {32, c, 56, 56});
    call.groups(c).pad(1, 1, 1, 1);
    return plan.conv2d(call).code();
  }

 private:
  std::int64_t channels_;
};

std::unique_ptr<MemoryGraph> make_graph(int layers = 3) {
  auto graph = std::make_unique<MemoryGraph>();
  Value x = graph->add_value("x");
  const Value w = graph->add_value("w", "data");
  for (int i = 0; i < layers; ++i) {
    const std::string id = std::to_string(i);
    const Node conv = graph->add_node("Conv", "conv" + id, {x, w}, {"y" + id});
    const Node relu = graph->add_node("Relu", "relu" + id, {graph->output(conv, 0)}, {"r" + id});
    if (i == 1) graph->add_output(graph->output(conv, 0));
    x = graph->output(relu, 0);
  }
  graph->add_output(x);
  return graph;
}

TEST(CapiGraph, ReplacesWhatTheTableTakes) {
  const auto graph = make_graph();
  UserGraph editor(*graph);
  const UserConv conv;
  std::string report;
  const sluice::Status status = sluice::replace(editor, sluice::ReplaceOptions().device("h200").planner(conv), &report);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NE(report.find("\"take\": 3"), std::string::npos) << report;
  const std::string dump = graph->dump();
  EXPECT_EQ(dump.find("Conv \""), std::string::npos);
  EXPECT_NE(dump.find("ai.sluice::Conv2d \"conv2\""), std::string::npos) << dump;
  EXPECT_NE(dump.find("version="), std::string::npos);
  EXPECT_NE(dump.find("g144mb32ic144ih56oc144oh56kh3ph1 dt=f16"), std::string::npos) << dump;
  EXPECT_TRUE(graph->check().ok());
}

TEST(CapiGraph, ADryRunEditsNothing) {
  const auto graph = make_graph();
  const std::string before = graph->dump();
  UserGraph editor(*graph);
  const UserConv conv;
  std::string report;
  ASSERT_TRUE(sluice::replace(editor, sluice::ReplaceOptions().device("h200").dry_run().planner(conv), &report));
  EXPECT_NE(report.find("\"take\": 3"), std::string::npos);
  EXPECT_EQ(graph->dump(), before);
}

TEST(CapiGraph, RequiredOnADeviceThatCannotFailsUntouchedAndNamesAll) {
  const auto graph = make_graph();
  const std::string before = graph->dump();
  UserGraph editor(*graph);
  const UserConv conv;
  sluice::ReplaceOptions options;
  options.device("mi300x").planner(conv).regular([](sluice_node, const char*) { return false; });
  std::string report;
  const sluice::Status status = sluice::replace(editor, options, &report);
  EXPECT_EQ(status.code(), SLUICE_UNSUPPORTED);
  const std::string message = status.message();
  for (const char* part : {"conv0", "conv1", "conv2", "g144mb32", "rocm"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_NE(report.find("\"graph\": \"untouched\""), std::string::npos) << report;
  EXPECT_EQ(graph->dump(), before);
}

TEST(CapiGraph, AFailingCallbackIsUndoneAndNamed) {
  const UserConv conv;
  for (const bool required : {false, true}) {
    for (const bool throws : {false, true}) {
      for (int k = 0;; ++k) {
        const auto graph = make_graph();
        const std::string before = graph->dump();
        UserGraph editor(*graph);
        editor.fail_at = k;
        editor.throws = throws;
        sluice::ReplaceOptions options;
        options.device("h200").planner(conv).regular([&](sluice_node, const char*) { return !required; });
        std::string report;
        const sluice::Status status = sluice::replace(editor, options, &report);
        ASSERT_TRUE(graph->check().ok());
        if (editor.calls <= k) {
          ASSERT_TRUE(status.ok()) << status.message();
          break;
        }
        const std::string said = throws ? "thrown by a callback" : "said by a callback";
        if (!status.ok()) {
          ASSERT_TRUE(status.code() == SLUICE_INTERNAL || (!throws && status.code() == SLUICE_DEVICE_ERROR));
          ASSERT_NE(std::string(status.message()).find(said), std::string::npos) << status.message();
          ASSERT_EQ(graph->dump(), before);
        } else {
          ASSERT_FALSE(required);
          ASSERT_NE(report.find(said), std::string::npos) << report;
          ASSERT_NE(report.find("\"undone\": 1"), std::string::npos) << report;
        }
      }
    }
  }
}

/// An op of the user's own, with its own kernels and its own node.
class UserBlur : public sluice::Planner {
 public:
  explicit UserBlur(std::int32_t min_capability) : Planner("Relu", min_capability) {}
  sluice_status plan(sluice_node, sluice::NodePlan& plan) override {
    return plan.set("Relu f16", true, true, "always", 2.0).code();
  }
  sluice_status lower(sluice_node, sluice_new_node& node) override {
    attribute_.name = "slopes";
    attribute_.kind = SLUICE_ATTRIBUTE_REALS;
    attribute_.reals = slopes_;
    attribute_.count = 2;
    node.op = "user::Relu";
    node.attributes = &attribute_;
    node.attribute_count = 1;
    return SLUICE_OK;
  }

 private:
  sluice_attribute attribute_{};
  double slopes_[2] = {0.0, 1.0};
};

TEST(CapiGraph, OpsOfUsersHavePlannersToo) {
  for (const auto& [needs, taken] : {std::pair(90, true), std::pair(100, false)}) {
    const auto graph = make_graph();
    UserGraph editor(*graph);
    const UserBlur blur(needs);
    const sluice::Status status = sluice::replace(editor, sluice::ReplaceOptions().device("h200").planner(blur));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(graph->dump().find("user::Relu") != std::string::npos, taken);
  }
}

TEST(CapiGraph, WrongArgumentsAreInvalidAndSayWhat) {
  const auto graph = make_graph();
  UserGraph user(*graph);
  const UserConv conv;
  const sluice_graph_editor good = user.raw();
  sluice::ReplaceOptions options;
  options.device("h200").planner(conv);
  const auto expect = [&](const sluice_graph_editor* editor, const sluice_replace_options* given, const char* part) {
    char* report = reinterpret_cast<char*>(1);
    EXPECT_EQ(sluice_graph_replace(editor, given, &report), SLUICE_INVALID);
    EXPECT_NE(std::string(sluice_last_error()).find(part), std::string::npos) << sluice_last_error();
    EXPECT_EQ(report, nullptr);
  };
  sluice_replace_options raw = options.raw();
  expect(nullptr, &raw, "editor = NULL");
  expect(&good, nullptr, "options = NULL");
  sluice_graph_editor editor = good;
  editor.undo_rewire = nullptr;
  expect(&editor, &raw, "undo_rewire");
  editor = good;
  editor.size = 8;
  expect(&editor, &raw, "sluice_graph_editor.size = 8");
  raw.device = nullptr;
  expect(&good, &raw, "device = NULL");
  raw.device = "h2000";
  expect(&good, &raw, "h2000");
  raw.device = "host:x";
  expect(&good, &raw, "host:x");
  raw = options.raw();
  raw.planners = nullptr;
  expect(&good, &raw, "planners = NULL");
  raw = options.raw();
  sluice_planner planner = *conv.raw();
  planner.op = nullptr;
  const sluice_planner* planners[] = {&planner};
  raw.planners = planners;
  expect(&good, &raw, "op = NULL");
  raw = options.raw();
  raw.regular = [](void*, sluice_node, const char*) { return std::int32_t{-1}; };
  EXPECT_EQ(sluice_graph_replace(&good, &raw, nullptr), SLUICE_INTERNAL);
  const UserConv wrong(-1);
  const sluice::Status status = sluice::replace(user, sluice::ReplaceOptions().device("h200").planner(wrong));
  EXPECT_EQ(status.code(), SLUICE_INVALID) << "the planner's own call was refused";
  EXPECT_EQ(sluice_id_list_add(nullptr, 1), SLUICE_INVALID);
  EXPECT_EQ(sluice_use_list_add(nullptr, nullptr), SLUICE_INVALID);
  EXPECT_EQ(sluice_node_plan_set(nullptr, "", 1, 1, "", 0, nullptr, 0), SLUICE_INVALID);
}

}  // namespace
}  // namespace sl::test
