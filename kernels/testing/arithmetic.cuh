// Small kernels that test arithmetic and conversions of common/platform.cuh. Not a schedule.
#ifndef SLUICE_KERNELS_TESTING_ARITHMETIC_CUH
#define SLUICE_KERNELS_TESTING_ARITHMETIC_CUH

#include "common/platform.cuh"

namespace sl {

// y[i] (unsigned) = bits of FUNCTION(x[i]) for `work` floats x.
// 0 expf, 1 tanhf, 2 erff, 3 to half, 4 to bfloat, 5 half and back, 6 bfloat and back, 7 both halves of (x, -x),
// 8 both bfloats of (x, -x), 9 fma(x, x, -1).
template <class Cfg>
__device__ void testing_function(const SlParams& p) {
  const long long i = block_id() * block_dim() + thread_id();
  if (i >= p.work) return;
  const float x = static_cast<const float*>(p.x)[i];
  unsigned bits = 0;
  if constexpr (Cfg::FUNCTION == 0) bits = float_bits(expf(x));
  if constexpr (Cfg::FUNCTION == 1) bits = float_bits(tanhf(x));
  if constexpr (Cfg::FUNCTION == 2) bits = float_bits(erff(x));
  if constexpr (Cfg::FUNCTION == 3) bits = float_to_half_bits(x);
  if constexpr (Cfg::FUNCTION == 4) bits = float_to_bfloat_bits(x);
  if constexpr (Cfg::FUNCTION == 5) bits = float_bits(half_bits_to_float(float_to_half_bits(x)));
  if constexpr (Cfg::FUNCTION == 6) bits = float_bits(bfloat_bits_to_float(float_to_bfloat_bits(x)));
  if constexpr (Cfg::FUNCTION == 7) bits = floats_to_half2_bits(x, -x);
  if constexpr (Cfg::FUNCTION == 8) bits = floats_to_bfloat2_bits(x, -x);
  if constexpr (Cfg::FUNCTION == 9) bits = float_bits(fma(x, x, -1.0F));
  static_cast<unsigned*>(p.y)[i] = bits;
}

}  // namespace sl

#endif
