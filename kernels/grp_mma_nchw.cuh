// grp_mma_nchw: grouped convolution and channel multipliers on the matrix unit, 16-bit NCHW. In a plane two
// neighbouring columns are one 32-bit word, which is what a lane holds of a fragment A; so K runs over a group's
// channels x pairs of columns, M over 16 places of the tile, N over a group's output channels x neighbouring columns,
// and every word of A comes as it lies in the untransposed tile. Blocks are persistent: the weights of their groups
// stay in registers while tiles stream through shared memory.
#pragma once

#include "common/conv.cuh"
#include "common/exact.cuh"
#include "common/output_tile.cuh"
#include "common/window_taps.cuh"

namespace sl {

/// Cfg: DTYPE (16-bit) LAYOUT (NCHW) WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG (1 to 8) MULT; VEC
/// columns of one copy (divides w) and STORE of one store (divides q); LEAD = -pad_left mod max(VEC, 2); BLOCK_GROUPS
/// groups of a block; UNITS units (8 output channels, or 8 / their number of columns) a warp, PART columns of a place,
/// ACROSS (1 to 8) places side by side, ROWS rows of a place, DOWN warps one below the other, STAGES buffers, THREADS.
/// A block's tile: HIGH rows x WIDE columns. div[0] = chunks of groups, div[1] = column tiles, div[2] = row tiles;
/// aux[0] = tiles of a chunk, aux[1] = blocks of a chunk. Dynamic shared memory: the larger of STAGES * BUFFER
/// and WEIGHTS_AT + WEIGHTS bytes.
template <class Cfg>
struct GrpMmaNchw {
  using I = Index<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DH = Cfg::DIL_H, DW = Cfg::DIL_W;
  static constexpr int CPG = Cfg::CPG, MULT = Cfg::MULT, UNITS = Cfg::UNITS, L = Cfg::ROWS, PART = Cfg::PART;

  // N: OUTS output channels x COLS columns, column fastest. A group has UNITS_IN_ALL such units.
  static constexpr int OUTS = MULT >= 5 ? 8 : MULT >= 3 ? 4 : MULT;
  static constexpr int COLS = 8 / OUTS;
  static constexpr int UNITS_IN_ALL = (MULT + OUTS - 1) / OUTS;
  static constexpr int UNIT_GROUPS = UNITS_IN_ALL / UNITS;
  static_assert(UNITS_IN_ALL % UNITS == 0, "every warp has the same number of units");
  static_assert(Cfg::THREADS == 32 * Cfg::BLOCK_GROUPS * UNIT_GROUPS * Cfg::DOWN, "a warp has one group");

  // K: word m of a lane (k = 8 m + 2 t and the next) holds channel channel_of(m, t), pair pair_of(m, t).
  static constexpr int LANES_C = CPG == 1 ? 1 : CPG == 2 ? 2 : 4;  // lanes t of different channels
  static constexpr int SETS = CPG > 4 ? 2 : 1;                     // words of different channels
  static constexpr int STEP = 4 / LANES_C;                         // pairs of one word, over the lanes
  SL_DEVICE static constexpr int channel_of(int m, int t) { return t % LANES_C + m % SETS * 4; }
  SL_DEVICE static constexpr int pair_of(int m, int t) { return m / SETS * STEP + t / LANES_C; }

  // M: ACROSS places of PART columns side by side (the lanes beyond repeat the first), and strips of L rows.
  static constexpr int ABREAST = Cfg::ACROSS > 4 ? 8 : Cfg::ACROSS > 2 ? 4 : Cfg::ACROSS;
  static constexpr int STRIPS = 16 / ABREAST;
  static constexpr int WIDE = Cfg::ACROSS * PART, HIGH = STRIPS * L * Cfg::DOWN;
  static constexpr int NX = PART / COLS;  // products side by side
  static_assert(PART % 2 == 0 && PART % COLS == 0, "places start at whole pairs");

  // Where a product starts in its place's columns, and how many words it needs: the first pair holds `odd` columns that
  // no tap reads.
  SL_DEVICE static constexpr int odd_of(int i) { return (Cfg::LEAD + i * COLS * SW) % 2; }
  SL_DEVICE static constexpr int start_of(int i) { return (Cfg::LEAD + i * COLS * SW) / 2; }
  SL_DEVICE static constexpr int words_of(int odd) {
    const int pairs = (odd + (COLS - 1) * SW + (S - 1) * DW) / 2 + 1;
    return (pairs + STEP - 1) / STEP * SETS;
  }
  static constexpr int VARIANTS = NX > 1 && COLS* SW % 2 != 0 ? 2 : 1;  // of B: products start at either parity
  SL_DEVICE static constexpr int variant_of(int i) { return VARIANTS == 2 ? odd_of(i) : 0; }
  SL_DEVICE static constexpr int variant_odd(int v) { return VARIANTS == 2 ? v : odd_of(0); }
  static constexpr int WORDS = words_of(0) > words_of(1) ? words_of(0) : words_of(1);

  /// Whether some product of a place starts word 0, SETS, ... at pair `pair`.
  SL_DEVICE static constexpr bool pair_used(int pair) {
    for (int i = 0; i < NX; ++i) {
      const int m = pair - start_of(i);
      if (m >= 0 && m % STEP == 0 && m / STEP * SETS < words_of(odd_of(i))) return true;
    }
    return false;
  }
  /// Whether `pair` belongs to an aligned vector of n pairs that is loaded whole: where a word's lanes are of different
  /// channels a place's pairs lie side by side.
  SL_DEVICE static constexpr bool whole(int pair, int n) {
    const int first = pair / n * n;
    if (STEP != 1 || PART * SW % (2 * n) != 0 || first + n > PAIRS) return false;
    for (int i = first; i < first + n; ++i) {
      if (pair_used(i)) return true;
    }
    return false;
  }
  static constexpr int LAST_WORDS = words_of(odd_of(NX - 1)) / SETS;
  static constexpr int PAIRS = start_of(NX - 1) + (LAST_WORDS - 1) * STEP + 1;  // from the place's first column

  static constexpr int ROWS_IN = (HIGH - 1) * SH + (R - 1) * DH + 1;
  static constexpr int VEC = Cfg::VEC;
  static constexpr int NEEDED = Cfg::LEAD + (WIDE - 1) * SW + (S - 1) * DW + 1;
  static constexpr int COPIES = (NEEDED + VEC - 1) / VEC;  // of a row
  // Words beyond the needed columns are multiplied by zeros, so they must exist and be finite.
  static constexpr int READ = (Cfg::ACROSS - 1) * PART * SW + 2 * (PAIRS + STEP - 1);
  static constexpr int FILLED = (READ + VEC - 1) / VEC > COPIES ? (READ + VEC - 1) / VEC : COPIES;
  static constexpr int PITCH = (FILLED * VEC * 2 + 15) / 16 * 16;
  // Lanes of different channels, 32 bytes apart in the banks.
  static constexpr int PLANE = (ROWS_IN * PITCH + 95) / 128 * 128 + 32;
  static constexpr int BUFFER = Cfg::BLOCK_GROUPS * CPG * PLANE;
  // Weights pass through the last buffer, which nothing else needs before they are in registers, or lie beyond the only
  // one.
  static constexpr int WEIGHTS = Cfg::BLOCK_GROUPS * MULT * CPG * R * S * 2;
  static constexpr int WEIGHTS_AT = (Cfg::STAGES > 1 ? Cfg::STAGES - 1 : 1) * BUFFER;

  static constexpr int STRIP_ROWS = (L - 1) * SH + (R - 1) * DH + 1;
  SL_DEVICE static constexpr int kernel_row(int i, int l) { return tap_at(i, l, SH, DH, R); }
  SL_DEVICE static constexpr bool row_used(int i) { return input_used(i, L, SH, DH, R); }

  using Tile = OutputTile<Cfg>;
  SL_DEVICE static Tile tile(I number, const SlParams& p) { return output_tile<Cfg, HIGH, WIDE>(number, p); }

  int group0, group;  ///< first of the block; of the warp, in the block
  int unit0, down;    ///< first unit of the warp; its place among the warps below each other
  int lane;
  unsigned weight[UNITS][R][VARIANTS][WORDS];  ///< B: columns 2 pair, 2 pair + 1 of channel and pair of each word

  SL_DEVICE bool present(const SlParams& p) const { return (group0 + group) * CPG < static_cast<int>(p.c); }
  SL_DEVICE int k_of(int u) const { return (group0 + group) * MULT + (unit0 + u) * OUTS; }
  SL_DEVICE int outs_of(int u) const {
    const int left = MULT - (unit0 + u) * OUTS;
    return left < OUTS ? left : OUTS;
  }

  /// All threads: the block's weights to shared memory, as they lie: they are one piece of w. Scattered loads straight
  /// into registers cost more than the tile's, for all blocks want the same few lines at once.
  SL_DEVICE void fetch_weights(const SlParams& p, unsigned char* to) const {
    constexpr int GROUP = MULT * CPG * R * S;
    const auto* from = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(group0) * GROUP;
    const int groups = static_cast<int>(p.c) / CPG - group0;  // the last block may have fewer
    const int count = (groups < Cfg::BLOCK_GROUPS ? groups : Cfg::BLOCK_GROUPS) * GROUP;
    auto* at = reinterpret_cast<Bits<Cfg>*>(to);
    for (int i = thread_id() * Cfg::WVEC; i < count; i += Cfg::THREADS * Cfg::WVEC) {
      if constexpr (Cfg::WVEC > 1) {
        copy_async<2 * Cfg::WVEC>(at + i, from + i);
      } else {
        at[i] = load_readonly(from + i);
      }
    }
  }

  SL_DEVICE void load_weights(const SlParams& p, const unsigned char* weights) {
    const int out = lane / 4 / COLS, column = lane / 4 % COLS, t = lane % 4;
    const auto* from = reinterpret_cast<const Bits<Cfg>*>(weights);
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      const int k = group * MULT + (unit0 + u) * OUTS + out;  // in the block
      const bool there = present(p) && out < outs_of(u);
      SL_UNROLL
      for (int r = 0; r < R; ++r) {
        SL_UNROLL
        for (int v = 0; v < VARIANTS; ++v) {
          SL_UNROLL
          for (int m = 0; m < words_of(variant_odd(v)); ++m) {
            const int channel = channel_of(m, t);
            unsigned word = 0;
            SL_UNROLL
            for (int e = 0; e < 2; ++e) {
              const int along = 2 * pair_of(m, t) + e - variant_odd(v) - column * SW;
              if (there && channel < CPG && along >= 0 && along % DW == 0 && along / DW < S) {
                word |= static_cast<unsigned>(from[w_offset<Cfg>(k, channel, r, along / DW)]) << (16 * e);
              }
            }
            weight[u][r][v][m] = word;
          }
        }
      }
    }
  }

  /// All threads: the tile's input to shared memory, zeros where it lies outside x. A thread copies the same piece of
  /// every ONCE-th channel, so that only its first address is computed.
  SL_DEVICE void fetch(const SlParams& p, unsigned char* buffer, const Tile& at) const {
    constexpr int CHANNELS = Cfg::BLOCK_GROUPS * CPG, PIECES = FILLED * ROWS_IN;  // of a channel
    constexpr int ONCE = Cfg::THREADS >= 2 * PIECES ? Cfg::THREADS / PIECES : 1;
    constexpr int TURNS = ONCE > 1 ? 1 : (PIECES + Cfg::THREADS - 1) / Cfg::THREADS;
    constexpr int STEPS = (CHANNELS + ONCE - 1) / ONCE;
    const int top = static_cast<int>(static_cast<long long>(at.row) * SH - p.pad_top);
    const int left = static_cast<int>(static_cast<long long>(at.column) * SW - p.pad_left) - Cfg::LEAD;
    const Bits<Cfg>* x = x_at<Cfg>(p, at.n, static_cast<I>(group0) * CPG);
    const int channels = static_cast<int>(p.c) - group0 * CPG;  // the last block may have fewer than CHANNELS
    const I plane = static_cast<I>(p.h) * static_cast<I>(p.w);
    SL_UNROLL_BY(TURNS * STEPS <= 16 ? TURNS : 1)
    for (int turn = 0; turn < TURNS; ++turn) {
      const int i = thread_id() + turn * Cfg::THREADS;
      const int channel = ONCE > 1 ? i / PIECES : 0, within = ONCE > 1 ? i % PIECES : i;
      if (within >= PIECES || channel >= ONCE) break;
      const int row = within / FILLED, piece = within % FILLED;
      const int column = left + piece * VEC;
      const bool there =
          piece < COPIES && inside(column, static_cast<int>(p.w)) && inside(top + row, static_cast<int>(p.h));
      const Bits<Cfg>* from = x + (there ? channel * plane + pixel_offset<Cfg>(p, top + row, column) : 0);
      unsigned char* to = buffer + channel * PLANE + row * PITCH + piece * (2 * VEC);
      SL_UNROLL_BY(STEPS <= 32 ? STEPS : 8)
      for (int step = 0; step < STEPS; ++step) {
        if (channel + step * ONCE < channels && (CHANNELS % ONCE == 0 || channel + step * ONCE < CHANNELS)) {
          if constexpr (VEC > 1) {
            copy_async<2 * VEC>(to + step * ONCE * PLANE, from, there);
          } else {
            *reinterpret_cast<Bits<Cfg>*>(to + step * ONCE * PLANE) = there ? load_readonly(from) : Bits<Cfg>{0};
          }
        }
        from += there ? ONCE * plane : 0;
      }
    }
  }

  using Sums = float[UNITS][L][NX][4];

  /// The words of one input row of this lane's two places; word (s, half, pair) where pair_used().
  struct Row {
    unsigned word[SETS][2][PAIRS];
  };
  SL_DEVICE void load_row(Row& row, const unsigned char* at, int strip_step) const {
    SL_UNROLL
    for (int s = 0; s < SETS; ++s) {
      SL_UNROLL
      for (int half = 0; half < 2; ++half) {
        const unsigned char* from = at + s * (CPG > 4 && lane % 4 + 4 >= CPG ? 0 : 4 * PLANE) + half * strip_step;
        SL_UNROLL
        for (int pair = 0; pair < PAIRS; ++pair) {
          unsigned* to = &row.word[s][half][pair];
          if (whole(pair, 4)) {
            if (pair % 4 == 0) {
              const auto v = *reinterpret_cast<const Word4*>(from + 4 * pair);
              to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
            }
          } else if (whole(pair, 2)) {
            if (pair % 2 == 0) {
              const auto v = *reinterpret_cast<const Word2*>(from + 4 * pair);
              to[0] = v.x, to[1] = v.y;
            }
          } else if (pair_used(pair)) {
            *to = *reinterpret_cast<const unsigned*>(from + 4 * pair);
          }
        }
      }
    }
  }

  SL_DEVICE void multiply(const unsigned char* buffer, Sums& sum) const {
    const int g = lane / 4, t = lane % 4;
    const int place = g % ABREAST < Cfg::ACROSS ? g % ABREAST : 0;
    const int channel = CPG > 4 || t % LANES_C < CPG ? t % LANES_C : 0;  // an absent channel is multiplied by zeros
    const unsigned char* base = buffer + (group * CPG + channel) * PLANE + place * (PART * SW * 2) + t / LANES_C * 4 +
                                (down * STRIPS + g / ABREAST) * (L * SH * PITCH);
    constexpr int strip_step = 8 / ABREAST * (L * SH * PITCH);
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      SL_UNROLL
      for (int l = 0; l < L; ++l) {
        SL_UNROLL
        for (int i = 0; i < NX; ++i) sum[u][l][i][0] = sum[u][l][i][1] = sum[u][l][i][2] = sum[u][l][i][3] = 0.0F;
      }
    }
    SL_UNROLL
    for (int i = 0; i < STRIP_ROWS; ++i) {
      if (!row_used(i)) continue;
      Row row;
      load_row(row, base + i * PITCH, strip_step);
      SL_UNROLL
      for (int x = 0; x < NX; ++x) {
        const int v = variant_of(x), words = words_of(odd_of(x)), start = start_of(x);
        SL_UNROLL
        for (int m = 0; m + 1 < words; m += 2) {
          const int second = SETS == 2 ? start + m / 2 : start + (m + 1) * STEP;
          const int first = SETS == 2 ? second : start + m * STEP;
          const unsigned a[4] = {row.word[0][0][first], row.word[0][1][first], row.word[SETS - 1][0][second],
                                 row.word[SETS - 1][1][second]};
          SL_UNROLL
          for (int u = 0; u < UNITS; ++u) {
            SL_UNROLL
            for (int l = 0; l < L; ++l) {
              const int r = kernel_row(i, l);
              if (r >= 0) mma_k16<Cfg::DTYPE>(sum[u][l][x], a, weight[u][r][v][m], weight[u][r][v][m + 1]);
            }
          }
        }
        if (words % 2 != 0) {
          const unsigned a[2] = {row.word[0][0][start + (words - 1) * STEP],
                                 row.word[0][1][start + (words - 1) * STEP]};
          SL_UNROLL
          for (int u = 0; u < UNITS; ++u) {
            SL_UNROLL
            for (int l = 0; l < L; ++l) {
              const int r = kernel_row(i, l);
              if (r >= 0) mma_k8<Cfg::DTYPE>(sum[u][l][x], a, weight[u][r][v][words - 1]);
            }
          }
        }
      }
    }
  }

  SL_DEVICE static float biased(float value, float bias) { return Cfg::BIAS == kBiasNone ? value : value + bias; }

  /// Of this lane's sum e of product x: output channel in the unit, column in the place, half of the places.
  SL_DEVICE int out_of(int e) const { return (2 * (lane % 4) + e % 2) / COLS; }
  SL_DEVICE int column_of(int x, int e) const { return x * COLS + (2 * (lane % 4) + e % 2) % COLS; }
  struct Spot {
    I row, column;  ///< of the first output of a place
    bool real;      ///< not a repeated place
  };
  SL_DEVICE Spot spot(const Tile& at, int half) const {
    const int m = lane / 4 + 8 * half;
    return {at.row + (down * STRIPS + m / ABREAST) * L, at.column + m % ABREAST * PART, m % ABREAST < Cfg::ACROSS};
  }

  /// Sums that are not finite, again and without the structural zeros. Cold, so one rolled loop.
  SL_DEVICE void repair(const SlParams& p, const Tile& at, Sums& sum) const {
    constexpr int COUNT = UNITS * L * NX * 4;
    SL_UNROLL_BY(1)
    for (int i = 0; i < COUNT; ++i) {
      const int e = i % 4, x = i / 4 % NX, l = i / (4 * NX) % L, u = i / (4 * NX * L);
      float value = 0.0F;
      SL_UNROLL
      for (int j = 0; j < COUNT; ++j) {
        value = j == i ? sum[j / (4 * NX * L)][j / (4 * NX) % L][j / 4 % NX][j % 4] : value;
      }
      const Spot place = spot(at, e / 2);
      const I row = place.row + l, column = place.column + column_of(x, e);
      if (finite(value) || !place.real || row >= static_cast<I>(p.p) || column >= static_cast<I>(p.q)) continue;
      if (out_of(e) >= outs_of(u)) continue;
      value = exact_sum<Cfg>(p, at.n, k_of(u) + out_of(e), static_cast<int>(row), static_cast<int>(column));
      SL_UNROLL
      for (int j = 0; j < COUNT; ++j) {
        float& to = sum[j / (4 * NX * L)][j / (4 * NX) % L][j / 4 % NX][j % 4];
        to = j == i ? value : to;
      }
    }
  }

  SL_DEVICE void store(const SlParams& p, const Tile& at, Sums& sum) const {
    float all = 0.0F;
    SL_UNROLL
    for (int j = 0; j < UNITS * L * NX; ++j) {
      const auto& s = sum[j / (NX * L)][j / NX % L][j % NX];
      all += (s[0] + s[1]) + (s[2] + s[3]);
    }
    if (!finite(all)) repair(p, at, sum);
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      constexpr int LANE_OUTS = COLS == 1 ? 2 : 1;  // output channels of a lane
      SL_UNROLL
      for (int o = 0; o < LANE_OUTS; ++o) {
        const int out = out_of(o);
        if (out >= outs_of(u)) continue;
        const float bias = bias_of<Cfg>(p, k_of(u) + out);
        SL_UNROLL
        for (int half = 0; half < 2; ++half) {
          const Spot place = spot(at, half);
          const I below = place.real ? static_cast<I>(p.p) - place.row : 0, beside = static_cast<I>(p.q) - place.column;
          const int rows = static_cast<int>(below < L ? below : L);
          const int limit = static_cast<int>(beside < PART ? beside : PART);
          const I first = y_offset<Cfg>(p, at.n, k_of(u) + out, place.row, place.column);
          SL_UNROLL
          for (int l = 0; l < L; ++l) {
            if (l >= rows) continue;
            const I offset = first + l * static_cast<I>(p.q);
            if constexpr (COLS <= 2) {
              float line[PART];
              SL_UNROLL
              for (int c = 0; c < PART; ++c) {
                line[c] = biased(COLS == 1 ? sum[u][l][c][2 * half + o] : sum[u][l][c / 2][2 * half + c % 2], bias);
              }
              finish_row<Cfg, Cfg::STORE>(p, offset, line, limit);
            } else {
              SL_UNROLL
              for (int x = 0; x < NX; ++x) {
                constexpr int width = Cfg::STORE < 2 ? 1 : 2;
                const float two[2] = {biased(sum[u][l][x][2 * half], bias), biased(sum[u][l][x][2 * half + 1], bias)};
                const int column = column_of(x, 0);
                finish_row<Cfg, width>(p, offset + column, two, limit - column);
              }
            }
          }
        }
      }
    }
  }
};

template <class Cfg>
SL_DEVICE void grp_mma_nchw(const SlParams& p) {
  using Work = GrpMmaNchw<Cfg>;
  using I = Index<Cfg>;
  SL_DYNAMIC_SHARED(unsigned char, buffers);
  int block = static_cast<int>(block_id());
  Work work;
  work.group0 = take(block, p.div[0]) * Cfg::BLOCK_GROUPS;
  work.lane = thread_id() % 32;
  const int warp = thread_id() / 32;
  work.group = warp % Cfg::BLOCK_GROUPS;
  work.unit0 = warp / Cfg::BLOCK_GROUPS % Work::UNIT_GROUPS * Cfg::UNITS;
  work.down = warp / Cfg::BLOCK_GROUPS / Work::UNIT_GROUPS;
  const I tiles = static_cast<I>(p.aux[0]), step = static_cast<I>(p.aux[1]);
  I number = block, ahead = block;  // the tile in hand, and the next to fetch
  const auto fetch = [&](int buffer) {
    if (ahead < tiles) work.fetch(p, buffers + buffer * Work::BUFFER, Work::tile(ahead, p));
    copy_async_commit();  // a group for each turn, even where nothing is left
    ahead += step;
  };
  work.fetch_weights(p, buffers + Work::WEIGHTS_AT);
  copy_async_commit();
  constexpr int AHEAD = Cfg::STAGES > 1 ? Cfg::STAGES - 1 : 1;
  SL_UNROLL
  for (int stage = 0; stage < AHEAD; ++stage) fetch(stage);
  copy_async_wait<AHEAD>();
  barrier();
  work.load_weights(p, buffers + Work::WEIGHTS_AT);
  int buffer = 0;
  SL_UNROLL_BY(1)
  for (; number < tiles; number += step) {
    copy_async_wait<(Cfg::STAGES > 2 ? Cfg::STAGES - 2 : 0)>();
    barrier();  // the tile is there for all, and nobody reads the buffer before it any more
    if constexpr (Cfg::STAGES > 1) fetch(buffer == 0 ? Cfg::STAGES - 1 : buffer - 1);
    if (work.present(p)) {
      typename Work::Sums sum;
      work.multiply(buffers + buffer * Work::BUFFER, sum);
      work.store(p, Work::tile(number, p), sum);
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
