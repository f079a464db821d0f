// One-row bands of dw_band_nhwc (kernels/dw_band_nhwc.cuh) on their way through registers: a thread loads 8 channels of
// 4 neighbouring pixels, which are, as they lie, the four pairs' words of a chunk each, and stores those.
#pragma once

#include "common/band_nhwc_shape.cuh"
#include "common/conv.cuh"

namespace sl {

/// The input of a block's next step. Cfg as of BandNhwc, with HELD = 1: CW = 2, LOAD = 16, one output row, one kernel
/// row, one image a step.
template <class Cfg>
struct BandNhwcHeld : BandNhwcShape<Cfg> {
  using Shape = BandNhwcShape<Cfg>;
  using Shape::CH;
  using typename Shape::I, typename Shape::Cursor, typename Shape::Block;
  static constexpr int VECTORS = CH / 8, FOURS = (Cfg::CHUNKS + 3) / 4;  // of chunks
  static constexpr int ITEMS = FOURS * 4 * VECTORS, TURNS = (ITEMS + Cfg::THREADS - 1) / Cfg::THREADS;

  const SlParams& p;
  const Shared memory;
  const int k0, left;  ///< first channel; input column that the tile begins with
  Cursor coming;       ///< of the step loaded next
  Raw<16> held[TURNS][4];

  SL_DEVICE BandNhwcHeld(const SlParams& params, const Block& block, Shared first)
      : p(params), memory(first), k0(block.k0), left(block.left), coming(block.start) {}

  /// 8 neighbouring lanes store 4 chunks of 2 vectors, whose groups are an odd number of chunks apart: no bank twice.
  struct Item {
    int vector, chunk;
    bool there;
    SL_DEVICE explicit Item(int turn) {
      const int i = turn * Cfg::THREADS + thread_id();
      vector = rest<2>(i) + rest<VECTORS / 2>(over<8>(i)) * 2;
      chunk = rest<4>(over<2>(i)) + over<VECTORS / 2>(over<8>(i)) * 4;
      there = i < ITEMS && chunk < Cfg::CHUNKS;
    }
  };

  /// Asks for the next step's input; false where there is none.
  SL_DEVICE bool ask() {
    if (!coming.valid()) return false;
    const int h = coming.row * Cfg::STRIDE_H - static_cast<int>(p.pad_top);
    const bool row_there = inside(h, static_cast<int>(p.h));
    const I row = (coming.n * static_cast<I>(p.h) + h) * static_cast<I>(p.w);
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      const Item item(turn);
      const int column = left + item.chunk * 4, k = k0 + item.vector * 8;
      const bool there = row_there && item.there && k < static_cast<int>(p.c);
      const Bits<Cfg>* from = keep(static_cast<const Bits<Cfg>*>(p.x) + ((row + column) * static_cast<I>(p.c) + k));
      SL_UNROLL
      for (int i = 0; i < 4; ++i) {
        held[turn][i] = zero_raw<16>();
        if (there && inside(column + i, static_cast<int>(p.w))) {
          held[turn][i] = load_raw<16, true>(from + static_cast<I>(i) * static_cast<I>(p.c));
        }
      }
    }
    coming.next(p);
    return true;
  }

  /// What was asked for into shared memory, which nobody reads any more.
  SL_DEVICE void store() const {
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      const Item item(turn);
      if (!item.there) continue;
      const Shared to = keep(memory + (item.vector * (4 * Cfg::GROUP_CHUNKS) + Shape::chunk_at(item.chunk)) * 16);
      SL_UNROLL
      for (int pair = 0; pair < 4; ++pair) {
        store_shared4(to + pair * (Cfg::GROUP_CHUNKS * 16), held[turn][0].word[pair], held[turn][1].word[pair],
                      held[turn][2].word[pair], held[turn][3].word[pair]);
      }
    }
  }
};

}  // namespace sl
