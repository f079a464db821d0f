// Words of K on the four lanes t of a matrix fragment, at offsets from a place that are known when the kernel is
// compiled: lanes' words lie apart in few ways (patterns), a register each, and all else of an address is a constant.
#pragma once

#include "common/platform.cuh"

namespace sl {

/// Words::offset_of(i): of word i, 4 bytes each. QUADS of four words.
template <class Words, int QUADS>
struct WordSteps {
  struct Patterns {
    int of[QUADS];
  };
  SL_DEVICE static constexpr Patterns find_patterns() {
    Patterns patterns{};
    int step[QUADS][4] = {};  // from a quad's first word to its others
    for (int m = 0; m < QUADS; ++m) {
      for (int t = 1; t < 4; ++t) step[m][t] = Words::offset_of(4 * m + t) - Words::offset_of(4 * m);
      int other = 0;
      while (step[other][1] != step[m][1] || step[other][2] != step[m][2] || step[other][3] != step[m][3]) ++other;
      patterns.of[m] = other;
    }
    return patterns;
  }
  /// The first quad whose lanes' words lie as far from each other as those of quad m.
  SL_DEVICE static int pattern_of(int m) {
    constexpr Patterns patterns = find_patterns();
    return patterns.of[m];
  }

  int bytes[QUADS];  ///< from the first word of a quad to this lane's, one a pattern

  SL_DEVICE void find(int lane) {
    const int t = lane % 4;
    SL_UNROLL
    for (int m = 0; m < QUADS; ++m) {
      if (pattern_of(m) != m) continue;
      const int from = Words::offset_of(4 * m), to1 = Words::offset_of(4 * m + 1) - from;
      const int to2 = Words::offset_of(4 * m + 2) - from, to3 = Words::offset_of(4 * m + 3) - from;
      bytes[m] = keep(4 * (t == 0 ? 0 : t == 1 ? to1 : t == 2 ? to2 : to3));
    }
  }
  /// This lane's word of a quad lies as far from base[pattern_of(quad)] as the quad's first from `first`.
  SL_DEVICE void start(Shared first, Shared (&base)[QUADS]) const {
    SL_UNROLL
    for (int m = 0; m < QUADS; ++m) base[m] = pattern_of(m) == m ? first + bytes[m] : first;
  }
};

}  // namespace sl
