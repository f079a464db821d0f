// dw_flat: the portable base for depthwise. A thread computes COLS neighbouring columns of VEC neighbouring channels
// and reads what it needs straight from memory; the caches provide the reuse. Every shape, multiplier, stride,
// dilation, kernel size and alignment.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* MULT; VEC (1 unless NHWC and MULT 1; divides k),
/// COLS. work = n * strips of one row * tiles * channel blocks; div as in locate().
template <class Cfg>
SL_DEVICE void dw_flat(const SlParams& p) {
  using I = Index<Cfg>;
  constexpr int VEC = Cfg::VEC, COLS = Cfg::COLS;
  constexpr int ROW_UNROLL = Cfg::R * Cfg::S <= 25 ? Cfg::R : 1;  // beyond, code size costs more than the loop
  constexpr int COLUMN_UNROLL = Cfg::S <= 11 ? Cfg::S : 4;

  const long long item = block_id() * block_dim() + thread_id();
  if (item >= p.work) return;
  const Place<I> at = locate<Cfg>(item, p);
  const I k = at.channel_block * VEC;
  const I q0 = at.tile * COLS;
  const I c = Cfg::MULT == 1 ? k : k / Cfg::MULT;

  const Bits<Cfg>* x = x_at<Cfg>(p, at.n, c);
  const Bits<Cfg>* weight = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k) * (Cfg::R * Cfg::S);
  const int top = static_cast<int>(static_cast<long long>(at.strip) * Cfg::STRIDE_H - p.pad_top);
  const int left = static_cast<int>(static_cast<long long>(q0) * Cfg::STRIDE_W - p.pad_left);
  const int height = static_cast<int>(p.h), width = static_cast<int>(p.w);

  float sum[COLS][VEC];
  SL_UNROLL
  for (int t = 0; t < COLS; ++t) {
    SL_UNROLL
    for (int v = 0; v < VEC; ++v) sum[t][v] = 0.0F;
  }

  SL_UNROLL_BY(ROW_UNROLL)
  for (int r = 0; r < Cfg::R; ++r) {
    const int h = top + r * Cfg::DIL_H;
    if (!inside(h, height)) continue;
    SL_UNROLL_BY(COLUMN_UNROLL)
    for (int s = 0; s < Cfg::S; ++s) {
      float w[VEC];
      SL_UNROLL
      for (int v = 0; v < VEC; ++v) w[v] = load_one<Cfg>(weight + (v * Cfg::R + r) * Cfg::S + s);
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) {
        const int column = left + t * Cfg::STRIDE_W + s * Cfg::DIL_W;
        if (inside(column, width)) {  // a tap outside the input is skipped, whatever the weight there
          float value[VEC];
          load_floats<Cfg, VEC>(value, x + pixel_offset<Cfg>(p, h, column));
          SL_UNROLL
          for (int v = 0; v < VEC; ++v) sum[t][v] = sl::fma(value[v], w[v], sum[t][v]);
        }
      }
    }
  }

  float bias[VEC];
  SL_UNROLL
  for (int v = 0; v < VEC; ++v) bias[v] = bias_of<Cfg>(p, k + v);
  SL_UNROLL
  for (int t = 0; t < COLS; ++t) {
    if (q0 + t < static_cast<I>(p.q)) {
      SL_UNROLL
      for (int v = 0; v < VEC; ++v) sum[t][v] += bias[v];
      finish<Cfg, VEC>(p, y_offset<Cfg>(p, at.n, k, at.strip, q0 + t), sum[t]);
    }
  }
}

}  // namespace sl
