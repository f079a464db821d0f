#include "emulate.hpp"

#include <algorithm>
#include <bit>

namespace sl::test {
namespace {

float activate_fp32(const ConvProblem& v, float a) {
  switch (v.activation) {
    case Activation::none:
      return a;
    case Activation::relu:
      return a < 0 ? 0.0F : a;
    case Activation::clip:
      return a < v.alpha ? v.alpha : a > v.beta ? v.beta : a;
    case Activation::silu:
      return a / (1.0F + std::exp(-a));
    case Activation::hard_swish:
      return a * (std::clamp(a + 3.0F, 0.0F, 6.0F) / 6.0F);
    case Activation::gelu_erf:
      return 0.5F * a * (1.0F + std::erf(a * 0.70710678F));
    case Activation::gelu_tanh:
      return 0.5F * a * (1.0F + std::tanh(0.79788456F * (a + 0.044715F * a * a * a)));
    case Activation::leaky_relu:
      return a < 0 ? v.alpha * a : a;
  }
  return a;
}

float load(DType type, const std::vector<std::byte>& bytes, std::int64_t i) {
  return static_cast<float>(load_element(type, bytes.data(), i));
}

float sum_of_taps(const ConvProblem& v, const HostData& d, const Hardware& hardware, std::int64_t n, std::int64_t k,
                  std::int64_t p, std::int64_t q) {
  const std::int64_t channels = v.channels_per_group(), taps = channels * v.taps();
  float sum = 0;
  for (std::int64_t i = 0; i < taps; ++i) {
    const std::int64_t tap = hardware.backwards ? taps - 1 - i : i;
    const std::int64_t s = tap % v.s, r = tap / v.s % v.r, c = tap / v.taps();
    const std::int64_t h = p * v.stride_h - v.pad_top + r * v.dil_h, w = q * v.stride_w - v.pad_left + s * v.dil_w;
    if (h < 0 || h >= v.h || w < 0 || w >= v.w) continue;
    const float x = load(v.dtype, d.x, x_offset(v, n, k / v.multiplier() * channels + c, h, w));
    sum = hardware.fma(hardware.operand(x), hardware.operand(load(v.dtype, d.w, w_offset(v, k, c, r, s))), sum);
  }
  return sum;
}

}  // namespace

Hardware fp32_fma() { return {}; }

Hardware fp32_mul_add() {
  Hardware hardware;
  hardware.fma = [](float x, float w, float sum) {
    const volatile float product = x * w;  // volatile: no contraction into an fma
    return product + sum;
  };
  hardware.backwards = true;
  return hardware;
}

Hardware tf32() {
  Hardware hardware;
  hardware.operand = [](float v) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) & 0xFFFFE000U); };
  return hardware;
}

Hardware fp16_sums() {
  Hardware hardware;
  hardware.fma = [](float x, float w, float sum) { return half_to_float(float_to_half(std::fma(x, w, sum))); };
  return hardware;
}

std::vector<std::byte> emulate(const ConvProblem& v, const HostData& d, const Hardware& hardware) {
  std::vector<std::byte> y(static_cast<std::size_t>(v.y_elements()) * size_of(v.dtype));
  for (std::int64_t n = 0; n < v.n; ++n) {
    for (std::int64_t k = 0; k < v.k; ++k) {
      for (std::int64_t p = 0; p < v.p; ++p) {
        for (std::int64_t q = 0; q < v.q; ++q) {
          float sum = sum_of_taps(v, d, hardware, n, k, p, q);
          const std::int64_t at = y_offset(v, n, k, p, q);
          if (v.bias != Bias::none) sum += load(v.bias == Bias::f32 ? DType::f32 : v.dtype, d.bias, k);
          if (v.residual) sum += load(v.dtype, d.z, at);
          store_element(v.dtype, y.data(), at, static_cast<double>(activate_fp32(v, sum)));
        }
      }
    }
  }
  return y;
}

}  // namespace sl::test
