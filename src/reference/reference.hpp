// The double-precision convolution with its rounding bound: ground truth for every schedule and every candidate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"

namespace sl {

/// Raw tensors of one problem in its dtype and layouts, on the CPU. bias is in x's dtype or f32 as problem.bias says;
/// empty where absent. Not owned by the functions below. The problem given with them must be valid.
struct HostTensors {
  std::span<const std::byte> x, w, bias, z;
};

/// Owning storage for the same.
struct HostData {
  std::vector<std::byte> x, w, bias, z;
  HostTensors view() const { return {x, w, bias, z}; }
};

enum class Fill {
  random,   ///< uniform in [-1, 1), rounded to dtype
  integer,  ///< small integers: every partial sum is exact in fp32, in any order, and the result in the output dtype
            ///< where it can be. f32: one factor of each product has 12 significant bits (x in even channels, w in odd
            ///< ones), one more than TF32 keeps. Filters of more than 1024 taps have zeros in between
};

/// Data for a problem from a seed: the same on every machine, whatever the number of threads.
HostData make_data(const ConvProblem&, std::uint64_t seed, Fill = Fill::random);

/// What the bound allows for (design: numbers are checked against a bound, not a tolerance).
enum class Arithmetic { fma, mma };
struct BoundOptions {
  Arithmetic arithmetic = Arithmetic::fma;
  bool exact = false;  ///< integer data: demand bit equality with the rounded double result (+0 equals -0); for
                       ///< activations that fp32 cannot compute exactly, the bound with no accumulation error
};

struct CheckResult {
  std::int64_t checked = 0;
  std::int64_t wrong = 0;  ///< outputs outside the bound; a NaN is right only where an Inf or NaN in the data makes
                           ///< the reference NaN
  double error_over_bound = 0;  ///< largest |y - phi(a)| / allowed; infinity where a NaN or a wrong infinity stands
  std::string first_wrong;      ///< "y[n,k,p,q] = got, want, bound" of the first wrong output
  bool ok() const { return wrong == 0; }
};

/// Compares y (problem's dtype and layout, y_elements() of them) with the double reference, output by output, on all
/// CPU cores; at most `max_outputs` outputs, corners and edges of planes and a spread over the tensor, are checked (0 =
/// all). The bound is written down in reference/bound.hpp. Tensors that are too small make everything wrong. Empty
/// problems check nothing and are right.
CheckResult check_output(const ConvProblem&, const HostTensors&, std::span<const std::byte> y, BoundOptions = {},
                         std::int64_t max_outputs = 0);

/// The rounded reference result in the problem's dtype (one rounding from double), y_elements() of them; empty where a
/// tensor is too small. NaN and Inf in x reach the outputs whose window holds them and no other; a weight whose tap
/// lies in the padding is not read.
std::vector<std::byte> reference_output(const ConvProblem&, const HostTensors&);

// Scalar conversions, round to nearest even; NaN stays NaN.
float half_to_float(std::uint16_t);
std::uint16_t float_to_half(float);
std::uint16_t double_to_half(double);
float bfloat_to_float(std::uint16_t);
std::uint16_t double_to_bfloat(double);

/// Reads element i of a raw tensor as double / writes a double rounded once.
double load_element(DType, const std::byte* base, std::int64_t index);
void store_element(DType, std::byte* base, std::int64_t index, double value);

/// Element offsets under a layout.
std::int64_t x_offset(const ConvProblem&, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w);
std::int64_t w_offset(const ConvProblem&, std::int64_t k, std::int64_t c_in_group, std::int64_t r, std::int64_t s);
std::int64_t y_offset(const ConvProblem&, std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q);

}  // namespace sl
