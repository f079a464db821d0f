// One output by plain fp32 arithmetic over the taps that lie inside the input: what a schedule falls back to where its
// matrix instructions multiplied structural zeros with an Inf or NaN that no tap of the output reads.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// Neither Inf nor NaN. A leaked 0 * Inf always makes the sum NaN, so a finite sum needs no second look.
SL_DEVICE bool finite(float v) { return (float_bits(v) & 0x7fffffffU) < 0x7f800000U; }

/// The sum of products of y[n, k, row, column], without bias. Rolled up: rare and slow, so small.
/// Cfg: CPG WLAYOUT DIL_H DIL_W STRIDE_* MULT R S LAYOUT DTYPE INDEX64.
template <class Cfg>
SL_DEVICE float exact_sum(const SlParams& p, Index<Cfg> n, int k, int row, int column) {
  const Bits<Cfg>* x = x_at<Cfg>(p, n, static_cast<Index<Cfg>>(k / Cfg::MULT * Cfg::CPG));
  const auto* weight = static_cast<const Bits<Cfg>*>(p.weight);
  const int top = static_cast<int>(static_cast<long long>(row) * Cfg::STRIDE_H - p.pad_top);
  const int left = static_cast<int>(static_cast<long long>(column) * Cfg::STRIDE_W - p.pad_left);
  float sum = 0.0F;
  SL_UNROLL_BY(1)
  for (int r = 0; r < Cfg::R; ++r) {
    const int h = top + r * Cfg::DIL_H;
    if (!inside(h, static_cast<int>(p.h))) continue;
    SL_UNROLL_BY(1)
    for (int s = 0; s < Cfg::S; ++s) {
      const int w = left + s * Cfg::DIL_W;
      if (!inside(w, static_cast<int>(p.w))) continue;
      SL_UNROLL_BY(1)
      for (int c = 0; c < Cfg::CPG; ++c) {
        Index<Cfg> at = pixel_offset<Cfg>(p, h, w);
        if constexpr (Cfg::LAYOUT == kNhwc) {
          at += c;
        } else {
          at += static_cast<Index<Cfg>>(c) * static_cast<Index<Cfg>>(p.h) * static_cast<Index<Cfg>>(p.w);
        }
        sum = sl::fma(load_one<Cfg>(x + at), load_one<Cfg>(weight + w_offset<Cfg>(k, c, r, s)), sum);
      }
    }
  }
  return sum;
}

}  // namespace sl
