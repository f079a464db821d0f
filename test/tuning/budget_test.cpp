// Budgets of time and memory: what tune() does when there is little of either.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tuning/fake_device.hpp"
#include "tuning/tuner.hpp"

namespace sl {
namespace {

using test::fake_candidates;
using test::FakeRig;

TuneOptions quick() {
  TuneOptions options;
  options.seed = 1;
  options.timing.rounds = 3;
  options.budget.time_ms = 60'000;
  options.budget.threads = 2;
  return options;
}

TuneResult run(FakeRig& rig, int candidates, const TuneOptions& options) {
  TuneResult result = tune(rig.device, *rig.cache, rig.problem, fake_candidates(candidates), options, rig.log);
  EXPECT_EQ(rig.device.live_bytes, 0U);
  EXPECT_EQ(rig.device.live_streams, 0);
  return result;
}

TEST(TimeBudget, SpentBeforeItBeganStillTriesTheFirst) {
  FakeRig rig;
  TuneOptions options = quick();
  options.budget.time_ms = 1e-3;
  const TuneResult result = run(rig, 12, options);
  EXPECT_EQ(result.winner, 0) << result.decision.reason;
  EXPECT_EQ(result.decision.origin, Origin::tuned);
  EXPECT_EQ(result.decision.candidates[0].outcome, "timed");
  for (std::size_t i = 1; i < 12; ++i) EXPECT_EQ(result.decision.candidates[i].outcome, skipped_budget) << i;
  EXPECT_EQ(rig.compiler->batches, std::vector<std::size_t>{8}) << "the second chunk was never compiled";
  EXPECT_EQ(result.decision.baseline_us, 0) << "no time for the copy";
}

TEST(TimeBudget, ABrokenFirstCandidateDoesNotUseUpTheOneTry) {
  FakeRig rig;
  rig.device.behaviours[0].launch = [](const SlParams&) -> Status { return {}; };  // writes nothing
  for (int v = 1; v < 9; ++v) rig.device.behaviours[v].compile_error = "no";
  TuneOptions options = quick();
  options.budget.time_ms = 1e-3;
  EXPECT_EQ(run(rig, 1, options).winner, -1);
  const TuneResult result = run(rig, 20, options);
  EXPECT_EQ(result.winner, 9) << "the first chunk loaded something, but nothing right";
  EXPECT_EQ(result.decision.candidates[0].outcome.substr(0, 6), "wrong:");
  EXPECT_EQ(result.decision.candidates[16].outcome, skipped_budget) << "the second chunk had something right";
  rig.device.behaviours[0].load_error = "no";
  EXPECT_EQ(run(rig, 12, options).winner, 9) << "nothing in the first chunk loaded";
}

TEST(TimeBudget, CompilingCountsAndLeavesNoNewChunk) {
  FakeRig rig;
  rig.compiler->on_compile = [] { std::this_thread::sleep_for(std::chrono::milliseconds(40)); };
  TuneOptions options = quick();
  options.budget.time_ms = 60;
  const TuneResult result = run(rig, 24, options);
  EXPECT_EQ(rig.compiler->batches, std::vector<std::size_t>{8}) << "40 of 60 ms are more than compiling's half";
  EXPECT_GE(result.winner, 0);
  EXPECT_EQ(result.decision.candidates[8].outcome, skipped_budget);
  EXPECT_EQ(result.decision.candidates[23].outcome, skipped_budget);
}

TEST(Memory, ScratchStaysWithinItsBudget) {
  for (const std::uint64_t scratch : {200'000ULL, 1'000'000ULL, 4'000'000ULL}) {
    FakeRig rig;
    TuneOptions options = quick();
    options.budget.scratch_bytes = scratch;
    EXPECT_EQ(run(rig, 3, options).winner, 0);
    EXPECT_LE(rig.device.peak_bytes, scratch);
  }
}

TEST(Memory, CheckingOnAFewImagesAndTimingTheWholeShareOneBudget) {
  ConvProblem problem = FakeRig::small_problem();
  problem.n = 3000;  // about 3.1 MB, and 2.3 MB for the few: either fits, both do not
  FakeRig rig(problem);
  TuneOptions options = quick();
  options.budget.scratch_bytes = 4'000'000;
  const TuneResult result = run(rig, 1, options);
  EXPECT_EQ(result.winner, 0) << result.decision.reason;
  EXPECT_TRUE(result.decision.reason.empty()) << result.decision.reason;
  EXPECT_GT(rig.device.allocations, 3U) << "two workspaces";
  EXPECT_LE(rig.device.peak_bytes, 4'000'000U);
}

TEST(Memory, ASmallDeviceMeansFewerSetsAndNoError) {
  FakeRig rig;
  rig.device.memory_limit = 600'000;
  rig.device.behaviours[2].us = [](int) { return 5.0; };
  const TuneResult result = run(rig, 3, quick());
  EXPECT_EQ(result.winner, 2);
  EXPECT_GE(rig.device.failed_allocations, 1U);
  EXPECT_TRUE(result.decision.reason.empty()) << result.decision.reason;
}

TEST(Memory, AProblemTooLargeForTheScratchIsTunedWithASmallerBatch) {
  FakeRig rig;
  rig.problem.n = 4096;
  rig.device.behaviours[1].us = [](int) { return 5.0; };
  TuneOptions options = quick();
  options.budget.scratch_bytes = 1'000'000;
  const TuneResult result = run(rig, 2, options);
  EXPECT_EQ(result.winner, 1);
  EXPECT_EQ(result.decision.origin, Origin::tuned);
  EXPECT_EQ(result.decision.problem, rig.problem.to_string()) << "the record is of the whole problem";
  EXPECT_EQ(result.decision.reason,
            "tuned with n = 512: a larger batch does not fit the scratch memory, or "
            "would only take longer to measure");
  EXPECT_LE(rig.device.peak_bytes, 1'000'000U);
}

TEST(Memory, NoRoomForOneImageTakesTheFirstUntimed) {
  FakeRig rig;
  rig.device.behaviours[0].compile_error = "no";
  rig.device.memory_limit = 1000;
  const TuneResult result = run(rig, 3, quick());
  EXPECT_EQ(result.winner, 1);
  ASSERT_NE(result.binary, nullptr);
  EXPECT_EQ(result.decision.origin, Origin::heuristic);
  EXPECT_EQ(result.decision.candidates[1].outcome, "untimed");
  EXPECT_TRUE(result.decision.reason.starts_with("not timed: ")) << result.decision.reason;
  EXPECT_EQ(rig.device.launches, 0);
}

TEST(Memory, NoRoomForRecordingsTakesTheFirstThatIsRight) {
  FakeRig rig;
  rig.device.behaviours[0].launch = [](const SlParams&) -> Status { return {}; };
  for (int v = 0; v < 3; ++v) rig.device.behaviours[v].record_error = "out of memory";
  const TuneResult result = run(rig, 3, quick());
  EXPECT_EQ(result.winner, 1);
  EXPECT_EQ(result.decision.origin, Origin::heuristic);
  EXPECT_EQ(result.decision.reason, "not timed: launch: out of memory");
}

}  // namespace
}  // namespace sl
