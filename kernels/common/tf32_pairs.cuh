// More of the matrix unit in fp32, for tiles that lie in shared memory as numbers already split in two
// (common/tf32.cuh).
//
//   mma_tf32_k4(d, a0, a1, b0)     mma_tf32 of half the K: d (16 x 8) += a (16 x 4) b (4 x 8); a0, a1, b0 as there
//   load_shared_again(from)        load_shared that the compiler does not replace by an earlier one of the same word: a
//                                  word of two fragments would be moved from one's registers to the other's, and those
//                                  of the first again for every product
#pragma once

#include "common/tf32.cuh"

namespace sl {

#ifdef SLUICE_HOST

inline void mma_tf32_k4(float (&d)[4], unsigned a0, unsigned a1, unsigned b0) {
  const unsigned a[4] = {a0, a1, 0, 0};
  mma_tf32(d, a, b0, 0);
}
inline unsigned load_shared_again(Shared from) { return load_shared(from); }

#else

SL_DEVICE void mma_tf32_k4(float (&d)[4], unsigned a0, unsigned a1, unsigned b0) {
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(b0));
}
SL_DEVICE unsigned load_shared_again(Shared from) {
  unsigned word;
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(word) : "r"(from.at));
  return word;
}

#endif

}  // namespace sl
