// y = phi(conv + bias + z) in float, then one rounding.
#pragma once

#include "common/dtype.cuh"
#include "common/index.cuh"

namespace sl {

enum { kBiasNone = 0, kBiasSame = 1, kBiasF32 = 2 };  // the order of sl::Bias
enum {                                                // the order of sl::Activation
  kNone = 0,
  kRelu = 1,
  kClip = 2,
  kSilu = 3,
  kHardSwish = 4,
  kGeluErf = 5,
  kGeluTanh = 6,
  kLeakyRelu = 7
};

/// Comparisons are written so that a NaN comes out as NaN.
template <int ACT>
SL_DEVICE float activate(float a, float alpha, float beta) {
  if constexpr (ACT == kRelu) {
    return a < 0.0F ? 0.0F : a;
  } else if constexpr (ACT == kClip) {
    return a < alpha ? alpha : (a > beta ? beta : a);
  } else if constexpr (ACT == kSilu) {
    return a / (1.0F + sl::expf(-a));
  } else if constexpr (ACT == kHardSwish) {
    const float gate = a + 3.0F;
    if (gate >= 6.0F) return a;  // a * 6 could overflow
    return a * ((gate < 0.0F ? 0.0F : gate) / 6.0F);
  } else if constexpr (ACT == kGeluErf) {
    return 0.5F * a * (1.0F + sl::erff(a * 0.70710678118654752F));
  } else if constexpr (ACT == kGeluTanh) {
    const float inner = 0.79788456080286536F * (a + 0.044715F * a * a * a);
    return 0.5F * a * (1.0F + sl::tanhf(inner));
  } else if constexpr (ACT == kLeakyRelu) {
    return a < 0.0F ? alpha * a : a;
  } else {
    return a;
  }
}

/// bias[k], or 0 where the problem has none.
template <class Cfg>
SL_DEVICE float bias_of(const SlParams& p, long long k) {
  if constexpr (Cfg::BIAS == kBiasSame) {
    return load_one<Cfg>(static_cast<const Bits<Cfg>*>(p.bias) + k);
  } else if constexpr (Cfg::BIAS == kBiasF32) {
    return float_from_bits(load_readonly(static_cast<const unsigned*>(p.bias) + k));
  } else {
    return 0.0F;
  }
}

/// Finishes N outputs that lie side by side in y at `offset` (aligned for N elements, at most 16 bytes).
template <class Cfg, int N>
SL_DEVICE void finish(const SlParams& p, Index<Cfg> offset, const float (&sum)[N]) {
  float out[N];
  SL_UNROLL
  for (int i = 0; i < N; ++i) out[i] = sum[i];
  if constexpr (Cfg::RESIDUAL != 0) {
    float z[N];
    load_floats<Cfg, N, false>(z, static_cast<const Bits<Cfg>*>(p.z) + offset);
    SL_UNROLL
    for (int i = 0; i < N; ++i) out[i] += z[i];
  }
  SL_UNROLL
  for (int i = 0; i < N; ++i) out[i] = activate<Cfg::ACT>(out[i], p.alpha, p.beta);
  store_floats<Cfg, N>(static_cast<Bits<Cfg>*>(p.y) + offset, out);
}

/// The same for N outputs of one row of which those from `limit` on lie outside it; WIDTH = elements of one store (N
/// and the row length are multiples of it).
template <class Cfg, int WIDTH, int N>
SL_DEVICE void finish_row(const SlParams& p, Index<Cfg> offset, const float (&sum)[N], int limit) {
  static_assert(N % WIDTH == 0, "a row of outputs is stored in whole vectors");
  SL_UNROLL
  for (int i = 0; i < N; i += WIDTH) {
    if (i < limit) {
      float part[WIDTH];
      SL_UNROLL
      for (int j = 0; j < WIDTH; ++j) part[j] = sum[i + j];
      finish<Cfg, WIDTH>(p, offset + i, part);
    }
  }
}

}  // namespace sl
