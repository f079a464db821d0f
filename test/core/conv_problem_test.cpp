// What follows from a problem's fields, and its text and key as properties over random problems.
#include "core/conv_problem.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "support/generators.hpp"
#include "support/problems.hpp"

namespace sl {
namespace {

RC_GTEST_PROP(ConvProblemProperty, TextRoundTrips, (const ConvProblem& v)) {
  const auto parsed = parse(v.to_string());
  if (!parsed.ok()) RC_FAIL(parsed.error().message);
  RC_ASSERT(parsed->key() == v.key());
  RC_ASSERT(parsed->to_string() == v.to_string());
  RC_ASSERT(parsed->alpha == v.alpha);
  RC_ASSERT(parsed->beta == v.beta);
}

RC_GTEST_PROP(ConvProblemProperty, DescriptorAloneGivesTheSizes, (const ConvProblem& v)) {
  const auto parsed = parse(v.descriptor(), {v.dtype, v.layout});
  if (!parsed.ok()) RC_FAIL(parsed.error().message);
  RC_ASSERT(parsed->descriptor() == v.descriptor());
  RC_ASSERT(parsed->pad_bottom() == v.pad_bottom());
  RC_ASSERT(parsed->pad_right() == v.pad_right());
}

RC_GTEST_PROP(ConvProblemProperty, FloatsRoundTripBitForBit, (std::uint32_t bits)) {
  ConvProblem v = test::test_problem("dw_3x3");
  v.activation = Activation::leaky_relu;
  v.alpha = std::bit_cast<float>(bits);
  RC_PRE(std::isfinite(v.alpha));
  const auto parsed = parse(v.to_string());
  if (!parsed.ok()) RC_FAIL(parsed.error().message);
  RC_ASSERT(std::bit_cast<std::uint32_t>(parsed->alpha) == std::bit_cast<std::uint32_t>(v.normalised().alpha));
}

RC_GTEST_PROP(ConvProblemProperty, WithOutputSizeFindsTheSameOutput, (const ConvProblem& v)) {
  const auto sized = with_output_size(v, v.pad_bottom(), v.pad_right());
  if (!sized.ok()) RC_FAIL(sized.error().message);
  RC_ASSERT(sized->p == v.p);
  RC_ASSERT(sized->q == v.q);
}

TEST(ConvProblem, EveryTableRowRoundTrips) {
  std::size_t turn = 0;
  for (const auto& row : test::test_problems()) {
    for (const ConvProblem& v : test::spread_variants(row.problem, turn++)) {
      const auto parsed = parse(v.to_string());
      ASSERT_TRUE(parsed.ok()) << parsed.error().message;
      EXPECT_EQ(parsed->key(), v.key()) << v.to_string();
    }
  }
}

// Each field alone changes key, digest, hash, equality and text.
TEST(ConvProblem, EveryFieldIsInTheKey) {
  const ConvProblem base = [] {
    ConvProblem v = test::test_problem("dw_3x3");
    v.dtype = DType::f16;
    v.activation = Activation::clip;
    v.beta = 1;
    return v;
  }();
  void (*const changes[])(ConvProblem&) = {
      [](ConvProblem& v) { ++v.n; },
      [](ConvProblem& v) { v.c *= 2; },
      [](ConvProblem& v) { ++v.h; },
      [](ConvProblem& v) { ++v.w; },
      [](ConvProblem& v) { v.k *= 2; },
      [](ConvProblem& v) { v.groups /= 2; },
      [](ConvProblem& v) { ++v.r; },
      [](ConvProblem& v) { ++v.s; },
      [](ConvProblem& v) { ++v.p; },
      [](ConvProblem& v) { ++v.q; },
      [](ConvProblem& v) { ++v.stride_h; },
      [](ConvProblem& v) { ++v.stride_w; },
      [](ConvProblem& v) { ++v.pad_top; },
      [](ConvProblem& v) { ++v.pad_left; },
      [](ConvProblem& v) { ++v.dil_h; },
      [](ConvProblem& v) { ++v.dil_w; },
      [](ConvProblem& v) { v.dtype = DType::bf16; },
      [](ConvProblem& v) { v.layout = Layout::nhwc; },
      [](ConvProblem& v) { v.weight_layout = WeightLayout::ohwi; },
      [](ConvProblem& v) { v.bias = Bias::same; },
      [](ConvProblem& v) { v.bias = Bias::f32; },
      [](ConvProblem& v) { v.activation = Activation::none; },
      [](ConvProblem& v) { v.alpha = -1; },
      [](ConvProblem& v) { v.beta = 2; },
      [](ConvProblem& v) { v.residual = true; },
      [](ConvProblem& v) { v.align = 8; },
  };
  std::set<std::array<std::int64_t, ConvProblem::key_words>> keys = {base.key()};
  std::set<Digest> digests = {base.digest()};
  std::set<std::size_t> hashes = {std::hash<ConvProblem>()(base)};
  std::set<std::string> texts = {base.to_string()};
  for (const auto change : changes) {
    ConvProblem v = base;
    change(v);
    EXPECT_FALSE(v == base) << v.to_string();
    keys.insert(v.key());
    digests.insert(v.digest());
    hashes.insert(std::hash<ConvProblem>()(v));
    texts.insert(v.to_string());
  }
  const std::size_t count = std::size(changes) + 1;
  EXPECT_EQ(keys.size(), count);
  EXPECT_EQ(digests.size(), count);
  EXPECT_EQ(hashes.size(), count);
  EXPECT_EQ(texts.size(), count);
}

// Digests are file names of decisions: a change of key() or of the hash must not pass unseen.
TEST(ConvProblem, DigestIsStable) {
  const auto v = parse("g32mb1ic32ih112oc32oh112kh3ph1 dt=f16 tag=nhwc bias=f32 act=clip beta=6");
  ASSERT_TRUE(v.ok());
  EXPECT_EQ(v->digest().hex(), "5dbb74ce56b39066ea1a67800a5abdd1");
}

TEST(ConvProblem, BatchBuckets) {
  const std::int64_t table[][2] = {
      {0, 0},   {1, 1},     {2, 2},     {3, 4},     {4, 4},     {5, 8},        {32, 32},
      {33, 64}, {128, 128}, {129, 256}, {256, 256}, {257, 256}, {100000, 256}, {(std::int64_t{1} << 40) - 1, 256}};
  for (const auto& row : table) {
    ConvProblem v = test::test_problem("dw_3x3");
    v.n = row[0];
    ConvProblem want = v;
    want.n = row[1];
    EXPECT_EQ(v.batch_bucket(), want) << row[0];
  }
}

TEST(ConvProblem, Sizes) {
  const auto parsed = parse("g4mb3ic8ih9iw12oc12kh3kw2ph1pw0sh2sw1 dt=f16 bias=f32 z=1");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const ConvProblem& v = *parsed;
  EXPECT_EQ(v.p, 5);
  EXPECT_EQ(v.q, 11);
  EXPECT_EQ(v.channels_per_group(), 2);
  EXPECT_EQ(v.multiplier(), 3);
  EXPECT_FALSE(v.depthwise());
  EXPECT_EQ(v.x_elements(), 3 * 8 * 9 * 12);
  EXPECT_EQ(v.w_elements(), 12 * 2 * 3 * 2);
  EXPECT_EQ(v.y_elements(), 3 * 12 * 5 * 11);
  EXPECT_EQ(v.macs(), v.y_elements() * 2 * 6);
  EXPECT_EQ(v.min_bytes(), 2 * (v.x_elements() + v.w_elements() + 2 * v.y_elements()) + 4 * 12);
  EXPECT_EQ(v.pad_bottom(), 4 * 2 + 3 - 9 - 1);
  EXPECT_EQ(v.pad_right(), 0);
}

TEST(ConvProblem, OffsetWidth) {
  struct Row {
    const char* text;
    bool wide;
  };
  const Row rows[] = {
      {"g144mb32ic144ih56oc144kh3ph1", false},      {"g2mb1ic2ih32800oc2kh3ph1", true},  // pytorch#152816
      {"g2mb100ic2ih3280oc2kh3ph1 tag=nhwc", true},                                      // pytorch PR 163171
      {"g32mb522240ic32ih14oc32kh14sh14", true},                                         // FlagGems#6588
      {"g32mb340000ic32ih14oc32kh14sh14", false},  // 2.13e9 elements, output small
      {"g2mb1ic2ih32767oc2kh3ph1", true},          // 2147352578 elements: the halo reaches over
      {"g2mb1ic2ih32760oc2kh3ph1", false},          {"g1mb1ic1ih20000oc8kh3ph1", true},  // only y is large
      {"g1mb1ic1ih2000000000iw1oc1kh1kw1", false},  {"g1mb1ic1ih2147000000iw1oc1kh1kw1", false},
      {"g1mb1ic1ih2147483647iw1oc1kh1kw1", true},
  };
  for (const Row& row : rows) {
    const auto v = parse(row.text);
    ASSERT_TRUE(v.ok()) << v.error().message;
    EXPECT_EQ(v->needs_64bit_offsets(), row.wide) << row.text;
  }
}

// The largest legal sizes: nothing here may overflow (the sanitizer build looks).
TEST(ConvProblem, ExtremesDoNotOverflow) {
  const auto v = parse("g1mb1099511627775ic1ih131071iw1oc1oh131071ow1kh1kw1");
  ASSERT_TRUE(v.ok()) << v.error().message;
  EXPECT_GT(v->min_bytes(), 0);
  EXPECT_TRUE(v->needs_64bit_offsets());
  const auto wide = parse("g1mb1ic2147483647ih1iw8oc1kh2kw1dh1073741823ph536870912pw0 tag=nhwc");
  ASSERT_TRUE(wide.ok()) << wide.error().message;
  EXPECT_TRUE(wide->needs_64bit_offsets());
}

}  // namespace
}  // namespace sl
