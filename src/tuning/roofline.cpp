#include "tuning/roofline.hpp"

#include <algorithm>

namespace sl {
namespace {

/// Taps inside the input, summed over the outputs of one axis.
double inside_taps(std::int64_t out, std::int64_t in, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                   std::int64_t pad) {
  double total = 0;
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t at = o * stride - pad + t * dilation;
      if (at >= 0 && at < in) ++total;
    }
  }
  return total;
}

double rows_inside(const ConvProblem& v) { return inside_taps(v.p, v.h, v.r, v.stride_h, v.dil_h, v.pad_top); }

constexpr double ceil8(std::int64_t a) {
  const std::int64_t eights = (a + 7) / 8;
  return static_cast<double>(eights);
}

}  // namespace

double inside_macs(const ConvProblem& v) {
  const double columns = inside_taps(v.q, v.w, v.s, v.stride_w, v.dil_w, v.pad_left);
  return rows_inside(v) * columns * static_cast<double>(v.n * v.k * v.channels_per_group());
}

double matrix_macs(const ConvProblem& v) {
  const double outputs_of_a_row = static_cast<double>(v.q) * static_cast<double>(v.n * v.k);
  const std::int64_t span = 7 * v.stride_w + (v.s - 1) * v.dil_w + 1;
  const double toeplitz = 8 * ceil8(span) * static_cast<double>(v.channels_per_group());
  const double block_diagonal = 8 * ceil8(v.channels_per_group()) * static_cast<double>(v.s);
  return rows_inside(v) * outputs_of_a_row * std::min(toeplitz, block_diagonal);
}

double arithmetic_floor_us(const ConvProblem& v, const Peaks& peaks) {
  if (v.empty() || peaks.fma <= 0) return 0;
  const double fma = inside_macs(v) / peaks.fma * 1e6;
  if (v.dtype == DType::f32 || peaks.mma <= 0) return fma;
  return std::min(fma, matrix_macs(v) / peaks.mma * 1e6);
}

}  // namespace sl
