// Assertions on a kernel's output that say how to repeat a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <span>

#include "reference/reference.hpp"

namespace sl::test {

/// Seed of a test's data; SLUICE_TEST_SEED in the environment shifts all of them.
std::uint64_t test_seed(std::uint64_t base);

/// What was run: goes into the failure message.
struct Run {
  const ConvProblem& problem;
  std::uint64_t seed = 0;
  Fill fill = Fill::random;
  Arithmetic arithmetic = Arithmetic::fma;
  std::string what = {};  ///< schedule and configuration, or whatever made the output
};

/// Every output within the bound; bit for bit where run.fill is integer.
///   EXPECT_TRUE(output_is_right({problem, seed, Fill::random, Arithmetic::fma, "dw_flat tile=4"}, data, y));
testing::AssertionResult output_is_right(const Run& run, const HostData& data, std::span<const std::byte> y);

/// Byte equality; names the first output that differs.
testing::AssertionResult same_output(const Run& run, std::span<const std::byte> expected,
                                     std::span<const std::byte> got);

/// An output buffer for the problem, filled with NaN.
std::vector<std::byte> poisoned_output(const ConvProblem& problem);

}  // namespace sl::test
