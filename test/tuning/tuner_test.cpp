// Which candidates tune() drops, why, and which of the others wins.
#include "tuning/tuner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "reference/reference.hpp"
#include "tuning/fake_device.hpp"

namespace sl {
namespace {

using test::Behaviour;
using test::fake_candidates;
using test::FakeRig;
using test::jitter;

TuneOptions quick() {
  TuneOptions options;
  options.seed = 1;
  options.timing.rounds = 5;
  options.budget.time_ms = 60'000;  // far away: only the tests of the budget meet it
  options.budget.threads = 8;
  return options;
}

class Tuner : public ::testing::Test {
 protected:
  TuneResult run(int candidates, const TuneOptions& options = quick()) {
    TuneResult result = tune(rig.device, *rig.cache, rig.problem, fake_candidates(candidates), options, rig.log);
    // Whatever happened: nothing is left behind, and nothing but its own memory was touched.
    EXPECT_EQ(rig.device.live_buffers, 0);
    EXPECT_EQ(rig.device.live_streams, 0);
    EXPECT_EQ(rig.device.live_recordings, 0);
    EXPECT_EQ(rig.device.live_kernels, 0);
    EXPECT_TRUE(rig.device.violations.empty()) << rig.device.violations.front();
    return result;
  }
  void takes(int variant, double us) {
    rig.device.behaviours[variant].us = [us](int) { return us; };
  }
  /// The right answer first, then `damage` to it.
  void computes(int variant, std::function<void(const SlParams&)> damage) {
    rig.device.behaviours[variant].launch = [this, damage](const SlParams& params) -> Status {
      rig.device.compute(params);
      damage(params);
      return {};
    };
  }
  static std::string outcome(const TuneResult& result, std::size_t i) { return result.decision.candidates[i].outcome; }

  FakeRig rig;
};

bool starts(const std::string& text, std::string_view prefix) { return text.starts_with(prefix); }

TEST_F(Tuner, TheFastestWinsAndTheRecordSaysEverything) {
  takes(0, 20), takes(1, 8), takes(2, 12);
  const TuneResult result = run(3);
  EXPECT_EQ(result.winner, 1);
  ASSERT_NE(result.binary, nullptr);
  EXPECT_EQ(result.binary->code, "1");
  const Decision& d = result.decision;
  EXPECT_EQ(d.problem, rig.problem.to_string());
  EXPECT_EQ(d.device, "Fake device");
  EXPECT_EQ(d.route, "take");
  EXPECT_EQ(d.schedule, "fake");
  EXPECT_EQ(d.config, "v=1");
  EXPECT_EQ(d.origin, Origin::tuned);
  EXPECT_EQ(d.match, Match::exact);
  EXPECT_EQ(d.driver, "fake driver 1");
  EXPECT_EQ(d.compiler, "fake 1");
  EXPECT_EQ(d.candidate_set, fake_candidates(3).digest());
  EXPECT_EQ(d.schedule_digest, test::fake_schedule().digest());
  EXPECT_DOUBLE_EQ(d.noise_floor, 0.01);
  EXPECT_DOUBLE_EQ(d.baseline_us, rig.device.copy_us);
  EXPECT_TRUE(d.reason.empty()) << d.reason;
  ASSERT_EQ(d.refusals.size(), 1U);
  EXPECT_EQ(d.refusals[0].schedule, "other");
  ASSERT_EQ(d.candidates.size(), 3U);
  const double want[] = {20, 8, 12};
  for (std::size_t i = 0; i < 3; ++i) {
    const CandidateRecord& record = d.candidates[i];
    EXPECT_EQ(record.schedule, "fake");
    EXPECT_EQ(record.config, "v=" + std::to_string(i));
    EXPECT_EQ(record.outcome, "timed");
    EXPECT_DOUBLE_EQ(record.median_us, want[i]);
    EXPECT_DOUBLE_EQ(record.low_us, want[i]);
    EXPECT_DOUBLE_EQ(record.high_us, want[i]);
    EXPECT_EQ(record.registers, 32 + static_cast<int>(i));
    EXPECT_EQ(record.smem, 16 + 64);
    EXPECT_GE(record.error_over_bound, 0);
    EXPECT_LT(record.error_over_bound, 1);
  }
}

TEST_F(Tuner, AnEarlierCandidateWithinTheNoiseFloorIsKept) {
  takes(0, 10.05), takes(1, 10.0);
  EXPECT_EQ(run(2).winner, 0) << "0.5 % is nothing";
  takes(0, 10.2);
  EXPECT_EQ(run(2).winner, 1) << "2 % is something where nothing is noisy";
  TuneOptions sticky = quick();
  sticky.hysteresis = 0.05;
  EXPECT_EQ(run(2, sticky).winner, 0);
  rig.device.behaviours[0].us = [](int replay) { return 10.2 * (1 + 0.05 * (replay % 3 - 1)); };
  EXPECT_EQ(run(2).winner, 0) << "a noisy incumbent";
  takes(0, 20), takes(2, 9.95);
  EXPECT_EQ(run(3).winner, 1) << "the earliest within the floor of the best, not the first of all";
}

TEST_F(Tuner, TheWinnerIsStableUnderNoise) {
  // Three within 0.4 % of each other, measured with 1 % of noise, and one that is plainly slower; then one that is
  // plainly faster.
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    FakeRig fresh;
    const double us[] = {10.04, 10.02, 10.0, 14.0};
    for (int v = 0; v < 4; ++v) {
      fresh.device.behaviours[v].us = [=](int replay) {
        return us[v] * jitter(seed * 10 + static_cast<std::uint64_t>(v), replay, 0.01);
      };
    }
    TuneOptions options = quick();
    options.timing.rounds = 9;
    const auto pick = [&] {
      return tune(fresh.device, *fresh.cache, fresh.problem, fake_candidates(4), options, fresh.log);
    };
    EXPECT_EQ(pick().winner, 0) << "seed " << seed;
    fresh.device.behaviours[2].us = [=](int replay) { return 8.0 * jitter(seed, replay, 0.01); };
    EXPECT_EQ(pick().winner, 2) << "seed " << seed;
  }
}

TEST_F(Tuner, AWrongCandidateIsDroppedHoweverFast) {
  computes(1, [&](const SlParams& params) {
    for (std::int64_t i = 0; i < rig.problem.y_elements(); ++i) {
      store_element(DType::f16, static_cast<std::byte*>(params.y), i, 0.25);
    }
  });
  takes(0, 10), takes(1, 1);
  const TuneResult result = run(2);
  EXPECT_EQ(result.winner, 0);
  EXPECT_TRUE(starts(outcome(result, 1), "wrong: ")) << outcome(result, 1);
  EXPECT_NE(outcome(result, 1).find("y["), std::string::npos) << outcome(result, 1);
  EXPECT_EQ(result.decision.candidates[1].median_us, 0) << "never timed";
}

TEST_F(Tuner, AWrongFirstCandidateDoesNotBecomeTheMeasureOfTheOthers) {
  computes(0, [&](const SlParams& params) { store_element(DType::f16, static_cast<std::byte*>(params.y), 0, 100.0); });
  const TuneResult result = run(3);
  EXPECT_EQ(result.winner, 1);
  EXPECT_TRUE(starts(outcome(result, 0), "wrong: "));
  EXPECT_EQ(outcome(result, 2), "timed");
}

TEST_F(Tuner, WhatTheSampleMissesTheFirstVerifiedShows) {
  TuneOptions options = quick();
  options.verify_outputs = 4;  // four outputs of 504
  int missed = 0;
  for (const std::int64_t at : {100, 200, 301, 402}) {
    computes(
        1, [&, at](const SlParams& params) { store_element(DType::f16, static_cast<std::byte*>(params.y), at, 5.0); });
    const TuneResult result = run(2, options);
    EXPECT_TRUE(starts(outcome(result, 1), "wrong: ")) << outcome(result, 1);
    missed += outcome(result, 1).find("first verified") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(missed, 1) << "the sample alone caught them all: choose others";
}

/// A problem where the last bit of any output is within the bound.
ConvProblem single_precision() {
  ConvProblem problem = FakeRig::small_problem();
  problem.dtype = DType::f32;
  return problem;
}

void flip_last_bits(const FakeRig& rig, const SlParams& params) {
  auto* const bits = static_cast<std::uint32_t*>(params.y);
  for (std::int64_t i = 0; i < rig.problem.y_elements(); i += 3) bits[i] ^= 1;
}

TEST(TunerOnFloats, AnotherOrderOfSummationIsNotWrong) {
  FakeRig rig(single_precision());
  rig.device.behaviours[1].launch = [&](const SlParams& params) -> Status {
    rig.device.compute(params);
    flip_last_bits(rig, params);
    return {};
  };
  rig.device.behaviours[1].us = [](int) { return 5.0; };
  const TuneResult result = tune(rig.device, *rig.cache, rig.problem, fake_candidates(2), quick(), rig.log);
  EXPECT_EQ(result.decision.candidates[1].outcome, "timed");
  EXPECT_EQ(result.winner, 1);
}

TEST(TunerOnFloats, AWinnerThatDoesNotRepeatItselfIsDropped) {
  // Within the bound every time, but not the same bits: a race.
  FakeRig rig(single_precision());
  int runs = 0;
  rig.device.behaviours[1].launch = [&](const SlParams& params) -> Status {
    rig.device.compute(params);
    if (++runs % 2 == 0) flip_last_bits(rig, params);
    return {};
  };
  rig.device.behaviours[1].us = [](int) { return 5.0; };
  const TuneResult result = tune(rig.device, *rig.cache, rig.problem, fake_candidates(2), quick(), rig.log);
  EXPECT_EQ(result.winner, 0);
  EXPECT_EQ(result.decision.candidates[1].outcome, "wrong: two runs on the same data differ, first at y[0,0,0,0]");
  EXPECT_EQ(runs, 3);
}

TEST(TunerOnLargeBatches, AWinnerIsVerifiedOnTheWholeBatch) {
  // Right on the few images where candidates are checked first, wrong in the last image of the batch.
  ConvProblem problem = FakeRig::small_problem();
  problem.n = 3000;
  FakeRig rig(problem);
  std::int64_t smallest = problem.n;
  rig.device.behaviours[1].launch = [&](const SlParams& params) -> Status {
    rig.device.compute(params);
    smallest = std::min<std::int64_t>(smallest, params.n);
    if (params.n == problem.n) {
      store_element(DType::f16, static_cast<std::byte*>(params.y), problem.y_elements() - 1, 100.0);
    }
    return {};
  };
  rig.device.behaviours[1].us = [](int) { return 1.0; };
  const TuneResult result = tune(rig.device, *rig.cache, rig.problem, fake_candidates(2), quick(), rig.log);
  EXPECT_LT(smallest, problem.n) << "candidates are checked on a few images first";
  EXPECT_EQ(result.winner, 0);
  EXPECT_EQ(result.decision.candidates[1].outcome.substr(0, 7), "wrong: ") << result.decision.candidates[1].outcome;
}

TEST_F(Tuner, AnOutputThatWasNeverWrittenIsFoundAnywhere) {
  // The base fills all of y first, so a candidate that skips one output would look right without poison.
  for (const std::int64_t skipped : {std::int64_t{0}, std::int64_t{251}, rig.problem.y_elements() - 1}) {
    rig.device.behaviours[1].launch = [this, skipped](const SlParams& params) -> Status {
      std::vector<std::byte> before(rig.device.y_bytes(params));
      std::memcpy(before.data(), params.y, before.size());
      rig.device.compute(params);
      const auto at = static_cast<std::size_t>(skipped) * 2;
      std::memcpy(static_cast<std::byte*>(params.y) + at, before.data() + at, 2);
      return {};
    };
    TuneOptions options = quick();
    options.verify_outputs = 1;
    const TuneResult result = run(2, options);
    EXPECT_EQ(result.winner, 0);
    EXPECT_TRUE(starts(outcome(result, 1), "wrong: 1 outputs are NaN, 1 of them never written")) << outcome(result, 1);
  }
}

TEST_F(Tuner, APartialWriterIsDroppedEvenAsTheFirst) {
  rig.device.behaviours[0].launch = [this](const SlParams& params) -> Status {
    SlParams one = params;
    one.n = 1;  // the second image stays poisoned
    rig.device.compute(one);
    return {};
  };
  const TuneResult result = run(2);
  EXPECT_EQ(result.winner, 1);
  EXPECT_TRUE(
      starts(outcome(result, 0), "wrong: 252 outputs are NaN, 252 of them never written; the first is y[1,0,0,0]"))
      << outcome(result, 0);
}

TEST_F(Tuner, AWriteOutsideTheOutputIsDroppedThoughTheResultIsRight) {
  computes(1, [&](const SlParams& params) {
    static_cast<std::byte*>(params.y)[rig.device.y_bytes(params) + 30] = std::byte{0};
  });
  computes(2, [&](const SlParams& params) { static_cast<std::byte*>(params.y)[-2] = std::byte{0}; });
  takes(1, 1), takes(2, 1);
  const TuneResult result = run(3);
  EXPECT_EQ(result.winner, 0);
  EXPECT_EQ(outcome(result, 1), "wrong: wrote outside y: 1 bytes after its last byte, the nearest 31 away");
  EXPECT_EQ(outcome(result, 2), "wrong: wrote outside y: 1 bytes before its first byte, the nearest 2 away");
}

TEST_F(Tuner, FailuresOfEveryKindAreRecordedAndTheRestGoesOn) {
  rig.device.behaviours[0].compile_error = "nvrtc: no such thing";
  rig.device.behaviours[1].load_error = "no kernel image";
  rig.device.behaviours[2].launch = [](const SlParams&) -> Status { return Error{Code::device, "invalid value"}; };
  rig.device.behaviours[3].replay_error = "launch timed out";
  rig.device.behaviours[4].compile_error = std::string(100'000, 'x');
  const TuneResult result = run(6);
  EXPECT_EQ(result.winner, 5);
  EXPECT_EQ(outcome(result, 0), "compile: nvrtc: no such thing");
  EXPECT_EQ(outcome(result, 1), "load: no kernel image");
  EXPECT_EQ(outcome(result, 2), "launch: invalid value");
  EXPECT_EQ(outcome(result, 3), "launch: launch timed out");
  EXPECT_LT(outcome(result, 4).size(), 500U) << "a record is not a log";
}

TEST_F(Tuner, WhereEveryCandidateFailsTheReasonNamesThem) {
  rig.device.behaviours[0].compile_error = "syntax error";
  rig.device.behaviours[1].load_error = "no image";
  TuneResult result = run(2);
  EXPECT_EQ(result.winner, -1);
  EXPECT_EQ(result.binary, nullptr);
  EXPECT_TRUE(result.decision.schedule.empty());
  EXPECT_TRUE(result.decision.route.empty());
  EXPECT_EQ(result.decision.origin, Origin::none);
  for (const std::string& part : std::vector<std::string>{rig.problem.descriptor(), "no candidate could be loaded",
                                                          "v=0", "syntax error", "no image"}) {
    EXPECT_NE(result.decision.reason.find(part), std::string::npos) << part << " in " << result.decision.reason;
  }

  rig.device.behaviours.clear();
  computes(0, [&](const SlParams& params) { std::memset(params.y, 0, rig.device.y_bytes(params)); });
  computes(1, [&](const SlParams& params) { std::memset(params.y, 0, rig.device.y_bytes(params)); });
  result = run(2);
  EXPECT_EQ(result.winner, -1);
  EXPECT_NE(result.decision.reason.find("right result"), std::string::npos) << result.decision.reason;
}

TEST_F(Tuner, TheFailureIsTheOneThatAllCandidatesShare) {
  const auto failure = [&] {
    const TuneResult result = run(2);
    EXPECT_EQ(result.winner, -1);
    return result.failure;
  };
  const auto nothing = [](const SlParams&) -> Status { return {}; };  // y stays poisoned
  for (int v = 0; v < 2; ++v) rig.device.behaviours[v].compile_error = "syntax error";
  EXPECT_EQ(failure(), Code::compile);
  rig.device.behaviours.clear();
  for (int v = 0; v < 2; ++v) rig.device.behaviours[v].load_error = "no image";
  EXPECT_EQ(failure(), Code::device);
  rig.device.behaviours.clear();
  for (int v = 0; v < 2; ++v) rig.device.behaviours[v].launch = nothing;
  EXPECT_EQ(failure(), Code::wrong_result);
  rig.device.behaviours[0].compile_error = "syntax error";
  EXPECT_EQ(failure(), Code::wrong_result) << "different reasons";
}

TEST_F(Tuner, AFailureIsNotRemembered) {
  rig.device.behaviours[0].compile_error = "out of disk";
  EXPECT_EQ(run(1).winner, -1);
  rig.device.behaviours.clear();
  EXPECT_EQ(run(1).winner, 0);
}

TEST_F(Tuner, NothingToTryIsAReason) {
  EXPECT_NE(run(0).decision.reason.find("no candidate"), std::string::npos);
  rig.device.stream_error = "too many streams";
  EXPECT_NE(run(1).decision.reason.find("too many streams"), std::string::npos);
  rig.device.stream_error.clear();
  rig.problem.n = 0;
  EXPECT_NE(run(1).decision.reason.find("n = 0"), std::string::npos);
}

TEST_F(Tuner, HopelessCandidatesAreSlow) {
  takes(1, 1e6);
  const TuneResult result = run(2);
  EXPECT_EQ(result.winner, 0);
  EXPECT_EQ(outcome(result, 1), "slow");
  EXPECT_DOUBLE_EQ(result.decision.candidates[1].median_us, 1e6);
}

TEST_F(Tuner, CandidatesAreCompiledInOneBatch) {
  run(8);
  EXPECT_EQ(rig.compiler->batches, std::vector<std::size_t>{8});
}

TEST_F(Tuner, OnlyWhatTheProblemNeedsIsWritten) {
  // Kernels are given the tuner's own tensors: distinct, and none of them null.
  std::vector<const void*> seen;
  computes(0, [&](const SlParams& params) { seen = {params.x, params.weight, params.y}; });
  run(1);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_NE(seen[0], seen[2]);
  for (const void* pointer : seen) EXPECT_NE(pointer, nullptr);
}

TEST_F(Tuner, ThreadsMayTuneOneDeviceAtOnce) {
  std::vector<TuneResult> results(4);
  {
    std::vector<std::jthread> threads;
    for (TuneResult& result : results) {
      threads.emplace_back(
          [&] { result = tune(rig.device, *rig.cache, rig.problem, fake_candidates(3), quick(), rig.log); });
    }
  }
  for (const TuneResult& result : results) EXPECT_EQ(result.winner, 0) << result.decision.reason;
  std::size_t compiled = 0;
  for (const std::size_t batch : rig.compiler->batches) compiled += batch;
  EXPECT_EQ(compiled, 3U) << "one compile a kernel";
  EXPECT_EQ(rig.device.live_buffers, 0);
}

/// Steps in order, with the candidates that each is about: "check 0".
TuneWatch noting(std::vector<std::string>& steps) {
  return [&steps](std::string_view step, std::span<const std::size_t> places) {
    std::string text(step);
    for (const std::size_t place : places) text += " " + std::to_string(place);
    if (steps.empty() || steps.back() != text) steps.push_back(std::move(text));
  };
}

TEST_F(Tuner, WhoWatchesHearsOfEveryStepBeforeItsCandidateRuns) {
  std::vector<std::string> steps;
  TuneOptions options = quick();
  options.watch = noting(steps);
  std::vector<std::string> launched;
  for (const int variant : {0, 1}) {
    rig.device.behaviours[variant].launch = [&, variant](const SlParams& params) -> Status {
      launched.push_back(steps.back());
      EXPECT_TRUE(starts(steps.back(), "check " + std::to_string(variant)) ||
                  starts(steps.back(), "time " + std::to_string(variant)))
          << steps.back();
      rig.device.compute(params);
      return {};
    };
  }
  takes(0, 20), takes(1, 8);
  EXPECT_EQ(run(2, options).winner, 1);
  EXPECT_FALSE(launched.empty());
  ASSERT_GE(steps.size(), 9U);
  EXPECT_EQ(steps.front(), "compile 0 1");
  for (const char* const step : {"load 0", "load 1", "scratch", "check 0", "check 1", "time 0", "time 1", "copy"})
    EXPECT_NE(std::find(steps.begin(), steps.end(), step), steps.end()) << step;
  EXPECT_EQ(steps.back(), "copy");
}

TEST_F(Tuner, WhatTookAProcessWithItIsNotTouchedAgain) {
  std::vector<std::string> steps;
  TuneOptions options = quick();
  options.watch = noting(steps);
  options.left_out = {{"fake", "v=0", "crashed: in check: signal 6"},
                      {"fake", "v=2", "timed out: in time"},
                      {"fake", "v=2", "skipped: said later"},
                      {"other", "v=1", "of another problem"}};
  for (const int variant : {0, 2}) {
    rig.device.behaviours[variant].launch = [](const SlParams&) -> Status {
      ADD_FAILURE() << "was launched";
      return {};
    };
  }
  const TuneResult result = run(3, options);
  EXPECT_EQ(result.winner, 1);
  EXPECT_EQ(outcome(result, 0), "crashed: in check: signal 6");
  EXPECT_EQ(outcome(result, 1), "timed");
  EXPECT_EQ(outcome(result, 2), "timed out: in time");
  EXPECT_EQ(result.decision.candidate_set, fake_candidates(3).digest()) << "they were candidates all the same";
  EXPECT_EQ(steps.front(), "compile 1");
  EXPECT_EQ(rig.compiler->batches, (std::vector<std::size_t>{1}));

  options.left_out = {{"fake", "v=0", "crashed: a"}, {"fake", "v=1", "crashed: b"}};
  steps.clear();
  const TuneResult none = run(2, options);
  EXPECT_EQ(none.winner, -1);
  EXPECT_TRUE(steps.empty()) << steps.front();
  EXPECT_NE(none.decision.reason.find("crashed: a"), std::string::npos) << none.decision.reason;
  EXPECT_TRUE(none.decision.schedule.empty());
}

TEST_F(Tuner, CompilingSinglyNamesOneCandidateAStep) {
  std::vector<std::string> steps;
  TuneOptions options = quick();
  options.watch = noting(steps);
  options.compile_singly = true;
  run(3, options);
  for (const char* const step : {"compile 0", "compile 1", "compile 2"})
    EXPECT_NE(std::find(steps.begin(), steps.end(), step), steps.end()) << step;
  EXPECT_EQ(rig.compiler->batches, (std::vector<std::size_t>{1, 1, 1}));
}

}  // namespace
}  // namespace sl
