// common/platform.cuh for the host device: calls into the fiber runtime of src/device/host. Included by it only.
#ifndef SLUICE_KERNELS_PLATFORM_HOST_CUH
#define SLUICE_KERNELS_PLATFORM_HOST_CUH

#include "common/platform_host.h"

// Kernel templates are written `__device__ void name(const SlParams&)`.
#define __device__
#define __forceinline__ inline
#define SL_DEVICE inline
#define SL_UNROLL
#define SL_SHARED(T, name, count)                                                                  \
  static constexpr SlHostArray name##_site = {#name, static_cast<long long>(sizeof(T)) * (count)}; \
  T* const name = static_cast<T*>(sl::detail::shared(&name##_site))
#define SL_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(sl::detail::shared(nullptr))

#define SL_HOST_EXPORT extern "C" __attribute__((visibility("default")))
#define SL_KERNEL_ENTRY(ENTRY, NAME, CFG, MIN_BLOCKS)                       \
  SL_HOST_EXPORT const SlHostKernelInfo ENTRY##_info;                       \
  const SlHostKernelInfo ENTRY##_info = {CFG::THREADS};                     \
  SL_HOST_EXPORT void ENTRY(const SlParams* params, SlHostThread* thread) { \
    sl::detail::current = thread;                                           \
    sl::NAME<CFG>(*params);                                                 \
  }

SL_HOST_EXPORT const int sluice_host_abi;
const int sluice_host_abi = SLUICE_HOST_ABI;

namespace sl {
namespace detail {

// The thread of the block that runs on this OS thread now. Other fibers set it while this one waits, so whoever waits
// restores it; a fiber never changes its OS thread while kernel code is on its stack.
static thread_local SlHostThread* current;

inline unsigned collective(int kind, unsigned value, int operand) {
  SlHostThread* const self = current;
  const unsigned result = self->ops->collective(self, kind, value, operand);
  current = self;
  return result;
}

inline void* shared(const SlHostArray* site) {
  SlHostThread* const self = current;
  return self->ops->shared(self, site);
}

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

}  // namespace detail

inline int thread_id() { return detail::current->thread_id; }
inline int block_dim() { return detail::current->block_dim; }
inline long long block_id() { return detail::current->block_id; }
inline long long grid_dim() { return detail::current->grid_dim; }

inline unsigned float_bits(float x) { return detail::bits_as<unsigned>(x); }
inline float float_from_bits(unsigned bits) { return detail::bits_as<float>(bits); }

inline void barrier() { detail::collective(SL_HOST_BARRIER, 0, 0); }
inline void warp_sync() { detail::collective(SL_HOST_WARP_SYNC, 0, 0); }
inline float shuffle_down(float v, int delta) {
  return float_from_bits(detail::collective(SL_HOST_SHUFFLE_DOWN, float_bits(v), delta));
}
inline float shuffle_xor(float v, int mask) {
  return float_from_bits(detail::collective(SL_HOST_SHUFFLE_XOR, float_bits(v), mask));
}
inline unsigned ballot(bool predicate) { return detail::collective(SL_HOST_BALLOT, predicate ? 1U : 0U, 0); }

template <class V>
inline V load_readonly(const V* p) {
  static_assert(sizeof(V) == 1 || sizeof(V) == 2 || sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16);
  if (__builtin_expect(reinterpret_cast<__UINTPTR_TYPE__>(p) % sizeof(V) != 0, 0)) {
    SlHostThread* const self = detail::current;
    self->ops->misaligned(self, p, static_cast<int>(sizeof(V)));
  }
  V value;
  __builtin_memcpy(&value, p, sizeof(V));
  return value;
}

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float expf(float x) { return __builtin_expf(x); }
inline float tanhf(float x) { return __builtin_tanhf(x); }
inline float erff(float x) { return __builtin_erff(x); }

inline float half_bits_to_float(unsigned short bits) {
  const unsigned sign = (bits & 0x8000U) << 16;
  const unsigned exponent = (bits >> 10) & 0x1fU;
  const unsigned fraction = bits & 0x3ffU;
  if (exponent == 0x1fU) return float_from_bits(sign | 0x7f800000U | (fraction << 13));
  if (exponent != 0) return float_from_bits(sign | ((exponent + 112U) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;  // exact: subnormal half, normal float
  return float_from_bits(sign | float_bits(magnitude));
}

inline unsigned short float_to_half_bits(float x) {
  const unsigned bits = float_bits(x);
  const unsigned sign = (bits >> 16) & 0x8000U;
  const unsigned magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fffU;  // NaN, as cvt.rn.f16.f32 gives it
  unsigned half;
  if (magnitude >= 0x477ff000U) {  // 65520 and above round to infinity
    half = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // normal half: drop 13 bits, ties to even; a carry into the exponent is right
    half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  } else if (magnitude <= 0x33000000U) {  // 2^-25 and below, a tie included, round to zero
    half = 0;
  } else {  // subnormal half: the 24-bit significand in units of 2^-24
    const unsigned shift = 126U - (magnitude >> 23);
    const unsigned significand = (magnitude & 0x7fffffU) | 0x800000U;
    const unsigned quotient = significand >> shift;
    const unsigned rest = significand & ((1U << shift) - 1U);
    const unsigned tie = 1U << (shift - 1U);
    half = quotient + ((rest > tie || (rest == tie && (quotient & 1U) != 0)) ? 1U : 0U);
  }
  return static_cast<unsigned short>(sign | half);
}

inline float bfloat_bits_to_float(unsigned short bits) { return float_from_bits(static_cast<unsigned>(bits) << 16); }

inline unsigned short float_to_bfloat_bits(float x) {
  const unsigned bits = float_bits(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fffU;  // NaN, as cvt.rn.bf16.f32 gives it
  return static_cast<unsigned short>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline unsigned floats_to_half2_bits(float lo, float hi) {
  return float_to_half_bits(lo) | (static_cast<unsigned>(float_to_half_bits(hi)) << 16);
}
inline unsigned floats_to_bfloat2_bits(float lo, float hi) {
  return float_to_bfloat_bits(lo) | (static_cast<unsigned>(float_to_bfloat_bits(hi)) << 16);
}

}  // namespace sl

#endif
