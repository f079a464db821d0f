// What the machine can do at most, measured by kernels that do nothing else: a copy, fp32 multiply-adds, matrix
// multiply-adds. The floors that schedules are held against come from these. Not a schedule.
#ifndef SLUICE_KERNELS_PROBE_PEAKS_CUH
#define SLUICE_KERNELS_PROBE_PEAKS_CUH

#include "common/dtype.cuh"
#include "common/index.cuh"

namespace sl {

/// Copies p.work 16-byte words from x to y, both 16-byte aligned: one word a thread.
template <class Cfg>
SL_DEVICE void probe_copy(const SlParams& p) {
  const long long i = block_id() * Cfg::THREADS + thread_id();
  if (i < p.work) store_raw<16>(static_cast<Word4*>(p.y) + i, load_raw<16, true>(static_cast<const Word4*>(p.x) + i));
}

/// p.aux[0] rounds of 16 chains of 16 multiply-adds a thread; y[thread of the grid] = their sum.
template <class Cfg>
SL_DEVICE void probe_fma(const SlParams& p) {
  constexpr int CHAINS = 16, STEPS = 16;
  float sum[CHAINS];
  const float factor = 0.5F + static_cast<float>(thread_id()) * 0x1p-12F;
  SL_UNROLL
  for (int i = 0; i < CHAINS; ++i) sum[i] = static_cast<float>(i);
  SL_UNROLL_BY(1)
  for (long long round = 0; round < p.aux[0]; ++round) {
    SL_UNROLL
    for (int step = 0; step < STEPS; ++step) {
      SL_UNROLL
      for (int i = 0; i < CHAINS; ++i) sum[i] = sl::fma(sum[i], factor, 1.0F);
    }
  }
  float total = 0.0F;
  SL_UNROLL
  for (int i = 0; i < CHAINS; ++i) total += sum[i];
  static_cast<float*>(p.y)[block_id() * Cfg::THREADS + thread_id()] = total;
}

/// p.aux[0] rounds of 8 chains of 4 matrix multiply-adds (16 x 8 x 16) a warp; y as above.
template <class Cfg>
SL_DEVICE void probe_mma(const SlParams& p) {
  constexpr int CHAINS = 8, STEPS = 4;
  float sum[CHAINS][4];
  SL_UNROLL
  for (int i = 0; i < CHAINS; ++i) {
    SL_UNROLL
    for (int j = 0; j < 4; ++j) sum[i][j] = static_cast<float>(i + j);
  }
  const unsigned small = 0x10001000U + static_cast<unsigned>(thread_id());  // small numbers of both 16-bit types
  const unsigned a[4] = {small, small + 1, small + 2, small + 3};
  SL_UNROLL_BY(1)
  for (long long round = 0; round < p.aux[0]; ++round) {
    SL_UNROLL
    for (int step = 0; step < STEPS; ++step) {
      SL_UNROLL
      for (int i = 0; i < CHAINS; ++i) mma_k16<Cfg::DTYPE>(sum[i], a, small + 4, small + 5);
    }
  }
  float total = 0.0F;
  SL_UNROLL
  for (int i = 0; i < CHAINS; ++i) total += sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
  static_cast<float*>(p.y)[block_id() * Cfg::THREADS + thread_id()] = total;
}

}  // namespace sl

#endif
