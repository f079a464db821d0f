// dw_fold: planes folded in the middle, NCHW. A warp has PLANES whole planes to itself, in shared memory as they lie in
// memory, and waits for no other warp. Lanes 0 to 15 walk from the planes' first rows down, lanes 16 to 31 from their
// last rows up, with the kernel upside down: so all of them meet the border, the middle and the end in the same step,
// and leave out together the sums that would be of padding or of the other half.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// Shapes of one warp's work. Folded row i is row i of the plane for the upper lanes, row H - 1 - i for the lower.
template <class Cfg>
struct FoldShape {
  static constexpr int R = Cfg::R, S = Cfg::S, H = Cfg::H, W = Cfg::W, P = Cfg::P, Q = Cfg::Q;
  static constexpr int COLS = Cfg::COLS, TILES = Q / COLS, PLANES = Cfg::PLANES;
  static constexpr int PER = 4;                       // elements of 16 bytes
  static constexpr int HALF = P / 2;                  // output rows of a lane
  static constexpr int REACH = R - 1 - Cfg::PAD_TOP;  // input rows that an output reads beyond its own
  static constexpr int STEPS = HALF + REACH;          // input rows of a lane
  /// Rows FULL .. TAIL - 1 add to R outputs; those before and after them to fewer.
  static constexpr int FULL = REACH, TAIL = HALF - Cfg::PAD_TOP > FULL ? HALF - Cfg::PAD_TOP : FULL;

  /// Columns are read VEC at a time, the first read LEAD columns before the window, so that each is aligned and lies
  /// wholly inside the row or wholly outside.
  static constexpr int common(int a, int limit) { return limit > 1 && a % limit != 0 ? common(a, limit / 2) : limit; }
  static constexpr int VEC = common(COLS, common(W, PER));
  static constexpr int LEAD = (VEC - Cfg::PAD_LEFT % VEC) % VEC;
  static constexpr int READS = (LEAD + COLS + S - 1 + VEC - 1) / VEC;
  static constexpr int FIRST = -Cfg::PAD_LEFT - LEAD;  // column of the first tile's first read
  /// Does read v lie before the row in the first tile, behind it in the last? In the only one, where it is not.
  static constexpr bool before(int v) { return FIRST + v * VEC < 0; }
  static constexpr bool behind(int v) { return FIRST + v * VEC + (TILES - 1) * COLS >= W; }
  static constexpr bool exists(int v) { return TILES > 1 || !(before(v) || behind(v)); }
  static constexpr int first_behind(int v) { return v < READS && !behind(v) ? first_behind(v + 1) : v; }
  static constexpr int BEHIND = first_behind(0);
  static constexpr int LEFT_ZEROS = -FIRST, RIGHT_ZEROS = (READS - BEHIND) * VEC;
  static constexpr int ZEROS =  // elements, of both sides the more
      TILES == 1 ? 0 : ((LEFT_ZEROS > RIGHT_ZEROS ? LEFT_ZEROS : RIGHT_ZEROS) + PER - 1) / PER * PER;
  static_assert(ZEROS <= 32);

  /// A plane is fetched from both its ends in pieces of 16 bytes, 16 of each end a turn.
  static constexpr int PIECES = H * W / PER, UPPER = (PIECES + 1) / 2, LOWER = PIECES / 2, TURNS = (UPPER + 15) / 16;
  /// Chunk c of the folded rows, CHUNK rows, is waited for at once; so many turns bring the first c chunks.
  static constexpr int CHUNKS = 4, CHUNK = (HALF + CHUNKS - 1) / CHUNKS;
  static constexpr int turns_for(int c) {
    const int pieces = (c * CHUNK * W + PER - 1) / PER;
    return c == CHUNKS || pieces > LOWER ? TURNS : (pieces + 15) / 16;
  }

  /// Whether every folded row is there when its chunk is. (The host device copies at once and would not notice.)
  static constexpr bool in_time() {
    for (int i = 0; i < STEPS; ++i) {
      const int turns = turns_for(i / CHUNK < CHUNKS ? i / CHUNK + 1 : CHUNKS);
      if (turns < TURNS && 16 * turns * PER < (i + 1) * W) return false;
    }
    return true;
  }

  /// Results leave in runs of so many rows that a run is a multiple of 16 bytes.
  static constexpr int ROWS = Q % PER == 0 ? 1 : 2, RUN = ROWS * Q;
  static constexpr int STORES = (PLANES * RUN / PER + 15) / 16;  // of a lane

  static constexpr int X = PLANES * Cfg::PITCH, WEIGHTS = PLANES * R * S, STAGE = PLANES * Cfg::STAGE_PLANE;
  static constexpr int WARP =
      ZEROS + X + ((WEIGHTS > STAGE ? WEIGHTS : STAGE) + PER - 1) / PER * PER;  // elements of a warp
};

/// Folded rows BEGIN .. END - 1, and what is known of the sums that they add to: slot d holds output row i + PAD_TOP -
/// d.
template <class Cfg, int BEGIN, int END>
struct FoldRows {
  static constexpr int first = BEGIN + Cfg::PAD_TOP, last = END - 1 + Cfg::PAD_TOP, HALF = FoldShape<Cfg>::HALF;
  static constexpr bool head = END <= FoldShape<Cfg>::FULL, tail = BEGIN >= FoldShape<Cfg>::TAIL;
  static constexpr bool sure(int d) { return first - d >= 0 && last - d < HALF; }
  static constexpr bool never(int d) { return last - d < 0 || first - d >= HALF; }
};

/// What a lane is: `half` 0 walks down, 1 up; `tile` of the columns of plane `plane`, if `active`.
struct FoldLane {
  int half, place, tile, plane;
  bool active;
};
template <class Cfg>
SL_DEVICE FoldLane fold_lane() {
  constexpr int TILES = FoldShape<Cfg>::TILES, PLANES = Cfg::PLANES;
  const int lane = thread_id() % 32, place = lane % 16;
  FoldLane is{lane / 16, place, place % TILES, place / TILES, true};
  if constexpr (TILES * PLANES < 16) {
    is.active = place < TILES * PLANES;
    if (!is.active) is.plane = PLANES - 1;
  }
  return is;
}

/// Turns FROM .. END - 1 of fetching the planes at x. In both halves of the warp the pieces of a lane lie 16 apart in
/// ascending order, so that all but the first are constants away.
template <class Cfg, int FROM, int END, bool ALL>
SL_DEVICE void fetch_turns(Bits<Cfg>* xs, const Bits<Cfg>* x, const FoldLane& is, int room) {
  using Shape = FoldShape<Cfg>;
  constexpr int PER = Shape::PER;
  const int first = is.place + (is.half != 0 ? Shape::PIECES - 16 * END : 16 * FROM);
  const Bits<Cfg>* from = x + first * PER;
  const Shared to = keep(Shared(xs) + first * 16);
  SL_UNROLL
  for (int g = 0; g < Shape::PLANES; ++g) {
    from = keep(g > 0 ? from + Shape::H * Shape::W : from);
    SL_UNROLL
    for (int i = 0; i < END - FROM; ++i) {
      const bool upper = 16 * (FROM + i + 1) <= Shape::UPPER || first + 16 * i < Shape::UPPER;
      const bool lower = 16 * (END - i) <= Shape::LOWER || first + 16 * i >= Shape::UPPER;
      if ((ALL || g < room) && (is.half != 0 ? lower : upper)) {
        copy_async<16>(to + (g * Cfg::PITCH + 16 * i * PER) * 4, from + 16 * i * PER);
      }
    }
  }
}
/// All turns, the copies of a chunk in one group.
template <class Cfg, bool ALL, int CHUNK = 0>
SL_DEVICE void fetch_planes(Bits<Cfg>* xs, const Bits<Cfg>* x, const FoldLane& is, int room) {
  using Shape = FoldShape<Cfg>;
  if constexpr (CHUNK < Shape::CHUNKS) {
    constexpr int FROM = CHUNK == 0 ? 0 : Shape::turns_for(CHUNK), END = Shape::turns_for(CHUNK + 1);
    fetch_turns<Cfg, FROM, END, ALL>(xs, x, is, room);
    copy_async_commit();
    fetch_planes<Cfg, ALL, CHUNK + 1>(xs, x, is, room);
  }
}

/// The weights of PLANES planes from channel c0 on as they lie in memory.
template <class Cfg>
SL_DEVICE void fetch_fold_weights(const SlParams& p, Bits<Cfg>* to, Index<Cfg> c0) {
  constexpr int PER = Cfg::W_BYTES / 4, TAPS = Cfg::R * Cfg::S, WEIGHTS = FoldShape<Cfg>::WEIGHTS;
  SL_UNROLL
  for (int i = 0; i < WEIGHTS; i += 32 * PER) {
    const int at = i + thread_id() % 32 * PER;
    if (at < WEIGHTS) {
      Index<Cfg> c = c0 + at / TAPS;
      c = take(c, p.div[0]);
      const long long from = static_cast<long long>(c) * TAPS + at % TAPS;
      copy_async<Cfg::W_BYTES>(to + at, static_cast<const Bits<Cfg>*>(p.weight) + from);
    }
  }
}

/// Results on their way: a row of each half of each plane goes to the stage, and a run of ROWS of them to y, 16 bytes a
/// store.
template <class Cfg>
struct FoldResults {
  using Shape = FoldShape<Cfg>;
  using I = Index<Cfg>;
  static constexpr int PER = Shape::PER, ROWS = Shape::ROWS, Q = Cfg::Q, COLS = Cfg::COLS, VEC = Shape::VEC;
  Bits<Cfg>* put;
  const Bits<Cfg>* got[Shape::STORES];
  int to[Shape::STORES];  // elements from y's run of the first plane, or -1
  I y;
  int step;
  bool lower, active;

  SL_DEVICE void aim(Bits<Cfg>* stage, const FoldLane& is, I first, int room) {
    lower = is.half != 0, active = is.active;
    put = stage + is.plane * Cfg::STAGE_PLANE + is.tile * COLS;
    SL_UNROLL
    for (int k = 0; k < Shape::STORES; ++k) {
      const int unit = is.place + 16 * k, plane = unit / (Shape::RUN / PER), at = unit % (Shape::RUN / PER) * PER;
      to[k] = plane < room ? plane * (Cfg::P * Q) + (lower ? (Cfg::P - ROWS) * Q : 0) + at : -1;
      got[k] = stage + plane * Cfg::STAGE_PLANE + (lower ? Cfg::STAGE_HALF : 0) + at;
    }
    y = first * (Cfg::P * Q);
    step = lower ? -Shape::RUN : Shape::RUN;
  }

  /// Output row `row` of the half is complete.
  SL_DEVICE void store(const SlParams& p, const float (&sum)[COLS], int row) {
    // Of an odd number of rows in pairs the last one's neighbour is the other half's: one run, which the upper half
    // stores.
    const bool alone = ROWS > 1 && Shape::HALF % 2 != 0 && row == Shape::HALF - 1;
    const int upper_at = ROWS > 1 ? row % 2 * Q : 0;
    const int lower_at = alone ? Q : Cfg::STAGE_HALF + (ROWS > 1 ? (1 - row % 2) * Q : 0);
    Bits<Cfg>* const here = put + (lower ? lower_at : upper_at);
    if (active) {
      SL_UNROLL
      for (int t = 0; t < COLS; t += VEC) {
        Raw<4 * VEC> raw;
        SL_UNROLL
        for (int e = 0; e < VEC; ++e) raw.word[e] = float_bits(sum[t + e]);
        store_raw<4 * VEC>(here + t, raw);
      }
    }
    if (ROWS > 1 && row % 2 == 0 && !alone) return;
    warp_sync();
    SL_UNROLL
    for (int k = 0; k < Shape::STORES; ++k) {
      if (to[k] < 0 || (alone && lower)) continue;
      const Raw<16> raw = load_raw<16, false>(got[k]);
      float part[PER];
      SL_UNROLL
      for (int e = 0; e < PER; ++e) part[e] = float_from_bits(raw.word[e]);
      finish<Cfg, PER>(p, y + to[k], part);
    }
    y += step;
  }
};

/// Where a lane reads its window of a row. What lies before the row in the first tile, or behind it in the last, is
/// read from zeros instead: that costs an address each, and no test.
template <class Cfg>
struct FoldReads {
  using Shape = FoldShape<Cfg>;
  const Bits<Cfg>*row, *left, *right;
  int step, left_step, right_step;

  /// `zeros`: FoldShape::ZEROS elements.
  SL_DEVICE void aim(const Bits<Cfg>* xs, const Bits<Cfg>* zeros, const FoldLane& is) {
    row = xs +
          (is.plane * Cfg::PITCH + (is.half != 0 ? (Shape::H - 1) * Shape::W : 0) + is.tile * Cfg::COLS + Shape::FIRST);
    step = is.half != 0 ? -Shape::W : Shape::W;
    const bool first = is.tile == 0, last = is.tile + 1 == Shape::TILES;
    left = first ? zeros : row;
    left_step = first ? 0 : step;
    right = last ? zeros - Shape::BEHIND * Shape::VEC : row;
    right_step = last ? 0 : step;
  }
  SL_DEVICE const Bits<Cfg>* of(int v) const {
    return Shape::TILES == 1 ? row : Shape::before(v) ? left : Shape::behind(v) ? right : row;
  }
  SL_DEVICE void next() { row += step, left += left_step, right += right_step; }
};

/// What a lane adds up: weights (of the lower half upside down), the columns of a row, and R rows of sums: slot d is
/// the output row whose first input row came d steps ago.
template <class Cfg>
struct FoldSums {
  using Shape = FoldShape<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, COLS = Cfg::COLS, VEC = Shape::VEC, READS = Shape::READS;
  float weight[R * S], sum[R][COLS], bias;
  Raw<4 * VEC> raw[READS];

  SL_DEVICE void start(const Bits<Cfg>* weights, const FoldLane& is, float b) {
    SL_UNROLL
    for (int r = 0; r < R; ++r) {
      const Bits<Cfg>* const row = weights + is.plane * (R * S) + (is.half != 0 ? R - 1 - r : r) * S;
      SL_UNROLL
      for (int s = 0; s < S; ++s) weight[r * S + s] = Element<Cfg::DTYPE>::widen(row[s]);
    }
    bias = b;
    SL_UNROLL
    for (int d = 0; d < R; ++d) {
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) sum[d][t] = b;
    }
  }

  SL_DEVICE void load(const FoldReads<Cfg>& from) {
    SL_UNROLL
    for (int v = 0; v < READS; ++v) {
      if (Shape::exists(v)) raw[v] = load_raw<4 * VEC, false>(from.of(v) + v * VEC);
    }
  }

  /// Adds folded row i, one of Rows.
  template <class Rows>
  SL_DEVICE void add(int i) {
    SL_UNROLL
    for (int d = R - 1; d >= 0; --d) {
      if (Rows::never(d)) continue;
      const bool wanted = Rows::sure(d) || inside(i + Cfg::PAD_TOP - d, Shape::HALF);
      if (Rows::tail && !wanted) break;  // beyond the last output row, and so are the slots that follow
      if (!wanted) continue;
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) {
        // Every sum moves one slot on in the first addition to it, which costs nothing.
        float next = d > 0 ? sum[d > 0 ? d - 1 : 0][t] : bias;
        SL_UNROLL
        for (int s = 0; s < S; ++s) {
          const int at = Shape::LEAD + t + s;
          if (Shape::exists(at / VEC)) next = sl::fma(element<Cfg>(raw[at / VEC], at % VEC), weight[d * S + s], next);
        }
        // Among branches the compiler would put these additions off until the end, and save their sums for that.
        if (Rows::tail && d == R - 1) {
          next = float_from_bits(static_cast<unsigned>(keep(static_cast<int>(float_bits(next)))));
        }
        sum[d][t] = next;
      }
    }
  }
};

/// Cfg: DTYPE (f32) LAYOUT (NCHW) BIAS ACT RESIDUAL INDEX64 R S (no stride, no dilation) H W P Q PAD_TOP (also at the
/// bottom) PAD_LEFT; PLANES a warp, COLS outputs along the row a lane, PITCH (elements from one plane to the next in
/// shared memory), STAGE_HALF and STAGE_PLANE (the same from the upper half's results to the lower's, and from one
/// plane's to the next), W_BYTES (of a copy of weights), UNROLLED (the rows that add to fewer than R outputs).
/// div[0] = channels.
template <class Cfg>
SL_DEVICE void dw_fold(const SlParams& p) {
  using I = Index<Cfg>;
  using Shape = FoldShape<Cfg>;
  constexpr int FULL = Shape::FULL, TAIL = Shape::TAIL, STEPS = Shape::STEPS;
  static_assert(Shape::in_time());
  SL_DYNAMIC_SHARED(Bits<Cfg>, shared);
  const int warp = thread_id() / 32;
  Bits<Cfg>* const zeros = shared + warp * Shape::WARP;
  Bits<Cfg>* const xs = zeros + Shape::ZEROS;
  Bits<Cfg>* const stage = xs + Shape::X;  // holds the weights until all lanes have them

  const I first = (static_cast<I>(block_id()) * (Cfg::THREADS / 32) + warp) * Shape::PLANES;
  const I planes = static_cast<I>(p.n) * static_cast<I>(p.c);
  if (first >= planes) return;
  const int room = static_cast<int>(planes - first < Shape::PLANES ? planes - first : Shape::PLANES);
  const FoldLane is = fold_lane<Cfg>();

  I channel = first;
  channel = take(channel, p.div[0]);
  fetch_fold_weights<Cfg>(p, stage, channel);
  const Bits<Cfg>* const x = static_cast<const Bits<Cfg>*>(p.x) + first * (Shape::H * Shape::W);
  if (room == Shape::PLANES) {
    fetch_planes<Cfg, true>(xs, x, is, room);
  } else {
    fetch_planes<Cfg, false>(xs, x, is, room);
  }
  channel += is.plane;
  const float bias = bias_of<Cfg>(p, take(channel, p.div[0]));

  FoldResults<Cfg> results;
  results.aim(stage, is, first, room);
  if (thread_id() % 32 < Shape::ZEROS) zeros[thread_id() % 32] = 0;
  copy_async_wait<Shape::CHUNKS - 1>();
  copy_async_commit();  // of nothing: the same number of groups is always on its way
  warp_sync();
  FoldSums<Cfg> sums;
  sums.start(stage, is, bias);

  FoldReads<Cfg> reads;
  reads.aim(xs, zeros, is);
  int due = Shape::CHUNK;
  const auto walk = [&](int i, auto rows) {
    using Rows = decltype(rows);
    if (i == due) {
      copy_async_wait<Shape::CHUNKS - 1>();
      copy_async_commit();
      due += Shape::CHUNK;
    }
    warp_sync();  // what other lanes copied is there, and what they read of the stage may be overwritten
    sums.load(reads);
    reads.next();
    sums.template add<Rows>(i);
    if (!Rows::head) results.store(p, sums.sum[Cfg::R - 1], i - FULL);
  };
  SL_UNROLL_BY(Cfg::UNROLLED != 0 ? FULL : 1)
  for (int i = 0; i < FULL; ++i) walk(i, FoldRows<Cfg, 0, FULL>{});
  SL_UNROLL_BY(1)
  for (int i = FULL; i < TAIL; ++i) walk(i, FoldRows<Cfg, FULL, TAIL>{});
  SL_UNROLL_BY(Cfg::UNROLLED != 0 ? STEPS - TAIL : 1)
  for (int i = TAIL; i < STEPS; ++i) walk(i, FoldRows<Cfg, TAIL, STEPS>{});
}

}  // namespace sl
