// The reference against a formula written the other way round: every tap of the padded input, no clipping, floats by
// index arithmetic of its own.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "reference/reference.hpp"
#include "support/check.hpp"
#include "support/generators.hpp"
#include "support/problems.hpp"

namespace sl {
namespace {

struct Strides {
  std::int64_t n, c, h, w;
};

Strides strides(Layout layout, std::int64_t c, std::int64_t h, std::int64_t w) {
  return layout == Layout::nchw ? Strides{c * h * w, h * w, w, 1} : Strides{h * w * c, 1, w * c, c};
}

double naive_activation(const ConvProblem& v, double a) {
  switch (v.activation) {
    case Activation::none:
      return a;
    case Activation::relu:
      return std::max(a, 0.0);
    case Activation::clip:
      return std::min(std::max(a, static_cast<double>(v.alpha)), static_cast<double>(v.beta));
    case Activation::silu:
      return a * 0.5 * (1 + std::tanh(a / 2));  // the logistic function by way of tanh
    case Activation::hard_swish:
      return a <= -3 ? 0 : a >= 3 ? a : a * (a + 3) / 6;
    case Activation::gelu_erf:
      return a / 2 * (1 + std::erf(a / 1.41421356237309504880));
    case Activation::gelu_tanh:
      return a / 2 * (1 + std::tanh(0.79788456080286535588 * (a + 0.044715 * std::pow(a, 3))));
    case Activation::leaky_relu:
      return std::max(a, 0.0) + static_cast<double>(v.alpha) * std::min(a, 0.0);
  }
  return a;
}

// y in double by the definition of ConvProblem.
std::vector<double> naive(const ConvProblem& v, const HostData& d) {
  const Strides xs = strides(v.layout, v.c, v.h, v.w), ys = strides(v.layout, v.k, v.p, v.q);
  const std::int64_t cg = v.c / v.groups, kg = v.k / v.groups;
  const Strides ws = v.weight_layout == WeightLayout::oihw ? Strides{cg * v.r * v.s, v.r * v.s, v.s, 1}
                                                           : Strides{v.r * v.s * cg, 1, v.s * cg, cg};
  std::vector<double> y(static_cast<std::size_t>(v.n * v.k * v.p * v.q));
  for (std::int64_t n = 0; n < v.n; ++n) {
    for (std::int64_t k = 0; k < v.k; ++k) {
      for (std::int64_t p = 0; p < v.p; ++p) {
        for (std::int64_t q = 0; q < v.q; ++q) {
          double sum = 0;
          for (std::int64_t c = 0; c < cg; ++c) {
            for (std::int64_t r = 0; r < v.r; ++r) {
              for (std::int64_t s = 0; s < v.s; ++s) {
                const std::int64_t h = p * v.stride_h - v.pad_top + r * v.dil_h;
                const std::int64_t w = q * v.stride_w - v.pad_left + s * v.dil_w;
                if (h < 0 || h >= v.h || w < 0 || w >= v.w) continue;
                const std::int64_t channel = k / kg * cg + c;
                sum += load_element(v.dtype, d.x.data(), n * xs.n + channel * xs.c + h * xs.h + w * xs.w) *
                       load_element(v.dtype, d.w.data(), k * ws.n + c * ws.c + r * ws.h + s * ws.w);
              }
            }
          }
          if (v.bias == Bias::f32) sum += load_element(DType::f32, d.bias.data(), k);
          if (v.bias == Bias::same) sum += load_element(v.dtype, d.bias.data(), k);
          const std::int64_t at = n * ys.n + k * ys.c + p * ys.h + q * ys.w;
          if (v.residual) sum += load_element(v.dtype, d.z.data(), at);
          y[static_cast<std::size_t>(at)] = naive_activation(v, sum);
        }
      }
    }
  }
  return y;
}

// One rounding apart at most: the two formulas may differ in the last bits of a double, which decides only ties.
testing::AssertionResult agrees(const ConvProblem& v, std::uint64_t seed, Fill fill) {
  const HostData data = make_data(v, seed, fill);
  const auto got = reference_output(v, data.view());
  const auto want = naive(v, data);
  if (got.size() != want.size() * size_of(v.dtype)) return testing::AssertionFailure() << "size " << got.size();
  const double unit = v.dtype == DType::f32 ? 0x1p-24 : v.dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  const double tiny = v.dtype == DType::f16 ? 0x1p-24 : 0x1p-126;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double y = load_element(v.dtype, got.data(), static_cast<std::int64_t>(i));
    if (std::fabs(y - want[i]) <= std::fabs(want[i]) * unit * (1 + 1e-6) + tiny + 1e-13) continue;
    return testing::AssertionFailure() << "element " << i << " is " << y << ", must be " << want[i] << "\n  "
                                       << v.to_string() << "\n  seed " << seed;
  }
  return testing::AssertionSuccess();
}

TEST(Reference, AgreesWithTheDefinitionOnTheTable) {
  const std::uint64_t seed = test::test_seed(11);
  std::size_t turn = 0;
  for (const auto& row : test::test_problems()) {
    SCOPED_TRACE(row.name);
    for (const ConvProblem& v : test::spread_variants(row.problem, turn++)) {
      ASSERT_TRUE(agrees(v, seed + turn, turn % 3 == 0 ? Fill::integer : Fill::random));
    }
  }
}

RC_GTEST_PROP(ReferenceProperty, AgreesWithTheDefinition, (const ConvProblem& v, std::uint64_t seed)) {
  const auto result = agrees(v, seed, Fill::random);
  if (!result) RC_FAIL(result.message());
}

// xla#49123, pytorch#19912: which input channels an output channel reads.
TEST(Reference, GroupsReadTheirOwnChannels) {
  const ConvProblem& v = test::test_problem("grp2_k16_1x1");
  HostData data = make_data(v, 1);
  for (std::int64_t i = 0; i < v.x_elements(); ++i) store_element(v.dtype, data.x.data(), i, i == 3 ? 1 : 0);
  for (std::int64_t i = 0; i < v.w_elements(); ++i) store_element(v.dtype, data.w.data(), i, 1);
  const auto y = reference_output(v, data.view());
  for (std::int64_t k = 0; k < 16; ++k) EXPECT_EQ(load_element(v.dtype, y.data(), k), k < 8 ? 0 : 1) << k;
}

// tensorflow#14601.
TEST(Reference, NegativeFarPadReadsTheFirstRow) {
  const ConvProblem& v = test::test_problem("dw_pad_negative");
  ASSERT_LT(v.pad_bottom(), 0);
  const HostData data = make_data(v, 2);
  const auto y = reference_output(v, data.view());
  for (std::int64_t c = 0; c < v.c; ++c) {
    const double x = load_element(v.dtype, data.x.data(), x_offset(v, 0, c, 0, 0));
    const double w = load_element(v.dtype, data.w.data(), c);
    EXPECT_EQ(load_element(v.dtype, y.data(), c), static_cast<double>(static_cast<float>(x * w)));
  }
}

// The reference itself is right where one of the near pads is negative, though validate() refuses that.
TEST(Reference, NegativeNearPadsCrop) {
  ConvProblem v = test::test_problem("dw_valid");
  v.pad_top = -2;
  v.pad_left = -1;
  v.p -= 2;
  v.q -= 1;
  EXPECT_TRUE(agrees(v, 3, Fill::random));
}

TEST(Reference, OnlyWindowsThatHoldAnInfOrNanChange) {
  for (const char* row : {"dw_5x5", "dw_s2", "dw_d2", "mult3", "grp4", "dw_pad_slack"}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      ConvProblem v = test::test_problem(row);
      v.layout = layout;
      v.dtype = DType::f16;
      const HostData clean = make_data(v, 5);
      const auto before = reference_output(v, clean.view());
      const std::int64_t h = v.h / 2, w = v.w - 2, c = v.c / 2;
      for (const double special : {std::numeric_limits<double>::infinity(), std::nan("")}) {
        HostData dirty = clean;
        store_element(v.dtype, dirty.x.data(), x_offset(v, 0, c, h, w), special);
        const auto after = reference_output(v, dirty.view());
        for (std::int64_t i = 0; i < v.y_elements(); ++i) {
          const std::int64_t q = i % v.q, p = i / v.q % v.p, k = i / (v.q * v.p) % v.k, n = i / (v.q * v.p * v.k);
          const std::int64_t dh = h - (p * v.stride_h - v.pad_top), dw = w - (q * v.stride_w - v.pad_left);
          const bool inside = n == 0 && k / v.multiplier() == c / v.channels_per_group() && dh >= 0 && dw >= 0 &&
                              dh % v.dil_h == 0 && dh / v.dil_h < v.r && dw % v.dil_w == 0 && dw / v.dil_w < v.s;
          const std::int64_t at = y_offset(v, n, k, p, q);
          const double got = load_element(v.dtype, after.data(), at);
          if (inside) {
            ASSERT_FALSE(std::isfinite(got)) << row << " n" << n << " k" << k << " p" << p << " q" << q;
          } else {
            ASSERT_EQ(got, load_element(v.dtype, before.data(), at)) << row;
          }
        }
      }
    }
  }
}

TEST(Reference, WeightsUnderPaddingAreNotRead) {
  ConvProblem v = test::test_problem("dw_1x1_k7");
  HostData data = make_data(v, 6);
  const auto before = reference_output(v, data.view());
  for (std::int64_t k = 0; k < v.k; ++k) {
    for (std::int64_t r = 0; r < 7; ++r) {
      for (std::int64_t s = 0; s < 7; ++s) {
        if (r == 3 && s == 3) continue;
        store_element(v.dtype, data.w.data(), w_offset(v, k, 0, r, s), std::numeric_limits<double>::infinity());
      }
    }
  }
  EXPECT_EQ(reference_output(v, data.view()), before);
}

TEST(Reference, EmptyBatchGivesNothing) {
  const ConvProblem& v = test::test_problem("empty");
  const HostData data = make_data(v, 1);
  EXPECT_TRUE(data.x.empty());
  EXPECT_FALSE(data.w.empty());
  EXPECT_TRUE(reference_output(v, data.view()).empty());
  const CheckResult result = check_output(v, data.view(), {});
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.checked, 0);
}

}  // namespace
}  // namespace sl
