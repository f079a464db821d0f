#include "tuning/compare.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "tuning/fake_device.hpp"
#include "tuning/tuning_data.hpp"

namespace sl {
namespace {

using test::FakeRig;

std::int64_t elements(const std::vector<std::byte>& y, DType dtype) {
  return static_cast<std::int64_t>(y.size() / size_of(dtype));
}

void set(std::vector<std::byte>& y, DType dtype, std::int64_t index, double value) {
  store_element(dtype, y.data(), index, value);
}

TEST(ScanNan, FindsEveryNanAndTellsPoisonFromOthers) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<std::byte> y(5000 * size_of(dtype), std::byte{0});
    set(y, dtype, 4, std::numeric_limits<double>::infinity());
    set(y, dtype, 5, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(scan_nan(dtype, y, 1).nans, 0);
    set(y, dtype, 4999, std::nan(""));
    for (std::size_t b = 0; b < size_of(dtype); ++b) y[1023 * size_of(dtype) + b] = std::byte{0xff};
    const NanScan scan = scan_nan(dtype, y, 1);
    EXPECT_EQ(scan.nans, 2);
    EXPECT_EQ(scan.poisoned, 1);
    EXPECT_EQ(scan.first, 1023);
  }
}

TEST(ScanNan, ThreadsAgreeOnTheFirst) {
  std::vector<std::byte> y(std::size_t{3} << 20, std::byte{0});
  const std::int64_t count = elements(y, DType::f16);
  for (const std::int64_t at : {count - 1, count / 2, count / 2 - 1}) {
    set(y, DType::f16, at, std::nan(""));
    EXPECT_EQ(scan_nan(DType::f16, y, 5).first, at);
  }
  EXPECT_EQ(scan_nan(DType::f16, y, 5).nans, 3);
}

TEST(OutputName, FollowsTheLayout) {
  ConvProblem problem = FakeRig::small_problem();  // k 4, p 9, q 7
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    problem.layout = layout;
    EXPECT_EQ(output_name(problem, y_offset(problem, 1, 3, 8, 2)), "y[1,3,8,2]");
    EXPECT_EQ(output_name(problem, 0), "y[0,0,0,0]");
  }
}

struct Case {
  ConvProblem problem;
  TuningData data;
  OutputBound bound;
  std::vector<std::byte> y;
  explicit Case(const ConvProblem& p)
      : problem(p),
        data(make_tuning_data(p, 11, Fill::random)),
        bound(problem, data.host, data.x_max),
        y(reference_output(problem, data.host.view())) {}
  Difference compare(const std::vector<std::byte>& other, int threads = 1) const {
    return compare_outputs(problem, bound, y, Arithmetic::fma, other, Arithmetic::fma, threads);
  }
};

TEST(Compare, EqualBytesPass) {
  const Case c(FakeRig::small_problem());
  EXPECT_EQ(c.compare(c.y).count, 0);
}

TEST(Compare, OneRoundingApartPassesAndFarApartDoesNot) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    ConvProblem problem = FakeRig::small_problem();
    problem.dtype = dtype;
    const Case c(problem);
    const double ulp = dtype == DType::f16 ? 0x1p-10 : 0x1p-7;
    std::vector<std::byte> near = c.y, far = c.y;
    for (std::int64_t i = 0; i < elements(c.y, dtype); ++i) {
      const double value = load_element(dtype, c.y.data(), i);
      set(near, dtype, i, value * (1 + ulp / 2));
    }
    EXPECT_EQ(c.compare(near).count, 0);
    set(far, dtype, 17, load_element(dtype, c.y.data(), 17) * (1 + 6 * ulp) + 0.01);
    set(far, dtype, 90, 2.0);
    const Difference difference = c.compare(far);
    EXPECT_EQ(difference.count, 2);
    EXPECT_EQ(difference.index, 17);
    EXPECT_GT(std::fabs(difference.got - difference.want), difference.allowed);
  }
}

TEST(Compare, NanAndWrongInfinitiesNeverPass) {
  const Case c(FakeRig::small_problem());
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    std::vector<std::byte> other = c.y;
    set(other, DType::f16, 3, value);
    EXPECT_EQ(c.compare(other).count, 1) << value;
  }
}

TEST(Compare, AnInfinityMayStandForTheLargestFiniteValue) {
  Case c(FakeRig::small_problem());
  std::vector<std::byte> other = c.y;
  set(c.y, DType::f16, 3, 65504.0);
  set(other, DType::f16, 3, std::numeric_limits<double>::infinity());
  EXPECT_EQ(c.compare(other).count, 0);
  set(other, DType::f16, 3, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(c.compare(other).count, 1);
}

TEST(Compare, ThreadsFindTheSameDifferences) {
  ConvProblem problem = FakeRig::small_problem();
  problem.n = 700;
  problem.h = problem.p = 24, problem.w = problem.q = 24;
  const TuningData data = make_tuning_data(problem, 5, Fill::random);
  const OutputBound bound(problem, data.host, data.x_max);
  const std::vector<std::byte> want(static_cast<std::size_t>(problem.y_elements()) * 2, std::byte{0});
  std::vector<std::byte> got = want;
  for (const std::int64_t at : {std::int64_t{400'000}, std::int64_t{400'001}, problem.y_elements() - 1}) {
    set(got, DType::f16, at, 1.0);
  }
  for (const int threads : {1, 2, 7}) {
    const Difference d = compare_outputs(problem, bound, want, Arithmetic::fma, got, Arithmetic::fma, threads);
    EXPECT_EQ(d.count, 3);
    EXPECT_EQ(d.index, 400'000);
  }
}

/// fp32 accumulation in another order (taps backwards, in two halves), rounded once: what a different schedule
/// computes.
std::vector<std::byte> other_order(const ConvProblem& v, const HostData& data) {
  std::vector<std::byte> y(static_cast<std::size_t>(v.y_elements()) * size_of(v.dtype));
  const std::int64_t cpg = v.channels_per_group();
  for (std::int64_t n = 0; n < v.n; ++n)
    for (std::int64_t k = 0; k < v.k; ++k)
      for (std::int64_t p = 0; p < v.p; ++p)
        for (std::int64_t q = 0; q < v.q; ++q) {
          float halves[2] = {0, 0};
          for (std::int64_t t = cpg * v.r * v.s - 1; t >= 0; --t) {
            const std::int64_t c = t % cpg, r = t / cpg % v.r, s = t / cpg / v.r;
            const std::int64_t h = p * v.stride_h - v.pad_top + r * v.dil_h;
            const std::int64_t w = q * v.stride_w - v.pad_left + s * v.dil_w;
            if (h < 0 || h >= v.h || w < 0 || w >= v.w) continue;
            const std::int64_t channel = k / v.multiplier() * cpg + c;
            const double x = load_element(v.dtype, data.x.data(), x_offset(v, n, channel, h, w));
            const double weight = load_element(v.dtype, data.w.data(), w_offset(v, k, c, r, s));
            halves[t % 2] = std::fma(static_cast<float>(x), static_cast<float>(weight), halves[t % 2]);
          }
          store_element(v.dtype, y.data(), y_offset(v, n, k, p, q), static_cast<double>(halves[0] + halves[1]));
        }
  return y;
}

RC_GTEST_PROP(Compare, ACorrectResultSummedInAnotherOrderIsNeverDropped, ()) {
  ConvProblem v;
  v.groups = *rc::gen::inRange(1, 4);
  v.c = v.groups * *rc::gen::inRange(1, 9);
  v.k = v.groups * *rc::gen::inRange(1, 4);
  v.r = *rc::gen::inRange(1, 8);
  v.s = *rc::gen::inRange(1, 8);
  v.h = v.r + *rc::gen::inRange(0, 5);
  v.w = v.s + *rc::gen::inRange(0, 5);
  v.pad_top = *rc::gen::inRange<std::int64_t>(0, v.r);
  v.pad_left = *rc::gen::inRange<std::int64_t>(0, v.s);
  v.p = v.h + v.pad_top - v.r + 1, v.q = v.w + v.pad_left - v.s + 1;
  v.dtype = *rc::gen::element(DType::f32, DType::f16, DType::bf16);
  v.layout = *rc::gen::element(Layout::nchw, Layout::nhwc);
  const TuningData data = make_tuning_data(v, *rc::gen::arbitrary<std::uint64_t>(), Fill::random);
  const OutputBound bound(v, data.host, data.x_max);
  const std::vector<std::byte> reference = reference_output(v, data.host.view());
  const std::vector<std::byte> other = other_order(v, data.host);
  RC_ASSERT(compare_outputs(v, bound, reference, Arithmetic::fma, other, Arithmetic::fma, 1).count == 0);
}

RC_GTEST_PROP(Compare, TheBoundIsNeverBelowTheReferencesOwn, ()) {
  // Whatever lies just beyond this bound, the reference refuses: so no correct result lies there.
  ConvProblem v = FakeRig::small_problem();
  v.dtype = *rc::gen::element(DType::f32, DType::f16, DType::bf16);
  v.activation = *rc::gen::element(Activation::none, Activation::silu, Activation::gelu_erf, Activation::hard_swish);
  v.bias = *rc::gen::element(Bias::none, Bias::same);
  v.residual = *rc::gen::arbitrary<bool>();
  const TuningData data = make_tuning_data(v, *rc::gen::arbitrary<std::uint64_t>(), Fill::random);
  const OutputBound bound(v, data.host, data.x_max);
  const double unit = v.dtype == DType::f32 ? 0x1p-24 : v.dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  std::vector<std::byte> beyond = reference_output(v, data.host.view());
  for (std::int64_t i = 0; i < v.y_elements(); ++i) {
    const double value = load_element(v.dtype, beyond.data(), i);
    const double step = bound.at(i, value, Arithmetic::fma) * (1 + 4 * unit) + 4 * unit * std::fabs(value) + 0x1p-23;
    set(beyond, v.dtype, i, value + std::copysign(step, value));
  }
  RC_ASSERT(check_output(v, data.host.view(), beyond).wrong == v.y_elements());
}

}  // namespace
}  // namespace sl
