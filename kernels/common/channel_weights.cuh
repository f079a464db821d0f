// The weights of a block's neighbouring channels, staged in shared memory as they lie in memory.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// R x S weights of each of LINES channels (NHWC) or planes (NCHW; div[0] = channels) from `first` on, of `lines` in
/// all, to `to`; those beyond repeat the last. Read side by side, all loads of a batch before its first store: each
/// thread reading its own would touch most sectors many times. Ends without a barrier.
template <class Cfg, int LINES>
SL_DEVICE void stage_channel_weights(const SlParams& p, Bits<Cfg>* to, Index<Cfg> first, Index<Cfg> lines) {
  constexpr int TAPS = Cfg::R * Cfg::S, WEIGHTS = LINES * TAPS, BATCH = 16;
  SL_UNROLL_BY(1)
  for (int from = thread_id(); from < WEIGHTS; from += BATCH * Cfg::THREADS) {
    Bits<Cfg> held[BATCH];
    SL_UNROLL
    for (int turn = 0; turn < BATCH; ++turn) {
      if (turn * Cfg::THREADS < WEIGHTS) {
        const int i = from + turn * Cfg::THREADS;
        Index<Cfg> k = first + i / TAPS;
        k = k < lines ? k : lines - 1;
        if constexpr (Cfg::LAYOUT == kNchw) k = take(k, p.div[0]);
        held[turn] =
            load_readonly(static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k) * TAPS + i % TAPS);
      }
    }
    SL_UNROLL
    for (int turn = 0; turn < BATCH; ++turn) {
      const int i = from + turn * Cfg::THREADS;
      if (i < WEIGHTS) to[i] = held[turn];
    }
  }
}

}  // namespace sl
