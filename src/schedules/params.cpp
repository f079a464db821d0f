#include "schedules/schedule.hpp"

namespace sl {

// With 2^(l-1) < d <= 2^l and m = ceil(2^(31+l) / d), m fits in 32 bits and m * d exceeds 2^(31+l) by less than 2^l,
// which makes (a * m) >> (31 + l) exact for every a below 2^31 (Granlund and Montgomery 1994, theorem 4.2).
SlFastDiv fast_div(std::int64_t divisor) {
  const auto d = static_cast<std::uint64_t>(divisor);
  unsigned l = 0;
  while ((std::uint64_t{1} << l) < d) ++l;
  const std::uint64_t numerator = std::uint64_t{1} << (31 + l);
  return {.mul = static_cast<unsigned>((numerator + d - 1) / d),
          .shift = 31 + l,
          .divisor = static_cast<unsigned>(d),
          .pad = 0};
}

SlParams common_params(const ConvProblem& p) {
  SlParams params{};
  params.n = p.n, params.c = p.c, params.h = p.h, params.w = p.w;
  params.k = p.k, params.p = p.p, params.q = p.q;
  params.pad_top = p.pad_top, params.pad_left = p.pad_left;
  params.alpha = p.alpha, params.beta = p.beta;
  return params;
}

}  // namespace sl
