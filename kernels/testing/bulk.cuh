// Small kernels that test common/bulk.cuh. Not a schedule.
#ifndef SLUICE_KERNELS_TESTING_BULK_CUH
#define SLUICE_KERNELS_TESTING_BULK_CUH

#include "common/bulk.cuh"

namespace sl {

// y = x with the THREADS words of each of aux[0] pieces in reverse order, through a ring of STAGES buffers of x and two
// of y. FAULT leaves something out: 1 the wait for a piece, 2 the wait before results are overwritten, 3 an arrival, 4
// half of the bytes announced, 5 the wait at the end; 6 arrives twice, 7 copies to where no 16 bytes begin.
template <class Cfg>
__device__ void testing_bulk(const SlParams& p) {
  constexpr int WORDS = Cfg::THREADS, BYTES = 4 * WORDS, STAGES = Cfg::STAGES, FAULT = Cfg::FAULT;
  SL_DYNAMIC_SHARED(unsigned, xs);
  unsigned* const ys = xs + STAGES * WORDS;
  const Shared full(ys + 2 * WORDS);
  const int t = thread_id(), pieces = static_cast<int>(p.aux[0]);
  const auto* const x = static_cast<const unsigned*>(p.x);
  auto* const y = static_cast<unsigned*>(p.y);
  if (t == 0) {
    for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + 8 * stage, 1);
    mbarrier_publish();
  }
  barrier();
  const auto load = [&](int piece) {
    if (t != 0 || piece >= pieces) return;
    const Shared at = full + piece % STAGES * 8;
    if (FAULT != 3) mbarrier_expect(at, FAULT == 4 ? BYTES / 2 : BYTES);
    if (FAULT == 6) mbarrier_expect(at, 0);
    bulk_load(Shared(xs + piece % STAGES * WORDS + (FAULT == 7 ? 1 : 0)), x + piece * WORDS, BYTES, at);
  };
  for (int piece = 0; piece < STAGES; ++piece) load(piece);
  for (int piece = 0; piece < pieces; ++piece) {
    if (FAULT != 1) mbarrier_wait(full + piece % STAGES * 8, piece / STAGES % 2);
    ys[piece % 2 * WORDS + t] = xs[piece % STAGES * WORDS + WORDS - 1 - t];
    bulk_publish();
    if (t == 0 && FAULT != 2) bulk_wait<0>();
    barrier();
    if (t == 0) {
      bulk_store(y + piece * WORDS, Shared(ys + piece % 2 * WORDS), BYTES);
      bulk_commit();
    }
    load(piece + STAGES);
  }
  if (t == 0 && FAULT != 5) bulk_wait<0>();
}

}  // namespace sl

#endif
