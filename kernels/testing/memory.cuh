// Small kernels that test shared memory, decoding and loads of common/platform.cuh. Not a schedule.
#ifndef SLUICE_KERNELS_TESTING_MEMORY_CUH
#define SLUICE_KERNELS_TESTING_MEMORY_CUH

#include "common/platform.cuh"

namespace sl {

// Writes element AT of an array of 16 floats: outside it where AT is not 0 to 15.
template <class Cfg>
__device__ void testing_overrun(const SlParams& p) {
  SL_SHARED(float, first, 16);
  SL_SHARED(float, victim, 16);
  first[thread_id() % 16] = 1.0F;
  barrier();
  if (thread_id() == 0 && block_id() == p.aux[0]) victim[Cfg::AT] = 2.0F;
  barrier();
  static_cast<float*>(p.y)[thread_id()] = first[thread_id() % 16];
}

// Writes byte `aux[0]` of the dynamic shared memory, then copies its first bytes to y: 0xff where nothing was written.
template <class Cfg>
__device__ void testing_dynamic(const SlParams& p) {
  SL_DYNAMIC_SHARED(unsigned char, bytes);
  if (thread_id() == 0) bytes[p.aux[0]] = 7;
  barrier();
  static_cast<unsigned char*>(p.y)[thread_id()] = bytes[thread_id()];
}

// y[block] (long long) = block * aux[0] + threads of the grid: what a 64-bit decode must not cut off.
template <class Cfg>
__device__ void testing_decode(const SlParams& p) {
  if (thread_id() == block_dim() - 1)
    static_cast<long long*>(p.y)[block_id()] = block_id() * p.aux[0] + grid_dim() * block_dim();
}

template <int Bytes>
struct alignas(Bytes) TestingVector {
  unsigned char byte[Bytes];
};

// y = x through load_readonly of BYTES a time, starting aux[0] bytes into x.
template <class Cfg>
__device__ void testing_load(const SlParams& p) {
  using Vector = TestingVector<Cfg::BYTES>;
  const auto* x = reinterpret_cast<const Vector*>(static_cast<const unsigned char*>(p.x) + p.aux[0]);
  static_cast<Vector*>(p.y)[thread_id()] = load_readonly(x + thread_id());
}

// Does not compile where BROKEN is not 0.
template <class Cfg>
__device__ void testing_broken(const SlParams& p) {
  static_assert(Cfg::BROKEN == 0, "this kernel is broken on purpose");
  static_cast<float*>(p.y)[thread_id()] = 1.0F;
}

}  // namespace sl

#endif
