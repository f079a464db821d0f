#include "support/problems.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace sl::test {
namespace {

constexpr std::array dtypes = {DType::f32, DType::f16, DType::bf16};
constexpr std::array layouts = {Layout::nchw, Layout::nhwc};
constexpr std::array weight_layouts = {WeightLayout::oihw, WeightLayout::ohwi};
constexpr std::array biases = {Bias::none, Bias::same, Bias::f32};
constexpr std::array aligns = {16, 2, 8, 4};
constexpr std::array activations = {Activation::none,       Activation::relu,     Activation::clip,
                                    Activation::silu,       Activation::none,     Activation::hard_swish,
                                    Activation::leaky_relu, Activation::gelu_erf, Activation::gelu_tanh};

std::int32_t legal_align(DType type, int align) {
  return std::max(static_cast<std::int32_t>(size_of(type)), static_cast<std::int32_t>(align));
}

}  // namespace

const ConvProblem& test_problem(const std::string& name) {
  for (const NamedProblem& row : test_problems()) {
    if (name == row.name) return row.problem;
  }
  throw std::out_of_range("no test problem is named " + name);
}

std::vector<ConvProblem> all_variants(const ConvProblem& row) {
  std::vector<ConvProblem> result;
  for (const DType dtype : dtypes) {
    for (const Layout layout : layouts) {
      for (const WeightLayout weight_layout : weight_layouts) {
        for (const Bias bias : biases) {
          if (dtype == DType::f32 && bias == Bias::f32) continue;  // the same as Bias::same
          for (const int align : {16, 2}) {
            ConvProblem problem = row;
            problem.dtype = dtype;
            problem.layout = layout;
            problem.weight_layout = weight_layout;
            problem.bias = bias;
            problem.align = legal_align(dtype, align);
            result.push_back(problem);
          }
        }
      }
    }
  }
  return result;
}

std::vector<ConvProblem> spread_variants(const ConvProblem& row, std::size_t turn) {
  std::vector<ConvProblem> result;
  for (const DType dtype : dtypes) {
    for (const Layout layout : layouts) {
      // Strides without common factors, so that no two attributes stay in step over the turns.
      const std::size_t step = turn * 6 + result.size();
      const std::size_t mixed = step + step / 6 + step / 36;
      ConvProblem problem = row;
      problem.dtype = dtype;
      problem.layout = layout;
      problem.weight_layout = weight_layouts[(mixed / 2 + turn) % weight_layouts.size()];
      problem.bias = biases[(mixed + turn / 2) % biases.size()];
      problem.align = legal_align(dtype, aligns[(mixed / 3 + turn / 3) % aligns.size()]);
      problem.residual = (mixed / 5 + turn) % 3 == 0;
      problem = with_activation(problem, activations[(mixed + turn) % activations.size()]);
      result.push_back(problem.normalised());
    }
  }
  return result;
}

ConvProblem with_activation(ConvProblem row, Activation activation) {
  row.activation = activation;
  row.alpha = activation == Activation::leaky_relu ? 0.1F : 0.0F;
  row.beta = activation == Activation::clip ? 6.0F : 0.0F;
  return row;
}

}  // namespace sl::test
