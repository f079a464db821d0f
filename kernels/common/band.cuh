// One filter row as a banded matrix: B of a matrix instruction whose A holds a window of input columns for each of 16
// strips, and whose D is 8 neighbouring outputs of each.
#pragma once

#include "common/dtype.cuh"

namespace sl {

/// The words of B for one lane: column 8 i + 2 t (and the next) of the window against output g of a tile.
template <class Cfg>
struct Band {
  /// Whether words 2 step and 2 step + 1 hold a column that tile `tile` reads.
  SL_DEVICE static constexpr bool used(int tile, int step) {
    const int first = Cfg::LEAD + tile * 8 * Cfg::STRIDE_W;
    return first < step * 16 + 16 && first + 7 * Cfg::STRIDE_W + (Cfg::S - 1) * Cfg::DIL_W >= step * 16;
  }

  unsigned word[Cfg::TILES][Cfg::R][Cfg::WORDS];

  /// `w` = the R x S weights of one output channel; `shift` = columns from the window's start to tile 0's;
  /// `columns` of the window exist.
  SL_DEVICE void load(const Bits<Cfg>* w, int g, int t, int shift = 0, int columns = 8 * Cfg::WORDS) {
    SL_UNROLL
    for (int tile = 0; tile < Cfg::TILES; ++tile) {
      SL_UNROLL
      for (int i = 0; i < Cfg::WORDS; ++i) {
        int tap[2];
        bool there[2];
        SL_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int column = 8 * i + 2 * t + half;
          const int reach = column - shift - Cfg::LEAD - (tile * 8 + g) * Cfg::STRIDE_W;
          tap[half] = reach / Cfg::DIL_W;
          there[half] = reach >= 0 && reach % Cfg::DIL_W == 0 && tap[half] < Cfg::S && column < columns;
        }
        SL_UNROLL
        for (int r = 0; r < Cfg::R; ++r) {
          unsigned bits[2] = {0, 0};
          SL_UNROLL
          for (int half = 0; half < 2; ++half) {
            if (there[half]) bits[half] = load_raw<2, true>(w + r * Cfg::S + tap[half]).word[0];
          }
          word[tile][r][i] = bits[0] | (bits[1] << 16);
        }
      }
    }
  }
};

}  // namespace sl
