#include "models.hpp"

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <cstring>

#include "graph/fixture.hpp"

namespace sl::test {

onnx::ModelProto model_of(const std::string& graph, int opset, int ir_version) {
  onnx::ModelProto model;
  model.set_ir_version(ir_version);
  model.set_producer_name("a test");
  auto* set = model.add_opset_import();
  set->set_domain("");
  set->set_version(opset);
  const auto status = onnx::OnnxParser::Parse(*model.mutable_graph(), graph.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << graph;
  return model;
}

void add_weights(onnx::ModelProto& model, const std::string& name, const std::vector<std::int64_t>& dims) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  std::size_t count = 1;
  for (const std::int64_t dim : dims) {
    tensor.add_dims(dim);
    count *= static_cast<std::size_t>(dim);
  }
  const std::vector<float> ones(count, 1.0F);
  tensor.set_raw_data(ones.data(), count * sizeof(float));
}

void add_scalar(onnx::ModelProto& model, const std::string& name, float value) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_float_data(value);
}

graph::OnnxOptions forced() {
  graph::OnnxOptions options;
  options.target = make_target("h200");
  options.target.force_take = true;
  return options;
}

Replaced replace_in(const onnx::ModelProto& model, const graph::OnnxOptions& options) {
  Replaced out;
  Result<graph::OnnxModel> loaded = graph::OnnxModel::parse(model.SerializeAsString(), "test.onnx");
  if (!loaded.ok()) {
    out.outcome.error.emplace();
    out.outcome.error->code = loaded.error().code;
    out.outcome.error->message = loaded.error().message;
    out.model = model;
    return out;
  }
  out.outcome = loaded->replace(options);
  EXPECT_TRUE(out.model.ParseFromString(loaded->bytes()));
  if (out.outcome.error) {
    EXPECT_EQ(loaded->bytes(), model.SerializeAsString()) << "a failed pass changed the model";
  }
  return out;
}

std::string text_of(const onnx::GraphProto& graph) {
  std::string text;
  for (const onnx::NodeProto& node : graph.node()) {
    text += (text.empty() ? "" : "; ") + (node.domain().empty() ? "" : node.domain() + "::") + node.op_type() + "(";
    for (const std::string& name : node.input()) text += (&name == &node.input(0) ? "" : ",") + name;
    text += ")->";
    for (const std::string& name : node.output()) text += (&name == &node.output(0) ? "" : ",") + name;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) text += " {" + text_of(attribute.g()) + "}";
    }
  }
  return text;
}

}  // namespace sl::test
