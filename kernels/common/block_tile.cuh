// The work of a block that keeps the weights of a few channels in shared memory: LANES channel lanes x THREADS/LANES
// slots, each slot working through strips. A strip is COLS neighbouring columns of one output row of one image.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// div[0] = channel blocks, div[1] = column tiles, div[2] = output rows, div[3] = blocks along the strips;
/// aux[0] = strips in all, aux[1] = strips a slot works through.
template <class Cfg>
struct BlockTile {
  using I = Index<Cfg>;
  static constexpr int LANES = Cfg::LANES, SLOTS = Cfg::THREADS / Cfg::LANES;
  int channel_block, lane;
  long long first_strip;  ///< of this thread; the next ones are SLOTS apart

  SL_DEVICE explicit BlockTile(const SlParams& p) {
    int rest = static_cast<int>(block_id());  // a grid has fewer than 2^31 blocks
    int along;
    if constexpr (Cfg::LAYOUT == kNhwc) {  // neighbouring threads are neighbouring channels
      channel_block = take(rest, p.div[0]);
      along = rest;
      lane = thread_id() % LANES;
      first_strip = thread_id() / LANES;
    } else {  // neighbouring threads are neighbouring columns
      along = take(rest, p.div[3]);
      channel_block = rest;
      lane = thread_id() / SLOTS;
      first_strip = thread_id() % SLOTS;
    }
    first_strip += static_cast<long long>(along) * p.aux[1] * SLOTS;
  }

  struct Strip {
    I n, row, column;
  };
  SL_DEVICE static Strip strip(long long number, const SlParams& p) {
    Strip at;
    I rest = static_cast<I>(number);
    at.column = take(rest, p.div[1]) * Cfg::COLS;
    at.row = take(rest, p.div[2]);
    at.n = rest;
    return at;
  }
};

}  // namespace sl
