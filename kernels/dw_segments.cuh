// dw_segments: depthwise kernels too large for registers, in fp32 arithmetic. A thread keeps a row of outputs of one or
// two planes (or a tile of its columns) in registers; for every kernel row it reads one row of the input and one of the
// weights, four at a time. Which columns of the input exist is known to the compiler, which rows to the loop, so
// nothing is multiplied by padding. Where a warp's lanes are planes, each thread has whole rows. Elsewhere the pairs of
// an output row and a kernel row are dealt evenly to the threads; where several have a part of a row, their sums meet
// in shared memory.
#pragma once

#include "common/conv.cuh"
#include "common/exact.cuh"
#include "common/stage_floats.cuh"

namespace sl {

template <class Cfg>
struct SegmentShape {
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc, EXACT = Cfg::EXACT != 0;
  static constexpr int R = Cfg::R, S = Cfg::S, SW = Cfg::STRIDE_W, COLS = Cfg::COLS, TILES = Cfg::TILES;
  static constexpr int PLANES = Cfg::CHANNELS * Cfg::IMAGES;
  /// A thread computes PER planes, of images SPREAD apart; GROUPS threads have those of a block.
  static constexpr int SPREAD = Cfg::IMAGES / Cfg::PER, GROUPS = Cfg::CHANNELS * SPREAD;
  static constexpr int TAPS = S <= 32 ? S : 32;  // of a kernel row, in registers at a time
  /// Kernel rows too long to unroll are walked TAPS columns a turn, all alike: the weights beyond S are 0.
  static constexpr bool LONG = !EXACT && S > 128;
  static constexpr int W_COLS = LONG ? (S + TAPS - 1) / TAPS * TAPS : S;
  /// Columns of x that a block brings, and those that a tile may meet (EXACT: the row, else from the tile's first on).
  static constexpr int X_COLS = EXACT ? Cfg::W : (TILES * COLS - 1) * SW + W_COLS;
  static constexpr int SPAN = EXACT ? Cfg::W : (COLS - 1) * SW + (LONG ? TAPS : S);
  static constexpr int QUADS = (COLS + 3) / 4;  // of a tile's sums in shared memory
  static constexpr int CODES = EXACT ? TILES : 1;

  /// The number of the plane of channel c and image i.
  SL_DEVICE static constexpr int plane_of(int c, int i) { return i / SPREAD * GROUPS + c * SPREAD + i % SPREAD; }

  /// The kernel column under which output t of a tile meets column i of x (of the tile's span); beyond S: none.
  SL_DEVICE static constexpr int tap(int tile, int i, int t) {
    const int s = i - t * SW - (EXACT ? tile * COLS * SW - Cfg::PAD_LEFT : 0);
    return s < 0 || i >= SPAN || (EXACT && tile * COLS + t >= Cfg::Q) ? S : s;
  }
  /// Whether some output of the tile meets one of the columns i to i + 3 under kernel columns s to s + TAPS - 1.
  SL_DEVICE static constexpr bool meets(int tile, int i, int s) {
    for (int j = i; j < i + 4; ++j) {
      for (int t = 0; t < COLS; ++t) {
        if (tap(tile, j, t) >= s && tap(tile, j, t) < s + TAPS && tap(tile, j, t) < S) return true;
      }
    }
    return false;
  }
};

/// The block's place: its first channel and image, its first output row and column.
template <class Cfg>
struct SegmentPlace {
  Index<Cfg> c0, n0;
  int channels, images;  // that exist
  int p0, q0;
  int top, rows;  // input rows in shared memory
};

template <class Cfg>
SL_DEVICE SegmentPlace<Cfg> segment_place(const SlParams& p) {
  using I = Index<Cfg>;
  constexpr int CHANNEL_BLOCKS = (Cfg::C + Cfg::CHANNELS - 1) / Cfg::CHANNELS;
  constexpr int ACROSS = (Cfg::Q + Cfg::TILES * Cfg::COLS - 1) / (Cfg::TILES * Cfg::COLS);
  constexpr int DOWN = Cfg::STEP > 1 ? Cfg::STEP : (Cfg::P + Cfg::ROWS - 1) / Cfg::ROWS;
  SegmentPlace<Cfg> at;
  const auto block = static_cast<unsigned>(block_id());
  at.c0 = static_cast<I>(block % CHANNEL_BLOCKS * Cfg::CHANNELS);
  at.q0 = static_cast<int>(block / CHANNEL_BLOCKS % ACROSS) * (Cfg::TILES * Cfg::COLS);
  at.p0 = static_cast<int>(block / (CHANNEL_BLOCKS * ACROSS) % DOWN) * (Cfg::STEP > 1 ? 1 : Cfg::ROWS);
  at.n0 = static_cast<I>(block / (CHANNEL_BLOCKS * ACROSS) / DOWN) * Cfg::IMAGES;
  at.channels = Cfg::C - at.c0 < Cfg::CHANNELS ? static_cast<int>(Cfg::C - at.c0) : Cfg::CHANNELS;
  at.images = p.n - at.n0 < Cfg::IMAGES ? static_cast<int>(p.n - at.n0) : Cfg::IMAGES;
  const int first = at.p0 * Cfg::STRIDE_H - Cfg::PAD_TOP;
  const int end = first + (Cfg::ROWS - 1) * Cfg::STEP * Cfg::STRIDE_H + Cfg::R;
  at.top = first > 0 ? first : 0;
  at.rows = (end < Cfg::H ? end : Cfg::H) - at.top;
  return at;
}

/// UNITS units dealt to THREADS threads: WIDE side by side, and where there are more threads than units, TOGETHER share
/// a unit's images.
template <int UNITS, int THREADS>
struct Sharing {
  static constexpr int WIDE = UNITS < THREADS ? UNITS : THREADS, TOGETHER = THREADS / WIDE;
  /// body(unit, first): the unit's images first, first + TOGETHER ... are this thread's.
  template <class Body>
  SL_DEVICE static void each(int thread, const Body& body) {
    if (thread >= WIDE * TOGETHER) return;
    SL_UNROLL_BY(1)
    for (int unit = thread % WIDE; unit < UNITS; unit += WIDE) body(unit, TOGETHER > 1 ? thread / WIDE : 0);
  }
};

/// The block's rows of x, each plane by itself; zeros beside them where the compiler does not know the columns. A
/// thread works out one address for several columns (NHWC) of all its images: the others lie constants away.
template <class Cfg, int THREADS>
SL_DEVICE void stage_planes(const SlParams& p, const SegmentPlace<Cfg>& at, float* xs) {
  using I = Index<Cfg>;
  using Shape = SegmentShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC;
  constexpr int N = Cfg::COPY, COLUMNS = Shape::X_COLS / N, H = Cfg::H, W = Cfg::W;
  constexpr int PAIR = Cfg::PAIR, LANES = NHWC ? Cfg::CHANNELS / PAIR : 1;  // neighbours take neighbouring channels
  constexpr int PIXEL = NHWC ? Cfg::C : 1, CHANNEL = NHWC ? 1 : H * W;      // elements from one to the next
  constexpr long long IMAGE = static_cast<long long>(Cfg::C) * (H * W);
  constexpr int PHASES = NHWC && COLUMNS > 4 ? 4 : COLUMNS, TURNS = (COLUMNS + PHASES - 1) / PHASES;
  using Share = Sharing<(NHWC ? 1 : Cfg::CHANNELS) * Cfg::X_ROWS * PHASES, THREADS / LANES>;
  constexpr int IMAGES = (Cfg::IMAGES + Share::TOGETHER - 1) / Share::TOGETHER;  // of a thread
  constexpr int J = TURNS < 16 ? TURNS : 8, K = 16 / J < IMAGES ? 16 / J : IMAGES;
  const Bits<Cfg>* const x =
      static_cast<const Bits<Cfg>*>(p.x) + (at.n0 * static_cast<I>(IMAGE) + at.c0 * static_cast<I>(CHANNEL));
  const int left = Shape::EXACT ? 0 : at.q0 * Cfg::STRIDE_W - Cfg::PAD_LEFT;
  Share::each(thread_id() / LANES, [&](int unit, int first) {
    const int c = NHWC ? thread_id() % LANES * PAIR : unit / (Cfg::X_ROWS * PHASES);
    const int row = unit / PHASES % Cfg::X_ROWS, column = unit % PHASES * N;
    if (row >= at.rows || c >= at.channels) return;
    const Bits<Cfg>* const from = x + (static_cast<I>((at.top + row) * W + left + column) * PIXEL + c * CHANNEL);
    const Shared to(xs + c * Shape::SPREAD * Cfg::X_PLANE + row * Cfg::X_PITCH + column);
    SL_UNROLL_BY(IMAGES * TURNS <= 64 ? IMAGES : 1)
    for (int k = 0; k < IMAGES; k += K) {
      SL_UNROLL_BY(IMAGES * TURNS <= 64 ? TURNS : 1)
      for (int j = 0; j < TURNS; j += J) {
        stage_batch<Cfg, N * PAIR, PAIR == 1 ? 1 : Shape::SPREAD * Cfg::X_PLANE, J * K>([&](int b) -> Staging<Cfg> {
          const int i = first + (k + b / J) * Share::TOGETHER, right = (j + b % J) * PHASES * N;
          const bool present = Shape::EXACT || inside(left + column + right, W);
          return {to + 4 * (Shape::plane_of(0, i) * Cfg::X_PLANE + right),
                  present ? from + (i * IMAGE + right * PIXEL) : x,
                  i < at.images && (TURNS == 1 || column + right < Shape::X_COLS), present};
        });
      }
    }
  });
}

template <class Cfg, int THREADS>
SL_DEVICE void stage_filters(const SlParams& p, const SegmentPlace<Cfg>& at, float* ws) {
  constexpr int TAPS = Cfg::R * Cfg::S, COLUMNS = SegmentShape<Cfg>::W_COLS, PLACES = Cfg::R * COLUMNS;
  constexpr int C = Cfg::CHANNELS < 8 ? Cfg::CHANNELS : 8, TURNS = (PLACES + THREADS - 1) / THREADS;
  constexpr int J = 8 / C < TURNS ? 8 / C : TURNS;
  const auto* const w = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(at.c0) * TAPS;
  SL_UNROLL_BY(1)
  for (int j = 0; j < TURNS; j += J) {
    SL_UNROLL_BY(1)
    for (int c0 = 0; c0 < Cfg::CHANNELS; c0 += C) {
      stage_batch<Cfg, 1, 1, J * C>([&](int b) -> Staging<Cfg> {
        const int i = thread_id() + (j + b / C) * THREADS, row = i / COLUMNS, column = i % COLUMNS, c = c0 + b % C;
        const bool present = COLUMNS == Cfg::S || column < Cfg::S;
        return {Shared(ws + c * Cfg::W_PLANE + row * Cfg::W_PITCH + column),
                w + (present ? c * TAPS + row * Cfg::S + column : 0), i < PLACES && c < at.channels, present};
      });
    }
  }
}

/// The pairs of an output row and a kernel row that meets a row of x, one output row after the other, are cut into
/// segments of CHUNK, a thread each. Leaves for every output row, in `rows`: where its first row of x is, where its
/// first and the end of its kernel rows are (in bytes), and how many pairs come before; in `owner`: the row in which a
/// segment begins. By one warp.
template <class Cfg>
SL_DEVICE void deal_rows(const SegmentPlace<Cfg>& at, int* rows, int* owner) {
  const int lane = thread_id() % 32;
  int before = 0;
  SL_UNROLL_BY(1)
  for (int base = 0; base <= Cfg::ROWS; base += 32) {
    const int i = base + lane, row = at.p0 + i * Cfg::STEP, top = row * Cfg::STRIDE_H - Cfg::PAD_TOP;
    const int begin = top < 0 ? -top : 0, end = Cfg::H - top < Cfg::R ? Cfg::H - top : Cfg::R;
    const int count = i < Cfg::ROWS && row < Cfg::P && end > begin ? end - begin : 0;
    int upto = count;
    SL_UNROLL
    for (int delta = 1; delta < 32; delta *= 2) {
      const int other = static_cast<int>(shuffle_up(static_cast<unsigned>(upto), delta));
      if (lane >= delta) upto += other;
    }
    upto += before;
    if (i <= Cfg::ROWS) {
      int* const to = rows + 4 * i;
      to[0] = (top + begin - at.top) * (4 * Cfg::X_PITCH);
      to[1] = begin * (4 * Cfg::W_PITCH);
      to[2] = end * (4 * Cfg::W_PITCH);
      to[3] = upto - count;
      const int after = (upto + Cfg::CHUNK - 1) / Cfg::CHUNK;
      for (int j = (upto - count + Cfg::CHUNK - 1) / Cfg::CHUNK; j < after; ++j) owner[j] = i;
    }
    before = static_cast<int>(shuffle(static_cast<unsigned>(upto), 31));
  }
}

/// Adds the products of one row of x and TAPS columns of one kernel row, from s0 on, to the sums of a tile.
/// Neighbouring products share the value of x; FENCE keeps the compiler from mixing those of different columns.
template <class Cfg, int TILE>
SL_DEVICE void add_taps(float (&sum)[Cfg::PER][Cfg::COLS], Shared x, Shared w, int s0, int never) {
  using Shape = SegmentShape<Cfg>;
  constexpr int PER = Cfg::PER, S = Cfg::S, TAPS = Shape::TAPS;
  float weight[(TAPS + 3) / 4][4], value[2][PER][4];
  SL_UNROLL
  for (int s = 0; s < TAPS && s0 + s < S; s += 4) load_shared4(weight[s / 4], w + 4 * (s0 + s));
  const auto load = [&](int i) {
    if (!Shape::meets(TILE, i, s0)) return;
    SL_UNROLL
    for (int e = 0; e < PER; ++e) load_shared4(value[i / 4 % 2][e], x + 4 * (i + e * Shape::GROUPS * Cfg::X_PLANE));
  };
  load(0);
  SL_UNROLL
  for (int i = 0; i < Shape::SPAN; i += 4) {
    load(i + 4);
    if (!Shape::meets(TILE, i, s0)) continue;
    if (Cfg::FENCE != 0) fence_code(never & (1 << (i / 4 % 31)));
    SL_UNROLL
    for (int e = 0; e < PER; ++e) {
      SL_UNROLL
      for (int j = 0; j < 4; ++j) {
        SL_UNROLL
        for (int t = 0; t < Cfg::COLS; ++t) {
          const int s = Shape::tap(TILE, i + j, t) - s0;
          if (s < 0 || s >= TAPS || s0 + s >= S) continue;
          sum[e][t] = sl::fma(value[i / 4 % 2][e][j], weight[s / 4][s % 4], sum[e][t]);
        }
      }
    }
  }
}

/// The same for all of the kernel row.
template <class Cfg, int TILE>
SL_DEVICE void add_row(float (&sum)[Cfg::PER][Cfg::COLS], Shared x, Shared w, int never) {
  using Shape = SegmentShape<Cfg>;
  if constexpr (Shape::LONG) {
    SL_UNROLL_BY(1)
    for (int s0 = 0; s0 < Shape::W_COLS; s0 += Shape::TAPS) {
      add_taps<Cfg, TILE>(sum, x + 4 * s0, w + 4 * s0, 0, never);
    }
  } else {
    SL_UNROLL
    for (int s0 = 0; s0 < Cfg::S; s0 += Shape::TAPS) add_taps<Cfg, TILE>(sum, x, w, s0, never);
  }
}

/// Writes the sums that a segment has of a row, and clears them.
template <class Cfg>
SL_DEVICE void put_row(float (&sum)[Cfg::PER][Cfg::COLS], Shared to) {
  SL_UNROLL
  for (int e = 0; e < Cfg::PER; ++e) {
    SL_UNROLL
    for (int t = 0; t < Cfg::COLS; t += 4) {
      const auto bits = [&](int j) { return float_bits(sum[e][t + j < Cfg::COLS ? t + j : t]); };
      store_shared4(to + (e * SegmentShape<Cfg>::GROUPS * Cfg::Y_PLANE + t) * 4, bits(0), bits(1), bits(2), bits(3));
    }
    SL_UNROLL
    for (int t = 0; t < Cfg::COLS; ++t) sum[e][t] = 0.0F;
  }
}

/// A thread's part of the block: places in shared memory, of its planes already, and its segment.
template <class Cfg>
struct SegmentPart {
  Shared rows, x, w, y;
  int row, pair, end;  // the row that it begins in, its pairs
  int never;           // 0, which the compiler cannot know
};

/// The sums of a segment, written row by row.
template <class Cfg, int TILE = 0>
SL_DEVICE void add_rows(const SegmentPart<Cfg>& part, int tile) {
  using Shape = SegmentShape<Cfg>;
  if constexpr (TILE + 1 < Shape::CODES) {
    if (tile != TILE) return add_rows<Cfg, TILE + 1>(part, tile);
  }
  float sum[Cfg::PER][Cfg::COLS];
  SL_UNROLL
  for (int e = 0; e < Cfg::PER * Cfg::COLS; ++e) sum[e / Cfg::COLS][e % Cfg::COLS] = 0.0F;
  Shared row = part.rows + 16 * part.row, y = part.y + part.row * (4 * Cfg::Y_ROW);
  float is[4];  // ints
  load_shared4(is, row);
  const auto at = [&](int j) { return static_cast<int>(float_bits(is[j])); };
  const int late = part.pair - at(3);
  Shared x = part.x + (at(0) + late * (4 * Cfg::X_PITCH)), w = part.w + (at(1) + late * (4 * Cfg::W_PITCH));
  Shared stop = part.w + at(2);
  // Lanes change rows at different times; a condition within the loop, not an exit, keeps them together.
  SL_UNROLL_BY(1)
  for (int left = part.end - part.pair; left > 0; --left) {
    if (w.at == stop.at) {  // on to the next output row
      put_row<Cfg>(sum, y);
      y = y + 4 * Cfg::Y_ROW;
      row = row + 16;
      load_shared4(is, row);
      x = part.x + at(0), w = part.w + at(1), stop = part.w + at(2);
    }
    add_row<Cfg, TILE>(sum, x, w, part.never);
    x = x + 4 * Cfg::X_PITCH;
    w = w + 4 * Cfg::W_PITCH;
  }
  put_row<Cfg>(sum, y);
}

/// Adds up what the segments have of each output, finishes and stores it: 4 columns of BATCH images at once.
template <class Cfg>
SL_DEVICE void finish_rows(const SlParams& p, const SegmentPlace<Cfg>& at, Shared ys, const int* rows) {
  using I = Index<Cfg>;
  using Shape = SegmentShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC;
  constexpr int QUADS = Shape::QUADS, ACROSS = Cfg::TILES * QUADS, N = Cfg::STORE, PIXEL = NHWC ? Cfg::K : 1;
  constexpr int PAIR = Cfg::PAIR, LANES = NHWC ? Cfg::CHANNELS / PAIR : 1, UNITS = Cfg::ROWS * ACROSS;
  constexpr int EACH = NHWC ? PAIR : N;  // outputs of a store: channels, or columns
  constexpr long long IMAGE = static_cast<long long>(Cfg::K) * Cfg::P * Cfg::Q;
  using Share = Sharing<(NHWC ? 1 : Cfg::CHANNELS) * UNITS, Cfg::THREADS / LANES>;
  constexpr int TURNS = (Cfg::IMAGES + Share::TOGETHER - 1) / Share::TOGETHER;
  constexpr int BATCH = !Shape::EXACT ? 1 : TURNS < 4 ? TURNS : 4;
  Share::each(thread_id() / LANES, [&](int unit, int begin) {
    const int c = NHWC ? thread_id() % LANES * PAIR : unit / UNITS;
    const int i = unit / ACROSS % Cfg::ROWS, tile = unit % ACROSS / QUADS, quad = unit % QUADS;
    const int row = at.p0 + i * Cfg::STEP, column = at.q0 + tile * Cfg::COLS + quad * 4;
    if (row >= Cfg::P || column >= Cfg::Q || c >= at.channels) return;
    const int pair = rows[4 * i + 3], next = rows[4 * i + 7];
    const int first = pair / Cfg::CHUNK, end = next > pair ? (next - 1) / Cfg::CHUNK + 1 : first;  // segments
    const Shared from =
        ys + 4 * (c * Shape::SPREAD * Cfg::Y_PLANE + (first + i) * Cfg::Y_ROW + (tile * QUADS + quad) * 4);
    const I k = at.c0 + c;
    float bias[PAIR];
    SL_UNROLL
    for (int d = 0; d < PAIR; ++d) bias[d] = bias_of<Cfg>(p, k + d);
    const I to = y_offset<Cfg>(p, at.n0, k, row, column);
    SL_UNROLL_BY(1)
    for (int turn = 0; turn < TURNS; turn += BATCH) {
      const int image = begin + turn * Share::TOGETHER;
      if (image >= at.images) break;
      float sum[BATCH][PAIR][4];
      SL_UNROLL
      for (int e = 0; e < 4 * PAIR * BATCH; ++e) sum[e / (4 * PAIR)][e / 4 % PAIR][e % 4] = 0.0F;
      Shared part = from;
      SL_UNROLL_BY(1)
      for (int segment = first; segment < end; ++segment, part = part + 4 * Cfg::Y_ROW) {
        SL_UNROLL
        for (int e = 0; e < BATCH * PAIR; ++e) {
          const int n = image + e / PAIR * Share::TOGETHER;
          const int plane = Shape::plane_of(e % PAIR, n < Cfg::IMAGES ? n : image);
          float more[4];
          load_shared4(more, part + 4 * plane * Cfg::Y_PLANE);
          SL_UNROLL
          for (int j = 0; j < 4; ++j) sum[e / PAIR][e % PAIR][j] += more[j];
        }
      }
      SL_UNROLL
      for (int e = 0; e < BATCH; ++e) {
        const int n = image + e * Share::TOGETHER;
        if (n >= at.images) continue;
        SL_UNROLL
        for (int j = 0; j < 4; j += N) {
          if (quad * 4 + j >= Cfg::COLS || column + j >= Cfg::Q) continue;
          float out[EACH];
          SL_UNROLL
          for (int d = 0; d < EACH; ++d) {
            const int channel = NHWC ? d : 0, right = NHWC ? j : j + d;
            float value = sum[e][channel][right];
            // Zeros beside a row were multiplied with weights.
            if (!Shape::EXACT && !finite(value)) {
              value = exact_sum<Cfg>(p, at.n0 + n, static_cast<int>(k) + channel, row, column + right);
            }
            out[d] = value + bias[channel];
          }
          finish<Cfg, EACH>(p, to + static_cast<I>(n * IMAGE) + j * PIXEL, out);
        }
      }
    }
  });
}

/// Finishes and stores a row of a tile from the sums of one thread.
template <class Cfg, int TILE>
SL_DEVICE void store_row(const SlParams& p, const SegmentPlace<Cfg>& at, int group, int row, int tile,
                         const float (&sum)[Cfg::PER][Cfg::COLS]) {
  using I = Index<Cfg>;
  using Shape = SegmentShape<Cfg>;
  constexpr int N = Cfg::STORE, PIXEL = Shape::NHWC ? Cfg::K : 1;
  constexpr long long IMAGE = static_cast<long long>(Cfg::K) * Cfg::P * Cfg::Q;
  const int c = group / Shape::SPREAD, column = at.q0 + tile * Cfg::COLS;
  if (c >= at.channels) return;
  const I k = at.c0 + c;
  const float bias = bias_of<Cfg>(p, k);
  const I to = y_offset<Cfg>(p, at.n0 + group % Shape::SPREAD, k, row, column);
  SL_UNROLL
  for (int e = 0; e < Cfg::PER; ++e) {
    const int n = group % Shape::SPREAD + e * Shape::SPREAD;
    if (n >= at.images) continue;
    SL_UNROLL
    for (int t = 0; t < Cfg::COLS; t += N) {
      if (Shape::EXACT ? TILE * Cfg::COLS + t >= Cfg::Q : column + t >= Cfg::Q) continue;
      float out[N];
      SL_UNROLL
      for (int d = 0; d < N; ++d) {
        float value = sum[e][t + d];
        if (!Shape::EXACT && !finite(value)) {
          value = exact_sum<Cfg>(p, at.n0 + n, static_cast<int>(k), row, column + t + d);
        }
        out[d] = value + bias;
      }
      finish<Cfg, N>(p, to + static_cast<I>(e * Shape::SPREAD * IMAGE) + t * PIXEL, out);
    }
  }
}

/// Where the lanes of a warp are 32 planes (or twice as many), they share a row, and a thread computes whole ones: rows
/// `slot`, `slot + SLOTS` ... of the block. Nothing is shared among threads, nothing differs among lanes.
template <class Cfg, int TILE = 0>
SL_DEVICE void whole_rows(const SlParams& p, const SegmentPlace<Cfg>& at, Shared x, Shared w, int group, int slot,
                          int tile, int never) {
  using Shape = SegmentShape<Cfg>;
  constexpr int SLOTS = Cfg::THREADS / 32 / Cfg::TILES;
  if constexpr (TILE + 1 < Shape::CODES) {
    if (tile != TILE) return whole_rows<Cfg, TILE + 1>(p, at, x, w, group, slot, tile, never);
  }
  SL_UNROLL_BY(1)
  for (int i = slot; i < Cfg::ROWS; i += SLOTS) {
    const int row = at.p0 + i * Cfg::STEP, top = row * Cfg::STRIDE_H - Cfg::PAD_TOP;
    if (row >= Cfg::P) break;
    const int begin = top < 0 ? -top : 0, end = Cfg::H - top < Cfg::R ? Cfg::H - top : Cfg::R;
    float sum[Cfg::PER][Cfg::COLS];
    SL_UNROLL
    for (int e = 0; e < Cfg::PER * Cfg::COLS; ++e) sum[e / Cfg::COLS][e % Cfg::COLS] = 0.0F;
    Shared x_row = x + (top + begin - at.top) * (4 * Cfg::X_PITCH), w_row = w + begin * (4 * Cfg::W_PITCH);
    SL_UNROLL_BY(1)
    for (int left = end - begin; left > 0; --left) {
      add_row<Cfg, TILE>(sum, x_row, w_row, never);
      x_row = x_row + 4 * Cfg::X_PITCH;
      w_row = w_row + 4 * Cfg::W_PITCH;
    }
    store_row<Cfg, TILE>(p, at, group, row, tile, sum);
  }
}

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* (1) MULT (1) CPG (1) WLAYOUT; C H W K P Q PAD_TOP
/// PAD_LEFT; CHANNELS x IMAGES planes a block, of which a thread computes PER (1, 2; images) at once; TILES tiles of
/// COLS columns a block. EXACT: those are a whole row, and the compiler knows which column of x meets which tap; else
/// zeros are staged beside the row (and COLS * STRIDE_W is a multiple of 4). ROWS output rows a block, STEP apart (1,
/// or the number of blocks of a plane); WHOLE (0, 1): CHUNK of them a thread, whose warp has planes only; else SEGMENTS
/// of CHUNK pairs at most. FENCE (0, 1): see add_taps. X_ROWS, X_PITCH, X_PLANE, W_PITCH, W_PLANE, Y_ROW (a segment's
/// part of a row), Y_PLANE: floats of shared memory; COPY, STORE = elements (1 in NHWC), PAIR = channels a copy and a
/// store (NHWC; else 1).
template <class Cfg>
SL_DEVICE void dw_segments(const SlParams& p) {
  using Shape = SegmentShape<Cfg>;
  constexpr int TILES = Cfg::TILES, GROUPS = Shape::GROUPS;
  SL_DYNAMIC_SHARED(float, xs);                         // [plane][row][column]
  float* const ws = xs + Shape::PLANES * Cfg::X_PLANE;  // [channel][row][column]
  float* const ys = ws + Cfg::CHANNELS * Cfg::W_PLANE;  // [plane][segment + row][tile][column]
  int* const rows = reinterpret_cast<int*>(ys + Shape::PLANES * Cfg::Y_PLANE);
  int* const owner = rows + 4 * (Cfg::ROWS + 1);

  const SegmentPlace<Cfg> at = segment_place<Cfg>(p);
  const int warp = thread_id() / 32, lane = thread_id() % 32;
  // One warp of several deals the rows while the others bring the planes.
  constexpr bool WHOLE = Cfg::WHOLE != 0;
  constexpr int STAGERS = WHOLE || Cfg::THREADS < 128 ? Cfg::THREADS : Cfg::THREADS - 32;
  if (thread_id() < STAGERS) {
    stage_planes<Cfg, STAGERS>(p, at, xs);
    stage_filters<Cfg, STAGERS>(p, at, ws);
  }
  copy_async_commit();
  if (!WHOLE && warp == Cfg::THREADS / 32 - 1) deal_rows<Cfg>(at, rows, owner);
  copy_async_wait<0>();
  barrier();

  // A scheduler has every fourth warp: with 2 or 4 tiles it runs the code of one or two.
  const int tile = warp % TILES, index = warp / TILES * 32 + lane, group = index % GROUPS;
  const int left = Shape::EXACT ? 0 : tile * (Cfg::COLS * Cfg::STRIDE_W);
  const Shared x(xs + group * Cfg::X_PLANE + left), w(ws + group / Shape::SPREAD * Cfg::W_PLANE);
  if constexpr (WHOLE) {
    whole_rows<Cfg>(p, at, x, w, group, warp / TILES, tile, at.images >> 30);
  } else {
    // Segments of few planes go to the warps in turn: neighbouring lanes then meet fewer rows in the same bank.
    constexpr bool APART = GROUPS < 8 && 32 % GROUPS == 0;
    const int segment = APART ? lane / GROUPS * (Cfg::THREADS / 32 / TILES) + warp / TILES : index / GROUPS;
    const int pair = segment * Cfg::CHUNK, pairs = rows[4 * Cfg::ROWS + 3];
    if (pair < pairs) {
      SegmentPart<Cfg> part;
      part.rows = Shared(rows);
      part.x = x;
      part.w = w;
      part.y = Shared(ys + group * Cfg::Y_PLANE + segment * Cfg::Y_ROW + tile * (4 * Shape::QUADS));
      part.row = owner[segment];
      part.pair = pair;
      part.end = pair + Cfg::CHUNK < pairs ? pair + Cfg::CHUNK : pairs;
      part.never = pairs >> 30;
      add_rows<Cfg>(part, tile);
    }
    barrier();
    finish_rows<Cfg>(p, at, Shared(ys), rows);
  }
}

}  // namespace sl
