// Files come from anywhere: each broken one gives one clear error, and the model is never half read.
#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <stdexcept>

#include "device/host/sanitizers.hpp"
#include "graph_onnx/child.hpp"
#include "models.hpp"

namespace sl::test {
namespace {

onnx::ModelProto good() {
  auto model =
      model_of("g (float[1,8,6,6] x) => (float[1,8,6,6] z) { y = Conv<group=8, pads=[1,1,1,1]>(x, w) z = Relu(y) }");
  add_weights(model, "w", {8, 1, 3, 3});
  return model;
}

void expect_one_error(const onnx::ModelProto& model, const char* part) {
  const Replaced replaced = replace_in(model);
  ASSERT_TRUE(replaced.outcome.error) << part;
  EXPECT_EQ(replaced.outcome.error->code, Code::invalid);
  EXPECT_NE(replaced.outcome.error->message.find(part), std::string::npos) << replaced.outcome.error->message;
  EXPECT_NE(replaced.outcome.error->message.find("test.onnx"), std::string::npos) << replaced.outcome.error->message;
}

TEST(Hostile, ModelsThatAreNone) {
  for (const std::string& bytes :
       {std::string(), std::string("\0\0\0\0", 4), std::string("hello"), std::string(1000, '\xff')}) {
    const auto model = graph::OnnxModel::parse(bytes, "test.onnx");
    ASSERT_FALSE(model.ok());
    EXPECT_NE(model.error().message.find("cut short"), std::string::npos) << model.error().message;
  }
}

TEST(Hostile, EveryTruncation) {
  const std::string bytes = good().SerializeAsString();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto model = graph::OnnxModel::parse(std::string_view(bytes).substr(0, size), "test.onnx");
    const bool failed = !model.ok() || model->replace(forced()).error.has_value();
    ASSERT_TRUE(failed) << "cut to " << size << " of " << bytes.size() << " bytes";
  }
}

TEST(Hostile, FlippedBytesNeverCrashNorHalfEdit) {
  const std::string bytes = good().SerializeAsString();
  std::mt19937 random(1);
  for (int i = 0; i < 1500; ++i) {
    std::string broken = bytes;
    for (int flips = 0; flips < 1 + i % 4; ++flips) broken[random() % broken.size()] = static_cast<char>(random());
    auto model = graph::OnnxModel::parse(broken, "test.onnx");
    if (!model.ok()) continue;
    const std::string before = model->bytes();
    const graph::Outcome outcome = model->replace(forced());
    if (outcome.error) {
      ASSERT_EQ(model->bytes(), before);
    }
  }
}

TEST(Hostile, Structure) {
  auto model = good();
  model.mutable_graph()->clear_initializer();
  expect_one_error(model, "reads \"w\"");
  model = good();
  model.mutable_graph()->mutable_node(0)->set_input(0, "z");  // a cycle
  expect_one_error(model, "reads \"z\"");
  model = good();
  model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  expect_one_error(model, "reads \"y\"");
  model = good();
  model.mutable_graph()->mutable_node(1)->set_output(0, "y");
  expect_one_error(model, "defined already");
  model = good();
  model.mutable_graph()->mutable_output(0)->set_name("nothing");
  expect_one_error(model, "\"nothing\"");
  model = good();
  *model.mutable_graph()->add_initializer() = model.graph().initializer(0);
  expect_one_error(model, "defined twice");
  model = good();
  model.mutable_graph()->mutable_node(0)->clear_op_type();
  expect_one_error(model, "op_type");
  model = good();
  model.clear_opset_import();
  expect_one_error(model, "opset_import");
  model = good();
  model.mutable_opset_import(0)->set_version(-1);
  expect_one_error(model, "version is -1");
  model = good();
  model.clear_ir_version();
  expect_one_error(model, "ir_version");
  model = good();
  model.mutable_graph()->mutable_node(0)->add_output("second");
  expect_one_error(model, "outputs");
}

TEST(Hostile, Tensors) {
  auto model = good();
  auto* tensor = model.mutable_graph()->mutable_initializer(0);
  tensor->set_dims(0, 9);
  expect_one_error(model, "must hold 81 x 4");
  tensor->set_dims(0, -8);
  expect_one_error(model, "-8");
  tensor->set_dims(0, std::int64_t{1} << 40);
  tensor->set_dims(1, std::int64_t{1} << 40);
  expect_one_error(model, "2^62");
  model = good();
  model.mutable_graph()->mutable_initializer(0)->set_data_type(999);
  expect_one_error(model, "999");
  model = good();
  model.mutable_graph()->mutable_initializer(0)->set_data_type(onnx::TensorProto::FLOAT16);
  expect_one_error(model, "must hold 72 x 2");
  model = good();
  model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->pop_back();
  expect_one_error(model, "287 bytes");
  model = good();
  auto* shape = model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->mutable_dim(2)->set_dim_value(std::int64_t{1} << 62);
  const Replaced huge = replace_in(model);
  ASSERT_TRUE(huge.outcome.error || huge.outcome.report.nodes.at(0).verdict == Verdict::unsupported);
}

TEST(Hostile, WhatDiesInTheChildIsAnError) {
  const auto ask = [](const std::function<bool(std::string&)>& work) { return graph::in_child(work); };
  EXPECT_EQ(ask([](std::string& out) { return out.assign(1'000'000, 'x'), true; }).value().size(), 1'000'000U);
  EXPECT_NE(ask([](std::string&) -> bool {
              std::raise(SIGKILL);
              return true;
            })
                .error()
                .message.find("signal 9"),
            std::string::npos);
  EXPECT_NE(ask([](std::string&) -> bool { throw std::runtime_error("why"); }).error().message.find("why"),
            std::string::npos);
  EXPECT_EQ(ask([](std::string&) { return false; }).error().code, Code::invalid);
}

TEST(Hostile, AShapeOfBillionsOfDimensions) {
  if (asan::enabled) GTEST_SKIP() << "AddressSanitizer's memory is mapped beforehand: the bound does not hold there";
  // libonnx appends one dimension after the other: some 100 GB of them.
  auto model = model_of(
      "g (float[1,8,6,6] x, int64[2000000000] s) => (float[1,8,6,6] z) { "
      "z = Conv<group=8, pads=[1,1,1,1]>(x, w) c = ConstantOfShape(s) d = Neg(c) }");
  add_weights(model, "w", {8, 1, 3, 3});
  expect_one_error(model, "shapes cannot be inferred");
}

TEST(Hostile, DeepNesting) {
  onnx::ModelProto model = good();
  onnx::GraphProto* graph = model.mutable_graph();
  for (int i = 0; i < 200; ++i) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type("If");
    node->add_input("x");
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("then_branch");
    attribute->set_type(onnx::AttributeProto::GRAPH);
    graph = attribute->mutable_g();
  }
  const auto loaded = graph::OnnxModel::parse(model.SerializeAsString(), "test.onnx");
  ASSERT_FALSE(loaded.ok()) << "deeper than protobuf's recursion limit";
}

}  // namespace
}  // namespace sl::test
