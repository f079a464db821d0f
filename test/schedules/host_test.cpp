// Every schedule x dtype x layout x the problem table on the host device, against the double reference.
#include <gtest/gtest.h>

#include <map>

#include "schedules/host_runner.hpp"
#include "support/check.hpp"
#include "support/problems.hpp"

namespace sl::test {
namespace {

class HostSchedules : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  }
};

/// Jobs of one variant of a problem: every schedule that takes it; of its configurations one, which rotates with `turn`
/// (all of them under SLUICE_TEST_FULL).
void add_jobs(std::vector<Job>& jobs, const ConvProblem& problem, const DeviceInfo& device, std::size_t turn) {
  for (const Schedule* schedule : all_schedules()) {
    if (schedule->can_run(problem, device)) continue;
    const std::vector<Config> configs = schedule->configs(problem, device);
    ASSERT_FALSE(configs.empty()) << schedule->name << " has no configuration for " << problem.to_string();
    for (std::size_t i = 0; i < configs.size(); ++i) {
      if (!full_tests() && i != turn % configs.size()) continue;
      const Fill fill = turn % 3 == 2 ? Fill::integer : Fill::random;
      jobs.push_back({problem, schedule, configs[i], test_seed(turn + 1), fill});
    }
  }
}

void run_all(HostRunner& runner, const std::vector<Job>& jobs) {
  const Status compiled = runner.compile(jobs);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  for (const Job& job : jobs) {
    const HostData data = make_data(job.problem, job.seed, job.fill);
    const auto y = runner.run(job, data);
    ASSERT_TRUE(y.ok()) << job.what() << ": " << y.error().message;
    ASSERT_TRUE(output_is_right({job.problem, job.seed, job.fill, job.schedule->arithmetic, job.what()}, data, *y));
  }
}

TEST_F(HostSchedules, Table) {
  HostRunner runner;
  std::vector<Job> jobs;
  std::size_t turn = 0;
  for (const NamedProblem& row : test_problems()) {
    for (const ConvProblem& problem : spread_variants(row.problem, turn)) {
      ++turn;
      add_jobs(jobs, problem, runner.info(), turn);
      if (HasFatalFailure()) return;
    }
  }
  std::map<std::string, int> specs;
  for (const Job& job : jobs) ++specs[job.schedule->kernel(job.problem, job.config).canonical()];
  std::printf("jobs %zu specs %zu\n", jobs.size(), specs.size());
  run_all(runner, jobs);
}

}  // namespace
}  // namespace sl::test
