// Single flight, background tuning, capture, fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <set>
#include <thread>

#include "dispatch/fakes.hpp"

namespace sl::test {
namespace {

/// Holds whoever waits until it is opened.
class Gate {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void await_waiter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

std::vector<Code> sixteen_at_once(Rig& rig, Regular regular, const std::function<ConvProblem(int)>& problem) {
  std::vector<Code> codes(16, Code::internal);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      Error error;
      codes[static_cast<std::size_t>(i)] = rig->conv2d(problem(i), any_tensors(), nullptr, regular, error);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return codes;
}

TEST(SingleFlight, SixteenThreadsTuneOnce) {
  Rig rig;
  rig.make();
  rig.tuner.before = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };  // let the others arrive
  // 9 to 24: two batch buckets (16 and 32), so two tunings.
  const auto codes = sixteen_at_once(rig, Regular::yes, [](int i) { return depthwise(9 + i); });
  for (const Code code : codes) EXPECT_EQ(code, Code::ok);
  EXPECT_EQ(rig.tuner.calls, 2);
  EXPECT_EQ(rig.compiler->compiled, 1) << "n is in no binary";
  EXPECT_EQ(rig.device->loads, 1);
  EXPECT_EQ(rig.device->launched, 16u);
}

TEST(SingleFlight, AFailureGoesToTheWaitersAndIsForgotten) {
  Rig rig;
  rig.make();
  rig.tuner.before = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  rig.tuner.answer = [](const CandidateSet& set) { return ScriptedTuner::fail(set, "wrong: scripted"); };
  for (const Code code : sixteen_at_once(rig, Regular::no, [](int) { return depthwise(); })) {
    EXPECT_EQ(code, Code::unsupported);
  }
  rig.tuner.answer = nullptr;
  Error error;
  EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::no, error), Code::ok) << error.message;
}

// One failure that sixteen OPTIONAL callers see is one failure: more than max_failures would keep the key for good.
TEST(SingleFlight, ATransientFailureSeenByManyDoesNotPoisonTheKey) {
  for (const Policy policy : {Policy::first_use, Policy::immediate}) {
    SCOPED_TRACE(name(policy));
    Rig rig;
    rig.options.policy = policy;
    std::atomic<int> begun{0};
    // Whoever tunes or compiles fails only once all sixteen have begun.
    const auto wait_for_all = [&] {
      while (rig->counters().plan_misses < 16) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ++begun;
    };
    rig.tuner.before = wait_for_all;
    rig.tuner.answer = [](const CandidateSet& set) { return ScriptedTuner::fail(set, "wrong: scripted"); };
    if (policy == Policy::immediate) {
      rig.compiler->before = wait_for_all;
      rig.compiler->error = "scripted compile error";
    }
    rig.make();
    for (const Code code : sixteen_at_once(rig, Regular::yes, [](int) { return depthwise(); })) {
      EXPECT_EQ(code, Code::kept);
    }
    EXPECT_GE(begun, 1);
    rig.tuner.answer = nullptr;
    rig.tuner.before = nullptr;
    rig.compiler->before = nullptr;
    rig.compiler->remaining_errors = 0;
    Error error;
    EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::ok) << error.message;
  }
}

TEST(SingleFlight, AThrowingTunerIsAnErrorForEveryone) {
  Rig rig;
  rig.make();
  rig.tuner.answer = [](const CandidateSet&) -> TuneResult { throw std::runtime_error("thrown by the tuner"); };
  Error error;
  EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::no, error), Code::internal);
  EXPECT_NE(error.message.find("thrown by the tuner"), std::string::npos) << error.message;
}

TEST(Background, ServesTheBaseAtOnceAndSwapsTheWinnerIn) {
  Rig rig;
  Gate gate;
  rig.options.policy = Policy::background;
  rig.make();
  rig.tuner.before = [&] { gate.wait(); };
  Error error;
  ASSERT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::yes, error), Code::ok) << error.message;
  const Kernel* base = rig.device->last_kernel;
  EXPECT_EQ(rig->explain(depthwise(3), Regular::yes, true)->origin, Origin::base);
  gate.await_waiter();
  // Served while the tuning runs: the same shape (a hit), another batch of the bucket, and a REQUIRED call.
  ASSERT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::yes, error), Code::ok);
  ASSERT_EQ(rig->conv2d(depthwise(4), any_tensors(), nullptr, Regular::yes, error), Code::ok);
  ASSERT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::no, error), Code::ok);
  EXPECT_EQ(rig.device->last_kernel, base);
  EXPECT_EQ(rig->counters().plan_hits, 1u);

  gate.open();
  rig->wait_idle();
  const std::uint64_t misses = rig->counters().plan_misses;
  std::set<const Kernel*> kernels;
  for (const auto& [n, regular] : {std::pair{3, Regular::yes}, {4, Regular::yes}, {3, Regular::no}}) {
    ASSERT_EQ(rig->conv2d(depthwise(n), any_tensors(), nullptr, regular, error), Code::ok);
    EXPECT_EQ(rig.device->last_n, n);
    kernels.insert(rig.device->last_kernel);
  }
  EXPECT_EQ(kernels.size(), 1u);
  EXPECT_FALSE(kernels.contains(base)) << "the winner was not swapped in";
  EXPECT_EQ(rig->counters().plan_misses, misses) << "the swap must reach the plan table";
  EXPECT_EQ(rig.tuner.calls, 1);
  EXPECT_EQ(rig->explain(depthwise(3), Regular::yes, true)->origin, Origin::tuned);
}

TEST(Background, ATuningThatFailsForAnotherReasonLeavesTheBaseAndIsNotRepeated) {
  Rig rig;
  rig.options.policy = Policy::background;
  rig.tuner.answer = [](const CandidateSet& set) {
    TuneResult result = ScriptedTuner::fail(set, "load: out of memory");
    result.failure = Code::out_of_memory;
    return result;
  };
  rig.make();
  Error error;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::ok);
    ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::no, error), Code::ok);
    rig->wait_idle();
  }
  EXPECT_EQ(rig.tuner.calls, 1);
  EXPECT_EQ(rig.warnings().size(), 1u);
  const auto record = rig->explain(depthwise(), Regular::yes, true);
  EXPECT_EQ(record->origin, Origin::base);
  EXPECT_NE(record->reason.find("scripted failure"), std::string::npos) << record->reason;
}

// What is wrong is served for as long as nobody knows, and not a call longer.
TEST(Background, ABaseFoundWrongIsServedNoMore) {
  Rig rig;
  Gate gate;
  rig.options.policy = Policy::background;
  rig.tuner.before = [&] { gate.wait(); };
  rig.tuner.answer = [](const CandidateSet& set) { return ScriptedTuner::fail(set, "wrong: scripted"); };
  rig.make();
  Error error;
  ASSERT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::yes, error), Code::ok);
  ASSERT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::no, error), Code::ok);
  gate.open();
  rig->wait_idle();
  const std::uint64_t launched = rig.device->launched, hits = rig->counters().plan_hits;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::yes, error), Code::kept);
    EXPECT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::no, error), Code::unsupported);
    EXPECT_NE(error.message.find("REQUIRED call " + depthwise(3).to_string()), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("scripted failure"), std::string::npos) << error.message;
  }
  EXPECT_EQ(rig->counters().plan_hits, hits + 5) << "the kept answer is in the plan table";
  // Another batch of the bucket was never served, and is not now.
  EXPECT_EQ(rig->conv2d(depthwise(4), any_tensors(), nullptr, Regular::yes, error), Code::kept);
  EXPECT_NE(error.message.find("scripted failure"), std::string::npos) << error.message;
  EXPECT_EQ(rig->conv2d(depthwise(4), any_tensors(), nullptr, Regular::no, error), Code::unsupported);
  EXPECT_EQ(rig->prepare(depthwise(3), nullptr, Regular::no).error().code, Code::unsupported);
  rig.device->capture = true;
  EXPECT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::no, error), Code::unsupported);
  EXPECT_EQ(rig.device->violations, 0);
  EXPECT_EQ(rig.device->launched, launched);
  EXPECT_EQ(rig.tuner.calls, 1) << "it is not tuned again";
  EXPECT_EQ(rig.warnings().size(), 1u);
  EXPECT_EQ(rig->explain(depthwise(3), Regular::yes, true)->route, "keep");
  const auto record = rig->explain(depthwise(3), Regular::no, true);
  EXPECT_EQ(record->route, "reject");
  EXPECT_EQ(record->schedule, "");
  EXPECT_NE(record->reason.find("scripted failure"), std::string::npos) << record->reason;
}

// The winner is right, but cannot be loaded; the base is there, but wrong.
TEST(Background, AWrongBaseDoesNotStandInForAWinnerThatCannotBeHad) {
  Rig rig;
  Gate gate;
  rig.options.policy = Policy::background;
  rig.tuner.before = [&] { gate.wait(); };
  rig.tuner.answer = [](const CandidateSet& set) {
    TuneResult result = ScriptedTuner::take(set, set.candidates.size() - 1);
    for (std::size_t i = 0; i + 1 < set.candidates.size(); ++i) {
      result.decision.candidates[i].outcome = "wrong: scripted";
    }
    return result;
  };
  rig.make();
  Error error;
  ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::ok);
  ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::no, error), Code::ok);
  gate.await_waiter();
  rig.device->load_error = "no room for another module";
  gate.open();
  rig->wait_idle();
  const std::uint64_t launched = rig.device->launched;
  EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::kept);
  EXPECT_NE(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::no, error), Code::ok);
  EXPECT_NE(error.message.find("no room for another module"), std::string::npos) << error.message;
  EXPECT_EQ(rig.device->launched, launched);
}

TEST(Background, ManyThreadsAndShapesEndOnWinners) {
  Rig rig;
  rig.options.policy = Policy::background;
  rig.make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Error error;
      for (int i = 0; i < 40; ++i) {
        ConvProblem problem = depthwise(1 + (i + t) % 8);
        problem.c = problem.k = problem.groups = 16 + 16 * (i % 5);
        EXPECT_EQ(rig->conv2d(problem, any_tensors(), nullptr, Regular::yes, error), Code::ok) << error.message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rig->wait_idle();
  Error error;
  for (int n = 1; n <= 8; ++n) {
    ConvProblem problem = depthwise(n);
    problem.c = problem.k = problem.groups = 16;
    const auto set = candidates(problem.batch_bucket(), rig.device->info(), {}, {});
    const std::string entry = set.candidates.at(ScriptedTuner::usual(set))
                                  .schedule->kernel(problem, set.candidates.at(ScriptedTuner::usual(set)).config)
                                  .entry();
    ASSERT_EQ(rig->conv2d(problem, any_tensors(), nullptr, Regular::yes, error), Code::ok);
    const Kernel* kernel = rig.device->last_kernel;
    EXPECT_EQ(dynamic_cast<const FakeKernel&>(*kernel).entry, entry) << n;
  }
  EXPECT_EQ(rig.tuner.calls, 5 * 4) << "five shapes, four batch buckets";
}

TEST(Background, DestructionJoinsTheThread) {
  Rig rig;
  rig.options.policy = Policy::background;
  rig.make();
  rig.tuner.before = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  Error error;
  for (int n : {1, 2, 4, 8}) {
    ASSERT_EQ(rig->conv2d(depthwise(n), any_tensors(), nullptr, Regular::yes, error), Code::ok);
  }
  rig.dispatcher.reset();
  EXPECT_LE(rig.tuner.calls, 4);
}

TEST(Capture, AnUnknownCallIsNotPreparedAndTouchesNothing) {
  Rig rig;
  rig.make();
  rig.device->capture = true;
  Error error;
  EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::not_prepared);
  EXPECT_NE(error.message.find("prepare"), std::string::npos) << error.message;
  EXPECT_EQ(rig->prepare(depthwise(), nullptr, Regular::no).error().code, Code::not_prepared);
  EXPECT_EQ(rig.device->violations, 0);
  EXPECT_EQ(rig.tuner.calls, 0);
  EXPECT_EQ(rig->counters().not_prepared, 2u);
}

TEST(Capture, WhatIsKnownLaunches) {
  Rig rig;
  rig.make();
  const auto plan = rig->prepare(depthwise(3), nullptr, Regular::yes);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  rig.device->capture = true;
  Error error;
  EXPECT_TRUE(rig->run(**plan, any_tensors(), nullptr).ok());
  EXPECT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::yes, error), Code::ok) << error.message;
  // Not in the plan table, but decided, and its kernel is loaded: another batch of the bucket, and the REQUIRED call.
  EXPECT_EQ(rig->conv2d(depthwise(4), any_tensors(), nullptr, Regular::yes, error), Code::ok) << error.message;
  EXPECT_EQ(rig->conv2d(depthwise(3), any_tensors(), nullptr, Regular::no, error), Code::ok) << error.message;
  EXPECT_EQ(rig->conv2d(depthwise(5), any_tensors(), nullptr, Regular::yes, error), Code::not_prepared);
  EXPECT_EQ(rig.device->violations, 0);
  EXPECT_EQ(rig.device->launched, 4u);
}

TEST(Capture, AKeepIsPureAndAnsweredAllTheSame) {
  Rig rig;
  rig.routing = keep_everything();
  rig.make();
  rig.device->capture = true;
  Error error;
  EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::kept);
  EXPECT_EQ(rig.device->violations, 0);
}

/// Exit status of `body` run in a forked child; -1 where it was killed.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, AChildMayDestroyWhatItInherited) {
  Rig rig;
  rig.options.policy = Policy::background;
  Gate gate;
  rig.make();
  rig.tuner.before = [&] { gate.wait(); };
  Error error;
  ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::ok);
  gate.await_waiter();  // the child inherits a thread that is not there
  EXPECT_EQ(in_child([&] {
              alarm(20);
              Error child_error;
              const Code code = rig->conv2d(depthwise(64), any_tensors(), nullptr, Regular::yes, child_error);
              if (code != Code::environment || child_error.message.find("fork") == std::string::npos) return 1;
              rig->wait_idle();
              rig.dispatcher.reset();
              return 0;
            }),
            0);
  gate.open();
  rig->wait_idle();
  EXPECT_EQ(rig.tuner.calls, 1);
}

}  // namespace
}  // namespace sl::test
