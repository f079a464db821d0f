// Shapes of a schedule that pay on large problems only, so that the problem table, which is small, never chooses them.
#pragma once

#include <initializer_list>
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

/// The schedule's first choice for each problem on numbers from the smallest to the largest, some of each in every
/// window: subnormal ones, which the matrix unit takes for 0, and those that have no halves.
void test_sizes_of_numbers(const Schedule&, std::initializer_list<const char*> problems);

}  // namespace sl::test
