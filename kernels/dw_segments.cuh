// dw_segments: depthwise kernels too large for registers, in fp32 arithmetic. A thread keeps a row of outputs of one or
// two planes (or a tile of its columns) in registers; for every kernel row it reads one row of the input and one of the
// weights, four at a time. Which columns of the input exist is known to the compiler, which rows to the loop, so
// nothing is multiplied by padding. The pairs of an output row and a kernel row are dealt evenly to the threads; where
// several have a part of a row, their sums meet in shared memory.
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
  /// Columns of x that a block brings, and those that a tile may meet (EXACT: the row, else from the tile's first on).
  static constexpr int X_COLS = EXACT ? Cfg::W : (TILES * COLS - 1) * SW + S;
  static constexpr int SPAN = EXACT ? Cfg::W : (COLS - 1) * SW + S;
  static constexpr int QUADS = (COLS + 3) / 4;  // of a tile's sums in shared memory
  static constexpr int CODES = EXACT ? TILES : 1;

  /// The number of the plane of channel c and image i; back again.
  SL_DEVICE static constexpr int plane_of(int c, int i) { return i / SPREAD * GROUPS + c * SPREAD + i % SPREAD; }
  SL_DEVICE static constexpr int channel_of(int plane) { return plane % GROUPS / SPREAD; }
  SL_DEVICE static constexpr int image_of(int plane) { return plane / GROUPS * SPREAD + plane % SPREAD; }

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
  SegmentPlace<Cfg> at;
  I rest = static_cast<I>(block_id());
  at.c0 = take(rest, p.div[0]) * Cfg::CHANNELS;
  at.q0 = static_cast<int>(take(rest, p.div[1])) * (Cfg::TILES * Cfg::COLS);
  at.p0 = static_cast<int>(take(rest, p.div[2])) * (Cfg::STEP > 1 ? 1 : Cfg::ROWS);
  at.n0 = rest * Cfg::IMAGES;
  at.channels = p.c - at.c0 < Cfg::CHANNELS ? static_cast<int>(p.c - at.c0) : Cfg::CHANNELS;
  at.images = p.n - at.n0 < Cfg::IMAGES ? static_cast<int>(p.n - at.n0) : Cfg::IMAGES;
  const int first = at.p0 * Cfg::STRIDE_H - Cfg::PAD_TOP;
  const int end = first + (Cfg::ROWS - 1) * Cfg::STEP * Cfg::STRIDE_H + Cfg::R;
  at.top = first > 0 ? first : 0;
  at.rows = (end < Cfg::H ? end : Cfg::H) - at.top;
  return at;
}

/// body(unit, first, step) for UNITS units: as many threads side by side as there are units, and where there are more
/// threads, several share a unit's planes `first`, `first + step` ...
template <int UNITS, int THREADS, class Body>
SL_DEVICE void share_units(int thread, const Body& body) {
  constexpr int WIDE = UNITS < THREADS ? UNITS : THREADS, TOGETHER = THREADS / WIDE;
  if (thread >= WIDE * TOGETHER) return;
  SL_UNROLL_BY(1)
  for (int unit = thread % WIDE; unit < UNITS; unit += WIDE) body(unit, thread / WIDE, TOGETHER);
}

/// The block's rows of x, each plane by itself; zeros beside them where the compiler does not know the columns.
template <class Cfg>
SL_DEVICE void stage_planes(const SlParams& p, const SegmentPlace<Cfg>& at, float* xs) {
  using I = Index<Cfg>;
  using Shape = SegmentShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC;
  constexpr int N = Cfg::COPY, COLUMNS = Shape::X_COLS / N;
  constexpr int LANES = NHWC ? Cfg::CHANNELS : 1;  // neighbouring threads take neighbouring channels
  constexpr int LINES = NHWC ? Cfg::IMAGES : Shape::PLANES;
  const Bits<Cfg>* const x = x_at<Cfg>(p, at.n0, at.c0);
  const I image = static_cast<I>(p.c) * (Cfg::H * Cfg::W);
  const int left = Shape::EXACT ? 0 : at.q0 * Cfg::STRIDE_W - Cfg::PAD_LEFT;
  const int lane = thread_id() % LANES;
  if (lane >= at.channels) return;
  share_units<Cfg::X_ROWS * COLUMNS, Cfg::THREADS / LANES>(thread_id() / LANES, [&](int unit, int first, int step) {
    const int row = unit / COLUMNS, column = unit % COLUMNS * N;
    if (row >= at.rows) return;
    const bool present = Shape::EXACT || inside(left + column, Cfg::W);
    const I from = present ? pixel_offset<Cfg>(p, at.top + row, left + column) : 0;
    float* const to = xs + row * Cfg::X_PITCH + column;
    SL_UNROLL_BY(4)
    for (int i = first; i < LINES; i += step) {
      const int plane = NHWC ? Shape::plane_of(lane, i) : i;
      const int c = NHWC ? lane : Shape::channel_of(i), n = NHWC ? i : Shape::image_of(i);
      if (n >= at.images || c >= at.channels) continue;
      const I line = n * image + (NHWC ? static_cast<I>(c) : static_cast<I>(c) * (Cfg::H * Cfg::W));
      stage_floats<Cfg, N>(to + plane * Cfg::X_PLANE, x + (from + line), present);
    }
  });
}

template <class Cfg>
SL_DEVICE void stage_filters(const SlParams& p, const SegmentPlace<Cfg>& at, float* ws) {
  constexpr int TAPS = Cfg::R * Cfg::S;
  const auto* const w = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(at.c0) * TAPS;
  share_units<TAPS, Cfg::THREADS>(thread_id(), [&](int tap, int first, int step) {
    float* const to = ws + tap / Cfg::S * Cfg::W_PITCH + tap % Cfg::S;
    SL_UNROLL_BY(4)
    for (int c = first; c < Cfg::CHANNELS; c += step) {
      if (c < at.channels) stage_floats<Cfg, 1>(to + c * Cfg::W_PLANE, w + (c * TAPS + tap), true);
    }
  });
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

/// Adds the products of one row of x and one kernel row to the sums of a tile. Neighbouring products share the value of
/// x; FENCE keeps the compiler from mixing those of different columns.
template <class Cfg, int TILE>
SL_DEVICE void add_row(float (&sum)[Cfg::PER][Cfg::COLS], Shared x, Shared w, int never) {
  using Shape = SegmentShape<Cfg>;
  constexpr int PER = Cfg::PER, S = Cfg::S, TAPS = Shape::TAPS;
  SL_UNROLL
  for (int s0 = 0; s0 < S; s0 += TAPS) {
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

/// Adds up what the segments have of each output, finishes and stores it.
template <class Cfg>
SL_DEVICE void finish_rows(const SlParams& p, const SegmentPlace<Cfg>& at, Shared ys, const int* rows) {
  using I = Index<Cfg>;
  using Shape = SegmentShape<Cfg>;
  constexpr bool NHWC = Shape::NHWC;
  constexpr int QUADS = Shape::QUADS, ACROSS = Cfg::TILES * QUADS, N = Cfg::STORE;
  constexpr int LANES = NHWC ? Cfg::CHANNELS : 1, LINES = NHWC ? Cfg::IMAGES : Shape::PLANES;
  const int lane = thread_id() % LANES;
  share_units<Cfg::ROWS * ACROSS, Cfg::THREADS / LANES>(thread_id() / LANES, [&](int unit, int begin, int step) {
    const int i = unit / ACROSS, tile = unit % ACROSS / QUADS, quad = unit % QUADS;
    const int row = at.p0 + i * Cfg::STEP, column = at.q0 + tile * Cfg::COLS + quad * 4;
    if (row >= Cfg::P || column >= Cfg::Q) return;
    const int pair = rows[4 * i + 3], next = rows[4 * i + 7];
    const int first = pair / Cfg::CHUNK, end = next > pair ? (next - 1) / Cfg::CHUNK + 1 : first;  // segments
    SL_UNROLL_BY(1)
    for (int line = begin; line < LINES; line += step) {
      const int plane = NHWC ? Shape::plane_of(lane, line) : line;
      const int c = NHWC ? lane : Shape::channel_of(line), n = NHWC ? line : Shape::image_of(line);
      if (n >= at.images || c >= at.channels) continue;
      Shared from = ys + 4 * (plane * Cfg::Y_PLANE + (first + i) * Cfg::Y_ROW + (tile * QUADS + quad) * 4);
      float sum[4] = {0.0F, 0.0F, 0.0F, 0.0F};
      SL_UNROLL_BY(2)
      for (int segment = first; segment < end; ++segment, from = from + 4 * Cfg::Y_ROW) {
        float more[4];
        load_shared4(more, from);
        SL_UNROLL
        for (int j = 0; j < 4; ++j) sum[j] += more[j];
      }
      const I k = at.c0 + c;
      const float bias = bias_of<Cfg>(p, k);
      const I to = y_offset<Cfg>(p, at.n0 + n, k, row, column);
      SL_UNROLL
      for (int j = 0; j < 4; j += N) {
        if (quad * 4 + j >= Cfg::COLS || column + j >= Cfg::Q) continue;
        float out[N];
        SL_UNROLL
        for (int e = 0; e < N; ++e) {
          float value = sum[j + e];
          // Zeros beside a row were multiplied with weights.
          if (!Shape::EXACT && !finite(value)) {
            value = exact_sum<Cfg>(p, at.n0 + n, static_cast<int>(k), row, column + j + e);
          }
          out[e] = value + bias;
        }
        finish<Cfg, N>(p, to + j * (NHWC ? static_cast<I>(p.k) : 1), out);
      }
    }
  });
}

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* (1) MULT (1) CPG (1) WLAYOUT; H W P Q PAD_TOP
/// PAD_LEFT; CHANNELS x IMAGES planes a block, of which a thread computes PER (1, 2; images) at once; TILES tiles of
/// COLS columns a block. EXACT: those are a whole row, and the compiler knows which column of x meets which tap; else
/// zeros are staged beside the row (and COLS * STRIDE_W is a multiple of 4). ROWS output rows a block, STEP apart (1,
/// or the number of blocks of a plane); SEGMENTS of CHUNK pairs at most. FENCE (0, 1): see add_row. X_ROWS, X_PITCH,
/// X_PLANE, W_PITCH, W_PLANE, Y_ROW (a segment's part of a row), Y_PLANE: floats of shared memory; COPY, STORE =
/// elements (1 in NHWC). div[0] = channel blocks, div[1] = blocks along the row, div[2] = blocks of a plane.
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
  stage_planes<Cfg>(p, at, xs);
  stage_filters<Cfg>(p, at, ws);
  copy_async_commit();
  if (warp == 0) deal_rows<Cfg>(at, rows, owner);
  copy_async_wait<0>();
  barrier();

  // A scheduler has every fourth warp: with 2 or 4 tiles it runs the code of one or two.
  const int tile = warp % TILES, index = warp / TILES * 32 + lane;
  const int group = index % GROUPS, segment = index / GROUPS;
  const int pair = segment * Cfg::CHUNK, pairs = rows[4 * Cfg::ROWS + 3];
  if (pair < pairs) {
    const int left = Shape::EXACT ? 0 : tile * (Cfg::COLS * Cfg::STRIDE_W);
    SegmentPart<Cfg> part;
    part.rows = Shared(rows);
    part.x = Shared(xs + group * Cfg::X_PLANE + left);
    part.w = Shared(ws + group / Shape::SPREAD * Cfg::W_PLANE);
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

}  // namespace sl
