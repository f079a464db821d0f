// tune() with real schedules, compiled by the system's compiler and run on the host device.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/environment.hpp"
#include "jit/backends.hpp"
#include "schedules/schedule.hpp"
#include "store/file_store.hpp"
#include "support/temp_dir.hpp"
#include "tuning/tuner.hpp"

namespace sl {
namespace {

struct HostRig {
  test::TempDir directory;
  Environment environment = *read_environment();
  Log log;
  std::shared_ptr<Device> device = open_host_device({.threads = 2, .seed = 5});
  std::shared_ptr<FileStore> store =
      std::make_shared<FileStore>(StoreOptions{.directory = directory / "binaries", .kind = 1}, log);
  std::unique_ptr<BinaryCache> cache = fresh_cache();

  std::unique_ptr<BinaryCache> fresh_cache() const {
    return std::make_unique<BinaryCache>(std::shared_ptr<Compiler>(make_host_compiler(environment, log)), store, log);
  }
};

TuneOptions small_budget() {
  TuneOptions options;
  options.seed = 3;
  options.budget.time_ms = 20'000;
  options.budget.threads = 2;
  options.timing.rounds = 3;
  options.timing.target_us = 200;
  return options;
}

/// At most `most` candidates, of as many schedules as there are.
CandidateSet some_candidates(const ConvProblem& problem, const DeviceInfo& info, std::size_t most) {
  CandidateSet all = candidates(problem, info, {}, {});
  CandidateSet some;
  some.refusals = all.refusals;
  for (const Candidate& candidate : all.candidates) {
    const bool known = std::any_of(some.candidates.begin(), some.candidates.end(),
                                   [&](const Candidate& other) { return other.schedule == candidate.schedule; });
    if (!known && some.candidates.size() < most) some.candidates.push_back(candidate);
  }
  return some;
}

TEST(EndToEnd, ADepthwiseAndAGroupedProblemAreTunedOnTheHostDevice) {
  HostRig rig;
  for (const char* text : {"mb2g8ic8ih11iw9oc8kh3sh1ph1kw3sw1pw1 dt=f16 tag=nhwc",
                           "mb1g2ic8ih7iw10oc4kh3sh1ph1kw3sw1pw1 dt=f32 tag=nchw bias=same act=relu"}) {
    const Result<ConvProblem> problem = parse(text);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    const CandidateSet set = some_candidates(*problem, rig.device->info(), 3);
    ASSERT_FALSE(set.candidates.empty()) << text;
    const TuneResult result = tune(*rig.device, *rig.cache, *problem, set, small_budget(), rig.log);
    ASSERT_GE(result.winner, 0) << result.decision.reason;
    EXPECT_EQ(result.decision.origin, Origin::tuned);
    EXPECT_EQ(result.decision.schedule, set.candidates[static_cast<std::size_t>(result.winner)].schedule->name);
    for (const CandidateRecord& record : result.decision.candidates) {
      EXPECT_TRUE(record.outcome == "timed" || record.outcome == "slow")
          << text << ": " << record.schedule << " " << record.config << " " << record.outcome;
      EXPECT_GT(record.median_us, 0);
      EXPECT_LT(record.error_over_bound, 1);
    }
    EXPECT_GT(result.decision.baseline_us, 0);
    EXPECT_FALSE(result.decision.compiler.empty());

    const auto before = rig.cache->counters().compiles.load();
    const TuneResult again = tune(*rig.device, *rig.cache, *problem, set, small_budget(), rig.log);
    EXPECT_GE(again.winner, 0);
    EXPECT_EQ(rig.cache->counters().compiles.load(), before) << "tuning again compiles nothing";
    const std::unique_ptr<BinaryCache> second_process = rig.fresh_cache();
    EXPECT_GE(tune(*rig.device, *second_process, *problem, set, small_budget(), rig.log).winner, 0);
    EXPECT_EQ(second_process->counters().compiles.load(), 0U) << "nor does another process";
  }
}

}  // namespace
}  // namespace sl
