// grp_reduce: a parallel reduction over taps, for few outputs with much to add up (a global depthwise pooling, say).
// LANES threads share one output; a warp's lanes combine by shuffles, a whole block's warps through shared memory. The
// order of additions depends on nothing but the configuration, so results repeat bit for bit.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// Cfg: DTYPE LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG MULT; LANES = 8, 16, 32 or THREADS.
/// Here work = outputs; div[0] = k, div[1] = q, div[2] = p (locate() with tiles and strips of one).
template <class Cfg>
SL_DEVICE void grp_reduce(const SlParams& p) {
  using I = Index<Cfg>;
  constexpr int R = Cfg::R, S = Cfg::S, CPG = Cfg::CPG, LANES = Cfg::LANES, OUTPUTS = Cfg::THREADS / LANES;
  constexpr int TERMS = R * S * CPG;

  const int lane = thread_id() % LANES;
  const long long item = block_id() * OUTPUTS + thread_id() / LANES;
  const bool present = item < p.work;  // no early return: shuffles want every lane
  const Place<I> at = locate<Cfg>(present ? item : 0, p);
  const I k = at.channel_block;
  const Bits<Cfg>* x = x_at<Cfg>(p, at.n, k / Cfg::MULT * CPG);
  const Bits<Cfg>* weight = static_cast<const Bits<Cfg>*>(p.weight);
  const int top = static_cast<int>(static_cast<long long>(at.strip) * Cfg::STRIDE_H - p.pad_top);
  const int left = static_cast<int>(static_cast<long long>(at.tile) * Cfg::STRIDE_W - p.pad_left);

  float sum = 0.0F;
  if (present) {
    SL_UNROLL_BY(4)
    for (int term = lane; term < TERMS; term += LANES) {  // fastest in the order of x's memory
      const int c = Cfg::LAYOUT == kNhwc ? term % CPG : term / (R * S);
      const int tap = Cfg::LAYOUT == kNhwc ? term / CPG : term % (R * S);
      const int h = top + tap / S * Cfg::DIL_H, column = left + tap % S * Cfg::DIL_W;
      if (!inside(h, static_cast<int>(p.h)) || !inside(column, static_cast<int>(p.w))) continue;
      I offset = pixel_offset<Cfg>(p, h, column);
      if constexpr (Cfg::LAYOUT == kNhwc) {
        offset += c;
      } else {
        offset += static_cast<I>(c) * static_cast<I>(p.h) * static_cast<I>(p.w);
      }
      sum = sl::fma(load_one<Cfg>(x + offset), load_one<Cfg>(weight + w_offset<Cfg>(k, c, tap / S, tap % S)), sum);
    }
  }

  SL_UNROLL
  for (int step = (LANES < 32 ? LANES : 32) / 2; step > 0; step /= 2) sum += shuffle_xor(sum, step);
  if constexpr (LANES > 32) {
    SL_SHARED(float, partial, LANES / 32);
    if (lane % 32 == 0) partial[lane / 32] = sum;
    barrier();
    sum = 0.0F;
    SL_UNROLL
    for (int warp = 0; warp < LANES / 32; ++warp) sum += partial[warp];
  }
  if (present && lane == 0) {
    const float out[1] = {sum + bias_of<Cfg>(p, k)};
    finish<Cfg, 1>(p, y_offset<Cfg>(p, at.n, k, at.strip, at.tile), out);
  }
}

}  // namespace sl
