// The plan table's key: every field of a call that its answer depends on, two to a word.
#pragma once

#include <bit>
#include <cstdint>

#include "dispatch/plan_table.hpp"
#include "routing/routing.hpp"

namespace sl {

/// What a key packs into one word: enumerators, and the alignment class. Each must be legal.
struct KeyKinds {
  DType dtype;
  Layout layout;
  WeightLayout weight_layout;
  Bias bias;
  Activation activation;
  bool residual;
  Regular regular;
  std::int32_t align;
};

/// Sizes as in ConvProblem, each from 0 and below 2^31 (n below 2^40); `T` is whatever holds them.
template <class T>
struct KeySizes {
  T n, c, h, w, k, groups, r, s, p, q, stride_h, stride_w, pad_top, pad_left, dil_h, dil_w;
  float alpha, beta;
};

template <class T>
[[gnu::always_inline]] inline PlanTable::Key pack_key(const KeySizes<T>& v, const KeyKinds& kinds) noexcept {
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  const auto pair = [&](auto high, auto low) { return static_cast<std::int64_t>(word(high) << 32 | word(low)); };
  const std::uint64_t packed = word(kinds.dtype) | word(kinds.layout) << 4 | word(kinds.weight_layout) << 8 |
                               word(kinds.bias) << 12 | word(kinds.activation) << 16 | word(kinds.residual) << 20 |
                               word(kinds.regular == Regular::no) << 24 | word(kinds.align & 31) << 26;
  return {static_cast<std::int64_t>(v.n),
          pair(v.c, v.k),
          pair(v.h, v.w),
          pair(v.p, v.q),
          pair(v.r, v.s),
          pair(v.groups, packed),
          pair(v.stride_h, v.stride_w),
          pair(v.pad_top, v.pad_left),
          pair(v.dil_h, v.dil_w),
          pair(std::bit_cast<std::uint32_t>(v.alpha), std::bit_cast<std::uint32_t>(v.beta))};
}

/// A problem that is not legal gets a key that no entry has, so that it goes where it is refused.
inline PlanTable::Key plan_key(const ConvProblem& v, Regular regular) noexcept {
  const std::int64_t sizes = v.c | v.h | v.w | v.k | v.groups | v.r | v.s | v.p | v.q | v.stride_h | v.stride_w |
                             v.pad_top | v.pad_left | v.dil_h | v.dil_w;
  if (sizes >> 31 != 0) return {-1};
  return pack_key<std::int64_t>(
      {v.n, v.c, v.h, v.w, v.k, v.groups, v.r, v.s, v.p, v.q, v.stride_h, v.stride_w, v.pad_top, v.pad_left, v.dil_h,
       v.dil_w, v.alpha, v.beta},
      {v.dtype, v.layout, v.weight_layout, v.bias, v.activation, v.residual, regular, v.align});
}

}  // namespace sl
