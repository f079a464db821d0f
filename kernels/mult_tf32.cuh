// mult_tf32: few input channels a group and many outputs of each (channel multipliers, stems, groups under large
// kernels) in fp32 on the matrix unit, both layouts. Every number is a sum of two of 11 bits and a product is three of
// theirs, as in grp_tf32. K runs over the taps themselves: kernel rows x input channels x columns of the kernel. The
// tile lies in shared memory as numbers already split, so that an element of fragment A is one load whatever the tap,
// and the weights lie beside it in the order of fragment B. A warp multiplies each fragment of A with all its units of
// 8 outputs and each of B with all its places.
#pragma once

#include "common/conv.cuh"
#include "common/exact.cuh"
#include "common/output_tile.cuh"
#include "common/tf32_pairs.cuh"
#include "common/word_steps.cuh"

namespace sl {

/// Cfg, f32 only: LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG MULT (a multiple of 8); BLOCK_UNITS
/// units (8 outputs) of a block, UNITS of them a warp; PART columns of a place, 8 places side by side and 2 * DOWN rows
/// of them at once, TILES times side by side, ROWS times one below the other: a block's tile of HIGH rows x WIDE
/// columns. WORDS 2: a number lies there as its two parts; 1: as itself, and is split when it is read. BUFFERS (1, 2)
/// tiles; STORE elements of a store; THREADS. div[0] = chunks of BLOCK_UNITS, div[1] = column tiles, div[2] = row
/// tiles; aux[0] = tiles of a chunk, aux[1] = blocks of a chunk. Dynamic shared memory: WEIGHTS + BUFFERS * BUFFER +
/// RAW bytes.
template <class Cfg>
struct MultTf32 {
  using I = Index<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DH = Cfg::DIL_H, DW = Cfg::DIL_W;
  static constexpr int CPG = Cfg::CPG, UNITS = Cfg::UNITS, PART = Cfg::PART, DOWN = Cfg::DOWN, WORDS = Cfg::WORDS;
  static constexpr int BLOCK_UNITS = Cfg::BLOCK_UNITS, THREADS = Cfg::THREADS;
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;

  static constexpr int PER_GROUP = Cfg::MULT / 8;                                                 // units
  static constexpr int CHANNELS = CPG * (BLOCK_UNITS > PER_GROUP ? BLOCK_UNITS / PER_GROUP : 1);  // of a block's input
  static_assert(PER_GROUP % UNITS == 0, "a warp's units read the same channels");

  // --- the tile: for each group rows x channels x columns, so that a word's distance from the next follows few
  // patterns

  static constexpr int HIGH = 2 * DOWN * Cfg::ROWS, WIDE = 8 * PART * Cfg::TILES;
  static constexpr int ROWS_IN = (HIGH - 1) * SH + (R - 1) * DH + 1, COLS_IN = (WIDE - 1) * SW + (S - 1) * DW + 1;
  // Columns lie by their remainder mod the stride, so that places are neighbours. Lanes that read at once are 8 places
  // x four taps, of which the last may begin another run: it goes on as if they were one (4 columns a place), or lies
  // so that at most a few are in the same banks.
  static constexpr int LEAST = PART == 4 ? 1 : 7 * PART + 1, MOST = PART == 4 ? 1 : 33 - LEAST;
  SL_DEVICE static constexpr int pitch(int size, int run) {
    while ((size - run) % 32 < LEAST || (size - run) % 32 > MOST) ++size;
    return size;
  }
  static constexpr bool TURNED = SW == 2 && DW % 2 != 0;  // even columns of the kernel first, then the odd ones
  static constexpr int EVEN = (S + 1) / 2;
  static constexpr int COLUMNS = (COLS_IN + SW - 1) / SW;
  static constexpr int PHASE = TURNED ? pitch(COLUMNS + 1, (EVEN - 1) * DW - DW / 2) : COLUMNS;
  static constexpr int LINE = TURNED   ? 2 * PHASE + DW - 1 + (S - 2 * EVEN) * DW  // as far as one phase from the other
                              : SW > 1 ? SW* PHASE
                                       : pitch(COLS_IN, (S - 1) * DW);
  static constexpr int GROUP = ROWS_IN * CPG * LINE;          // numbers
  static constexpr int PARTS = 4 * (CHANNELS / CPG) * GROUP;  // bytes from a number's high part to its low one
  static constexpr int BUFFER = WORDS * PARTS;
  SL_DEVICE static constexpr int place_of(int column) { return column % SW * PHASE + column / SW; }

  // --- K: word i = kernel row, channel, column of the kernel

  static constexpr int TAPS = R * CPG * S;
  static constexpr int QUADS = (TAPS + 3) / 4;      // of 4 words, one a lane t
  static constexpr int STEPS = (QUADS + 1) / 2;     // products; the last may be of one quad
  static constexpr int UNIT_WEIGHTS = STEPS * 512;  // bytes: high and low parts of both quads for each lane
  static constexpr int WEIGHTS = BLOCK_UNITS * UNIT_WEIGHTS;
  SL_DEVICE static constexpr int column_of(int i) {
    const int s = i % S;
    if (!TURNED) return s;
    return s < EVEN ? 2 * s : 2 * (s - EVEN) + 1;
  }
  SL_DEVICE static constexpr int channel_of(int i) { return i / S % CPG; }
  SL_DEVICE static constexpr int row_of(int i) { return i / S / CPG; }
  /// Of word i from a place's first; the absent ones are the first again, times zero.
  SL_DEVICE static constexpr int offset_of(int i) {
    if (i >= TAPS) return 0;
    return (row_of(i) * DH * CPG + channel_of(i)) * LINE + place_of(column_of(i) * DW);
  }
  using Steps = WordSteps<MultTf32, QUADS>;

  int block_unit, unit;  ///< first of the block and of the warp, in the whole y
  int channel;           ///< first of the block, in the whole x
  int own;               ///< bytes to the warp's channels in a buffer
  int lane;              ///< of the warp
  Steps steps;           ///< to this lane's words
  Shared weights, raw;   ///< this lane's weights of the warp's first unit; this thread's first copy

  /// Output n of unit u. In NHWC a lane's outputs of two units of a warp are neighbours.
  SL_DEVICE static int out_of(int u, int n) {
    const int odd = u % UNITS % 2, first = u - odd;
    if (NHWC && first % UNITS + 1 < UNITS) return first * 8 + n / 2 * 4 + odd * 2 + n % 2;
    return u * 8 + n;
  }

  SL_DEVICE void put_weights(const SlParams& p, Shared to) const {
    const auto* weight = static_cast<const Bits<Cfg>*>(p.weight);
    SL_UNROLL_BY(4)
    for (int i = thread_id(); i < WEIGHTS / 16; i += THREADS) {
      const int g = i % 32 / 4, t = i % 4, m = i / 32 % STEPS, k = out_of(block_unit + i / (32 * STEPS), g);
      unsigned part[2][2];
      SL_UNROLL
      for (int q = 0; q < 2; ++q) {
        const int word = m * 8 + q * 4 + t;
        float value = 0.0F;
        if (word < TAPS && k < static_cast<int>(p.k)) {
          value = load_one<Cfg>(weight + w_offset<Cfg>(k, channel_of(word), row_of(word), column_of(word)));
        }
        const Halves halves(value);
        part[0][q] = halves.high;
        part[1][q] = halves.low;
      }
      store_shared4(to + 16 * i, part[0][0], part[0][1], part[1][0], part[1][1]);
    }
  }

  // --- fetching: a thread copies one number of every TOGETHER-th line (or COLUMN_TURNS numbers of every line), each to
  // a place of its own that nobody else reads, and puts it in the tile when it is there

  static constexpr int PIECES = NHWC ? COLS_IN * CHANNELS : COLS_IN;  // numbers of a line
  static constexpr int LINES = NHWC ? ROWS_IN : ROWS_IN * CHANNELS;
  static constexpr int TOGETHER = THREADS > PIECES ? THREADS / PIECES : 1;
  static constexpr int COLUMN_TURNS = (PIECES + THREADS - 1) / THREADS, LINE_TURNS = (LINES + TOGETHER - 1) / TOGETHER;
  static constexpr int RAW = 4 * THREADS * COLUMN_TURNS * LINE_TURNS;

  using Tile = OutputTile<Cfg>;
  SL_DEVICE static Tile tile(I number, const SlParams& p) { return output_tile<Cfg, HIGH, WIDE>(number, p); }
  struct Piece {
    int line, column, channel;
    bool real;
    SL_DEVICE explicit Piece(int turn) {
      // Found again for every tile, or it would stay in registers while the products need them.
      const int i = keep(thread_id()) + turn * THREADS, piece = TOGETHER > 1 ? i % PIECES : i;
      line = TOGETHER > 1 ? i / PIECES : 0;
      column = NHWC ? piece / CHANNELS : piece;
      channel = NHWC ? piece % CHANNELS : 0;
      real = line < TOGETHER && piece < PIECES;
    }
  };
  SL_DEVICE void fetch(const SlParams& p, const Tile& at) const {
    const int left = static_cast<int>(static_cast<long long>(at.column) * SW - p.pad_left);
    const int top = static_cast<int>(static_cast<long long>(at.row) * SH - p.pad_top);
    const int channels = static_cast<int>(p.c) - channel;
    const I row_step = pixel_offset<Cfg>(p, 1, 0), plane = static_cast<I>(p.h) * static_cast<I>(p.w);
    SL_UNROLL
    for (int turn = 0; turn < COLUMN_TURNS; ++turn) {
      const Piece piece(turn);
      if (!piece.real) continue;
      const bool there = inside(left + piece.column, static_cast<int>(p.w)) && piece.channel < channels;
      const auto* x = x_at<Cfg>(p, at.n, channel + piece.channel) + pixel_offset<Cfg>(p, top, left + piece.column);
      SL_UNROLL_BY(4)
      for (int i = 0; i < LINE_TURNS; ++i) {
        const int line = piece.line + i * TOGETHER;
        const int row = NHWC ? line : line / CHANNELS, c = NHWC ? 0 : line % CHANNELS;
        if (LINES % TOGETHER != 0 && line >= LINES) break;
        const bool present = there && c < channels && inside(top + row, static_cast<int>(p.h));
        copy_async<4>(raw + 4 * THREADS * (turn * LINE_TURNS + i), x + (row * row_step + c * plane), present);
      }
    }
  }
  SL_DEVICE void put(Shared buffer) const {
    SL_UNROLL
    for (int turn = 0; turn < COLUMN_TURNS; ++turn) {
      const Piece piece(turn);
      if (!piece.real) continue;
      SL_UNROLL_BY(4)
      for (int i = 0; i < LINE_TURNS; ++i) {
        const int line = piece.line + i * TOGETHER;
        const int row = NHWC ? line : line / CHANNELS, c = NHWC ? piece.channel : line % CHANNELS;
        if (LINES % TOGETHER != 0 && line >= LINES) break;
        const Shared to = buffer + 4 * (c / CPG * GROUP + (row * CPG + c % CPG) * LINE + place_of(piece.column));
        const Halves number = Halves::cut(float_from_bits(load_shared(raw + 4 * THREADS * (turn * LINE_TURNS + i))));
        store_shared(to, number.high);
        if constexpr (WORDS == 2) store_shared(to + PARTS, number.low);
      }
    }
  }

  // --- products

  static constexpr int PLACES = PART * DOWN;  // times 16: fragments of A
  using Sums = float[PLACES][UNITS][4];

  SL_DEVICE static void read(Shared from, unsigned& high, unsigned& low) {
    high = load_shared_again(from);
    if constexpr (WORDS == 2) {
      low = load_shared_again(from + PARTS);
    } else {
      low = float_bits(float_from_bits(high) - float_from_bits(high & 0xffffe000U));
    }
  }

  /// Row pairs j DOWN ... and columns 8 PART tile ... of the block's tile.
  SL_DEVICE void multiply(Shared buffer, int j, int tile, Sums& sum) const {
    const Shared first = buffer + (own + 4 * (j * (2 * DOWN * SH * CPG * LINE) + (tile * 8 + lane / 4) * PART));
    Shared base[QUADS];
    steps.start(first, base);
    SL_UNROLL
    for (int m = 0; m < STEPS; ++m) {
      unsigned b[UNITS][4], high[PLACES][4], low[PLACES][4];
      SL_UNROLL
      for (int u = 0; u < UNITS; ++u) {
        float four[4];
        load_shared4(four, weights + (u * UNIT_WEIGHTS + m * 512));
        SL_UNROLL
        for (int i = 0; i < 4; ++i) b[u][i] = float_bits(four[i]);
      }
      SL_UNROLL
      for (int i = 0; i < PLACES * 4; ++i) {
        const int x = i / 4, quad = 2 * m + i / 2 % 2, row = x / PART * 2 + i % 2;
        if (quad >= QUADS) continue;
        // A line break would be another build than the one that passed the sanitizers.
        // clang-format off
        const Shared from = base[Steps::pattern_of(quad)] + 4 * (offset_of(4 * quad) + row * SH * CPG * LINE + x % PART);
        // clang-format on
        read(from, high[x][i % 4], low[x][i % 4]);
      }
      // Each sum takes turns with all others, so that no product waits for the one before it.
      SL_UNROLL
      for (int product = 0; product < 3; ++product) {
        SL_UNROLL
        for (int i = 0; i < PLACES * UNITS; ++i) {
          const int x = i / UNITS, u = i % UNITS, part = product == 1 ? 2 : 0;
          const unsigned(&a)[4] = product == 0 ? low[x] : high[x];
          if (2 * m + 1 >= QUADS) {
            if (m == 0 && product == 0) sum[x][u][0] = sum[x][u][1] = sum[x][u][2] = sum[x][u][3] = 0.0F;
            mma_tf32_k4(sum[x][u], a[0], a[1], b[u][part]);
          } else if (m == 0 && product == 0) {
            mma_tf32_zero(sum[x][u], a, b[u][part], b[u][part + 1]);
          } else {
            mma_tf32(sum[x][u], a, b[u][part], b[u][part + 1]);
          }
        }
      }
    }
  }

  // --- outputs: of place x, unit u a lane has two outputs in a row of the tile (elements 0, 1) and in the next (2, 3)

  struct Spot {
    I row, column;  ///< of this lane's first place
  };
  SL_DEVICE Spot spot(const Tile& at, int j, int tile) const {
    return {at.row + j * (2 * DOWN), at.column + (tile * 8 + lane / 4) * PART};
  }

  /// Sums that are not finite, again in plain fp32: an Inf or NaN, and a number that is too large, has no halves. Cold,
  /// so one rolled loop.
  SL_DEVICE void repair(const SlParams& p, I n, const Spot& at, Sums& sum) const {
    constexpr int COUNT = PLACES * UNITS * 4;
    SL_UNROLL_BY(1)
    for (int i = 0; i < COUNT; ++i) {
      const int e = i % 4, u = i / 4 % UNITS, x = i / (4 * UNITS);
      float value = 0.0F;
      SL_UNROLL
      for (int j = 0; j < COUNT; ++j) value = j == i ? sum[j / (4 * UNITS)][j / 4 % UNITS][j % 4] : value;
      const I row = at.row + x / PART * 2 + e / 2, column = at.column + x % PART;
      if (finite(value) || row >= static_cast<I>(p.p) || column >= static_cast<I>(p.q)) continue;
      const int k = out_of(unit + u, 2 * (lane % 4) + e % 2);
      value = exact_sum<Cfg>(p, n, k, static_cast<int>(row), static_cast<int>(column));
      SL_UNROLL
      for (int j = 0; j < COUNT; ++j) {
        float& to = sum[j / (4 * UNITS)][j / 4 % UNITS][j % 4];
        to = j == i ? value : to;
      }
    }
  }

  SL_DEVICE void store(const SlParams& p, I n, const Spot& at, Sums& sum) const {
    const int t = keep(lane % 4);  // so that the bias is not in registers while the products need them
    float all = 0.0F;
    SL_UNROLL
    for (int i = 0; i < PLACES * UNITS * 4; ++i) {
      float& own_sum = sum[i / (4 * UNITS)][i / 4 % UNITS][i % 4];
      own_sum *= tf32_unscale;
      all += own_sum;
    }
    if (!finite(all)) repair(p, n, at, sum);
    if constexpr (Cfg::BIAS != kBiasNone) {
      SL_UNROLL
      for (int i = 0; i < UNITS * 2; ++i) {
        const float bias = bias_of<Cfg>(p, out_of(unit + i / 2, 2 * t + i % 2));
        SL_UNROLL
        for (int x = 0; x < PLACES; ++x) {
          sum[x][i / 2][i % 2] += bias;
          sum[x][i / 2][i % 2 + 2] += bias;
        }
      }
    }
    const I beside = static_cast<I>(p.q) - at.column;
    const I step = NHWC ? static_cast<I>(p.k) : static_cast<I>(p.p) * static_cast<I>(p.q);  // pixel or plane
    SL_UNROLL
    for (int down = 0; down < 2 * DOWN; ++down) {
      const I row = at.row + down;
      const int limit = row >= static_cast<I>(p.p) ? 0 : static_cast<int>(beside < PART ? beside : PART);
      const int x0 = down / 2 * PART, e0 = down % 2 * 2;
      if constexpr (NHWC) {
        const I y = y_offset<Cfg>(p, n, unit * 8, row, at.column);
        SL_UNROLL
        for (int x = 0; x < PART; ++x) {
          SL_UNROLL
          for (int u = 0; u < UNITS; u += 2) {
            constexpr int PAIR = 2;
            const float(&s)[4] = sum[x0 + x][u];
            const I to = y + x * step + u * 8;
            if (x >= limit) continue;
            if (u + 1 < UNITS) {
              const float(&other)[4] = sum[x0 + x][u + 1 < UNITS ? u + 1 : u];
              const float four[4] = {s[e0], s[e0 + 1], other[e0], other[e0 + 1]};
              finish_row<Cfg, Cfg::STORE>(p, to + 4 * t, four, 4);
            } else {
              const float two[2] = {s[e0], s[e0 + 1]};
              finish_row<Cfg, (Cfg::STORE < PAIR ? Cfg::STORE : PAIR)>(p, to + 2 * t, two, 2);
            }
          }
        }
      } else {
        const I y = y_offset<Cfg>(p, n, unit * 8 + 2 * t, row, at.column);
        SL_UNROLL
        for (int u = 0; u < UNITS; ++u) {
          SL_UNROLL
          for (int e = 0; e < 2; ++e) {
            float line[PART];
            SL_UNROLL
            for (int x = 0; x < PART; ++x) line[x] = sum[x0 + x][u][e0 + e];
            finish_row<Cfg, Cfg::STORE>(p, y + (u * 8 + e) * step, line, limit);
          }
        }
      }
    }
  }
};

template <class Cfg>
SL_DEVICE void mult_tf32(const SlParams& p) {
  using Work = MultTf32<Cfg>;
  using I = Index<Cfg>;
  constexpr int UNIT_GROUPS = Cfg::BLOCK_UNITS / Cfg::UNITS, SPLITS = Cfg::THREADS / 32 / UNIT_GROUPS;
  static_assert(Cfg::THREADS == 32 * SPLITS * UNIT_GROUPS, "every warp has units");
  SL_DYNAMIC_SHARED(unsigned char, shared);
  int block = static_cast<int>(block_id());
  Work work;
  const int warp = thread_id() / 32, unit = warp % UNIT_GROUPS * Cfg::UNITS, split = warp / UNIT_GROUPS;
  work.lane = thread_id() % 32;
  work.block_unit = take(block, p.div[0]) * Cfg::BLOCK_UNITS;
  work.unit = work.block_unit + unit;
  work.channel = work.block_unit / Work::PER_GROUP * Cfg::CPG;
  work.own = (work.unit / Work::PER_GROUP - work.block_unit / Work::PER_GROUP) * (4 * Work::GROUP);
  const I tiles = static_cast<I>(p.aux[0]), step = static_cast<I>(p.aux[1]);
  const bool idle = work.unit * 8 >= static_cast<int>(p.k);  // the last chunk may be shorter
  I number = block;

  const Shared start(shared);
  work.weights = start + (unit * Work::UNIT_WEIGHTS + work.lane * 16);
  work.raw = start + (Work::WEIGHTS + Cfg::BUFFERS * Work::BUFFER + 4 * thread_id());
  if (number < tiles) work.fetch(p, Work::tile(number, p));
  copy_async_commit();
  work.put_weights(p, start);
  work.steps.find(work.lane);
  Shared buffer = start + Work::WEIGHTS;
  int other = Work::BUFFER;  // from this buffer to the next
  SL_UNROLL_BY(1)
  while (number < tiles) {
    const typename Work::Tile at = Work::tile(number, p);
    copy_async_wait<0>();
    if constexpr (Cfg::BUFFERS == 1) barrier();  // nobody reads the tile before it any more
    work.put(buffer);
    number += step;
    if (number < tiles) work.fetch(p, Work::tile(number, p));
    copy_async_commit();
    barrier();
    SL_UNROLL_BY(1)
    for (int task = split; task < Cfg::ROWS * Cfg::TILES; task += SPLITS) {
      const int j = task / Cfg::TILES, tile = task % Cfg::TILES;
      const typename Work::Spot spot = work.spot(at, j, tile);
      if (idle || spot.row >= static_cast<I>(p.p) || at.column + tile * 8 * Cfg::PART >= static_cast<I>(p.q)) continue;
      typename Work::Sums sum;
      work.multiply(buffer, j, tile, sum);
      work.store(p, at.n, spot, sum);
    }
    if constexpr (Cfg::BUFFERS == 2) {
      buffer = buffer + other;
      other = -other;
    }
  }
}

}  // namespace sl
