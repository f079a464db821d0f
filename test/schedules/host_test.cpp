// Every schedule x dtype x layout x the problem table on the host device, against the double reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include "schedules/host_runner.hpp"
#include "schedules/list.hpp"
#include "support/check.hpp"
#include "support/full_tests.hpp"
#include "support/generators.hpp"
#include "support/problems.hpp"

namespace sl::test {
namespace {

class HostSchedules : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  }
  /// One for all tests: what one of them compiled, the others find.
  static HostRunner& runner() {
    static HostRunner shared;
    return shared;
  }
};

#ifdef NDEBUG
constexpr std::size_t share = 1;
#else  // with assertions or sanitizers kernels cost twice as much to compile, and more to run
constexpr std::size_t share = 4;
#endif

/// Jobs of one variant of a problem: every schedule that takes it (in debug builds a share of them, in turn), with one
/// of its configurations, which rotates with `turn`; under SLUICE_TEST_FULL every schedule with every configuration.
void add_jobs(std::vector<Job>& jobs, const ConvProblem& problem, const DeviceInfo& device, std::size_t turn) {
  std::size_t place = 0;
  for (const Schedule* schedule : all_schedules()) {
    if (schedule->can_run(problem, device)) continue;
    const std::vector<Config> configs = schedule->configs(problem, device);
    ASSERT_FALSE(configs.empty()) << schedule->name << " has no configuration for " << problem.to_string();
    if (!full_tests() && (turn + place++) % share != 0) continue;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      if (!full_tests() && i != turn / share % configs.size()) continue;
      const Fill fill = (turn + i) % 3 == 2 ? Fill::integer : Fill::random;
      jobs.push_back(
          {.problem = problem, .schedule = schedule, .config = configs[i], .seed = test_seed(turn + 1), .fill = fill});
    }
  }
}

constexpr std::size_t compiled_together = 256;  // some tens of megabytes, with sanitizers some hundreds

void run_all(HostRunner& runner, const std::vector<Job>& jobs) {
  for (std::span<const Job> rest = jobs; !rest.empty();) {
    const std::span<const Job> some = rest.first(std::min(compiled_together, rest.size()));
    rest = rest.subspan(some.size());
    const Status compiled = runner.compile(some);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    for (const Job& job : some) {
      const HostData data = job.data();
      const auto y = runner.run(job, data);
      ASSERT_TRUE(y.ok()) << job.what() << ": " << y.error().message;
      ASSERT_TRUE(output_is_right({job.problem, job.seed, job.fill, job.schedule->arithmetic, job.what()}, data, *y));
    }
  }
}

TEST_F(HostSchedules, Table) {
  HostRunner& runner = HostSchedules::runner();
  std::vector<Job> jobs;
  std::size_t turn = 0;
  for (const NamedProblem& row : test_problems()) {
    for (const ConvProblem& problem : spread_variants(row.problem, turn)) {
      add_jobs(jobs, problem, runner.info(), turn++);
      if (HasFatalFailure()) return;
    }
  }
  RecordProperty("jobs", static_cast<int>(jobs.size()));
  run_all(runner, jobs);
}

// Compiling is what costs, so the problems are drawn first and compiled together; RapidCheck cannot shrink then, but a
// failure names its problem, which repeats it.
TEST_F(HostSchedules, RandomProblems) {
  HostRunner& runner = HostSchedules::runner();
  std::vector<Job> jobs;
  const std::uint64_t seed = test_seed(20);
  RecordProperty("seed", std::to_string(seed));
  const auto problems =
      small_problem({.max_macs = 60000, .max_outputs = 2000, .max_multiplier = 16, .max_beyond = 12, .empty = false});
  const std::size_t count = full_tests() ? 400 : 50;
  for (std::size_t i = 0; i < count; ++i) {
    add_jobs(jobs, problems(rc::Random(seed + i), 100).value(), runner.info(), i);
    if (HasFatalFailure()) return;
  }
  run_all(runner, jobs);
}

/// One job for each schedule x layout, on shapes that exercise its vectors, windows and remainders.
std::vector<Job> sample_jobs(const DeviceInfo& device, DType dtype) {
  std::vector<Job> jobs;
  for (const char* name : {"dw_3x3_same", "mult3", "mult8", "grp4", "grp_few_k6x7", "dw_rows_of_8"}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      ConvProblem problem = test_problem(name);
      problem.dtype = dtype;
      problem.layout = layout;
      for (const Schedule* schedule : all_schedules()) {
        if (schedule->can_run(problem, device)) continue;
        Config config = schedule->configs(problem, device).front();
        jobs.push_back({.problem = problem, .schedule = schedule, .config = std::move(config), .seed = test_seed(3)});
      }
    }
  }
  return jobs;
}

std::vector<std::byte> must_run(HostRunner& runner, const Job& job, const HostData& data, std::uint64_t order = 0) {
  auto y = runner.run(job, data, order);
  EXPECT_TRUE(y.ok()) << job.what() << ": " << (y.ok() ? "" : y.error().message);
  return y.ok() ? std::move(*y) : poisoned_output(job.problem);
}

TEST_F(HostSchedules, RepeatBitForBitInAnyThreadOrder) {
  HostRunner& runner = HostSchedules::runner();
  const std::vector<Job> jobs = sample_jobs(runner.info(), DType::f32);
  ASSERT_TRUE(runner.compile(jobs).ok());
  for (const Job& job : jobs) {
    const HostData data = job.data();
    const auto first = must_run(runner, job, data);
    for (const std::uint64_t order : {0U, 7U, 991U}) {
      EXPECT_TRUE(same_output({.problem = job.problem, .seed = job.seed, .what = job.what()}, first,
                              must_run(runner, job, data, order)));
    }
  }
}

TEST_F(HostSchedules, WideOffsetsGiveTheSameBits) {
  HostRunner& runner = HostSchedules::runner();
  std::vector<Job> jobs = sample_jobs(runner.info(), DType::f16), wide = jobs;
  for (Job& job : wide) job.instead = {{"INDEX64", 1}};
  std::vector<Job> both = jobs;
  both.insert(both.end(), wide.begin(), wide.end());
  ASSERT_TRUE(runner.compile(both).ok());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const HostData data = jobs[i].data();
    EXPECT_TRUE(same_output({.problem = jobs[i].problem, .seed = jobs[i].seed, .what = wide[i].what()},
                            must_run(runner, jobs[i], data), must_run(runner, wide[i], data)));
  }
}

TEST_F(HostSchedules, ResidualInPlace) {
  HostRunner& runner = HostSchedules::runner();
  std::vector<Job> jobs = sample_jobs(runner.info(), DType::bf16);
  for (Job& job : jobs) {
    job.problem.residual = job.in_place = true;
    job.problem.bias = Bias::f32;
  }
  run_all(runner, jobs);
}

// Windows that lie wholly in the padding: every schedule, on both sides of both axes.
TEST_F(HostSchedules, PadsBeyondTheKernel) {
  HostRunner& runner = HostSchedules::runner();
  std::vector<Job> jobs;
  std::set<std::string_view> seen = {"dw_fold"};  // refuses them all
  for (const char* name :
       {"dw_k1_pad1", "dw_k1_pads", "dw_pad_beyond", "dw_pad_beyond_s2", "dw_pad_beyond_d2", "dw_pad_beyond_5x3",
        "dw_pad_beyond_5x5", "dw_pad_beyond_1x1", "dw_11x9_pad_beyond", "mult3_pad_beyond", "mult8_pad_beyond",
        "grp4_pad_beyond", "grp8_pad_beyond", "grp2_k1_pad2"}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      ConvProblem problem = test_problem(name);
      problem.layout = layout;
      problem.dtype = DType::f16;
      problem.bias = Bias::f32;
      for (const Schedule* schedule : all_schedules()) {
        if (schedule->can_run(problem, runner.info())) continue;
        seen.insert(schedule->name);
        Config config = schedule->configs(problem, runner.info()).back();
        jobs.push_back({.problem = problem, .schedule = schedule, .config = std::move(config), .seed = test_seed(9)});
      }
    }
  }
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {  // what takes no 16-bit type
    for (const Schedule* const schedule : {&grp_outer, &grp_tf32, &mult_tf32}) {
      ConvProblem problem = test_problem("grp8_pad_beyond");
      problem.layout = layout;
      problem.dtype = DType::f32;
      Config config = schedule->configs(problem, runner.info()).back();
      jobs.push_back({.problem = problem, .schedule = schedule, .config = std::move(config), .seed = test_seed(9)});
      seen.insert(schedule->name);
    }
  }
  EXPECT_EQ(seen.size(), all_schedules().size());
  run_all(runner, jobs);
}

// Exact data, so that the order in which a width adds up cannot show: every alignment class must give the same bits.
TEST_F(HostSchedules, AlignmentDoesNotChangeResults) {
  HostRunner& runner = HostSchedules::runner();
  std::vector<Job> jobs;
  for (const Job& aligned : sample_jobs(runner.info(), DType::f16)) {
    for (const std::int32_t align : {16, 8, 4, 2}) {
      Job job = aligned;
      job.problem.align = align;
      if (job.schedule->can_run(job.problem, runner.info())) continue;  // one that only moves 16 bytes at once
      job.config = job.schedule->configs(job.problem, runner.info()).front();
      job.fill = Fill::integer;
      jobs.push_back(std::move(job));
    }
  }
  run_all(runner, jobs);
}

// The other tests are worth something only if a wrong kernel does not get past them.
TEST_F(HostSchedules, AWrongKernelIsCaught) {
  HostRunner& runner = HostSchedules::runner();
  Job job{.problem = test_problem("dw_d1x4"), .schedule = find_schedule("dw_flat"), .seed = test_seed(8)};
  job.config = job.schedule->configs(job.problem, runner.info()).front();
  job.instead = {{"DIL_W", 3}};
  ASSERT_TRUE(runner.compile({&job, 1}).ok());
  for (const Fill fill : {Fill::random, Fill::integer}) {
    job.fill = fill;
    const HostData data = job.data();
    EXPECT_FALSE(output_is_right({job.problem, job.seed, job.fill, job.schedule->arithmetic, job.what()}, data,
                                 must_run(runner, job, data)));
  }
}

}  // namespace
}  // namespace sl::test
