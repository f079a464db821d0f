#include "dispatch/tensors.hpp"

#include <gtest/gtest.h>

namespace sl {
namespace {

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

TEST(Overlap, IsThatOfTheBytes) {
  // Every pair of short stretches: each byte looked at one by one.
  for (std::uintptr_t a = 100; a < 110; ++a) {
    for (std::uintptr_t b = 100; b < 110; ++b) {
      for (std::uint64_t a_bytes = 1; a_bytes < 5; ++a_bytes) {
        for (std::uint64_t b_bytes = 1; b_bytes < 5; ++b_bytes) {
          bool shared = false;
          for (std::uintptr_t byte = a; byte < a + a_bytes; ++byte) shared |= byte >= b && byte < b + b_bytes;
          EXPECT_EQ(overlap(at(a), a_bytes, at(b), b_bytes), shared)
              << a << " " << a_bytes << " " << b << " " << b_bytes;
        }
      }
    }
  }
}

TEST(Overlap, HoldsForTheLargestAndTheAbsent) {
  constexpr std::uint64_t most = (std::uint64_t{1} << 63) - 1;
  EXPECT_TRUE(overlap(at(1 << 20), most, at(std::uintptr_t{1} << 46), 4));
  EXPECT_FALSE(overlap(at(1 << 20), 4, at(std::uintptr_t{1} << 46), most));
  EXPECT_TRUE(overlap(at(1 << 20), most, at(1 << 20), most));
  EXPECT_FALSE(overlap(nullptr, 0, at(1 << 20), 1 << 20)) << "no tensor";
  EXPECT_FALSE(overlap(at((1 << 20) - 8), 8, at(1 << 20), 8)) << "neighbours";
  EXPECT_FALSE(overlap(at((1 << 20) + 8), 8, at(1 << 20), 8)) << "neighbours";
}

TEST(YIsApart, LooksAtEveryTensorAndAllowsZToBeY) {
  const Extents bytes{64, 16, 8, 32, 32};
  const Tensors apart{at(1000), at(1100), at(1200), at(1300), at(1400)};
  EXPECT_TRUE(y_is_apart(bytes, apart));
  Tensors t = apart;
  t.z = t.y;
  EXPECT_TRUE(y_is_apart(bytes, t));
  t.z = at(1404);
  EXPECT_FALSE(y_is_apart(bytes, t));
  t = apart, t.x = at(1337);
  EXPECT_FALSE(y_is_apart(bytes, t));
  t = apart, t.w = at(1431);
  EXPECT_FALSE(y_is_apart(bytes, t));
  t = apart, t.bias = at(1393);
  EXPECT_FALSE(y_is_apart(bytes, t));
}

TEST(Extents, AreBytesAndSaturate) {
  ConvProblem v;
  v.n = 2, v.c = v.k = v.groups = 4, v.h = v.p = 6, v.w = v.q = 5, v.dtype = DType::f16;
  Extents bytes = extents(v);
  EXPECT_EQ(bytes.x, 480u);
  EXPECT_EQ(bytes.w, 8u);
  EXPECT_EQ(bytes.y, 480u);
  EXPECT_EQ(bytes.bias, 0u);
  EXPECT_EQ(bytes.z, 0u);
  v.bias = Bias::f32, v.residual = true;
  bytes = extents(v);
  EXPECT_EQ(bytes.bias, 16u);
  EXPECT_EQ(bytes.z, 480u);
  v.n = std::int64_t{1} << 39, v.c = v.h = v.w = std::int64_t{1} << 30;
  EXPECT_EQ(extents(v).x, (std::uint64_t{1} << 63) - 1);
}

TEST(AlignmentClass, IsTheLargestThatDividesAll) {
  EXPECT_EQ(alignment_class({}), 16);
  EXPECT_EQ(alignment_class({at(64), at(32), at(1), nullptr, at(48)}), 16) << "bias does not count";
  EXPECT_EQ(alignment_class({at(64), at(40), nullptr, nullptr, at(48)}), 8);
  EXPECT_EQ(alignment_class({at(64), at(32), nullptr, at(4), at(48)}), 4);
  EXPECT_EQ(alignment_class({at(64), at(32), nullptr, nullptr, at(2)}), 2);
  EXPECT_EQ(alignment_class({at(65), at(32), nullptr, nullptr, at(2)}), 2) << "no smaller one: it is refused elsewhere";
}

}  // namespace
}  // namespace sl
