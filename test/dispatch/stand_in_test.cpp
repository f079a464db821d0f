// A winner is chosen for a batch bucket. Where this very batch is too much for it, another candidate stands in.
#include <gtest/gtest.h>

#include "dispatch/fakes.hpp"
#include "dispatch/kernel_pool.hpp"

namespace sl::test {
namespace {

/// A grouped call whose batch is far beyond the largest bucket: a schedule for few outputs runs the bucket, not this.
ConvProblem enormous() {
  ConvProblem problem;
  problem.n = 4096;
  problem.c = problem.k = 16, problem.groups = 2;
  problem.h = problem.w = problem.p = problem.q = 8;
  problem.r = problem.s = 3, problem.pad_top = problem.pad_left = 1;
  problem.dtype = DType::f16, problem.layout = Layout::nhwc;
  return problem;
}

class StandIn : public testing::Test {
 protected:
  void SetUp() override {
    set = candidates(problem.batch_bucket(), rig.device->info(), {}, {});
    for (std::size_t i = 0; i < set.candidates.size(); ++i) {
      (launch_shape(problem, set.candidates[i], rig.device->info()).ok() ? able : unable).push_back(i);
    }
    ASSERT_FALSE(unable.empty()) << "no candidate shows what this is about";
    ASSERT_GE(able.size(), 2u);
    rig.tuner.answer = [this](const CandidateSet& given) {
      TuneResult result = ScriptedTuner::take(given, unable.front());
      for (const std::size_t i : wrong) result.decision.candidates[i].outcome = "wrong: scripted";
      return result;
    };
  }

  void expect_served(std::size_t index) {
    const Candidate& candidate = set.candidates[index];
    const auto plan = rig->prepare(problem, nullptr, Regular::no);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ((*plan)->decision.schedule, candidate.schedule->name);
    EXPECT_EQ((*plan)->decision.config, candidate.config.to_string());
    EXPECT_EQ((*plan)->decision.schedule_digest, candidate.schedule->digest());
    Error error;
    ASSERT_EQ(rig->conv2d(problem, any_tensors(), nullptr, Regular::no, error), Code::ok) << error.message;
    const Kernel* kernel = rig.device->last_kernel;
    EXPECT_EQ(dynamic_cast<const FakeKernel&>(*kernel).entry,
              candidate.schedule->kernel(problem, candidate.config).entry());
    EXPECT_EQ(rig.device->last_n, problem.n);
  }

  const ConvProblem problem = enormous();
  Rig rig;
  CandidateSet set;
  std::vector<std::size_t> able, unable, wrong;
};

TEST_F(StandIn, IsTheFirstThatCanRunTheBatch) {
  rig.make();
  expect_served(able.front());
  EXPECT_EQ(rig.tuner.calls, 1);
}

TEST_F(StandIn, IsNeverOneThatTuningFoundWrong) {
  wrong = {able.front()};
  rig.make();
  expect_served(able[1]);
}

TEST_F(StandIn, IsNobodyWhereNoneIsLeft) {
  wrong = able;
  rig.make();
  Error error;
  EXPECT_EQ(rig->conv2d(problem, any_tensors(), nullptr, Regular::no, error), Code::unsupported);
  EXPECT_NE(error.message.find("cannot run " + problem.to_string()), std::string::npos) << error.message;
  EXPECT_EQ(rig->conv2d(problem, any_tensors(), nullptr, Regular::yes, error), Code::kept);
  EXPECT_EQ(rig.device->launched, 0u);
}

TEST_F(StandIn, IsNobodyUnderPolicyPinned) {
  rig.make();
  const auto winner = rig->explain(problem.batch_bucket(), Regular::no, false);
  ASSERT_TRUE(winner.ok()) << winner.error().message;
  ASSERT_EQ(winner->config, set.candidates[unable.front()].config.to_string());
  auto table = DecisionTable::from_json(DecisionTable::to_json(rig.device->info(), {*winner}), "test");
  ASSERT_TRUE(table.ok()) << table.error().message;
  rig.table = std::make_shared<const DecisionTable>(*std::move(table));
  rig.options.policy = Policy::pinned;
  rig.make();
  Error error;
  EXPECT_EQ(rig->conv2d(problem.batch_bucket(), any_tensors(), nullptr, Regular::no, error), Code::ok) << error.message;
  EXPECT_EQ(rig->conv2d(problem, any_tensors(), nullptr, Regular::no, error), Code::pinned_miss);
  EXPECT_NE(error.message.find(problem.to_string()), std::string::npos) << error.message;
}

}  // namespace
}  // namespace sl::test
