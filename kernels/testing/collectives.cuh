// Small kernels that test the platform of common/platform.cuh itself, on the host device and on a GPU. Not a schedule.
#ifndef SLUICE_KERNELS_TESTING_COLLECTIVES_CUH
#define SLUICE_KERNELS_TESTING_COLLECTIVES_CUH

#include "common/platform.cuh"

namespace sl {

// y[block * THREADS + t] = x of the block in reverse order, through shared memory. SYNC 0 leaves the barrier out.
template <class Cfg>
__device__ void testing_reverse(const SlParams& p) {
  SL_SHARED(float, tile, Cfg::THREADS);
  const int t = thread_id();
  const long long base = block_id() * Cfg::THREADS;
  tile[t] = load_readonly(static_cast<const float*>(p.x) + base + t);
  if constexpr (Cfg::SYNC != 0) barrier();
  static_cast<float*>(p.y)[base + t] = tile[Cfg::THREADS - 1 - t];
}

// y[block] = sum of x over the block's THREADS values: shuffles in the warps, shared memory between them.
template <class Cfg>
__device__ void testing_sum(const SlParams& p) {
  SL_SHARED(float, partial, Cfg::THREADS / 32);
  const int t = thread_id();
  float v = load_readonly(static_cast<const float*>(p.x) + block_id() * Cfg::THREADS + t);
  SL_UNROLL
  for (int delta = 16; delta != 0; delta /= 2) v += shuffle_down(v, delta);
  if (t % 32 == 0) partial[t / 32] = v;
  barrier();
  if (t != 0) return;
  float sum = 0;
  for (int i = 0; i < Cfg::THREADS / 32; ++i) sum += partial[i];
  static_cast<float*>(p.y)[block_id()] = sum;
}

// y[t] = x summed over a butterfly of the warp: every lane ends with the warp's sum.
template <class Cfg>
__device__ void testing_butterfly(const SlParams& p) {
  const int t = thread_id();
  float v = static_cast<const float*>(p.x)[t];
  for (int mask = 1; mask < 32; mask *= 2) v += shuffle_xor(v, mask);
  static_cast<float*>(p.y)[t] = v;
}

// y[t] (unsigned) = the ballot of "t is a multiple of 3".
template <class Cfg>
__device__ void testing_ballot(const SlParams& p) {
  const unsigned votes = ballot(thread_id() % 3 == 0);
  warp_sync();
  static_cast<unsigned*>(p.y)[thread_id()] = votes;
}

// Lanes at and above LIVE return first; the others go on to exchange values and to meet at a barrier, many times.
// y[t] = 100 * rounds + the value of the lane below it by one step of shuffle_down.
template <class Cfg>
__device__ void testing_early_exit(const SlParams& p) {
  SL_SHARED(int, count, 1);
  const int t = thread_id();
  if (t == 0) count[0] = 0;
  barrier();
  if (t >= Cfg::LIVE) return;
  float v = static_cast<float>(t);
  for (int round = 0; round < 3; ++round) {
    if (t == round) count[0] += 100;
    barrier();
  }
  const float next = shuffle_down(v, 1);
  static_cast<float*>(p.y)[t] = static_cast<float>(count[0]) + next;
}

// Half of the threads wait at the barrier, the others at a ballot: nobody ever arrives.
template <class Cfg>
__device__ void testing_divergent(const SlParams& p) {
  if (thread_id() < Cfg::AT_BARRIER) {
    barrier();
  } else {
    static_cast<unsigned*>(p.y)[thread_id()] = ballot(true);
  }
}

}  // namespace sl

#endif
