// Integer arithmetic of the work decode: 32-bit with multiply-shift division where every offset fits, 64-bit otherwise.
#pragma once

#include "common/params.h"
#include "common/platform.cuh"

// Before a loop: unroll by n, a constant expression of the kernel (nothing on the host).
#ifdef SLUICE_HOST
#define SL_UNROLL_BY(n)
#else
#define SL_PRAGMA_(text) _Pragma(#text)
#define SL_UNROLL_BY(n) SL_PRAGMA_(unroll(n))
#endif

namespace sl {

template <bool WIDE>
struct IndexOf {
  using Type = int;
};
template <>
struct IndexOf<true> {
  using Type = long long;
};
template <class Cfg>
using Index = typename IndexOf<(Cfg::INDEX64 != 0)>::Type;

/// a / d, exact for 0 <= a < 2^31.
SL_DEVICE int div(int a, const SlFastDiv& d) {
  return static_cast<int>((static_cast<unsigned long long>(static_cast<unsigned>(a)) * d.mul) >> d.shift);
}
SL_DEVICE long long div(long long a, const SlFastDiv& d) { return a / static_cast<long long>(d.divisor); }

/// Takes the fastest-running digit off a mixed-radix number: returns rest % d and leaves rest / d.
template <class I>
SL_DEVICE I take(I& rest, const SlFastDiv& d) {
  const I quotient = div(rest, d);
  const I digit = rest - quotient * static_cast<I>(d.divisor);
  rest = quotient;
  return digit;
}

/// 0 <= i < size in one comparison.
SL_DEVICE bool inside(int i, int size) { return static_cast<unsigned>(i) < static_cast<unsigned>(size); }

}  // namespace sl
