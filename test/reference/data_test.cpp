// Test data: the same from the same seed, of the stated kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/reference.hpp"
#include "support/problems.hpp"

namespace sl {
namespace {

TEST(Data, DependsOnTheSeedAlone) {
  for (const ConvProblem& v : test::spread_variants(test::test_problem("dw_5x5"), 3)) {
    for (const Fill fill : {Fill::random, Fill::integer}) {
      const HostData a = make_data(v, 1, fill), b = make_data(v, 1, fill), c = make_data(v, 2, fill);
      EXPECT_EQ(a.x, b.x);
      EXPECT_EQ(a.w, b.w);
      EXPECT_EQ(a.bias, b.bias);
      EXPECT_EQ(a.z, b.z);
      EXPECT_NE(a.x, c.x);
      EXPECT_NE(a.w, c.w);
    }
  }
}

// Large enough for several threads; the first values are those of a small tensor.
TEST(Data, DoesNotDependOnTheThreads) {
  ConvProblem small = test::test_problem("dw_rows_of_8"), large = small;
  large.n = 300;
  const auto a = make_data(small, 9).x, b = make_data(large, 9).x;
  ASSERT_GT(b.size(), a.size());
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
}

TEST(Data, RandomIsUniformInMinusOneToOne) {
  ConvProblem v = test::test_problem("dw_c64");
  v.n = 8;
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    v.dtype = type;
    const HostData data = make_data(v, 4);
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < v.x_elements(); ++i) {
      const double x = load_element(type, data.x.data(), i);
      ASSERT_LE(std::fabs(x), 1.0);
      sum += x;
      squares += x * x;
    }
    const auto count = static_cast<double>(v.x_elements());
    EXPECT_NEAR(sum / count, 0.0, 0.02);
    EXPECT_NEAR(squares / count, 1.0 / 3, 0.02);
  }
}

// The sum of the magnitudes bounds every partial sum in any order: below 2^24, all are exact in fp32.
TEST(Data, IntegerSumsAreExactInAnyOrder) {
  std::vector<ConvProblem> problems;
  for (const auto& row : test::test_problems()) problems.push_back(row.problem);
  ConvProblem many = test::test_problem("grp8");  // 8 channels of 31x31: 7688 taps
  many.r = many.s = 31;
  many.pad_top = many.pad_left = 15;
  many.p = many.h;
  many.q = many.w;
  ASSERT_TRUE(validate(many).ok());
  problems.push_back(many);
  for (ConvProblem v : problems) {
    SCOPED_TRACE(v.to_string());
    v.bias = Bias::f32;
    v.residual = true;
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      v.dtype = type;
      const HostData data = make_data(v, 8, Fill::integer);
      HostData magnitudes = data;
      const auto make_positive = [](DType t, std::vector<std::byte>& bytes) {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(bytes.size() / size_of(t)); ++i) {
          const double value = load_element(t, bytes.data(), i);
          ASSERT_EQ(value, std::floor(value));
          store_element(t, bytes.data(), i, std::fabs(value));
        }
      };
      make_positive(type, magnitudes.x);
      make_positive(type, magnitudes.w);
      make_positive(DType::f32, magnitudes.bias);
      make_positive(type, magnitudes.z);
      ConvProblem sums = v;
      sums.dtype = type;
      const auto y = reference_output(sums, magnitudes.view());
      for (std::int64_t i = 0; i < v.y_elements(); ++i) {
        const double sum = load_element(type, y.data(), i);
        const bool beyond_f16 = type == DType::f16 && std::isinf(sum);  // yet not beyond 2^24: 8 * 4 a tap
        ASSERT_TRUE(beyond_f16 || sum < 0x1p24) << sum;
      }
    }
  }
}

TEST(Data, IntegerF32HasMoreThanElevenBitsOnBothSides) {
  const ConvProblem& v = test::test_problem("grp4");
  const HostData data = make_data(v, 8, Fill::integer);
  const auto lost = [](const std::vector<std::byte>& bytes) {  // how many elements TF32's 11 bits cannot hold
    int count = 0;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(bytes.size() / 4); ++i) {
      int exponent = 0;
      const double mantissa = std::frexp(load_element(DType::f32, bytes.data(), i), &exponent);
      if (std::ldexp(mantissa, 11) != std::floor(std::ldexp(mantissa, 11))) ++count;
    }
    return count;
  };
  EXPECT_GE(lost(data.x), v.x_elements() / 3);
  EXPECT_GE(lost(data.w), v.w_elements() / 3);
}

}  // namespace
}  // namespace sl
