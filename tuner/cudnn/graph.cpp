#include "tuner/cudnn/graph.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace sl::cudnn {
namespace {

using Dims = std::array<std::int64_t, 4>;

Data data_type(DType type) {
  switch (type) {
    case DType::f16:
      return Data::f16;
    case DType::bf16:
      return Data::bf16;
    case DType::f32:
      break;
  }
  return Data::f32;
}

/// Strides of {outer, channels, rows, columns}.
Dims strides(const Dims& dims, bool channels_last) {
  const auto [n, c, h, w] = dims;
  (void)n;
  return channels_last ? Dims{c * h * w, 1, w * c, c} : Dims{c * h * w, h * w, w, 1};
}

std::int64_t padded_behind(std::int64_t in, std::int64_t out, std::int64_t front, std::int64_t stride,
                           std::int64_t kernel, std::int64_t exact) {
  const std::int64_t rest = in + 2 * front - kernel;
  const bool symmetric = rest >= 0 && rest / stride + 1 == out;
  return symmetric ? front : std::max<std::int64_t>(0, exact);
}

class Builder {
 public:
  Builder(const Context& context, const ConvProblem& problem) : context_(context), p_(problem) {}

  Result<Graph> build() {
    const bool last = p_.layout == Layout::nhwc;
    y_dims_ = {p_.n, p_.k, p_.p, p_.q};
    y_strides_ = strides(y_dims_, last);
    const Dims x = {p_.n, p_.c, p_.h, p_.w}, w = {p_.k, p_.channels_per_group(), p_.r, p_.s};
    const Data type = data_type(p_.dtype);
    SL_ASSIGN(const Descriptor* const x_tensor, tensor(uid_x, type, x, strides(x, last)));
    SL_ASSIGN(const Descriptor* const w_tensor,
              tensor(uid_w, type, w, strides(w, weight_layout(p_) == WeightLayout::ohwi)));
    left_ = (p_.residual ? 1 : 0) + (p_.bias != Bias::none ? 1 : 0) + (p_.activation != Activation::none ? 1 : 0);
    SL_ASSIGN(const Descriptor* current, result());
    SL_TRY(convolve(*x_tensor, *w_tensor, *current));
    if (p_.residual) {
      SL_ASSIGN(const Descriptor* const z, tensor(uid_z, type, y_dims_, y_strides_));
      SL_ASSIGN(current, add(*current, *z));
    }
    if (p_.bias != Bias::none) {
      const Dims one_a_channel = {1, p_.k, 1, 1};
      SL_ASSIGN(const Descriptor* const bias,
                tensor(uid_bias, p_.bias == Bias::f32 ? Data::f32 : type, one_a_channel, strides(one_a_channel, last)));
      SL_ASSIGN(current, add(*current, *bias));
    }
    if (p_.activation != Activation::none) SL_TRY(activate(*current));
    return finish();
  }

 private:
  const Descriptor* keep(Descriptor part) {
    parts_.push_back(std::make_unique<Descriptor>(std::move(part)));
    return parts_.back().get();
  }

  Result<const Descriptor*> tensor(std::int64_t uid, Data type, const Dims& dims, const Dims& steps,
                                   bool is_virtual = false) {
    SL_ASSIGN(Descriptor made, Descriptor::make(*context_.library, Kind::tensor));
    SL_TRY(made.set(Attribute::tensor_type, Type::data_type, static_cast<int>(type)));
    SL_TRY(made.set(Attribute::tensor_dims, dims));
    SL_TRY(made.set(Attribute::tensor_strides, steps));
    SL_TRY(made.set(Attribute::tensor_uid, uid));
    SL_TRY(made.set(Attribute::tensor_alignment, std::int64_t{p_.align}));
    if (is_virtual) SL_TRY(made.set(Attribute::tensor_virtual, true));
    SL_TRY(made.finalize());
    return keep(std::move(made));
  }

  /// What the next operation writes: y where it is the last one, else a value that no memory holds.
  Result<const Descriptor*> result() {
    if (left_-- == 0) return tensor(uid_y, data_type(p_.dtype), y_dims_, y_strides_);
    return tensor(next_virtual_++, Data::f32, y_dims_, y_strides_, true);
  }

  Status convolve(const Descriptor& x, const Descriptor& w, const Descriptor& y) {
    using Pair = std::array<std::int64_t, 2>;
    SL_ASSIGN(Descriptor made, Descriptor::make(*context_.library, Kind::convolution));
    SL_TRY(made.set(Attribute::convolution_spatial_dims, std::int64_t{2}));
    SL_TRY(made.set(Attribute::convolution_compute_type, Type::data_type, static_cast<int>(Data::f32)));
    SL_TRY(made.set(Attribute::convolution_mode, Type::convolution_mode, cross_correlation));
    SL_TRY(made.set(Attribute::convolution_pre_paddings, Pair{p_.pad_top, p_.pad_left}));
    SL_TRY(made.set(Attribute::convolution_post_paddings, post_padding(p_)));
    SL_TRY(made.set(Attribute::convolution_dilations, Pair{p_.dil_h, p_.dil_w}));
    SL_TRY(made.set(Attribute::convolution_strides, Pair{p_.stride_h, p_.stride_w}));
    SL_TRY(made.finalize());
    const Descriptor* const convolution = keep(std::move(made));

    SL_ASSIGN(Descriptor operation, Descriptor::make(*context_.library, Kind::operation_convolution));
    SL_TRY(operation.set(Attribute::forward_convolution, *convolution));
    SL_TRY(operation.set(Attribute::forward_x, x));
    SL_TRY(operation.set(Attribute::forward_w, w));
    SL_TRY(operation.set(Attribute::forward_y, y));
    SL_TRY(operation.set(Attribute::forward_alpha, 1.0F));
    SL_TRY(operation.set(Attribute::forward_beta, 0.0F));
    SL_TRY(operation.finalize());
    operations_.push_back(keep(std::move(operation))->get());
    return {};
  }

  Result<Descriptor> pointwise(Pointwise mode) {
    SL_ASSIGN(Descriptor made, Descriptor::make(*context_.library, Kind::pointwise));
    SL_TRY(made.set(Attribute::pointwise_mode, Type::pointwise_mode, static_cast<int>(mode)));
    SL_TRY(made.set(Attribute::pointwise_precision, Type::data_type, static_cast<int>(Data::f32)));
    return made;
  }

  Result<const Descriptor*> apply(Descriptor what, const Descriptor& in, const Descriptor* with) {
    SL_TRY(what.finalize());
    const Descriptor* const mode = keep(std::move(what));
    SL_ASSIGN(const Descriptor* const out, result());
    SL_ASSIGN(Descriptor operation, Descriptor::make(*context_.library, Kind::operation_pointwise));
    SL_TRY(operation.set(Attribute::operation_pointwise, *mode));
    SL_TRY(operation.set(Attribute::operation_pointwise_x, in));
    if (with != nullptr) SL_TRY(operation.set(Attribute::operation_pointwise_b, *with));
    SL_TRY(operation.set(Attribute::operation_pointwise_y, *out));
    SL_TRY(operation.finalize());
    operations_.push_back(keep(std::move(operation))->get());
    return out;
  }

  Result<const Descriptor*> add(const Descriptor& in, const Descriptor& addend) {
    SL_ASSIGN(Descriptor sum, pointwise(Pointwise::add));
    return apply(std::move(sum), in, &addend);
  }

  /// relu is y = max(lower, min(upper, a)), with a slope below the lower bound; cuDNN takes finite bounds only.
  Status clip(const Descriptor& in, double lower, double upper, double slope) {
    constexpr double most = std::numeric_limits<float>::max();
    SL_ASSIGN(Descriptor relu, pointwise(Pointwise::relu));
    SL_TRY(relu.set(Attribute::pointwise_lower_clip, std::clamp(lower, -most, most)));
    SL_TRY(relu.set(Attribute::pointwise_upper_clip, std::clamp(upper, -most, most)));
    SL_TRY(relu.set(Attribute::pointwise_lower_slope, slope));
    return done(apply(std::move(relu), in, nullptr));
  }

  static Status done(const Result<const Descriptor*>& applied) { return applied.ok() ? Status{} : applied.error(); }

  Status activate(const Descriptor& in) {
    constexpr double unbounded = std::numeric_limits<double>::infinity();
    switch (p_.activation) {
      case Activation::relu:
        return clip(in, 0, unbounded, 0);
      case Activation::clip:
        return clip(in, double{p_.alpha}, double{p_.beta}, 0);
      case Activation::leaky_relu:
        return clip(in, 0, unbounded, double{p_.alpha});
      case Activation::silu: {
        SL_ASSIGN(Descriptor swish, pointwise(Pointwise::swish));
        SL_TRY(swish.set(Attribute::pointwise_swish_beta, 1.0));
        return done(apply(std::move(swish), in, nullptr));
      }
      case Activation::gelu_erf:
      case Activation::gelu_tanh: {
        const bool erf = p_.activation == Activation::gelu_erf;
        SL_ASSIGN(Descriptor gelu, pointwise(erf ? Pointwise::gelu_erf : Pointwise::gelu_tanh));
        return done(apply(std::move(gelu), in, nullptr));
      }
      case Activation::hard_swish:
      case Activation::none:
        break;
    }
    return Error{Code::unsupported, std::string(name(p_.activation)) + " is no single operation of cuDNN"};
  }

  Result<Graph> finish() {
    Graph out;
    SL_ASSIGN(out.graph, Descriptor::make(*context_.library, Kind::operation_graph));
    SL_TRY(out.graph.set(Attribute::graph_operations, Type::descriptor, static_cast<std::int64_t>(operations_.size()),
                         operations_.data()));
    if (context_.handle != nullptr) {
      SL_TRY(out.graph.set(Attribute::graph_handle, Type::handle, 1, &context_.handle));
    }
    SL_TRY(out.graph.finalize());
    out.parts.reserve(parts_.size());
    for (auto& part : parts_) out.parts.push_back(std::move(*part));
    return out;
  }

  const Context& context_;
  const ConvProblem& p_;
  Dims y_dims_{}, y_strides_{};
  int left_ = 0;  // operations after the next one
  std::int64_t next_virtual_ = uid_first_virtual;
  std::vector<std::unique_ptr<Descriptor>> parts_;  // addresses stay while the list grows
  std::vector<Descriptor_t> operations_;
};

}  // namespace

ConvProblem bare(const ConvProblem& problem) {
  ConvProblem out = problem;
  out.bias = Bias::none;
  out.residual = false;
  out.activation = Activation::none;
  out.alpha = out.beta = 0;
  return out;
}

bool has_epilogue(const ConvProblem& problem) {
  return problem.bias != Bias::none || problem.residual || problem.activation != Activation::none;
}

WeightLayout weight_layout(const ConvProblem& problem) {
  return problem.layout == Layout::nhwc ? WeightLayout::ohwi : WeightLayout::oihw;
}

std::array<std::int64_t, 2> post_padding(const ConvProblem& p) {
  return {padded_behind(p.h, p.p, p.pad_top, p.stride_h, p.effective_r(), p.pad_bottom()),
          padded_behind(p.w, p.q, p.pad_left, p.stride_w, p.effective_s(), p.pad_right())};
}

Result<Graph> build_graph(const Context& context, const ConvProblem& problem) {
  return Builder(context, problem).build();
}

}  // namespace sl::cudnn
