// Where a call's tensors lie: their addresses, their sizes in bytes, and whether the two go together.
#pragma once

#include <cstdint>

#include "core/conv_problem.hpp"

namespace sl {

struct Tensors {
  const void *x = nullptr, *w = nullptr, *bias = nullptr, *z = nullptr;
  void* y = nullptr;
};

/// Bytes of each tensor, saturated at 2^63 - 1; 0 where the call has no such tensor.
struct Extents {
  std::uint64_t x = 0, w = 0, bias = 0, z = 0, y = 0;
};
Extents extents(const ConvProblem&);

inline std::uintptr_t number(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The largest of 16, 8, 4, 2 that divides the addresses of x, w, y and z (null divides by everything).
inline int alignment_class(const Tensors& t) noexcept {
  const std::uintptr_t bits = number(t.x) | number(t.w) | number(t.y) | number(t.z) | 16;
  const std::uintptr_t lowest = bits & (~bits + 1);
  return lowest < 2 ? 2 : static_cast<int>(lowest);
}

/// Whether [a, a + a_bytes) and [b, b + b_bytes) share a byte. Modulo 2^64, b begins ahead of a by `ahead`, and lies
/// apart where a_bytes <= ahead <= 2^64 - b_bytes: one comparison. Requires a byte in one of them.
inline bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) noexcept {
  const std::uint64_t ahead = number(b) - number(a);
  return ahead - a_bytes > 0 - (a_bytes + b_bytes);
}

/// Whether y shares memory with no other tensor; z may be y itself. A tensor that the call has not is null with no
/// bytes.
inline bool y_is_apart(const Extents& bytes, const Tensors& t) noexcept {
  const auto meets_y = [&](const void* tensor, std::uint64_t size) {
    return static_cast<int>(overlap(tensor, size, t.y, bytes.y));
  };
  const int met = meets_y(t.x, bytes.x) | meets_y(t.w, bytes.w);
  if ((number(t.bias) | number(t.z)) == 0) return met == 0;
  return (met | meets_y(t.bias, bytes.bias) | (static_cast<int>(t.z != t.y) & meets_y(t.z, bytes.z))) == 0;
}

}  // namespace sl
