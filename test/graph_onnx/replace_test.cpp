// What the model looks like after: folding, nested graphs, outputs, shared weights, attributes, faults.
#include <gtest/gtest.h>

#include "graph/fixture.hpp"
#include "graph_onnx/planner.hpp"
#include "models.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

constexpr const char* head = "g (float[1,8,6,6] x, float[8,1,3,3] w) => (float[1,8,6,6] z) { ";
constexpr const char* conv = "y = Conv<group=8, pads=[1,1,1,1]>(x, w) ";

struct Fold {
  const char* name;
  const char* tail;  ///< what follows the convolution
  const char* want;  ///< the nodes after
  const char* activation;
};

const Fold folds[] = {
    {"relu", "z = Relu(y)", "ai.sluice::Conv2d(x,w)->z", "relu"},
    {"leaky", "z = LeakyRelu<alpha=0.25>(y)", "ai.sluice::Conv2d(x,w)->z", "leaky_relu"},
    {"hard_swish", "z = HardSwish(y)", "ai.sluice::Conv2d(x,w)->z", "hard_swish"},
    {"silu", "s = Sigmoid(y) z = Mul(y, s)", "ai.sluice::Conv2d(x,w)->z", "silu"},
    {"silu_swapped", "s = Sigmoid(y) z = Mul(s, y)", "ai.sluice::Conv2d(x,w)->z", "silu"},
    {"hard_sigmoid", "s = HardSigmoid<alpha=0.16666667, beta=0.5>(y) z = Mul(s, y)", "ai.sluice::Conv2d(x,w)->z",
     "hard_swish"},
    {"hard_sigmoid_other", "s = HardSigmoid(y) z = Mul(s, y)",
     "ai.sluice::Conv2d(x,w)->y; HardSigmoid(y)->s; Mul(s,y)->z", "none"},
    {"clip_open", "z = Clip(y)", "ai.sluice::Conv2d(x,w)->z", "clip"},
    {"clip_constant", "c = Constant<value_float=6.0>() z = Clip(y, , c)",
     "ai.sluice::Conv2d(x,w)->y; Constant()->c; Clip(y,,c)->z", "none"},
    {"clip_computed", "c = ReduceMax<keepdims=0>(x) z = Clip(y, c)",
     "ai.sluice::Conv2d(x,w)->y; ReduceMax(x)->c; Clip(y,c)->z", "none"},
    {"two_readers", "a = Relu(y) z = Add(a, y)", "ai.sluice::Conv2d(x,w)->y; Relu(y)->a; Add(a,y)->z", "none"},
    {"gate_read_twice", "s = Sigmoid(y) a = Mul(y, s) z = Add(a, s)",
     "ai.sluice::Conv2d(x,w)->y; Sigmoid(y)->s; Mul(y,s)->a; Add(a,s)->z", "none"},
    {"other_op", "z = Tanh(y)", "ai.sluice::Conv2d(x,w)->y; Tanh(y)->z", "none"},
    {"far_away", "q = Neg(x) z = Relu(y)", "Neg(x)->q; ai.sluice::Conv2d(x,w)->z", "relu"},
};

class Folding : public testing::TestWithParam<Fold> {};

TEST_P(Folding, Activation) {
  const Fold& row = GetParam();
  const Replaced replaced = replace_in(model_of(std::string(head) + conv + row.tail + " }"));
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(text_of(replaced.model.graph()), row.want);
  for (const onnx::NodeProto& node : replaced.model.graph().node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == "activation") {
        EXPECT_EQ(attribute.s(), row.activation);
      }
      if (attribute.name() == "activation_alpha" && std::string(row.activation) == "leaky_relu") {
        EXPECT_EQ(attribute.f(), 0.25F);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Folding, testing::ValuesIn(folds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OnnxReplace, ClipWithInitialisersIsFoldedAndLeavesNoOrphans) {
  auto model = model_of(std::string(head) + conv + "z = Clip(y, lo, hi) }", 17, 8);
  add_scalar(model, "lo", 0.0F);
  add_scalar(model, "hi", 6.0F);
  add_scalar(model, "unused before", 1.0F);
  auto* info = model.mutable_graph()->add_value_info();
  info->set_name("y");
  for (const char* name : {"y", "w"}) model.mutable_graph()->add_quantization_annotation()->set_tensor_name(name);
  const Replaced replaced = replace_in(model);
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(text_of(replaced.model.graph()), "ai.sluice::Conv2d(x,w)->z");
  ASSERT_EQ(replaced.model.graph().initializer_size(), 1) << "what was there without a reader stays";
  EXPECT_EQ(replaced.model.graph().initializer(0).name(), "unused before");
  EXPECT_EQ(replaced.model.graph().value_info_size(), 0);
  ASSERT_EQ(replaced.model.graph().quantization_annotation_size(), 1);
  EXPECT_EQ(replaced.model.graph().quantization_annotation(0).tensor_name(), "w");
}

TEST(OnnxReplace, AnInputKeepsItsDefault) {
  // Before IR version 4 every initialiser is an input too.
  auto model = model_of("g (float[1,8,6,6] x, float[8,1,3,3] w, float lo, float hi) => (float[1,8,6,6] z) { " +
                            std::string(conv) + "z = Clip(y, lo, hi) }",
                        17, 3);
  add_scalar(model, "lo", 0.0F);
  add_scalar(model, "hi", 6.0F);
  const Replaced replaced = replace_in(model);
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(text_of(replaced.model.graph()), "ai.sluice::Conv2d(x,w)->z");
  EXPECT_EQ(replaced.model.graph().input_size(), 4);
  EXPECT_EQ(replaced.model.graph().initializer_size(), 2);
}

TEST(OnnxReplace, TheNewNodeHasTheOldAttributesAndWhatRebuildsThePlan) {
  auto model = model_of(std::string(head) +
                        "z = Conv<group=8, auto_pad=\"SAME_UPPER\", strides=[1,1], dilations=[1,1]>(x, w) }");
  model.mutable_graph()->mutable_node(0)->set_name("layer 1");
  const Replaced replaced = replace_in(model);
  ASSERT_FALSE(replaced.outcome.error);
  const onnx::NodeProto& node = replaced.model.graph().node(0);
  EXPECT_EQ(node.name(), "layer 1");
  EXPECT_EQ(node.domain(), "ai.sluice");
  EXPECT_EQ(node.op_type(), "Conv2d");
  std::string names;
  for (const onnx::AttributeProto& attribute : node.attribute()) names += attribute.name() + " ";
  EXPECT_EQ(names,
            "group auto_pad strides dilations sluice_version sluice_problem sluice_device activation activation_alpha "
            "activation_beta ");
  EXPECT_EQ(node.attribute(4).i(), 1);
  EXPECT_EQ(node.attribute(5).s(), parse("g8mb1ic8ih6oc8oh6kh3ph1").value().to_string());
  EXPECT_EQ(node.attribute(6).s(), "NVIDIA H200");
  ASSERT_EQ(replaced.model.opset_import_size(), 2);
  EXPECT_EQ(replaced.model.opset_import(1).domain(), "ai.sluice");
  EXPECT_EQ(replaced.model.producer_name(), "a test");
}

TEST(OnnxReplace, AModelThatImportsAnotherVersionIsRefusedWhole) {
  auto model = model_of(std::string(head) + conv + "z = Relu(y) }");
  auto* set = model.add_opset_import();
  set->set_domain("ai.sluice");
  set->set_version(7);
  const Replaced replaced = replace_in(model);
  ASSERT_TRUE(replaced.outcome.error);
  EXPECT_EQ(replaced.outcome.error->state, graph::GraphState::restored);
  EXPECT_NE(replaced.outcome.error->message.find("version 7"), std::string::npos);
}

TEST(OnnxReplace, GraphOutputsKeepTheirNamesAndSharedWeightsStayShared) {
  const Replaced replaced = replace_in(
      model_of("g (float[1,8,6,6] x, float[8,1,3,3] w) => (float[1,8,6,6] y, float[1,8,6,6] z) { "
               "y = Conv<group=8, pads=[1,1,1,1]>(x, w) r = Relu(y) z = Conv<group=8, pads=[1,1,1,1]>(r, w) }"));
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(text_of(replaced.model.graph()), "ai.sluice::Conv2d(x,w)->y; Relu(y)->r; ai.sluice::Conv2d(r,w)->z");
  EXPECT_EQ(replaced.model.graph().output(0).name(), "y");
}

TEST(OnnxReplace, NestedGraphsAreEditedAndWhatTheyReadStays) {
  const Replaced replaced = replace_in(model_of(
      "g (bool c, float[1,8,6,6] x, float[8,1,3,3] w) => (float[1,8,6,6] z) { "
      "y = Conv<group=8, pads=[1,1,1,1]>(x, w) r = Relu(y) "
      "z = If (c) <then_branch = t () => (float[1,8,6,6] a) { b = Conv<group=8, pads=[1,1,1,1]>(r, w) a = Relu(b) }, "
      "else_branch = e () => (float[1,8,6,6] d) { d = Neg(y) }> }"));
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(text_of(replaced.model.graph()),
            "ai.sluice::Conv2d(x,w)->y; Relu(y)->r; If(c)->z {ai.sluice::Conv2d(r,w)->a} {Neg(y)->d}")
      << "y is read in a nested graph too, so its Relu stays";
}

TEST(OnnxReplace, OrphansOfNestedNodesGoFromTheOuterGraph) {
  auto model = model_of(
      "g (bool c, float[1,8,6,6] x, float[8,1,3,3] w) => (float[1,8,6,6] z) { "
      "z = If (c) <then_branch = t () => (float[1,8,6,6] a) { b = Conv<group=8, pads=[1,1,1,1]>(x, w) "
      "a = Clip(b, lo, hi) }, else_branch = e () => (float[1,8,6,6] d) { d = Neg(x) }> }");
  add_scalar(model, "lo", 0.0F);
  add_scalar(model, "hi", 6.0F);
  const Replaced replaced = replace_in(model);
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(text_of(replaced.model.graph()), "If(c)->z {ai.sluice::Conv2d(x,w)->a} {Neg(x)->d}");
  EXPECT_EQ(replaced.model.graph().initializer_size(), 0);
}

TEST(OnnxReplace, LoopBodies) {
  const Replaced replaced = replace_in(
      model_of("g (int64 n, bool c, float[1,8,6,6] x, float[8,1,3,3] w) => (float[1,8,6,6] z) { "
               "z = Loop (n, c, x) <body = b (int64 i, bool k, float[1,8,6,6] s) => (bool k2, float[1,8,6,6] t) { "
               "k2 = Identity(k) t = Conv<group=8, pads=[1,1,1,1]>(s, w) }> }"));
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(text_of(replaced.model.graph()), "Loop(n,c,x)->z {Identity(k)->k2; ai.sluice::Conv2d(s,w)->t}");
}

TEST(OnnxReplace, NothingTakenChangesNoByte) {
  graph::OnnxOptions options = forced();
  options.target.force_take = false;
  const auto table = RoutingTable::from_json(
      R"({"schema": 1, "device": {"name": "NVIDIA H200", "capability": 90}, "rules": []})", "keeps all");
  ASSERT_TRUE(table.ok()) << table.error().message;
  options.target.table = std::make_shared<const RoutingTable>(*table);
  const auto model = model_of(std::string(head) + conv + "z = Relu(y) }");
  const Replaced replaced = replace_in(model, options);
  ASSERT_FALSE(replaced.outcome.error);
  EXPECT_EQ(replaced.outcome.report.count(graph::Action::keep), 1);
  EXPECT_EQ(replaced.model.SerializeAsString(), model.SerializeAsString());
}

TEST(OnnxReplace, TheRegularLoweringIsAskedForTheConvolutionAlone) {
  graph::OnnxOptions options = forced();
  options.regular = [](const ConvProblem* problem) {
    EXPECT_EQ(problem->to_string(), parse("g8mb1ic8ih6oc8oh6kh3ph1").value().to_string());
    return Regular::no;
  };
  const Replaced replaced = replace_in(model_of(std::string(head) + conv + "z = LeakyRelu<alpha=0.25>(y) }"), options);
  ASSERT_FALSE(replaced.outcome.error) << replaced.outcome.error->message;
  EXPECT_EQ(replaced.outcome.report.nodes.at(0).verdict, Verdict::required);
  EXPECT_EQ(text_of(replaced.model.graph()), "ai.sluice::Conv2d(x,w)->z");
}

TEST(OnnxReplace, RequiredThatCannotBeReadFailsUntouched) {
  graph::OnnxOptions options = forced();
  options.regular = [](const ConvProblem* problem) { return problem == nullptr ? Regular::no : Regular::yes; };
  const Replaced replaced = replace_in(model_of("g (double[1,8,6,6] x, double[8,1,1,1] w, float[1,8,6,6] u, "
                                                "float[8,1,1,1] v) => (y, z) { z = Conv<group=8>(u, v) "
                                                "y = Conv<group=8>(x, w) }"),
                                       options);
  ASSERT_TRUE(replaced.outcome.error);
  EXPECT_EQ(replaced.outcome.error->code, Code::unsupported);
  EXPECT_EQ(replaced.outcome.error->failures.size(), 1U);
  EXPECT_NE(replaced.outcome.error->message.find("double [1, 8, 6, 6]"), std::string::npos);
}

TEST(OnnxReplace, AFaultAtEveryCallLeavesTheModelAsTheReportSays) {
  const auto model = model_of(
      "g (bool c, float[1,8,6,6] x, float[8,1,3,3] w) => (float[1,8,6,6] z, float[1,8,6,6] y) { "
      "y = Conv<group=8, pads=[1,1,1,1]>(x, w) q = Conv<group=8, pads=[1,1,1,1]>(y, w) r = Relu(q) "
      "z = If (c) <then_branch = t () => (float[1,8,6,6] a) { b = Conv<group=8, pads=[1,1,1,1]>(r, w) a = Relu(b) }, "
      "else_branch = e () => (float[1,8,6,6] d) { d = Neg(r) }> }");
  const std::string before = model.SerializeAsString();
  for (const Regular regular : {Regular::yes, Regular::no}) {
    for (std::int64_t k = 0;; ++k) {
      onnx::ModelProto edited = model;
      auto editor = graph::OnnxEditor::open(edited, std::nullopt);
      ASSERT_TRUE(editor.ok());
      FaultyEditor faulty(**editor);
      faulty.fail_at = k;
      faulty.fault = k % 2 == 0 ? Fault::error : Fault::exception;
      graph::OnnxOptions options = forced();
      options.regular = [&](const ConvProblem*) { return regular; };
      const Outcome outcome = graph::replace_convolutions(**editor, options, &faulty);
      if (outcome.error) {
        ASSERT_NE(outcome.error->state, GraphState::damaged);
        ASSERT_EQ(edited.SerializeAsString(), before) << "call " << k;
      } else {
        const std::string text = text_of(edited.graph());
        std::int64_t ours = 0;
        for (std::size_t at = text.find("ai.sluice"); at != std::string::npos; at = text.find("ai.sluice", at + 1))
          ++ours;
        ASSERT_EQ(ours, outcome.report.count(Action::take)) << text;
      }
      if (faulty.calls <= k) {
        ASSERT_EQ(outcome.report.count(Action::take), 3);
        break;
      }
    }
  }
}

TEST(OnnxReplace, SavingIsAllOrNothing) {
  TempDir folder;
  const std::string path = (folder.path() / "out.onnx").string();
  const auto model = model_of(std::string(head) + conv + "z = Relu(y) }");
  auto loaded = graph::OnnxModel::parse(model.SerializeAsString(), "test.onnx");
  ASSERT_TRUE(loaded.ok());
  ASSERT_TRUE(loaded->save(path).ok());
  auto again = graph::OnnxModel::load(path);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->bytes(), model.SerializeAsString());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "no temporary is left";
  const Status status = loaded->save((folder.path() / "none" / "out.onnx").string());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::environment);
  const auto missing = graph::OnnxModel::load((folder.path() / "none.onnx").string());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::environment);
}

}  // namespace
}  // namespace sl::test
