#include "dispatch/tensors.hpp"

#include <limits>

namespace sl {
namespace {

template <class... Factors>
std::uint64_t saturated(Factors... factors) {
  std::int64_t result = 1;
  bool overflows = false;
  ((overflows |= __builtin_mul_overflow(result, factors, &result)), ...);
  return static_cast<std::uint64_t>(overflows ? std::numeric_limits<std::int64_t>::max() : result);
}

}  // namespace

Extents extents(const ConvProblem& v) {
  const auto element = static_cast<std::int64_t>(size_of(v.dtype));
  Extents bytes;
  bytes.x = saturated(v.n, v.c, v.h, v.w, element);
  bytes.w = saturated(v.k, v.channels_per_group(), v.r, v.s, element);
  bytes.y = saturated(v.n, v.k, v.p, v.q, element);
  bytes.z = v.residual ? bytes.y : 0;
  bytes.bias = v.bias == Bias::none ? 0 : saturated(v.k, v.bias == Bias::f32 ? 4 : element);
  return bytes;
}

}  // namespace sl
