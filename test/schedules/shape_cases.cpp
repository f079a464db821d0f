#include "schedules/shape_cases.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "support/check.hpp"
#include "support/problems.hpp"

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

void test_sizes_of_numbers(const Schedule& schedule, std::initializer_list<const char*> problems) {
  std::string why_not;
  if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  HostRunner runner;
  std::vector<Job> jobs;
  for (const char* text : problems) {
    const Result<ConvProblem> problem = parse(text);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    Config config = schedule.configs(*problem, runner.info()).front();
    jobs.push_back({.problem = *problem, .schedule = &schedule, .config = std::move(config), .seed = test_seed(37)});
  }
  const Status compiled = runner.compile(jobs);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  for (const Job& job : jobs) {
    // Powers of two of the factors, which vary by `spread` from element to element.
    struct Sizes {
      int x, w, spread;
    };
    for (const Sizes& sizes : {Sizes{-126, 0, 20}, Sizes{0, -126, 20}, Sizes{-70, -70, 8}, Sizes{-130, 100, 10},
                               Sizes{90, -120, 20}, Sizes{56, 56, 4}, Sizes{125, -20, 1}, Sizes{0, 0, 60}}) {
      HostData data = job.data();
      const auto resize = [&](std::vector<std::byte>& values, std::int64_t count, int power) {
        for (std::int64_t i = 0; i < count; ++i) {
          const int more = static_cast<int>(i * 7 % (2 * sizes.spread + 1)) - sizes.spread;
          store_element(DType::f32, values.data(), i,
                        std::ldexp(load_element(DType::f32, values.data(), i), power + more));
        }
      };
      resize(data.x, job.problem.x_elements(), sizes.x);
      resize(data.w, job.problem.w_elements(), sizes.w);
      const auto y = runner.run(job, data);
      ASSERT_TRUE(y.ok()) << job.what() << ": " << y.error().message;
      EXPECT_TRUE(output_is_right({job.problem, job.seed, job.fill, Arithmetic::mma, job.what()}, data, *y))
          << "x about 2^" << sizes.x << ", w about 2^" << sizes.w;
    }
  }
}

}  // namespace sl::test
