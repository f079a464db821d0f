// mult_mma: few input channels a group and many outputs of each (channel multipliers, stems) on the matrix unit,
// 16-bit, both layouts. K runs over the taps themselves: input channels x pairs of kernel rows x columns of the kernel.
// For that the tile lies in shared memory as words of two rows, (x[2i][j], x[2i + 1][j]), so that the word of any
// column is one aligned load of fragment A, whatever the tap; and 81 taps are 90 places of K, 9 are 12. An output row
// that starts on the second row of a word has its own B, with the kernel one row further down, so a warp takes rows of
// one parity and keeps its weights in registers while tiles stream through.
#pragma once

#include "common/exact.cuh"
#include "common/row_pairs.cuh"
#include "common/word_steps.cuh"

namespace sl {

/// Cfg: DTYPE (16-bit) LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* (DIL_H 1) CPG MULT (a multiple of
/// 8); VEC channels (NHWC) or columns (NCHW, divides w) of a load, LEAD = -pad_left mod VEC in NCHW,
/// else 0; STORE columns of a store (NCHW, divides q), WVEC elements of a copy of weights. BLOCK_UNITS units (8
/// outputs) of a block, UNITS of them a warp; PART columns of a place (NHWC: 1), TILES times 8 places side by side,
/// ROWS row pairs of a parity, AHEAD 1: the next tile is read before this one is multiplied; THREADS. A block's tile:
/// HIGH rows x WIDE columns. div[0] = chunks of BLOCK_UNITS, div[1] = column tiles, div[2] = row tiles; aux[0] = tiles
/// of a chunk, aux[1] = blocks of a chunk. Dynamic shared memory: the larger of (1 + AHEAD) * BUFFER and AHEAD * BUFFER
/// + WEIGHTS bytes.
template <class Cfg>
struct MultMma {
  using I = Index<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DW = Cfg::DIL_W;
  static constexpr int CPG = Cfg::CPG, MULT = Cfg::MULT, UNITS = Cfg::UNITS, PART = Cfg::PART, VEC = Cfg::VEC;
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;

  // Units of a group; neighbouring units of a warp that read the same channels; input channels of a block.
  static constexpr int PER_GROUP = MULT / 8;
  static constexpr int SHARE = UNITS < PER_GROUP ? UNITS : PER_GROUP;
  static constexpr int CHANNELS = CPG * (Cfg::BLOCK_UNITS > PER_GROUP ? Cfg::BLOCK_UNITS / PER_GROUP : 1);
  static_assert(UNITS % SHARE == 0 && PER_GROUP % SHARE == 0, "a warp has whole groups, or a part of one");

  using Tiles = RowPairs<Cfg, CHANNELS>;
  using Tile = typename Tiles::Tile;
  static constexpr int PARITIES = Tiles::PARITIES, PAIRS = Tiles::PAIRS, BUFFER = Tiles::BYTES;
  static constexpr int WEIGHTS = Cfg::BLOCK_UNITS * 8 * CPG * R * S * 2;
  static constexpr int WEIGHTS_AT = Cfg::AHEAD * BUFFER;  // in a buffer that is written after they are in registers

  // K: word i = channel, pair of kernel rows, column s of the kernel; those of one phase are neighbours.
  static constexpr int WORDS = CPG * PAIRS * S;
  static constexpr int HALVES = (WORDS + 3) / 4;  // of 4 words, one a lane t
  SL_DEVICE static constexpr int column_of(int i) {
    constexpr int even = (S + 1) / 2;
    const int s = i % S;
    if (SW != 2 || DW % 2 == 0) return s;
    return s < even ? 2 * s : 2 * (s - even) + 1;
  }
  SL_DEVICE static constexpr int pair_of(int i) { return i / S % PAIRS; }
  SL_DEVICE static constexpr int channel_of(int i) { return i / S / PAIRS; }
  /// Of word i from a place's first; the absent ones are the first again, times zero.
  SL_DEVICE static constexpr int offset_of(int i) {
    if (i >= WORDS) return 0;
    return channel_of(i) * Tiles::PLANE + pair_of(i) * Tiles::LINE + Tiles::place_of(column_of(i) * DW + Cfg::LEAD) -
           Tiles::place_of(Cfg::LEAD);
  }
  using Steps = WordSteps<MultMma, HALVES>;

  int unit0;                       ///< of the warp, in the whole y
  int channel0;                    ///< of the block, in the whole x
  int own_channel;                 ///< first of the warp, in the block
  int parity, lane;                ///< of the warp's output rows
  unsigned weight[UNITS][HALVES];  ///< B: taps of word 4 m + t for output g of the unit
  float bias[UNITS][2];            ///< of this lane's two outputs of each unit
  Steps steps;                     ///< to this lane's words

  /// Output n of unit u. In NHWC a lane's outputs of units of one group are neighbours.
  SL_DEVICE int out_of(int u, int n) const {
    if constexpr (NHWC) return (unit0 + u / SHARE * SHARE) * 8 + n / 2 * (2 * SHARE) + u % SHARE * 2 + n % 2;
    return (unit0 + u) * 8 + n;
  }
  SL_DEVICE bool present(const SlParams& p, int u) const { return (unit0 + u) * 8 < static_cast<int>(p.k); }

  SL_DEVICE void fetch_weights(const SlParams& p, unsigned char* to, int first_out) const {
    constexpr int OUT = CPG * R * S, STEP = Cfg::WVEC;
    const auto* from = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(first_out) * OUT;
    const long long left = (p.k - first_out) * OUT;  // the last chunk may be shorter
    auto* at = reinterpret_cast<Bits<Cfg>*>(to);
    for (int i = thread_id() * STEP; i < WEIGHTS / 2; i += Cfg::THREADS * STEP) {
      if (i >= left) break;
      if constexpr (STEP > 1) {
        copy_async<2 * STEP>(at + i, from + i);
      } else {
        at[i] = load_readonly(from + i);
      }
    }
  }

  SL_DEVICE void load_weights(const SlParams& p, const unsigned char* weights, int first_out) {
    const int g = lane / 4, t = lane % 4;
    const auto* from = reinterpret_cast<const Bits<Cfg>*>(weights);
    SL_UNROLL
    for (int m = 0; m < HALVES; ++m) {
      const int i = 4 * m + t, channel = channel_of(i), s = column_of(i);
      const int r = 2 * pair_of(i) - parity;  // the word's first kernel row
      SL_UNROLL
      for (int u = 0; u < UNITS; ++u) {
        const int k = out_of(u, g);
        const auto* at = from + w_offset<Cfg>(k - first_out, channel, r, s);
        constexpr int down = Cfg::WLAYOUT == kOhwi ? S * CPG : S;
        const bool there = present(p, u) && i < WORDS;
        const unsigned low = there && r >= 0 && r < R ? at[0] : 0U;
        const unsigned high = there && r + 1 < R ? at[down] : 0U;
        weight[u][m] = low | high << 16;
      }
    }
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      SL_UNROLL
      for (int e = 0; e < 2; ++e) bias[u][e] = present(p, u) ? bias_of<Cfg>(p, out_of(u, 2 * t + e)) : 0.0F;
    }
  }

  using Sums = float[UNITS][PART][4];

  /// Row pair j and places 8 * tile ... of the block's tile.
  SL_DEVICE void multiply(Shared buffer, int j, int tile, Sums& sum) const {
    const int g = lane / 4;
    const int line = parity * SH / 2 + j * (PARITIES * SH);
    const Shared first = buffer + 4 * (own_channel * Tiles::PLANE + line * Tiles::LINE + Tiles::place_of(Cfg::LEAD) +
                                       (tile * 8 + g) * (NHWC ? 1 : PART));
    constexpr int half = 4 * (PARITIES * SH / 2) * Tiles::LINE;  // to the pair's other row
    Shared base[HALVES];
    steps.start(first, base);
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      SL_UNROLL
      for (int x = 0; x < PART; ++x) sum[u][x][0] = sum[u][x][1] = sum[u][x][2] = sum[u][x][3] = 0.0F;
    }
    SL_UNROLL
    for (int u0 = 0; u0 < UNITS; u0 += SHARE) {
      SL_UNROLL
      for (int x = 0; x < PART; ++x) {
        const int at = u0 / SHARE * CPG * Tiles::PLANE + x;
        SL_UNROLL
        for (int m = 0; m < HALVES; m += 2) {
          unsigned a[4];
          SL_UNROLL
          for (int q = 0; q < 2; ++q) {
            if (m + q >= HALVES) continue;
            const Shared from = base[Steps::pattern_of(m + q)] + 4 * (at + offset_of(4 * (m + q)));
            a[2 * q] = load_shared(from);
            a[2 * q + 1] = load_shared(from + half);
          }
          SL_UNROLL
          for (int u = u0; u < u0 + SHARE; ++u) {
            if (m + 1 < HALVES) {
              mma_k16<Cfg::DTYPE>(sum[u][x], a, weight[u][m], weight[u][m + 1]);
            } else {
              const unsigned low[2] = {a[0], a[1]};
              mma_k8<Cfg::DTYPE>(sum[u][x], low, weight[u][m]);
            }
          }
        }
      }
    }
  }

  struct Spot {
    I row, column;  ///< of this lane's first place; its second is PARITIES rows below
  };
  SL_DEVICE Spot spot(const Tile& at, int j, int tile) const {
    return {at.row + parity + 2 * PARITIES * j, at.column + (tile * 8 + lane / 4) * PART};
  }

  /// Sums that are not finite, again and without the structural zeros. Cold, so one rolled loop.
  SL_DEVICE void repair(const SlParams& p, I n, const Spot& at, Sums& sum) const {
    constexpr int COUNT = UNITS * PART * 4;
    SL_UNROLL_BY(1)
    for (int i = 0; i < COUNT; ++i) {
      const int e = i % 4, x = i / 4 % PART, u = i / (4 * PART);
      float value = 0.0F;
      SL_UNROLL
      for (int j = 0; j < COUNT; ++j) value = j == i ? sum[j / (4 * PART)][j / 4 % PART][j % 4] : value;
      const I row = at.row + e / 2 * PARITIES, column = at.column + x;
      if (finite(value) || row >= static_cast<I>(p.p) || column >= static_cast<I>(p.q) || !present(p, u)) continue;
      const int k = out_of(u, 2 * (lane % 4) + e % 2);
      value = exact_sum<Cfg>(p, n, k, static_cast<int>(row), static_cast<int>(column));
      SL_UNROLL
      for (int j = 0; j < COUNT; ++j) {
        float& to = sum[j / (4 * PART)][j / 4 % PART][j % 4];
        to = j == i ? value : to;
      }
    }
  }

  SL_DEVICE float biased(float value, int u, int e) const {
    return Cfg::BIAS == kBiasNone ? value : value + bias[u][e];
  }

  SL_DEVICE void store(const SlParams& p, I n, const Spot& at, Sums& sum) const {
    float all = 0.0F;
    SL_UNROLL
    for (int i = 0; i < UNITS * PART; ++i) {
      const auto& s = sum[i / PART][i % PART];
      all += (s[0] + s[1]) + (s[2] + s[3]);
    }
    if (!finite(all)) repair(p, n, at, sum);
    SL_UNROLL
    for (int half = 0; half < 2; ++half) {
      const I row = at.row + half * PARITIES;
      const bool row_inside = row < static_cast<I>(p.p);
      if constexpr (NHWC) {
        store_pixel(p, y_offset<Cfg>(p, n, 0, row, at.column), row_inside && at.column < static_cast<I>(p.q), half,
                    sum);
      } else {
        const I beside = row_inside ? static_cast<I>(p.q) - at.column : 0;
        const int limit = static_cast<int>(beside < PART ? beside : PART);
        SL_UNROLL
        for (int u = 0; u < UNITS; ++u) {
          SL_UNROLL
          for (int e = 0; e < 2; ++e) {
            if (!present(p, u)) continue;
            float line[PART];
            SL_UNROLL
            for (int x = 0; x < PART; ++x) line[x] = biased(sum[u][x][2 * half + e], u, e);
            finish_row<Cfg, Cfg::STORE>(p, y_offset<Cfg>(p, n, out_of(u, 2 * (lane % 4) + e), row, at.column), line,
                                        limit);
          }
        }
      }
    }
  }

  SL_DEVICE void store_pixel(const SlParams& p, I pixel, bool there, int half, Sums& sum) const {
    const int t = lane % 4;
    if constexpr (SHARE == 1 && UNITS % 2 == 0 && Cfg::RESIDUAL == 0) {
      // Two neighbouring units: lanes swap halves, so that each stores 8 bytes and a pixel's 32 bytes leave together.
      SL_UNROLL
      for (int u = 0; u < UNITS; u += 2) {
        unsigned word[2];
        SL_UNROLL
        for (int v = 0; v < 2; ++v) {
          const float low = biased(sum[u + v][0][2 * half], u + v, 0);
          const float high = biased(sum[u + v][0][2 * half + 1], u + v, 1);
          word[v] = Element<Cfg::DTYPE>::narrow2(activate<Cfg::ACT>(low, p.alpha, p.beta),
                                                 activate<Cfg::ACT>(high, p.alpha, p.beta));
        }
        const unsigned other = shuffle(t % 2 != 0 ? word[0] : word[1], lane ^ 1);
        Raw<8> raw;
        raw.word[0] = t % 2 != 0 ? other : word[0];
        raw.word[1] = t % 2 != 0 ? word[1] : other;
        const int k = (unit0 + u + t % 2) * 8 + t / 2 * 4;
        if (there && k < static_cast<int>(p.k)) store_raw(static_cast<Bits<Cfg>*>(p.y) + (pixel + k), raw);
      }
    } else {
      SL_UNROLL
      for (int u = 0; u < UNITS; u += SHARE) {
        float out[2 * SHARE];
        SL_UNROLL
        for (int i = 0; i < 2 * SHARE; ++i) out[i] = biased(sum[u + i / 2][0][2 * half + i % 2], u + i / 2, i % 2);
        constexpr int width = SHARE % 4 == 0 ? 8 : SHARE % 2 == 0 ? 4 : 2;
        if (there && present(p, u)) finish_row<Cfg, width>(p, pixel + out_of(u, 2 * t), out, 2 * SHARE);
      }
    }
  }
};

template <class Cfg>
SL_DEVICE void mult_mma(const SlParams& p) {
  using Work = MultMma<Cfg>;
  using I = Index<Cfg>;
  constexpr int UNIT_GROUPS = Cfg::BLOCK_UNITS / Cfg::UNITS;
  constexpr int SPLITS = Cfg::THREADS / 32 / (UNIT_GROUPS * Work::PARITIES);
  static_assert(Cfg::THREADS == 32 * SPLITS * UNIT_GROUPS * Work::PARITIES, "every warp has units and a parity");
  SL_DYNAMIC_SHARED(unsigned char, buffers);
  int block = static_cast<int>(block_id());
  Work work;
  const int warp = thread_id() / 32, block_unit = take(block, p.div[0]) * Cfg::BLOCK_UNITS;
  const int unit = warp % UNIT_GROUPS * Cfg::UNITS;
  work.lane = thread_id() % 32;
  work.unit0 = block_unit + unit;
  work.channel0 = block_unit / Work::PER_GROUP * Work::CPG;
  work.own_channel = work.unit0 / Work::PER_GROUP * Work::CPG - work.channel0;
  work.parity = warp / UNIT_GROUPS % Work::PARITIES;
  const int split = warp / (UNIT_GROUPS * Work::PARITIES);
  const I tiles = static_cast<I>(p.aux[0]), step = static_cast<I>(p.aux[1]);
  I number = block;

  work.fetch_weights(p, buffers + Work::WEIGHTS_AT, block_unit * 8);
  copy_async_commit();
  typename Work::Tiles::Item ahead[Cfg::AHEAD != 0 ? Work::Tiles::TURNS : 1][Work::Tiles::BATCH];
  const auto load_ahead = [&] {
    if constexpr (Cfg::AHEAD != 0) {
      const typename Work::Tile at = Work::Tiles::tile(number, p);
      SL_UNROLL
      for (int turn = 0; turn < Work::Tiles::TURNS; ++turn)
        Work::Tiles::load(p, at, work.channel0, turn, 0, ahead[turn]);
    }
  };
  if (number < tiles) load_ahead();
  copy_async_wait<0>();
  barrier();
  work.load_weights(p, buffers + Work::WEIGHTS_AT, block_unit * 8);
  work.steps.find(work.lane);
  Shared buffer(buffers);
  int other = Work::BUFFER;  // from this buffer to the next
  SL_UNROLL_BY(1)
  while (number < tiles) {
    const typename Work::Tile at = Work::Tiles::tile(number, p);
    if constexpr (Cfg::AHEAD != 0) {
      SL_UNROLL
      for (int turn = 0; turn < Work::Tiles::TURNS; ++turn) Work::Tiles::put(buffer, turn, 0, ahead[turn]);
    } else {
      barrier();  // nobody reads the tile before it, or weights, any more
      SL_UNROLL_BY(1)
      for (int turn = 0; turn < Work::Tiles::TURNS; ++turn) {
        SL_UNROLL_BY(1)
        for (int step = 0; step < Work::Tiles::STEPS; step += Work::Tiles::BATCH) {
          Work::Tiles::load(p, at, work.channel0, turn, step, ahead[0]);
          Work::Tiles::put(buffer, turn, step, ahead[0]);
        }
      }
    }
    barrier();
    number += step;
    if (number < tiles) load_ahead();
    SL_UNROLL_BY(1)
    for (int task = split; task < Cfg::ROWS * Cfg::TILES; task += SPLITS) {
      const int j = task / Cfg::TILES, tile = task % Cfg::TILES;
      const typename Work::Spot spot = work.spot(at, j, tile);
      if (spot.row >= static_cast<I>(p.p) || at.column + tile * 8 * Cfg::PART >= static_cast<I>(p.q)) continue;
      typename Work::Sums sum;
      work.multiply(buffer, j, tile, sum);
      work.store(p, at.n, spot, sum);
    }
    if constexpr (Cfg::AHEAD != 0) {
      buffer = buffer + other;
      other = -other;
    }
  }
}

}  // namespace sl
