// dw_mult: depthwise with a channel multiplier. A thread loads a window of one input channel once and computes all MULT
// output channels of it, for COLS columns. The block's weights lie in shared memory as float, channel lanes side by
// side.
#pragma once

#include "common/block_tile.cuh"
#include "common/window.cuh"

namespace sl {

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* MULT; LANES input channels a block, COLS, STORE (elements
/// of one store: NHWC divides MULT, NCHW divides COLS and the row length). No dilation. Work as in BlockTile.
template <class Cfg>
SL_DEVICE void dw_mult(const SlParams& p) {
  using I = Index<Cfg>;
  using Window = RowWindow<Cfg>;
  constexpr int R = Cfg::R, S = Cfg::S, M = Cfg::MULT, COLS = Cfg::COLS, LANES = Cfg::LANES;
  constexpr int ROW_UNROLL = R * S * M * COLS <= 512 ? R : 1;
  constexpr int WEIGHTS = R * S * M * LANES;
  SL_SHARED(float, weights, WEIGHTS);  // [tap][m][lane]

  const BlockTile<Cfg> tile(p);
  const int channels = static_cast<int>(p.c);
  const int c0 = tile.channel_block * LANES;
  const Bits<Cfg>* weight = static_cast<const Bits<Cfg>*>(p.weight);
  // Read in the order of memory: [lane][m][tap].
  for (int i = thread_id(); i < WEIGHTS; i += Cfg::THREADS) {
    const int lane = i / (M * R * S), m = i / (R * S) % M, tap = i % (R * S);
    if (c0 + lane < channels) {
      weights[(tap * M + m) * LANES + lane] = load_one<Cfg>(weight + static_cast<long long>(c0) * (M * R * S) + i);
    }
  }
  barrier();

  const int c = c0 + tile.lane;
  if (c >= channels) return;
  const I k = static_cast<I>(c) * M;
  float bias[M];
  SL_UNROLL
  for (int m = 0; m < M; ++m) bias[m] = bias_of<Cfg>(p, k + m);

  long long number = tile.first_strip;
  SL_UNROLL_BY(1)
  for (int turn = 0; turn < p.aux[1] && number < p.aux[0]; ++turn, number += BlockTile<Cfg>::SLOTS) {
    const auto at = BlockTile<Cfg>::strip(number, p);
    const Bits<Cfg>* x = x_at<Cfg>(p, at.n, static_cast<I>(c));
    const int top = static_cast<int>(static_cast<long long>(at.row) * Cfg::STRIDE_H - p.pad_top);
    const int left = static_cast<int>(static_cast<long long>(at.column) * Cfg::STRIDE_W - p.pad_left);

    float sum[COLS][M];
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      SL_UNROLL
      for (int m = 0; m < M; ++m) sum[t][m] = bias[m];
    }
    SL_UNROLL_BY(ROW_UNROLL)
    for (int r = 0; r < R; ++r) {
      if (!inside(top + r, static_cast<int>(p.h))) continue;
      float value[Window::SPAN];
      SL_UNROLL
      for (int i = 0; i < Window::SPAN; ++i) {
        value[i] = 0.0F;
        if (Window::used(i) && inside(left + i, static_cast<int>(p.w))) {
          value[i] = load_one<Cfg>(x + pixel_offset<Cfg>(p, top + r, left + i));
        }
      }
      SL_UNROLL
      for (int s = 0; s < S; ++s) {
        SL_UNROLL
        for (int m = 0; m < M; ++m) {
          const float w = weights[((r * S + s) * M + m) * LANES + tile.lane];
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) sum[t][m] = sl::fma(value[t * Cfg::STRIDE_W + s], w, sum[t][m]);
        }
      }
    }

    const int limit = static_cast<int>(static_cast<I>(p.q) - at.column < COLS ? static_cast<I>(p.q) - at.column : COLS);
    if constexpr (Cfg::LAYOUT == kNhwc) {
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) {
        if (t < limit) finish_row<Cfg, Cfg::STORE>(p, y_offset<Cfg>(p, at.n, k, at.row, at.column + t), sum[t], M);
      }
    } else {
      SL_UNROLL
      for (int m = 0; m < M; ++m) {
        float out[COLS];
        SL_UNROLL
        for (int t = 0; t < COLS; ++t) out[t] = sum[t][m];
        finish_row<Cfg, Cfg::STORE>(p, y_offset<Cfg>(p, at.n, k + m, at.row, at.column), out, limit);
      }
    }
  }
}

}  // namespace sl
