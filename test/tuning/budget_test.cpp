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
  options.budget.threads = 8;
  options.overlap = false;  // steps of a clock that is set by hand, one after another
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
  for (std::size_t i = 1; i < 12; ++i) {
    EXPECT_EQ(result.decision.candidates[i].outcome, i < 8 ? skipped_compiled : skipped_budget) << i;
  }
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

/// A machine whose clock moves with its work alone.
struct Slowness {
  const char* name;
  double chunk_ms, launch_ms, ms_per_mb, call_us;
  std::int64_t n;
  std::size_t chunks;  ///< compiled of three
};

constexpr double budget_ms = 800;

/// Tunes 24 candidates of which the 17th is the fastest; yields the result and, in rig.device.clock_ms, the time it
/// took.
TuneResult run_on(FakeRig& rig, const Slowness& slow) {
  rig.device.launch_ms = slow.launch_ms;
  rig.device.ms_per_mb = slow.ms_per_mb;
  for (int v = 0; v < 24; ++v) {
    rig.device.behaviours[v].us = [us = slow.call_us * (v == 16 ? 0.5 : 1)](int) { return us; };
  }
  rig.compiler->on_compile = [&] { rig.device.clock_ms += slow.chunk_ms; };
  TuneOptions options = quick();
  options.timing.rounds = 9;
  options.timing.now = rig.device.clock();
  options.budget.time_ms = budget_ms;
  if (slow.ms_per_mb > 0) options.host_bytes_per_ms = 1e6 / slow.ms_per_mb;
  return run(rig, 24, options);
}

// None of the parts of a tuning may break the budget that all of them share, whichever is slow.
TEST(TimeBudget, HoldsWhicheverPartIsSlow) {
  const Slowness machines[] = {
      {"nothing", 0, 0, 0, 10, 2, 3},
      {"compiling, and two chunks fit", 200, 0, 0, 10, 2, 2},
      {"compiling, and a second chunk would end too late", 290, 0, 0, 10, 2, 1},
      {"checking", 10, 30, 0, 10, 2, 3},
      {"timing", 10, 0, 0, 5000, 2, 3},
      {"transfers", 10, 0, 100, 10, 4000, 3},
      {"everything", 240, 10, 60, 1000, 4000, 1},
  };
  for (const Slowness& slow : machines) {
    SCOPED_TRACE(slow.name);
    ConvProblem problem = FakeRig::small_problem();
    problem.n = slow.n;
    FakeRig rig(problem);
    const TuneResult result = run_on(rig, slow);
    EXPECT_GE(result.winner, 0) << result.decision.reason;
    EXPECT_EQ(result.decision.origin, Origin::tuned);
    EXPECT_EQ(rig.compiler->batches.size(), slow.chunks);
    EXPECT_LE(rig.device.clock_ms, budget_ms);
  }
}

TEST(TimeBudget, IsEnoughForTheFastestWhereNothingIsSlow) {
  FakeRig rig;
  EXPECT_EQ(run_on(rig, {"nothing", 20, 1, 1, 10, 2, 3}).winner, 16);
  EXPECT_LE(rig.device.clock_ms, budget_ms);
}

TEST(TimeBudget, ALateStartMeansASmallerBatch) {
  ConvProblem problem = FakeRig::small_problem();
  problem.n = 4000;
  FakeRig rig(problem);
  const TuneResult result = run_on(rig, {"", 300, 1, 100, 10, 4000, 1});
  EXPECT_GE(result.winner, 0) << result.decision.reason;
  EXPECT_TRUE(result.decision.reason.starts_with("tuned with n = ")) << result.decision.reason;
  EXPECT_LE(rig.device.clock_ms, budget_ms);
}

// What has to be done is done: a first chunk of compiles that takes twice the budget, then one candidate's checks.
TEST(TimeBudget, AFirstChunkBeyondItIsFollowedByTheLeastThatGivesAWinner) {
  FakeRig rig;
  const TuneResult result = run_on(rig, {"", 1600, 2, 1, 10, 2, 1});
  EXPECT_EQ(result.winner, 0) << result.decision.reason;
  EXPECT_EQ(result.decision.candidates[0].outcome, "timed");
  EXPECT_EQ(result.decision.candidates[1].outcome, skipped_compiled);
  EXPECT_LE(rig.device.clock_ms, 1600 + 20);
}

// Compiles that take the whole budget must not decide between schedules: the first guess of each is measured all the
// same.
TEST(TimeBudget, TheFirstOfEveryScheduleIsTimedHoweverLate) {
  static const Schedule other = [] {
    Schedule made = test::fake_schedule();
    made.name = "other";
    return made;
  }();
  CandidateSet set = fake_candidates(6);
  set.candidates[1].schedule = &other;
  set.candidates[3].schedule = &other;
  FakeRig rig;
  rig.device.behaviours[1].us = [](int) { return 5.0; };
  rig.device.behaviours[3].us = [](int) { return 2.0; };
  rig.compiler->on_compile = [&] { rig.device.clock_ms += 1600; };
  TuneOptions options = quick();
  options.timing.now = rig.device.clock();
  options.budget.time_ms = budget_ms;
  const TuneResult result = tune(rig.device, *rig.cache, rig.problem, set, options, rig.log);
  EXPECT_EQ(result.winner, 1) << result.decision.reason;
  EXPECT_EQ(result.decision.candidates[0].outcome, "timed");
  EXPECT_EQ(result.decision.candidates[1].outcome, "timed");
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(result.decision.candidates[i].outcome, skipped_compiled) << i;
  EXPECT_LE(rig.device.clock_ms, 1600 + 40);
}

// A batch that comes later must find its first choice compiled, however little time the first tuning had.
TEST(TimeBudget, OtherBatchesFirstChoicesAreCompiledWithTheFirstChunk) {
  for (const int threads : {2, 8}) {
    FakeRig rig;
    CandidateSet set = fake_candidates(24);
    set.for_other_batches = 3;
    TuneOptions options = quick();
    options.budget.time_ms = 1e-3;
    options.budget.threads = threads;
    const TuneResult result = tune(rig.device, *rig.cache, rig.problem, set, options, rig.log);
    EXPECT_EQ(result.winner, 0) << result.decision.reason;
    EXPECT_EQ(rig.compiler->batches, std::vector<std::size_t>{threads == 2 ? 4U : 8U});
    for (std::size_t i = 1; i < 24; ++i) {
      const bool compiled = i >= 21 || (threads == 8 && i < 5);
      EXPECT_EQ(result.decision.candidates[i].outcome, compiled ? skipped_compiled : skipped_budget) << i;
    }
  }
}

// A good half of a chunk is compiled alone where the budget is short: filled up it would only end later.
TEST(TimeBudget, ManyFirstChoicesAreNotFilledUp) {
  for (const double budget : {1e-3, 60'000.0}) {
    FakeRig rig;
    CandidateSet set = fake_candidates(16);
    set.for_other_batches = 5;
    TuneOptions options = quick();
    options.budget.time_ms = budget;
    const TuneResult result = tune(rig.device, *rig.cache, rig.problem, set, options, rig.log);
    EXPECT_GE(result.winner, 0) << result.decision.reason;
    const std::vector<std::size_t> all{6, 8, 2};
    EXPECT_EQ(rig.compiler->batches, budget < 1 ? std::vector<std::size_t>{6} : all);
  }
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
