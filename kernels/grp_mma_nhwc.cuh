// grp_mma_nhwc: grouped convolution and channel multipliers on the matrix unit, 16-bit NHWC. An octet (8 neighbouring
// input channels: whole groups) is one 16-byte column of the tile, so a fragment A = 16 pixels x (2 taps x 8 channels)
// comes straight from the untransposed tile by load_matrix, and B holds the weights of those taps, zero where an
// output's group does not read the channel. Blocks are persistent: the weights of a chunk of octets stay in registers
// while tiles stream through shared memory, the next one on its way while this one is used.
#pragma once

#include "common/conv.cuh"
#include "common/exact.cuh"
#include "common/output_tile.cuh"
#include "common/window_taps.cuh"

namespace sl {

/// Cfg: DTYPE (16-bit) LAYOUT (NHWC) WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG (1, 2, 4, 8) MULT;
/// OCTETS input octets of a chunk, SLICES blocks that share the outputs of a chunk, UNITS output units (8 channels of
/// one octet's outputs) a warp, ROWS output rows of a warp's strip, TILES 8-column tiles side by side, STAGES buffers,
/// THREADS. A block's tile: 2 strips of ROWS rows x 8 * TILES columns. div[0] = chunks * SLICES, div[1] = column tiles,
/// div[2] = row tiles; aux[0] = tiles of a chunk, aux[1] = blocks of a chunk. Dynamic shared memory: STAGES * BUFFER
/// bytes.
template <class Cfg>
struct GrpMmaNhwc {
  using I = Index<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DH = Cfg::DIL_H, DW = Cfg::DIL_W;
  static constexpr int CPG = Cfg::CPG, MULT = Cfg::MULT, OCTETS = Cfg::OCTETS, UNITS = Cfg::UNITS, L = Cfg::ROWS;
  static constexpr int OUTS = 8 / CPG * MULT;                  // output channels of an octet
  static constexpr int PARTS = (OUTS + 7) / 8;                 // units of an octet
  static constexpr int SHARE = UNITS < PARTS ? UNITS : PARTS;  // neighbouring units of a warp that read the same octet
  static constexpr int GROUPS = OCTETS * PARTS / Cfg::SLICES / UNITS;  // warps side by side along the channels
  static constexpr int ACROSS = Cfg::THREADS / 32 / GROUPS;            // warps side by side along the columns
  static_assert(OCTETS * PARTS % (UNITS * Cfg::SLICES) == 0 && Cfg::THREADS / 32 % GROUPS == 0,
                "every warp has the same units");
  static_assert(UNITS % SHARE == 0 && PARTS % SHARE == 0, "a warp's units share whole octets");

  static constexpr int PAIRS = S / 2;  // of taps of a kernel row; an odd S leaves one tap alone
  static constexpr int STRIP_ROWS = (L - 1) * SH + (R - 1) * DH + 1;
  static constexpr int ROWS_IN = (2 * L - 1) * SH + (R - 1) * DH + 1;
  static constexpr int COLS_IN = (8 * Cfg::TILES - 1) * SW + (S - 1) * DW + 1;
  // Columns lie by their remainder mod the stride, so that the 8 pixels of a matrix are neighbours; an odd number of
  // 16-byte units a pixel then keeps them in different banks.
  static constexpr int PHASE = (COLS_IN + SW - 1) / SW;
  static constexpr int PIXEL = (OCTETS | 1) * 16;
  static constexpr int ROW = PHASE * SW * PIXEL;
  static constexpr int BUFFER = ROWS_IN * ROW;
  // Weights pass through the last buffer, which nothing else needs before they are in registers, or lie beyond the only
  // one.
  static constexpr int OUT_WEIGHTS = R * S * CPG;
  static constexpr int WEIGHTS = (Cfg::SLICES == 1 ? OCTETS * OUTS : GROUPS * UNITS * 8) * OUT_WEIGHTS * 2;
  static constexpr int WEIGHTS_AT = (Cfg::STAGES > 1 ? Cfg::STAGES - 1 : 1) * BUFFER;
  static_assert(Cfg::SLICES == 1 || OCTETS == 1, "a slice's weights are one piece");

  SL_DEVICE static constexpr int tap_offset(int s) { return ((s * DW) % SW * PHASE + s * DW / SW) * PIXEL; }
  /// The kernel row that takes strip row i to output row l of the strip; -1 where none does.
  SL_DEVICE static constexpr int kernel_row(int i, int l) { return tap_at(i, l, SH, DH, R); }
  SL_DEVICE static constexpr bool row_used(int i) { return input_used(i, L, SH, DH, R); }

  using Tile = OutputTile<Cfg>;
  SL_DEVICE static Tile tile(I number, const SlParams& p) { return output_tile<Cfg, 2 * L, 8 * Cfg::TILES>(number, p); }

  int octet0;                     ///< of the chunk, in the whole x
  int warp_unit, lane;            ///< first unit of the warp in the chunk
  unsigned weight[UNITS][R * S];  ///< B: channels 2t, 2t+1 of each tap for output g of the unit
  float bias[UNITS][2];           ///< of this lane's two outputs of each unit

  SL_DEVICE int octet_of(int u) const { return (warp_unit + u) / PARTS; }
  SL_DEVICE int k_of(int u) const { return (octet0 + octet_of(u)) * OUTS + (warp_unit + u) % PARTS * 8; }
  /// Outputs of unit u that exist: 8, fewer at the end of an octet's outputs, none beyond the last octet.
  SL_DEVICE int outs_of(const SlParams& p, int u) const {
    if ((octet0 + octet_of(u)) * 8 >= static_cast<int>(p.c)) return 0;
    const int left = OUTS - (warp_unit + u) % PARTS * 8;
    return left < 8 ? left : 8;
  }

  /// All threads: the block's weights to shared memory, as they lie: they are one piece of w. Scattered loads straight
  /// into registers cost more than the tile's, for all blocks want the same few lines at once.
  SL_DEVICE void fetch_weights(const SlParams& p, unsigned char* to, long long first_out) const {
    const auto* from = static_cast<const Bits<Cfg>*>(p.weight) + first_out * OUT_WEIGHTS;
    const long long left = (static_cast<long long>(p.k) - first_out) * OUT_WEIGHTS;  // the last chunk may be shorter
    for (int i = thread_id() * 8; i < WEIGHTS / 2; i += Cfg::THREADS * 8) {
      if (i < left) copy_async<16>(to + 2 * i, from + i);
    }
  }

  SL_DEVICE void load_weights(const SlParams& p, const unsigned char* weights, int first_out) {
    const int g = lane / 4, t = lane % 4;
    const auto* from = reinterpret_cast<const Bits<Cfg>*>(weights);
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      const int out = k_of(u) + g - first_out;
      const int group = ((warp_unit + u) % PARTS * 8 + g) / MULT;  // of the octet's groups
      const bool there = g < outs_of(p, u);
      const bool low = there && 2 * t / CPG == group, high = there && (2 * t + 1) / CPG == group;
      if constexpr (CPG == 1) {
        SL_UNROLL
        for (int i = 0; i < R * S; ++i) {
          const unsigned bits = low || high ? from[out * (R * S) + i] : 0U;
          weight[u][i] = high ? bits << 16 : bits;
        }
      } else if constexpr (Cfg::WLAYOUT == kOhwi) {
        SL_UNROLL
        for (int i = 0; i < R * S; ++i) {
          weight[u][i] = low ? load_raw<4, false>(from + ((out * (R * S) + i) * CPG + 2 * t % CPG)).word[0] : 0U;
        }
      } else {  // two channels are 2 * R * S elements in a row
        unsigned raw[R * S];
        const auto* at = from + (out * CPG + 2 * t % CPG) * (R * S);
        SL_UNROLL
        for (int i = 0; i < R * S; ++i) raw[i] = low ? load_raw<4, false>(at + 2 * i).word[0] : 0U;
        SL_UNROLL
        for (int i = 0; i < R * S; ++i) {
          const int j = R * S + i;  // element of the second channel
          weight[u][i] =
              permute_bytes(raw[i / 2], raw[j / 2], (i % 2 != 0 ? 0x32U : 0x10U) | (j % 2 != 0 ? 0x7600U : 0x5400U));
        }
      }
      SL_UNROLL
      for (int e = 0; e < 2; ++e) bias[u][e] = 2 * t + e < outs_of(p, u) ? bias_of<Cfg>(p, k_of(u) + 2 * t + e) : 0.0F;
    }
  }

  /// All threads: the tile's input to shared memory, zeros where it lies outside x.
  SL_DEVICE void fetch(const SlParams& p, unsigned char* buffer, const Tile& at) const {
    constexpr int A_ROW = COLS_IN * OCTETS;
    constexpr int TURNS = (A_ROW + Cfg::THREADS - 1) / Cfg::THREADS;
    constexpr int TOGETHER = A_ROW < Cfg::THREADS ? Cfg::THREADS / A_ROW : 1;  // rows at once
    constexpr int STEPS = (ROWS_IN + TOGETHER - 1) / TOGETHER;
    const int top = static_cast<int>(static_cast<long long>(at.row) * SH - p.pad_top);
    const int left = static_cast<int>(static_cast<long long>(at.column) * SW - p.pad_left);
    const Bits<Cfg>* x = x_at<Cfg>(p, at.n, static_cast<I>(octet0) * 8);
    const bool inner = top >= 0 && top + ROWS_IN <= static_cast<int>(p.h);  // no row to check
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      const int i = thread_id() + turn * Cfg::THREADS;
      const int row0 = TOGETHER > 1 ? i / A_ROW : 0;
      const int along = TOGETHER > 1 ? i % A_ROW : i;
      const int octet = along % OCTETS, column = along / OCTETS;
      if (column >= COLS_IN || row0 >= TOGETHER) continue;
      const bool there = inside(left + column, static_cast<int>(p.w)) && (octet0 + octet) * 8 < static_cast<int>(p.c);
      unsigned char* to = buffer + row0 * ROW + (column % SW * PHASE + column / SW) * PIXEL + octet * 16;
      const I first = pixel_offset<Cfg>(p, top + row0, left + column) + octet * 8;
      const I down = static_cast<I>(p.w) * static_cast<I>(p.c) * TOGETHER;
      if (inner) {
        const Bits<Cfg>* from = x + (there ? first : 0);
        const I by = there ? down : 0;
        SL_UNROLL_BY(STEPS <= 20 ? STEPS : 4)
        for (int step = 0; step < STEPS; ++step) {
          if (ROWS_IN % TOGETHER == 0 || row0 + step * TOGETHER < ROWS_IN) copy_async<16>(to, from, there);
          from += by;
          to += TOGETHER * ROW;
        }
      } else {
        I from = first;
        SL_UNROLL_BY(2)
        for (int row = row0; row < ROWS_IN; row += TOGETHER) {
          const bool present = there && inside(top + row, static_cast<int>(p.h));
          copy_async<16>(to, x + (present ? from : 0), present);
          from += down;
          to += TOGETHER * ROW;
        }
      }
    }
  }

  using Sums = float[UNITS][L][4];

  SL_DEVICE void multiply(const unsigned char* buffer, int column_tile, Sums& sum) const {
    const SharedRow base(buffer + (lane >> 3 & 1) * (L * SH * ROW) + (column_tile * 8 + (lane & 7)) * PIXEL +
                         octet_of(0) * 16);
    const SharedRow second = base + (lane < 16 ? 0 : tap_offset(1) - tap_offset(0));  // the other tap of most pairs
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      SL_UNROLL
      for (int l = 0; l < L; ++l) sum[u][l][0] = sum[u][l][1] = sum[u][l][2] = sum[u][l][3] = 0.0F;
    }
    SL_UNROLL
    for (int i = 0; i < STRIP_ROWS; ++i) {
      if (!row_used(i)) continue;
      SL_UNROLL
      for (int first = 0; first < UNITS; first += SHARE) {
        const int at = first / PARTS * 16 + i * ROW;  // a warp starts with an octet, or stays within one
        unsigned pair[PAIRS > 0 ? PAIRS : 1][4], single[2];
        SL_UNROLL
        for (int q = 0; q < PAIRS; ++q) {
          constexpr int usual = tap_offset(1) - tap_offset(0);
          const int tap = tap_offset(2 * q), other = tap_offset(2 * q + 1);
          if (other - tap == usual) {
            load_matrix<4>(pair[q], second + (at + tap));
          } else {
            load_matrix<4>(pair[q], base + (at + (lane < 16 ? tap : other)));
          }
        }
        if constexpr (S % 2 != 0) load_matrix<2>(single, base + (at + tap_offset(S - 1)));
        SL_UNROLL
        for (int v = first; v < first + SHARE; ++v) {
          SL_UNROLL
          for (int q = 0; q < PAIRS; ++q) {
            SL_UNROLL
            for (int l = 0; l < L; ++l) {
              const int r = kernel_row(i, l);
              if (r >= 0)
                mma_k16<Cfg::DTYPE>(sum[v][l], pair[q], weight[v][r * S + 2 * q], weight[v][r * S + 2 * q + 1]);
            }
          }
          if constexpr (S % 2 != 0) {
            SL_UNROLL
            for (int l = 0; l < L; ++l) {
              const int r = kernel_row(i, l);
              if (r >= 0) mma_k8<Cfg::DTYPE>(sum[v][l], single, weight[v][r * S + S - 1]);
            }
          }
        }
      }
    }
  }

  /// Sums that are not finite, again and without the structural zeros. Cold, so one rolled loop.
  SL_DEVICE void repair(const SlParams& p, const Tile& at, I column, Sums& sum) const {
    SL_UNROLL_BY(1)
    for (int i = 0; i < UNITS * L * 4; ++i) {
      const int u = i / (4 * L), l = i / 4 % L, e = i % 4;
      const int out = 2 * (lane % 4) + e % 2;
      const I row = at.row + e / 2 * L + l;
      float value = 0.0F;
      SL_UNROLL
      for (int j = 0; j < UNITS * L * 4; ++j) value = j == i ? sum[j / (4 * L)][j / 4 % L][j % 4] : value;
      if (finite(value) || row >= static_cast<I>(p.p) || out >= outs_of(p, u)) continue;
      value = exact_sum<Cfg>(p, at.n, k_of(u) + out, static_cast<int>(row), static_cast<int>(column));
      SL_UNROLL
      for (int j = 0; j < UNITS * L * 4; ++j) {
        float& place = sum[j / (4 * L)][j / 4 % L][j % 4];
        place = j == i ? value : place;
      }
    }
  }

  /// The sum of unit u with its bias.
  SL_DEVICE float biased(float value, int u, int e) const {
    return Cfg::BIAS == kBiasNone ? value : value + bias[u][e];
  }

  SL_DEVICE static unsigned packed(const SlParams& p, float low, float high) {
    return Element<Cfg::DTYPE>::narrow2(activate<Cfg::ACT>(low, p.alpha, p.beta),
                                        activate<Cfg::ACT>(high, p.alpha, p.beta));
  }

  SL_DEVICE void store(const SlParams& p, const Tile& at, int column_tile, Sums& sum) const {
    const int t = lane % 4;
    const I column = at.column + column_tile * 8 + lane / 4;
    const bool column_inside = column < static_cast<I>(p.q);
    float all = 0.0F;
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      SL_UNROLL
      for (int l = 0; l < L; ++l) all += (sum[u][l][0] + sum[u][l][1]) + (sum[u][l][2] + sum[u][l][3]);
    }
    if (!finite(all) && column_inside) repair(p, at, column, sum);
    // Two neighbouring units: lanes swap halves, so that each stores 8 bytes and a pixel's 32 bytes leave together.
    constexpr bool SWAP = UNITS % 2 == 0 && OUTS % 8 == 0 && Cfg::RESIDUAL == 0;
    const I down = static_cast<I>(p.q) * static_cast<I>(p.k);
    SL_UNROLL
    for (int half = 0; half < 2; ++half) {
      const I first = at.row + half * L;
      const I below = column_inside ? static_cast<I>(p.p) - first : 0;
      const int rows = static_cast<int>(below < L ? below : L);
      I pixel = y_offset<Cfg>(p, at.n, 0, first, column);
      if constexpr (SWAP) {
        pixel += (t % 2 != 0 ? k_of(1) : k_of(0)) + t / 2 * 4;
        bool real[UNITS / 2];  // the last chunk may end inside a pair
        SL_UNROLL
        for (int u = 0; u < UNITS; u += 2) real[u / 2] = outs_of(p, t % 2 != 0 ? u + 1 : u) > 0;
        SL_UNROLL
        for (int l = 0; l < L; ++l) {
          Bits<Cfg>* to = static_cast<Bits<Cfg>*>(p.y) + (pixel + l * down);
          SL_UNROLL
          for (int u = 0; u < UNITS; u += 2) {
            unsigned word[2];
            SL_UNROLL
            for (int v = 0; v < 2; ++v) {
              word[v] =
                  packed(p, biased(sum[u + v][l][2 * half], u + v, 0), biased(sum[u + v][l][2 * half + 1], u + v, 1));
            }
            const unsigned other = shuffle(t % 2 != 0 ? word[0] : word[1], lane ^ 1);
            Raw<8> raw;
            raw.word[0] = t % 2 != 0 ? other : word[0];
            raw.word[1] = t % 2 != 0 ? word[1] : other;
            if (l < rows && real[u / 2]) store_raw(to + u * 8, raw);
          }
        }
      } else {
        SL_UNROLL
        for (int l = 0; l < L; ++l) {
          SL_UNROLL
          for (int u = 0; u < UNITS; ++u) {
            const int left = outs_of(p, u) - 2 * t;
            if (l >= rows || left <= 0) continue;
            const float out[2] = {biased(sum[u][l][2 * half], u, 0), biased(sum[u][l][2 * half + 1], u, 1)};
            finish_row<Cfg, OUTS % 2 == 0 ? 2 : 1>(p, pixel + l * down + k_of(u) + 2 * t, out, left);
          }
        }
      }
    }
  }
};

template <class Cfg>
SL_DEVICE void grp_mma_nhwc(const SlParams& p) {
  using Work = GrpMmaNhwc<Cfg>;
  using I = Index<Cfg>;
  SL_DYNAMIC_SHARED(unsigned char, buffers);
  int block = static_cast<int>(block_id());
  Work work;
  const int chunk = take(block, p.div[0]);
  work.octet0 = chunk / Cfg::SLICES * Cfg::OCTETS;
  work.lane = thread_id() % 32;
  const int warp = thread_id() / 32;
  work.warp_unit = (chunk % Cfg::SLICES * Work::GROUPS + warp % Work::GROUPS) * Cfg::UNITS;
  const I tiles = static_cast<I>(p.aux[0]), step = static_cast<I>(p.aux[1]);
  I number = block, ahead = block;  // the tile in hand, and the next to fetch
  const auto fetch = [&](int buffer) {
    if (ahead < tiles) work.fetch(p, buffers + buffer * Work::BUFFER, Work::tile(ahead, p));
    copy_async_commit();  // a group for each turn, even where nothing is left
    ahead += step;
  };
  const int first_out = work.octet0 * Work::OUTS + chunk % Cfg::SLICES * (Work::GROUPS * Cfg::UNITS * 8);
  work.fetch_weights(p, buffers + Work::WEIGHTS_AT, first_out);
  copy_async_commit();
  constexpr int AHEAD = Cfg::STAGES > 1 ? Cfg::STAGES - 1 : 1;
  SL_UNROLL
  for (int stage = 0; stage < AHEAD; ++stage) fetch(stage);
  copy_async_wait<AHEAD>();
  barrier();
  work.load_weights(p, buffers + Work::WEIGHTS_AT, first_out);
  int buffer = 0;
  SL_UNROLL_BY(1)
  for (; number < tiles; number += step) {
    copy_async_wait<(Cfg::STAGES > 2 ? Cfg::STAGES - 2 : 0)>();
    barrier();  // the tile is there for all, and nobody reads the buffer before it any more
    if constexpr (Cfg::STAGES > 1) fetch(buffer == 0 ? Cfg::STAGES - 1 : buffer - 1);
    const typename Work::Tile at = Work::tile(number, p);
    SL_UNROLL_BY(1)
    for (int tile = warp / Work::GROUPS; tile < Cfg::TILES; tile += Work::ACROSS) {
      typename Work::Sums sum;
      work.multiply(buffers + buffer * Work::BUFFER, tile, sum);
      work.store(p, at, tile, sum);
    }
    if constexpr (Cfg::STAGES == 1) {
      barrier();
      fetch(0);
    } else {
      buffer = buffer == Cfg::STAGES - 1 ? 0 : buffer + 1;
    }
  }
}

}  // namespace sl
