// Small planes whose rows a thread computes whole (dw_plane, dw_plane_bulk): planes lie one after another in shared
// memory, as in memory; a thread computes a strip of rows of one plane, whole rows at a time (so that the columns are
// known to the compiler) or, of wide planes, a tile of their columns.
//
// Cfg: DTYPE LAYOUT (NCHW) BIAS ACT RESIDUAL INDEX64 R S STRIDE_* (no dilation), H W P Q PAD_TOP PAD_LEFT; PLANES a
// block, STRIPS x TILES threads a plane of ROWS output rows each, W_BYTES of a copy of weights, which divide those of
// PLANES planes. IN_PLACE: results are written over the input rows that their thread, alone with its plane, needs no
// more.
#pragma once

#include "common/channel_weights.cuh"

namespace sl {

/// `count` elements to shared memory, BYTES at a time; what is left over one by one.
template <class Cfg, int BYTES>
SL_DEVICE void fetch_run(Bits<Cfg>* to, const Bits<Cfg>* from, int count) {
  constexpr int PER = BYTES / static_cast<int>(sizeof(Bits<Cfg>));
  const int copies = count / PER;
  SL_UNROLL_BY(4)
  for (int i = thread_id(); i < copies; i += Cfg::THREADS) {
    if constexpr (BYTES >= 4) {
      copy_async<BYTES>(to + i * PER, from + i * PER);
    } else {
      to[i] = from[i];
    }
  }
  const int rest = copies * PER + thread_id();
  if (rest < count) to[rest] = from[rest];
}
/// Columns of a tile.
template <class Cfg>
SL_DEVICE constexpr int plane_cols() {
  return (Cfg::Q + Cfg::TILES - 1) / Cfg::TILES;
}

/// Columns left .. left + SPAN - 1 (TILES = 1: all of them) of the row of a plane that begins at element `row` of xs,
/// widened; what is outside the plane is 0.
template <class Cfg, int SPAN>
SL_DEVICE void load_plane_row(float (&value)[SPAN], const Bits<Cfg>* xs, int row, int left, bool present) {
  constexpr int SIZE = static_cast<int>(sizeof(Bits<Cfg>)), PER = 16 / SIZE, W = Cfg::W, TILES = Cfg::TILES;
  constexpr int VEC = TILES > 1 ? 1 : W % PER == 0 ? PER : W % 4 == 0 ? 4 : W % 2 == 0 ? 2 : 1;  // elements of a read
  constexpr int BYTES = VEC * SIZE;
  // Columns that lie inside the plane in every tile are not tested.
  const auto sure = [](int i) {
    return TILES == 1 ? i < W
                      : i >= Cfg::PAD_LEFT && i + (TILES - 1) * plane_cols<Cfg>() * Cfg::STRIDE_W - Cfg::PAD_LEFT < W;
  };
  const int first = TILES == 1 ? 0 : left;
  if constexpr (BYTES == 2) {  // rows begin in the middle of a word: the words that hold it, moved by half a word
    constexpr int WORDS = SPAN / 2 + 1;
    const int from = row + first, odd = from % 2 != 0 ? 1 : 0;
    const unsigned* const words = reinterpret_cast<const unsigned*>(xs) + (from - odd) / 2;
    unsigned word[WORDS];
    SL_UNROLL
    for (int i = 0; i < WORDS; ++i) {
      word[i] = 0;
      const bool wanted = (2 * i < SPAN || odd != 0) &&
                          (sure(2 * i) || inside(first + 2 * i - odd, W) || inside(first + 2 * i + 1 - odd, W));
      if (present && wanted) word[i] = words[i];
    }
    const unsigned selector = odd != 0 ? 0x5432U : 0x3210U;
    SL_UNROLL
    for (int i = 0; i < SPAN; i += 2) {
      Raw<4> pair{{permute_bytes(word[i / 2], word[i / 2 + 1 < WORDS ? i / 2 + 1 : i / 2], selector)}};
      SL_UNROLL
      for (int e = 0; e < 2 && i + e < SPAN; ++e) {
        value[i + e] = sure(i + e) || inside(first + i + e, W) ? element<Cfg>(pair, e) : 0.0F;
      }
    }
  } else {
    SL_UNROLL
    for (int i = 0; i < SPAN; i += VEC) {
      Raw<BYTES> raw = zero_raw<BYTES>();
      if (present && (sure(i) || inside(first + i, W))) raw = load_raw<BYTES, false>(xs + (row + first + i));
      SL_UNROLL
      for (int e = 0; e < VEC; ++e) value[i + e] = element<Cfg>(raw, e);
    }
  }
}

/// A thread's part of a block's PLANES planes.
template <class Cfg>
struct PlaneStrip {
  static constexpr bool WIDE = Cfg::TILES > 1;
  int plane, strip, q0;
  SL_DEVICE PlaneStrip() {
    const int part = thread_id() / Cfg::PLANES;
    plane = thread_id() % Cfg::PLANES, strip = part / Cfg::TILES;
    q0 = WIDE ? part % Cfg::TILES * plane_cols<Cfg>() : 0;
  }
};

/// The outputs of a strip, into ys; with a residual what lies there is added.
template <class Cfg>
SL_DEVICE void sweep_strip(const SlParams& p, const PlaneStrip<Cfg>& place, const Bits<Cfg>* xs, Bits<Cfg>* ys,
                           const float (&weight)[Cfg::R * Cfg::S], float bias) {
  constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, W = Cfg::W, Q = Cfg::Q;
  constexpr int TILES = Cfg::TILES, COLS = plane_cols<Cfg>();
  constexpr bool WIDE = TILES > 1;
  constexpr int LEFT = WIDE ? 0 : Cfg::PAD_LEFT, SPAN = WIDE ? (COLS - 1) * SW + S : W;  // columns that a thread reads
  constexpr int PER = 16 / static_cast<int>(sizeof(Bits<Cfg>));
  constexpr int SLOTS = (R + SH - 1) / SH, FRESH = SH < R ? SH : R;
  constexpr int X_PLANE = Cfg::H * W, Y_PLANE = Cfg::P * Q;
  const int plane = place.plane, strip = place.strip, q0 = place.q0, left = q0 * SW - Cfg::PAD_LEFT;
  // A small strip is unrolled as a whole, and nothing is computed for rows of others; if it is the whole plane, then
  // its rows, too, are known to the compiler, and nothing is computed on padding. (Unrolled, 7x7 on larger planes would
  // overflow the instruction cache.) So that every strip has ROWS rows, the last one repeats some of the one before.
  constexpr bool WHOLE = Cfg::STRIPS == 1 && !WIDE && Cfg::P * Q * R * S <= 2500;
  constexpr bool FIXED = WHOLE || Cfg::ROWS * COLS * R * S <= 1300;
  constexpr bool SKIP = FIXED || R * S >= 25;
  constexpr int LAST = FIXED ? Cfg::P - Cfg::ROWS : Cfg::P;
  const int own = strip * Cfg::ROWS, p0 = WHOLE ? 0 : own < LAST ? own : LAST;
  float sum[SLOTS][COLS];  // slot d: the output row whose first input row came d steps ago
  SL_UNROLL
  for (int d = 0; d < SLOTS; ++d) {
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) sum[d][t] = 0.0F;
  }
  const int rows = FIXED || Cfg::P - p0 > Cfg::ROWS ? Cfg::ROWS : Cfg::P - p0;
  SL_UNROLL_BY(FIXED ? Cfg::ROWS + SLOTS - 1 : 1)
  for (int step = 0; step < rows + SLOTS - 1; ++step) {
    const int h = (p0 + step) * SH - Cfg::PAD_TOP;
    SL_UNROLL
    for (int j = 0; j < FRESH; ++j) {
      float value[SPAN];
      const bool present = inside(h + j, Cfg::H);
      load_plane_row<Cfg, SPAN>(value, xs, plane * X_PLANE + (h + j) * W, left, present);
      SL_UNROLL
      for (int d = SLOTS - 1; d >= 0; --d) {
        if (d * SH + j < R && (!SKIP || (step >= d && step - d < rows))) {
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) {
            // Every sum moves one slot on in the first addition to it, which costs nothing.
            float next = j > 0 ? sum[d][t] : d > 0 ? sum[d > 0 ? d - 1 : 0][t] : bias;
            SL_UNROLL
            for (int s = 0; s < S; ++s) {
              const int i = t * SW + s - LEFT;
              if (i >= 0 && i < SPAN && (!WHOLE || present))
                next = sl::fma(value[i < 0 || i >= SPAN ? 0 : i], weight[(d * SH + j) * S + s], next);
            }
            sum[d][t] = next;
          }
        }
      }
    }
    if (step >= SLOTS - 1 && (WHOLE || !FIXED || p0 + step - (SLOTS - 1) >= own)) {
      constexpr int VEC = WIDE ? 1 : Q % PER == 0 ? PER : Q % 4 == 0 ? 4 : Q % 2 == 0 ? 2 : 1;
      Bits<Cfg>* const to = ys + plane * Y_PLANE + (p0 + step - (SLOTS - 1)) * Q + q0;
      SL_UNROLL
      for (int t = 0; t < COLS; t += VEC) {
        if (TILES * COLS > Q && q0 + t >= Q) continue;
        float out[VEC];
        if constexpr (Cfg::RESIDUAL != 0) load_floats<Cfg, VEC, false>(out, to + t);
        SL_UNROLL
        for (int i = 0; i < VEC; ++i) {
          const float a = Cfg::RESIDUAL != 0 ? sum[SLOTS - 1][t + i] + out[i] : sum[SLOTS - 1][t + i];
          out[i] = activate<Cfg::ACT>(a, p.alpha, p.beta);
        }
        store_floats<Cfg, VEC>(to + t, out);
      }
    }
  }
}

}  // namespace sl
