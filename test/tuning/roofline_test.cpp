// Floors counted by hand, and the count of inside taps against the plain loop over everything.
#include "tuning/roofline.hpp"

#include <gtest/gtest.h>

#include "support/problems.hpp"

namespace sl::test {
namespace {

double counted(const ConvProblem& v) {
  double total = 0;
  for (std::int64_t p = 0; p < v.p; ++p)
    for (std::int64_t q = 0; q < v.q; ++q)
      for (std::int64_t r = 0; r < v.r; ++r)
        for (std::int64_t s = 0; s < v.s; ++s) {
          const std::int64_t h = p * v.stride_h - v.pad_top + r * v.dil_h,
                             w = q * v.stride_w - v.pad_left + s * v.dil_w;
          if (h >= 0 && h < v.h && w >= 0 && w < v.w) ++total;
        }
  return total * static_cast<double>(v.n * v.k * v.channels_per_group());
}

TEST(Roofline, InsideTapsAreThoseOfThePlainLoop) {
  for (const NamedProblem& row : test_problems()) {
    if (row.problem.y_elements() > 100'000) continue;
    EXPECT_EQ(inside_macs(row.problem), counted(row.problem)) << row.problem.to_string();
  }
}

TEST(Roofline, MatrixMappings) {
  // 7x7 on one row of 8 outputs without padding: 7 rows x 16 columns an output.
  const ConvProblem depthwise = parse("g1mb1ic1ih7iw14oc1oh1ow8kh7kw7ph0pw0").value();
  EXPECT_EQ(matrix_macs(depthwise), 8.0 * 7 * 16);
  // 3x3 on 8 channels a group: 9 taps x 8 channels an output beat the Toeplitz mapping's 3 x 16 x 8.
  const ConvProblem grouped = parse("g1mb1ic8ih3iw10oc8oh1ow8kh3kw3ph0pw0").value();
  EXPECT_EQ(matrix_macs(grouped), 64.0 * 3 * 3 * 8);
  // Padding above and below: rows outside cost nothing.
  const ConvProblem padded = parse("g1mb1ic1ih1iw14oc1oh1ow8kh3kw7ph1pw0").value();
  EXPECT_EQ(matrix_macs(padded), 8.0 * 1 * 16);
}

TEST(Roofline, TheFloorTakesTheCheaperUnit) {
  ConvProblem v = parse("g64mb8ic64ih32oc64oh32kh7ph3").value();
  const Peaks peaks{.fma = 1e12, .mma = 1e13};
  EXPECT_DOUBLE_EQ(arithmetic_floor_us(v, peaks), inside_macs(v) / 1e6) << "f32 knows only its own units";
  v.dtype = DType::bf16;
  EXPECT_DOUBLE_EQ(arithmetic_floor_us(v, peaks), matrix_macs(v) / 1e7);
  EXPECT_DOUBLE_EQ(arithmetic_floor_us(v, {.fma = 1e12, .mma = 1e11}), inside_macs(v) / 1e6);
  EXPECT_EQ(arithmetic_floor_us(v, {}), 0) << "nothing measured, no floor";
  v.n = 0;
  EXPECT_EQ(arithmetic_floor_us(v, peaks), 0);
}

}  // namespace
}  // namespace sl::test
