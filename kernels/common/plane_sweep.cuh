// How the threads of a block, or the lanes of a warp, are spread over what small planes are made of.
#pragma once

#include "common/index.cuh"

namespace sl {

constexpr int power_of_two_below(int v) { return v < 2 ? 1 : 2 * power_of_two_below(v / 2); }

/// A block over SLOTS pieces of each of CHANNELS planes of some images: what depends on the slot is computed once, and
/// the planes of an image that a thread goes on to are STEP apart.
template <int SLOTS, int CHANNELS, int THREADS>
struct PlaneSweep {
  static constexpr int LANES = SLOTS < THREADS ? SLOTS : THREADS, AT_ONCE = power_of_two_below(THREADS / LANES);
  static constexpr int STEP = AT_ONCE < CHANNELS ? AT_ONCE : CHANNELS, IMAGE_STEP = AT_ONCE / STEP;

  /// move(prepare(slot), image, first channel) for every image below `images`.
  template <class Prepare, class Move>
  SL_DEVICE static void run(int images, const Prepare& prepare, const Move& move) {
    const unsigned thread = static_cast<unsigned>(thread_id());
    const int abreast = static_cast<int>(thread / LANES);
    if (abreast >= AT_ONCE) return;
    SL_UNROLL_BY(1)
    for (unsigned slot = thread % LANES; slot < SLOTS; slot += LANES) {
      const auto place = prepare(slot);
      SL_UNROLL_BY(1)
      for (int image = abreast / STEP; image < images; image += IMAGE_STEP) move(place, image, abreast % STEP);
    }
  }
};

/// A warp over LINES lines of VECTORS vectors: move(prepare(vector, line)) where that is `there`.
template <int VECTORS, int LINES, class Prepare, class Move>
SL_DEVICE void warp_sweep(const Prepare& prepare, const Move& move) {
  constexpr int WIDE = VECTORS < 32 ? VECTORS : 32, AT_ONCE = 32 / WIDE, SEGMENTS = (VECTORS + 31) / 32;
  constexpr int TURNS = (LINES + AT_ONCE - 1) / AT_ONCE * SEGMENTS;
  const unsigned lane = static_cast<unsigned>(thread_id()) % 32;
  const int first = static_cast<int>(lane % WIDE), line0 = static_cast<int>(lane / WIDE);
  if (line0 >= AT_ONCE) return;
  SL_UNROLL_BY(TURNS < 9 ? TURNS : 4)
  for (int turn = 0; turn < TURNS; ++turn) {
    const int vector = first + turn % SEGMENTS * 32, line = line0 + turn / SEGMENTS * AT_ONCE;
    const auto place = prepare(vector, line);
    if (place.there && (VECTORS % WIDE == 0 || vector < VECTORS) && line < LINES) move(place);
  }
}

/// A block over ACROSS octets of channels x pairs of pixels of lines of COLUMNS pixels: where a thread stands in a
/// turn.
template <int COLUMNS, int ACROSS, int THREADS>
struct PixelLines {
  static constexpr int WIDE = ACROSS * ((COLUMNS + 1) / 2), LANES = WIDE < THREADS ? WIDE : THREADS;
  static constexpr int SEGMENTS = (WIDE + LANES - 1) / LANES, AT_ONCE = THREADS / LANES;
  static constexpr int turns(int lines) { return (lines * SEGMENTS + AT_ONCE - 1) / AT_ONCE; }
  unsigned line;  ///< may lie beyond the last
  int octet, column;
  bool there;
  SL_DEVICE explicit PixelLines(int turn) {
    const unsigned thread = static_cast<unsigned>(thread_id());
    const unsigned number = thread / LANES + static_cast<unsigned>(turn * AT_ONCE);
    const unsigned item = thread % LANES + number % SEGMENTS * LANES;
    line = number / SEGMENTS;
    octet = static_cast<int>(item % ACROSS), column = static_cast<int>(item / ACROSS * 2);
    there = (LANES * AT_ONCE == THREADS || thread < static_cast<unsigned>(LANES * AT_ONCE)) &&
            (WIDE % LANES == 0 || item < static_cast<unsigned>(WIDE));
  }
};

}  // namespace sl
