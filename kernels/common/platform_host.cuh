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

namespace detail {

/// Runs ACT(lanes) once for the warp; lanes[i] is the T that lane i brought.
template <class T, void (*ACT)(T* const (&lanes)[32])>
void act(void* const* lanes) {
  T* typed[32];
  for (int i = 0; i < 32; ++i) typed[i] = static_cast<T*>(lanes[i]);
  ACT(typed);
}
template <class T, void (*ACT)(T* const (&lanes)[32])>
void together(T& mine) {
  SlHostThread* const self = current;
  self->ops->together(self, &act<T, ACT>, &mine);
  current = self;
}

inline void check_alignment(const void* p, int bytes) {
  if (__builtin_expect(reinterpret_cast<__UINTPTR_TYPE__>(p) % static_cast<unsigned>(bytes) != 0, 0)) {
    SlHostThread* const self = current;
    self->ops->misaligned(self, p, bytes);
  }
}

struct Shuffle {
  unsigned value, result;
  int source;
};
inline void shuffle(Shuffle* const (&lanes)[32]) {
  for (Shuffle* lane : lanes) lane->result = lanes[lane->source & 31]->value;
}

/// The row of a matrix that this lane names, and what it gets.
template <int N>
struct MatrixLoad {
  const unsigned char* row;
  unsigned word[N];
};
template <int N, bool TRANS>
void load_matrix(MatrixLoad<N>* const (&lanes)[32]) {
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int m = 0; m < N; ++m) {
      unsigned short low, high;
      if constexpr (TRANS) {
        __builtin_memcpy(&low, lanes[8 * m + 2 * t]->row + 2 * g, 2);
        __builtin_memcpy(&high, lanes[8 * m + 2 * t + 1]->row + 2 * g, 2);
      } else {
        __builtin_memcpy(&low, lanes[8 * m + g]->row + 4 * t, 2);
        __builtin_memcpy(&high, lanes[8 * m + g]->row + 4 * t + 2, 2);
      }
      lanes[lane]->word[m] = low | (static_cast<unsigned>(high) << 16);
    }
  }
}

/// K = 8 * HALVES.
template <int HALVES>
struct Mma {
  unsigned a[2 * HALVES], b[HALVES];
  float d[4];
};
template <int DTYPE>
float widen(unsigned word, int half);
template <int DTYPE, int HALVES>
void mma(Mma<HALVES>* const (&lanes)[32]) {
  float a[16][8 * HALVES], b[8 * HALVES][8];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int half = 0; half < HALVES; ++half) {
      for (int i = 0; i < 2; ++i) {
        const int k = 8 * half + 2 * t + i;
        a[g][k] = widen<DTYPE>(lanes[lane]->a[2 * half], i);
        a[g + 8][k] = widen<DTYPE>(lanes[lane]->a[2 * half + 1], i);
        b[k][g] = widen<DTYPE>(lanes[lane]->b[half], i);
      }
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      double sum = static_cast<double>(lanes[lane]->d[i]);
      for (int k = 0; k < 8 * HALVES; ++k) sum += static_cast<double>(a[row][k]) * static_cast<double>(b[k][column]);
      lanes[lane]->d[i] = static_cast<float>(sum);
    }
  }
}

/// As Mma, of a sparse a: K = 16 * HALVES columns, of which a holds half.
template <int HALVES>
struct MmaSparse {
  unsigned a[2 * HALVES], b[2 * HALVES], pick;
  float d[4];
};
template <int DTYPE, int HALVES>
void mma_sparse(MmaSparse<HALVES>* const (&lanes)[32]) {
  float a[16][16 * HALVES] = {}, b[16 * HALVES][8];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int half = 0; half < HALVES; ++half) {  // columns of a 16 half to 16 half + 15; this lane's 4 from 4t on
      for (int row = 0; row < 2; ++row) {
        const unsigned picks = lanes[4 * g + half]->pick >> (16 * row + 4 * t);
        for (int i = 0; i < 2; ++i) {
          const unsigned column = (picks >> (2 * i)) & 3U;
          a[g + 8 * row][16 * half + 4 * t + static_cast<int>(column)] =
              widen<DTYPE>(lanes[lane]->a[2 * half + row], i);
        }
      }
    }
    for (int word = 0; word < 2 * HALVES; ++word) {
      for (int i = 0; i < 2; ++i) b[8 * word + 2 * t + i][g] = widen<DTYPE>(lanes[lane]->b[word], i);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int g = lane / 4, row = g + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      double sum = static_cast<double>(lanes[lane]->d[i]);
      for (int k = 0; k < 16 * HALVES; ++k) {  // what is not picked is not multiplied, whatever it is
        const unsigned picks = (lanes[4 * g + k / 16]->pick >> (16 * (i / 2) + 4 * (k / 4 % 4))) & 15U;
        const auto at = static_cast<unsigned>(k % 4);
        if (at != (picks & 3U) && at != (picks >> 2)) continue;
        sum += static_cast<double>(a[row][k]) * static_cast<double>(b[k][column]);
      }
      lanes[lane]->d[i] = static_cast<float>(sum);
    }
  }
}

}  // namespace detail

inline unsigned shuffle(unsigned v, int lane) {
  detail::Shuffle mine = {v, 0, lane};
  detail::together<detail::Shuffle, detail::shuffle>(mine);
  return mine.result;
}
inline unsigned shuffle_up(unsigned v, int delta) {
  const int lane = detail::current->thread_id % 32;
  return shuffle(v, lane < delta ? lane : lane - delta);
}

template <int DTYPE>
inline void mma_k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  detail::Mma<2> mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}, {d[0], d[1], d[2], d[3]}};
  detail::together<detail::Mma<2>, detail::mma<DTYPE, 2>>(mine);
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}
template <int DTYPE>
inline void mma_k8(float (&d)[4], const unsigned (&a)[2], unsigned b0) {
  detail::Mma<1> mine = {{a[0], a[1]}, {b0}, {d[0], d[1], d[2], d[3]}};
  detail::together<detail::Mma<1>, detail::mma<DTYPE, 1>>(mine);
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}

template <int DTYPE>
inline void mma_sparse_k32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned pick) {
  detail::MmaSparse<2> mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1], b[2], b[3]}, pick, {d[0], d[1], d[2], d[3]}};
  detail::together<detail::MmaSparse<2>, detail::mma_sparse<DTYPE, 2>>(mine);
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}
template <int DTYPE>
inline void mma_sparse_k16(float (&d)[4], const unsigned (&a)[2], const unsigned (&b)[2], unsigned pick) {
  detail::MmaSparse<1> mine = {{a[0], a[1]}, {b[0], b[1]}, pick, {d[0], d[1], d[2], d[3]}};
  detail::together<detail::MmaSparse<1>, detail::mma_sparse<DTYPE, 1>>(mine);
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}

template <int N, bool TRANS = false>
inline void load_matrix(unsigned (&r)[N], const void* row) {
  if (detail::current->thread_id % 32 < 8 * N) detail::check_alignment(row, 16);
  detail::MatrixLoad<N> mine = {static_cast<const unsigned char*>(row), {}};
  detail::together<detail::MatrixLoad<N>, detail::load_matrix<N, TRANS>>(mine);
  for (int i = 0; i < N; ++i) r[i] = mine.word[i];
}

struct Shared {
  unsigned char* at;
  Shared() = default;
  explicit Shared(void* p) : at(static_cast<unsigned char*>(p)) {}
  Shared operator+(int bytes) const { return Shared(at + bytes); }
};
struct SharedRow {
  const unsigned char* at;
  explicit SharedRow(const void* p) : at(static_cast<const unsigned char*>(p)) {}
  SharedRow(Shared p) : at(p.at) {}  // NOLINT(google-explicit-constructor): one is the other
  SharedRow operator+(int bytes) const { return SharedRow(at + bytes); }
};
template <int N, bool TRANS = false>
inline void load_matrix(unsigned (&r)[N], SharedRow row) {
  load_matrix<N, TRANS>(r, static_cast<const void*>(row.at));
}

template <int BYTES>
inline void copy_async(void* to, const void* from, bool present = true) {
  detail::check_alignment(to, BYTES);
  detail::check_alignment(from, BYTES);
  if (present) {
    __builtin_memcpy(to, from, BYTES);
  } else {
    __builtin_memset(to, 0, BYTES);
  }
}
inline void copy_async_commit() {}
template <int LEFT>
inline void copy_async_wait() {}

inline void fence_code(int) {}

template <class T>
inline T keep(T value) {
  return value;
}

inline unsigned load_shared(Shared from) {
  detail::check_alignment(from.at, 4);
  unsigned word;
  __builtin_memcpy(&word, from.at, 4);
  return word;
}
inline void load_shared4(float (&to)[4], Shared from) {
  detail::check_alignment(from.at, 16);
  __builtin_memcpy(to, from.at, 16);
}
inline void store_shared(Shared to, unsigned word) {
  detail::check_alignment(to.at, 4);
  __builtin_memcpy(to.at, &word, 4);
}
inline void store_shared4(Shared to, unsigned a, unsigned b, unsigned c, unsigned d) {
  detail::check_alignment(to.at, 16);
  const unsigned words[4] = {a, b, c, d};
  __builtin_memcpy(to.at, words, 16);
}
inline unsigned load_shared_half(Shared from) {
  detail::check_alignment(from.at, 2);
  unsigned short half;
  __builtin_memcpy(&half, from.at, 2);
  return half;
}
inline void store_shared_half(Shared to, unsigned half) {
  detail::check_alignment(to.at, 2);
  __builtin_memcpy(to.at, &half, 2);  // the low half: hosts are little-endian
}
inline void clear_shared(Shared to) {
  detail::check_alignment(to.at, 16);
  __builtin_memset(to.at, 0, 16);
}
template <int BYTES, bool LINE = false>
inline void copy_async(Shared to, const void* from, bool present = true) {
  copy_async<BYTES>(static_cast<void*>(to.at), from, present);
}

inline unsigned permute_bytes(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long both = (static_cast<unsigned long long>(b) << 32) | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned byte = (selector >> (4 * i)) & 7U;
    result |= static_cast<unsigned>((both >> (8 * byte)) & 0xffU) << (8 * i);
  }
  return result;
}

template <class V>
inline V load_readonly(const V* p) {
  static_assert(sizeof(V) == 1 || sizeof(V) == 2 || sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16);
  detail::check_alignment(p, static_cast<int>(sizeof(V)));
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

namespace detail {
template <int DTYPE>
float widen(unsigned word, int half) {
  const auto bits = static_cast<unsigned short>(word >> (16 * half));
  return DTYPE == 1 ? half_bits_to_float(bits) : bfloat_bits_to_float(bits);
}
}  // namespace detail

template <int DTYPE>
inline unsigned fma2(unsigned a, unsigned b, unsigned c) {
  unsigned d = 0;
  for (int i = 0; i < 2; ++i) {  // exact in double but for the sum, whose double rounding no caller depends on
    const auto v = static_cast<float>(static_cast<double>(detail::widen<DTYPE>(a, i)) * detail::widen<DTYPE>(b, i) +
                                      detail::widen<DTYPE>(c, i));
    d |= static_cast<unsigned>(DTYPE == 1 ? float_to_half_bits(v) : float_to_bfloat_bits(v)) << (16 * i);
  }
  return d;
}

inline unsigned floats_to_half2_bits(float lo, float hi) {
  return float_to_half_bits(lo) | (static_cast<unsigned>(float_to_half_bits(hi)) << 16);
}
inline unsigned floats_to_bfloat2_bits(float lo, float hi) {
  return float_to_bfloat_bits(lo) | (static_cast<unsigned>(float_to_bfloat_bits(hi)) << 16);
}

}  // namespace sl

#endif
