// What follows from a ConvProblem's fields: sizes, the normal form, and the key.
#include "core/conv_problem.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace sl {
namespace {

std::int64_t float_word(float alpha, float beta) {
  const auto high = static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(alpha)) << 32;
  return static_cast<std::int64_t>(high | std::bit_cast<std::uint32_t>(beta));
}

}  // namespace

std::int64_t ConvProblem::min_bytes() const {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t bias_element = bias == Bias::none ? 0 : bias == Bias::f32 ? 4 : element;
  return (x_elements() + w_elements() + y_elements() * (residual ? 2 : 1)) * element + k * bias_element;
}

std::int64_t ConvProblem::macs() const { return y_elements() * channels_per_group() * taps(); }

bool ConvProblem::needs_64bit_offsets() const {
  // Kernels may form (not dereference) the offset of a window's far corner in the padding, and round the number of work
  // items up to a block. Too wide a margin costs a little speed near 2^31 elements; too narrow a one is a wrong answer.
  constexpr std::int64_t block_slack = 1 << 16;
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max() - block_slack;
  std::int64_t halo = 0;
  if (__builtin_mul_overflow(effective_r() + 1, w, &halo) || __builtin_add_overflow(halo, effective_s(), &halo) ||
      __builtin_mul_overflow(halo, layout == Layout::nhwc ? c : 1, &halo)) {
    return true;
  }
  return halo > limit || x_elements() > limit - halo || y_elements() > limit || w_elements() > limit;
}

ConvProblem ConvProblem::normalised() const {
  ConvProblem result = *this;
  if (dtype == DType::f32 && bias == Bias::f32) result.bias = Bias::same;
  if (r == 1) result.dil_h = 1;
  if (s == 1) result.dil_w = 1;
  result.alpha += 0.0F;  // -0 becomes 0
  result.beta += 0.0F;
  return result;
}

std::array<std::int64_t, ConvProblem::key_words> ConvProblem::key() const {
  const ConvProblem v = normalised();
  return {v.n,
          v.c,
          v.h,
          v.w,
          v.k,
          v.groups,
          v.r,
          v.s,
          v.p,
          v.q,
          v.stride_h,
          v.stride_w,
          v.pad_top,
          v.pad_left,
          v.dil_h,
          v.dil_w,
          static_cast<std::int64_t>(v.dtype),
          static_cast<std::int64_t>(v.layout),
          static_cast<std::int64_t>(v.weight_layout),
          static_cast<std::int64_t>(v.bias),
          static_cast<std::int64_t>(v.activation),
          float_word(v.alpha, v.beta),
          static_cast<std::int64_t>(v.residual),
          v.align};
}

Digest ConvProblem::digest() const {
  const auto words = key();
  return digest_bytes(std::as_bytes(std::span(words)));
}

ConvProblem ConvProblem::batch_bucket() const {
  constexpr std::int64_t largest_bucket = 256;
  ConvProblem result = *this;
  if (n > 0) {
    const auto bucket = std::bit_ceil(static_cast<std::uint64_t>(std::min(n, largest_bucket)));
    result.n = static_cast<std::int64_t>(bucket);
  }
  return result;
}

}  // namespace sl

std::size_t std::hash<sl::ConvProblem>::operator()(const sl::ConvProblem& p) const noexcept {
  const auto words = p.key();
  return static_cast<std::size_t>(XXH3_64bits(words.data(), sizeof(words)));
}
