// Small ONNX models from text, and what the pass makes of them.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "graph_onnx/model.hpp"

namespace sl::test {

/// A model from ONNX's text form of a graph: "g (float[1,8,6,6] x, ...) => (float[...] y) { y = Conv<...>(x, w) }".
onnx::ModelProto model_of(const std::string& graph, int opset = 17, int ir_version = 8);

/// Adds a float initialiser of ones, or a scalar of `value`.
void add_weights(onnx::ModelProto& model, const std::string& name, const std::vector<std::int64_t>& dims);
void add_scalar(onnx::ModelProto& model, const std::string& name, float value);

/// Forced to take everything that a kernel can serve on an H200.
graph::OnnxOptions forced();

struct Replaced {
  graph::Outcome outcome;
  onnx::ModelProto model;  ///< after
};
Replaced replace_in(const onnx::ModelProto& model, const graph::OnnxOptions& options = forced());

/// "Conv(x,w)->y; Relu(y)->z", nested graphs in braces.
std::string text_of(const onnx::GraphProto& graph);

}  // namespace sl::test
