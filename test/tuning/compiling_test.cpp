// Kernels are taken as they are compiled, and tuning checks one while another is still being compiled.
#include "tuning/compiling.hpp"

#include <gtest/gtest.h>

#include <future>

#include "fake_device.hpp"
#include "tuning/tuner.hpp"

namespace sl {
namespace {

using std::chrono::seconds;
using test::FakeRig;

std::vector<KernelSpec> specs_of(const FakeRig& rig, int count) {
  std::vector<KernelSpec> specs;
  for (const Candidate& candidate : test::fake_candidates(count).candidates) {
    specs.push_back(candidate.schedule->kernel(rig.problem, candidate.config));
  }
  return specs;
}

TEST(Compiling, EachComesAsSoonAsItIsThere) {
  FakeRig rig;
  std::promise<void> first_was_taken;
  bool in_time = false;
  rig.compiler->before_each = [&](std::size_t i) {
    if (i == 1) in_time = first_was_taken.get_future().wait_for(seconds(20)) == std::future_status::ready;
  };
  Compiling compiling(*rig.cache, rig.device.info(), specs_of(rig, 3), 1, true, std::chrono::steady_clock::now);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto arrival = compiling.next();
    ASSERT_TRUE(arrival && arrival->binary.ok());
    EXPECT_EQ(arrival->index, i);
    if (i == 0) first_was_taken.set_value();
  }
  EXPECT_FALSE(compiling.next());
  EXPECT_FALSE(compiling.next()) << "and so it stays";
  EXPECT_TRUE(in_time);
}

TEST(Compiling, OnTheSameThreadAllAreThereWhenItReturns) {
  FakeRig rig;
  const std::thread::id here = std::this_thread::get_id();
  rig.compiler->on_compile = [&] { EXPECT_EQ(std::this_thread::get_id(), here); };
  Compiling compiling(*rig.cache, rig.device.info(), specs_of(rig, 2), 1, false, std::chrono::steady_clock::now);
  EXPECT_EQ(rig.compiler->batches.size(), 1U);
  EXPECT_TRUE(compiling.next());
  EXPECT_TRUE(compiling.next());
  EXPECT_FALSE(compiling.next());
}

TEST(Compiling, ACompilerThatThrowsIsAnErrorOfEach) {
  FakeRig rig;
  rig.compiler->before_each = [](std::size_t i) {
    if (i == 1) throw std::runtime_error("out of luck");
  };
  Compiling compiling(*rig.cache, rig.device.info(), specs_of(rig, 3), 1, true, std::chrono::steady_clock::now);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto arrival = compiling.next();
    ASSERT_TRUE(arrival);
    EXPECT_EQ(arrival->binary.ok(), arrival->index == 0);
    if (i > 0) {
      EXPECT_NE(arrival->binary.error().message.find("out of luck"), std::string::npos);
    }
  }
  EXPECT_FALSE(compiling.next());
}

TEST(Compiling, IsWaitedForThoughNobodyTakes) {
  FakeRig rig;
  {
    const Compiling compiling(*rig.cache, rig.device.info(), specs_of(rig, 5), 1, true, std::chrono::steady_clock::now);
  }
  EXPECT_EQ(rig.cache->counters().compiles, 5U);
}

TEST(TunerOverlap, OneIsCheckedWhileAnotherIsCompiled) {
  FakeRig rig;
  std::promise<void> launched;
  bool told = false, in_time = false;
  rig.device.behaviours[0].launch = [&](const SlParams& params) -> Status {
    if (!told) launched.set_value();
    told = true;
    rig.device.compute(params);
    return {};
  };
  rig.compiler->before_each = [&](std::size_t i) {
    if (i == 1) in_time = launched.get_future().wait_for(seconds(20)) == std::future_status::ready;
  };
  TuneOptions options;
  options.budget.time_ms = 60'000;
  options.budget.threads = 8;
  const TuneResult result = tune(rig.device, *rig.cache, rig.problem, test::fake_candidates(4), options, rig.log);
  EXPECT_GE(result.winner, 0) << result.decision.reason;
  EXPECT_TRUE(in_time);
  for (const CandidateRecord& record : result.decision.candidates) EXPECT_EQ(record.outcome, "timed");
}

TEST(TunerOverlap, WhereThereIsNoStreamWhatIsWrongWithTheKernelsIsSaid) {
  for (const bool compiles : {true, false}) {
    FakeRig rig;
    rig.device.stream_error = "no streams today";
    if (!compiles) rig.device.behaviours[0].compile_error = "syntax error";
    const TuneResult result = tune(rig.device, *rig.cache, rig.problem, test::fake_candidates(1), {}, rig.log);
    EXPECT_EQ(result.winner, -1);
    const char* const want = compiles ? "no streams today" : "syntax error";
    EXPECT_NE(result.decision.reason.find(want), std::string::npos) << result.decision.reason;
    EXPECT_EQ(result.failure == Code::compile, !compiles);
  }
}

// Who watches is to know what runs, one thing at a time.
TEST(TunerOverlap, NotWhereSomebodyWatches) {
  FakeRig rig;
  const std::thread::id here = std::this_thread::get_id();
  int compiles = 0;
  rig.compiler->on_compile = [&] {
    ++compiles;
    EXPECT_EQ(std::this_thread::get_id(), here);
  };
  TuneOptions options;
  options.watch = [](std::string_view, std::span<const std::size_t>) {};
  options.budget.threads = 2;
  EXPECT_GE(tune(rig.device, *rig.cache, rig.problem, test::fake_candidates(4), options, rig.log).winner, 0);
  EXPECT_EQ(compiles, 2);
}

}  // namespace
}  // namespace sl
