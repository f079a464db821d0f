// Descriptors that are read, and what they are read as.
#include <gtest/gtest.h>

#include <clocale>

#include "core/conv_problem.hpp"

namespace sl {
namespace {

struct Sizes {
  std::int64_t n, g, c, k;
  std::int64_t h, w, p, q, r, s;
  std::int64_t sh, sw, ph, pw, dh, dw;  // dilation as ConvProblem counts it: 1 = dense
};

struct Case {
  const char* text;
  Sizes want;
};

// Each follows a rule of benchdnn's reader (str2desc and what it calls), or a line of its documentation or input files.
const Case cases[] = {
    // The form of the design and the README.
    {"g32mb1ic32ih112oc32oh112kh3ph1", {1, 32, 32, 32, 112, 112, 112, 112, 3, 3, 1, 1, 1, 1, 1, 1}},
    // Alexnet conv1 of benchdnn's documentation: underscores, width said, a quoted name, mb 2 by default.
    {"ic3ih227iw227_oc96oh55ow55_kh11kw11_sh4sw4ph0pw0_n\"alexnet:conv1\"",
     {2, 1, 3, 96, 227, 227, 55, 55, 11, 11, 4, 4, 0, 0, 1, 1}},
    // The canonical form in full.
    {"g4mb2_ic4id0ih8iw9_oc8od0oh8ow9_kd0kh3kw5_sd1sh1sw1_pd0ph1pw2_dd0dh0dw0_nx",
     {2, 4, 4, 8, 8, 9, 8, 9, 3, 5, 1, 1, 1, 2, 1, 1}},
    // Any order.
    {"ph1kh3oh14oc64ih14ic64mb3g64", {3, 64, 64, 64, 14, 14, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1}},
    // The last of a repeated token counts.
    {"mb7mb3ic1ih5ih4oc1kh1", {3, 1, 1, 1, 4, 4, 4, 4, 1, 1, 1, 1, 0, 0, 1, 1}},
    // Output from the input; no pad said = 0.
    {"g8mb1ic8ih10oc8kh3", {1, 8, 8, 8, 10, 10, 8, 8, 3, 3, 1, 1, 0, 0, 1, 1}},
    {"g8mb1ic8ih10oc8kh3ph1sh2", {1, 8, 8, 8, 10, 10, 5, 5, 3, 3, 2, 2, 1, 1, 1, 1}},
    {"g8mb1ic8ih10iw13oc8kh3kw5ph1pw2sh2sw3", {1, 8, 8, 8, 10, 13, 5, 5, 3, 5, 2, 3, 1, 2, 1, 1}},
    // Pad from the output: half of the sum, the odd one at the far side.
    {"g8mb1ic8ih10oc8oh10kh3", {1, 8, 8, 8, 10, 10, 10, 10, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"g8mb1ic8ih10oc8oh5kh3sh2", {1, 8, 8, 8, 10, 10, 5, 5, 3, 3, 2, 2, 0, 0, 1, 1}},
    {"g8mb1ic8ih10oc8oh10kh4", {1, 8, 8, 8, 10, 10, 10, 10, 4, 4, 1, 1, 1, 1, 1, 1}},
    {"g8mb1ic8ih10oc8oh5kh5sh2", {1, 8, 8, 8, 10, 10, 5, 5, 5, 5, 2, 2, 1, 1, 1, 1}},
    // tensorflow#14601: the deduced pad would be negative; the one output reads x[0].
    {"mb1ic1ih3iw1oc1oh1ow1kh1kw1sh3", {1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 3, 1, 0, 0, 1, 1}},
    // Dilation counts from 0.
    {"g4mb1ic4ih8oc4kh3dh1ph2", {1, 4, 4, 4, 8, 8, 8, 8, 3, 3, 1, 1, 2, 2, 2, 2}},
    {"g4mb1ic4ih9iw8oc4kh3kw3dh2dw0ph3pw1", {1, 4, 4, 4, 9, 8, 9, 8, 3, 3, 1, 1, 3, 1, 3, 1}},
    // sw1, pw0 and dw0 alone say nothing about a width: it is the height's.
    {"g4mb1ic4ih9oc4kh3ph1sh2sw1pw0dw0", {1, 4, 4, 4, 9, 9, 5, 5, 3, 3, 2, 2, 1, 1, 1, 1}},
    // No height: conv1d.
    {"g12mb2ic12iw33oc12kw4ow33pw3", {2, 12, 12, 12, 1, 33, 1, 33, 1, 4, 1, 1, 0, 3, 1, 1}},
    {"g12mb2ic12iw33oc12kw5sw2dw1", {2, 12, 12, 12, 1, 33, 1, 13, 1, 5, 1, 2, 0, 0, 1, 2}},
    // An empty batch is legal.
    {"g20mb0ic20ih10oc20kh3ph1", {0, 20, 20, 20, 10, 10, 10, 10, 3, 3, 1, 1, 1, 1, 1, 1}},
    // No groups = 1.
    {"mb1ic3ih8oc4kh3", {1, 1, 3, 4, 8, 8, 6, 6, 3, 3, 1, 1, 0, 0, 1, 1}},
    // FBGEMM PR 395: a 1x1 input under a padded 7x7 and 31x31 kernel.
    {"g5mb1ic5ih1oc5kh7ph3", {1, 5, 5, 5, 1, 1, 1, 1, 7, 7, 1, 1, 3, 3, 1, 1}},
    {"g5mb1ic5ih1oc5kh31ph15", {1, 5, 5, 5, 1, 1, 1, 1, 31, 31, 1, 1, 15, 15, 1, 1}},
    // A name may hold blanks and underscores; blanks around the text do not matter.
    {"  g8mb1ic8ih10oc8kh3n\"a b_c d\"  ", {1, 8, 8, 8, 10, 10, 8, 8, 3, 3, 1, 1, 0, 0, 1, 1}},
    {"g8mb1ic8ih10oc8kh3nresnet_50:conv1*2", {1, 8, 8, 8, 10, 10, 8, 8, 3, 3, 1, 1, 0, 0, 1, 1}},
    // More than 2^31 images.
    {"g8mb3000000000ic8ih2oc8kh1", {3000000000, 8, 8, 8, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 1, 1}},
};

TEST(Parse, ReadsDescriptorsAsBenchdnnDoes) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto parsed = parse(c.text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const ConvProblem& v = *parsed;
    const Sizes got = {v.n, v.groups, v.c,        v.k,        v.h,       v.w,        v.p,     v.q,
                       v.r, v.s,      v.stride_h, v.stride_w, v.pad_top, v.pad_left, v.dil_h, v.dil_w};
    const Sizes& want = c.want;
    EXPECT_EQ(got.n, want.n);
    EXPECT_EQ(got.g, want.g);
    EXPECT_EQ(got.c, want.c);
    EXPECT_EQ(got.k, want.k);
    EXPECT_EQ(got.h, want.h);
    EXPECT_EQ(got.w, want.w);
    EXPECT_EQ(got.p, want.p);
    EXPECT_EQ(got.q, want.q);
    EXPECT_EQ(got.r, want.r);
    EXPECT_EQ(got.s, want.s);
    EXPECT_EQ(got.sh, want.sh);
    EXPECT_EQ(got.sw, want.sw);
    EXPECT_EQ(got.ph, want.ph);
    EXPECT_EQ(got.pw, want.pw);
    EXPECT_EQ(got.dh, want.dh);
    EXPECT_EQ(got.dw, want.dw);
    EXPECT_EQ(v.dtype, DType::f32);
    EXPECT_EQ(v.layout, Layout::nchw);
    EXPECT_EQ(v.align, 16);
  }
}

TEST(Parse, AttributesAreRead) {
  const auto parsed =
      parse("g8mb1ic8ih10oc8kh3 dt=f16 tag=nhwc wtag=ohwi bias=f32 act=clip alpha=-1.5 beta=6 z=1 align=8");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->dtype, DType::f16);
  EXPECT_EQ(parsed->layout, Layout::nhwc);
  EXPECT_EQ(parsed->weight_layout, WeightLayout::ohwi);
  EXPECT_EQ(parsed->bias, Bias::f32);
  EXPECT_EQ(parsed->activation, Activation::clip);
  EXPECT_EQ(parsed->alpha, -1.5F);
  EXPECT_EQ(parsed->beta, 6.0F);
  EXPECT_TRUE(parsed->residual);
  EXPECT_EQ(parsed->align, 8);
}

TEST(Parse, DefaultsFillWhatTheTextDoesNotSay) {
  const ParseDefaults defaults = {DType::bf16, Layout::nhwc};
  const auto silent = parse("g8mb1ic8ih10oc8kh3", defaults);
  ASSERT_TRUE(silent.ok());
  EXPECT_EQ(silent->dtype, DType::bf16);
  EXPECT_EQ(silent->layout, Layout::nhwc);
  const auto said = parse("g8mb1ic8ih10oc8kh3 dt=f32 tag=nchw", defaults);
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(said->dtype, DType::f32);
  EXPECT_EQ(said->layout, Layout::nchw);
}

TEST(Parse, EqualSpellingsAreOneKey) {
  const char* const spellings[][2] = {
      {"g32mb1ic32ih112oc32oh112kh3ph1", "kh3ph1_oh112_oc32_ih112ic32mb1g32"},
      {"g32mb1ic32ih112oc32oh112kh3ph1", "g32mb1ic32ih112iw112oc32oh112ow112kh3kw3sh1sw1ph1pw1dh0dw0"},
      {"g32mb2ic32ih112oc32kh3ph1", "g32ic32ih112oc32oh112kh3"},
      {"mb1ic8ih9oc8kh3", "g1mb1ic8ih9oc8kh3_n\"some name\""},
      {"g8mb1ic8ih9iw1oc8kh3kw1dh1dw7", "g8mb1ic8ih9iw1oc8kh3kw1dh1"},  // one tap has no dilation
      {"g8mb1ic8ih9oc8kh3 bias=f32", "g8mb1ic8ih9oc8kh3 bias=same"},
      {"g8mb1ic8ih9oc8kh3 dt=f32 tag=nchw align=16 act=none z=0", "g8mb1ic8ih9oc8kh3"},
      {"g8mb1ic8ih9oc8kh3 act=clip alpha=-0.0 beta=6", "g8mb1ic8ih9oc8kh3 beta=6.0e0 act=clip"},
      {"g8mb1ic8iw9oc8kw3", "g8mb1ic8ih1iw9oc8kh1kw3"},
  };
  for (const auto& pair : spellings) {
    SCOPED_TRACE(std::string(pair[0]) + " | " + pair[1]);
    const auto a = parse(pair[0]), b = parse(pair[1]);
    ASSERT_TRUE(a.ok()) << a.error().message;
    ASSERT_TRUE(b.ok()) << b.error().message;
    EXPECT_EQ(a->key(), b->key());
    EXPECT_EQ(*a, *b);
    EXPECT_EQ(a->digest(), b->digest());
    EXPECT_EQ(a->to_string(), b->to_string());
    EXPECT_EQ(std::hash<ConvProblem>()(*a), std::hash<ConvProblem>()(*b));
  }
}

TEST(Parse, CanonicalTextIsShortAndKnown) {
  const char* const texts[][2] = {
      {"g32ic32ih112oc32kh3ph1", "g32mb2ic32ih112oc32oh112kh3ph1 dt=f32 tag=nchw"},
      {"g32mb1ic32ih112iw56oc32kh3kw3ph1pw1 dt=f16 tag=nhwc",
       "g32mb1ic32ih112iw56oc32oh112ow56kh3kw3ph1pw1 dt=f16 tag=nhwc"},
      {"g4mb1ic4ih9oc4kh3sh2dh1 act=leaky_relu alpha=0.1",
       "g4mb1ic4ih9oc4oh3kh3sh2ph0dh1 dt=f32 tag=nchw act=leaky_relu alpha=0.1"},
      {"g8mb1ic8ih9oc8kh3ph1 act=clip beta=inf", "g8mb1ic8ih9oc8oh9kh3ph1 dt=f32 tag=nchw act=clip beta=inf"},
      {"g8mb1ic8ih9oc8kh3ph1 act=clip alpha=-INF beta=6",
       "g8mb1ic8ih9oc8oh9kh3ph1 dt=f32 tag=nchw act=clip alpha=-inf beta=6"},
      {"g8mb1ic8ih9oc8kh1ph1", "g8mb1ic8ih9oc8oh11kh1ph1 dt=f32 tag=nchw"},
      {"g12mb2ic12iw33oc12kw4pw3ow33 align=4 z=1 wtag=ohwi bias=f32",
       "g12mb2ic12iw33oc12ow33kw4pw3 dt=f32 tag=nchw wtag=ohwi bias=same z=1 align=4"},
  };
  for (const auto& pair : texts) {
    const auto parsed = parse(pair[0]);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->to_string(), pair[1]);
    const auto again = parse(parsed->to_string());
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->key(), parsed->key());
  }
}

TEST(Parse, LocaleDoesNotMatter) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  // Where no locale with a decimal comma is installed this still runs, as it would anywhere, in the C locale.
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
    if (std::setlocale(LC_ALL, name) == nullptr) continue;
    const auto parsed = parse("g8mb1ic8ih9oc8kh3 act=leaky_relu alpha=0.25");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->alpha, 0.25F);
    EXPECT_NE(parsed->to_string().find("alpha=0.25"), std::string::npos);
  }
  std::setlocale(LC_ALL, before.c_str());
}

}  // namespace
}  // namespace sl
