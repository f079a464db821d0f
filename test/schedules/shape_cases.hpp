// Shapes of a schedule that pay on large problems only, so that the problem table, which is small, never chooses them.
#pragma once

#include <span>

#include "schedules/schedule.hpp"

namespace sl::test {

struct ShapeCase {
  const char *problem, *config;
};
/// Runs each on the host device, on random and on integer data, the latter in another order of threads, against the
/// double reference. Skips where there is no compiler.
void test_shapes(const Schedule &, std::span<const ShapeCase>);

}  // namespace sl::test
