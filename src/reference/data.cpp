// Data from a seed: element i of a tensor is a function of (seed, tensor, i) alone, so it does not matter which thread
// makes it.
#include <algorithm>

#include "reference/parallel.hpp"
#include "reference/reference.hpp"

namespace sl {
namespace {

enum class Tensor : std::uint64_t { x = 1, w = 2, bias = 3, z = 4 };

// splitmix64's output function (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t v) {
  v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9ULL;
  v = (v ^ (v >> 27)) * 0x94D049BB133111EBULL;
  return v ^ (v >> 31);
}

class Stream {
 public:
  Stream(std::uint64_t seed, Tensor tensor) : start_(mix(mix(seed) + static_cast<std::uint64_t>(tensor))) {}
  std::uint64_t bits(std::int64_t i) const {
    return mix(start_ + (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15ULL);
  }
  double unit(std::int64_t i) const { return static_cast<double>(bits(i) >> 11) * 0x1p-52 - 1.0; }  // [-1, 1)

 private:
  std::uint64_t start_;
};

// Whole numbers low..high with either sign; where low is large they are odd, so that none of their bits is idle.
struct Whole {
  std::int64_t low, high;
  double operator()(std::uint64_t bits) const {
    const auto span = static_cast<std::uint64_t>(high - low + 1);
    auto value = low + static_cast<std::int64_t>((bits >> 1) % span);
    if (low > 1) value |= 1;
    return static_cast<double>((bits & 1) != 0 ? value : -value);
  }
};

// f32: one factor of each product has 12 significant bits (TF32 keeps 11) and the other is small; which one alternates
// with the channel, so that both operands are tried. A filter's nonzero taps are bounded: 1024 * 4095 * 3 plus bias and
// z stays below 2^24, so every partial sum is exact in any order. The 16-bit types: sums of 8 * 4 a tap stay below it
// too.
constexpr Whole wide = {2049, 4095};
constexpr Whole narrow = {1, 3};
constexpr Whole f32_addend = {2049, 131071};
constexpr Whole small_x = {1, 8};
constexpr Whole small_w = {1, 4};
constexpr Whole small_addend = {1, 16};
constexpr std::int64_t f32_taps = 1024;
constexpr std::int64_t small_taps = 1 << 18;

std::vector<std::byte> fill(DType type, std::int64_t elements, const auto& value) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size_of(type));
  parallel_blocks(elements, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) store_element(type, bytes.data(), i, value(i));
  });
  return bytes;
}

bool wide_x(const ConvProblem& v, std::int64_t channel) { return v.dtype == DType::f32 && channel % 2 == 0; }

std::int64_t x_channel(const ConvProblem& v, std::int64_t i) {
  return v.layout == Layout::nhwc ? i % v.c : i / (v.h * v.w) % v.c;
}

struct WeightPlace {
  std::int64_t k, c, tap;
};
WeightPlace weight_place(const ConvProblem& v, std::int64_t i) {
  const std::int64_t channels = v.channels_per_group();
  if (v.weight_layout == WeightLayout::ohwi) return {i / (channels * v.taps()), i % channels, i / channels % v.taps()};
  return {i / (channels * v.taps()), i / v.taps() % channels, i % v.taps()};
}

double integer_x(const ConvProblem& v, const Stream& stream, std::int64_t i) {
  const Whole& range = v.dtype != DType::f32 ? small_x : wide_x(v, x_channel(v, i)) ? wide : narrow;
  return range(stream.bits(i));
}

double integer_w(const ConvProblem& v, const Stream& stream, std::int64_t i) {
  const WeightPlace place = weight_place(v, i);
  const std::int64_t channels = v.channels_per_group();
  // Of a filter too large for exact sums, every step-th tap counts; where that starts differs from filter to filter.
  const std::int64_t most = v.dtype == DType::f32 ? f32_taps : small_taps;
  const std::int64_t step = (v.taps() * channels + most - 1) / most;
  if ((place.c * v.taps() + place.tap + place.k) % step != 0) return 0.0;
  if (v.dtype != DType::f32) return small_w(stream.bits(i));
  const std::int64_t channel = place.k / v.multiplier() * channels + place.c;
  return (wide_x(v, channel) ? narrow : wide)(stream.bits(i));
}

}  // namespace

HostData make_data(const ConvProblem& v, std::uint64_t seed, Fill kind) {
  const Stream x(seed, Tensor::x), w(seed, Tensor::w), bias(seed, Tensor::bias), z(seed, Tensor::z);
  const bool random = kind == Fill::random;
  const Whole& addend = v.dtype == DType::f32 ? f32_addend : small_addend;
  HostData data;
  data.x = fill(v.dtype, v.x_elements(), [&](std::int64_t i) { return random ? x.unit(i) : integer_x(v, x, i); });
  data.w = fill(v.dtype, v.w_elements(), [&](std::int64_t i) { return random ? w.unit(i) : integer_w(v, w, i); });
  if (v.bias != Bias::none) {
    data.bias = fill(v.bias == Bias::f32 ? DType::f32 : v.dtype, v.k,
                     [&](std::int64_t i) { return random ? bias.unit(i) : addend(bias.bits(i)); });
  }
  if (v.residual) {
    data.z = fill(v.dtype, v.y_elements(), [&](std::int64_t i) { return random ? z.unit(i) : addend(z.bits(i)); });
  }
  return data;
}

}  // namespace sl
