// Filter rows as banded matrices: what dw_band_rows multiplies the rows of planes by (kernels/dw_band_rows.cuh).
#pragma once

#include "common/conv.cuh"
#include "common/dtype.cuh"
#include "common/index.cuh"

namespace sl {

/// Zeros into `bytes` (a multiple of 16) of shared memory, by the whole block.
template <int THREADS>
SL_DEVICE void clear_block(Shared first, int bytes) {
  SL_UNROLL_BY(4)
  for (int i = thread_id() * 16; i < bytes; i += THREADS * 16) clear_shared(first + i);
}

/// The filters of a block's channels. Cfg as of BandRows.
template <class Cfg>
struct BandFilters {
  static constexpr int R = Cfg::R, S = Cfg::S, G = Cfg::GROUPS, C = Cfg::CHUNKS, KS = Cfg::SPLIT;
  static constexpr int CHANNELS = Cfg::CHANNELS, THREADS = Cfg::THREADS, TILES_Q = (Cfg::Q + 7) / 8;
  // Filter rows of a warp; where several warps share them, so many that the residue of its first row is 0.
  static constexpr int ROWS = KS == 1 ? R : ((R + KS - 1) / KS + G - 1) / G * G;

  // Tap s of chunk c against tile q is s = 8 (c - q) + 2 t - g + SHIFT: c - q from FIRST on, WORDS of them.
  static constexpr int SHIFT = Cfg::LEFT - Cfg::LEAD;
  static constexpr int floor8(int v) { return v >= 0 ? v / 8 : -((7 - v) / 8); }
  static constexpr int FIRST = -floor8(SHIFT + 7), WORDS = floor8(S + 6 - SHIFT) - FIRST + 1;
  // A filter row between zeros, of which the next row shares those behind it: elements before its taps, and behind.
  static constexpr int START = 7 - 8 * FIRST - SHIFT, REST = 8 * WORDS + 8 - START - S;
  static constexpr int ROW = (S + (START > REST ? START : REST) + 1) / 2 * 2;
  static constexpr int ROW_BYTES = 2 * ROW, CHANNEL_ROWS = KS * ROWS;
  // The second copy is one element ahead, and lies half the banks further.
  static constexpr bool KEEP = Cfg::KEEP != 0, BARE = Cfg::STREAM != 0 && KEEP;  // no filters in shared memory
  static constexpr int COPY = BARE ? 0 : (CHANNELS * CHANNEL_ROWS * ROW_BYTES + 16 * WORDS + 16 + 127) / 128 * 128 + 64;
  static constexpr int BYTES = 2 * COPY;
  static constexpr int AT_ONCE = THREADS / 32 / KS;                                 // channels that warps take at once
  static constexpr int KEPT = KEEP && CHANNELS > AT_ONCE ? CHANNELS / AT_ONCE : 1;  // channels of a warp

  const SlParams& p;
  const Shared at;
  int channel0 = 0, channels = 0;  ///< the first; that exist

  using Band = unsigned[WORDS];         ///< this lane's words under one filter row
  using Bands = Band[KEEP ? ROWS : 1];  ///< under all filter rows of a warp

  /// Chunks [first_chunk, end_chunk) meet tile q.
  static constexpr int first_chunk(int q) { return q + FIRST > 0 ? q + FIRST : 0; }
  static constexpr int end_chunk(int q) { return q + FIRST + WORDS < C ? q + FIRST + WORDS : C; }
  /// Whether some tile meets the word's chunk.
  static constexpr bool used(int word) {
    for (int q = 0; q < TILES_Q; ++q) {
      if (q + FIRST + word >= first_chunk(q) && q + FIRST + word < end_chunk(q)) return true;
    }
    return false;
  }

  // The filters lie in shared memory as rows of taps between zeros, twice, so that every word of a band matrix is an
  // aligned word. ABREAST threads bring one piece of a row.
  static constexpr int ABREAST = S <= 8 ? 8 : S <= 16 ? 16 : 32, PIECES = (S + 31) / 32;  // of a filter row
  static constexpr int PIECES_AT_ONCE = THREADS / ABREAST, ALL_PIECES = CHANNELS * R * PIECES;
  struct TapBatch {
    static constexpr int ALL = (ALL_PIECES + PIECES_AT_ONCE - 1) / PIECES_AT_ONCE, COUNT = ALL < 32 ? ALL : 16;
    Bits<Cfg> tap[COUNT];
  };
  struct Tap {
    int row, s;
    bool there;
  };
  SL_DEVICE Tap tap(int turn) const {
    const int piece = thread_id() / ABREAST + turn * PIECES_AT_ONCE;
    Tap t{piece / PIECES, piece % PIECES * 32 + thread_id() % ABREAST, false};
    t.there = t.row < channels * R && t.s < S;
    return t;
  }
  SL_DEVICE void fetch(TapBatch& batch, int turn) const {
    const Bits<Cfg>* from = static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(channel0) * (R * S);
    SL_UNROLL
    for (int b = 0; b < TapBatch::COUNT; ++b) {
      const Tap t = tap(turn + b);
      batch.tap[b] = t.there ? load_readonly(from + (t.row * S + t.s)) : static_cast<Bits<Cfg>>(0);
    }
  }
  SL_DEVICE void put(const TapBatch& batch, int turn) const {
    SL_UNROLL
    for (int b = 0; b < TapBatch::COUNT; ++b) {
      const Tap t = tap(turn + b);
      const int row = CHANNEL_ROWS == R ? t.row : t.row / R * CHANNEL_ROWS + t.row % R;
      const Shared to = at + (row * ROW_BYTES + (START + t.s) * 2);
      if (t.there) store_shared_half(to, batch.tap[b]);
      if (t.there) store_shared_half(to + (COPY - 2), batch.tap[b]);
    }
  }

  /// Filters on their way into shared memory, after `between`, which ends with a barrier.
  template <class Between>
  SL_DEVICE void load(const Between& between) const {
    TapBatch some;
    fetch(some, 0);
    clear_block<THREADS>(at, BYTES);
    between();
    put(some, 0);
    if constexpr (TapBatch::ALL > TapBatch::COUNT) {
      SL_UNROLL_BY(1)
      for (int turn = TapBatch::COUNT; turn < TapBatch::ALL; turn += TapBatch::COUNT) {
        fetch(some, turn);
        put(some, turn);
      }
    }
  }

  SL_DEVICE static void words(Band& band, Shared filter, int row) {
    SL_UNROLL
    for (int i = 0; i < WORDS; ++i) band[i] = used(i) ? load_shared(filter + (row * ROW_BYTES + 16 * i)) : 0;
  }
  /// Where this lane finds its words of the band matrices of `channel`, from filter row `row` on.
  SL_DEVICE Shared of(int channel, int row) const {
    const int lane = thread_id() % 32, ahead = 7 - lane / 4 + 2 * (lane % 4);
    return at + ((channel * CHANNEL_ROWS + row) * ROW_BYTES + ahead % 2 * COPY + ahead / 2 * 4);
  }

  /// The band matrices of a warp's channels, of which unit number n is of channel n % KEPT.
  using Kept = Bands[KEPT];
  SL_DEVICE void keep(Kept& kept, int share) const {
    SL_UNROLL
    for (int i = 0; i < KEPT; ++i) {
      const int channel = (thread_id() / 32 / KS + i * AT_ONCE) % CHANNELS;
      SL_UNROLL
      for (int r = 0; KEEP && r < ROWS; ++r) words(kept[i][r], of(channel, share * ROWS), r);
    }
  }

  /// keep() straight from memory. Taps beyond the filter are read where there is one, and masked: no branches.
  SL_DEVICE void fetch(Kept& kept) const {
    const int lane = thread_id() % 32, s0 = lane % 4 * 2 - lane / 4 + SHIFT;
    SL_UNROLL
    for (int i = 0; i < KEPT; ++i) {
      const int mine = (thread_id() / 32 + i * AT_ONCE) % CHANNELS;
      const int channel = Cfg::WHOLE != 0 || mine < channels ? mine : 0;
      const Bits<Cfg>* const from =
          static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(channel0 + channel) * (R * S);
      SL_UNROLL
      for (int word = 0; word < WORDS; ++word) {
        if (!used(word)) continue;
        const int s = s0 + 8 * (FIRST + word);
        const Bits<Cfg>* const low = from + (inside(s, S) ? s : 0);
        const Bits<Cfg>* const high = from + (inside(s + 1, S) ? s + 1 : 0);
        const unsigned mask = (inside(s, S) ? 0xffffU : 0U) | (inside(s + 1, S) ? 0xffff0000U : 0U);
        SL_UNROLL
        for (int r = 0; KEEP && r < ROWS; ++r) {
          const unsigned left = load_readonly(low + r * S), right = load_readonly(high + r * S);
          kept[i][r][word] = permute_bytes(left, right, 0x5410U) & mask;
        }
      }
    }
  }
};

}  // namespace sl
