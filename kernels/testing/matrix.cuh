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

// The columns that group `group` of 4 of row `row` keeps, as 4 bits of a pick: every ordered pair has its turn.
SL_DEVICE unsigned testing_pick(int row, int group) {
  const int turn = (row * 5 + group) % 6;
  const int first = turn < 3 ? 0 : (turn < 5 ? 1 : 2), second = turn < 3 ? turn + 1 : (turn < 5 ? turn - 1 : 3);
  return static_cast<unsigned>(first | (second << 2));
}

// x: the kept half of a (16 x K / 2, row-major), then b (K x 8, row-major), 16-bit; y: d = a b + 1. K = 16 or 32.
template <class Cfg>
__device__ void testing_mma_sparse(const SlParams& p) {
  constexpr int K = Cfg::K;
  const auto* a = static_cast<const unsigned short*>(p.x);
  const unsigned short* b = a + 16 * (K / 2);
  const int g = thread_id() / 4, t = thread_id() % 4;
  const auto pair = [](unsigned low, unsigned high) { return low | (high << 16); };
  float d[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  unsigned kept[K / 8], dense[K / 8];
  for (int half = 0; half < K / 16; ++half) {
    const int k = 8 * half + 2 * t;
    kept[2 * half] = pair(a[g * (K / 2) + k], a[g * (K / 2) + k + 1]);
    kept[2 * half + 1] = pair(a[(g + 8) * (K / 2) + k], a[(g + 8) * (K / 2) + k + 1]);
  }
  for (int i = 0; i < K / 8; ++i) {
    const int k = 8 * i + 2 * t;
    dense[i] = pair(b[k * 8 + g], b[(k + 1) * 8 + g]);
  }
  unsigned pick = 0xffffffffU;  // of lanes that nobody asks
  if (t < K / 16) {
    pick = 0;
    for (int i = 0; i < 4; ++i) {
      pick |= testing_pick(g, 4 * t + i) << (4 * i);
      pick |= testing_pick(g + 8, 4 * t + i) << (16 + 4 * i);
    }
  }
  if constexpr (K == 32) {
    mma_sparse_k32<Cfg::DTYPE>(d, kept, dense, pick);
  } else {
    mma_sparse_k16<Cfg::DTYPE>(d, kept, dense, pick);
  }
  auto* y = static_cast<float*>(p.y);
  for (int i = 0; i < 4; ++i) y[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = d[i];
}

// y[t] = its word with the halves exchanged, by way of shared memory; y[32 + t] = 0; y[64 + t] = (a, b) * 2 + (b, a) of
// its two 16-bit elements.
template <class Cfg>
__device__ void testing_shared(const SlParams& p) {
  SL_SHARED(unsigned, words, 64);
  const int t = thread_id();
  const auto mine = static_cast<const unsigned*>(p.x)[t];
  const Shared start(&words[0]), place = keep(start + 4 * t);
  store_shared(place, mine);
  store_shared(place + 128, mine);
  const unsigned low = load_shared_half(place), high = load_shared_half(place + 2);
  store_shared_half(place, high);
  store_shared_half(place + 2, low);
  barrier();
  if (t < 8) clear_shared(start + 128 + 16 * t);
  barrier();
  auto* y = static_cast<unsigned*>(p.y);
  y[t] = load_shared(place);
  y[32 + t] = load_shared(place + 128);
  constexpr unsigned two = 0x40004000U;  // 2.0 twice, in f16 and in bf16 alike
  y[64 + t] = fma2<Cfg::DTYPE>(mine, two, (mine << 16) | (mine >> 16));
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
