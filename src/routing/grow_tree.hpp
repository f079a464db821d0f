// Growing small regression trees that people can read: the branch that explains most comes next, over several trees
// together, so that branches are spent where they tell something.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "routing/heuristic.hpp"

namespace sl {

/// What a tree may branch on: a number, or (where `word` is not empty) 1 where a name is that word, else 0.
struct TreeColumn {
  std::string feature, word;
  std::vector<double> values;  ///< one a sample
};

/// What one tree is grown from.
struct TreeSamples {
  std::vector<TreeColumn> columns;
  std::vector<double> target, weight;  ///< one a sample; weights are above 0
};

/// Trees grown side by side. Deterministic: equal gains go to the earlier tree, node, column and bound.
class Grove {
 public:
  /// At most `branches` over all trees; a branch leaves at least `least` samples on either side. Requires a sample in
  /// every tree.
  Grove(const std::vector<TreeSamples>&, std::size_t branches, std::size_t least);

  /// That were worth it, at most what was asked for.
  std::size_t branches() const { return grown_; }
  /// One tree as it was after the first `branches` of all trees. A leaf's value is `value` of its weighted mean target.
  Tree tree(std::size_t which, std::size_t branches, double (*value)(double mean, std::int64_t cases)) const;

 private:
  struct Node {
    std::vector<std::size_t> samples;
    double mean = 0;
    // The best branch there is, where gain > 0.
    double gain = 0, at_most = 0;
    std::size_t column = 0;
    // Taken as the order-th of all trees (from 1), 0 = not.
    std::size_t order = 0, yes = 0, no = 0;
  };
  using Nodes = std::vector<Node>;

  static Node make_node(const TreeSamples&, std::vector<std::size_t> samples, std::size_t least);
  static void branch(const TreeSamples&, Nodes&, std::size_t at, std::size_t order, std::size_t least);
  void copy(const Nodes&, std::size_t which, std::size_t at, std::size_t branches,
            double (*value)(double, std::int64_t), Tree& out) const;

  std::vector<Nodes> trees_;
  std::vector<std::vector<std::pair<std::string, std::string>>> names_;  // of the columns: feature, word
  std::size_t grown_ = 0;
};

}  // namespace sl
