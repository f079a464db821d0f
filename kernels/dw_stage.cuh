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
  static constexpr int WIDE = (TILE - 1) * Cfg::STRIDE_W + REACH;       // input columns of the block
  static constexpr int SLOTS = (Cfg::R + Cfg::STRIDE_H - 1) / Cfg::STRIDE_H;
  static constexpr int FRESH = Cfg::STRIDE_H < Cfg::R ? Cfg::STRIDE_H : Cfg::R;
  /// Input rows from one step to the next. With dilation a strip takes every DIL_H-th output row.
  static constexpr int STEP = Cfg::DIL_H > 1 ? Cfg::DIL_H : Cfg::STRIDE_H;
  static constexpr int PER = Cfg::CHUNK / SIZE;  // elements of one copy
  /// A line is one input row of the tile: in NHWC of all channels of the block, in NCHW of one plane, starting LEAD
  /// columns early so that every copy is aligned and lies wholly inside the row or wholly outside.
  static constexpr int LEAD = Cfg::LEAD;  // 0 in NHWC
  static constexpr int PIXEL = NHWC ? Cfg::LANES * Cfg::VEC : 1;
  static constexpr int LINE = (LEAD + WIDE) * PIXEL;
  static constexpr int PITCH = (LINE + PER - 1) / PER * PER;
  static constexpr int LINES = NHWC ? 1 : Cfg::LANES;
  static constexpr int ROW = PITCH * LINES;
  static constexpr int STAGE = FRESH * ROW;
  static constexpr int COPIES = STAGE / PER;
  static constexpr int TURNS = (COPIES + Cfg::THREADS - 1) / Cfg::THREADS;
};

/// A thread's share of the copies: where each comes from is fixed but for the row.
template <class Cfg>
struct StageCopies {
  using I = Index<Cfg>;
  using Shape = StageShape<Cfg>;
  I from[Shape::TURNS];    // elements from the tile's origin in row 0
  int line[Shape::TURNS];  // row of the stage, or -1: never present

  /// `left` = input column of the tile's first; `room` = channels (NHWC) or planes (NCHW) from the tile's first on.
  SL_DEVICE void aim(const SlParams& p, int left, I room) {
    const int width = static_cast<int>(p.w);
    SL_UNROLL
    for (int i = 0; i < Shape::TURNS; ++i) {
      const int copy = thread_id() + i * Cfg::THREADS;
      const int j = copy / (Shape::ROW / Shape::PER);
      const int in_row = copy % (Shape::ROW / Shape::PER) * Shape::PER;
      bool present = copy < Shape::COPIES;
      if constexpr (Shape::NHWC) {
        const int column = left + in_row / Shape::PIXEL, channel = in_row % Shape::PIXEL;
        present = present && inside(column, width) && channel < room;
        from[i] = static_cast<I>(j) * Cfg::X_ROW + static_cast<I>(column) * Cfg::APART + channel;
      } else {
        const int plane = in_row / Shape::PITCH, column = left - Shape::LEAD + in_row % Shape::PITCH;
        present = present && inside(column, width) && plane < room;
        from[i] = (static_cast<I>(plane) * static_cast<I>(p.h) + j) * Cfg::X_ROW + column;
      }
      line[i] = present ? j : -1;
    }
  }

  /// Rows h .. of the input, the first at `row`, into `stage`; what lies outside 0 .. end is zeros, and `row` is then
  /// only a number.
  SL_DEVICE void start(const Bits<Cfg>* row, Bits<Cfg>* stage, int h, int end) const {
    SL_UNROLL
    for (int i = 0; i < Shape::TURNS; ++i) {
      const int copy = thread_id() + i * Cfg::THREADS;
      const bool present = line[i] >= 0 && inside(h + line[i], end);
      if (Shape::COPIES % Cfg::THREADS == 0 || i + 1 < Shape::TURNS || copy < Shape::COPIES) {
        copy_async<Cfg::CHUNK>(stage + copy * Shape::PER, row + from[i], present);
      }
    }
  }
};

/// The input columns of one thread in one row, raw.
template <class Cfg, int LAYOUT = Cfg::LAYOUT>
struct StageWindow {
  using Shape = StageShape<Cfg>;
  static constexpr int BYTES = Cfg::VEC * Shape::SIZE;
  Raw<BYTES> raw[Shape::SPAN];

  SL_DEVICE void load(const Bits<Cfg>* row, int lane, int tile) {
    const Bits<Cfg>* from = row + (tile * (Cfg::COLS * Cfg::STRIDE_W) * Cfg::LANES + lane) * Cfg::VEC;
    SL_UNROLL
    for (int i = 0; i < Shape::SPAN; ++i) raw[i] = load_raw<BYTES, false>(from + i * Shape::PIXEL);
  }
  SL_DEVICE float value(int i, int channel) const { return element<Cfg>(raw[i], channel); }
};
template <class Cfg>
struct StageWindow<Cfg, kNchw> {
  using Shape = StageShape<Cfg>;
  static constexpr int common(int a, int limit) { return limit > 1 && a % limit != 0 ? common(a, limit / 2) : limit; }
  static constexpr int VEC = common(Cfg::COLS * Cfg::STRIDE_W, common(Shape::PITCH, 16 / Shape::SIZE));
  static constexpr int BYTES = VEC * Shape::SIZE;
  static constexpr int SKIP = Shape::LEAD / VEC;  // whole vectors before the window
  static constexpr int VECTORS = (Shape::LEAD + Shape::SPAN + VEC - 1) / VEC - SKIP;
  Raw<BYTES> raw[VECTORS];

  SL_DEVICE void load(const Bits<Cfg>* row, int lane, int tile) {
    const Bits<Cfg>* from = row + lane * Shape::PITCH + tile * (Cfg::COLS * Cfg::STRIDE_W) + SKIP * VEC;
    SL_UNROLL
    for (int i = 0; i < VECTORS; ++i) raw[i] = load_raw<BYTES, false>(from + i * VEC);
  }
  SL_DEVICE float value(int i, int) const {
    constexpr int first = Shape::LEAD - SKIP * VEC;
    return element<Cfg>(raw[(first + i) / VEC], (first + i) % VEC);
  }
};

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_*; LANES, TILES (threads along channels or planes, and
/// along the row), COLS, VEC (NHWC: channels a thread), STAGES, CHUNK (bytes of a copy), LEAD (NCHW: columns that the
/// first copy of a line starts early), STORE (NCHW: columns a store), EVEN (COLS divides q), X_ROW, Y_ROW (elements
/// from one row of x or y to the next), APART (from one pixel to the next). One of DIL_H and STRIDE_H is 1.
/// div[0] = channel blocks (NHWC) or channels (NCHW), div[1] = column tiles, div[2] = strips, div[3] = DIL_H;
/// aux[0] = output rows of a strip.
template <class Cfg>
SL_DEVICE void dw_stage(const SlParams& p) {
  using I = Index<Cfg>;
  using Shape = StageShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC;
  constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, COLS = Cfg::COLS;
  constexpr int CHANNELS = Shape::CHANNELS, SLOTS = Shape::SLOTS, STAGES = Cfg::STAGES;
  // Leave out the sums of rows above the strip's first and below its last? Measured: it pays from 5x5 on, but at 7x7 in
  // NHWC the branches cost more registers than they save time.
  constexpr bool SKIP = R * S >= 25 && (!NHWC || R * S < 49);
  SL_DYNAMIC_SHARED(Bits<Cfg>, ring);

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
  const Bits<Cfg>* x = (NHWC ? x_at<Cfg>(p, rest, first_line) : x_at<Cfg>(p, 0, first_line)) +
                       static_cast<I>(top) * static_cast<I>(Cfg::X_ROW);
  int h = top;

  StageCopies<Cfg> copies;
  copies.aim(p, static_cast<int>(static_cast<long long>(q_tile) * SW - p.pad_left), lines - first_line);
  SL_UNROLL
  for (int i = 0; i < STAGES - 1; ++i) {
    if (i < steps) copies.start(x, ring + i * Shape::STAGE, h, end);
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

  Bits<Cfg>* const weights = ring + STAGES * Shape::STAGE;
  stage_channel_weights<Cfg, Cfg::LANES * CHANNELS>(p, weights, first_line, lines);
  barrier();
  float weight[R * S][CHANNELS];
  float bias[CHANNELS];
  if (active) {
    SL_UNROLL
    for (int i = 0; i < R * S; ++i) {
      SL_UNROLL
      for (int v = 0; v < CHANNELS; ++v) {
        weight[i][v] = Element<Cfg::DTYPE>::widen(weights[(lane * CHANNELS + v) * (R * S) + i]);
      }
    }
    I k = line;
    if constexpr (!NHWC) k = take(k, p.div[0]);
    SL_UNROLL
    for (int v = 0; v < CHANNELS; ++v) bias[v] = bias_of<Cfg>(p, k + v);
  }
  I y = NHWC ? y_offset<Cfg>(p, rest, line, p0, q0) : y_offset<Cfg>(p, 0, line, p0, q0);

  float sum[SLOTS][COLS][CHANNELS];  // slot d: the output row whose first input row came d steps ago
  SL_UNROLL
  for (int d = 0; d < SLOTS; ++d) {
    SL_UNROLL
    for (int t = 0; t < COLS; ++t) {
      SL_UNROLL
      for (int v = 0; v < CHANNELS; ++v) sum[d][t][v] = 0.0F;
    }
  }

  int slot = 0;
  SL_UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    copy_async_wait<STAGES - 2>();
    barrier();  // this step's rows are there, and the stage before it is free
    if (step + STAGES - 1 < steps) {
      const int free_slot = slot == 0 ? STAGES - 1 : slot - 1;
      copies.start(x, ring + free_slot * Shape::STAGE, h, end);
      x += static_cast<I>(Cfg::X_ROW) * Shape::STEP;
      h += Shape::STEP;
    }
    copy_async_commit();
    if (active) {
      SL_UNROLL
      for (int j = 0; j < Shape::FRESH; ++j) {
        StageWindow<Cfg> window;
        window.load(ring + slot * Shape::STAGE + j * Shape::ROW, lane, tile);
        float value[Shape::SPAN][CHANNELS];
        SL_UNROLL
        for (int i = 0; i < Shape::SPAN; ++i) {
          SL_UNROLL
          for (int v = 0; v < CHANNELS; ++v) value[i][v] = window.value(i, v);
        }
        // Every sum moves one slot on in the first addition to it, which costs nothing.
        SL_UNROLL
        for (int d = SLOTS - 1; d >= 0; --d) {
          if (d * SH + j < R && (!SKIP || (step >= d && step - d < rows))) {
            SL_UNROLL
            for (int s = 0; s < S; ++s) {
              SL_UNROLL
              for (int t = 0; t < COLS; ++t) {
                SL_UNROLL
                for (int v = 0; v < CHANNELS; ++v) {
                  const bool moves = j == 0 && s == 0;
                  const float before = !moves ? sum[d][t][v] : d > 0 ? sum[d > 0 ? d - 1 : 0][t][v] : bias[v];
                  sum[d][t][v] = sl::fma(value[t * SW + s * Cfg::DIL_W][v], weight[(d * SH + j) * S + s][v], before);
                }
              }
            }
          }
        }
      }
      if (step >= SLOTS - 1) {
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
          finish_row<Cfg, Cfg::STORE>(p, y, out, Cfg::EVEN != 0 ? COLS : limit);
        }
        y += static_cast<I>(Cfg::Y_ROW) * Cfg::DIL_H;
      }
    }
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }
}

}  // namespace sl
