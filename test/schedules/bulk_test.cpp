// The schedules of bulk copies where their blocks go on from unit to unit.
#include <gtest/gtest.h>

#include "schedules/host_runner.hpp"
#include "support/bulk_cases.hpp"
#include "support/check.hpp"

namespace sl::test {
namespace {

TEST(Bulk, BlocksThatGoOnFromUnitToUnit) {
  std::string why_not;
  if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  HostRunner runner;
  std::vector<Job> jobs;
  for (const BulkCase& c : bulk_cases()) {
    const Refusal refusal = c.schedule->can_run(c.problem, runner.info());
    ASSERT_FALSE(refusal) << c.problem.to_string() << ": " << *refusal;
    jobs.push_back({.problem = c.problem, .schedule = c.schedule, .config = c.config, .seed = test_seed(41)});
    if (jobs.size() % 3 != 0) continue;
    jobs.push_back(jobs.back());
    jobs.back().instead = {{"INDEX64", 1}};
  }
  const Status compiled = runner.compile(jobs);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  for (Job& job : jobs) {
    for (const std::uint64_t order : {0U, 5U, 77U}) {  // in order, copies happen as late as can be; else at any time
      job.fill = order == 77 ? Fill::integer : Fill::random;
      job.in_place = job.problem.residual && order == 5;
      const HostData data = job.data();
      const auto y = runner.run(job, data, order);
      ASSERT_TRUE(y.ok()) << job.what() << ": " << y.error().message;
      EXPECT_TRUE(output_is_right({job.problem, job.seed, job.fill, job.schedule->arithmetic, job.what()}, data, *y))
          << "order " << order;
    }
  }
}

TEST(Bulk, OlderDevicesAreRefused) {
  DeviceInfo older;
  older.name = "older";
  older.capability = 89;
  older.sm_count = 128;
  for (const BulkCase& c : bulk_cases()) {
    const Refusal refusal = c.schedule->can_run(c.problem, older);
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->find("capability = 89"), std::string::npos) << *refusal;
  }
}

}  // namespace
}  // namespace sl::test
