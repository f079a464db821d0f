// An ONNX Conv node as a convolution problem, and the activation behind it.
#pragma once

#include <string>
#include <vector>

#include "graph/conv_decider.hpp"
#include "graph_onnx/editor.hpp"

namespace sl::graph {

/// A Conv node, read. `reason` says why it is no problem of ours although the model is right (a type, rank or shape
/// that is not known or not served); a model that is wrong is the Result's error.
struct OnnxConv {
  ConvProblem problem;
  std::string reason;       ///< empty where `problem` holds
  std::string signature;    ///< shapes, types, layout and attributes as the model has them
  bool open_batch = false;  ///< the reason is that the batch is not fixed
};
Result<OnnxConv> read_conv(const OnnxEditor&, Node);

/// What stands between a convolution and what reads it: an activation that the epilogue can hold.
struct OnnxActivation {
  Activation activation = Activation::none;
  float alpha = 0.0F, beta = 0.0F;
  std::vector<Node> nodes;  ///< in order, the last makes the result
};
/// Of a convolution's output; `activation` none where there is nothing to fold: another op, another reader of a value
/// in between, a graph output in between, parameters that are not constant.
Result<OnnxActivation> activation_behind(const OnnxEditor&, Node conv);

}  // namespace sl::graph
