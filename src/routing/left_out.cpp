#include "routing/left_out.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

namespace sl {

std::string shape_of(const ConvProblem& v) {
  std::string text;
  for (const std::int64_t field : {v.c, v.k, v.groups, v.h, v.w, v.r, v.s, v.stride_h, v.stride_w, v.dil_h, v.dil_w})
    text += std::to_string(field) + ",";
  return text;
}

std::vector<std::size_t> folds_by_shape(const std::vector<ConvProblem>& problems) {
  std::map<std::string, std::size_t> fold_of;
  for (const ConvProblem& problem : problems) fold_of.emplace(shape_of(problem), 0);
  std::size_t turn = 0;
  for (auto& [shape, fold] : fold_of) fold = turn++ % shape_folds;
  std::vector<std::size_t> folds;
  for (const ConvProblem& problem : problems) folds.push_back(fold_of[shape_of(problem)]);
  return folds;
}

std::size_t count_shapes(const std::vector<ConvProblem>& problems) {
  std::set<std::string> shapes;
  for (const ConvProblem& problem : problems) shapes.insert(shape_of(problem));
  return shapes.size();
}

LeftOutGroups left_out_groups(const std::vector<ConvProblem>& problems,
                              std::span<const std::vector<std::string>> networks) {
  const bool by_network =
      std::any_of(networks.begin(), networks.end(), [](const auto& names) { return !names.empty(); });
  LeftOutGroups result{by_network ? "networks" : "shapes", {}};
  const std::vector<std::size_t> folds = folds_by_shape(problems);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (!by_network) result.groups["a fifth of the shapes, " + std::to_string(folds[i] + 1)].push_back(i);
    for (const std::string& network : networks[i]) result.groups[network].push_back(i);
  }
  return result;
}

std::vector<std::size_t> all_but(std::size_t count, const std::vector<std::size_t>& left_out) {
  std::vector<std::size_t> all(count), rest;
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::set_difference(all.begin(), all.end(), left_out.begin(), left_out.end(), std::back_inserter(rest));
  return rest;
}

}  // namespace sl
