// Elements of any type as floats in shared memory.
#pragma once

#include "common/conv.cuh"

namespace sl {

/// Where N elements of x or w go; zeros where they are not present, nothing where they are not wanted.
template <class Cfg>
struct Staging {
  Shared to;
  const Bits<Cfg>* from;
  bool wanted, present;
};

/// where(0) to where(COUNT - 1), N elements each, SPACING floats from one to the next. What does not travel
/// asynchronously is all loaded before any of it is stored.
template <class Cfg, int N, int SPACING, int COUNT, class Where>
SL_DEVICE void stage_batch(const Where& where) {
  if constexpr (Cfg::DTYPE == kF32) {
    static_assert(N == 1 || SPACING == 1, "a copy writes neighbours");
    SL_UNROLL
    for (int b = 0; b < COUNT; ++b) {
      const Staging<Cfg> at = where(b);
      if (at.wanted) copy_async<4 * N>(at.to, at.from, at.present);
    }
  } else {
    Raw<2 * N> raw[COUNT];
    SL_UNROLL
    for (int b = 0; b < COUNT; ++b) {
      const Staging<Cfg> at = where(b);
      raw[b] = zero_raw<2 * N>();
      if (at.wanted && at.present) raw[b] = load_raw<2 * N, true>(at.from);
    }
    SL_UNROLL
    for (int b = 0; b < COUNT; ++b) {
      const Staging<Cfg> at = where(b);
      SL_UNROLL
      for (int e = 0; e < N; ++e) {
        if (at.wanted) store_shared(at.to + 4 * e * SPACING, float_bits(element<Cfg>(raw[b], e)));
      }
    }
  }
}

}  // namespace sl
