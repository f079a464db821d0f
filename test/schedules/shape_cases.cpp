#include "schedules/shape_cases.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "support/check.hpp"

namespace sl::test {

void test_shapes(const Schedule& schedule, std::span<const ShapeCase> cases) {
  std::string why_not;
  if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  HostRunner runner;
  std::vector<Job> jobs;
  for (const ShapeCase& c : cases) {
    const Result<ConvProblem> problem = parse(c.problem);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    ASSERT_FALSE(schedule.can_run(*problem, runner.info())) << *schedule.can_run(*problem, runner.info());
    Job job{.problem = *problem, .schedule = &schedule, .config = *Config::parse(c.config), .seed = test_seed(31)};
    ASSERT_FALSE(schedule.fits(*problem, job.config)) << c.problem << ": " << *schedule.fits(*problem, job.config);
    jobs.push_back(std::move(job));
  }
  test_jobs(runner, std::move(jobs));
}

void test_jobs(HostRunner& runner, std::vector<Job> jobs) {
  const Status compiled = runner.compile(jobs);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  for (Job& job : jobs) {
    for (const Fill fill : {Fill::random, Fill::integer}) {
      job.fill = fill;
      job.in_place = job.problem.residual && fill == Fill::integer;
      const HostData data = job.data();
      const auto y = runner.run(job, data, fill == Fill::random ? 0 : 77);
      ASSERT_TRUE(y.ok()) << job.what() << ": " << y.error().message;
      EXPECT_TRUE(output_is_right({job.problem, job.seed, fill, job.schedule->arithmetic, job.what()}, data, *y));
    }
  }
}

}  // namespace sl::test
