// Which outputs a bounded check looks at. Internal to reference.
#pragma once

#include <cstdint>
#include <vector>

#include "core/conv_problem.hpp"

namespace sl {

/// At most `most` different outputs, as ascending indices in the order n, k, p, q: the first and the last, the corners
/// and edges of planes from the first to the last, and a jittered spread over everything. Depends on the sizes only.
/// Requires 0 < most < y_elements().
std::vector<std::int64_t> sample_outputs(const ConvProblem&, std::int64_t most);

}  // namespace sl
