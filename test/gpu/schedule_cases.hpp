// Schedules on a real GPU: which kernels a list of problems needs, and running one against the reference.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reference/reference.hpp"
#include "schedules/schedule.hpp"

namespace sl::test {

/// One launch to check.
struct ScheduleCase {
  ConvProblem problem;
  const Schedule* schedule;
  Config config;
  std::string name() const;
};

/// Every configuration (the first `max_configs`) of `schedule` for each problem that it can run.
std::vector<ScheduleCase> cases_of(const Schedule&, std::span<const ConvProblem>, const DeviceInfo&,
                                   std::size_t max_configs);

/// Compiles the kernels of all cases in batches, then runs each on random and on integer data: y poisoned and fenced by
/// redzones, checked against the reference, and run twice for equal bits; then once with infinities and NaNs in x.
/// Returns how many cases ran.
std::size_t check_cases(std::span<const ScheduleCase>, std::uint64_t seed);

}  // namespace sl::test
