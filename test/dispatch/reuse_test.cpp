// What is decided or compiled once is used again: batch buckets, a second dispatcher, endless shapes; and failures are
// not.
#include <gtest/gtest.h>

#include "dispatch/counted.hpp"
#include "dispatch/fakes.hpp"
#include "dispatch/shapes.hpp"
#include "support/temp_dir.hpp"
#include "tuning/timing.hpp"

namespace sl::test {
namespace {

Code call(Rig& rig, const ConvProblem& problem, Regular regular = Regular::yes, std::string* message = nullptr) {
  Error error;
  const Code code = rig->conv2d(problem, any_tensors(), nullptr, regular, error);
  if (message != nullptr) *message = error.message;
  return code;
}

TEST(Reuse, BatchesOfABucketShareTheDecisionAndAllBatchesTheBinary) {
  Rig rig;
  rig.tuner.compiles = true;
  rig.make();
  ASSERT_EQ(call(rig, depthwise(5)), Code::ok);
  ASSERT_EQ(call(rig, depthwise(8)), Code::ok);
  EXPECT_EQ(rig.device->last_n, 8);
  EXPECT_EQ(rig.tuner.calls, 1);
  const int compiled = rig.compiler->compiled;
  ASSERT_EQ(call(rig, depthwise(9)), Code::ok);
  ASSERT_EQ(call(rig, depthwise(1000)), Code::ok);
  EXPECT_EQ(rig.device->last_n, 1000) << "the launch is the call's own, not its bucket's";
  EXPECT_EQ(rig.tuner.calls, 3);
  EXPECT_EQ(rig.compiler->compiled, compiled);
}

// Configurations are pruned by a model that looks at n: these shapes get other candidates for other batches.
TEST(Reuse, AnotherBatchCompilesNothingNewWhateverThePolicy) {
  for (const Policy policy : {Policy::first_use, Policy::immediate, Policy::background}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      for (const std::int64_t groups : {32, 8}) {
        SCOPED_TRACE(std::string(name(policy)) + " " + std::string(name(layout)) + " " + std::to_string(groups));
        Rig rig;
        rig.options.policy = policy;
        rig.tuner.compiles = true;
        rig.make();
        ConvProblem problem = depthwise();
        problem.layout = layout;
        problem.groups = groups;
        ASSERT_EQ(call(rig, problem), Code::ok);
        rig->wait_idle();
        const int compiled = rig.compiler->compiled;
        for (const std::int64_t n : {2, 16, 33, 256, 5000}) {
          problem.n = n;
          ASSERT_EQ(call(rig, problem), Code::ok);
          rig->wait_idle();
          EXPECT_EQ(rig.compiler->compiled, compiled) << n;
        }
      }
    }
  }
}

TEST(Reuse, AnotherBatchInAnotherProcessCompilesNothingNew) {
  const TempDir stores;
  ConvProblem problem = depthwise();
  problem.layout = Layout::nchw;
  {
    Rig first(stores.path());
    first.tuner.compiles = true;
    first.make();
    ASSERT_EQ(call(first, problem), Code::ok);
  }
  Rig second(stores.path());
  second.tuner.compiles = true;
  second.make();
  problem.n = 64;
  ASSERT_EQ(call(second, problem), Code::ok);
  EXPECT_EQ(second.compiler->compiled, 0);
  EXPECT_EQ(second.tuner.calls, 1);
}

TEST(Reuse, ASecondDispatcherCompilesAndTunesNothing) {
  const TempDir stores;
  {
    Rig first(stores.path());
    first.make();
    ASSERT_EQ(call(first, depthwise()), Code::ok);
    EXPECT_EQ(first->counters().tunings, 1u);
  }
  Rig second(stores.path());
  second.make();
  ASSERT_EQ(call(second, depthwise()), Code::ok);
  EXPECT_EQ(second->counters().tunings, 0u);
  EXPECT_EQ(second->counters().decision_hits, 1u);
  EXPECT_EQ(second.compiler->compiled, 0);
  EXPECT_EQ(second.binaries->counters().binary_hits, 1u);
  const auto record = second->explain(depthwise(), Regular::yes, true);
  EXPECT_EQ(record->origin, Origin::store);
  EXPECT_EQ(record->match, Match::exact);
}

/// One candidate timed, the rest beyond the budget.
TuneResult hurried(const CandidateSet& set) {
  TuneResult result = ScriptedTuner::take(set, 0);
  for (std::size_t i = 1; i < set.candidates.size(); ++i) result.decision.candidates[i].outcome = "skipped: budget";
  return result;
}

TEST(Reuse, APartialDecisionIsMadeAgainOnlyWithALargerBudget) {
  const TempDir stores;
  Rig rig(stores.path());
  rig.options.tune.budget.time_ms = 100;
  rig.tuner.answer = hurried;
  for (int i = 0; i < 2; ++i) {
    rig.make();
    ASSERT_EQ(call(rig, depthwise()), Code::ok);
    EXPECT_EQ(rig.tuner.calls, 1) << "the same budget would find no more";
    EXPECT_TRUE(rig->explain(depthwise(), Regular::yes, true)->partial);
  }
  rig.tuner.answer = nullptr;
  rig.options.tune.budget.time_ms = 200;
  for (int i = 0; i < 2; ++i) {
    rig.make();
    ASSERT_EQ(call(rig, depthwise()), Code::ok);
    EXPECT_EQ(rig.tuner.calls, 2);
    EXPECT_FALSE(rig->explain(depthwise(), Regular::yes, true)->partial);
    rig.options.tune.budget.time_ms = 400;  // what is complete is not made again
  }
}

TEST(Reuse, APartialDecisionDoesNotNarrowOtherBatches) {
  const TempDir stores;
  std::size_t given = 0;
  for (const bool same_process : {true, false}) {
    Rig rig(stores.path() / (same_process ? "a" : "b"));
    rig.tuner.answer = hurried;
    rig.make();
    ASSERT_EQ(call(rig, depthwise(1)), Code::ok);
    if (!same_process) rig.make();
    rig.tuner.answer = [&](const CandidateSet& set) {
      given = set.candidates.size();
      return hurried(set);
    };
    ASSERT_EQ(call(rig, depthwise(64)), Code::ok);
    EXPECT_GE(given, candidates(depthwise(64), rig.device->info(), {}, {}).candidates.size());
  }
}

/// 4 channels a group: strips of rows that depend on how many images there are.
ConvProblem grouped(std::int64_t n) {
  ConvProblem problem = depthwise(n);
  problem.layout = Layout::nhwc;
  problem.groups = 8;
  return problem;
}

TEST(Reuse, AnotherBatchChoosesAmongKernelsMadeForIt) {
  bool differs = false;
  for (const std::int64_t first : {1, 256}) {
    Rig rig;
    const DeviceInfo& device = rig.device->info();
    rig.tuner.compiles = true;
    CandidateSet given;
    rig.tuner.answer = [&given](const CandidateSet& set) {
      given = set;
      return ScriptedTuner::take(set, 0);
    };
    rig.make();
    ASSERT_EQ(call(rig, grouped(first)), Code::ok);
    const int compiled = rig.compiler->compiled;
    for (const std::int64_t n : {1, 2, 8, 32, 128, 256}) {
      if (n == first) continue;
      ASSERT_EQ(call(rig, grouped(n)), Code::ok);
      EXPECT_TRUE(Shapes::has_first_guesses(grouped(n), given, candidates(grouped(n), device, {}, {})))
          << n << " after " << first;
      differs |= !Shapes::has_first_guesses(grouped(n), candidates(grouped(first), device, {}, {}),
                                            candidates(grouped(n), device, {}, {}));
    }
    EXPECT_EQ(rig.compiler->compiled, compiled);
  }
  EXPECT_TRUE(differs) << "no batch had a first guess of its own: the test shows nothing";
}

TEST(Reuse, WhatTheBudgetLeftOutIsCompiledForTheBatchThatWantsIt) {
  Rig rig;
  std::vector<std::size_t> given;
  rig.tuner.answer = [&given](const CandidateSet& set) {
    given.push_back(set.candidates.size());
    TuneResult result = ScriptedTuner::take(set, 0);
    for (std::size_t i = 5; i < set.candidates.size(); ++i) result.decision.candidates[i].outcome = "skipped: budget";
    return result;
  };
  rig.make();
  ASSERT_EQ(call(rig, grouped(1)), Code::ok);
  ASSERT_EQ(call(rig, grouped(64)), Code::ok);
  ASSERT_EQ(given.size(), 2u);
  EXPECT_GE(given[1], candidates(grouped(64), rig.device->info(), {}, {}).candidates.size())
      << "one image's kernels are no choice for 64";
}

TEST(Reuse, WhatThereWasOnlyTimeToCompileIsThereForAnotherBatch) {
  const TempDir stores;
  for (const bool same_process : {true, false}) {
    Rig rig(stores.path() / (same_process ? "a" : "b"));
    rig.tuner.compiles = true;
    rig.tuner.answer = [](const CandidateSet& set) {
      TuneResult result = ScriptedTuner::take(set, 0);
      for (std::size_t i = 5; i < set.candidates.size(); ++i) {
        result.decision.candidates[i].outcome = std::string(skipped_compiled);
      }
      return result;
    };
    rig.make();
    ASSERT_EQ(call(rig, grouped(1)), Code::ok);
    if (!same_process) rig.make();
    const int compiled = rig.compiler->compiled;
    ASSERT_EQ(call(rig, grouped(64)), Code::ok);
    EXPECT_EQ(rig.compiler->compiled, compiled);
    EXPECT_EQ(rig.tuner.calls, 2);
  }
}

// What many batch sizes cost a caller whose batches vary: the first of a bucket asks every schedule for its
// configurations, the others only what serves that one.
TEST(Reuse, AnotherBatchOfABucketAsksNoScheduleAgain) {
  if (!counts()) GTEST_SKIP() << "a sanitizer owns the allocator";
  Rig rig;
  rig.make();
  ASSERT_EQ(call(rig, depthwise(200)), Code::ok);
  const auto allocations_of = [](const auto& work) {
    const std::uint64_t before = counted().allocations;
    work();
    return counted().allocations - before;
  };
  const auto asked = allocations_of([&] { ASSERT_TRUE(rig->explain(depthwise(201), Regular::yes, true).ok()); });
  const auto known = allocations_of([&] { ASSERT_EQ(call(rig, depthwise(202)), Code::ok); });
  EXPECT_EQ(rig.device->last_n, 202);
  EXPECT_EQ(rig.tuner.calls, 1);
  EXPECT_LT(known * 10, asked);
}

TEST(Reuse, RulesAboutTheBatchHoldWithinABucket) {
  Rig rig;
  rig.routing = std::make_shared<RoutingTable>(RoutingTable::from_json(R"({"schema": 1, "device": "any", "rules": [
        {"name": "few", "route": "take", "when": {"n": {"max": 11}}, "schedules": ["dw_flat"]},
        {"name": "more", "route": "take", "when": {"n": {"max": 14}}, "schedules": ["dw_row8"]}]})",
                                                                       "test.json")
                                                   .value());
  rig.make();
  const auto served_by = [&](std::int64_t n) {
    EXPECT_EQ(call(rig, depthwise(n)), Code::ok);
    EXPECT_EQ(rig.device->last_n, n);
    const Kernel* const kernel = rig.device->last_kernel;
    return static_cast<const FakeKernel*>(kernel)->entry;
  };
  const std::string flat = served_by(9), row = served_by(12);
  EXPECT_NE(flat, row);
  // All of one bucket, each batch for the first time, after what another rule decided.
  EXPECT_EQ(served_by(10), flat);
  EXPECT_EQ(served_by(13), row);
  EXPECT_EQ(call(rig, depthwise(16)), Code::kept);
  EXPECT_EQ(served_by(11), flat);
  EXPECT_EQ(served_by(14), row);
  EXPECT_EQ(rig.tuner.calls, 2);
}

TEST(Reuse, EndlessBatchesGrowNothing) {
  Rig rig;
  rig.tuner.compiles = true;
  rig.options.plan_capacity = 256;
  rig.make();
  ASSERT_EQ(call(rig, depthwise(1)), Code::ok);
  const std::size_t bytes = rig->plans().bytes();
  const int compiled = rig.compiler->compiled;
  for (std::int64_t n = 1; n <= 10000; ++n) {
    if (call(rig, depthwise(n)) != Code::ok) FAIL() << n;
  }
  EXPECT_EQ(rig->plans().bytes(), bytes);
  EXPECT_EQ(rig.compiler->compiled, compiled);
  EXPECT_LE(rig.device->loads, compiled);
  EXPECT_EQ(rig.tuner.calls, 9) << "buckets 1, 2, 4, ... 256";
}

TEST(Reuse, ManyKernelsLeaveOnlySizeGenericCandidates) {
  Rig rig;
  rig.options.max_kernels = 1;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  for (int h = 20; h < 26; ++h) {
    ConvProblem problem = depthwise();
    problem.h = problem.p = h;
    ASSERT_EQ(call(rig, problem), Code::ok);
    const auto record = rig->explain(problem, Regular::yes, true);
    EXPECT_TRUE(find_schedule(record->schedule)->size_generic) << record->schedule;
  }
}

TEST(Failure, ACompileErrorIsKeptThreeTimesAndThenForGood) {
  Rig rig;
  rig.options.policy = Policy::immediate;
  rig.compiler->error = "scripted compile error";
  rig.make();
  std::string message;
  for (int i = 1; i <= max_failures; ++i) {
    EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
    EXPECT_NE(message.find("scripted compile error"), std::string::npos) << message;
    EXPECT_EQ(rig.compiler->remaining_errors, (1 << 30) - i) << "a failure is retried";
  }
  EXPECT_EQ(rig->counters().fallbacks, static_cast<std::uint64_t>(max_failures));
  EXPECT_EQ(call(rig, depthwise()), Code::kept);
  EXPECT_EQ(rig.compiler->remaining_errors, (1 << 30) - max_failures) << "and no more after that";
  EXPECT_EQ(rig->counters().plan_hits, 1u);
  const auto record = rig->explain(depthwise(), Regular::yes, true);
  EXPECT_NE(record->reason.find("scripted compile error"), std::string::npos) << record->reason;
  int warned = 0;
  for (const std::string& warning : rig.warnings()) {
    warned += warning.starts_with("kept ") ? 1 : 0;
  }
  EXPECT_EQ(warned, 1);
}

TEST(Failure, ATransientOneDoesNotPoisonTheKey) {
  Rig rig;
  rig.options.policy = Policy::immediate;
  rig.compiler->error = "scripted compile error";
  rig.compiler->remaining_errors = 1;
  rig.make();
  EXPECT_EQ(call(rig, depthwise()), Code::kept);
  EXPECT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig.device->launched, 2u);
}

TEST(Failure, ARequiredCallSaysWhatFailedForWhichCall) {
  Rig rig;
  rig.options.policy = Policy::immediate;
  rig.compiler->error = "scripted compile error";
  rig.make();
  std::string message;
  for (int i = 0; i < max_failures + 2; ++i) {
    EXPECT_EQ(call(rig, depthwise(), Regular::no, &message), Code::compile);
  }
  EXPECT_NE(message.find(depthwise().to_string()), std::string::npos) << message;
  EXPECT_NE(message.find("fake H200"), std::string::npos) << message;
  EXPECT_NE(message.find("scripted compile error"), std::string::npos) << message;
  EXPECT_EQ(rig.compiler->remaining_errors, (1 << 30) - max_failures - 2) << "an error is never remembered";
}

TEST(Failure, AKernelThatDoesNotLoadIsKept) {
  Rig rig;
  rig.make();
  rig.device->load_error = "scripted load error";
  std::string message;
  EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
  EXPECT_NE(message.find("scripted load error"), std::string::npos) << message;
  rig.device->load_error.clear();
  EXPECT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig.tuner.calls, 1) << "the decision stood; only loading failed";
}

TEST(Failure, TuningThatCouldNotMeasureServesTheFirstCandidateAndSavesNothing) {
  const TempDir stores;
  Rig rig(stores.path());
  rig.tuner.answer = [](const CandidateSet& set) { return ScriptedTuner::fail(set, "skipped: budget"); };
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig->explain(depthwise(), Regular::yes, true)->origin, Origin::heuristic);
  rig.tuner.answer = nullptr;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig->explain(depthwise(), Regular::yes, true)->origin, Origin::tuned);
}

TEST(Failure, WhereOneIsWrongAndNoneRightNothingIsServed) {
  Rig rig;
  rig.tuner.answer = [](const CandidateSet& set) {
    TuneResult result = ScriptedTuner::fail(set, "skipped: budget");
    result.decision.candidates.front().outcome = "wrong: scripted";
    return result;
  };
  rig.make();
  std::string message;
  EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
  EXPECT_NE(message.find("scripted"), std::string::npos) << message;
  EXPECT_EQ(call(rig, depthwise(), Regular::no), Code::unsupported);
  EXPECT_EQ(rig.device->launched, 0u);
}

TEST(Failure, ARequiredCallGetsTheCodeThatEveryCandidateFailedWith) {
  for (const Code code : {Code::compile, Code::environment, Code::device}) {
    Rig rig;
    rig.tuner.answer = [code](const CandidateSet& set) {
      TuneResult result = ScriptedTuner::fail(set, code == Code::device ? "load: scripted" : "compile: scripted");
      result.failure = code;
      return result;
    };
    rig.make();
    EXPECT_EQ(call(rig, depthwise(), Regular::no), code);
  }
}

}  // namespace
}  // namespace sl::test
