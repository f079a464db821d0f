// Scalar conversions: every 16-bit pattern, and doubles against an oracle that knows only ordering.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "reference/reference.hpp"
#include "support/check.hpp"

namespace sl {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The value of a pattern from the definition of the format: sign, exponent, mantissa.
double half_by_definition(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * infinity : nan;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

double bfloat_by_definition(std::uint16_t bits) {
  const int exponent = (bits >> 7) & 255, mantissa = bits & 127;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 255) return mantissa == 0 ? sign * infinity : nan;
  return exponent == 0 ? sign * std::ldexp(mantissa, -133) : sign * std::ldexp(128 + mantissa, exponent - 134);
}

struct Format {
  const char* name;
  double (*definition)(std::uint16_t);
  float (*widen)(std::uint16_t);
  std::uint16_t (*round)(double);
  std::uint16_t infinity_bits;
  double overflow;  // what lies half a step beyond the largest finite value, and rounds to infinity
};
const Format formats[] = {
    {"half", half_by_definition, half_to_float, double_to_half, 0x7C00, 65520.0},
    {"bfloat", bfloat_by_definition, bfloat_to_float, double_to_bfloat, 0x7F80, 0x1.FFp127},
};

TEST(Convert, EveryPatternMeansWhatTheFormatSaysAndRoundTrips) {
  for (const Format& format : formats) {
    for (std::uint32_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const double want = format.definition(bits);
      const float got = format.widen(bits);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << format.name << " " << i;
        ASSERT_TRUE(std::isnan(format.definition(format.round(static_cast<double>(got))))) << format.name << " " << i;
        continue;
      }
      ASSERT_EQ(static_cast<double>(got), want) << format.name << " " << i;
      ASSERT_EQ(std::signbit(got), (bits & 0x8000) != 0) << format.name << " " << i;
      ASSERT_EQ(format.round(want), bits) << format.name << " " << i;
    }
  }
}

// Nearest of the two neighbours by distance; of two equally near, the one whose last bit is 0. The finite values are
// sorted by their bits, so the oracle is a binary search.
std::uint16_t oracle(const Format& format, double value) {
  const double size = std::fabs(value);
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (size >= format.overflow) return sign | format.infinity_bits;
  std::uint16_t low = 0, high = format.infinity_bits;  // value(low) <= size < value(high)
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (format.definition(middle) <= size ? low : high) = middle;
  }
  if (high == format.infinity_bits) return sign | low;
  const double below = size - format.definition(low), above = format.definition(high) - size;  // exact
  const bool up = above < below || (above == below && (low & 1) != 0);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

TEST(Convert, DoublesRoundToNearestEvenOnce) {
  for (const Format& format : formats) {
    std::vector<double> values = {0.0,
                                  -0.0,
                                  infinity,
                                  -infinity,
                                  std::numeric_limits<double>::denorm_min(),
                                  std::numeric_limits<double>::max(),
                                  format.overflow,
                                  std::nextafter(format.overflow, 0.0)};
    // Every value, every midpoint between neighbours, and the doubles beside both.
    for (std::uint32_t i = 0; i + 1 < format.infinity_bits; ++i) {
      const double value = format.definition(static_cast<std::uint16_t>(i));
      const double middle = (value + format.definition(static_cast<std::uint16_t>(i + 1))) / 2;
      for (const double v : {value, middle}) {
        values.insert(values.end(), {v, -v, std::nextafter(v, infinity), std::nextafter(v, -infinity)});
      }
    }
    std::mt19937_64 random(test::test_seed(7));
    for (int i = 0; i < 50000; ++i) {
      const double v = std::bit_cast<double>(random());
      if (!std::isnan(v)) values.push_back(v);
      values.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -70 - i % 40));
    }
    for (const double value : values) {
      ASSERT_EQ(format.round(value), oracle(format, value)) << format.name << " of " << value;
    }
    EXPECT_TRUE(std::isnan(format.definition(format.round(nan))));
    EXPECT_TRUE(std::isnan(format.definition(format.round(std::bit_cast<double>(0xFFF0000000000001ULL)))));
  }
}

// A double that fp32 rounds onto a tie of f16: two roundings would go the wrong way.
TEST(Convert, NoDoubleRounding) {
  const double value = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(double_to_half(value), 0x3C01);
  EXPECT_EQ(float_to_half(static_cast<float>(value)), 0x3C00);
  EXPECT_EQ(double_to_bfloat(1.0 + 0x1p-8 + 0x1p-40), 0x3F81);
}

TEST(Convert, ElementsOfRawTensors) {
  std::vector<std::byte> bytes(16);
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (std::int64_t i = 0; i < 4; ++i) store_element(type, bytes.data(), i, static_cast<double>(i) - 1.5);
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(load_element(type, bytes.data(), i), static_cast<double>(i) - 1.5) << name(type);
    }
  }
}

}  // namespace
}  // namespace sl
