// What the parts of dw_band_nhwc agree on (kernels/dw_band_nhwc.cuh): the sizes of a block's tile, of its ring of input
// rows and of a staged output, and the steps that a block works through.
#pragma once

#include "common/index.cuh"
#include "common/spread.cuh"

namespace sl {

/// Cfg as of BandNhwc.
template <class Cfg>
struct BandNhwcShape {
  using I = Index<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DH = Cfg::DIL_H, DW = Cfg::DIL_W;
  static constexpr int CH = Cfg::CH, CW = Cfg::CW, L = Cfg::L, RG = Cfg::RG, HH = Cfg::HH, PI = Cfg::PI;
  static constexpr int OUT = 16 / CW;  // output columns of a strip
  static constexpr int CHUNK_PIXELS = 8 / CW;
  static constexpr int GROUPS = CH / CW;
  static constexpr int UNIT = L * SH;                                  // input rows of a unit of the ring
  static constexpr int WINDOW = (RG * L - 1) * SH + (R - 1) * DH + 1;  // input rows of a step
  static constexpr int FIRST_UNITS = (WINDOW + UNIT - 1) / UNIT;       // of a band's first step; then RG a step
  static constexpr int SKIP = FIRST_UNITS * UNIT - WINDOW;             // rows of a band's first unit that nobody reads
  static constexpr int AHEAD = Cfg::SLOTS - FIRST_UNITS;
  static_assert(AHEAD >= 0, "the ring holds a step");
  static constexpr int ROW_BYTES = Cfg::ROW_CHUNKS * 16, UNIT_BYTES = Cfg::UNIT_CHUNKS * 16;
  // The stage: words of two channels; with a residual, which is added before the one rounding, floats.
  static constexpr bool WIDE = Cfg::RESIDUAL != 0;
  static constexpr int STAGE_COLUMNS = HH * OUT;
  static constexpr int CHUNK = Cfg::CHUNK;  // kernel rows in registers, where not all fit; 0: all are

  /// Walks through a block's steps, which lie side by side: a band ends with its images or with the block's last step.
  struct Cursor {
    I step, end;  ///< of all steps of all image groups: the band's first one; where the block ends
    I n;
    int row, steps, images;  ///< the band's first output row and its steps; images that exist
    SL_DEVICE void decode(const SlParams& p) {
      I group = step;
      const int first = static_cast<int>(take(group, p.div[2])), whole = static_cast<int>(p.div[2].divisor);
      row = first * (RG * L);
      n = group * PI;
      images = PI > 1 && static_cast<I>(p.n) - n < PI ? static_cast<int>(static_cast<I>(p.n) - n) : PI;
      const I left = end - step;
      steps = left < static_cast<I>(whole - first) ? static_cast<int>(left) : whole - first;
    }
    SL_DEVICE bool valid() const { return step < end; }
    SL_DEVICE void next(const SlParams& p) {
      step += steps;
      if (valid()) decode(p);
    }
  };

  /// What a block computes: channels from k0 on, of output columns from q0 on, whose input begins with column `left`,
  /// in the steps from `start` on.
  struct Block {
    int k0, q0, left;
    Cursor start;
    SL_DEVICE explicit Block(const SlParams& p) {
      I number = static_cast<I>(block_id());
      k0 = static_cast<int>(take(number, p.div[0])) * CH;
      q0 = static_cast<int>(take(number, p.div[1])) * STAGE_COLUMNS;
      left = q0 * SW - static_cast<int>(p.pad_left);
      start.step = number * static_cast<I>(p.aux[0]);
      start.end = start.step + static_cast<I>(p.aux[0]);
      if (start.end > static_cast<I>(p.aux[1])) start.end = static_cast<I>(p.aux[1]);
      start.decode(p);
    }
  };

  /// Where chunk number `chunk` of a row lies, in chunks.
  SL_DEVICE static int chunk_at(int chunk) { return chunk ^ ((chunk >> 3) & Cfg::SWIZZLE); }

  /// Of 16 groups that are copied side by side 8 fill all banks: the other 8 keep the halves of their chunks the other
  /// way round, and their filters too.
  static constexpr int HALF_CHUNK = CHUNK_PIXELS / 2;
  SL_DEVICE static int flipped(int group) { return Cfg::GL > 8 ? over<8>(group) % 2 * HALF_CHUNK : 0; }
};

}  // namespace sl
