// Which nodes behind a convolution are an activation that the epilogue holds.
#include <cmath>
#include <cstring>
#include <limits>

#include "graph_onnx/attributes.hpp"
#include "graph_onnx/conv.hpp"
#include "reference/reference.hpp"

namespace sl::graph {
namespace {

/// A floating-point scalar of a constant.
std::optional<float> scalar(const onnx::TensorProto* tensor) {
  if (tensor == nullptr || tensor->data_location() == onnx::TensorProto::EXTERNAL) return std::nullopt;
  for (const std::int64_t dim : tensor->dims()) {
    if (dim != 1) return std::nullopt;
  }
  const bool raw = tensor->has_raw_data();
  std::uint16_t half = 0;
  switch (tensor->data_type()) {
    case onnx::TensorProto::FLOAT: {
      float value = 0;
      if (!raw) return tensor->float_data_size() == 1 ? std::optional(tensor->float_data(0)) : std::nullopt;
      if (tensor->raw_data().size() != sizeof value) return std::nullopt;
      std::memcpy(&value, tensor->raw_data().data(), sizeof value);
      return value;
    }
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      if (raw && tensor->raw_data().size() == sizeof half) {
        std::memcpy(&half, tensor->raw_data().data(), sizeof half);
      } else if (!raw && tensor->int32_data_size() == 1) {
        half = static_cast<std::uint16_t>(tensor->int32_data(0));
      } else {
        return std::nullopt;
      }
      return tensor->data_type() == onnx::TensorProto::FLOAT16 ? half_to_float(half) : bfloat_to_float(half);
    default:
      return std::nullopt;
  }
}

class Matcher {
 public:
  Matcher(const OnnxEditor& editor, Node conv) : editor_(editor), conv_(conv) {}

  Result<OnnxActivation> match() {
    OnnxActivation found;
    NodeView conv;
    SL_TRY(editor_.view(conv_, conv));
    SL_ASSIGN(const std::vector<Node> readers, readers_of(conv.outputs[0]));
    if (readers.size() == 1) {
      SL_TRY(single(readers[0], found));
    } else if (readers.size() == 2) {
      SL_TRY(gated(conv.outputs[0], readers[0], readers[1], found));
      if (found.activation == Activation::none) SL_TRY(gated(conv.outputs[0], readers[1], readers[0], found));
    }
    if (found.activation == Activation::none) return OnnxActivation();
    return found;
  }

 private:
  /// The nodes that read a value, one a use; none where somebody else does (the outside, a nested graph).
  Result<std::vector<Node>> readers_of(Value value) const {
    std::vector<Use> uses;
    SL_TRY(editor_.uses(value, uses));
    std::vector<Node> nodes;
    for (const Use& use : uses) {
      if (use.kind != Use::Kind::operand || editor_.graph_of(use.user) != editor_.graph_of(conv_))
        return std::vector<Node>();
      nodes.push_back(use.user);
    }
    return nodes;
  }

  /// The constant nodes among a node's inputs that nobody else reads: they would be orphans.
  Status add_constants(const NodeView& view, OnnxActivation& found) const {
    for (const Value input : view.inputs) {
      const auto node = input == no_value ? std::nullopt : editor_.constant_node(input);
      if (!node || editor_.graph_of(*node) != editor_.graph_of(conv_)) continue;
      SL_ASSIGN(const std::vector<Node> readers, readers_of(input));
      if (readers.size() == 1) found.nodes.push_back(*node);
    }
    return {};
  }

  Status single(Node node, OnnxActivation& found) const {
    NodeView view;
    SL_TRY(editor_.view(node, view));
    OnnxAttributes attributes(editor_.proto(node));
    float alpha = 0, beta = 0;
    Activation activation = Activation::none;
    if (view.outputs.size() != 1) return {};
    if (view.op == "Relu") {
      activation = Activation::relu;
    } else if (view.op == "LeakyRelu") {
      activation = Activation::leaky_relu;
      alpha = static_cast<float>(attributes.real("alpha", 0.01F));
    } else if (view.op == "HardSwish") {
      activation = Activation::hard_swish;
    } else if (view.op == "Gelu") {
      const std::string approximate = attributes.text("approximate", "none");
      if (approximate != "none" && approximate != "tanh") return {};
      activation = approximate == "tanh" ? Activation::gelu_tanh : Activation::gelu_erf;
    } else if (view.op == "com.microsoft::Gelu") {
      activation = Activation::gelu_erf;
    } else if (view.op == "Clip") {
      const auto bound = [&](std::size_t input, const char* attribute, float fallback) -> std::optional<float> {
        if (input < view.inputs.size() && view.inputs[input] != no_value)
          return scalar(editor_.constant(view.inputs[input]));
        return static_cast<float>(attributes.real(attribute, fallback));
      };
      const auto low = bound(1, "min", -std::numeric_limits<float>::infinity());
      const auto high = bound(2, "max", std::numeric_limits<float>::infinity());
      if (!low || !high || !(*low <= *high)) return {};  // NaN too
      activation = Activation::clip;
      alpha = *low;
      beta = *high;
    } else {
      return {};
    }
    SL_TRY(attributes.finish());
    if (!attributes.unknown().empty()) return {};
    if (activation == Activation::leaky_relu && !std::isfinite(alpha)) return {};
    SL_TRY(add_constants(view, found));
    found.activation = activation;
    found.alpha = alpha;
    found.beta = beta;
    found.nodes.push_back(node);
    return {};
  }

  /// y * gate(y): Sigmoid is SiLU, HardSigmoid with ONNX HardSwish's numbers is hard-swish.
  Status gated(Value y, Node gate, Node product, OnnxActivation& found) const {
    NodeView gate_view, product_view;
    SL_TRY(editor_.view(gate, gate_view));
    SL_TRY(editor_.view(product, product_view));
    const bool sigmoid = gate_view.op == "Sigmoid", hard = gate_view.op == "HardSigmoid";
    if ((!sigmoid && !hard) || gate_view.outputs.size() != 1) return {};
    if (product_view.op != "Mul" || product_view.inputs.size() != 2 || product_view.outputs.size() != 1) return {};
    const Value g = gate_view.outputs[0];
    const auto& in = product_view.inputs;
    if (!((in[0] == y && in[1] == g) || (in[0] == g && in[1] == y))) return {};
    SL_ASSIGN(const std::vector<Node> readers, readers_of(g));
    if (readers.size() != 1) return {};
    OnnxAttributes attributes(editor_.proto(gate));
    if (hard) {
      const double slope = attributes.real("alpha", 0.2F), offset = attributes.real("beta", 0.5F);
      if (std::abs(slope - 1.0 / 6.0) > 1e-6 || offset != 0.5) return {};
    }
    SL_TRY(attributes.finish());
    if (!attributes.unknown().empty()) return {};
    found.activation = sigmoid ? Activation::silu : Activation::hard_swish;
    found.nodes = {gate, product};
    return {};
  }

  const OnnxEditor& editor_;
  Node conv_;
};

}  // namespace

Result<OnnxActivation> activation_behind(const OnnxEditor& editor, Node conv) { return Matcher(editor, conv).match(); }

}  // namespace sl::graph
