#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "routing/features.hpp"
#include "routing/lint.hpp"

namespace sl {
namespace {

/// What the branches on the way to a node leave possible.
struct Possible {
  std::map<std::string, std::pair<double, double>> numbers;  ///< above first, at most second
  std::map<std::string, std::string> is;
  std::map<std::string, std::set<std::string>> is_not;
};

class TreeLint {
 public:
  TreeLint(const Tree& tree, std::string where, std::vector<Finding>& findings)
      : tree_(tree), where_(std::move(where)), findings_(findings) {}

  void run() {
    if (!tree_.empty()) look(0, {});
  }

 private:
  void look(std::size_t at, const Possible& possible) {
    const TreeNode& node = tree_[at];
    if (node.feature.empty()) return;
    Possible yes = possible;
    Possible no = possible;
    if (!node.is.empty()) {
      const auto known = possible.is.find(node.feature);
      const auto not_it = possible.is_not.find(node.feature);
      if (known != possible.is.end()) dead(node, known->second == node.is ? "no" : "yes");
      if (not_it != possible.is_not.end() && not_it->second.contains(node.is)) dead(node, "yes");
      yes.is[node.feature] = node.is;
      no.is_not[node.feature].insert(node.is);
    } else {
      constexpr double infinite = std::numeric_limits<double>::infinity();
      const auto [above, most] = yes.numbers.try_emplace(node.feature, -infinite, infinite).first->second;
      if (node.at_most <= above) dead(node, "yes");
      if (node.at_most >= most) dead(node, "no");
      yes.numbers[node.feature] = {above, std::min(most, node.at_most)};
      no.numbers[node.feature] = {std::max(above, node.at_most), most};
    }
    look(node.yes, yes);
    look(node.no, no);
  }

  void dead(const TreeNode& node, const std::string& side) {
    findings_.push_back(
        {true, where_, "a branch on " + node.feature + " after another one: nothing reaches its \"" + side + "\""});
  }

  const Tree& tree_;
  std::string where_;
  std::vector<Finding>& findings_;
};

}  // namespace

std::vector<Finding> lint(const Heuristic& heuristic) {
  std::vector<Finding> findings;
  std::set<std::string> known;
  for (const ScheduleTrees& trees : heuristic.schedules()) {
    known.insert(trees.name);
    const std::string where = "schedule " + trees.name;
    if (find_schedule(trees.name)->digest() != trees.build) {
      findings.push_back({false, where, "learned from another build of it: its times may be others now"});
    }
    TreeLint(trees.schedule, where, findings).run();
    TreeLint(trees.config, where + ", config", findings).run();
  }
  for (const Schedule* schedule : all_schedules()) {
    if (!known.contains(std::string(schedule->name))) {
      findings.push_back(
          {false, "schedule " + std::string(schedule->name), "not in the model: its candidates come last"});
    }
  }
  const PickQuality& quality = heuristic.evidence().quality;
  if (quality.picked >= quality.default_order) {
    findings.push_back({false, "evidence", "on calls left out it picked no better than the default order"});
  }
  return findings;
}

}  // namespace sl
