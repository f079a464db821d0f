// grp_fma: grouped convolution and channel multipliers by fp32 multiply-adds, with input rows on their way through a
// ring in shared memory. A block owns a tile of columns of a few groups and slides down a strip of output rows. All
// threads fetch the tile's input rows by asynchronous copies STAGES - 1 steps ahead; each thread then adds every row to
// the sums of OUTS output channels of one group x COLS columns. Where a thread's weights are few they stay in its
// registers; else they are read from shared memory, each for COLS multiply-adds.
#pragma once

#include "common/conv.cuh"
#include "common/group_weights.cuh"

namespace sl {

/// Cfg: DTYPE LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_W DIL_* CPG MULT; PHASES, STEP (output rows of one
/// phase are PHASES apart and read rows STEP * DIL_H further down); OUTS (divides MULT), COLS, SPLIT (1, 2:
/// neighbouring threads that share out a group's channels, then their OUTS), LANES along the outputs (whole groups, or
/// an even share of one), TILES along the row: SPLIT * LANES * TILES threads; STAGES, COPY (elements of one copy), LEAD
/// (NCHW: columns that the first copy of a row starts early), PAD (elements after a pixel or a group's planes, against
/// bank conflicts), TOGETHER (input channels in registers at once), HOLD (weights in registers), ROLL (channels are a
/// loop), LONG (strips, so that their ends weigh little), STORE (elements of a store), EVEN (COLS divides q). div[0] =
/// channel blocks (NHWC) or lanes of an image (NCHW), div[1] = column tiles, div[2] = strips, div[3] = PHASES, div[4] =
/// k; aux[0] = output rows of a strip.
template <class Cfg>
struct GrpFma {
  using I = Index<Cfg>;
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int SIZE = static_cast<int>(sizeof(Bits<Cfg>)), UNIT = 16 / SIZE;  // UNIT: elements of 16 bytes
  static constexpr int R = Cfg::R, S = Cfg::S, TAPS = R * S, SW = Cfg::STRIDE_W, DW = Cfg::DIL_W;
  static constexpr int CPG = Cfg::CPG, OUTS = Cfg::OUTS, COLS = Cfg::COLS, LANES = Cfg::LANES, STEP = Cfg::STEP;
  static constexpr int SPLIT = Cfg::SPLIT, OWN = OUTS / SPLIT, SHARE = CPG / SPLIT;  // outputs stored, channels read
  static constexpr int PARTS = Cfg::MULT / OUTS;                                     // lanes that share a group
  static constexpr int GROUPS = LANES >= PARTS ? LANES / PARTS : 1, CHANNELS = GROUPS * CPG;
  static_assert(LANES % PARTS == 0 || PARTS % LANES == 0, "whole groups, or an even share of one");
  static constexpr int SLOTS = (R + STEP - 1) / STEP;  // output rows that one input row is added to
  static constexpr int FRESH = STEP < R ? STEP : R;    // input rows that a step adds

  static constexpr int REACH = (S - 1) * DW + 1;
  static constexpr int SPAN = (COLS - 1) * SW + REACH;  // input columns of a thread
  static constexpr int TILE = Cfg::TILES * COLS;        // output columns of the block
  static constexpr int WIDE = (TILE - 1) * SW + REACH;  // input columns of the block
  // In the ring a line is what lies together in memory: the channels of a pixel (NHWC), the columns of a plane's row.
  static constexpr int LEAD = Cfg::LEAD;
  static constexpr int LINES = NHWC ? WIDE : CHANNELS, LENGTH = NHWC ? CHANNELS : LEAD + WIDE;
  static constexpr int LINE_COPIES = (LENGTH + Cfg::COPY - 1) / Cfg::COPY;
  static constexpr int PITCH = NHWC ? CHANNELS + Cfg::PAD : (LENGTH + UNIT - 1) / UNIT * UNIT;
  SL_DEVICE static constexpr int line_at(int line) { return line * PITCH + (NHWC ? 0 : line / SHARE * Cfg::PAD); }
  static constexpr int ROW = (LINES * PITCH + (NHWC ? 0 : GROUPS * SPLIT * Cfg::PAD) + UNIT - 1) / UNIT * UNIT;
  static constexpr int STAGE = FRESH * ROW;
  static constexpr int COPIES = FRESH * LINES * LINE_COPIES;
  static constexpr int TURNS = (COPIES + Cfg::THREADS - 1) / Cfg::THREADS;
  static constexpr bool DENSE = LINE_COPIES * Cfg::COPY == PITCH && LINES * PITCH == ROW;  // copies fill the stage
  static constexpr bool AIMED = TURNS <= 4;  // the places of a thread's copies stay in registers

  /// Where one copy comes from and goes to.
  struct Copy {
    I from;    // elements from the tile's origin in row 0
    int line;  // of DIL_H rows down; -1: never present
    int to;
  };
  SL_DEVICE static Copy copy_of(const SlParams& p, int number, int left, I room) {
    Copy copy;
    const int j = number / (LINES * LINE_COPIES), line = number / LINE_COPIES % LINES;
    const int along = number % LINE_COPIES * Cfg::COPY;
    const int column = NHWC ? left + line : left - LEAD + along, channel = NHWC ? along : line;
    const bool present = number < COPIES && inside(column, static_cast<int>(p.w)) && channel < room;
    const I down = static_cast<I>(j) * Cfg::DIL_H;
    if constexpr (NHWC) {
      copy.from = (down * static_cast<I>(p.w) + column) * static_cast<I>(p.c) + channel;
    } else {
      copy.from = (static_cast<I>(channel) * static_cast<I>(p.h) + down) * static_cast<I>(p.w) + column;
    }
    copy.line = present ? j * Cfg::DIL_H : -1;
    copy.to = DENSE ? number * Cfg::COPY : j * ROW + line_at(line) + along;
    return copy;
  }

  int left;  // input column of the tile's first
  I room;    // channels (NHWC) or planes from the block's first on
  Copy copies[AIMED ? TURNS : 1];

  SL_DEVICE void aim(const SlParams& p) {
    if constexpr (AIMED) {
      SL_UNROLL
      for (int i = 0; i < TURNS; ++i) copies[i] = copy_of(p, thread_id() + i * Cfg::THREADS, left, room);
    }
  }

  /// One copy of the step whose first row is h, at `row` in memory; zeros where it lies outside 0 .. end.
  SL_DEVICE static void start(const Copy& copy, const Bits<Cfg>* row, Bits<Cfg>* stage, int h, int end) {
    const bool present = copy.line >= 0 && inside(h + copy.line, end);
    if constexpr (Cfg::COPY * SIZE >= 4) {
      copy_async<Cfg::COPY * SIZE>(stage + copy.to, row + copy.from, present);
    } else {  // no asynchronous copy is that narrow
      stage[copy.to] = present ? load_readonly(row + copy.from) : Bits<Cfg>{0};
    }
  }
  SL_DEVICE void fetch(const SlParams& p, const Bits<Cfg>* row, Bits<Cfg>* stage, int h, int end) const {
    if constexpr (AIMED) {
      SL_UNROLL
      for (int i = 0; i < TURNS; ++i) {
        if (COPIES % Cfg::THREADS == 0 || i + 1 < TURNS || thread_id() + i * Cfg::THREADS < COPIES) {
          start(copies[i], row, stage, h, end);
        }
      }
    } else {
      SL_UNROLL_BY(2)
      for (int number = thread_id(); number < COPIES; number += Cfg::THREADS) {
        start(copy_of(p, number, left, room), row, stage, h, end);
      }
    }
  }

  static constexpr int WEIGHT_VEC = OUTS % 4 == 0 ? 4 : OUTS % 2 == 0 ? 2 : 1;
  using Weights = GroupWeights<Cfg, LANES * OUTS, LANES * OUTS + WEIGHT_VEC>;

  float held[Cfg::HOLD != 0 ? SHARE * TAPS : 1][OUTS];
  const float* shared;  // this thread's first output, its first channel, tap 0
  float bias[OUTS];

  SL_DEVICE void weight_of(int c, int tap, float (&to)[OUTS]) const {
    if constexpr (Cfg::HOLD != 0) {
      SL_UNROLL
      for (int o = 0; o < OUTS; ++o) to[o] = held[c * TAPS + tap][o];
    } else {
      read_weight(c * TAPS + tap, to);
    }
  }
  SL_DEVICE void read_weight(int row, float (&to)[OUTS]) const {
    SL_UNROLL
    for (int o = 0; o < OUTS; o += WEIGHT_VEC) {
      const Raw<WEIGHT_VEC* 4> raw = load_raw<WEIGHT_VEC * 4, false>(shared + (row * Weights::PITCH + o));
      SL_UNROLL
      for (int i = 0; i < WEIGHT_VEC; ++i) to[o + i] = float_from_bits(raw.word[i]);
    }
  }

  // The window of one thread: SPAN columns of TOGETHER channels of its group, read in vectors.
  static constexpr int power(int a, int limit) { return limit > 1 && a % limit != 0 ? power(a, limit / 2) : limit; }
  static constexpr int VEC = NHWC ? power(Cfg::TOGETHER, power(PITCH, UNIT)) : power(COLS * SW, UNIT);
  static constexpr int SKIP = LEAD / VEC;  // NCHW: whole vectors before the window
  static constexpr int VECTORS = (LEAD + SPAN + VEC - 1) / VEC - SKIP;
  using Values = float[SPAN][Cfg::TOGETHER];

  /// `channel` = the thread's first of the block.
  SL_DEVICE static int window_at(int channel, int tile) {
    return NHWC ? tile * (COLS * SW) * PITCH + channel : line_at(channel) + tile * (COLS * SW) + SKIP * VEC;
  }
  SL_DEVICE static void read_window(const Bits<Cfg>* from, Values& value) {
    if constexpr (NHWC) {
      SL_UNROLL
      for (int i = 0; i < SPAN; ++i) {
        SL_UNROLL
        for (int v = 0; v < Cfg::TOGETHER; v += VEC) {
          const Raw<VEC* SIZE> raw = load_raw<VEC * SIZE, false>(from + (i * PITCH + v));
          SL_UNROLL
          for (int e = 0; e < VEC; ++e) value[i][v + e] = element<Cfg>(raw, e);
        }
      }
    } else {
      SL_UNROLL
      for (int v = 0; v < Cfg::TOGETHER; ++v) {
        Raw<VEC * SIZE> raw[VECTORS];
        SL_UNROLL
        for (int i = 0; i < VECTORS; ++i) raw[i] = load_raw<VEC * SIZE, false>(from + (v * PITCH + i * VEC));
        SL_UNROLL
        for (int i = 0; i < SPAN; ++i) {
          constexpr int first = LEAD - SKIP * VEC;
          value[i][v] = element<Cfg>(raw[(first + i) / VEC], (first + i) % VEC);
        }
      }
    }
  }

  float sum[SLOTS][COLS][OUTS];  // slot d: the output row whose first input row came d steps ago

  /// Adds tap s of channel v of a window, c of the group, to slot d. In the first addition of a step every sum moves
  /// one slot on, which costs nothing.
  SL_DEVICE void add_tap(const Values& value, int j, int d, int s, int v, int c, bool moves) {
    float weight[OUTS];
    weight_of(c + v, (d * STEP + j) * S + s, weight);
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      SL_UNROLL
      for (int o = 0; o < OUTS; ++o) {
        const bool first = moves && s == 0 && v == 0;
        const float before = !first ? sum[d][t][o] : d > 0 ? sum[d > 0 ? d - 1 : 0][t][o] : bias[o];
        sum[d][t][o] = sl::fma(value[t * SW + s * DW][v], weight[o], before);
      }
    }
  }

  /// Adds TOGETHER channels from c on of input row j of the step. Rows above the strip's first and below its last are
  /// left out; not in LONG strips, where they are few: their sums are never stored, and code without a branch keeps
  /// more operands from one product to the next. (Three operands from two banks of registers take another cycle.) For
  /// that products also go in the order in which a window arrives, a pixel's channels (NHWC) or a channel's pixels.
  SL_DEVICE void add(const Bits<Cfg>* row, int j, int c, bool moves, int step, int rows) {
    Values value;
    read_window(row + c * (NHWC ? 1 : PITCH), value);
    constexpr bool LONG = Cfg::LONG != 0, BY_CHANNEL = LONG && !NHWC;
    SL_UNROLL
    for (int first = 0; first < (BY_CHANNEL ? Cfg::TOGETHER : 1); ++first) {
      SL_UNROLL
      for (int d = SLOTS - 1; d >= 0; --d) {
        if (d * STEP + j < R && (LONG || (step >= d && step - d < rows))) {
          SL_UNROLL
          for (int s = 0; s < S; ++s) {
            SL_UNROLL
            for (int v = first; v < (BY_CHANNEL ? first + 1 : Cfg::TOGETHER); ++v) add_tap(value, j, d, s, v, c, moves);
          }
        }
      }
    }
  }

  /// A whole step; `window` = the thread's place in its stage.
  SL_DEVICE void add_step(const Bits<Cfg>* window, int step, int rows) {
    SL_UNROLL
    for (int j = 0; j < FRESH; ++j) {
      add(window + j * ROW, j, 0, j == 0, step, rows);
      SL_UNROLL_BY(Cfg::ROLL != 0 ? 1 : SHARE)
      for (int c = Cfg::TOGETHER; c < SHARE; c += Cfg::TOGETHER) add(window + j * ROW, j, c, false, step, rows);
    }
  }

  using Outputs = float[COLS][OWN];

  /// The finished row of this thread's own outputs. All threads: where two share the channels, each hands the other its
  /// sums of the other's outputs.
  SL_DEVICE void take_row(Outputs& out, int half) const {
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      SL_UNROLL
      for (int o = 0; o < OWN; ++o) {
        if constexpr (SPLIT == 1) {
          out[t][o] = sum[SLOTS - 1][t][o];
        } else {
          const float low = sum[SLOTS - 1][t][o], high = sum[SLOTS - 1][t][OWN + o];
          out[t][o] = (half != 0 ? high : low) + shuffle_xor(half != 0 ? low : high, 1);
        }
      }
    }
  }

  SL_DEVICE static void store(const SlParams& p, I y, const Outputs& out, int limit) {
    if constexpr (NHWC) {
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) {
        if (Cfg::EVEN != 0 || t < limit) {
          finish_row<Cfg, Cfg::STORE>(p, y + static_cast<I>(t) * static_cast<I>(p.k), out[t], OWN);
        }
      }
    } else {
      SL_UNROLL
      for (int o = 0; o < OWN; ++o) {
        float row[COLS];
        SL_UNROLL
        for (int t = 0; t < COLS; ++t) row[t] = out[t][o];
        finish_row<Cfg, Cfg::STORE>(p, y, row, Cfg::EVEN != 0 ? COLS : limit);
        y += static_cast<I>(p.p) * static_cast<I>(p.q);
      }
    }
  }
};

template <class Cfg>
SL_DEVICE void grp_fma(const SlParams& p) {
  using I = Index<Cfg>;
  using Work = GrpFma<Cfg>;
  constexpr bool NHWC = Work::NHWC;
  constexpr int STAGES = Cfg::STAGES;
  SL_DYNAMIC_SHARED(Bits<Cfg>, ring);
  float* const weights = reinterpret_cast<float*>(ring + STAGES * Work::STAGE);

  I rest = static_cast<I>(block_id());
  I first_lane = NHWC ? take(rest, p.div[0]) * Work::LANES : 0;  // of an image (NHWC) or of all (NCHW)
  const int q_tile = static_cast<int>(take(rest, p.div[1])) * Work::TILE;
  const int strip = static_cast<int>(take(rest, p.div[2]));
  const int phase = static_cast<int>(take(rest, p.div[3]));
  const I n = NHWC ? rest : 0;
  if constexpr (!NHWC) first_lane = rest * Work::LANES;
  const I images = NHWC ? 1 : static_cast<I>(p.n);
  const I lanes = images * (static_cast<I>(p.k) / Work::OUTS), first_channel = first_lane / Work::PARTS * Work::CPG;

  const int p0 = strip * static_cast<int>(p.aux[0]) * Cfg::PHASES + phase;
  const int rows_left = (static_cast<int>(p.p) - p0 + Cfg::PHASES - 1) / Cfg::PHASES;
  const int rows = rows_left < static_cast<int>(p.aux[0]) ? rows_left : static_cast<int>(p.aux[0]);
  if (rows <= 0) return;  // a later phase has fewer rows
  const int steps = rows + Work::SLOTS - 1;
  constexpr int DOWN = Work::STEP * Cfg::DIL_H;  // input rows from one step to the next
  int h = static_cast<int>(static_cast<long long>(p0) * Cfg::STRIDE_H - p.pad_top);
  const int beyond = h + ((rows - 1) * Work::STEP + Work::R - 1) * Cfg::DIL_H + 1;  // the first row no output reads
  const int end = beyond < 0 ? 0 : beyond < static_cast<int>(p.h) ? beyond : static_cast<int>(p.h);
  const I down = static_cast<I>(p.w) * (NHWC ? static_cast<I>(p.c) : 1);  // elements from one input row to the next
  const Bits<Cfg>* x = x_at<Cfg>(p, n, first_channel) + static_cast<I>(h) * down;

  Work work;
  work.left = static_cast<int>(static_cast<long long>(q_tile) * Cfg::STRIDE_W - p.pad_left);
  work.room = images * static_cast<I>(p.c) - first_channel;
  work.aim(p);
  SL_UNROLL
  for (int i = 0; i < STAGES - 1; ++i) {
    if (i < steps) {
      work.fetch(p, x, ring + i * Work::STAGE, h, end);
      x += down * DOWN;
      h += DOWN;
    }
    copy_async_commit();
  }

  const int half = thread_id() % Work::SPLIT, place = thread_id() / Work::SPLIT;
  const int lane = NHWC ? place % Work::LANES : place / Cfg::TILES;
  const int tile = NHWC ? place / Work::LANES : place % Cfg::TILES;
  const int q0 = q_tile + tile * Work::COLS;
  const bool active =
      lane < Work::LANES && tile < Cfg::TILES && first_lane + lane < lanes && q0 < static_cast<int>(p.q);
  const int limit = static_cast<int>(p.q) - q0;
  I in_image = first_lane;
  if constexpr (!NHWC) in_image = take(in_image, p.div[0]);
  Work::Weights::stage(p, weights, static_cast<int>(in_image) * Work::OUTS);
  barrier();
  const Bits<Cfg>* window = ring;
  I y = 0;
  if (active) {
    work.shared = weights + half * (Work::SHARE * Work::TAPS * Work::Weights::PITCH) + lane * Work::OUTS;
    if constexpr (Cfg::HOLD != 0) {
      SL_UNROLL
      for (int i = 0; i < Work::SHARE * Work::TAPS; ++i) work.read_weight(i, work.held[i]);
    }
    I image = n, k_lane = first_lane + lane;
    if constexpr (!NHWC) {
      image = k_lane;
      k_lane = take(image, p.div[0]);
    }
    const I k = k_lane * Work::OUTS;
    SL_UNROLL
    for (int o = 0; o < Work::OUTS; ++o) work.bias[o] = half == 0 ? bias_of<Cfg>(p, k + o) : 0.0F;
    y = y_offset<Cfg>(p, image, k + half * Work::OWN, p0, q0);
    const int group = Work::LANES < Work::PARTS ? 0 : lane / Work::PARTS;
    window += Work::window_at(group * Work::CPG + half * Work::SHARE, tile);
  }
  const I y_down = static_cast<I>(p.q) * (NHWC ? static_cast<I>(p.k) : 1) * Cfg::PHASES;
  SL_UNROLL
  for (int d = 0; d < Work::SLOTS; ++d) {
    SL_UNROLL
    for (int t = 0; t < Work::COLS; ++t) {
      SL_UNROLL
      for (int o = 0; o < Work::OUTS; ++o) work.sum[d][t][o] = 0.0F;
    }
  }

  int slot = 0;
  SL_UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    copy_async_wait<STAGES - 2>();
    barrier();  // this step's rows are there, and the stage before it is free
    if (step + STAGES - 1 < steps) {
      work.fetch(p, x, ring + (slot == 0 ? STAGES - 1 : slot - 1) * Work::STAGE, h, end);
      x += down * DOWN;
      h += DOWN;
    }
    copy_async_commit();
    if (active) work.add_step(window + slot * Work::STAGE, step, rows);
    if (step >= Work::SLOTS - 1) {
      typename Work::Outputs out;
      work.take_row(out, half);
      if (active) Work::store(p, y, out, limit);
      y += y_down;
    }
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }
}

}  // namespace sl
