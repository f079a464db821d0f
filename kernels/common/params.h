// The one parameter block that every kernel takes by value. Shared by kernels and host code: plain C, no includes.
#ifndef SLUICE_KERNELS_PARAMS_H
#define SLUICE_KERNELS_PARAMS_H

// Exact division of 0 <= a < 2^31 by a constant 1 <= d < 2^31: q = (a * mul) >> shift with a 64-bit product (Granlund
// and Montgomery 1994). made by fast_div() in schedules/; kernels use sl::div() of common/index.cuh.
struct SlFastDiv {
  unsigned int mul, shift, divisor, pad;
};

// Sizes in elements, all 64-bit; meaning as in ConvProblem. `work` is the number of work items (what grid x block
// covers) and `aux`/`div` are a schedule's own: its .cpp fills them, its .cuh reads them.
struct SlParams {
  const void* x;
  const void* weight;
  const void* bias;  // null where the problem has none
  const void* z;     // null where the problem has none
  void* y;
  long long n, c, h, w, k, p, q;
  long long pad_top, pad_left;
  long long work;
  float alpha, beta;
  long long aux[8];
  struct SlFastDiv div[6];
};

#endif
