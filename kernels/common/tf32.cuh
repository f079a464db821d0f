// fp32 products on the matrix unit, which multiplies numbers of 11 significant bits (TF32) exactly and adds in fp32.
//
//   Halves(x)                      2^24 x as high + low: high is 2^24 x rounded to 11 bits, low what is left.
//                                  Halves::cut(x) rounds towards zero, which costs an instruction less. The matrix unit
//                                  takes 11 bits of either. Of a product of a rounded and a cut number, high * high +
//                                  high * low + low * high is off by at most 18 * 2^-24 of it. The matrix unit takes
//                                  subnormal numbers for 0; so scaled, neither x nor its low part is one. Inf and NaN,
//                                  and what is beyond 2^103, get a low part that is not finite, so that every sum they
//                                  go into is NaN
//   tf32_unscale                   what turns a sum of products of two Halves into one of two numbers
//   mma_tf32(d, a, b0, b1)         d (16 x 8, fp32) += a (16 x 8) b (8 x 8) by the warp's matrix unit. With g = lane /
//                                  4, t = lane % 4, a lane holds a: rows g, g + 8 (words 0 and 1) of column t, words 2
//                                  and 3 the same of column t + 4; b0, b1: rows t, t + 4 of column g; d: row g, columns
//                                  2t, 2t + 1, then row g + 8. The low 13 bits of a and b are ignored. All 32 lanes.
//                                  mma_tf32_zero: d = a b
//   load_shared_floats(to, from)   1 or 2 floats at a Shared, aligned to that
#pragma once

#include "common/platform.cuh"

namespace sl {

struct Halves {
  unsigned high, low;
  Halves() = default;
  SL_DEVICE static Halves cut(float number) {
    const float x = number * 0x1p24F;
    Halves halves;
    halves.high = float_bits(x);
    halves.low = float_bits(x - float_from_bits(halves.high & 0xffffe000U));
    return halves;
  }
  SL_DEVICE explicit Halves(float number) {
    const float x = number * 0x1p24F;
    high = (float_bits(x) + 0x1000U) & 0xffffe000U;
    low = float_bits(x - float_from_bits(high));
  }
};

constexpr float tf32_unscale = 0x1p-48F;

#ifdef SLUICE_HOST

namespace detail {
struct MmaTf32 {
  unsigned a[4], b[2];
  float d[4];
};
inline double tf32(unsigned bits) {
  if ((bits & 0x7f800000U) == 0) return 0.0;
  return static_cast<double>(float_from_bits(bits & 0xffffe000U));
}
inline void mma_tf32(MmaTf32* const (&lanes)[32]) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4, half = i / 2, column = 2 * (lane % 4) + i % 2;
      double sum = static_cast<double>(lanes[lane]->d[i]);
      for (int k = 0; k < 8; ++k) {
        sum += tf32(lanes[4 * row + k % 4]->a[k / 4 * 2 + half]) * tf32(lanes[4 * column + k % 4]->b[k / 4]);
      }
      lanes[lane]->d[i] = static_cast<float>(sum);
    }
  }
}
}  // namespace detail

inline void mma_tf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  detail::MmaTf32 mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}, {d[0], d[1], d[2], d[3]}};
  detail::together<detail::MmaTf32, detail::mma_tf32>(mine);
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}

template <int N>
inline void load_shared_floats(float (&to)[N], Shared from) {
  detail::check_alignment(from.at, 4 * N);
  __builtin_memcpy(to, from.at, sizeof(to));
}

inline void mma_tf32_zero(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  for (float& sum : d) sum = 0.0F;
  mma_tf32(d, a, b0, b1);
}

#else

template <int N>
SL_DEVICE void load_shared_floats(float (&to)[N], Shared from) {
  static_assert(N == 1 || N == 2);
  if constexpr (N == 1) {
    to[0] = float_from_bits(load_shared(from));
  } else {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(from.at));
  }
}

SL_DEVICE void mma_tf32_zero(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0F));
}
SL_DEVICE void mma_tf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif

}  // namespace sl
