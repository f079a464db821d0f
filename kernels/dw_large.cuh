// dw_large: kernels too large for registers. The lanes of a warp are PLANES channels (x GROUPS row tiles); each thread
// keeps a tile of ROWS x COLS sums and goes through the input rows once for every TAPS columns of the kernel, so that a
// value loaded from shared memory serves up to ROWS x TAPS multiply-adds and a weight ROWS x COLS. All lanes stand at
// the same column: what lies outside the input is left out for the whole warp.
#pragma once

#include "common/conv.cuh"
#include "common/exact.cuh"
#include "common/stage_floats.cuh"

namespace sl {

template <class Cfg>
struct LargeShape {
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int R = Cfg::R, S = Cfg::S, ROWS = Cfg::ROWS, COLS = Cfg::COLS, PLANES = Cfg::PLANES;
  static constexpr int GROUPS = 32 / PLANES;
  static constexpr int CHUNKS = (S + Cfg::TAPS - 1) / Cfg::TAPS;
  static constexpr int W_COLS = CHUNKS * Cfg::TAPS;  // weights of a row in shared memory; those beyond S are 0
  static constexpr int X_COLS = Cfg::COL_TILES * COLS + W_COLS - 1;
  /// Floats from one pixel or weight to the next: odd where neighbouring threads store neighbours.
  static constexpr int PITCH = NHWC ? PLANES : PLANES + 1;
  static constexpr int W_PITCH = PLANES + 1;
  static constexpr int X_FLOATS = Cfg::X_ROWS * X_COLS * PITCH;
  /// From one kernel row to the next: such that the rows which the groups of a warp read lie in different banks.
  static constexpr int spread(int floats, int tries) {
    const int apart = floats * ROWS % 32;
    return tries == 0 || GROUPS == 1 || apart == PLANES || apart == 32 - PLANES ? floats
                                                                                : spread(floats + 1, tries - 1);
  }
  static constexpr int W_ROW = spread(W_COLS * W_PITCH, 31);
  static constexpr int W_FLOATS = (R + 1) * W_ROW;  // row R is 0
  static constexpr int Y_COLS = Cfg::COL_TILES * COLS, Y_ROWS = Cfg::ROW_TILES * ROWS;
  static constexpr int Y_PLANE = NHWC ? 1 : Y_ROWS * Y_COLS | 1, Y_PIXEL = NHWC ? PLANES : 1;  // strides of the sums
  static constexpr int WARPS_DOWN = Cfg::ROW_TILES / GROUPS;
  static constexpr int WARP_TILES = WARPS_DOWN * Cfg::COL_TILES;
  /// Whether sums multiply zeros that no tap has, which an Inf or NaN in x would turn into NaN.
  static constexpr bool GUARD = GROUPS > 1 || W_COLS != S;
};

/// The block's input rows, zeros beside them: rows `top` .. of x, `left` = the input column of the first.
template <class Cfg>
SL_DEVICE void stage_rows(const SlParams& p, float* xs, const Bits<Cfg>* x, int top, int rows, int left, int lines) {
  using I = Index<Cfg>;
  using Shape = LargeShape<Cfg>;
  constexpr int PLANES = Cfg::PLANES, COLUMNS = Shape::X_COLS;
  const int width = static_cast<int>(p.w);
  if constexpr (Shape::NHWC) {
    constexpr int PER = Cfg::PER, COPIES = COLUMNS * (PLANES / PER);
    SL_UNROLL_BY(4)
    for (int i = thread_id(); i < rows * COPIES; i += Cfg::THREADS) {
      const int row = i / COPIES, column = i / (PLANES / PER) % COLUMNS, plane = i % (PLANES / PER) * PER;
      const bool present = inside(left + column, width) && plane < lines;
      const I from = present ? pixel_offset<Cfg>(p, top + row, left + column) + plane : 0;
      stage_floats<Cfg, PER>(xs + (row * COLUMNS + column) * Shape::PITCH + plane, x + from, present);
    }
  } else {  // a warp takes a row of a plane
    SL_UNROLL_BY(2)
    for (int i = thread_id() / 32; i < rows * PLANES; i += Cfg::THREADS / 32) {
      const int row = i / PLANES, plane = i % PLANES;
      const I from = (static_cast<I>(plane) * static_cast<I>(p.h) + top + row) * width + left;
      SL_UNROLL
      for (int start = 0; start < COLUMNS; start += 32) {
        const int column = start + thread_id() % 32;
        const bool present = inside(left + column, width) && plane < lines;
        if (column < COLUMNS) {
          stage_floats<Cfg, 1>(xs + (row * COLUMNS + column) * Shape::PITCH + plane, present ? x + (from + column) : x,
                               present);
        }
      }
    }
  }
}

/// The block's weights, a warp a plane, and the zeros beside them.
template <class Cfg>
SL_DEVICE void stage_weights(const SlParams& p, float* ws, Index<Cfg> first, int lines) {
  using Shape = LargeShape<Cfg>;
  constexpr int R = Cfg::R, S = Cfg::S, PLANES = Cfg::PLANES;
  for (int plane = thread_id() / 32; plane < PLANES && plane < lines; plane += Cfg::THREADS / 32) {
    Index<Cfg> k = first + plane;
    if constexpr (!Shape::NHWC) k = take(k, p.div[0]);
    const Bits<Cfg>* w = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k) * (R * S);
    SL_UNROLL_BY(4)
    for (int i = thread_id() % 32; i < R * S; i += 32) {
      stage_floats<Cfg, 1>(ws + i / S * Shape::W_ROW + i % S * Shape::W_PITCH + plane, w + i, true);
    }
  }
  constexpr int BESIDE = Shape::W_COLS - S;
  for (int i = thread_id(); i < R * BESIDE * PLANES; i += Cfg::THREADS) {
    const int column = S + i / PLANES % (BESIDE > 0 ? BESIDE : 1), row = i / (PLANES * (BESIDE > 0 ? BESIDE : 1));
    ws[row * Shape::W_ROW + column * Shape::W_PITCH + i % PLANES] = 0.0F;
  }
  for (int i = thread_id(); i < Shape::W_COLS * PLANES; i += Cfg::THREADS) {
    ws[R * Shape::W_ROW + i / PLANES * Shape::W_PITCH + i % PLANES] = 0.0F;
  }
}

/// Finishes the block's outputs from their sums in shared memory, neighbours in memory by neighbouring threads.
template <class Cfg>
SL_DEVICE void finish_tile(const SlParams& p, const float* ys, Index<Cfg> n, Index<Cfg> first, int lines, int p_block,
                           int q_block) {
  using I = Index<Cfg>;
  using Shape = LargeShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC;
  constexpr int PLANES = Cfg::PLANES, COLUMNS = Shape::Y_COLS, ROWS = Shape::Y_ROWS;
  constexpr int N = NHWC ? Cfg::PER : Cfg::STORE;
  SL_UNROLL_BY(1)
  for (int i = thread_id() * N; i < PLANES * ROWS * COLUMNS; i += Cfg::THREADS * N) {
    const int plane = NHWC ? i % PLANES : i / (ROWS * COLUMNS);
    const int column = NHWC ? i / PLANES % COLUMNS : i % COLUMNS;
    const int row = NHWC ? i / (PLANES * COLUMNS) : i / COLUMNS % ROWS;
    const int out_row = p_block + row, out_column = q_block + column;
    if (plane >= lines || out_row >= static_cast<int>(p.p) || out_column >= static_cast<int>(p.q)) continue;
    const float* from = ys + plane * Shape::Y_PLANE + (row * COLUMNS + column) * Shape::Y_PIXEL;
    I k = first + plane, image = n;
    if constexpr (!NHWC) {
      image = k;
      k = take(image, p.div[0]);
    }
    float out[N];
    bool good = true;
    SL_UNROLL
    for (int j = 0; j < N; ++j) {
      out[j] = from[j];
      good = good && finite(out[j]);
    }
    if (Shape::GUARD && !good) {
      SL_UNROLL
      for (int j = 0; j < N; ++j) {
        out[j] = exact_sum<Cfg>(p, image, static_cast<int>(k) + (NHWC ? j : 0), out_row, out_column + (NHWC ? 0 : j));
      }
    }
    SL_UNROLL
    for (int j = 0; j < N; ++j) out[j] += bias_of<Cfg>(p, k + (NHWC ? j : 0));
    finish<Cfg, N>(p, y_offset<Cfg>(p, image, k, out_row, out_column), out);
  }
}

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* (1) DIL_* (1) MULT (1) CPG (1) WLAYOUT; PLANES (8, 16 or
/// 32), ROWS x COLS sums a thread, TAPS kernel columns at a time, ROW_TILES (a multiple of 32 / PLANES) x COL_TILES
/// tiles a block, SPLIT warps that share a tile's columns of the kernel, X_ROWS input rows of a block, PER (NHWC:
/// channels a copy or store), STORE (NCHW: columns a store).
/// div[0] = channel blocks (NHWC) or channels (NCHW), div[1] = blocks along the row, div[2] = blocks down the column.
template <class Cfg>
SL_DEVICE void dw_large(const SlParams& p) {
  using I = Index<Cfg>;
  using Shape = LargeShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC;
  constexpr int R = Cfg::R, S = Cfg::S, ROWS = Cfg::ROWS, COLS = Cfg::COLS, TAPS = Cfg::TAPS;
  constexpr int PLANES = Cfg::PLANES, GROUPS = Shape::GROUPS, PITCH = Shape::PITCH;
  SL_DYNAMIC_SHARED(float, shared);
  float* const xs = shared;                    // [row][column][plane]
  float* const ws = shared + Shape::X_FLOATS;  // [row][column][plane]

  I rest = static_cast<I>(block_id());
  const I channel_block = NHWC ? take(rest, p.div[0]) : 0;
  const int q_block = static_cast<int>(take(rest, p.div[1])) * (Cfg::COL_TILES * COLS);
  const int p_block = static_cast<int>(take(rest, p.div[2])) * (Cfg::ROW_TILES * ROWS);
  const I n = NHWC ? rest : 0;
  const I first = NHWC ? channel_block * PLANES : rest * PLANES;  // channel or plane
  const I lines = NHWC ? static_cast<I>(p.c) : static_cast<I>(p.n) * static_cast<I>(p.c);
  const int room = static_cast<int>(lines - first < PLANES ? lines - first : PLANES);
  const int height = static_cast<int>(p.h), width = static_cast<int>(p.w);
  const int pad_top = static_cast<int>(p.pad_top), pad_left = static_cast<int>(p.pad_left);

  const int top = p_block - pad_top > 0 ? p_block - pad_top : 0;
  const int bottom = p_block + Cfg::ROW_TILES * ROWS - pad_top + R - 1;
  const Bits<Cfg>* x = NHWC ? x_at<Cfg>(p, n, first) : x_at<Cfg>(p, 0, first);
  stage_rows<Cfg>(p, xs, x, top, (bottom < height ? bottom : height) - top, q_block - pad_left, room);
  stage_weights<Cfg>(p, ws, first, room);
  copy_async_commit();
  copy_async_wait<0>();
  barrier();

  const int warp = thread_id() / 32, lane = thread_id() % 32;
  const int plane = lane % PLANES, group = lane / PLANES;
  const int split = warp / Shape::WARP_TILES;
  // Tiles differ in how much of them lies inside: a scheduler, which has every fourth warp, gets different ones.
  const int tile = (warp + split) % Shape::WARP_TILES;
  const int tile_column = tile % Cfg::COL_TILES * COLS;
  const int q0 = q_block + tile_column;
  const int warp_row = p_block + tile / Cfg::COL_TILES * (GROUPS * ROWS);
  const int p0 = warp_row + group * ROWS;

  float sum[ROWS][COLS];
  SL_UNROLL
  for (int o = 0; o < ROWS; ++o) {
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) sum[o][t] = 0.0F;
  }
  // Input rows and parts of a kernel row that some output of the warp reads.
  const int begin = warp_row - pad_top > 0 ? warp_row - pad_top : 0;
  const int stop = warp_row + GROUPS * ROWS - pad_top + R - 1;
  const int end = stop < height ? stop : height;
  const int s_first = pad_left - q0 - (COLS - 1), s_last = width + pad_left - q0 - 1;
  const int chunk_first = s_first > 0 ? s_first / TAPS : 0;
  const int chunk_end = s_last < 0 ? 0 : s_last / TAPS + 1 < Shape::CHUNKS ? s_last / TAPS + 1 : Shape::CHUNKS;
  SL_UNROLL_BY(1)
  for (int chunk = chunk_first + split; chunk < chunk_end; chunk += Cfg::SPLIT) {
    const float* const weights = ws + chunk * TAPS * Shape::W_PITCH + plane;
    const float* from = xs + ((begin - top) * Shape::X_COLS + tile_column + chunk * TAPS) * PITCH + plane;
    // Kernel row k - o meets output row p0 + o; slot e of `weight` keeps the row that came e steps after a multiple of
    // ROWS. A row outside the kernel is zeros.
    float weight[ROWS][TAPS];
    int k = begin - p0 + pad_top;
    const auto load = [&](float(&to)[TAPS], int row) {
      const float* at = weights + (inside(row, R) ? row : R) * Shape::W_ROW;
      SL_UNROLL
      for (int s = 0; s < TAPS; ++s) to[s] = at[s * Shape::W_PITCH];
    };
    SL_UNROLL
    for (int o = 1; o < ROWS; ++o) load(weight[ROWS - o], k - o);
    SL_UNROLL_BY(1)
    for (int base = begin; base < end; base += ROWS) {
      SL_UNROLL
      for (int e = 0; e < ROWS; ++e) {
        if (base + e >= end) break;
        load(weight[e], k);
        float value[COLS + TAPS - 1];
        SL_UNROLL
        for (int i = 0; i < COLS + TAPS - 1; ++i) value[i] = from[i * PITCH];
        SL_UNROLL
        for (int o = 0; o < ROWS; ++o) {
          if (GROUPS > 1 || inside(k - o, R)) {
            SL_UNROLL
            for (int s = 0; s < TAPS; ++s) {
              SL_UNROLL
              for (int t = 0; t < COLS; ++t) {
                sum[o][t] = sl::fma(value[t + s], weight[(e - o + ROWS) % ROWS][s], sum[o][t]);
              }
            }
          }
        }
        from += Shape::X_COLS * PITCH;
        ++k;
      }
    }
  }

  // The rows' memory takes the sums, one split after the other.
  float* const mine = shared + plane * Shape::Y_PLANE + ((p0 - p_block) * Shape::Y_COLS + tile_column) * Shape::Y_PIXEL;
  SL_UNROLL
  for (int turn = 0; turn < Cfg::SPLIT; ++turn) {
    barrier();
    if (split == turn) {
      SL_UNROLL
      for (int i = 0; i < ROWS * COLS; ++i) {
        float& to = mine[(i / COLS * Shape::Y_COLS + i % COLS) * Shape::Y_PIXEL];
        to = turn == 0 ? sum[i / COLS][i % COLS] : to + sum[i / COLS][i % COLS];
      }
    }
  }
  barrier();
  finish_tile<Cfg>(p, shared, n, first, room, p_block, q_block);
}

}  // namespace sl
