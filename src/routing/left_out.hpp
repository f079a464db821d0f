// What is left out together where something that was learned from calls is tried on others.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"

namespace sl {

constexpr std::size_t shape_folds = 5;

/// The fold of each problem, below shape_folds. All batches, types and layouts of one shape are in one: nearly the same
/// call must not be known. Shapes are dealt out in turn, in sorted order.
std::vector<std::size_t> folds_by_shape(const std::vector<ConvProblem>&);

/// What two problems of one shape have in common, as text.
std::string shape_of(const ConvProblem&);

/// How many shapes there are.
std::size_t count_shapes(const std::vector<ConvProblem>&);

}  // namespace sl
