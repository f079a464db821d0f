// What the kernels of kernels/testing/matrix.cuh must compute, for the host device and for a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sl::test {

struct MatrixCase {
  std::string kernel;  ///< testing_NAME
  std::vector<std::pair<std::string, std::int64_t>> constants;
  std::vector<std::byte> x;
  std::vector<std::uint32_t> want;  ///< words of y
  std::string what() const;
};
/// Every width, K, dtype and transposition; small integers, so that every order of summation gives the same.
std::vector<MatrixCase> matrix_cases();

}  // namespace sl::test
