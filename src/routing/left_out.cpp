#include "routing/left_out.hpp"

#include <map>
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

}  // namespace sl
