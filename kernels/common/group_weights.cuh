// The weights of a block's neighbouring output channels in shared memory, turned so that a thread reads those of
// neighbouring outputs side by side: float [channel of the group][tap][output].
#pragma once

#include "common/conv.cuh"

namespace sl {

/// OUTS outputs, PITCH floats from one tap to the next: beyond OUTS, so that neighbouring taps, which are stored
/// together, are in different banks. Cfg: DTYPE LAYOUT WLAYOUT R S CPG THREADS.
template <class Cfg, int OUTS, int WIDTH>
struct GroupWeights {
  static constexpr int CPG = Cfg::CPG, TAPS = Cfg::R * Cfg::S, PER_OUT = CPG * TAPS, PITCH = WIDTH;

  /// All threads: outputs from `first` on, read as they lie in memory, all loads of a batch before its first store.
  /// After the last (div[4] = k of them) come those of the next image (NCHW), or the last again (NHWC). Ends without a
  /// barrier.
  SL_DEVICE static void stage(const SlParams& p, float* to, int first) {
    constexpr int ALL = OUTS * PER_OUT, WHOLE = (ALL + Cfg::THREADS - 1) / Cfg::THREADS;
    constexpr int BATCH = WHOLE <= 24 ? WHOLE : 16;
    const auto* weight = static_cast<const Bits<Cfg>*>(p.weight);
    SL_UNROLL_BY(1)
    for (int i0 = thread_id(); i0 < ALL; i0 += BATCH * Cfg::THREADS) {
      float taken[BATCH];
      SL_UNROLL
      for (int turn = 0; turn < BATCH; ++turn) {
        const int next = i0 + turn * Cfg::THREADS;
        const int i = (BATCH == WHOLE && turn + 1 < WHOLE) || next < ALL ? next : i0;
        int k = first + i / PER_OUT;
        if constexpr (Cfg::LAYOUT == kNhwc) {
          k = k < static_cast<int>(p.k) ? k : static_cast<int>(p.k) - 1;
        } else {
          k = take(k, p.div[4]);
        }
        taken[turn] = load_one<Cfg>(weight + static_cast<long long>(k) * PER_OUT + i % PER_OUT);
      }
      SL_UNROLL
      for (int turn = 0; turn < BATCH; ++turn) {
        const int i = i0 + turn * Cfg::THREADS, out = i / PER_OUT, rest = i % PER_OUT;
        const int row = Cfg::WLAYOUT == kOhwi ? rest % CPG * TAPS + rest / CPG : rest;
        if ((BATCH == WHOLE && turn + 1 < WHOLE) || i < ALL) to[row * PITCH + out] = taken[turn];
      }
    }
  }
};

}  // namespace sl
