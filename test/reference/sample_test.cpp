// Checks of some outputs only, and checks on many threads.
#include "reference/sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "support/check.hpp"
#include "support/problems.hpp"

namespace sl {
namespace {

ConvProblem sized(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) {
  ConvProblem v;
  v.n = n;
  v.c = v.k = v.groups = k;
  v.h = v.p = p;
  v.w = v.q = q;
  return v;
}

TEST(Sample, IsBoundedAscendingAndWithinTheTensor) {
  const ConvProblem problems[] = {sized(1, 1, 1, 1),           sized(2, 3, 5, 7),   sized(1, 1000, 1, 1),
                                  sized(1, 1, 1, 1000),        sized(3, 64, 14, 9), sized(1, 2, 2, 300),
                                  sized(1 << 20, 64, 112, 113)};
  for (const ConvProblem& v : problems) {
    for (const std::int64_t most : {1, 2, 3, 10, 100, 20000}) {
      if (most >= v.y_elements()) continue;
      const auto sample = sample_outputs(v, most);
      EXPECT_LE(static_cast<std::int64_t>(sample.size()), most);
      EXPECT_GE(static_cast<std::int64_t>(sample.size()), most / 2) << v.to_string() << " " << most;
      EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
      EXPECT_EQ(std::adjacent_find(sample.begin(), sample.end()), sample.end());
      EXPECT_EQ(sample.front(), 0);
      EXPECT_LT(sample.back(), v.y_elements());
      EXPECT_TRUE(most == 1 || sample.back() == v.y_elements() - 1);
      EXPECT_EQ(sample, sample_outputs(v, most));
    }
  }
}

TEST(Sample, HitsCornersAndEdgesOfTheFirstAndTheLastPlane) {
  const ConvProblem v = sized(4, 32, 56, 60);
  const auto sample = sample_outputs(v, 1000);
  const auto has = [&](std::int64_t plane, std::int64_t p, std::int64_t q) {
    return std::binary_search(sample.begin(), sample.end(), (plane * v.p + p) * v.q + q);
  };
  for (const std::int64_t plane : {std::int64_t{0}, v.n * v.k - 1}) {
    for (const std::int64_t p : {std::int64_t{0}, v.p / 2, v.p - 1}) {
      EXPECT_TRUE(has(plane, p, 0)) << plane << " " << p;
      EXPECT_TRUE(has(plane, p, v.q - 1)) << plane << " " << p;
    }
    EXPECT_TRUE(has(plane, 0, v.q / 2));
    EXPECT_TRUE(has(plane, v.p - 1, v.q / 2));
  }
}

TEST(Sample, SpreadsOverImagesAndChannels) {
  const ConvProblem v = sized(8, 40, 20, 21);
  std::vector<bool> planes(static_cast<std::size_t>(v.n * v.k));
  for (const std::int64_t i : sample_outputs(v, 2000)) planes[static_cast<std::size_t>(i / (v.p * v.q))] = true;
  EXPECT_EQ(std::count(planes.begin(), planes.end(), false), 0);
}

// Large enough for several threads: the outcome is that of one.
TEST(Check, ManyThreadsFindTheFirstWrongOutput) {
  ConvProblem v = test::test_problem("dw_c64");
  v.n = 40;
  v.layout = Layout::nhwc;
  const HostData data = make_data(v, test::test_seed(1));
  auto y = reference_output(v, data.view());
  EXPECT_EQ(check_output(v, data.view(), y).checked, v.y_elements());
  for (const std::int64_t n : {39, 20, 3}) store_element(v.dtype, y.data(), y_offset(v, n, 5, 2, 1), 1000.0);
  const CheckResult result = check_output(v, data.view(), y);
  EXPECT_EQ(result.wrong, 3);
  EXPECT_EQ(result.checked, v.y_elements());
  EXPECT_EQ(result.first_wrong.rfind("y[3,5,2,1] = got 1000", 0), 0U) << result.first_wrong;
}

TEST(Check, ASampleFindsAWrongCornerAndAWrongRegion) {
  ConvProblem v = test::test_problem("dw_c64");
  v.n = 40;
  const HostData data = make_data(v, test::test_seed(2));
  const auto right = reference_output(v, data.view());
  const CheckResult fine = check_output(v, data.view(), right, {}, 500);
  EXPECT_TRUE(fine.ok());
  EXPECT_LE(fine.checked, 500);
  EXPECT_GE(fine.checked, 250);
  auto corner = right;
  store_element(v.dtype, corner.data(), v.y_elements() - 1, 1000.0);
  EXPECT_EQ(check_output(v, data.view(), corner, {}, 500).wrong, 1);
  auto image = right;  // one image in forty never written
  for (std::int64_t i = 0; i < v.y_elements() / v.n; ++i) {
    store_element(v.dtype, image.data(), v.y_elements() / v.n * 17 + i, std::numeric_limits<double>::quiet_NaN());
  }
  EXPECT_GT(check_output(v, data.view(), image, {}, 500).wrong, 5);
  EXPECT_EQ(check_output(v, data.view(), right, {}, v.y_elements() * 2).checked, v.y_elements());
}

}  // namespace
}  // namespace sl
