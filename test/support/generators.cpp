#include "support/generators.hpp"

#include <stdlib.h>

#include <algorithm>

#include "support/problems.hpp"

namespace sl::test {
namespace {

// RapidCheck draws a new seed each run unless told; a test run must repeat. RC_PARAMS="seed=N" in the environment wins.
const bool seed_is_fixed = setenv("RC_PARAMS", "seed=20250607", 0) == 0;

std::int64_t pick(std::int64_t least, std::int64_t most) { return *rc::gen::inRange(least, std::max(least, most) + 1); }

struct Axis {
  std::int64_t in, taps, stride, dilation, pad, far_pad;
};

// One axis for which at least one window fits. Tight inputs (a window that fits exactly, or only thanks to the pads)
// are as likely as roomy ones.
Axis pick_axis(const SmallProblemOptions& options) {
  Axis axis{};
  axis.taps = pick(1, *rc::gen::element<std::int64_t>(3, 3, 5, options.max_kernel));
  axis.stride = pick(1, *rc::gen::element<std::int64_t>(1, 2, options.max_stride));
  axis.dilation = pick(1, *rc::gen::element<std::int64_t>(1, 1, options.max_dilation));
  const std::int64_t effective = (axis.taps - 1) * axis.dilation + 1;
  const auto most =
      rc::gen::element<std::int64_t>(effective / 2, effective / 2, effective - 1, effective + options.max_beyond);
  axis.pad = pick(0, *most);
  axis.far_pad = pick(0, *most);
  const std::int64_t least = std::max<std::int64_t>(1, effective - axis.pad - axis.far_pad);
  axis.in = pick(least, least + *rc::gen::element<std::int64_t>(0, 3, 9, 20));
  return axis;
}

void pick_attributes(ConvProblem& problem) {
  problem.dtype = *rc::gen::element(DType::f32, DType::f16, DType::bf16);
  problem.layout = *rc::gen::element(Layout::nchw, Layout::nhwc);
  problem.weight_layout = *rc::gen::element(WeightLayout::oihw, WeightLayout::ohwi);
  problem.bias = *rc::gen::element(Bias::none, Bias::same, Bias::f32);
  problem.residual = *rc::gen::element(false, true);
  problem.align = *rc::gen::element(16, 8, 4, static_cast<std::int32_t>(size_of(problem.dtype)));
  problem.activation =
      *rc::gen::element(Activation::none, Activation::relu, Activation::clip, Activation::silu, Activation::hard_swish,
                        Activation::gelu_erf, Activation::gelu_tanh, Activation::leaky_relu);
  const auto parameter = [] { return static_cast<float>(*rc::gen::inRange(-4000, 4001)) / 777.0F; };
  if (problem.activation == Activation::leaky_relu) problem.alpha = parameter();
  if (problem.activation == Activation::clip) {
    const float a = parameter(), b = parameter();
    problem.alpha = std::min(a, b);
    problem.beta = std::max(a, b);
  }
}

// Keeps the problem within the bounds by giving up images, then groups, then output channels.
void fit(ConvProblem& problem, const SmallProblemOptions& options) {
  const auto too_large = [&] {
    return problem.macs() > options.max_macs || problem.y_elements() > options.max_outputs;
  };
  while (too_large() && problem.n > 1) --problem.n;
  while (too_large() && problem.groups > 1) {
    const std::int64_t channels = problem.channels_per_group(), multiplier = problem.multiplier();
    problem.groups = (problem.groups + 1) / 2;
    problem.c = problem.groups * channels;
    problem.k = problem.groups * multiplier;
  }
  while (too_large() && problem.k > 1) problem.k = (problem.k + 1) / 2;  // here groups is 1
}

ConvProblem pick_problem(const SmallProblemOptions& options) {
  ConvProblem problem;
  const bool line = pick(0, 7) == 0;
  const Axis rows = line ? Axis{1, 1, 1, 1, 0, 0} : pick_axis(options);
  const Axis columns = pick_axis(options);
  problem.h = rows.in;
  problem.w = columns.in;
  problem.r = rows.taps;
  problem.s = columns.taps;
  problem.stride_h = rows.stride;
  problem.stride_w = columns.stride;
  problem.dil_h = rows.dilation;
  problem.dil_w = columns.dilation;
  problem.pad_top = rows.pad;
  problem.pad_left = columns.pad;
  problem.n = options.empty && pick(0, 31) == 31 ? 0 : pick(1, 5);
  problem.groups = pick(1, *rc::gen::element<std::int64_t>(1, 9, 40));
  problem.c = problem.groups * pick(1, *rc::gen::element<std::int64_t>(1, options.max_channels_per_group));
  problem.k = problem.groups * pick(1, *rc::gen::element<std::int64_t>(1, 3, options.max_multiplier));
  pick_attributes(problem);
  auto sized = with_output_size(problem, rows.far_pad, columns.far_pad);
  if (!sized.ok() || !seed_is_fixed) RC_FAIL("no output fits, or the seed could not be set");
  fit(*sized, options);
  auto legal = validated(*sized);
  if (!legal.ok()) RC_FAIL(legal.error().message);
  return *legal;
}

}  // namespace

rc::Gen<ConvProblem> small_problem(SmallProblemOptions options) {
  return rc::gen::exec([options] { return pick_problem(options); });
}

ConvProblem drawn_problem(std::uint64_t seed, std::uint64_t draw) {
  const auto generator =
      draw < any_draws ? small_problem() : small_problem({.max_dilation = 1, .max_stride = 1, .empty = false});
  return generator(rc::Random(seed + draw), 100).value();
}

}  // namespace sl::test
