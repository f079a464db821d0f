// The rules of a legal problem, field by field, and with_output_size(). Legal extremes stand beside illegal ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/conv_problem.hpp"
#include "support/problems.hpp"

namespace sl {
namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

// Depthwise 3x2, stride (2,1), dilation (1,2), pads (1,2): legal until a case changes it.
ConvProblem base() {
  ConvProblem v;
  v.n = 2;
  v.c = v.k = v.groups = 8;
  v.h = 9;
  v.w = 12;
  v.r = 3;
  v.s = 2;
  v.stride_h = 2;
  v.dil_w = 2;
  v.pad_top = 1;
  v.pad_left = 2;
  v.p = 5;
  v.q = 13;
  return v;
}

struct Case {
  const char* name;
  std::function<void(ConvProblem&)> change;
  std::vector<const char*> said;  // empty = legal
};

const Case cases[] = {
    {"as it is", [](auto&) {}, {}},
    {"empty batch", [](auto& v) { v.n = 0; }, {}},
    {"large batch", [](auto& v) { v.n = (std::int64_t{1} << 40) - 1; }, {}},
    {"n negative", [](auto& v) { v.n = -1; }, {"n (mb) is -1", "from 0 to 1099511627775"}},
    {"n too large", [](auto& v) { v.n = std::int64_t{1} << 40; }, {"n (mb) is 1099511627776"}},
    {"c = 0", [](auto& v) { v.c = 0; }, {"c (ic) is 0", "from 1 to 2147483647"}},
    {"k = 0, Paddle PR 78237", [](auto& v) { v.k = 0; }, {"k (oc) is 0", "from 1"}},
    {"groups = 0", [](auto& v) { v.groups = 0; }, {"groups (g) is 0", "from 1"}},
    {"groups negative", [](auto& v) { v.groups = -8; }, {"groups (g) is -8"}},
    {"h = 0", [](auto& v) { v.h = 0; }, {"h (ih) is 0"}},
    {"w huge", [](auto& v) { v.w = huge; }, {"w (iw) is 9223372036854775807"}},
    {"r = 0", [](auto& v) { v.r = 0; }, {"r (kh) is 0"}},
    {"s negative", [](auto& v) { v.s = -3; }, {"s (kw) is -3"}},
    {"p = 0", [](auto& v) { v.p = 0; }, {"p (oh) is 0", "from 1"}},
    {"q negative", [](auto& v) { v.q = -1; }, {"q (ow) is -1"}},
    {"stride 0, pytorch#27598", [](auto& v) { v.stride_h = 0; }, {"stride_h (sh) is 0", "from 1"}},
    {"stride near 2^63, pytorch#188959", [](auto& v) { v.stride_w = huge; }, {"stride_w (sw) is 9223372036854775807"}},
    {"dilation 0", [](auto& v) { v.dil_h = 0; }, {"dil_h (dh + 1) is 0", "from 1"}},
    {"dilation near 2^63, pytorch#188959", [](auto& v) { v.dil_w = huge - 1; }, {"dil_w (dw + 1) is"}},
    {"pad near 2^63, pytorch#188959", [](auto& v) { v.pad_top = huge; }, {"pad_top (ph) is 9223372036854775807"}},
    {"pad negative", [](auto& v) { v.pad_left = -1; }, {"pad_left (pw) is -1", "from 0"}},
    {"every field huge",
     [](auto& v) {
       v.c = v.k = v.groups = v.h = v.w = v.r = v.s = v.p = v.q = huge;
       v.stride_h = v.stride_w = v.dil_h = v.dil_w = v.pad_top = v.pad_left = huge;
     },
     {"c (ic) is 9223372036854775807"}},
    {"groups does not divide c", [](auto& v) { v.c = 9; }, {"groups (g) is 8", "divide c (ic), which is 9"}},
    {"groups does not divide k", [](auto& v) { v.k = 12; }, {"groups (g) is 8", "divide k (oc), which is 12"}},
    {"more groups than channels, MIOpen#180", [](auto& v) { v.c = 2, v.k = 4, v.groups = 4; }, {"divide c (ic)"}},
    {"multiplier", [](auto& v) { v.k = 24; }, {}},
    {"one group", [](auto& v) { v.groups = 1, v.k = 5; }, {}},
    {"pad = effective kernel", [](auto& v) { v.pad_top = 3; }, {}},
    {"pad_bottom beyond the effective kernel", [](auto& v) { v.pad_top = 0, v.p = 6; }, {}},
    {"pad_right = effective kernel", [](auto& v) { v.q = 15; }, {}},
    {"1x1 with pad 1", [](auto& v) { v.r = v.s = v.stride_h = v.dil_w = 1, v.pad_left = 1, v.p = 11, v.q = 14; }, {}},
    {"p one too small", [](auto& v) { v.p = 3; }, {"p (oh) is 3", "pad_bottom -3", "at least 4"}},
    {"p least", [](auto& v) { v.p = 4; }, {}},
    {"p too small for a wide pad", [](auto& v) { v.pad_top = 9, v.p = 7; }, {"pad_bottom -3", "at least 8"}},
    {"near pad with the input at 2^31",
     [](auto& v) { v.pad_top = 2147483639, v.stride_h = 2147483647, v.p = 1; },
     {"pad_top (ph) is 2147483639", "2147483648", "below 2147483648"}},
    {"near pad with the input below 2^31",
     [](auto& v) { v.pad_top = 2147483638, v.stride_h = 2147483647, v.p = 1; },
     {}},
    {"padded extent beyond 2^31", [](auto& v) { v.p = 2147483647; }, {"p (oh) is", "4294967295", "below 2147483648"}},
    {"negative slack within the stride, tensorflow#14601",
     [](auto& v) {
       v.h = 3, v.w = 1, v.r = v.s = v.p = v.q = 1, v.stride_h = 3, v.dil_w = 1, v.pad_top = v.pad_left = 0;
     },
     {}},
    {"1x1 input under 7x7, FBGEMM PR 395",
     [](auto& v) { v.h = v.w = v.p = v.q = 1, v.r = v.s = 7, v.stride_h = v.dil_w = 1, v.pad_top = v.pad_left = 3; },
     {}},
    {"align 3", [](auto& v) { v.align = 3; }, {"align is 3", "4, 8 or 16", "f32"}},
    {"align 0", [](auto& v) { v.align = 0, v.dtype = DType::f16; }, {"align is 0", "2, 4, 8 or 16", "f16"}},
    {"align 2, f16", [](auto& v) { v.align = 2, v.dtype = DType::f16; }, {}},
    {"align 2, f32", [](auto& v) { v.align = 2; }, {"align is 2"}},
    {"alpha infinite",
     [](auto& v) { v.activation = Activation::leaky_relu, v.alpha = std::numeric_limits<float>::infinity(); },
     {"alpha is inf", "finite"}},
    {"clip upside down", [](auto& v) { v.activation = Activation::clip, v.alpha = 2, v.beta = 1; }, {"at most beta"}},
    {"alpha NaN", [](auto& v) { v.activation = Activation::leaky_relu, v.alpha = NAN; }, {"alpha is nan", "finite"}},
    {"unused and infinite", [](auto& v) { v.beta = INFINITY; }, {"beta is inf", "finite"}},
    {"clip from below only", [](auto& v) { v.activation = Activation::clip, v.beta = INFINITY; }, {}},
    {"clip from above only", [](auto& v) { v.activation = Activation::clip, v.alpha = -INFINITY, v.beta = 6; }, {}},
    {"clip upside down, infinite",
     [](auto& v) { v.activation = Activation::clip, v.alpha = INFINITY, v.beta = -INFINITY; },
     {"alpha is inf", "at most beta, which is -inf"}},
    {"clip, alpha NaN", [](auto& v) { v.activation = Activation::clip, v.alpha = NAN; }, {"alpha is nan", "numbers"}},
    {"clip, beta NaN", [](auto& v) { v.activation = Activation::clip, v.beta = NAN; }, {"beta nan", "numbers"}},
    {"clip to a point", [](auto& v) { v.activation = Activation::clip, v.alpha = v.beta = 1; }, {}},
    {"alpha unused", [](auto& v) { v.alpha = 1; }, {"alpha is 1", "activation none does not use it"}},
    {"beta unused", [](auto& v) { v.activation = Activation::leaky_relu, v.beta = 1; }, {"beta is 1", "clip does"}},
    {"unknown dtype", [](auto& v) { v.dtype = static_cast<DType>(7); }, {"dtype is 7"}},
    {"unknown layout", [](auto& v) { v.layout = static_cast<Layout>(2); }, {"layout is 2"}},
    {"unknown activation", [](auto& v) { v.activation = static_cast<Activation>(8); }, {"activation is 8"}},
};

TEST(Validate, Rules) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ConvProblem v = base();
    c.change(v);
    const Status status = validate(v);
    EXPECT_EQ(status.ok(), c.said.empty()) << (status.ok() ? "legal" : status.error().message);
    if (status.ok()) continue;
    EXPECT_EQ(status.error().code, Code::invalid);
    EXPECT_NE(status.error().message.find("[g"), std::string::npos) << "no signature in: " << status.error().message;
    for (const char* said : c.said) {
      EXPECT_NE(status.error().message.find(said), std::string::npos)
          << "the message is: " << status.error().message << "\n  it lacks: " << said;
    }
  }
}

TEST(Validate, ValidatedNormalises) {
  ConvProblem v = base();
  v.bias = Bias::f32;
  v.r = 1;
  v.pad_top = 0;
  v.dil_h = 5;
  v.activation = Activation::clip;
  v.alpha = -0.0F;
  v.beta = 6;
  const auto result = validated(v);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->bias, Bias::same);
  EXPECT_EQ(result->dil_h, 1);
  EXPECT_FALSE(std::signbit(result->alpha));
  EXPECT_EQ(result->key(), v.key());
  EXPECT_FALSE(validated(ConvProblem{.c = 0}).ok());
}

struct Size {
  const char* name;
  std::int64_t in, taps, stride, dilation, near, far;
  std::int64_t out;  // 0 = refused
};

const Size sizes[] = {
    {"same", 112, 3, 1, 1, 1, 1, 112},
    {"stride drops a row", 10, 3, 2, 1, 1, 1, 5},
    {"nnfusion#192", 16, 5, 2, 1, 1, 2, 8},
    {"keras#16314", 14, 3, 2, 3, 2, 3, 7},
    {"exactly one", 5, 3, 2, 2, 0, 0, 1},
    {"pytorch#9592: one short, stride 2", 4, 3, 2, 2, 0, 0, 0},
    {"one short, stride 1", 4, 3, 1, 2, 0, 0, 0},
    {"keras#6649", 4, 6, 1, 1, 0, 0, 0},
    {"Paddle#76955", 11, 13, 1, 1, 0, 0, 0},
    {"negative far pad crops", 10, 3, 1, 1, 0, -1, 7},
    {"tensorflow#14601", 3, 1, 3, 1, 0, 0, 1},
    {"far pad near 2^63", 4, 3, 1, 1, 1, std::numeric_limits<std::int64_t>::max(), 0},
    {"far pad near -2^63", 4, 3, 1, 1, 1, std::numeric_limits<std::int64_t>::min(), 0},
    {"dilation near 2^63", 4, 3, 1, std::numeric_limits<std::int64_t>::max(), 1, 1, 0},
    {"stride 0", 4, 3, 0, 1, 1, 1, 0},
};

TEST(WithOutputSize, FollowsThePadsOnBothAxes) {
  for (const Size& c : sizes) {
    SCOPED_TRACE(c.name);
    ConvProblem rows, columns;
    rows.h = c.in, rows.r = c.taps, rows.stride_h = c.stride, rows.dil_h = c.dilation, rows.pad_top = c.near;
    columns.w = c.in, columns.s = c.taps, columns.stride_w = c.stride, columns.dil_w = c.dilation,
    columns.pad_left = c.near;
    const auto p = with_output_size(rows, c.far, 0);
    const auto q = with_output_size(columns, 0, c.far);
    ASSERT_EQ(p.ok(), c.out != 0);
    ASSERT_EQ(q.ok(), c.out != 0);
    if (p.ok()) {
      EXPECT_EQ(p->p, c.out);
      EXPECT_EQ(q->q, c.out);
      EXPECT_LE(p->pad_bottom(), c.far);
      EXPECT_GT(p->pad_bottom(), c.far - c.stride);
    } else {
      EXPECT_EQ(p.error().code, Code::invalid);
      EXPECT_FALSE(q.error().message.empty());
    }
  }
}

TEST(TestProblems, AreLegalSmallAndNamedOnce) {
  std::vector<std::string> names;
  for (const auto& row : test::test_problems()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(validate(row.problem).ok());
    EXPECT_LE(row.problem.y_elements(), 24000);
    EXPECT_LE(row.problem.macs(), 850000);
    EXPECT_EQ(std::count(names.begin(), names.end(), row.name), 0);
    names.emplace_back(row.name);
  }
  EXPECT_GE(names.size(), 90U);
}

TEST(TestProblems, VariantsAreLegalAndDifferent) {
  std::size_t turn = 0;
  for (const auto& row : test::test_problems()) {
    SCOPED_TRACE(row.name);
    const auto all = test::all_variants(row.problem);
    EXPECT_EQ(all.size(), 64U);
    const auto spread = test::spread_variants(row.problem, turn++);
    EXPECT_EQ(spread.size(), 6U);
    for (const auto* list : {&all, &spread}) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        const Status status = validate((*list)[i]);
        EXPECT_TRUE(status.ok()) << status.error().message;
        for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE((*list)[i] == (*list)[j]);
      }
    }
  }
}

}  // namespace
}  // namespace sl
