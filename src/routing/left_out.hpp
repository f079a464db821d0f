// What is left out together where something that was learned from calls is tried on others.
#pragma once

#include <cstddef>
#include <map>
#include <span>
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

/// What is left out in turn.
struct LeftOutGroups {
  std::string by;                                          ///< "networks" or "shapes"
  std::map<std::string, std::vector<std::size_t>> groups;  ///< indices of calls in order, by the group's name
};

/// By network, where any call names one (`networks`: of each problem): a network's calls, of which some may be in other
/// networks' groups too; a call without a network is never left out. Else a fifth of the shapes at a time.
LeftOutGroups left_out_groups(const std::vector<ConvProblem>& problems,
                              std::span<const std::vector<std::string>> networks);

/// The indices below `count` that are not in `left_out`, which is in order.
std::vector<std::size_t> all_but(std::size_t count, const std::vector<std::size_t>& left_out);

}  // namespace sl
