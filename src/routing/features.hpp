// What a routing rule may ask about a problem: numbers and names, each a row of one table (docs/routing.md shows it).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/conv_problem.hpp"
#include "routing/routing.hpp"

namespace sl {

struct NumberFeature {
  std::string_view name, meaning;
  double (*value)(const ConvProblem&);
};

struct NameFeature {
  std::string_view name, meaning;
  std::string_view (*value)(const ConvProblem&);
  bool (*known)(std::string_view word);  ///< whether a word is one of the feature's values
};

std::span<const NumberFeature> number_features();
std::span<const NameFeature> name_features();
const NumberFeature* find_number_feature(std::string_view name);
const NameFeature* find_name_feature(std::string_view name);
std::string feature_list();  ///< every name, comma separated, for messages

/// nullopt = the problem meets the condition; else how it misses it, "n is 512, not in [1, 256]".
std::optional<std::string> missed(const Threshold&, const ConvProblem&);

}  // namespace sl
