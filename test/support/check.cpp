#include "support/check.hpp"

#include <cstdlib>
#include <limits>

namespace sl::test {
namespace {

std::string how_to_repeat(const Run& run) {
  return "\n  problem: " + run.problem.to_string() + "\n  data: seed " + std::to_string(run.seed) +
         (run.fill == Fill::integer ? ", integer" : ", random") + (run.what.empty() ? "" : "\n  by: " + run.what);
}

}  // namespace

std::uint64_t test_seed(std::uint64_t base) {
  const char* shift = std::getenv("SLUICE_TEST_SEED");
  return shift == nullptr ? base : base + std::strtoull(shift, nullptr, 10);
}

testing::AssertionResult output_is_right(const Run& run, const HostData& data, std::span<const std::byte> y) {
  const BoundOptions options = {run.arithmetic, run.fill == Fill::integer};
  const CheckResult result = check_output(run.problem, data.view(), y, options);
  if (result.ok() && result.checked == run.problem.y_elements()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.wrong << " of " << run.problem.y_elements()
                                     << " outputs are wrong; error over bound " << result.error_over_bound
                                     << "; first wrong: " << result.first_wrong << how_to_repeat(run);
}

testing::AssertionResult same_output(const Run& run, std::span<const std::byte> expected,
                                     std::span<const std::byte> got) {
  if (expected.size() != got.size()) {
    return testing::AssertionFailure() << got.size() << " bytes, must be " << expected.size() << how_to_repeat(run);
  }
  const auto size = size_of(run.problem.dtype);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == got[i]) continue;
    const auto element = static_cast<std::int64_t>(i / size);
    return testing::AssertionFailure() << "element " << element << " in memory is "
                                       << load_element(run.problem.dtype, got.data(), element) << ", must be "
                                       << load_element(run.problem.dtype, expected.data(), element)
                                       << how_to_repeat(run);
  }
  return testing::AssertionSuccess();
}

std::vector<std::byte> poisoned_output(const ConvProblem& problem) {
  std::vector<std::byte> y(static_cast<std::size_t>(problem.y_elements()) * size_of(problem.dtype));
  for (std::int64_t i = 0; i < problem.y_elements(); ++i) {
    store_element(problem.dtype, y.data(), i, std::numeric_limits<double>::quiet_NaN());
  }
  return y;
}

}  // namespace sl::test
