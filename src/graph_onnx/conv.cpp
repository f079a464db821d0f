#include "graph_onnx/conv.hpp"

#include <array>
#include <utility>

#include "graph_onnx/attributes.hpp"
#include "graph_onnx/check.hpp"

namespace sl::graph {
namespace {

constexpr std::int64_t limit = std::int64_t{1} << 31;

std::optional<DType> dtype_of(int element) {
  switch (element) {
    case onnx::TensorProto::FLOAT:
      return DType::f32;
    case onnx::TensorProto::FLOAT16:
      return DType::f16;
    case onnx::TensorProto::BFLOAT16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

Error wrong(const std::string& message) { return {Code::invalid, message}; }

std::string list(const std::vector<std::int64_t>& values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return out + "]";
}

struct Window {
  std::string auto_pad;
  std::int64_t group = 1;
  std::vector<std::int64_t> kernel, strides, dilations, pads;  ///< per spatial axis; pads: all begins, then all ends
};

Status check_list(const char* name, const std::vector<std::int64_t>& values, std::size_t count, std::int64_t least) {
  if (values.size() != count)
    return wrong(std::string(name) + " = " + list(values) + ", must have " + std::to_string(count) + " numbers");
  for (const std::int64_t value : values) {
    if (value < least || value >= limit)
      return wrong(std::string(name) + " = " + list(values) + ", each must be from " + std::to_string(least) + " to " +
                   std::to_string(limit - 1));
  }
  return {};
}

Result<Window> read_window(OnnxAttributes& attributes, const std::vector<std::int64_t>& weight) {
  const std::size_t axes = weight.size() - 2;
  Window window;
  window.auto_pad = attributes.text("auto_pad", "NOTSET");
  window.group = attributes.integer("group", 1);
  window.kernel = attributes.integers("kernel_shape", {weight.begin() + 2, weight.end()});
  window.strides = attributes.integers("strides", std::vector<std::int64_t>(axes, 1));
  window.dilations = attributes.integers("dilations", std::vector<std::int64_t>(axes, 1));
  window.pads = attributes.integers("pads", std::vector<std::int64_t>(2 * axes, 0));
  SL_TRY(attributes.finish());
  if (window.group < 1 || window.group >= limit)
    return wrong("group = " + std::to_string(window.group) + ", must be 1 or more");
  SL_TRY(check_list("kernel_shape", window.kernel, axes, 1));
  SL_TRY(check_list("strides", window.strides, axes, 1));
  SL_TRY(check_list("dilations", window.dilations, axes, 1));
  SL_TRY(check_list("pads", window.pads, 2 * axes, -limit));
  if (window.kernel != std::vector<std::int64_t>(weight.begin() + 2, weight.end()))
    return wrong("kernel_shape = " + list(window.kernel) + ", and the weights are " + list(weight));
  return window;
}

/// Begin and end pad of one axis, with auto_pad worked out.
Result<std::pair<std::int64_t, std::int64_t>> pads_of(const Window& window, std::size_t axis, std::int64_t size) {
  const std::size_t axes = window.kernel.size();
  if (window.auto_pad == "NOTSET" || window.auto_pad.empty())
    return std::pair(window.pads[axis], window.pads[axis + axes]);
  if (window.auto_pad == "VALID") return std::pair(std::int64_t{0}, std::int64_t{0});
  const bool upper = window.auto_pad == "SAME_UPPER";
  if (!upper && window.auto_pad != "SAME_LOWER")
    return wrong("auto_pad = \"" + window.auto_pad + "\", must be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  const std::int64_t stride = window.strides[axis];
  const std::int64_t effective = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
  const std::int64_t out = (size + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>(0, (out - 1) * stride + effective - size);
  const std::int64_t small = total / 2;
  return upper ? std::pair(small, total - small) : std::pair(total - small, small);
}

/// What is not fixed, in words; empty where all is.
std::string unfixed(const char* name, const TensorType& type, std::size_t from) {
  if (!type.ranked) return std::string(name) + " has no known shape";
  for (std::size_t i = from; i < type.dims.size(); ++i) {
    if (type.dims[i] < 0)
      return std::string(name) + " is " + type.text() + ": dimension " + std::to_string(i) + " is not fixed";
  }
  return {};
}

/// Fills the problem's window. Conv1d has rows of 1.
Result<std::string> fill(ConvProblem& p, const TensorType& x, const TensorType& w, const Window& window) {
  const bool conv1d = x.dims.size() == 3;
  p.n = x.dims[0];
  p.c = x.dims[1];
  p.k = w.dims[0];
  p.groups = window.group;
  std::array<std::int64_t, 2> end_pads{0, 0};
  for (std::size_t axis = conv1d ? 1 : 0; axis < 2; ++axis) {
    const std::size_t a = conv1d ? 0 : axis;
    SL_ASSIGN(const auto pads, pads_of(window, a, x.dims[a + 2]));
    if (pads.first < 0) return "pads = " + list(window.pads) + ": a negative pad before the first row or column";
    (axis == 0 ? p.h : p.w) = x.dims[a + 2];
    (axis == 0 ? p.r : p.s) = window.kernel[a];
    (axis == 0 ? p.stride_h : p.stride_w) = window.strides[a];
    (axis == 0 ? p.dil_h : p.dil_w) = window.dilations[a];
    (axis == 0 ? p.pad_top : p.pad_left) = pads.first;
    end_pads[axis] = pads.second;
  }
  if (p.n == 0 || p.h == 0 || p.w == 0 || p.c == 0) return "x is " + x.text() + ": empty";
  SL_ASSIGN(p, with_output_size(p, end_pads[0], end_pads[1]));
  return std::string();
}

Status check_shapes(const TensorType& x, const TensorType& w, const TensorType& bias, bool has_bias,
                    const Window& window) {
  const std::int64_t c = x.dims[1], k = w.dims[0];
  const std::string shapes = "x is " + x.text() + ", w is " + w.text() + ", group is " + std::to_string(window.group);
  if (c % window.group != 0 || k % window.group != 0 || w.dims[1] != c / window.group)
    return wrong(shapes + ": x's channels must be w's times group, and w's count a multiple of group");
  if (w.element != x.element) return wrong(shapes + ": both must have one element type");
  if (has_bias && bias.element != 0 && bias.element != x.element)
    return wrong("x is " + x.text() + ", the bias is " + bias.text() + ": both must have one element type");
  if (has_bias && bias.ranked && (bias.dims.size() != 1 || (bias.dims[0] >= 0 && bias.dims[0] != k)))
    return wrong("the bias is " + bias.text() + ", must be [" + std::to_string(k) + "]");
  return {};
}

}  // namespace

Result<OnnxConv> read_conv(const OnnxEditor& editor, Node node) {
  NodeView view;
  SL_TRY(editor.view(node, view));
  if (view.inputs.size() < 2 || view.inputs.size() > 3 || view.inputs[0] == no_value || view.inputs[1] == no_value)
    return wrong("has " + std::to_string(view.inputs.size()) + " inputs, must have x, w and perhaps a bias");
  if (view.outputs.size() != 1) return wrong("has " + std::to_string(view.outputs.size()) + " outputs, must have 1");
  const bool has_bias = view.inputs.size() == 3 && view.inputs[2] != no_value;
  const TensorType& x = editor.type(view.inputs[0]);
  const TensorType& w = editor.type(view.inputs[1]);
  const TensorType& bias = has_bias ? editor.type(view.inputs[2]) : x;

  OnnxConv conv;
  conv.signature = "x " + x.text() + ", w " + w.text() + (has_bias ? ", bias " + bias.text() : "") + ", nchw";
  if (const std::string attributes = attributes_text(editor.proto(node)); !attributes.empty())
    conv.signature += ", " + attributes;
  const auto not_ours = [&](std::string reason) {
    conv.reason = std::move(reason);
    return conv;
  };
  if (!w.ranked || !x.ranked) return not_ours(unfixed(x.ranked ? "w" : "x", x.ranked ? w : x, 0));
  if (x.dims.size() != w.dims.size() || x.dims.size() < 3) {
    return wrong("x is " + x.text() + ", w is " + w.text() + ": both must have the same rank, 3 or more");
  }
  if (x.dims.size() > 4) return not_ours("x is " + x.text() + ": only 1-d and 2-d convolutions are served");
  if (std::string reason = unfixed("w", w, 0); !reason.empty()) return not_ours(std::move(reason));
  if (std::string reason = unfixed("x", x, 1); !reason.empty()) return not_ours(std::move(reason));
  const auto dtype = dtype_of(x.element);
  if (!dtype) return not_ours("x is " + x.text() + ": only float, float16 and bfloat16 are served");

  OnnxAttributes attributes(editor.proto(node));
  SL_ASSIGN(const Window window, read_window(attributes, w.dims));
  SL_TRY(check_shapes(x, w, bias, has_bias, window));
  if (const std::string unknown = attributes.unknown(); !unknown.empty())
    return not_ours("attribute \"" + unknown + "\" is not one of Conv's that are known here");
  if (x.dims[0] < 0) {
    conv.open_batch = true;
    return not_ours("x is " + x.text() +
                    ": the batch is not fixed, and routing's answer depends on it; plan for one "
                    "(--batch N)");
  }
  conv.problem.dtype = *dtype;
  conv.problem.bias = has_bias ? Bias::same : Bias::none;
  SL_ASSIGN(conv.reason, fill(conv.problem, x, w, window));
  return conv;
}

}  // namespace sl::graph
