#include "reference/bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sl {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double u32 = 0x1p-24;

struct TypeLimits {
  double unit, smallest, largest;
};

TypeLimits limits_of(DType type) {
  switch (type) {
    case DType::f16:
      return {0x1p-11, 0x1p-24, 65504.0};
    case DType::bf16:
      return {0x1p-8, 0x1p-133, 0x1.FEp127};
    case DType::f32:
      break;
  }
  return {u32, 0x1p-149, 0x1.FFFFFEp127};
}

// The fused K = 8 additions that hold a nonzero tap of one output, at most, under the two ways to lay taps along K:
// channels of one tap side by side (NHWC block-diagonal), or the taps of one kernel row (NCHW Toeplitz), whose window
// may straddle one more boundary than it needs.
std::int64_t fused_additions(const ConvProblem& v) {
  const std::int64_t channels = v.channels_per_group();
  const std::int64_t block_diagonal = v.taps() * ((channels + 7) / 8);
  const std::int64_t toeplitz = channels * v.r * std::min(v.s, (v.s + 6) / 8 + 1);
  return std::max(block_diagonal, toeplitz);
}

double largest_slope(const ConvProblem& v) {
  switch (v.activation) {
    case Activation::leaky_relu:
      return std::max(1.0, std::fabs(static_cast<double>(v.alpha)));
    case Activation::silu:
      return 1.10;
    case Activation::gelu_erf:
    case Activation::gelu_tanh:
      return 1.13;
    case Activation::hard_swish:
      return 1.5;
    case Activation::none:
    case Activation::relu:
    case Activation::clip:
      break;
  }
  return 1.0;
}

bool transcendental(Activation activation) {
  return activation == Activation::silu || activation == Activation::gelu_erf || activation == Activation::gelu_tanh;
}

double rounded(DType type, double value) {
  std::byte bits[4];
  store_element(type, bits, 0, value);
  return load_element(type, bits, 0);
}

}  // namespace

Bound::Bound(const ConvProblem& v, BoundOptions options) : problem_(v), options_(options) {
  const TypeLimits limits = limits_of(v.dtype);
  const auto terms = static_cast<double>(v.taps() * v.channels_per_group());
  const double fused = options.arithmetic == Arithmetic::mma ? static_cast<double>(fused_additions(v)) : 0.0;
  unit_ = limits.unit;
  largest_ = limits.largest;
  tiny_ = limits.smallest + terms * 0x1p-149;
  errors_ = options.exact ? 0.0 : (terms + 3 * fused + 3) * u32;
  slope_ = largest_slope(v);
  inexact_activation_ = transcendental(v.activation) || (options.exact && v.activation == Activation::hard_swish);
}

Verdict Bound::judge(const PreActivation& sum, double y) const {
  const double a = sum.value;
  const double want = activate(problem_, a);
  if (!std::isfinite(a) || !std::isfinite(want)) return judge_special(a, y, want);  // want: a clip to an infinity
  Verdict verdict;
  verdict.want = want;
  if (options_.exact && !inexact_activation_) {
    verdict.right = same_bits(y, want);
    verdict.ratio = verdict.right ? 0.0 : infinity;
    return verdict;
  }
  const double size = std::fabs(want);
  const double activation_error = inexact_activation_ ? 4 * u32 * (std::fabs(a) + size) : 0.0;
  verdict.allowed = unit_ * size + (1 + unit_) * (slope_ * errors_ * sum.scale + activation_error) + tiny_;
  if (std::isnan(y)) {
    verdict.ratio = infinity;
  } else if (std::isinf(y)) {
    verdict.right = size + verdict.allowed > largest_ && std::signbit(y) == std::signbit(want);
    verdict.ratio = verdict.right ? 0.0 : infinity;
  } else {
    const double error = std::fabs(y - want);
    verdict.right = error <= verdict.allowed;
    verdict.ratio = error / verdict.allowed;
  }
  return verdict;
}

// +0 and -0 count as the same: which one a sum of zeros gives depends on its order.
bool Bound::same_bits(double y, double want) const {
  if (y == rounded(problem_.dtype, want)) return true;
  return problem_.activation == Activation::leaky_relu &&
         y == rounded(problem_.dtype, static_cast<double>(static_cast<float>(want)));
}

Verdict Bound::judge_special(double a, double y, double want) const {
  Verdict verdict;
  const bool vanishes = a < 0 && (transcendental(problem_.activation) || problem_.activation == Activation::hard_swish);
  verdict.want = vanishes ? 0.0 : rounded(problem_.dtype, want);  // a clip bound need not be a number of the dtype
  verdict.right = y == verdict.want || (std::isnan(want) && std::isnan(y));
  verdict.ratio = verdict.right ? 0.0 : infinity;
  return verdict;
}

}  // namespace sl
