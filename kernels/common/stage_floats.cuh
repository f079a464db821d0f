// Elements of any type as floats in shared memory.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// N floats of shared memory from N elements of x or w; 0 where not present. Fp32 travels asynchronously.
template <class Cfg, int N>
SL_DEVICE void stage_floats(float* to, const Bits<Cfg>* from, bool present) {
  if constexpr (Cfg::DTYPE == kF32) {
    copy_async<4 * N>(to, from, present);
  } else {
    Raw<2 * N> raw = zero_raw<2 * N>();
    if (present) raw = load_raw<2 * N, true>(from);
    SL_UNROLL
    for (int i = 0; i < N; ++i) to[i] = element<Cfg>(raw, i);
  }
}

}  // namespace sl
