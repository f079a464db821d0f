// grp_tf32: grouped fp32 convolution with 4 or 8 input channels a group on the matrix unit. Every number is a sum of
// two of 11 bits, and a product is three of theirs, so that results are as good as fp32's. M runs over 16 places, K
// over the group's channels (4: of two neighbouring taps), N over 8 of its outputs (or 4 of two output rows). A warp
// works for itself: it slides down the rows of a tile of one group, which stream through a ring of its own in shared
// memory, and adds every input row to the sums of all output rows that read it. Its weights stay in registers.
#pragma once

#include "common/conv.cuh"
#include "common/exact.cuh"
#include "common/tf32.cuh"
#include "common/window_taps.cuh"

namespace sl {

/// Cfg, f32 only: LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG (4, 8) MULT (a multiple of CPG) C H W
/// K P Q PAD_*; COLS (4, 8: of a lane), ACROSS (1, 2, 4, 8: lanes of a row; 8 / ACROSS images side by side); AHEAD
/// (steps of rows on their way), COPY and WCOPY (elements of a copy of x and of weights), LEAD (NCHW: columns that the
/// first copy of a row starts early), STORE (elements of a store), PHASES (1, or SLOTS: steps in a turn of the loop),
/// THREADS. div[0] = parts of 8 (or 4) outputs, div[1] = column tiles, div[2] = strips; aux[0] = steps of a strip,
/// aux[1] = turns of 8 / ACROSS images of a warp, aux[2] = blocks of images.
template <class Cfg>
struct GrpTf32 {
  using I = Index<Cfg>;
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DH = Cfg::DIL_H, DW = Cfg::DIL_W;
  static constexpr int CPG = Cfg::CPG, OUTS = Cfg::MULT % 8 == 0 ? 8 : 4, PARTS = Cfg::MULT / OUTS, TAPS = R * S;
  static_assert(CPG == 4 || CPG == 8, "a product's K");
  static constexpr int FOLD = 8 / OUTS;                                   // output rows of a product
  static constexpr int STEPS = CPG == 8 ? S : (S + 1) / 2;                // products of a kernel row
  static constexpr int KERNEL_ROWS = (FOLD - 1) * SH + (R - 1) * DH + 1;  // input rows that a product's outputs read
  static constexpr int COLS = Cfg::COLS, ACROSS = Cfg::ACROSS, IMAGES = 8 / ACROSS;
  /// Of a row of a lane: column i is row g of A, i + PRODUCTS row g + 8, so that taps share fragments of A.
  static constexpr int PRODUCTS = COLS / 2;
  static constexpr int WIDE = ACROSS * COLS;  // output columns of a tile
  static constexpr int LEAD = Cfg::LEAD, LENGTH = LEAD + (WIDE - 1) * SW + (S - 1) * DW + 1;  // input columns
  static constexpr int FRESH = FOLD * SH;                                                     // input rows of a step
  static constexpr int SLOTS = (KERNEL_ROWS + FRESH - 1) / FRESH;  // steps that add to an output
  /// Whether outputs lie wholly below the input.
  static constexpr bool BELOW = (Cfg::P - 1) * SH - Cfg::PAD_TOP >= Cfg::H;
  static constexpr int RING = Cfg::AHEAD + 1;  // steps

  // --- a row of the ring: planes of columns (NCHW), or pixels with a gap after each lane's own

  static constexpr int NEAR = COLS * SW;
  static constexpr int PITCH = (LENGTH + 7) / 16 * 16 + 8;  // of a channel: 4 lie in different banks
  SL_DEVICE static constexpr int pixel_at(int column) { return (column + column / NEAR) * CPG; }
  static constexpr int ROW = NHWC ? pixel_at(LENGTH - 1) + CPG : CPG * PITCH;
  static constexpr int IMAGE = FRESH * ROW, CHUNK = IMAGES * IMAGE;
  static constexpr int WEIGHTS = OUTS * CPG * TAPS;
  static constexpr int WARP = RING * CHUNK + WEIGHTS;  // floats

  // --- fetching

  static constexpr int COPY = Cfg::COPY;
  static constexpr bool ALL_COLUMNS = WIDE >= Cfg::Q;                          // then what lies outside is cleared once
  static constexpr int LINE = NHWC ? CPG / COPY : (LENGTH + COPY - 1) / COPY;  // copies of a pixel, of a channel's row
  static constexpr int ORIGIN = LEAD + Cfg::PAD_LEFT;                          // ALL_COLUMNS: where column 0 is
  SL_DEVICE static constexpr int least(int a, int b) { return a < b ? a : b; }
  static constexpr int FROM = ALL_COLUMNS ? ORIGIN : 0, TO = ALL_COLUMNS ? least(ORIGIN + Cfg::W, LENGTH) : LENGTH;
  static constexpr int SIDE = NHWC ? 32 / LINE : 32 / CPG;  // lanes along the columns
  static constexpr int UNIT = NHWC ? 1 : COPY;              // columns of a copy
  static constexpr int TURNS = TO > FROM ? ((TO - FROM + UNIT - 1) / UNIT + SIDE - 1) / SIDE : 0;

  static constexpr long long IMAGE_AWAY = static_cast<long long>(Cfg::C) * (Cfg::H * Cfg::W);
  static constexpr int ROW_AWAY = NHWC ? Cfg::W * Cfg::C : Cfg::W;
  struct Fetch {
    const unsigned* x;  ///< this lane's first copy of the next step
    int to;             ///< and where it goes in a chunk of the ring
    int column;         ///< of x
    int row, left;      ///< of the next step; steps of these images
    I room;             ///< images from these on
  };
  SL_DEVICE static Fetch aim(const unsigned* x, int top, int left_column, int steps, I room, int lane) {
    Fetch f;
    const int side = NHWC ? lane / LINE : lane % SIDE, column = FROM + side * UNIT;
    const int channel = NHWC ? lane % LINE * COPY : lane / SIDE;
    f.column = left_column - LEAD + column;
    f.x = x + ((NHWC ? f.column * Cfg::C + channel : channel * (Cfg::H * Cfg::W) + f.column) + top * ROW_AWAY);
    f.to = NHWC ? pixel_at(column) + channel : channel * PITCH + column;
    f.row = top;
    f.left = steps;
    f.room = room;
    return f;
  }
  SL_DEVICE static void fetch(Fetch& f, Shared chunk, int steps, int lane) {
    const Shared to = chunk + 4 * f.to;
    const int side = NHWC ? lane / LINE : lane % SIDE;
    SL_UNROLL
    for (int j = 0; j < FRESH; ++j) {
      SL_UNROLL
      for (int n = 0; n < IMAGES; ++n) {
        SL_UNROLL
        for (int i = 0; i < TURNS; ++i) {
          const int away = i * SIDE * UNIT, column = FROM + side * UNIT;
          if (FROM + (SIDE - 1) * UNIT + away < TO || column + away < TO) {
            const bool present = inside(f.row + j, Cfg::H) && (ALL_COLUMNS || inside(f.column + away, Cfg::W)) &&
                                 (IMAGES == 1 || n < f.room);
            const int there = NHWC ? pixel_at(column + away) - pixel_at(column) : away;
            copy_async<COPY * 4>(to + 4 * (n * IMAGE + j * ROW + there),
                                 f.x + (n * IMAGE_AWAY + (j * ROW_AWAY + (NHWC ? away * Cfg::C : away))), present);
          }
        }
      }
    }
    f.x += FRESH * ROW_AWAY;
    f.row += FRESH;
    if (--f.left == 0) {  // on to the next images
      f.left = steps;
      f.row -= steps * FRESH;
      f.x += IMAGES * IMAGE_AWAY - static_cast<long long>(steps) * (FRESH * ROW_AWAY);
      f.room -= IMAGES;
    }
  }

  // --- weights

  /// CPG 8: channel of row t (half 0) and t + 4 of B, and of those columns of A.
  SL_DEVICE static constexpr int channel_of(int half, int t) { return NHWC ? 2 * t + half : t + 4 * half; }
  /// Whether some output of a product reads input row `down` of it.
  SL_DEVICE static constexpr bool row_used(int down) { return input_used(down, FOLD, SH, DH, R); }

  Halves weight[KERNEL_ROWS][STEPS][2];

  SL_DEVICE void load_weights(const float* from, int lane) {
    const int out = lane / 4 % OUTS, l = lane / 4 / OUTS, t = lane % 4;
    SL_UNROLL
    for (int down = 0; down < KERNEL_ROWS; ++down) {
      if (!row_used(down)) continue;
      const int i = down - l * SH, r = i / DH;
      const bool read = FOLD == 1 || (i >= 0 && i % DH == 0 && r < R);
      SL_UNROLL
      for (int step = 0; step < STEPS; ++step) {
        SL_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int c = CPG == 8 ? channel_of(half, t) : t, s = CPG == 8 ? step : 2 * step + half;
          const bool there = read && s < S;
          const int tap = there ? r * S + s : 0;
          const float value = from[Cfg::WLAYOUT == kOhwi ? (out * TAPS + tap) * CPG + c : (out * CPG + c) * TAPS + tap];
          weight[down][step][half] = Halves(there ? value : 0.0F);
        }
      }
    }
  }

  // --- products

  static constexpr int SPAN = (COLS - 1) * SW + (S - 1) * DW + 1;  // input columns of a lane
  static constexpr int CHANNELS = CPG / 4;                         // of a lane

  using Segment = float[CHANNELS][SPAN];
  SL_DEVICE static void read(Shared from, Segment& x) {
    if constexpr (NHWC) {
      SL_UNROLL
      for (int e = 0; e < SPAN; ++e) {
        float pixel[CHANNELS];
        load_shared_floats(pixel, from + 4 * pixel_at(e));
        SL_UNROLL
        for (int c = 0; c < CHANNELS; ++c) x[c][e] = pixel[c];
      }
    } else {
      SL_UNROLL
      for (int c = 0; c < CHANNELS; ++c) {
        const Shared plane = from + c * (16 * PITCH);
        SL_UNROLL
        for (int v = LEAD / 4 * 4; v < LEAD + SPAN; v += 4) {
          const int first = v > LEAD ? v : LEAD, last = v + 4 < LEAD + SPAN ? v + 4 : LEAD + SPAN;
          if (last - first > 2) {
            float four[4];
            load_shared4(four, plane + 4 * v);
            SL_UNROLL
            for (int e = 0; e < 4; ++e) {
              if (v + e >= first && v + e < last) x[c][v + e - LEAD] = four[e];
            }
          } else {
            SL_UNROLL
            for (int e = 0; e < 4; ++e) {
              if (v + e >= first && v + e < last) {
                x[c][v + e - LEAD] = float_from_bits(load_shared(plane + 4 * (v + e)));
              }
            }
          }
        }
      }
    }
  }

  /// Of outputs whose first input row came d steps ago: sum[slot(phase, d)]. Either sums move one slot on in every
  /// step, or they stay while the step's phase, step % SLOTS, turns: fewer instructions, but SLOTS times the code.
  static constexpr int PHASES = Cfg::PHASES;
  static_assert(PHASES == 1 || PHASES == SLOTS, "sums move, or their slots turn");
  float sum[SLOTS][PRODUCTS][4];
  SL_DEVICE static constexpr int slot(int phase, int d) { return PHASES == 1 ? d : (phase + SLOTS - d) % SLOTS; }
  SL_DEVICE void shift() {
    SL_UNROLL
    for (int d = PHASES == 1 ? SLOTS - 1 : 0; d > 0; --d) {
      SL_UNROLL
      for (int i = 0; i < PRODUCTS * 4; ++i) sum[d][i / 4][i % 4] = sum[d - 1][i / 4][i % 4];
    }
  }

  SL_DEVICE void clear(int slot) {
    SL_UNROLL
    for (int i = 0; i < PRODUCTS * 4; ++i) sum[slot][i / 4][i % 4] = 0.0F;
  }
  SL_DEVICE void add(int phase, int d, int m, int step, const unsigned (&a)[4], bool low, int j, bool first) {
    const int down = d * FRESH + j;
    if (down >= KERNEL_ROWS || !row_used(down)) return;
    const Halves(&w)[2] = weight[down][step];
    const unsigned b0 = low ? w[0].low : w[0].high, b1 = low ? w[1].low : w[1].high;
    if (first && d == 0) {
      mma_tf32_zero(sum[slot(phase, d)][m], a, b0, b1);
    } else {
      mma_tf32(sum[slot(phase, d)][m], a, b0, b1);
    }
  }
  /// Adds the rows of a step; `from` = this lane's place in its chunk of the ring.
  SL_DEVICE void multiply(Shared from, int phase) {
    SL_UNROLL
    for (int j = 0; j < FRESH; ++j) {
      if (!step_row_used(j)) continue;
      Segment x;
      read(from + 4 * (j * ROW), x);
      Halves part[CHANNELS][SPAN];
      SL_UNROLL
      for (int e = 0; e < CHANNELS * SPAN; ++e) part[e / SPAN][e % SPAN] = Halves::cut(x[e / SPAN][e % SPAN]);
      SL_UNROLL
      for (int step = 0; step < STEPS; ++step) {
        SL_UNROLL
        for (int m = 0; m < PRODUCTS; ++m) {
          // Rows g and g + 8 of columns t and t + 4: of another channel, or of the next tap. Where there is none, of
          // any number.
          const int e = m * SW + step * (8 / CPG) * DW, f = e + PRODUCTS * SW;
          const int next = CPG == 8 || f + DW >= SPAN ? 0 : DW;
          const Halves a[4] = {part[0][e], part[0][f], part[CHANNELS - 1][e + next], part[CHANNELS - 1][f + next]};
          const unsigned high[4] = {a[0].high, a[1].high, a[2].high, a[3].high};
          const unsigned low[4] = {a[0].low, a[1].low, a[2].low, a[3].low};
          SL_UNROLL
          for (int d = SLOTS - 1; d >= 0; --d) add(phase, d, m, step, low, false, j, j == 0 && step == 0);
          SL_UNROLL
          for (int d = SLOTS - 1; d >= 0; --d) add(phase, d, m, step, high, true, j, false);
          SL_UNROLL
          for (int d = SLOTS - 1; d >= 0; --d) add(phase, d, m, step, high, false, j, false);
        }
      }
    }
  }
  SL_DEVICE static constexpr bool step_row_used(int j) {
    for (int d = 0; d < SLOTS; ++d) {
      if (d * FRESH + j < KERNEL_ROWS && row_used(d * FRESH + j)) return true;
    }
    return false;
  }

  // --- outputs: of product m a lane has columns m (elements 0, 1) and m + PRODUCTS (2, 3) of two outputs

  struct Place {
    I n;
    int k, row, column;  ///< of the lane's first output
    I y;                 ///< where that is
  };
  using Sums = float[PRODUCTS][4];
  /// Sums that are not finite, again in plain fp32: an Inf or NaN, and a number that is too large, has no halves. Cold,
  /// so one rolled loop.
  SL_DEVICE static void repair(const SlParams& p, const Place& at, Sums& out) {
    SL_UNROLL_BY(1)
    for (int i = 0; i < PRODUCTS * 4; ++i) {
      const int e = i % 4, column = at.column + i / 4 + e / 2 * PRODUCTS;
      float value = 0.0F;
      SL_UNROLL
      for (int j = 0; j < PRODUCTS * 4; ++j) value = j == i ? out[j / 4][j % 4] : value;
      if (finite(value) || column >= Cfg::Q) continue;
      value = exact_sum<Cfg>(p, at.n, at.k + e % 2, at.row, column);
      SL_UNROLL
      for (int j = 0; j < PRODUCTS * 4; ++j) out[j / 4][j % 4] = j == i ? value : out[j / 4][j % 4];
    }
  }

  SL_DEVICE static float biased(float value, float bias) { return Cfg::BIAS == kBiasNone ? value : value + bias; }

  SL_DEVICE void store(const SlParams& p, const Place& at, int slot) const {
    if (at.row >= Cfg::P || at.column >= Cfg::Q) return;
    Sums out;
    float all = 0.0F;
    SL_UNROLL
    for (int i = 0; i < PRODUCTS * 4; ++i) {
      out[i / 4][i % 4] = sum[slot][i / 4][i % 4] * tf32_unscale;
      all += sum[slot][i / 4][i % 4];
    }
    if (!finite(all)) repair(p, at, out);
    const float bias[2] = {bias_of<Cfg>(p, at.k), bias_of<Cfg>(p, at.k + 1)};
    I y = at.y;
    SL_UNROLL
    for (int o = 0; o < (NHWC ? COLS : 2); ++o) {
      if constexpr (NHWC) {
        const float(&s)[4] = out[o % PRODUCTS];
        const float two[2] = {biased(s[o / PRODUCTS * 2], bias[0]), biased(s[o / PRODUCTS * 2 + 1], bias[1])};
        if (Cfg::Q % COLS == 0 || at.column + o < Cfg::Q) finish_row<Cfg, Cfg::STORE>(p, y, two, 2);
        y += Cfg::K;
      } else {
        float line[COLS];
        SL_UNROLL
        for (int c = 0; c < COLS; ++c) line[c] = biased(out[c % PRODUCTS][c / PRODUCTS * 2 + o], bias[o]);
        finish_row<Cfg, Cfg::STORE>(p, y, line, Cfg::Q % COLS == 0 ? COLS : Cfg::Q - at.column);
        y += static_cast<I>(Cfg::P) * Cfg::Q;
      }
    }
  }
};

template <class Cfg>
SL_DEVICE void grp_tf32(const SlParams& p) {
  using I = Index<Cfg>;
  using Work = GrpTf32<Cfg>;
  constexpr int WARPS = Cfg::THREADS / 32;
  SL_DYNAMIC_SHARED(float, shared);
  const int lane = thread_id() % 32, warp = thread_id() / 32;
  float* const ring = shared + warp * Work::WARP;
  float* const weights = ring + Work::RING * Work::CHUNK;

  I rest = static_cast<I>(block_id()) * WARPS + warp;
  I part = 0;
  if constexpr (Work::NHWC) part = take(rest, p.div[0]);
  const int column0 = Work::ALL_COLUMNS ? 0 : static_cast<int>(take(rest, p.div[1])) * Work::WIDE;
  const int strip = static_cast<int>(take(rest, p.div[2]));
  if constexpr (!Work::NHWC) part = take(rest, p.div[0]);
  if (rest >= static_cast<I>(p.aux[2])) return;

  const int all_steps = (Cfg::P + Work::FOLD - 1) / Work::FOLD, first_step = strip * static_cast<int>(p.aux[0]);
  const int out_steps = Work::least(static_cast<int>(p.aux[0]), all_steps - first_step);
  const int steps = keep(out_steps + Work::SLOTS - 1);  // of an image
  I n = rest * static_cast<I>(p.aux[1]) * Work::IMAGES;
  const I turns_left = (static_cast<I>(p.n) - n + Work::IMAGES - 1) / Work::IMAGES;
  const int turns = static_cast<int>(turns_left < static_cast<I>(p.aux[1]) ? turns_left : static_cast<I>(p.aux[1]));
  const int first_channel = static_cast<int>(part) / Work::PARTS * Work::CPG;
  const int top = keep(first_step * Work::FRESH - Cfg::PAD_TOP), left = column0 * Work::SW - Cfg::PAD_LEFT;

  if constexpr (Work::ALL_COLUMNS) {
    for (int i = lane * 4; i < Work::RING * Work::CHUNK; i += 128) store_raw<16>(ring + i, zero_raw<16>());
    warp_sync();
  }
  const auto* const weight = static_cast<const unsigned*>(p.weight) + static_cast<long long>(part) * Work::WEIGHTS;
  SL_UNROLL_BY(1)
  for (int i = lane * Cfg::WCOPY; i < Work::WEIGHTS; i += 32 * Cfg::WCOPY) {
    copy_async<Cfg::WCOPY * 4>(weights + i, weight + i);
  }
  copy_async_commit();
  const unsigned* const x = x_at<Cfg>(p, n, static_cast<I>(first_channel));
  auto fetch = Work::aim(x, top, left, steps, static_cast<I>(p.n) - n, lane);
  int left_over = turns * steps, ahead = left_over;  // to add, to fetch
  const auto fetch_to = [&](Shared chunk) {
    if (ahead > 0) Work::fetch(fetch, chunk, steps, lane);
    --ahead;
    copy_async_commit();  // a group for each step, even where nothing is left
  };
  const Shared chunks(ring);
  constexpr int CHUNK = 4 * Work::CHUNK;  // bytes
  SL_UNROLL_BY(1)
  for (int i = 0; i < Cfg::AHEAD; ++i) fetch_to(chunks + i * CHUNK);
  copy_async_wait<Cfg::AHEAD>();
  warp_sync();
  Work work;
  work.load_weights(weights, lane);
  SL_UNROLL
  for (int i = 0; i < Work::SLOTS; ++i) work.clear(i);

  const int across = lane / 4 % Work::ACROSS, image = lane / 4 / Work::ACROSS, t = lane % 4;
  const int inner =
      Work::NHWC ? across * ((Work::NEAR + 1) * Work::CPG) + Work::CHANNELS * t : across * Work::NEAR + t * Work::PITCH;
  const int place = 4 * (image * Work::IMAGE + inner);  // of this lane in a chunk
  const int k = static_cast<int>(part) * Work::OUTS + 2 * t % Work::OUTS, column = column0 + across * Work::COLS;
  int chunk = 0, before = Cfg::AHEAD * CHUNK;  // in the ring: this step's and the last one's
  const int first_row = keep((first_step - (Work::SLOTS - 1)) * Work::FOLD + 2 * t / Work::OUTS);
  int h = top, row = first_row;  // first to add, to store
  const int past = keep(top + steps * Work::FRESH);
  constexpr I Y_ROW = (Work::NHWC ? Cfg::K : 1) * Cfg::Q;
  constexpr I Y_IMAGE = static_cast<I>(Cfg::K) * Cfg::P * Cfg::Q;
  I y = y_offset<Cfg>(p, n + image, k, 0, column) + first_row * Y_ROW;
  // Whole turns of the loop: steps beyond the last add to sums that nobody stores.
  SL_UNROLL_BY(1)
  for (; left_over > 0; left_over -= Work::PHASES) {
    SL_UNROLL
    for (int phase = 0; phase < Work::PHASES; ++phase) {
      copy_async_wait<Cfg::AHEAD - 1>();
      warp_sync();  // a step's rows are there for all, and nobody reads those before any more
      fetch_to(chunks + before);
      work.shift();
      if (h < Cfg::H) {
        work.multiply(chunks + (chunk + place), phase);
      } else if (Work::BELOW) {
        work.clear(Work::slot(phase, 0));
      }
      if (h >= top + (Work::SLOTS - 1) * Work::FRESH && (Work::IMAGES == 1 || image < static_cast<I>(p.n) - n)) {
        work.store(p, {n + image, k, row, column, y}, Work::slot(phase, Work::SLOTS - 1));
      }
      h += Work::FRESH;
      row += Work::FOLD;
      y += Work::FOLD * Y_ROW;
      if (h == past) {
        h = top;
        row = first_row;
        y += Work::IMAGES * Y_IMAGE - steps * (Work::FOLD * Y_ROW);
        n += Work::IMAGES;
      }
      before = chunk;
      chunk = chunk == Cfg::AHEAD * CHUNK ? 0 : chunk + CHUNK;
    }
  }
}

}  // namespace sl
