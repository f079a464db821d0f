// Arithmetic and conversions of kernel code on the host device, against independent oracles.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "jit/host_kernels.hpp"

namespace sl::test {
namespace {

/// Every 16-bit float of a format, its neighbours in fp32 and the midpoint to the next one: where rounding decides.
std::vector<float> decisive_inputs(float (*widen)(std::uint16_t)) {
  std::vector<float> inputs;
  for (std::uint32_t bits = 0; bits < 0x8000; ++bits) {
    const float value = widen(static_cast<std::uint16_t>(bits));
    const float next = widen(static_cast<std::uint16_t>(bits + 1));
    const float middle = static_cast<float>((static_cast<double>(value) + static_cast<double>(next)) / 2);
    const float around[] = {value, middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY)};
    for (const float x : around) inputs.insert(inputs.end(), {x, -x});
  }
  const auto max = std::numeric_limits<float>::max();
  for (const float x : {65504.0F, 65519.996F, 65520.0F, 65536.0F, max, 0x1p-149F, 0x1p-25F, 0x1.000002p-25F})
    inputs.insert(inputs.end(), {x, -x});
  return inputs;
}

float widen_half(std::uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
float widen_bfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t narrow_half(float x) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)); }

/// The nearer of the two neighbours, decided in double; ties to the even one.
std::uint16_t narrow_bfloat(float x) {
  const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  if (std::isinf(x)) return bits;
  const auto up = static_cast<std::uint16_t>(bits + 1);
  // Past the largest finite value the next step of the same size stands for infinity.
  const double low = std::fabs(static_cast<double>(widen_bfloat(bits)));
  const double high = std::isinf(widen_bfloat(up)) ? 0x1p128 : std::fabs(static_cast<double>(widen_bfloat(up)));
  const double middle = (low + high) / 2, magnitude = std::fabs(static_cast<double>(x));
  if (magnitude != middle) return magnitude < middle ? bits : up;
  return bits % 2 == 0 ? bits : up;
}

RunOutcome evaluate(int function, const std::vector<float>& x) {
  const KernelSpec spec = testing_kernel("function", "arithmetic", {{"FUNCTION", function}}, 128);
  const auto grid = static_cast<std::int64_t>((x.size() + 127) / 128);
  RunOutcome outcome =
      run_on_host(spec, x.data(), x.size() * 4, x.size() * 4, {.grid = grid, .work = static_cast<long long>(x.size())});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  return outcome;
}

void check_narrowing(int function, int pair, int round_trip, float (*widen)(std::uint16_t),
                     std::uint16_t (*narrow)(float)) {
  const std::vector<float> x = decisive_inputs(widen);
  const RunOutcome bits = evaluate(function, x), pairs = evaluate(pair, x), back = evaluate(round_trip, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto got = static_cast<std::uint16_t>(bits.at<std::uint32_t>(i));
    if (std::isnan(x[i])) {
      ASSERT_TRUE(std::isnan(widen(got))) << i;
      ASSERT_TRUE(std::isnan(back.at<float>(i))) << i;
      continue;
    }
    ASSERT_EQ(got, narrow(x[i])) << "x = " << std::hexfloat << x[i];
    ASSERT_EQ(pairs.at<std::uint32_t>(i), got | static_cast<std::uint32_t>(narrow(-x[i])) << 16) << x[i];
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back.at<float>(i)), std::bit_cast<std::uint32_t>(widen(got))) << x[i];
  }
}

void prefetch_functions() {
  std::vector<KernelSpec> specs;
  for (int f = 0; f <= 9; ++f) specs.push_back(testing_kernel("function", "arithmetic", {{"FUNCTION", f}}, 128));
  prefetch(specs);
}

TEST(HostArithmetic, HalfRoundsToNearestEven) {
  prefetch_functions();
  check_narrowing(3, 7, 5, widen_half, narrow_half);
}
TEST(HostArithmetic, BfloatRoundsToNearestEven) {
  prefetch_functions();
  check_narrowing(4, 8, 6, widen_bfloat, narrow_bfloat);
}

TEST(HostArithmetic, TranscendentalsWithinTwoUlp) {
  prefetch_functions();
  struct Case {
    int function;
    double (*exact)(double);
    float low, high;
  };
  const Case cases[] = {{0, std::exp, -87.0F, 88.0F}, {1, std::tanh, -12.0F, 12.0F}, {2, std::erf, -5.0F, 5.0F}};
  for (const Case& c : cases) {
    std::vector<float> x;
    for (int i = 0; i <= 20000; ++i) x.push_back(c.low + (c.high - c.low) * static_cast<float>(i) / 20000.0F);
    const RunOutcome got = evaluate(c.function, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = c.exact(static_cast<double>(x[i]));
      const float magnitude = std::fabs(static_cast<float>(want));
      const double ulp = static_cast<double>(std::nextafter(magnitude, INFINITY) - magnitude);
      ASSERT_LE(std::fabs(static_cast<double>(got.at<float>(i)) - want), 2 * ulp) << c.function << " at " << x[i];
    }
  }
}

TEST(HostArithmetic, FmaRoundsOnce) {
  const float x = 1.0F + 0x1p-12F;  // x * x - 1 = 2^-11 + 2^-24: lost if the product is rounded first
  const RunOutcome got = evaluate(9, {x});
  EXPECT_EQ(got.at<float>(0), 0x1p-11F + 0x1p-24F);
}

}  // namespace
}  // namespace sl::test
