// Barriers and warp-wide operations of kernel code on the host device.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "jit/host_kernels.hpp"

namespace sl::test {
namespace {

constexpr std::uint64_t seeds[] = {0, 1, 2, 3, 77, 0xdeadbeefULL};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST(HostCollectives, ABarrierMakesEveryOrderEqual) {
  const KernelSpec spec = testing_kernel("reverse", "collectives", {{"SYNC", 1}}, 256);
  const std::vector<float> x = ramp(3 * 256);
  for (const std::uint64_t seed : seeds) {
    const RunOutcome got = run_on_host(spec, x.data(), x.size() * 4, x.size() * 4, {.seed = seed, .grid = 3});
    ASSERT_TRUE(got.status.ok()) << got.status.error().message;
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(got.at<float>(i), x[i / 256 * 256 + 255 - i % 256]) << "seed " << seed << " element " << i;
  }
}

TEST(HostCollectives, AMissingBarrierShows) {
  const KernelSpec spec = testing_kernel("reverse", "collectives", {{"SYNC", 0}}, 64);
  const std::vector<float> x = ramp(64);
  std::set<std::string> outcomes;
  for (const std::uint64_t seed : seeds) {
    const RunOutcome got = run_on_host(spec, x.data(), 256, 256, {.seed = seed});
    ASSERT_TRUE(got.status.ok()) << got.status.error().message;
    std::string wrong;  // which elements were read before they were written
    for (std::size_t i = 0; i < 64; ++i) wrong += got.at<float>(i) == x[63 - i] ? '.' : 'x';
    EXPECT_NE(wrong.find('x'), std::string::npos) << "seed " << seed << " hides the missing barrier";
    outcomes.insert(wrong);
  }
  EXPECT_EQ(outcomes.size(), std::size(seeds)) << "orders must differ between seeds";
}

TEST(HostCollectives, TheSameSeedGivesTheSameWrongAnswer) {
  const KernelSpec spec = testing_kernel("reverse", "collectives", {{"SYNC", 0}}, 64);
  const std::vector<float> x = ramp(64 * 16);
  const auto run = [&](int threads) {
    return run_on_host(spec, x.data(), x.size() * 4, x.size() * 4, {.seed = 5, .threads = threads, .grid = 16}).y;
  };
  const std::vector<std::byte> first = run(1);
  EXPECT_EQ(run(1), first);
  EXPECT_EQ(run(4), first) << "which OS thread runs a block must not matter";
}

TEST(HostCollectives, BlockReduction) {
  const KernelSpec spec = testing_kernel("sum", "collectives", {}, 256);
  const std::vector<float> x = ramp(256 * 9);
  for (const std::uint64_t seed : seeds) {
    const RunOutcome got = run_on_host(spec, x.data(), x.size() * 4, 9 * 4, {.seed = seed, .threads = 2, .grid = 9});
    ASSERT_TRUE(got.status.ok()) << got.status.error().message;
    for (std::size_t block = 0; block < 9; ++block)  // integers below 2^24: exact
      EXPECT_EQ(got.at<float>(block), std::accumulate(&x[block * 256], &x[block * 256] + 256, 0.0F)) << block;
  }
}

TEST(HostCollectives, Butterfly) {
  const std::vector<float> x = ramp(64);
  const RunOutcome got = run_on_host(testing_kernel("butterfly", "collectives"), x.data(), 256, 256, {.seed = 9});
  ASSERT_TRUE(got.status.ok()) << got.status.error().message;
  for (std::size_t t = 0; t < 64; ++t)
    EXPECT_EQ(got.at<float>(t), std::accumulate(&x[t / 32 * 32], &x[t / 32 * 32] + 32, 0.0F)) << t;
}

TEST(HostCollectives, BallotOfWholeAndPartialWarps) {
  for (const int block : {32, 40, 64}) {
    const RunOutcome got =
        run_on_host(testing_kernel("ballot", "collectives"), "", 1, 256, {.seed = 3, .block = block});
    ASSERT_TRUE(got.status.ok()) << got.status.error().message;
    for (int t = 0; t < block; ++t) {
      unsigned want = 0;
      for (int lane = 0; lane < 32 && t / 32 * 32 + lane < block; ++lane)
        if ((t / 32 * 32 + lane) % 3 == 0) want |= 1U << lane;
      EXPECT_EQ(got.at<unsigned>(static_cast<std::size_t>(t)), want) << "block " << block << " thread " << t;
    }
  }
}

TEST(HostCollectives, ThoseWhoReturnedCountAsArrived) {
  constexpr std::size_t live = 40;
  const KernelSpec spec = testing_kernel("early_exit", "collectives", {{"LIVE", live}});
  for (const std::uint64_t seed : seeds) {
    const RunOutcome got = run_on_host(spec, "", 1, 256, {.seed = seed});
    ASSERT_TRUE(got.status.ok()) << got.status.error().message;
    for (std::size_t t = 0; t < live; ++t) {
      if (t == live - 1) {
        EXPECT_TRUE(std::isnan(got.at<float>(t))) << "the value of a lane that returned";
      } else {
        EXPECT_EQ(got.at<float>(t), 300.0F + static_cast<float>(t == 31 ? t : t + 1)) << t;
      }
    }
  }
}

TEST(HostCollectives, WaitingForeverIsAnErrorThatSaysWhoWaitsWhere) {
  const KernelSpec spec = testing_kernel("divergent", "collectives", {{"AT_BARRIER", 16}}, 32);
  for (const std::uint64_t seed : seeds) {
    const RunOutcome got = run_on_host(spec, "", 1, 128, {.seed = seed, .threads = 2, .grid = 5});
    ASSERT_FALSE(got.status.ok());
    EXPECT_EQ(got.status.error().code, Code::device);
    const std::string& message = got.status.error().message;
    EXPECT_NE(message.find(spec.entry() + ", block 0: "), std::string::npos) << message;
    EXPECT_NE(message.find("threads 0-15 at barrier(), threads 16-31 at ballot()"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace sl::test
