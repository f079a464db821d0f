// grp_plane: grouped convolution, the portable base. A thread computes OUTS output channels of one group (one, unless
// the multiplier allows more) for COLS columns; the weights of the block's LANES x OUTS channels are shared, as float
// in shared memory where they fit, else through the read-only cache. Every shape, stride, dilation, kernel size,
// alignment.
#pragma once

#include "common/block_tile.cuh"

namespace sl {

/// Cfg: DTYPE LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG MULT; LANES, OUTS (divides MULT), COLS,
/// VEC (input channels of one load: 1 in NCHW, divides CPG in NHWC), STORE (channels of one store in NHWC: OUTS or 1),
/// SHARED (0: weights stay in global memory).
/// Work as in BlockTile; a channel lane is OUTS output channels.
template <class Cfg>
struct GrpPlane {
  using I = Index<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, CPG = Cfg::CPG, OUTS = Cfg::OUTS, COLS = Cfg::COLS, VEC = Cfg::VEC;
  static constexpr int PER_OUT = R * S * CPG;
  static constexpr int BLOCK_OUTS = Cfg::LANES * OUTS;
  static constexpr int SPAN = (COLS - 1) * Cfg::STRIDE_W + S;
  // With a dense window the columns of a row are loaded once and used by several taps.
  static constexpr bool WINDOW = Cfg::DIL_W == 1 && S > 1 && SPAN* VEC <= 48 && Cfg::STRIDE_W <= S;
  static constexpr int FMAS = S * VEC * COLS * OUTS;  // of one row and one channel vector
  // Without a window every tap is a load that the compiler hoists: fewer may be in flight before registers run out.
  static constexpr int CHANNEL_UNROLL = FMAS * (CPG / VEC) <= (WINDOW ? 256 : 96) ? CPG / VEC : 1;
  static constexpr int ROW_UNROLL = FMAS * (CPG / VEC) * R <= (WINDOW ? 384 : 128) ? R : 1;
  static constexpr int COLUMN_UNROLL = WINDOW || S * COLS * VEC <= 48 ? S : 4;

  /// Weights of this thread's channels: in shared memory [tap][c][channel of the block], or in global memory.
  const float* shared;
  const Bits<Cfg>* global;
  I k;

  SL_DEVICE float weight(int r, int s, int c, int out) const {
    if constexpr (Cfg::SHARED != 0) {
      return shared[((r * S + s) * CPG + c) * BLOCK_OUTS + out];
    } else {
      return load_one<Cfg>(global + w_offset<Cfg>(k + out, c, r, s));
    }
  }

  /// VEC input channels from c on of pixel (h, column); zeros outside the row.
  SL_DEVICE static void pixel(const SlParams& p, const Bits<Cfg>* x, int c, int h, int column, float (&to)[VEC]) {
    SL_UNROLL
    for (int v = 0; v < VEC; ++v) to[v] = 0.0F;
    if (!inside(column, static_cast<int>(p.w))) return;
    if constexpr (Cfg::LAYOUT == kNhwc) {
      load_floats<Cfg, VEC>(to, x + (pixel_offset<Cfg>(p, h, column) + c));
    } else {
      load_floats<Cfg, VEC>(
          to, x + (static_cast<I>(c) * static_cast<I>(p.h) * static_cast<I>(p.w) + pixel_offset<Cfg>(p, h, column)));
    }
  }

  SL_DEVICE void accumulate(float (&sum)[COLS][OUTS], const float (&value)[VEC], int t, int r, int s, int c) const {
    SL_UNROLL
    for (int v = 0; v < VEC; ++v) {
      SL_UNROLL
      for (int o = 0; o < OUTS; ++o) sum[t][o] = sl::fma(value[v], weight(r, s, c + v, o), sum[t][o]);
    }
  }

  SL_DEVICE void row(const SlParams& p, const Bits<Cfg>* x, int r, int h, int left, float (&sum)[COLS][OUTS]) const {
    SL_UNROLL_BY(CHANNEL_UNROLL)
    for (int c = 0; c < CPG; c += VEC) {
      if constexpr (WINDOW) {
        float window[SPAN][VEC];
        SL_UNROLL
        for (int i = 0; i < SPAN; ++i) pixel(p, x, c, h, left + i, window[i]);
        SL_UNROLL
        for (int s = 0; s < S; ++s) {
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) accumulate(sum, window[t * Cfg::STRIDE_W + s], t, r, s, c);
        }
      } else {
        SL_UNROLL_BY(COLUMN_UNROLL)
        for (int s = 0; s < S; ++s) {
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) {
            float value[VEC];
            pixel(p, x, c, h, left + t * Cfg::STRIDE_W + s * Cfg::DIL_W, value);
            accumulate(sum, value, t, r, s, c);
          }
        }
      }
    }
  }

  SL_DEVICE void strip(const SlParams& p, const typename BlockTile<Cfg>::Strip& at) const {
    const I group = k / Cfg::MULT;
    const Bits<Cfg>* x = x_at<Cfg>(p, at.n, group * CPG);
    const int top = static_cast<int>(static_cast<long long>(at.row) * Cfg::STRIDE_H - p.pad_top);
    const int left = static_cast<int>(static_cast<long long>(at.column) * Cfg::STRIDE_W - p.pad_left);
    float sum[COLS][OUTS];
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      SL_UNROLL
      for (int o = 0; o < OUTS; ++o) sum[t][o] = 0.0F;
    }
    SL_UNROLL_BY(ROW_UNROLL)
    for (int r = 0; r < R; ++r) {
      const int h = top + r * Cfg::DIL_H;
      if (inside(h, static_cast<int>(p.h))) row(p, x, r, h, left, sum);
    }
    SL_UNROLL
    for (int o = 0; o < OUTS; ++o) {
      const float bias = bias_of<Cfg>(p, k + o);
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) sum[t][o] += bias;
    }
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      if (at.column + t < static_cast<I>(p.q)) store(p, at, t, sum[t]);
    }
  }

  SL_DEVICE void store(const SlParams& p, const typename BlockTile<Cfg>::Strip& at, int t,
                       const float (&sum)[OUTS]) const {
    if constexpr (Cfg::LAYOUT == kNhwc) {
      finish_row<Cfg, Cfg::STORE>(p, y_offset<Cfg>(p, at.n, k, at.row, at.column + t), sum, OUTS);
    } else {
      SL_UNROLL
      for (int o = 0; o < OUTS; ++o) {
        const float one[1] = {sum[o]};
        finish<Cfg, 1>(p, y_offset<Cfg>(p, at.n, k + o, at.row, at.column + t), one);
      }
    }
  }

  /// All threads of the block: the weights of output channels [k0, k0 + BLOCK_OUTS), in the order they lie in memory.
  SL_DEVICE static void stage(const SlParams& p, float* weights, int k0) {
    const Bits<Cfg>* from = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k0) * PER_OUT;
    const int present = static_cast<int>(p.k) - k0;
    for (int i = thread_id(); i < BLOCK_OUTS * PER_OUT; i += Cfg::THREADS) {
      const int out = i / PER_OUT, rest = i % PER_OUT;
      const int c = Cfg::WLAYOUT == kOhwi ? rest % CPG : rest / (R * S);
      const int tap = Cfg::WLAYOUT == kOhwi ? rest / CPG : rest % (R * S);
      if (out < present) weights[(tap * CPG + c) * BLOCK_OUTS + out] = load_one<Cfg>(from + i);
    }
    barrier();
  }
};

template <class Cfg>
SL_DEVICE void grp_plane(const SlParams& p) {
  const BlockTile<Cfg> tile(p);
  GrpPlane<Cfg> work;
  const int k0 = tile.channel_block * GrpPlane<Cfg>::BLOCK_OUTS;
  work.k = static_cast<Index<Cfg>>(k0) + tile.lane * Cfg::OUTS;
  work.global = static_cast<const Bits<Cfg>*>(p.weight);
  if constexpr (Cfg::SHARED != 0) {
    SL_SHARED(float, weights, GrpPlane<Cfg>::BLOCK_OUTS* GrpPlane<Cfg>::PER_OUT);
    GrpPlane<Cfg>::stage(p, weights, k0);
    work.shared = weights + tile.lane * Cfg::OUTS;
  } else {
    work.shared = nullptr;
  }
  if (work.k >= static_cast<Index<Cfg>>(p.k)) return;
  long long number = tile.first_strip;
  SL_UNROLL_BY(1)
  for (int turn = 0; turn < p.aux[1] && number < p.aux[0]; ++turn, number += BlockTile<Cfg>::SLOTS) {
    work.strip(p, BlockTile<Cfg>::strip(number, p));
  }
}

}  // namespace sl
