// Every schedule x its configurations x dtype x layout x the shared table of problems, and random problems, against the
// double reference on a real GPU.
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "gpu_fixture.hpp"
#include "schedule_cases.hpp"
#include "support/check.hpp"
#include "support/full_tests.hpp"
#include "support/generators.hpp"
#include "support/problems.hpp"
#include "tuning/workspace.hpp"

namespace sl::test {
namespace {

class ScheduleOnGpu : public GpuJit, public testing::WithParamInterface<const Schedule*> {
 protected:
  void SetUp() override {
    GpuJit::SetUp();
    if (IsSkipped() || device_supports(GetParam()->min_capability, device->info())) return;
    GTEST_SKIP() << device->info().name << " has not what " << GetParam()->name << " needs";
  }
};

std::string schedule_name(const testing::TestParamInfo<const Schedule*>& info) { return std::string(info.param->name); }

TEST_P(ScheduleOnGpu, TheTable) {
  std::vector<ConvProblem> problems;
  std::size_t turn = 0;
  for (const NamedProblem& row : test_problems())
    for (const ConvProblem& variant : spread_variants(row.problem, turn++)) problems.push_back(variant);
  const auto cases =
      cases_of(*GetParam(), problems, device->info(), full_tests() ? 8 : 2);  // most of the time is NVRTC's
  ASSERT_FALSE(cases.empty());
  EXPECT_EQ(check_cases(cases, test_seed(1)), cases.size());
  RecordProperty("cases", static_cast<int>(cases.size()));
}

TEST_P(ScheduleOnGpu, RandomProblems) {
  const std::uint64_t seed = test_seed(2);
  std::vector<ScheduleCase> cases;
  for (std::uint64_t draw = 0; draw < most_draws && cases.empty(); draw += any_draws) {
    std::vector<ConvProblem> problems;
    for (std::uint64_t i = draw; i < draw + any_draws; ++i) problems.push_back(drawn_problem(seed, i));
    cases = cases_of(*GetParam(), problems, device->info(), 1);
  }
  ASSERT_FALSE(cases.empty());
  EXPECT_EQ(check_cases(cases, seed), cases.size());
  RecordProperty("cases", static_cast<int>(cases.size()));
}

// One configuration for each dtype and layout, of planes and of single rows: little enough for compute-sanitizer
// (scripts/test-gpu).
TEST_P(ScheduleOnGpu, Sample) {
  std::map<std::tuple<DType, Layout, bool>, ScheduleCase> first;
  std::size_t turn = 0;
  for (const NamedProblem& row : test_problems()) {
    const auto cases = cases_of(*GetParam(), spread_variants(row.problem, turn++), device->info(), 1);
    for (const ScheduleCase& test : cases) {
      const ConvProblem& p = test.problem;
      first.try_emplace({p.dtype, p.layout, p.p == 1}, test);
    }
  }
  std::vector<ScheduleCase> cases;
  for (auto& [variant, test] : first) cases.push_back(std::move(test));
  ASSERT_FALSE(cases.empty());
  EXPECT_EQ(check_cases(cases, test_seed(5)), cases.size());
}

INSTANTIATE_TEST_SUITE_P(All, ScheduleOnGpu, testing::ValuesIn(all_schedules().begin(), all_schedules().end()),
                         schedule_name);

// arrayfire#3711: weights staged in a module's globals would be one stream's for both.
TEST_F(GpuJit, TwoStreamsWithTwoWeightsRunOneKernelAtOnce) {
  ConvProblem problem = parse("mb8ic64ih56oc64oh56kh3ph1g64 dt=f16 tag=nhwc").value();
  const Schedule* const schedule = base_schedule(problem, device->info());
  ASSERT_NE(schedule, nullptr);
  const Config config = schedule->configs(problem, device->info()).front();
  const Geometry geometry = schedule->geometry(problem, config);
  const auto kernel = load(schedule->kernel(problem, config), geometry.dynamic_smem);
  ASSERT_NE(kernel, nullptr);
  SlParams params = common_params(problem);
  schedule->params(problem, config, params);
  const auto run = [&](std::uint64_t seed) {
    const OwnStream stream(*device);
    const auto workspace = Workspace::create(*device, stream, problem, {.seed = seed, .max_sets = 1});
    ASSERT_OK(workspace);
    Workspace& work = **workspace;
    std::vector<std::byte> first;
    for (int round = 0; round < 20; ++round) {
      ASSERT_OK(work.poison(0));
      for (int i = 0; i < 20; ++i) ASSERT_OK(device->launch(*kernel, geometry, work.bind(params, 0), stream));
      const auto y = work.read_y(0);
      ASSERT_OK(y);
      const test::Run what{problem, seed, Fill::random, schedule->arithmetic, std::string(schedule->name)};
      EXPECT_TRUE(round > 0 ? same_output(what, first, *y) : output_is_right(what, work.host_data(), *y));
      first = *y;
    }
    ASSERT_OK(work.check_redzones(0));
  };
  std::thread a(run, test_seed(3)), b(run, test_seed(4));
  a.join();
  b.join();
}

}  // namespace
}  // namespace sl::test
