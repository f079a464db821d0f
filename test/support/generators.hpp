// Random valid problems for RapidCheck, the same in every run; RC_PARAMS="seed=N max_success=M" in the environment
// draws others. Kept apart from problems.hpp: rapidcheck.h is slow to compile.
#pragma once

#include <rapidcheck.h>

#include <cstdint>

#include "core/conv_problem.hpp"

namespace sl::test {

struct SmallProblemOptions {
  std::int64_t max_macs = 100000;
  std::int64_t max_outputs = 4000;
  std::int64_t max_kernel = 11;
  std::int64_t max_dilation = 3;
  std::int64_t max_stride = 4;
  std::int64_t max_channels_per_group = 8;
  std::int64_t max_multiplier = 16;
  std::int64_t max_beyond = 2;  ///< rows and columns of padding further out than a kernel reaches
  bool empty = true;            ///< now and then n = 0
};

/// Valid, normalised problems with every field random, within the bounds. Shrinks towards one 1x1 output of f32 nchw.
rc::Gen<ConvProblem> small_problem(SmallProblemOptions options = {});

/// One of a series that meets every schedule within `most_draws`: the first `any_draws` are any small problem, the
/// others have neither stride nor dilation, which choosy schedules want.
constexpr std::uint64_t any_draws = 200, most_draws = 20000;
ConvProblem drawn_problem(std::uint64_t seed, std::uint64_t draw);

}  // namespace sl::test

template <>
struct rc::Arbitrary<sl::ConvProblem> {
  static Gen<sl::ConvProblem> arbitrary() { return sl::test::small_problem(); }
};
