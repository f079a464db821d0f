#include "reference/convolve.hpp"

#include <array>
#include <cmath>
#include <cstring>

namespace sl {
namespace {

// Loaders of one element as double, one a dtype, so that the inner loop has no switch in it.
struct LoadF32 {
  const std::byte* base;
  double operator()(std::int64_t i) const {
    float value;
    std::memcpy(&value, base + i * 4, 4);
    return static_cast<double>(value);
  }
};

struct LoadBF16 {
  const std::byte* base;
  double operator()(std::int64_t i) const {
    std::uint16_t value;
    std::memcpy(&value, base + i * 2, 2);
    return static_cast<double>(bfloat_to_float(value));
  }
};

using HalfTable = std::array<float, 65536>;

const HalfTable& half_table() {
  static const auto table = [] {
    HalfTable result;
    for (std::uint32_t i = 0; i < result.size(); ++i) result[i] = half_to_float(static_cast<std::uint16_t>(i));
    return result;
  }();
  return table;
}

struct LoadF16 {
  const std::byte* base;
  const HalfTable& table = half_table();
  double operator()(std::int64_t i) const {
    std::uint16_t value;
    std::memcpy(&value, base + i * 2, 2);
    return static_cast<double>(table[value]);
  }
};

// The taps of one axis that lie in the input: tap t reads position first + t * dilation.
struct Taps {
  std::int64_t begin, end, first;
};

Taps taps_inside(std::int64_t out, std::int64_t stride, std::int64_t pad, std::int64_t dilation, std::int64_t taps,
                 std::int64_t in) {
  const std::int64_t first = out * stride - pad;
  const std::int64_t begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const std::int64_t end = first >= in ? 0 : (in - 1 - first) / dilation + 1;
  return {begin, end < taps ? end : taps, first};
}

template <class Load>
PreActivation sum_window(const ConvProblem& v, const Load& x, const Load& w, const Place& o) {
  const Taps rows = taps_inside(o.p, v.stride_h, v.pad_top, v.dil_h, v.r, v.h);
  const Taps columns = taps_inside(o.q, v.stride_w, v.pad_left, v.dil_w, v.s, v.w);
  const std::int64_t channels = v.channels_per_group();
  const std::int64_t first_channel = o.k / v.multiplier() * channels;
  const std::int64_t x_step = v.dil_w * (v.layout == Layout::nhwc ? v.c : 1);
  const std::int64_t w_step = v.weight_layout == WeightLayout::ohwi ? channels : 1;
  PreActivation sum;
  if (columns.begin >= columns.end) return sum;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      std::int64_t x_at =
          x_offset(v, o.n, first_channel + c, rows.first + r * v.dil_h, columns.first + columns.begin * v.dil_w);
      std::int64_t w_at = w_offset(v, o.k, c, r, columns.begin);
      for (std::int64_t s = columns.begin; s < columns.end; ++s, x_at += x_step, w_at += w_step) {
        const double product = x(x_at) * w(w_at);  // exact: at most 48 bits
        sum.value += product;
        sum.scale += std::fabs(product);
      }
    }
  }
  return sum;
}

PreActivation sum_window(const ConvProblem& v, const HostTensors& t, const Place& o) {
  switch (v.dtype) {
    case DType::f16:
      return sum_window(v, LoadF16{t.x.data()}, LoadF16{t.w.data()}, o);
    case DType::bf16:
      return sum_window(v, LoadBF16{t.x.data()}, LoadBF16{t.w.data()}, o);
    case DType::f32:
      break;
  }
  return sum_window(v, LoadF32{t.x.data()}, LoadF32{t.w.data()}, o);
}

}  // namespace

Place place_of(const ConvProblem& v, std::int64_t index) {
  Place o{};
  o.q = index % v.q;
  index /= v.q;
  o.p = index % v.p;
  index /= v.p;
  o.k = index % v.k;
  o.n = index / v.k;
  return o;
}

PreActivation pre_activation(const ConvProblem& v, const HostTensors& t, const Place& o) {
  PreActivation sum = sum_window(v, t, o);
  const auto add = [&](double value) {
    sum.value += value;
    sum.scale += std::fabs(value);
  };
  if (v.bias != Bias::none) add(load_element(v.bias == Bias::f32 ? DType::f32 : v.dtype, t.bias.data(), o.k));
  if (v.residual) add(load_element(v.dtype, t.z.data(), y_offset(v, o.n, o.k, o.p, o.q)));
  return sum;
}

double activate(const ConvProblem& v, double a) {
  const double alpha = static_cast<double>(v.alpha);
  const double beta = static_cast<double>(v.beta);
  switch (v.activation) {  // comparisons are such that a NaN falls through to itself
    case Activation::none:
      return a;
    case Activation::relu:
      return a < 0 ? 0.0 : a;
    case Activation::clip:
      return a < alpha ? alpha : a > beta ? beta : a;
    case Activation::silu:
      return a / (1.0 + std::exp(-a));
    case Activation::hard_swish: {
      const double gate = a + 3.0;
      return a * (gate < 0 ? 0.0 : gate > 6 ? 6.0 : gate) / 6.0;
    }
    case Activation::gelu_erf:
      return 0.5 * a * std::erfc(-a / std::sqrt(2.0));
    case Activation::gelu_tanh: {
      constexpr double root = 0.79788456080286535588;  // sqrt(2 / pi)
      return 0.5 * a * (1.0 + std::tanh(root * (a + 0.044715 * a * a * a)));
    }
    case Activation::leaky_relu:
      return a < 0 ? alpha * a : a;
  }
  return a;
}

std::string wrong_sizes(const ConvProblem& v, const HostTensors& t) {
  const auto element = static_cast<std::int64_t>(size_of(v.dtype));
  const std::int64_t bias_element = v.bias == Bias::none ? 0 : v.bias == Bias::f32 ? 4 : element;
  struct Row {
    const char* tensor;
    std::size_t bytes;
    std::int64_t need;
  };
  const Row rows[] = {
      {"x", t.x.size(), v.x_elements() * element},
      {"w", t.w.size(), v.w_elements() * element},
      {"bias", t.bias.size(), v.k * bias_element},
      {"z", t.z.size(), v.residual ? v.y_elements() * element : 0},
  };
  for (const Row& row : rows) {
    if (row.bytes < static_cast<std::size_t>(row.need)) {
      return std::string(row.tensor) + " holds " + std::to_string(row.bytes) + " bytes, must hold " +
             std::to_string(row.need);
    }
  }
  return {};
}

}  // namespace sl
