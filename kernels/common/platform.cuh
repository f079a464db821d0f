// What a kernel may use of the machine, spelled once for NVRTC and for the host device (-DSLUICE_HOST, g++ or clang++).
// Kernels include this and nothing of a toolkit or of the standard library.
//
//   SL_DEVICE                      prefix of a device function (force-inlined on the GPU)
//   SL_UNROLL                      before a loop with a compile-time trip count: unroll it (nothing on the host)
//   thread_id() block_dim()        int, x only
//   block_id() grid_dim()          long long, so that decoding a work item is 64-bit from the start
//   SL_SHARED(T, name, count);     shared array at block scope, 16-byte aligned; use name[i] only: on the host it is a
//                                  pointer. Starts as NaN bytes (0xff) on the host, and has redzones there
//   SL_DYNAMIC_SHARED(T, name);    T* to the Geometry::dynamic_smem bytes, 128-byte aligned; redzones on the host
//   barrier()                      all threads of the block that have not returned
//   shuffle_down shuffle_xor ballot warp_sync
//                                  all 32 lanes of a warp (those that returned excepted). The value of a lane that has
//                                  returned is undefined: NaN on the host
//   shuffle_up shuffle             of 32-bit words, the second from any lane
//   mma_k16<DTYPE>(d, a, b0, b1)   d (16 x 8, fp32) += a (16 x 16) b (16 x 8) by the warp's matrix unit; mma_k8<DTYPE>
//                                  the same over 8. With g = lane / 4, t = lane % 4, a lane holds
//                                  a: rows g, g + 8 (words 0 and 1) of columns 2t, 2t+1; words 2 and 3 the same of
//                                     columns 2t+8, 2t+9;  b0: rows 2t, 2t+1 of column g; b1: rows 2t+8, 2t+9;
//                                  d: row g, columns 2t, 2t+1, then row g + 8. All 32 lanes must take part
//   mma_sparse_k32<DTYPE>(d, a, b, pick)
//                                  d (16 x 8) += a (16 x 32, of which each row has 2 of every 4 columns) b (32 x 8). a
//                                  holds those 16 columns as mma_k16 does; b: words i = rows 8i + 2t, 8i + 2t + 1 of
//                                  column g. pick names them: 4 bits for 4 columns, first | second << 2 (first <
//                                  second); low half row g, high half row g + 8; lanes 4g and 4g + 1 bring columns 0
//                                  to 15 and 16 to 31. mma_sparse_k16 the same over 16 columns (2 words of a and of
//                                  b; lane 4g brings pick). All 32 lanes
//   load_matrix<N, TRANS>(r, row)  N (1, 2, 4) matrices of 8 rows of 8 16-bit elements from shared memory; lane i names
//                                  row i % 8 of matrix i / 8, 16-byte aligned (lanes beyond 8 N: any valid row). Lane
//                                  gets columns 2t, 2t+1 of row g; TRANS: rows 2t, 2t+1 of column g. All 32 lanes
//   SharedRow(const void*)         a place in shared memory for load_matrix; + int moves it by bytes. Worth it where
//                                  many loads are constants apart: from a pointer each pays for its address, from this
//                                  none
//   copy_async<BYTES>(to, from, present)
//                                  4, 8 or 16 bytes from global to shared memory, zeros where not present (from is not
//                                  read then). Visible to the thread after copy_async_wait<LEFT>(),
//                                  which waits until at most LEFT groups closed by copy_async_commit() are on their
//                                  way. On the host the copy happens at once: a missing wait shows on a GPU only
//                                  copy_async<BYTES, true>: its neighbours in 128 bytes are wanted soon, by others
//   keep(value)                    the same int, pointer or Shared, of which the compiler no longer knows whence it
//                                  came: it stays in a register, where a parameter would be loaded and a shared array's
//                                  address be computed again in every turn of a loop
//   fence_code(never)              the compiler keeps instructions on their side of it; `never` is an int that is 0,
//   and
//                                  the compiler must know neither that nor what another fence was given. Costs two
//                                  instructions
//   Shared(p)                      a place in shared memory as one register, where a pointer's base would be built anew
//                                  for every access; Shared + bytes. copy_async and load_matrix take it too
//   load_shared store_shared       a 32-bit word at a Shared; load_shared_half, store_shared_half: 16 bits;
//                                  load_shared4 (floats), store_shared4: 4 words, clear_shared: 16 bytes of zeros, all
//                                  16-byte aligned
//   permute_bytes(a, b, selector)  byte i of the result is byte (selector >> 4 i) & 7 of b:a
//   load_readonly(const V* p)      a 1, 2, 4, 8 or 16-byte V through the read-only path; p aligned to sizeof(V), memory
//                                  that nobody writes during the kernel
//   fma2<DTYPE>(a, b, c)           a * b + c of two 16-bit elements at once, each rounded once
//   fma expf tanhf erff            fp32, at most 2 ulp; fma rounds once
//   half_bits_to_float float_to_half_bits bfloat_bits_to_float float_to_bfloat_bits
//                                  to nearest even, subnormals kept, overflow to infinity, NaN stays NaN
//   floats_to_half2_bits(lo, hi)   two at once, lo in the low 16 bits; floats_to_bfloat2_bits the same
//   float_bits(float) float_from_bits(unsigned)
#ifndef SLUICE_KERNELS_PLATFORM_CUH
#define SLUICE_KERNELS_PLATFORM_CUH

#include "common/params.h"

#ifdef SLUICE_HOST
#include "common/platform_host.cuh"
#else

#define SL_DEVICE __device__ __forceinline__
#define SL_UNROLL _Pragma("unroll")
#define SL_SHARED(T, name, count) __shared__ __align__(16) T name[count]
#define SL_DYNAMIC_SHARED(T, name)                                    \
  extern __shared__ __align__(128) unsigned char sl_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(sl_dynamic_shared)

// The kernel symbol ENTRY of sl::NAME<CFG>. Parameters stay in constant memory: __grid_constant__ lets their address be
// taken without a copy to local memory.
#define SL_KERNEL_ENTRY(ENTRY, NAME, CFG, MIN_BLOCKS)                                                                \
  extern "C" __global__ void __launch_bounds__(CFG::THREADS, MIN_BLOCKS) ENTRY(const __grid_constant__ SlParams p) { \
    sl::NAME<CFG>(p);                                                                                                \
  }

namespace sl {

SL_DEVICE int thread_id() { return static_cast<int>(threadIdx.x); }
SL_DEVICE int block_dim() { return static_cast<int>(blockDim.x); }
SL_DEVICE long long block_id() { return static_cast<long long>(blockIdx.x); }
SL_DEVICE long long grid_dim() { return static_cast<long long>(gridDim.x); }

SL_DEVICE void barrier() { __syncthreads(); }
SL_DEVICE void warp_sync() { __syncwarp(); }
SL_DEVICE float shuffle_down(float v, int delta) {
  return __shfl_down_sync(0xffffffffu, v, static_cast<unsigned>(delta));
}
SL_DEVICE float shuffle_xor(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
SL_DEVICE unsigned shuffle(unsigned v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }
SL_DEVICE unsigned shuffle_up(unsigned v, int delta) {
  return __shfl_up_sync(0xffffffffu, v, static_cast<unsigned>(delta));
}
SL_DEVICE unsigned ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }

namespace detail {
SL_DEVICE unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
}  // namespace detail

struct Shared {
  unsigned at;
  Shared() = default;
  SL_DEVICE explicit Shared(const void* p) : at(detail::shared_address(p)) { asm volatile("" : "+r"(at)); }
  SL_DEVICE Shared operator+(int bytes) const {
    Shared there = *this;
    there.at += static_cast<unsigned>(bytes);
    return there;
  }
};
SL_DEVICE Shared keep(Shared place) {
  asm volatile("" : "+r"(place.at));
  return place;
}
SL_DEVICE unsigned load_shared(Shared from) {
  unsigned word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from.at));
  return word;
}
SL_DEVICE void load_shared4(float (&to)[4], Shared from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
               : "r"(from.at));
}
SL_DEVICE void store_shared(Shared to, unsigned word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to.at), "r"(word) : "memory");
}
SL_DEVICE void store_shared4(Shared to, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to.at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
SL_DEVICE unsigned load_shared_half(Shared from) {
  unsigned short half;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(from.at));
  return half;
}
SL_DEVICE void store_shared_half(Shared to, unsigned half) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to.at), "h"(static_cast<unsigned short>(half)) : "memory");
}
SL_DEVICE void clear_shared(Shared to) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(to.at), "r"(0) : "memory");
}

template <int DTYPE>  // kF16 = 1, else bf16
SL_DEVICE void mma_k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (DTYPE == 1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}
template <int DTYPE>
SL_DEVICE void mma_k8(float (&d)[4], const unsigned (&a)[2], unsigned b0) {
  if constexpr (DTYPE == 1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
  } else {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
  }
}

struct SharedRow {
  unsigned at;
  SL_DEVICE explicit SharedRow(const void* p) : at(detail::shared_address(p)) {}
  SL_DEVICE SharedRow(Shared p) : at(p.at) {}  // NOLINT(google-explicit-constructor): one is the other
  SL_DEVICE SharedRow operator+(int bytes) const {
    SharedRow moved = *this;
    moved.at += static_cast<unsigned>(bytes);
    return moved;
  }
};

// The picks of every row are in order, which newer devices want to be told.
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
#define SL_MMA_SPARSE "mma.sp::ordered_metadata.sync.aligned"
#else
#define SL_MMA_SPARSE "mma.sp.sync.aligned"
#endif
template <int DTYPE>
SL_DEVICE void mma_sparse_k32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned pick) {
  if constexpr (DTYPE == 1) {
    asm(SL_MMA_SPARSE
        ".m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(pick));
  } else {
    asm(SL_MMA_SPARSE
        ".m16n8k32.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(pick));
  }
}
template <int DTYPE>
SL_DEVICE void mma_sparse_k16(float (&d)[4], const unsigned (&a)[2], const unsigned (&b)[2], unsigned pick) {
  if constexpr (DTYPE == 1) {
    asm(SL_MMA_SPARSE ".m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(pick));
  } else {
    asm(SL_MMA_SPARSE ".m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(pick));
  }
}
#undef SL_MMA_SPARSE

// Volatile, so that no such load moves across a barrier; ptxas still schedules them freely between barriers.
template <int N, bool TRANS = false>
SL_DEVICE void load_matrix(unsigned (&r)[N], SharedRow row) {
  const unsigned at = row.at;
  if constexpr (N == 1 && !TRANS) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  } else if constexpr (N == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  } else if constexpr (N == 2 && !TRANS) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  } else if constexpr (N == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  } else if constexpr (!TRANS) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
  }
}
template <int N, bool TRANS = false>
SL_DEVICE void load_matrix(unsigned (&r)[N], const void* row) {
  load_matrix<N, TRANS>(r, SharedRow(row));
}

namespace detail {
template <int BYTES, bool LINE>
SL_DEVICE void copy_async(unsigned at, const void* from, bool present) {
  const int read = present ? BYTES : 0;
  if constexpr (BYTES == 16 && LINE) {  // past the L1 cache
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(read) : "memory");
  } else if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(read) : "memory");
  } else if constexpr (LINE) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(read)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(read)
                 : "memory");
  }
}
}  // namespace detail
template <int BYTES, bool LINE = false>
SL_DEVICE void copy_async(Shared to, const void* from, bool present = true) {
  detail::copy_async<BYTES, LINE>(to.at, from, present);
}
template <int BYTES>
SL_DEVICE void copy_async(void* to, const void* from, bool present = true) {
  detail::copy_async<BYTES, false>(detail::shared_address(to), from, present);
}
SL_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT>
SL_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
SL_DEVICE void fence_code(int never) {  // the end of a basic block
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p exit; }" ::"r"(never));
}
SL_DEVICE int keep(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class T>
SL_DEVICE T* keep(T* value) {
  asm volatile("" : "+l"(value));
  return value;
}
SL_DEVICE unsigned permute_bytes(unsigned a, unsigned b, unsigned selector) { return __byte_perm(a, b, selector); }

namespace detail {
template <int Bytes>
struct Raw;
template <>
struct Raw<1> {
  using type = unsigned char;
};
template <>
struct Raw<2> {
  using type = unsigned short;
};
template <>
struct Raw<4> {
  using type = unsigned int;
};
template <>
struct Raw<8> {
  using type = uint2;
};
template <>
struct Raw<16> {
  using type = uint4;
};
}  // namespace detail

template <class V>
SL_DEVICE V load_readonly(const V* p) {
  using Raw = typename detail::Raw<sizeof(V)>::type;
  const Raw raw = __ldg(reinterpret_cast<const Raw*>(p));
  V value;
  memcpy(&value, &raw, sizeof(V));  // stays in registers
  return value;
}

template <int DTYPE>  // as mma_k16
SL_DEVICE unsigned fma2(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  if constexpr (DTYPE == 1) {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  } else {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  }
  return d;
}
SL_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SL_DEVICE float expf(float x) { return ::expf(x); }
SL_DEVICE float tanhf(float x) { return ::tanhf(x); }
SL_DEVICE float erff(float x) { return ::erff(x); }

SL_DEVICE unsigned float_bits(float x) { return __float_as_uint(x); }
SL_DEVICE float float_from_bits(unsigned bits) { return __uint_as_float(bits); }

SL_DEVICE float half_bits_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
SL_DEVICE unsigned short float_to_half_bits(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
SL_DEVICE unsigned floats_to_half2_bits(float lo, float hi) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(hi), "f"(lo));
  return bits;
}
SL_DEVICE float bfloat_bits_to_float(unsigned short bits) { return float_from_bits(static_cast<unsigned>(bits) << 16); }
SL_DEVICE unsigned short float_to_bfloat_bits(float x) {  // needs sm_80
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
SL_DEVICE unsigned floats_to_bfloat2_bits(float lo, float hi) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(hi), "f"(lo));
  return bits;
}

}  // namespace sl

#endif  // SLUICE_HOST
#endif
