// Kernels as they might be written, right and wrong, on the CPU: what the bound must pass and what it must catch.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "reference/reference.hpp"

namespace sl::test {

/// How an emulated kernel computes. Each function rounds where its kind of hardware does.
struct Hardware {
  std::function<float(float)> operand = [](float v) { return v; };                   ///< of x and w before the product
  std::function<float(float, float, float)> fma = [](float x, float w, float sum) {  ///< one tap
    return std::fma(x, w, sum);
  };
  bool backwards = false;  ///< order of the taps
};

Hardware fp32_fma();
Hardware fp32_mul_add();  ///< the product is rounded too
Hardware tf32();          ///< operands cut to 11 significant bits
Hardware fp16_sums();     ///< the running sum is an f16

/// The output of such a kernel, epilogue in fp32, one rounding at the end.
std::vector<std::byte> emulate(const ConvProblem&, const HostData&, const Hardware&);

}  // namespace sl::test
