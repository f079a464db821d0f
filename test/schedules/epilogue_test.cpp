// What the epilogue makes of extreme sums, and what non-finite weights do where a window touches the padding.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "schedules/host_runner.hpp"
#include "support/check.hpp"
#include "support/problems.hpp"

namespace sl::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Every schedule x layout that takes `problem`, each with its first configuration.
std::vector<Job> jobs_of(const HostRunner& runner, ConvProblem problem) {
  std::vector<Job> jobs;
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    problem.layout = layout;
    for (const Schedule* schedule : all_schedules()) {
      if (schedule->can_run(problem, runner.info())) continue;
      Config config = schedule->configs(problem, runner.info()).front();
      jobs.push_back({.problem = problem, .schedule = schedule, .config = std::move(config), .seed = test_seed(11)});
    }
  }
  return jobs;
}

class Epilogue : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  }

  /// Runs every job on its data after `change`; hands both to `check`.
  using Check = std::function<void(const Job&, const HostData&, const std::vector<std::byte>& y)>;
  void run(const std::vector<Job>& jobs, const std::function<void(const Job&, HostData&)>& change, const Check& check) {
    const Status compiled = runner.compile(jobs);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    for (const Job& job : jobs) {
      HostData data = job.data();
      change(job, data);
      const auto y = runner.run(job, data);
      ASSERT_TRUE(y.ok()) << job.what() << ": " << y.error().message;
      check(job, data, *y);
    }
  }

  HostRunner runner;
};

/// x is `values` in turn and every weight 1, so that the sums of a 1x1 depthwise convolution are the values.
void pass_through(const ConvProblem& v, HostData& data, std::span<const float> values) {
  for (std::int64_t i = 0; i < v.x_elements(); ++i) {
    store_element(v.dtype, data.x.data(), i, static_cast<double>(values[static_cast<std::size_t>(i) % values.size()]));
  }
  for (std::int64_t i = 0; i < v.w_elements(); ++i) store_element(v.dtype, data.w.data(), i, 1.0);
}

void expect_right(const Job& job, const HostData& data, const std::vector<std::byte>& y) {
  EXPECT_TRUE(output_is_right({job.problem, job.seed, job.fill, job.schedule->arithmetic, job.what()}, data, y));
}

TEST_F(Epilogue, HardSwishOfLargeSumsDoesNotOverflow) {
  ConvProblem problem = test_problem("dw_1x1");
  problem.activation = Activation::hard_swish;
  constexpr float values[] = {1e38F, 3.4e38F, -1e38F, 3.0F, 2.9999998F, -3.0F, -2.9999998F, 1e-38F, 6e37F, -0.1F, 1.7F};
  run(
      jobs_of(runner, problem), [&](const Job& job, HostData& data) { pass_through(job.problem, data, values); },
      [](const Job& job, const HostData& data, const std::vector<std::byte>& y) {
        expect_right(job, data, y);
        for (std::int64_t i = 0; i < job.problem.y_elements(); ++i) {
          const double x = load_element(DType::f32, data.x.data(), i), got = load_element(DType::f32, y.data(), i);
          ASSERT_TRUE(std::isfinite(got)) << job.what() << ": hard_swish(" << x << ") = " << got;
          ASSERT_TRUE(x < 3.0 || got == x) << job.what() << ": hard_swish(" << x << ") = " << got;
        }
      });
}

TEST_F(Epilogue, ClipMayBeBoundedOnOneSideOnly) {
  ConvProblem below = test_problem("dw_1x1");
  below.activation = Activation::clip;
  ConvProblem above = below, neither = below;
  below.alpha = 0, below.beta = infinity;
  above.alpha = -infinity, above.beta = 6;
  neither.alpha = -infinity, neither.beta = infinity;
  constexpr float values[] = {1e38F, -1e38F, 7.0F, -7.0F, 0.5F, -0.5F, infinity, -infinity};
  std::vector<Job> jobs;
  for (const ConvProblem& problem : {below, above, neither}) {
    ASSERT_TRUE(validate(problem).ok()) << validate(problem).error().message;
    for (Job& job : jobs_of(runner, problem)) jobs.push_back(std::move(job));
  }
  run(
      jobs, [&](const Job& job, HostData& data) { pass_through(job.problem, data, values); },
      [](const Job& job, const HostData& data, const std::vector<std::byte>& y) {
        expect_right(job, data, y);
        const float low = job.problem.alpha, high = job.problem.beta;
        for (std::int64_t i = 0; i < job.problem.y_elements(); ++i) {
          const auto x = static_cast<float>(load_element(DType::f32, data.x.data(), i));
          ASSERT_EQ(load_element(DType::f32, y.data(), i), std::min(std::max(x, low), high)) << job.what();
        }
      });
}

/// Whether a tap of the window of output row or column `out` lies outside the input.
bool touches_padding(std::int64_t out, std::int64_t stride, std::int64_t pad, std::int64_t effective, std::int64_t in) {
  return out * stride < pad || out * stride - pad + effective > in;
}

// With an infinite weight, windows inside the input are as IEEE arithmetic has it in every schedule. Those that touch
// the padding may be NaN: some schedules skip taps outside, others multiply them by 0. Nothing else is promised.
TEST_F(Epilogue, InfiniteWeightsCostAtMostTheOutputsThatTouchPadding) {
  std::vector<Job> jobs;
  for (const char* name : {"dw_3x3_same", "mult3", "mult24", "grp4"}) {
    for (Job& job : jobs_of(runner, test_problem(name))) jobs.push_back(std::move(job));
  }
  const auto infinite_corner = [](const Job& job, HostData& data) {
    const ConvProblem& v = job.problem;
    for (std::int64_t i = 0; i < v.x_elements(); ++i) store_element(v.dtype, data.x.data(), i, 1.0);
    store_element(v.dtype, data.w.data(), w_offset(v, 0, 0, 0, 0), static_cast<double>(infinity));
  };
  run(jobs, infinite_corner, [](const Job& job, const HostData& data, const std::vector<std::byte>& y) {
    const ConvProblem& v = job.problem;
    const auto want = reference_output(v, data.view());
    for (std::int64_t n = 0; n < v.n; ++n) {
      for (std::int64_t k = 0; k < v.k; ++k) {
        for (std::int64_t p = 0; p < v.p; ++p) {
          for (std::int64_t q = 0; q < v.q; ++q) {
            const std::int64_t at = y_offset(v, n, k, p, q);
            const double right = load_element(v.dtype, want.data(), at), got = load_element(v.dtype, y.data(), at);
            const bool border = touches_padding(p, v.stride_h, v.pad_top, v.effective_r(), v.h) ||
                                touches_padding(q, v.stride_w, v.pad_left, v.effective_s(), v.w);
            const bool fine = k != 0    ? std::isfinite(got)
                              : !border ? std::isinf(got) && got == right
                                        : std::isnan(got) || std::isfinite(got) || got == right;
            ASSERT_TRUE(fine) << job.what() << ": y[" << k << "," << p << "," << q << "] = " << got << ", not "
                              << right;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace sl::test
