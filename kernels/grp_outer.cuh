// grp_outer: grouped convolution by fp32 multiply-adds as outer products, for calls that instruction issue decides. A
// block brings the input behind a tile of rows x columns of a few groups into shared memory, a plane a channel in both
// layouts. A thread then keeps the sums of ROWS x COLS places of OUTS outputs of one group in registers and adds, tap
// by tap, places x outputs products of a row segment of one channel and a vector of weights.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// Cfg, f32 only: LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG MULT C H W K P Q PAD_*; OUTS (divides
/// MULT), ROWS, COLS: a thread's tile; LANES along the outputs (whole groups, or an even share of one), HIGH x WIDE
/// threads over the tile of a block: LANES * HIGH * WIDE threads; DOWN (neighbouring threads: 1 = one above the other);
/// COPY (elements of one load or copy), LEAD (NCHW: columns that the first copy of a row starts early); PITCH, PLANE,
/// GROUP: floats from one row, channel, group to the next in shared memory; WEIGHTS: from one lane's weights to the
/// next; STORE (elements of a store), TURN (outputs pass through shared memory). div[0] = blocks of lanes, div[1] = of
/// columns, div[2] = of rows; aux[0] = 0.
template <class Cfg>
struct GrpOuter {
  using I = Index<Cfg>;
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DH = Cfg::DIL_H, DW = Cfg::DIL_W;
  static constexpr int CPG = Cfg::CPG, OUTS = Cfg::OUTS, ROWS = Cfg::ROWS, COLS = Cfg::COLS, LANES = Cfg::LANES;
  static constexpr int PARTS = Cfg::MULT / OUTS;  // lanes that share a group
  static constexpr int GROUPS = LANES >= PARTS ? LANES / PARTS : 1, CHANNELS = GROUPS * CPG;
  static_assert(LANES % PARTS == 0 || PARTS % LANES == 0, "whole groups, or an even share of one");
  static constexpr int TILES = Cfg::HIGH * Cfg::WIDE;
  static constexpr int TALL = Cfg::HIGH * ROWS, BROAD = Cfg::WIDE * COLS;  // output rows and columns of the block
  static constexpr int DEEP = (TALL - 1) * SH + (R - 1) * DH + 1;          // input rows and columns of the block
  static constexpr int LEAD = Cfg::LEAD, LENGTH = LEAD + (BROAD - 1) * SW + (S - 1) * DW + 1;

  static constexpr bool WHOLE_LANES = Cfg::K / OUTS % LANES == 0;                  // in every block
  static constexpr bool ALL_COLUMNS = BROAD >= Cfg::Q, ALL_ROWS = TALL >= Cfg::P;  // in one block

  // --- the block's input, a plane a channel

  /// Columns of a row: NHWC leaves a gap after each thread's own, so that threads read vectors.
  static constexpr int NEAR = COLS * SW, FAR = NHWC ? (NEAR + 3) / 4 * 4 : NEAR;
  SL_DEVICE static constexpr int column_at(int column) { return column / NEAR * FAR + column % NEAR; }
  /// The same of column + lane, where column is a constant and lane is not.
  SL_DEVICE static int column_at(int column, int lane) {
    const int rest = column % NEAR + lane;
    const int beyond = NEAR == FAR ? 0 : ACROSS <= NEAR ? (rest >= NEAR ? 1 : 0) : rest / NEAR;
    return column / NEAR * FAR + rest + beyond * (FAR - NEAR);
  }
  /// Channel `c` of the block, row 0.
  SL_DEVICE static constexpr int plane_at(int c) { return c / CPG * Cfg::GROUP + c % CPG * Cfg::PLANE; }

  /// NHWC: a warp takes a row of ABREAST vectors of channels; its lanes are those of ACROSS pixels.
  static constexpr int COPY = Cfg::COPY, VECTORS = CHANNELS / COPY;
  static constexpr int power(int a, int limit) { return limit > 1 && a % limit != 0 ? power(a, limit / 2) : limit; }
  static constexpr int ABREAST = power(VECTORS, 8), ACROSS = 32 / ABREAST;
  static constexpr int ROW_JOBS = VECTORS / ABREAST, JOBS = DEEP * ROW_JOBS, WARPS = Cfg::THREADS / 32;
  static constexpr int STEPS = (LENGTH + ACROSS - 1) / ACROSS;
  static constexpr int share(int all, int most) {  // NCHW may have no vectors, and so none
    return all <= most ? all : (all + (all + most - 1) / most - 1) / ((all + most - 1) / most);
  }
  static constexpr int BATCH = share(STEPS, 16);  // loads on their way at once, of each of
  static constexpr int AT_ONCE = share((JOBS + WARPS - 1) / WARPS, 16 / BATCH);  // jobs
  /// Whether pixels `away` .. of a step lie inside the input, for all lanes of the one tile along a row.
  SL_DEVICE static constexpr bool surely_inside(int away) {
    return ALL_COLUMNS && away >= Cfg::PAD_LEFT && away + ACROSS - Cfg::PAD_LEFT <= Cfg::W;
  }
  SL_DEVICE static void stage_pixels(const unsigned* x, float* to, int top, int left, int room) {
    const int lane = thread_id() % 32, across = lane / ABREAST;
    SL_UNROLL_BY(1)
    for (int job0 = thread_id() / 32; job0 < JOBS; job0 += AT_ONCE * WARPS) {
      SL_UNROLL_BY(1)
      for (int first = 0; first < STEPS; first += BATCH) {
        Raw<COPY * 4> raw[AT_ONCE][BATCH];
        SL_UNROLL
        for (int j = 0; j < AT_ONCE; ++j) {
          const int job = job0 + j * WARPS, h = top + job / ROW_JOBS;
          const int channel = (job % ROW_JOBS * ABREAST + lane % ABREAST) * COPY;
          const bool present = inside(h, Cfg::H) && (WHOLE_LANES || channel < room) && (j == 0 || job < JOBS);
          const unsigned* const from =
              keep(x + ((static_cast<long long>(h) * Cfg::W + (left + across)) * Cfg::C + channel));
          SL_UNROLL
          for (int i = 0; i < BATCH; ++i) {
            const int away = (first + i) * ACROSS;
            raw[j][i] = zero_raw<COPY * 4>();
            if (present && ((STEPS == BATCH && surely_inside(i * ACROSS)) || inside(left + across + away, Cfg::W))) {
              raw[j][i] = load_raw<COPY * 4, true>(from + static_cast<long long>(away) * Cfg::C);
            }
          }
        }
        SL_UNROLL
        for (int j = 0; j < AT_ONCE; ++j) {
          const int job = job0 + j * WARPS, channel = (job % ROW_JOBS * ABREAST + lane % ABREAST) * COPY;
          if (j > 0 && job >= JOBS) continue;
          float* const there = to + (plane_at(channel) + job / ROW_JOBS * Cfg::PITCH);
          SL_UNROLL
          for (int i = 0; i < BATCH; ++i) {
            const int away = (first + i) * ACROSS;
            if ((STEPS != BATCH || (i + 1) * ACROSS > LENGTH) && across + away >= LENGTH) continue;
            SL_UNROLL
            for (int v = 0; v < COPY; ++v) {
              there[v * Cfg::PLANE + column_at(away, across)] = float_from_bits(raw[j][i].word[v]);
            }
          }
        }
      }
    }
  }

  /// NCHW: threads side by side copy a row of a plane, as many rows at once as there are threads for, each of a few
  /// planes in a row.
  SL_DEVICE static void stage_rows(const unsigned* x, float* to, int top, int left, int room) {
    constexpr int SIDE = (LENGTH + COPY - 1) / COPY, AT_ONCE = Cfg::THREADS / SIDE;
    static_assert(AT_ONCE > 0, "a row of copies in one go");
    constexpr int JOBS = DEEP * GROUPS;
    const int along = thread_id() % SIDE * COPY, column = left - LEAD + along;
    SL_UNROLL_BY(1)
    for (int job = thread_id() / SIDE; job < JOBS && thread_id() < AT_ONCE * SIDE; job += AT_ONCE) {
      const int group = job / DEEP, row = job % DEEP, h = top + row;
      const bool present = inside(h, Cfg::H) && inside(column, Cfg::W) && (WHOLE_LANES || group * CPG < room);
      const unsigned* const from = keep(x + ((static_cast<long long>(group * CPG) * Cfg::H + h) * Cfg::W + column));
      float* const there = to + (group * Cfg::GROUP + row * Cfg::PITCH + along);
      SL_UNROLL
      for (int c = 0; c < CPG; ++c) {
        copy_async<COPY * 4>(there + c * Cfg::PLANE, from + c * (Cfg::H * Cfg::W), present);
      }
    }
  }

  // --- its weights, [lane][r][channel of the group][s][output]

  static constexpr int PER_OUT = CPG * R * S;
  /// Outputs 2i and 2i + 1 change places: registers of the sums that are stored together are in the order of the
  /// outputs, and so a weight lies in the bank of registers where the sum it is added to does not.
  static constexpr int SWAP = OUTS % 4 == 0 ? 1 : 0;
  /// A thread takes kernel rows of one channel and output, lanes of a warp the same of OUTS outputs.
  static constexpr bool CHANNEL_LAST = Cfg::WLAYOUT == kOhwi;
  static constexpr int UNITS = LANES * CPG * R * OUTS, TURNS = (UNITS + Cfg::THREADS - 1) / Cfg::THREADS;
  static constexpr int TAKEN = TURNS * S < 32 ? TURNS : S < 16 ? 16 / S : 1;  // rows on their way at once
  struct Taken {
    float weight[TAKEN][S];
    int place[TAKEN];
  };
  SL_DEVICE static void ask(const SlParams& p, Taken& taken, int first, int first_lane) {
    const auto* const weight = static_cast<const unsigned*>(p.weight);
    const int o = thread_id() % OUTS;
    SL_UNROLL
    for (int i = 0; i < TAKEN; ++i) {
      const int unit = (thread_id() + (first + i) * Cfg::THREADS) / OUTS;
      const int within = unit < UNITS / OUTS ? unit : 0;  // beyond the last: some weight once more
      const int lane = within / (CPG * R), rest = within % (CPG * R), k = (first_lane + lane) * OUTS + o;
      const int c = CHANNEL_LAST ? rest % CPG : rest / R, r = CHANNEL_LAST ? rest / CPG : rest % R;
      const int held = WHOLE_LANES || k < Cfg::K ? k : Cfg::K - 1;
      const unsigned* const from =
          weight + (static_cast<long long>(held) * PER_OUT + (CHANNEL_LAST ? r * (S * CPG) + c : rest * S));
      SL_UNROLL
      for (int s = 0; s < S; ++s) {
        taken.weight[i][s] = float_from_bits(load_readonly(from + s * (CHANNEL_LAST ? CPG : 1)));
      }
      taken.place[i] = lane * Cfg::WEIGHTS + (r * CPG + c) * (S * OUTS) + (o ^ SWAP);
    }
  }
  SL_DEVICE static void put(const Taken& taken, float* to, int first) {
    SL_UNROLL
    for (int i = 0; i < TAKEN; ++i) {
      if (thread_id() + (first + i) * Cfg::THREADS >= UNITS) continue;
      SL_UNROLL
      for (int s = 0; s < S; ++s) to[taken.place[i] + s * OUTS] = taken.weight[i][s];
    }
  }

  /// All threads: what they fetch for the block. Weights are asked for first, for they come from a cache.
  SL_DEVICE static void stage(const SlParams& p, float* weights, float* planes, const unsigned* x, int top, int left,
                              int first_lane, int room) {
    Taken taken;
    if constexpr (NHWC) {
      ask(p, taken, 0, first_lane);
      stage_pixels(x, planes, top, left, room);
    } else {
      stage_rows(x, planes, top, left, room);
      copy_async_commit();
      ask(p, taken, 0, first_lane);
    }
    put(taken, weights, 0);
    SL_UNROLL_BY(1)
    for (int first = TAKEN; first < TURNS; first += TAKEN) {
      ask(p, taken, first, first_lane);
      put(taken, weights, first);
    }
    if constexpr (!NHWC) copy_async_wait<0>();
    barrier();
  }

  // --- a thread's products

  static constexpr int SPAN = (COLS - 1) * SW + (S - 1) * DW + 1;  // input columns behind a row of the thread's tile
  static constexpr int VEC = power(FAR, 4), SKIP = LEAD / VEC, SHIFT = LEAD - SKIP * VEC;
  SL_DEVICE static constexpr int place_of(int column) { return SHIFT + column_at(column); }
  static constexpr int LOADS = (SHIFT + (SPAN - 1) / NEAR * FAR + (SPAN - 1) % NEAR) / VEC + 1;
  static constexpr int WIDTH = power(OUTS, 4);  // outputs of one read of weights
  using Segment = float[ROWS][LOADS * VEC];
  using Weights = float[OUTS];

  SL_DEVICE static void read(const float* from, Segment& x) {
    SL_UNROLL
    for (int i = 0; i < ROWS; ++i) {
      SL_UNROLL
      for (int j = 0; j < LOADS; ++j) {
        const Raw<VEC* 4> raw = load_raw<VEC * 4, false>(from + (i * SH * Cfg::PITCH + j * VEC));
        SL_UNROLL
        for (int v = 0; v < VEC; ++v) x[i][j * VEC + v] = float_from_bits(raw.word[v]);
      }
    }
  }
  SL_DEVICE static void read(const float* from, Weights& w) {
    SL_UNROLL
    for (int o = 0; o < OUTS; o += WIDTH) {
      const Raw<WIDTH* 4> raw = load_raw<WIDTH * 4, false>(from + o);
      SL_UNROLL
      for (int i = 0; i < WIDTH; ++i) w[o + (i ^ SWAP)] = float_from_bits(raw.word[i]);
    }
  }

  float sum[ROWS * COLS][OUTS];

  SL_DEVICE void add_one(const Segment& x, const Weights& w, int s, int t, int o) {
    sum[t][o] = sl::fma(x[t / COLS][place_of(t % COLS * SW + s * DW)], w[o], sum[t][o]);
  }
  /// Two operands of one kind stay, from different banks of registers, while those of the other kind pass by, each
  /// for two products: of three operands half the products read one afresh, the others two.
  SL_DEVICE void add(const Segment& x, const Weights& w, int s) {
    constexpr int PLACES = ROWS * COLS;
    constexpr bool PLACES_STAY = VEC > 1 && SW % 2 == 1;  // else outputs do
    constexpr int STAYING = PLACES_STAY ? PLACES : OUTS, PASSING = PLACES_STAY ? OUTS : PLACES;
    SL_UNROLL
    for (int a = 0; a < STAYING; a += 2) {
      SL_UNROLL
      for (int j = 0; j < PASSING; ++j) {
        const int b = a / 2 % 2 == 0 ? j : PASSING - 1 - j;
        SL_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int stays = a + (i + j) % 2;
          if (stays < STAYING) add_one(x, w, s, PLACES_STAY ? stays : b, PLACES_STAY ? b : stays);
        }
      }
    }
  }

  /// All products of the thread, row by row of the kernel and channel by channel. What the next tap needs is read
  /// before the products of this one. Each tap stands behind a branch that is always taken, which ptxas does not know
  /// (`never` is 0): it sorts products within a branch only. Across taps it would sort them by what frees registers,
  /// and a quarter of them would then read three operands from two banks of registers, others two from one.
  SL_DEVICE void add_all(const float* from, const float* weights, int never) {
    constexpr int PAIR =
        CPG % 2 == 0 ? 2 : 1;  // channels of a turn, whose segments take turns in two sets of registers
    Segment x[2];
    Weights w[2];
    read(from, x[0]);
    read(weights, w[0]);
    int left = CPG / PAIR;
    SL_UNROLL_BY(1)
    for (int turn = 0; turn < R * CPG / PAIR; ++turn) {
      const bool last = --left == 0;
      const float* const next = from + (last ? DH * Cfg::PITCH - (CPG - PAIR) * Cfg::PLANE : PAIR * Cfg::PLANE);
      if (last) left = CPG / PAIR;
      SL_UNROLL
      for (int tap = 0; tap < PAIR * S; ++tap) {
        const int u = tap / S;
        if ((never & (1 << (tap % 3))) == 0) {
          if (tap % S == 0) read(u + 1 < PAIR ? from + Cfg::PLANE : next, x[(u + 1) % 2]);
          read(weights + (tap + 1) * OUTS, w[(tap + 1) % 2]);
          add(x[u], w[tap % 2], tap % S);
        }
      }
      if constexpr (PAIR == 1) copy(x[1], x[0]);
      if constexpr (PAIR * S % 2 != 0) copy(w[1], w[0]);
      from = next;
      weights += PAIR * S * OUTS;
    }
  }
  SL_DEVICE static void copy(const Segment& from, Segment& to) {
    SL_UNROLL
    for (int i = 0; i < ROWS; ++i) {
      SL_UNROLL
      for (int j = 0; j < LOADS * VEC; ++j) to[i][j] = from[i][j];
    }
  }
  SL_DEVICE static void copy(const Weights& from, Weights& to) {
    SL_UNROLL
    for (int o = 0; o < OUTS; ++o) to[o] = from[o];
  }

  // --- its outputs

  static constexpr bool WHOLE_ROWS = Cfg::P % ROWS == 0, WHOLE_COLUMNS = Cfg::Q % COLS == 0;
  SL_DEVICE void store(const SlParams& p, I n, int k, int row, int column, int never) const {
    SL_UNROLL
    for (int i = 0; i < ROWS; ++i) {
      if (!WHOLE_ROWS && row + i >= Cfg::P) break;
      I y = y_offset<Cfg>(p, n, k, row + i, column);
      if constexpr (NHWC) {
        SL_UNROLL
        for (int t = 0; t < COLS; ++t) {
          if (WHOLE_COLUMNS || column + t < Cfg::Q) finish_row<Cfg, Cfg::STORE>(p, y, sum[i * COLS + t], OUTS);
          y += Cfg::K;
        }
      } else {
        SL_UNROLL
        for (int o = 0; o < OUTS; ++o) {
          // Through an operation that changes nothing (`never` is 0), for registers that are stored together are
          // neighbours: the sums should lie as the weights do.
          float line[COLS];
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) {
            line[t] = float_from_bits(float_bits(sum[i * COLS + t][o]) | static_cast<unsigned>(never));
          }
          finish_row<Cfg, Cfg::STORE>(p, y, line, WHOLE_COLUMNS ? COLS : Cfg::Q - column);
          y += static_cast<I>(Cfg::P) * Cfg::Q;
        }
      }
    }
  }

  // NCHW, TURN: where a thread's columns are no whole vectors, by way of shared memory: [output / 2][row][column][2].
  // Pairs, for the sake of the registers that sums and weights are in.

  SL_DEVICE void turn(float* to, int lane, int down, int along) const {
    float* const there = to + (lane * OUTS * (TALL * BROAD) + 2 * (down * ROWS * BROAD + along * COLS));
    SL_UNROLL
    for (int o = 0; o < OUTS; o += 2) {
      SL_UNROLL
      for (int t = 0; t < ROWS * COLS; ++t) {
        const Raw<8> pair = {{float_bits(sum[t][o]), float_bits(sum[t][o + 1])}};
        store_raw<8>(there + (o * (TALL * BROAD) + 2 * (t / COLS * BROAD + t % COLS)), pair);
      }
    }
  }
  /// A vector lies in one row, or the block's rows are one line in y too.
  SL_DEVICE static void store_turned(const SlParams& p, const float* from, I n, int k, int row0, int column0) {
    constexpr int STORED = Cfg::STORE, PER = TALL * BROAD / STORED, PAIRS = Cfg::THREADS / PER;
    static_assert(PAIRS > 0 && TALL * BROAD % STORED == 0, "two outputs' tile in one go");
    static_assert(BROAD % STORED == 0 || BROAD == Cfg::Q, "rows are vectors or one line");
    const int at = thread_id() % PER * STORED, first = thread_id() / PER * 2;
    const int row = row0 + at / BROAD, column = column0 + at % BROAD;
    if (first >= PAIRS * 2 || row >= Cfg::P || column >= Cfg::Q) return;
    constexpr I AWAY = static_cast<I>(Cfg::P) * Cfg::Q;
    I y = y_offset<Cfg>(p, n, k + first, row, column);
    from += first * (TALL * BROAD) + 2 * at;
    SL_UNROLL_BY(2)
    for (int plane = first; plane < LANES * OUTS; plane += PAIRS * 2) {
      if (!WHOLE_LANES && k + plane >= Cfg::K) break;
      float out[2][STORED];
      SL_UNROLL
      for (int i = 0; i < STORED; i += 2) {
        constexpr int TWO = STORED > 1 ? 2 : 1;  // columns of a read
        const Raw<TWO* 8> raw = load_raw<TWO * 8, false>(from + 2 * i);
        SL_UNROLL
        for (int j = 0; j < TWO * 2; ++j) out[j % 2][i + j / 2] = float_from_bits(raw.word[j]);
      }
      finish<Cfg, STORED>(p, y, out[0]);
      finish<Cfg, STORED>(p, y + AWAY, out[1]);
      y += PAIRS * 2 * AWAY;
      from += PAIRS * 2 * (TALL * BROAD);
    }
  }
};

template <class Cfg>
SL_DEVICE void grp_outer(const SlParams& p) {
  using I = Index<Cfg>;
  using Work = GrpOuter<Cfg>;
  constexpr int LANES = Work::LANES, TILES = Work::TILES;
  SL_DYNAMIC_SHARED(float, shared);
  float* const weights = shared;
  float* const planes = shared + (LANES * Cfg::WEIGHTS);

  I rest = static_cast<I>(block_id());
  const int first_lane = static_cast<int>(take(rest, p.div[0])) * LANES;
  const int column0 = Work::ALL_COLUMNS ? 0 : static_cast<int>(take(rest, p.div[1])) * Work::BROAD;
  const int row0 = Work::ALL_ROWS ? 0 : static_cast<int>(take(rest, p.div[2])) * Work::TALL;
  const I n = rest;
  const int first_channel = first_lane / Work::PARTS * Work::CPG;
  const int top = row0 * Work::SH - Cfg::PAD_TOP, left = column0 * Work::SW - Cfg::PAD_LEFT;

  const unsigned* const x = x_at<Cfg>(p, n, static_cast<I>(first_channel));
  Work::stage(p, weights, planes, x, top, left, first_lane, Cfg::C - first_channel);

  const int lane = thread_id() / TILES, tile = thread_id() % TILES;
  const int down = Cfg::DOWN != 0 ? tile % Cfg::HIGH : tile / Cfg::WIDE;
  const int along = Cfg::DOWN != 0 ? tile / Cfg::HIGH : tile % Cfg::WIDE;
  const int row = row0 + down * Work::ROWS, column = column0 + along * Work::COLS;
  const int k = (first_lane + lane) * Work::OUTS;
  const bool active = lane < LANES && k < Cfg::K && row < Cfg::P && column < Cfg::Q;
  if (Cfg::TURN == 0 && !active) return;

  const int never = static_cast<int>(p.aux[0] & block_id());  // 0, which ptxas cannot know
  Work work;
  if (active) {
    SL_UNROLL
    for (int o = 0; o < Work::OUTS; ++o) {
      const float bias = bias_of<Cfg>(p, k + o);
      SL_UNROLL
      for (int t = 0; t < Work::ROWS * Work::COLS; ++t) work.sum[t][o] = bias;
    }
    const int group = LANES < Work::PARTS ? 0 : lane / Work::PARTS;
    work.add_all(planes + (group * Cfg::GROUP + down * (Work::ROWS * Work::SH) * Cfg::PITCH + along * Work::FAR +
                           Work::SKIP * Work::VEC),
                 weights + lane * Cfg::WEIGHTS, never);
  }
  if constexpr (Cfg::TURN != 0) {
    barrier();  // nobody reads the input any more
    if (active) work.turn(shared, lane, down, along);
    barrier();
    Work::store_turned(p, shared, n, first_lane * Work::OUTS, row0, column0);
  } else {
    work.store(p, n, k, row, column, never);
  }
}

}  // namespace sl
