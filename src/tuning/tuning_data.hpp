// Random tensors for tuning, made quickly however large the problem is.
#pragma once

#include <cstdint>

#include "core/conv_problem.hpp"
#include "reference/reference.hpp"

namespace sl {

struct TuningData {
  HostData host;
  double x_max = 0;  ///< max |x|
};

/// Small problems and Fill::integer: make_data(). Larger: a block of 1,048,573 uniform values in [-1, 1), repeated. The
/// period is prime, so that no row, plane or image of a tensor looks like another, and a wrong index still shows.
TuningData make_tuning_data(const ConvProblem&, std::uint64_t seed, Fill);

}  // namespace sl
