// Small kernels that test the matrix instructions and copies of common/platform.cuh itself. Not a schedule.
#ifndef SLUICE_KERNELS_TESTING_MATRIX_CUH
#define SLUICE_KERNELS_TESTING_MATRIX_CUH

#include "common/platform.cuh"

namespace sl {

// x: a (16 x K, row-major) then b (K x 8, row-major), 16-bit; y: d (16 x 8, fp32) = a b + 1. K = 8 or 16. One warp.
template <class Cfg>
__device__ void testing_mma(const SlParams& p) {
  constexpr int K = Cfg::K;
  const auto* a = static_cast<const unsigned short*>(p.x);
  const unsigned short* b = a + 16 * K;
  const int g = thread_id() / 4, t = thread_id() % 4;
  const auto pair = [](unsigned low, unsigned high) { return low | (high << 16); };
  float d[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  unsigned fragment[K / 4], weights[K / 8];
  for (int half = 0; half < K / 8; ++half) {
    const int k = 8 * half + 2 * t;
    fragment[2 * half] = pair(a[g * K + k], a[g * K + k + 1]);
    fragment[2 * half + 1] = pair(a[(g + 8) * K + k], a[(g + 8) * K + k + 1]);
    weights[half] = pair(b[k * 8 + g], b[(k + 1) * 8 + g]);
  }
  if constexpr (K == 16) {
    mma_k16<Cfg::DTYPE>(d, fragment, weights[0], weights[1]);
  } else {
    mma_k8<Cfg::DTYPE>(d, fragment, weights[0]);
  }
  auto* y = static_cast<float*>(p.y);
  for (int i = 0; i < 4; ++i) y[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = d[i];
}

// x: 8 N rows of 8 16-bit elements, through shared memory by copy_async (BYTES at a time; the last row counts as not
// present); y[lane][N] = the words of load_matrix.
template <class Cfg>
__device__ void testing_load_matrix(const SlParams& p) {
  constexpr int ROWS = 8 * Cfg::N, PER_ROW = 16 / Cfg::BYTES;
  SL_SHARED(unsigned short, tile, ROWS * 8);
  const auto* x = static_cast<const unsigned char*>(p.x);
  auto* bytes = reinterpret_cast<unsigned char*>(&tile[0]);
  for (int i = thread_id(); i < ROWS * PER_ROW; i += 32) {
    copy_async<Cfg::BYTES>(bytes + i * Cfg::BYTES, x + i * Cfg::BYTES, i / PER_ROW != ROWS - 1);
  }
  copy_async_commit();
  copy_async_wait<0>();
  barrier();
  unsigned words[Cfg::N];
  load_matrix<Cfg::N, Cfg::TRANS != 0>(words, bytes + thread_id() % ROWS * 16);
  for (int i = 0; i < Cfg::N; ++i) static_cast<unsigned*>(p.y)[thread_id() * Cfg::N + i] = words[i];
}

// y[t] = what lane 31 - t brought, then what the lane 3 below brought, then bytes 1, 7, 0, 6 of (2t, 2t + 1).
template <class Cfg>
__device__ void testing_exchange(const SlParams& p) {
  const int t = thread_id();
  const auto mine = static_cast<const unsigned*>(p.x)[t];
  auto* y = static_cast<unsigned*>(p.y);
  y[t] = shuffle(mine, 31 - t);
  y[32 + t] = shuffle_up(mine, 3);
  y[64 + t] = permute_bytes(mine, mine ^ 0xffffffffU, 0x6071U);
}

// Lanes at and above LIVE return before the matrix instruction: an error of the launch on the host.
template <class Cfg>
__device__ void testing_partial_mma(const SlParams& p) {
  if (thread_id() >= Cfg::LIVE) return;
  float d[4] = {};
  const unsigned a[4] = {};
  mma_k16<1>(d, a, 0, 0);
  static_cast<float*>(p.y)[thread_id()] = d[0];
}

}  // namespace sl

#endif
