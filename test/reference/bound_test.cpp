// The rounding bound: right kernels pass, whatever their order; wrong ones fail.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "emulate.hpp"
#include "support/check.hpp"
#include "support/generators.hpp"
#include "support/problems.hpp"

namespace sl {
namespace {

using test::emulate;
using test::output_is_right;
using test::test_problem;
using test::test_seed;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

ConvProblem typed(const char* row, DType type) {
  ConvProblem v = test_problem(row);
  v.dtype = type;
  return v;
}

void make_positive(DType type, std::vector<std::byte>& bytes) {
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(bytes.size() / size_of(type)); ++i) {
    store_element(type, bytes.data(), i, std::fabs(load_element(type, bytes.data(), i)));
  }
}

TEST(Bound, PassesTheReferenceAndFp32KernelsOnTheTable) {
  std::size_t turn = 0;
  for (const auto& row : test::test_problems()) {
    SCOPED_TRACE(row.name);
    for (const ConvProblem& v : test::spread_variants(row.problem, ++turn)) {
      const std::uint64_t seed = test_seed(turn);
      const HostData data = make_data(v, seed);
      EXPECT_TRUE(output_is_right({v, seed}, data, reference_output(v, data.view())));
      EXPECT_TRUE(output_is_right({v, seed, Fill::random, Arithmetic::mma}, data, reference_output(v, data.view())));
      const auto hardware = turn % 2 == 0 ? test::fp32_fma() : test::fp32_mul_add();
      EXPECT_TRUE(output_is_right({v, seed}, data, emulate(v, data, hardware)));
    }
  }
}

RC_GTEST_PROP(BoundProperty, PassesFp32Kernels, (const ConvProblem& v, std::uint64_t seed)) {
  const HostData data = make_data(v, seed);
  for (const auto& hardware : {test::fp32_fma(), test::fp32_mul_add()}) {
    const auto result = output_is_right({v, seed}, data, emulate(v, data, hardware));
    if (!result) RC_FAIL(result.message());
  }
}

RC_GTEST_PROP(BoundProperty, ExactModePassesFp32KernelsOnIntegers, (const ConvProblem& v, std::uint64_t seed)) {
  const HostData data = make_data(v, seed, Fill::integer);
  for (const auto& hardware : {test::fp32_fma(), test::fp32_mul_add()}) {
    const auto result = output_is_right({v, seed, Fill::integer}, data, emulate(v, data, hardware));
    if (!result) RC_FAIL(result.message());
  }
}

// Moves one output by `ulps` representable values away from zero.
std::vector<std::byte> moved(const ConvProblem& v, std::vector<std::byte> y, std::int64_t at, int ulps) {
  if (v.dtype == DType::f32) {
    float value = static_cast<float>(load_element(v.dtype, y.data(), at));
    for (int i = 0; i < ulps; ++i) value = std::nextafter(value, value < 0 ? -INFINITY : INFINITY);
    store_element(v.dtype, y.data(), at, static_cast<double>(value));
  } else {
    std::uint16_t bits = 0;
    std::memcpy(&bits, y.data() + 2 * at, 2);
    bits = static_cast<std::uint16_t>(bits + ulps);
    std::memcpy(y.data() + 2 * at, &bits, 2);
  }
  return y;
}

TEST(Bound, TwoUlpsOffFailInTheSixteenBitTypes) {
  for (const DType type : {DType::f16, DType::bf16}) {
    const ConvProblem v = typed("dw_3x3", type);
    HostData data = make_data(v, test_seed(1));
    make_positive(type, data.x);  // no cancellation: the bound is then about one unit in the last place
    make_positive(type, data.w);
    const auto right = reference_output(v, data.view());
    for (std::int64_t at = 0; at < v.y_elements(); at += 7) {
      const CheckResult result = check_output(v, data.view(), moved(v, right, at, 2));
      EXPECT_EQ(result.wrong, 1) << name(type) << " element " << at;
      EXPECT_GT(result.error_over_bound, 1.0);
      EXPECT_EQ(result.checked, v.y_elements());
      EXPECT_NE(result.first_wrong.find("y["), std::string::npos);
      EXPECT_NE(result.first_wrong.find("bound"), std::string::npos);
    }
  }
}

TEST(Bound, Fp16SumsFail) {
  const ConvProblem v = typed("dw_9x9", DType::f16);
  HostData data = make_data(v, test_seed(2));
  make_positive(DType::f16, data.x);
  make_positive(DType::f16, data.w);
  EXPECT_TRUE(check_output(v, data.view(), emulate(v, data, test::fp32_fma())).ok());
  const CheckResult result = check_output(v, data.view(), emulate(v, data, test::fp16_sums()));
  EXPECT_GT(result.wrong, v.y_elements() / 4);
}

// Random data alone would be too kind: this is why exact mode exists.
TEST(Bound, ExactModeCatchesTf32) {
  for (const char* row : {"dw_3x3", "mult3", "grp4", "dw_few_k15", "dense_c8", "dw_1x1"}) {
    const ConvProblem& v = test_problem(row);
    const HostData data = make_data(v, test_seed(3), Fill::integer);
    const BoundOptions exact = {Arithmetic::fma, true};
    EXPECT_TRUE(check_output(v, data.view(), emulate(v, data, test::fp32_fma()), exact).ok()) << row;
    const CheckResult result = check_output(v, data.view(), emulate(v, data, test::tf32()), exact);
    EXPECT_GT(result.wrong, v.y_elements() / 2) << row;
  }
}

TEST(Bound, ExactModeDemandsTheBits) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    const ConvProblem v = typed("grp3_5", type);
    const HostData data = make_data(v, test_seed(4), Fill::integer);
    const auto right = reference_output(v, data.view());
    for (std::int64_t at = 0; at < v.y_elements(); at += 11) {
      const CheckResult result = check_output(v, data.view(), moved(v, right, at, 1), {Arithmetic::fma, true});
      EXPECT_EQ(result.wrong, 1) << name(type) << " element " << at;
    }
  }
}

TEST(Bound, PoisonAndNanFail) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    const ConvProblem v = typed("dw_pad_slack", type);
    const HostData data = make_data(v, test_seed(5));
    for (const bool exact : {false, true}) {
      const CheckResult all = check_output(v, data.view(), test::poisoned_output(v), {Arithmetic::mma, exact});
      EXPECT_EQ(all.wrong, v.y_elements());
      EXPECT_EQ(all.error_over_bound, infinity);
    }
    auto y = reference_output(v, data.view());
    const std::int64_t at = y_offset(v, 1, 2, 0, 1);
    store_element(type, y.data(), at, nan);
    const CheckResult one = check_output(v, data.view(), y);
    EXPECT_EQ(one.wrong, 1);
    EXPECT_EQ(one.first_wrong.rfind("y[1,2,0,1] = got nan", 0), 0U) << one.first_wrong;
  }
}

TEST(Bound, AMissingTapFails) {
  for (const char* row : {"dw_3x3", "grp8", "mult5_d2", "dw_7x7"}) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      const ConvProblem v = typed(row, type);
      const HostData data = make_data(v, test_seed(6));
      HostData lacking = data;
      for (std::int64_t k = 0; k < v.k; ++k) {
        store_element(type, lacking.w.data(), w_offset(v, k, 0, v.r - 1, 0), 0.0);
      }
      const CheckResult result = check_output(v, data.view(), reference_output(v, lacking.view()));
      EXPECT_GT(result.wrong, v.y_elements() / 2) << row << " " << name(type);
    }
  }
}

// One 1x1 output under an activation, so that a, phi(a) and what is allowed are known by hand.
struct Judged {
  const char* name;
  DType type;
  double x, w, y;
  bool right;
};

const Judged judged[] = {
    {"f16 overflow is infinity", DType::f16, 60000, 2, infinity, true},
    {"of the right sign", DType::f16, 60000, 2, -infinity, false},
    {"negative overflow", DType::f16, 60000, -2, -infinity, true},
    {"overflow is not the largest finite", DType::f16, 60000, 2, 65504, false},
    {"within the bound of the largest finite", DType::f16, 65504, 1, infinity, true},
    {"no infinity below it", DType::f16, 60000, 1, infinity, false},
    {"NaN for a finite value", DType::f16, 1, 1, nan, false},
    {"Inf in x gives Inf", DType::f32, infinity, 2, infinity, true},
    {"Inf times a negative weight", DType::f32, infinity, -2, -infinity, true},
    {"Inf in x is not a number's business", DType::f32, infinity, 2, 3e38, false},
    {"Inf in x is not NaN", DType::f32, infinity, 2, nan, false},
    {"NaN in x gives NaN", DType::f32, nan, 2, nan, true},
    {"NaN in x must show", DType::f32, nan, 2, 0, false},
    {"Inf times 0 is NaN", DType::f32, infinity, 0, nan, true},
    {"Inf times 0 is not 0", DType::f32, infinity, 0, 0, false},
    {"zero", DType::bf16, 0, 1, 0, true},
    {"minus zero", DType::bf16, 0, 1, -0.0, true},
    {"f32 subnormal flushed within one step", DType::f32, 0x1p-149, 1, 0, true},
    {"f32 subnormals are not flushed", DType::f32, 0x1p-130, 1, 0, false},
    {"f16 subnormals are not flushed", DType::f16, 0x1p-20, 1, 0, false},
};

TEST(Bound, InfinitiesNansAndSubnormals) {
  for (const Judged& c : judged) {
    ConvProblem v;
    v.dtype = c.type;
    HostData data = make_data(v, 1);
    store_element(c.type, data.x.data(), 0, c.x);
    store_element(c.type, data.w.data(), 0, c.w);
    std::vector<std::byte> y(size_of(c.type));
    store_element(c.type, y.data(), 0, c.y);
    const CheckResult result = check_output(v, data.view(), y);
    EXPECT_EQ(result.ok(), c.right) << c.name << ": " << result.first_wrong;
    EXPECT_EQ(result.error_over_bound > 1, !c.right) << c.name;
  }
}

// The limits of the activations at infinity: what IEEE formulas give and the limit itself are both right.
TEST(Bound, ActivationsAtInfinity) {
  struct Row {
    Activation activation;
    double x;
    std::vector<double> right, wrong;
  };
  const Row rows[] = {
      {Activation::relu, infinity, {infinity}, {0, nan}},
      {Activation::relu, -infinity, {0}, {-infinity, nan}},
      {Activation::relu, nan, {nan}, {0}},
      {Activation::clip, infinity, {6}, {infinity}},
      {Activation::clip, nan, {nan}, {0, 6}},
      {Activation::silu, infinity, {infinity}, {nan, 0}},
      {Activation::silu, -infinity, {0, nan}, {-infinity, 1}},
      {Activation::gelu_erf, -infinity, {0, nan}, {-infinity}},
      {Activation::gelu_tanh, -infinity, {0, nan}, {-infinity}},
      {Activation::gelu_tanh, infinity, {infinity}, {nan}},
      {Activation::hard_swish, infinity, {infinity}, {nan}},
      {Activation::hard_swish, -infinity, {0, nan}, {-infinity}},
      {Activation::leaky_relu, -infinity, {-infinity}, {0, nan}},
  };
  for (const Row& row : rows) {
    const ConvProblem v = test::with_activation({}, row.activation);
    HostData data = make_data(v, 1);
    store_element(v.dtype, data.x.data(), 0, row.x);
    store_element(v.dtype, data.w.data(), 0, 1);
    std::vector<std::byte> y(4);
    for (const auto* list : {&row.right, &row.wrong}) {
      for (const double value : *list) {
        store_element(v.dtype, y.data(), 0, value);
        EXPECT_EQ(check_output(v, data.view(), y).ok(), list == &row.right)
            << name(row.activation) << " of " << row.x << " as " << value;
      }
    }
  }
}

// An infinity that is clipped to a bound which the dtype cannot hold: the rounded bound is right, nothing else.
TEST(Bound, AClipOfAnInfinityIsRoundedToTheType) {
  ConvProblem v;
  v.dtype = DType::bf16;
  v.activation = Activation::clip;
  v.beta = 4.361647F;
  HostData data = make_data(v, 1);
  store_element(v.dtype, data.x.data(), 0, infinity);
  store_element(v.dtype, data.w.data(), 0, 1);
  std::vector<std::byte> y(2);
  for (const double value : {4.361647, 4.34375, 4.40625}) {  // the first is rounded to 4.375
    store_element(v.dtype, y.data(), 0, value);
    EXPECT_EQ(check_output(v, data.view(), y).ok(), value == 4.361647) << value;
  }
}

TEST(Bound, TensorsThatAreTooSmallAreNeverRight) {
  ConvProblem v = test_problem("dw_3x3");
  v.bias = Bias::same;
  v.residual = true;
  const HostData data = make_data(v, 1);
  const auto y = reference_output(v, data.view());
  ASSERT_TRUE(check_output(v, data.view(), y).ok());
  EXPECT_FALSE(check_output(v, data.view(), std::span(y).first(y.size() - 1)).ok());
  std::vector<std::byte> HostData::*const tensors[] = {&HostData::x, &HostData::w, &HostData::bias, &HostData::z};
  for (const auto tensor : tensors) {
    HostData cut = data;
    (cut.*tensor).pop_back();
    const CheckResult result = check_output(v, cut.view(), y);
    EXPECT_EQ(result.wrong, v.y_elements());
    EXPECT_NE(result.first_wrong.find("must hold"), std::string::npos) << result.first_wrong;
    EXPECT_TRUE(reference_output(v, cut.view()).empty());
  }
}

}  // namespace
}  // namespace sl
