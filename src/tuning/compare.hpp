// Whole-tensor comparison of two candidates' outputs. The double reference looks at a sample; this looks at the rest.
//
// Two correct results need not be equal bit for bit, for the order of summation differs between schedules. Each lies
// within its bound B of the true value phi(a) (docs/numerics: |y - phi(a)| <= B), so two lie within B1 + B2 of each
// other, and a larger difference proves one of them wrong. B needs S = sum|x||w| + |bias| + |z| of that very output,
// which costs a convolution; S' = max|x| * sum|w_k| + |bias_k| + |z| is at least S and costs a table of k entries, so
// the test with S' never drops a correct candidate. For uniform data S' is about twice S.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "reference/reference.hpp"

namespace sl {

/// Upper bound of the rounding error of any output of one problem on given data. Immutable; refers to `data`.
class OutputBound {
 public:
  OutputBound(const ConvProblem&, const HostData& data, double x_max);
  /// How far output `index` (elements, in layout order) may be from the truth when it reads as `value`.
  double at(std::int64_t index, double value, Arithmetic) const;

 private:
  ConvProblem problem_;
  const HostData* data_;
  std::vector<double> magnitude_;  // max|x| * sum|w_k| + |bias_k|, per output channel
  double additions_fma_, additions_mma_, lipschitz_, unit_, tiny_;
  bool transcendental_;
};

struct Difference {
  std::int64_t count = 0;   ///< outputs further apart than both bounds allow
  std::int64_t index = -1;  ///< the first of them, in elements
  double got = 0, want = 0, allowed = 0;
};

/// Compares all of `got` with `want`: equal bytes cost a memcmp, the rest is looked at one by one, on up to `threads`
/// threads where the tensor is large. NaN never passes.
Difference compare_outputs(const ConvProblem&, const OutputBound&, std::span<const std::byte> want, Arithmetic want_by,
                           std::span<const std::byte> got, Arithmetic got_by, int threads);

struct NanScan {
  std::int64_t nans = 0, poisoned = 0;  ///< poisoned: every bit set, as poison leaves it
  std::int64_t first = -1;              ///< element index of the first NaN
};
NanScan scan_nan(DType, std::span<const std::byte>, int threads);

/// "y[n,k,p,q]" of an element index in the problem's layout.
std::string output_name(const ConvProblem&, std::int64_t index);

}  // namespace sl
