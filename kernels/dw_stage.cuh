// dw_stage: input rows on their way through a ring in shared memory. A block owns a tile of columns of LANES * VEC
// channels (NHWC) or of LANES planes (NCHW) and slides down a strip of output rows. All threads fetch the tile's input
// rows by asynchronous copies STAGES - 1 steps ahead, so that many bytes are on their way at no register; each thread
// then computes COLS outputs along the row, with weights and sums in registers.
#pragma once

#include "common/channel_weights.cuh"

namespace sl {

/// Shapes of one block's tile. A stage holds the FRESH input rows that one step down the output adds.
template <class Cfg>
struct StageShape {
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int SIZE = static_cast<int>(sizeof(Bits<Cfg>));
  static constexpr int CHANNELS = NHWC ? Cfg::VEC : 1;  // of one thread
  static constexpr int REACH = (Cfg::S - 1) * Cfg::DIL_W + 1;
  static constexpr int SPAN = (Cfg::COLS - 1) * Cfg::STRIDE_W + REACH;  // input columns of a thread
  static constexpr int TILE = Cfg::TILES * Cfg::COLS;                   // output columns of the block
  static constexpr int SLOTS = (Cfg::R + Cfg::STRIDE_H - 1) / Cfg::STRIDE_H;
  static constexpr int FRESH = Cfg::STRIDE_H < Cfg::R ? Cfg::STRIDE_H : Cfg::R;
  /// Input rows from one step to the next. With dilation a strip takes every DIL_H-th output row.
  static constexpr int STEP = Cfg::DIL_H > 1 ? Cfg::DIL_H : Cfg::STRIDE_H;
  /// WHOLE: a thread has a whole row. Then the compiler knows which columns exist, and only those are staged.
  static constexpr bool WHOLE = Cfg::WHOLE != 0;
  static constexpr int BEFORE = WHOLE ? Cfg::PAD_LEFT : 0;  // columns of the window that lie left of the input
  static constexpr int WIDE =                               // input columns of the block
      !WHOLE                       ? (TILE - 1) * Cfg::STRIDE_W + REACH
      : SPAN - BEFORE < Cfg::WIDTH ? SPAN - BEFORE
                                   : Cfg::WIDTH;
  static constexpr int PER = Cfg::CHUNK / SIZE;  // elements of one copy
  /// A line is one input row of the tile: in NHWC of all channels of the block, in NCHW of one plane, starting LEAD
  /// columns early so that every copy is aligned and lies wholly inside the row or wholly outside.
  static constexpr int LEAD = Cfg::LEAD;  // 0 in NHWC
  static constexpr int PIXEL = NHWC ? Cfg::LANES * Cfg::VEC : 1;
  static constexpr int LINE = (LEAD + WIDE) * PIXEL;
  static constexpr int UNITS = (LINE + PER - 1) / PER;  // copies of a line
  static constexpr int PITCH = NHWC ? UNITS * PER : Cfg::PITCH;
  static constexpr int LINES = NHWC ? 1 : Cfg::LANES;
  static constexpr int ROW = PITCH * LINES;
  static constexpr int STAGE = FRESH * ROW;
  static constexpr int COPIES = FRESH * LINES * UNITS;
  static constexpr int TURNS = (COPIES + Cfg::THREADS - 1) / Cfg::THREADS;
  /// Shared memory: weights, two rows of results where they leave that way, the ring.
  static constexpr int WEIGHTS = Cfg::LANES * CHANNELS * Cfg::R * Cfg::S;
  static constexpr int RESULTS = Cfg::LANES * TILE;  // floats
  static constexpr int RESULTS_AT = (WEIGHTS * SIZE + 15) / 16 * 16;
  static constexpr int RING_AT = RESULTS_AT + (Cfg::VIA_SHARED != 0 ? (2 * RESULTS * 4 + 15) / 16 * 16 : 0);

  /// Is column i of a thread's window staged?
  SL_DEVICE static constexpr bool staged(int i) { return !WHOLE || (i >= BEFORE && i < BEFORE + WIDE); }
  /// The first tap of output t whose column is.
  SL_DEVICE static constexpr int first_tap(int t) {
    int s = 0;
    while (s < Cfg::S && !staged(t * Cfg::STRIDE_W + s * Cfg::DIL_W)) ++s;
    return s;
  }
};

/// A thread's share of the copies: where each comes from is fixed but for the row.
template <class Cfg>
struct StageCopies {
  using I = Index<Cfg>;
  using Shape = StageShape<Cfg>;
  static constexpr bool DENSE = Shape::PITCH == Shape::UNITS * Shape::PER;
  I from[Shape::TURNS];    // elements from the tile's origin in row 0
  int to[Shape::TURNS];    // place in the stage, where lines lie apart
  int line[Shape::TURNS];  // row of the stage, or -1: never present

  /// `left` = input column of the tile's first; `room` = channels (NHWC) or planes (NCHW) from the tile's first on.
  SL_DEVICE void aim(const SlParams& p, int left, I room) {
    const int width = static_cast<int>(p.w);
    SL_UNROLL
    for (int i = 0; i < Shape::TURNS; ++i) {
      const int copy = thread_id() + i * Cfg::THREADS;
      const int at = copy % Shape::UNITS * Shape::PER, row = copy / Shape::UNITS;
      const int j = row / Shape::LINES;
      bool present = copy < Shape::COPIES;
      if constexpr (Shape::NHWC) {
        const int column = left + at / Shape::PIXEL, channel = at % Shape::PIXEL;
        present = present && inside(column, width) && channel < room;
        from[i] = static_cast<I>(j) * Cfg::X_ROW + static_cast<I>(column) * Cfg::APART + channel;
      } else {
        const int plane = row % Shape::LINES, column = left - Shape::LEAD + at;
        present = present && inside(column, width) && plane < room;
        from[i] = (static_cast<I>(plane) * static_cast<I>(p.h) + j) * Cfg::X_ROW + column;
      }
      to[i] = DENSE ? copy * Shape::PER : row * Shape::PITCH + at;
      line[i] = present ? j : -1;
    }
  }

  /// Rows h .. of the input, the first at `row`, into `stage`; what lies outside 0 .. end is zeros, and `row` is then
  /// only a number. At least one of the rows must lie inside.
  SL_DEVICE void start(const Bits<Cfg>* row, Bits<Cfg>* stage, int h, int end) const {
    SL_UNROLL
    for (int i = 0; i < Shape::TURNS; ++i) {
      const int copy = thread_id() + i * Cfg::THREADS;
      const bool present = line[i] >= 0 && (Shape::FRESH == 1 || inside(h + line[i], end));
      if (Shape::COPIES % Cfg::THREADS == 0 || i + 1 < Shape::TURNS || copy < Shape::COPIES) {
        copy_async<Cfg::CHUNK>(stage + (DENSE ? copy * Shape::PER : to[i]), row + from[i], present);
      }
    }
  }
};

/// The weights of the block's channels as they lie in memory; zeros beyond the last. Copies join those that are being
/// issued, so that weights and first rows come on one trip.
template <class Cfg>
SL_DEVICE void fetch_weights(const SlParams& p, Bits<Cfg>* to, Index<Cfg> first, Index<Cfg> lines) {
  using Shape = StageShape<Cfg>;
  if constexpr (Cfg::WEIGHT_CHUNK == 0) {
    stage_channel_weights<Cfg, Cfg::LANES * Shape::CHANNELS>(p, to, first, lines);
  } else {
    constexpr int TAPS = Cfg::R * Cfg::S, PER = Cfg::WEIGHT_CHUNK / Shape::SIZE;
    SL_UNROLL
    for (int from = 0; from < Shape::WEIGHTS; from += Cfg::THREADS * PER) {
      const int at = from + thread_id() * PER;
      Index<Cfg> k = first + at / TAPS;
      const bool present = k < lines;
      if constexpr (Cfg::LAYOUT == kNchw) k = take(k, p.div[0]);
      if (at < Shape::WEIGHTS) {
        copy_async<Cfg::WEIGHT_CHUNK>(
            to + at, static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k) * TAPS + at % TAPS, present);
      }
    }
  }
}

/// The input columns of one thread in one row, raw.
template <class Cfg, int LAYOUT = Cfg::LAYOUT>
struct StageWindow {
  using Shape = StageShape<Cfg>;
  static constexpr int BYTES = Cfg::VEC * Shape::SIZE;
  Raw<BYTES> raw[Shape::SPAN];

  SL_DEVICE void load(const Bits<Cfg>* row, int lane, int tile) {
    const Bits<Cfg>* from = row + (tile * (Cfg::COLS * Cfg::STRIDE_W) * Cfg::LANES + lane) * Cfg::VEC;
    SL_UNROLL
    for (int i = 0; i < Shape::SPAN; ++i) {
      if (Shape::staged(i)) raw[i] = load_raw<BYTES, false>(from + (i - Shape::BEFORE) * Shape::PIXEL);
    }
  }
  SL_DEVICE float value(int i, int channel) const { return element<Cfg>(raw[i], channel); }
};
template <class Cfg>
struct StageWindow<Cfg, kNchw> {
  using Shape = StageShape<Cfg>;
  static constexpr int common(int a, int limit) { return limit > 1 && a % limit != 0 ? common(a, limit / 2) : limit; }
  static constexpr int MOVE = Cfg::TILES > 1 ? Cfg::COLS* Cfg::STRIDE_W : 0;  // from one thread's window to the next
  static constexpr int VEC = common(MOVE, common(Shape::PITCH, 16 / Shape::SIZE));
  static constexpr int BYTES = VEC * Shape::SIZE;
  static constexpr int SKIP = Shape::LEAD / VEC;  // whole vectors before the window
  static constexpr int COLUMNS = Shape::WHOLE ? Shape::WIDE : Shape::SPAN;
  static constexpr int VECTORS = (Shape::LEAD + COLUMNS + VEC - 1) / VEC - SKIP;
  Raw<BYTES> raw[VECTORS];

  SL_DEVICE void load(const Bits<Cfg>* row, int lane, int tile) {
    const Bits<Cfg>* from = row + lane * Shape::PITCH + tile * MOVE + SKIP * VEC;
    SL_UNROLL
    for (int i = 0; i < VECTORS; ++i) raw[i] = load_raw<BYTES, false>(from + i * VEC);
  }
  SL_DEVICE float value(int i, int) const {
    const int at = Shape::LEAD - SKIP * VEC + i - Shape::BEFORE;
    return element<Cfg>(raw[at / VEC], at % VEC);
  }
};

/// NCHW: a row of results on its way through shared memory, so that what is neighbours in memory is stored together.
template <class Cfg>
struct StageResults {
  using I = Index<Cfg>;
  using Shape = StageShape<Cfg>;
  static constexpr int COLS = Cfg::COLS, WIDTH = COLS % 4 == 0 ? 4 : COLS % 2 == 0 ? 2 : 1;  // floats put at once
  static constexpr int PER = Cfg::STORE, UNITS = Shape::TILE / PER;  // elements of a store; stores of a line
  static constexpr int TURNS = (Cfg::LANES * UNITS + Cfg::THREADS - 1) / Cfg::THREADS;
  I to[TURNS];  // elements from the tile's first output of the row, or -1

  /// `columns` = output columns, `room` = planes from the tile's first on.
  SL_DEVICE void aim(const SlParams& p, int columns, I room) {
    SL_UNROLL
    for (int i = 0; i < TURNS; ++i) {
      const int store = thread_id() + i * Cfg::THREADS;
      const int plane = store / UNITS, column = store % UNITS * PER;
      const bool present = plane < Cfg::LANES && plane < room && column < columns;
      to[i] = present ? static_cast<I>(plane) * static_cast<I>(p.p) * Cfg::Y_ROW + column : -1;
    }
  }
  SL_DEVICE static void put(float* to, const float (&sum)[COLS]) {
    SL_UNROLL
    for (int i = 0; i < COLS; i += WIDTH) {
      Raw<4 * WIDTH> raw;
      SL_UNROLL
      for (int j = 0; j < WIDTH; ++j) raw.word[j] = float_bits(sum[i + j]);
      store_raw<4 * WIDTH>(to + i, raw);
    }
  }
  SL_DEVICE void store(const SlParams& p, const float* row, I y) const {
    constexpr int N = PER < 4 ? PER : 4;  // floats got at once
    SL_UNROLL
    for (int i = 0; i < TURNS; ++i) {
      if (to[i] < 0) continue;
      float part[PER];
      SL_UNROLL
      for (int j = 0; j < PER; j += N) {
        const auto raw = load_raw<4 * N, false>(row + (thread_id() + i * Cfg::THREADS) * PER + j);
        SL_UNROLL
        for (int k = 0; k < N; ++k) part[j + k] = float_from_bits(raw.word[k]);
      }
      finish<Cfg, PER>(p, y + to[i], part);
    }
  }
};

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_*; LANES, TILES (threads along channels or planes, and
/// along the row), COLS, VEC (NHWC: channels a thread), STAGES, CHUNK (bytes of a copy), LEAD (NCHW: columns that the
/// first copy of a line starts early), PITCH (NCHW: elements from one line to the next), WHOLE (COLS = q; WIDTH = w and
/// PAD_LEFT count then), WEIGHT_CHUNK (bytes of a copy of weights, 0: loaded instead), VIA_SHARED (NCHW: results are
/// stored together), STORE (NCHW: columns a store), EVEN (COLS divides q), X_ROW, Y_ROW (elements from one row of x or
/// y to the next), APART (from one pixel to the next). One of DIL_H and STRIDE_H is 1. div[0] = channel blocks (NHWC)
/// or channels (NCHW), div[1] = column tiles, div[2] = strips, div[3] = DIL_H; aux[0] = output rows of a strip.
template <class Cfg>
SL_DEVICE void dw_stage(const SlParams& p) {
  using I = Index<Cfg>;
  using Shape = StageShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC, VIA_SHARED = Cfg::VIA_SHARED != 0;
  constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, COLS = Cfg::COLS;
  constexpr int CHANNELS = Shape::CHANNELS, SLOTS = Shape::SLOTS, STAGES = Cfg::STAGES;
  // Leave out the sums of rows above the strip's first and below its last? Measured: it pays at 5x5 in fp32; at 7x7 and
  // in 16 bits the branches cost more than they save.
  constexpr bool SKIP = Cfg::DTYPE == kF32 && R * S >= 25 && R * S < 49;
  SL_DYNAMIC_SHARED(Bits<Cfg>, weights);
  float* const outs = reinterpret_cast<float*>(weights + Shape::RESULTS_AT / Shape::SIZE);
  Bits<Cfg>* const ring = weights + Shape::RING_AT / Shape::SIZE;

  I rest = static_cast<I>(block_id());
  const I channel_block = NHWC ? take(rest, p.div[0]) : 0;
  const int q_tile = static_cast<int>(take(rest, p.div[1])) * Shape::TILE;
  const int strip = static_cast<int>(take(rest, p.div[2]));
  const int phase = static_cast<int>(take(rest, p.div[3]));
  const I first_line = NHWC ? channel_block * (Cfg::LANES * Cfg::VEC) : rest * Cfg::LANES;  // channel or plane
  const I lines = NHWC ? static_cast<I>(p.c) : static_cast<I>(p.n) * static_cast<I>(p.c);

  const int p0 = strip * static_cast<int>(p.aux[0]) * Cfg::DIL_H + phase;
  const int rows_left = (static_cast<int>(p.p) - p0 + Cfg::DIL_H - 1) / Cfg::DIL_H;
  const int rows = rows_left < static_cast<int>(p.aux[0]) ? rows_left : static_cast<int>(p.aux[0]);
  if (rows <= 0) return;  // a later phase has fewer rows
  const int steps = rows + SLOTS - 1;
  const int top = static_cast<int>(static_cast<long long>(p0) * SH - p.pad_top);
  const int beyond = top + (rows - 1) * Shape::STEP + (R - 1) * Cfg::DIL_H + 1;  // the first row that no output reads
  const int end = beyond < 0 ? 0 : beyond < static_cast<int>(p.h) ? beyond : static_cast<int>(p.h);
  // Steps first .. last - 1 are fed: rows of theirs lie in the input. The others only move the sums on.
  const int first = top + Shape::FRESH > 0 ? 0 : (Shape::STEP - Shape::FRESH - top) / Shape::STEP;
  const int last = end > top ? (end - top + Shape::STEP - 1) / Shape::STEP : 0;
  int h = top + first * Shape::STEP;
  const Bits<Cfg>* x = (NHWC ? x_at<Cfg>(p, rest, first_line) : x_at<Cfg>(p, 0, first_line)) +
                       static_cast<I>(h) * static_cast<I>(Cfg::X_ROW);

  StageCopies<Cfg> copies;
  copies.aim(p, Shape::WHOLE ? 0 : static_cast<int>(static_cast<long long>(q_tile) * SW - p.pad_left),
             lines - first_line);
  fetch_weights<Cfg>(p, weights, first_line, lines);
  SL_UNROLL
  for (int i = 0; i < STAGES - 1; ++i) {
    if (first + i < last) copies.start(x, ring + i * Shape::STAGE, h, end);
    copy_async_commit();
    x += static_cast<I>(Cfg::X_ROW) * Shape::STEP;
    h += Shape::STEP;
  }

  const int lane = NHWC ? thread_id() % Cfg::LANES : thread_id() / Cfg::TILES;
  const int tile = NHWC ? thread_id() / Cfg::LANES : thread_id() % Cfg::TILES;
  const int q0 = q_tile + tile * COLS;
  const I line = first_line + lane * CHANNELS;
  const bool active = lane < Cfg::LANES && tile < Cfg::TILES && line < lines && q0 < static_cast<int>(p.q);
  const int limit = static_cast<int>(p.q) - q0;

  float bias[CHANNELS] = {};
  if (active) {
    I k = line;
    if constexpr (!NHWC) k = take(k, p.div[0]);
    SL_UNROLL
    for (int v = 0; v < CHANNELS; ++v) bias[v] = bias_of<Cfg>(p, k + v);
  }
  copy_async_wait<STAGES - 2>();
  barrier();
  float weight[R * S][CHANNELS];
  if (active) {
    SL_UNROLL
    for (int i = 0; i < R * S; ++i) {
      SL_UNROLL
      for (int v = 0; v < CHANNELS; ++v) {
        weight[i][v] = Element<Cfg::DTYPE>::widen(weights[(lane * CHANNELS + v) * (R * S) + i]);
      }
    }
  }

  I y = NHWC ? y_offset<Cfg>(p, rest, line, p0, q0) : y_offset<Cfg>(p, 0, line, p0, q0);
  StageResults<Cfg> results;
  I y_row = 0;
  if constexpr (VIA_SHARED) {
    results.aim(p, static_cast<int>(p.q) - q_tile, lines - first_line);
    y_row = y_offset<Cfg>(p, 0, first_line, p0, q_tile);
  }

  float sum[SLOTS][COLS][CHANNELS];  // slot d: the output row whose first input row came d steps ago
  SL_UNROLL
  for (int d = 0; d < SLOTS; ++d) {
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      SL_UNROLL
      for (int v = 0; v < CHANNELS; ++v) sum[d][t][v] = bias[v];
    }
  }

  int slot = 0;
  int step = first < SLOTS - 1 ? first : SLOTS - 1;
  const auto send = [&]() {  // results of the step before, which a barrier has made visible
    if constexpr (VIA_SHARED) {
      if (step > SLOTS - 1) {
        results.store(p, outs + (step & 1) * Shape::RESULTS, y_row);
        y_row += static_cast<I>(Cfg::Y_ROW) * Cfg::DIL_H;
      }
    }
  };
  const auto finish_oldest = [&]() {
    if (!active || step < SLOTS - 1) return;
    if constexpr (NHWC) {
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) {
        if (Cfg::EVEN != 0 || t < limit) {
          finish<Cfg, CHANNELS>(p, y + t * static_cast<I>(Cfg::APART), sum[SLOTS - 1][t]);
        }
      }
    } else {
      float out[COLS];
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) out[t] = sum[SLOTS - 1][t][0];
      if constexpr (VIA_SHARED) {
        StageResults<Cfg>::put(outs + ((step + 1) & 1) * Shape::RESULTS + thread_id() * COLS, out);
      } else {
        finish_row<Cfg, Cfg::STORE>(p, y, out, Cfg::EVEN != 0 ? COLS : limit);
      }
    }
    y += static_cast<I>(Cfg::Y_ROW) * Cfg::DIL_H;
  };

  // Loops of their own: steps that are not fed, before and after those that are. A branch in one loop would cost moves.
  SL_UNROLL_BY(1)
  while (step < steps) {
    SL_UNROLL_BY(1)
    for (; step >= first && step < last; ++step) {
      copy_async_wait<STAGES - 2>();
      barrier();  // this step's rows are there, and the stage before it is free
      if (step + STAGES - 1 < last) {
        const int free_slot = slot == 0 ? STAGES - 1 : slot - 1;
        copies.start(x, ring + free_slot * Shape::STAGE, h, end);
        x += static_cast<I>(Cfg::X_ROW) * Shape::STEP;
        h += Shape::STEP;
      }
      copy_async_commit();
      send();
      if (active) {
        SL_UNROLL
        for (int j = 0; j < Shape::FRESH; ++j) {
          StageWindow<Cfg> window;
          window.load(ring + slot * Shape::STAGE + j * Shape::ROW, lane, tile);
          float value[Shape::SPAN][CHANNELS];
          SL_UNROLL
          for (int i = 0; i < Shape::SPAN; ++i) {
            SL_UNROLL
            for (int v = 0; v < CHANNELS; ++v) value[i][v] = Shape::staged(i) ? window.value(i, v) : 0.0F;
          }
          // Every sum moves one slot on in the first addition to it, which costs nothing.
          SL_UNROLL
          for (int d = SLOTS - 1; d >= 0; --d) {
            if (d * SH + j < R && (!SKIP || (step >= d && step - d < rows))) {
              SL_UNROLL
              for (int s = 0; s < S; ++s) {
                SL_UNROLL
                for (int t = 0; t < COLS; ++t) {
                  const int at = t * SW + s * Cfg::DIL_W, first_tap = Shape::first_tap(t);
                  SL_UNROLL
                  for (int v = 0; v < CHANNELS; ++v) {
                    const bool moves = j == 0 && s == (first_tap < S ? first_tap : 0);
                    const float before = !moves ? sum[d][t][v] : d > 0 ? sum[d > 0 ? d - 1 : 0][t][v] : bias[v];
                    sum[d][t][v] =
                        Shape::staged(at) ? sl::fma(value[at][v], weight[(d * SH + j) * S + s][v], before) : before;
                  }
                }
              }
            }
          }
        }
      }
      finish_oldest();
      slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    SL_UNROLL_BY(1)
    for (; step < steps && (step < first || step >= last); ++step) {
      if (VIA_SHARED) barrier();
      send();
      SL_UNROLL
      for (int d = SLOTS - 1; d >= 0; --d) {
        SL_UNROLL
        for (int t = 0; t < COLS; ++t) {
          SL_UNROLL
          for (int v = 0; v < CHANNELS; ++v) sum[d][t][v] = d > 0 ? sum[d > 0 ? d - 1 : 0][t][v] : bias[v];
        }
      }
      finish_oldest();
    }
  }
  if constexpr (VIA_SHARED) {
    barrier();
    send();
  }
}

}  // namespace sl
