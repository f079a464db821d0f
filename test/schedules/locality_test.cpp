// An infinity or a NaN in x changes exactly the outputs whose window holds it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedules/host_runner.hpp"
#include "support/check.hpp"
#include "support/problems.hpp"

namespace sl::test {
namespace {

struct Pixel {
  std::int64_t n, c, h, w;
};

bool reaches(std::int64_t out, std::int64_t in, std::int64_t stride, std::int64_t pad, std::int64_t dil,
             std::int64_t taps) {
  const std::int64_t distance = in - (out * stride - pad);
  return distance >= 0 && distance % dil == 0 && distance / dil < taps;
}

bool in_window(const ConvProblem& p, const Pixel& x, std::int64_t n, std::int64_t k, std::int64_t row,
               std::int64_t column) {
  return n == x.n && k / p.multiplier() == x.c / p.channels_per_group() &&
         reaches(row, x.h, p.stride_h, p.pad_top, p.dil_h, p.r) &&
         reaches(column, x.w, p.stride_w, p.pad_left, p.dil_w, p.s);
}

/// Outputs in the window of `at` must not be finite, all others must be what they were; where a matrix schedule had to
/// compute one again by other arithmetic, within the rounding bound of it (output_is_right() sees to that).
void expect_local(const Job& job, const Pixel& at, std::span<const std::byte> clean, std::span<const std::byte> got) {
  const ConvProblem& p = job.problem;
  int held = 0;
  for (std::int64_t n = 0; n < p.n; ++n) {
    for (std::int64_t k = 0; k < p.k; ++k) {
      for (std::int64_t row = 0; row < p.p; ++row) {
        for (std::int64_t column = 0; column < p.q; ++column) {
          const std::int64_t offset = y_offset(p, n, k, row, column);
          const double before = load_element(p.dtype, clean.data(), offset);
          const double after = load_element(p.dtype, got.data(), offset);
          const bool inside = in_window(p, at, n, k, row, column);
          held += inside ? 1 : 0;
          const bool again = job.schedule->arithmetic == Arithmetic::mma && std::isfinite(after);
          ASSERT_TRUE(inside ? !std::isfinite(after) : before == after || again)
              << job.what() << ": x[" << at.n << "," << at.c << "," << at.h << "," << at.w << "] is not finite; y[" << n
              << "," << k << "," << row << "," << column << "] = " << after << ", without it " << before;
        }
      }
    }
  }
  ASSERT_GT(held, 0) << job.what();
}

TEST(Locality, NonFiniteInputsStayInTheirWindows) {
  std::string why_not;
  if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  HostRunner runner;
  std::vector<Job> jobs;
  for (const char* name : {"dw_3x3_same", "dw_s2_5x5", "dw_7x7", "dw_d2", "dw_line_31", "mult3", "mult24", "dense_c3",
                           "grp4", "grp3_7x7"}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      ConvProblem problem = test_problem(name);
      problem.layout = layout;
      problem.dtype = DType::f16;
      for (const Schedule* schedule : all_schedules()) {
        if (schedule->can_run(problem, runner.info())) continue;
        Config config = schedule->configs(problem, runner.info()).front();
        jobs.push_back({.problem = problem, .schedule = schedule, .config = std::move(config), .seed = test_seed(5)});
      }
    }
  }
  const Status compiled = runner.compile(jobs);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;

  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Job& job : jobs) {
    const ConvProblem& p = job.problem;
    HostData data = job.data();
    // No weight is zero: zero times infinity would hide nothing, but a zero weight could hide a lost tap.
    for (std::int64_t i = 0; i < p.w_elements(); ++i) {
      if (load_element(p.dtype, data.w.data(), i) == 0.0) store_element(p.dtype, data.w.data(), i, 0.5);
    }
    const auto clean = runner.run(job, data);
    ASSERT_TRUE(clean.ok()) << job.what() << ": " << clean.error().message;
    for (std::int64_t i = 0; i < 8; ++i) {  // every position of an 8-pixel, 8-channel block, and the corners
      const std::int64_t h = std::clamp<std::int64_t>(i < 4 ? 2 : p.h - 2, 0, p.h - 1);
      const Pixel at = {p.n - 1, i % p.c, h, i == 3 ? 1 : i};
      HostData dirty = data;
      store_element(p.dtype, dirty.x.data(), x_offset(p, at.n, at.c, at.h, at.w), i % 2 == 0 ? infinity : nan);
      const auto got = runner.run(job, dirty);
      ASSERT_TRUE(got.ok()) << job.what() << ": " << got.error().message;
      expect_local(job, at, *clean, *got);
      ASSERT_TRUE(output_is_right({p, job.seed, job.fill, job.schedule->arithmetic, job.what()}, dirty, *got));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace sl::test
