// dw_row8: register sliding window. A thread owns COLS (8, or 4) outputs along a row, of VEC channels in NHWC or of one
// plane in NCHW, and slides down `rows` output rows: every input row is read once, widened once, and added to the SLOTS
// output rows it belongs to. Weights stay in registers.
#pragma once

#include "common/window.cuh"

namespace sl {

/// The accumulators of SLOTS output rows in flight; slot d holds the row whose first input row came d steps ago.
template <int SLOTS, int COLS, int CHANNELS>
struct RowSums {
  float at[SLOTS][COLS][CHANNELS];

  SL_DEVICE void clear(int slot) {
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      SL_UNROLL
      for (int v = 0; v < CHANNELS; ++v) at[slot][t][v] = 0.0F;
    }
  }

  /// Every row is one step older; a fresh one starts at 0. In an unrolled loop this only renames registers.
  SL_DEVICE void advance() {
    SL_UNROLL
    for (int d = SLOTS - 1; d > 0; --d) {
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) {
        SL_UNROLL
        for (int v = 0; v < CHANNELS; ++v) at[d][t][v] = at[d - 1][t][v];
      }
    }
    clear(0);
  }
};

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* MULT; COLS, VEC (NHWC: channels a thread; NCHW: columns a
/// load), LEAD and STORE (NCHW: see WindowRow; columns a store). No dilation.
/// work = n * strips * tiles * channel blocks, div as in locate(); aux[0] = output rows of a strip.
template <class Cfg>
SL_DEVICE void dw_row8(const SlParams& p) {
  using I = Index<Cfg>;
  using Row = WindowRow<Cfg>;
  constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, COLS = Cfg::COLS;
  constexpr int CHANNELS = Row::CHANNELS;
  constexpr int SLOTS = (R + SH - 1) / SH;
  constexpr int FRESH = SH < R ? SH : R;  // input rows of one step that some output reads
  // Unrolled over the slots the shift costs nothing; large kernels would overflow the instruction cache.
  constexpr int UNROLL = SLOTS * FRESH * R * S * COLS * CHANNELS <= 1600 ? SLOTS : 1;

  const long long item = block_id() * block_dim() + thread_id();
  if (item >= p.work) return;
  const Place<I> at = locate<Cfg>(item, p);
  const I k = at.channel_block * CHANNELS;
  const I q0 = at.tile * COLS;
  const I p0 = at.strip * static_cast<I>(p.aux[0]);
  const I rows_left = static_cast<I>(p.p) - p0;
  const int rows = static_cast<int>(rows_left < static_cast<I>(p.aux[0]) ? rows_left : static_cast<I>(p.aux[0]));

  const Bits<Cfg>* x = x_at<Cfg>(p, at.n, Cfg::MULT == 1 ? k : k / Cfg::MULT);
  const int first = static_cast<int>(static_cast<long long>(q0) * SW - p.pad_left);
  int h = static_cast<int>(static_cast<long long>(p0) * SH - p.pad_top);

  float weight[R * S][CHANNELS];
  const Bits<Cfg>* w = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k) * (R * S);
  SL_UNROLL
  for (int i = 0; i < R * S; ++i) {
    SL_UNROLL
    for (int v = 0; v < CHANNELS; ++v) weight[i][v] = load_one<Cfg>(w + v * (R * S) + i);
  }
  float bias[CHANNELS];
  SL_UNROLL
  for (int v = 0; v < CHANNELS; ++v) bias[v] = bias_of<Cfg>(p, k + v);

  RowSums<SLOTS, COLS, CHANNELS> sums;
  SL_UNROLL
  for (int d = 0; d < SLOTS; ++d) sums.clear(d);

  Row current, next;
  current.load(p, x, h, first);
  const int steps = rows + SLOTS - 1;
  SL_UNROLL_BY(1)
  for (int base = 0; base < steps; base += UNROLL) {
    SL_UNROLL
    for (int u = 0; u < UNROLL; ++u) {
      const int step = base + u;
      if (step >= steps) break;
      sums.advance();
      SL_UNROLL
      for (int j = 0; j < FRESH; ++j) {
        next.load(p, x, j + 1 < FRESH ? h + j + 1 : h + SH, first);
        float value[RowWindow<Cfg>::SPAN][CHANNELS];
        SL_UNROLL
        for (int i = 0; i < RowWindow<Cfg>::SPAN; ++i) {
          SL_UNROLL
          for (int v = 0; v < CHANNELS; ++v) value[i][v] = current.value(i, v);
        }
        SL_UNROLL
        for (int d = SLOTS - 1; d >= 0; --d) {
          if (d * SH + j < R) {
            SL_UNROLL
            for (int s = 0; s < S; ++s) {
              SL_UNROLL
              for (int t = 0; t < COLS; ++t) {
                SL_UNROLL
                for (int v = 0; v < CHANNELS; ++v) {
                  sums.at[d][t][v] = sl::fma(value[t * SW + s][v], weight[(d * SH + j) * S + s][v], sums.at[d][t][v]);
                }
              }
            }
          }
        }
        current = next;
      }
      h += SH;
      if (step >= SLOTS - 1) {
        const I row = p0 + (step - (SLOTS - 1));
        const int limit = static_cast<int>(static_cast<I>(p.q) - q0 < COLS ? static_cast<I>(p.q) - q0 : COLS);
        if constexpr (Cfg::LAYOUT == kNhwc) {
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) {
            if (t < limit) {
              float out[CHANNELS];
              SL_UNROLL
              for (int v = 0; v < CHANNELS; ++v) out[v] = sums.at[SLOTS - 1][t][v] + bias[v];
              finish<Cfg, CHANNELS>(p, y_offset<Cfg>(p, at.n, k, row, q0 + t), out);
            }
          }
        } else {
          float out[COLS];
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) out[t] = sums.at[SLOTS - 1][t][0] + bias[0];
          finish_row<Cfg, Cfg::STORE>(p, y_offset<Cfg>(p, at.n, k, row, q0), out, limit);
        }
      }
    }
  }
}

}  // namespace sl
