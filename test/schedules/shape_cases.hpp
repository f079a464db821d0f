// Shapes of a schedule that pay on large problems only, so that the problem table, which is small, never chooses them.
#pragma once

#include <span>
#include <vector>

#include "schedules/host_runner.hpp"

namespace sl::test {

struct ShapeCase {
  const char* problem;
  const char* config;
};
/// test_jobs() of each. Skips where there is no compiler.
void test_shapes(const Schedule&, std::span<const ShapeCase>);

/// Runs each on the host device, on random and on integer data, the latter in another order of threads and, where there
/// is a residual, in place, against the double reference.
void test_jobs(HostRunner&, std::vector<Job>);

}  // namespace sl::test
