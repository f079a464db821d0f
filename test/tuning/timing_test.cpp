#include "tuning/timing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tuning/fake_device.hpp"

namespace sl {
namespace {

using test::FakeRig;
using Names = std::vector<std::string>;

Samples made_of(std::vector<double> us) {
  Samples samples;
  samples.us = std::move(us);
  return samples;
}

TEST(Samples, PercentilesInterpolateWhateverTheOrder) {
  const Samples samples = made_of({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(samples.median(), 3);
  EXPECT_DOUBLE_EQ(samples.percentile(0), 1);
  EXPECT_DOUBLE_EQ(samples.percentile(1), 5);
  EXPECT_DOUBLE_EQ(samples.percentile(0.1), 1.4);
  EXPECT_DOUBLE_EQ(samples.percentile(0.9), 4.6);
  EXPECT_DOUBLE_EQ(made_of({1, 2}).median(), 1.5);
  EXPECT_DOUBLE_EQ(made_of({7}).percentile(0.9), 7);
  EXPECT_DOUBLE_EQ(made_of({}).median(), 0);
  EXPECT_DOUBLE_EQ(samples.percentile(-3), 1);
  EXPECT_DOUBLE_EQ(samples.percentile(3), 5);
}

TEST(RotatingSets, LeaveTheCacheWithinTheScratch) {
  DeviceInfo info;
  info.l2_bytes = 50'000'000;
  const struct {
    std::int64_t bytes;
    std::uint64_t scratch;
    int want;
  } table[] = {
      {58'000'000, 1ULL << 30, 4},   // 4 x L2 = 200 MB
      {200'000'000, 1ULL << 30, 1},  // one set is enough
      {199'999'999, 1ULL << 30, 2},  // one byte short of enough
      {1000, 1ULL << 30, 64},        // never more than 64
      {58'000'000, 120'000'000, 2},  // scratch decides
      {58'000'000, 10'000'000, 1},   // never fewer than one
      {0, 1ULL << 30, 1},            // nothing to rotate
      {INT64_MAX, UINT64_MAX, 1},
  };
  for (const auto& row : table) EXPECT_EQ(rotating_sets(info, row.bytes, row.scratch), row.want) << row.bytes;
  info.l2_bytes = 0;
  EXPECT_EQ(rotating_sets(info, 1000, 1ULL << 30), 1);
}

TEST(NoiseFloor, IsThreeStandardErrorsOfTheNoisierOfIncumbentAndFastest) {
  const Samples quiet = made_of({100, 100, 100, 100, 100});
  const Samples noisy = made_of({90, 95, 100, 105, 110});  // 10th to 90th percentile: 92 to 108
  const Samples fast_noisy = made_of({9, 9.5, 10, 10.5, 11});
  Samples failed, abandoned = made_of({500});
  failed.error = "no";
  abandoned.abandoned = true;
  const double floor = 3 * std::sqrt(2.0) * 1.2533 * (0.16 / 2.5631) / std::sqrt(5.0);
  EXPECT_NEAR(floor, 0.148, 1e-3);
  EXPECT_DOUBLE_EQ(noise_floor({quiet}), 0.01);
  EXPECT_NEAR(noise_floor({noisy, quiet}), floor, 1e-4);
  EXPECT_NEAR(noise_floor({quiet, fast_noisy}), floor, 1e-4);
  EXPECT_NEAR(noise_floor({failed, abandoned, noisy}), floor, 1e-4);
  EXPECT_DOUBLE_EQ(noise_floor({quiet, made_of({200, 400, 600})}), 0.01) << "neither incumbent nor fastest";
  EXPECT_DOUBLE_EQ(noise_floor({made_of({10})}), 0.05) << "one replay says nothing of spread";
  EXPECT_DOUBLE_EQ(noise_floor({}), 0.01);
  EXPECT_DOUBLE_EQ(noise_floor({made_of({1, 10, 100})}), 0.5) << "bounded";
}

TEST(Fastest, KeepsTheEarliestWithinTheMargin) {
  Samples failed, slow = made_of({1});
  failed.error = "no";
  slow.abandoned = true;
  const Samples a = made_of({103}), b = made_of({101}), c = made_of({100});
  EXPECT_EQ(fastest({a, b, c}, 0), 2);
  EXPECT_EQ(fastest({a, b, c}, 0.015), 1);
  EXPECT_EQ(fastest({a, b, c}, 0.05), 0);
  EXPECT_EQ(fastest({failed, slow, c, b}, 0.05), 2);
  EXPECT_EQ(fastest({failed, slow}, 0.05), 1) << "better a slow one than none";
  EXPECT_EQ(fastest({failed}, 0.05), -1);
  EXPECT_EQ(fastest({}, 0.05), -1);
  EXPECT_EQ(fastest({a, c}, 5.0), 0) << "a margin beyond reason is bounded";
}

/// Workloads over fake kernels v0, v1, ...; set s writes its own output.
class Interleaved : public ::testing::Test {
 protected:
  static constexpr int sets = 3;

  std::vector<Samples> time(int count, const TimingOptions& options) {
    std::vector<Workload> work;
    for (int v = 0; v < count; ++v) {
      Binary binary;
      binary.code = std::to_string(v);
      kernels.push_back(*rig.device.load(binary, 0));
      work.emplace_back([this, v](int set, Stream stream) {
        SlParams params{};
        params.n = 1;
        params.y = static_cast<std::byte*>(memory->data()) + set * 4096;
        return rig.device.launch(*kernels[static_cast<std::size_t>(v)], {1, 1, 0}, params, stream);
      });
    }
    return time_interleaved(rig.device, *rig.device.create_stream(), work, sets, options);
  }

  FakeRig rig;
  std::unique_ptr<Buffer> memory = rig.device.allocate(std::size_t{sets} * 4096).value();
  std::vector<std::shared_ptr<const Kernel>> kernels;
};

TEST_F(Interleaved, SamplesAreTakenInTurns) {
  for (int v = 0; v < 3; ++v) rig.device.behaviours[v].us = [v](int) { return 10.0 + v; };
  const std::vector<Samples> samples = time(3, {.rounds = 4, .target_us = 300});
  const Names order = rig.device.replay_order();
  const Names tail(order.end() - 12, order.end());
  EXPECT_EQ(tail, (Names{"v0", "v1", "v2", "v0", "v1", "v2", "v0", "v1", "v2", "v0", "v1", "v2"}));
  for (std::size_t v = 0; v < 3; ++v) {
    EXPECT_EQ(samples[v].us, std::vector<double>(4, 10.0 + static_cast<double>(v)));
    EXPECT_TRUE(samples[v].error.empty());
    EXPECT_FALSE(samples[v].abandoned);
  }
  EXPECT_EQ(rig.device.live_recordings, 0);
}

TEST_F(Interleaved, ReplaysReachTheTargetOverWholeRotations) {
  rig.device.overhead_us = 8;  // a lone call looks slow: 18 us instead of 10
  const std::vector<Samples> samples = time(1, {.rounds = 2, .target_us = 1000});
  const auto& calls = rig.device.replays.back().outputs;
  EXPECT_GE(calls.size(), 25U) << "a quarter of 1000 us at 10 us";
  EXPECT_LE(calls.size(), 105U);
  EXPECT_EQ(calls.size() % sets, 0U);
  const auto* const base = static_cast<const std::byte*>(memory->data());
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], base + (i % sets) * 4096);
  EXPECT_NEAR(samples[0].median(), 10, 0.4) << "overhead spread over the calls";
}

TEST_F(Interleaved, ASlowKernelIsCalledOnceAReplay) {
  rig.device.behaviours[0].us = [](int) { return 5000.0; };
  const std::vector<Samples> samples = time(1, {.rounds = 3, .target_us = 1000});
  EXPECT_EQ(rig.device.replays.back().outputs.size(), 1U);
  EXPECT_EQ(samples[0].us.size(), 3U);
}

TEST_F(Interleaved, NothingIsSampledBeforeTheClockHadTimeToRise) {
  // The first 2 ms of device time run at half speed; 3 targets of 1 ms are spent before the first sample.
  double spent = 0;
  rig.device.behaviours[0].us = [&](int) {
    const double us = spent < 2000 ? 20 : 10;
    spent += 500;  // about what a replay lasts
    return us;
  };
  const std::vector<Samples> samples = time(1, {.rounds = 5, .target_us = 1000});
  EXPECT_EQ(samples[0].us, std::vector<double>(5, 10.0));
}

TEST_F(Interleaved, AHopelessCandidateIsAbandoned) {
  rig.device.behaviours[1].us = [](int) { return 29'000'000.0; };  // one call takes 29 s
  rig.device.behaviours[2].us = [](int) { return 25.0; };          // 2.5 times slower: still timed
  const std::vector<Samples> samples = time(3, {.rounds = 5});
  EXPECT_TRUE(samples[1].abandoned);
  EXPECT_DOUBLE_EQ(samples[1].median(), 29'000'000.0);
  const Names order = rig.device.replay_order();
  EXPECT_EQ(std::count(order.begin(), order.end(), "v1"), 1) << "one call and no more";
  EXPECT_FALSE(samples[2].abandoned);
  EXPECT_EQ(samples[2].us.size(), 5U);
}

TEST_F(Interleaved, AnEarlierCandidateIsAbandonedOnceABetterOneIsKnown) {
  rig.device.behaviours[0].us = [](int) { return 200.0; };
  const std::vector<Samples> samples = time(2, {.rounds = 5});
  EXPECT_TRUE(samples[0].abandoned);
  EXPECT_EQ(samples[0].us.size(), 1U);
  EXPECT_EQ(samples[1].us.size(), 5U);
}

TEST_F(Interleaved, LaunchOverheadAloneAbandonsNobody) {
  rig.device.behaviours[0].us = [](int) { return 1.0; };
  rig.device.behaviours[1].us = [](int replay) { return replay == 0 ? 18.0 : 1.1; };  // a cold instruction cache
  const std::vector<Samples> samples = time(2, {.rounds = 5});
  EXPECT_FALSE(samples[1].abandoned);
  EXPECT_EQ(samples[1].us.size(), 5U);
}

TEST_F(Interleaved, AbandonFactorZeroTimesEverything) {
  rig.device.behaviours[0].us = [](int) { return 1000.0; };
  const std::vector<Samples> samples = time(2, {.rounds = 3, .abandon_factor = 0});
  EXPECT_EQ(samples[0].us.size(), 3U);
}

TEST_F(Interleaved, AFailureHarmsNoOther) {
  rig.device.behaviours[0].record_error = "no memory for a graph";
  rig.device.behaviours[1].replay_error = "illegal address";
  rig.device.behaviours[3].us = [](int) { return -1.0; };
  const std::vector<Samples> samples = time(4, {.rounds = 3});
  EXPECT_EQ(samples[0].error, "no memory for a graph");
  EXPECT_EQ(samples[1].error, "illegal address");
  EXPECT_TRUE(samples[0].us.empty() && samples[1].us.empty() && samples[3].us.empty());
  EXPECT_NE(samples[3].error.find("elapsed time"), std::string::npos);
  EXPECT_EQ(samples[2].us.size(), 3U);
  EXPECT_EQ(rig.device.live_recordings, 0);
}

TEST_F(Interleaved, BeyondTheDeadlineOnlyTheFirstThatWorksIsMeasured) {
  rig.device.behaviours[0].record_error = "no";
  const std::vector<Samples> samples = time(4, {.rounds = 9, .deadline_us = 1e-3});
  EXPECT_EQ(samples[0].error, "no");
  EXPECT_EQ(samples[1].us.size(), 1U);
  EXPECT_EQ(samples[2].error, skipped_budget);
  EXPECT_EQ(samples[3].error, skipped_budget);
}

Samples spread_around(double middle, double step, int count) {
  Samples samples;
  for (int i = 0; i < count; ++i) samples.us.push_back(middle + step * (i - (count - 1) / 2.0));
  return samples;
}

TEST(MedianInterval, HoldsTheMedianAndNarrowsWithSamples) {
  EXPECT_EQ(Samples{}.median_interval(), std::make_pair(0.0, 0.0));
  EXPECT_EQ((Samples{{7}, false, {}}.median_interval()), std::make_pair(7.0, 7.0));
  EXPECT_EQ(spread_around(100, 1, 5).median_interval(), std::make_pair(98.0, 102.0)) << "too few: the whole range";
  EXPECT_EQ(spread_around(100, 1, 9).median_interval(), std::make_pair(96.0, 104.0));
  // Ranks 9 and 22 of 30: at least 95 % by the binomial distribution, whose own are 10 and 21.
  EXPECT_EQ(spread_around(100, 1, 30).median_interval(), std::make_pair(93.5, 106.5));
}

TEST(CompareMedians, IsCertainOrSaysThatItIsNot) {
  const Samples hundred = spread_around(100, 0.01, 30);
  EXPECT_EQ(compare_medians(hundred, spread_around(110, 0.01, 30)), Comparison::faster);
  EXPECT_EQ(compare_medians(hundred, spread_around(90, 0.01, 30)), Comparison::slower);
  EXPECT_EQ(compare_medians(hundred, spread_around(101, 0.01, 30)), Comparison::same)
      << "1 % is nothing, however certain";
  EXPECT_EQ(compare_medians(hundred, spread_around(102, 1, 30)), Comparison::ambiguous) << "the interval holds 1";
  EXPECT_EQ(compare_medians(hundred, spread_around(102, 0.05, 30)), Comparison::faster);
  EXPECT_EQ(compare_medians(hundred, Samples{}), Comparison::ambiguous);
  EXPECT_EQ(name(Comparison::ambiguous), "ambiguous");
}

TEST_F(Interleaved, NothingToTimeIsNoError) { EXPECT_TRUE(time(0, {}).empty()); }

}  // namespace
}  // namespace sl
