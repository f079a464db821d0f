// What the trees of a heuristic are grown from. Private to fitting.
#pragma once

#include <cstdint>
#include <vector>

#include "routing/fit.hpp"
#include "routing/grow_tree.hpp"

namespace sl {

/// The fastest candidate's; requires that one has a time.
double best_time(const TunedCall&);

/// A tree of problems for each schedule that occurs, and where times are known and a choice was there, a tree of its
/// configurations. All are grown once, as large as asked for; model() gives them as they were after fewer branches.
class GrownSchedules {
 public:
  GrownSchedules(const std::vector<const TunedCall*>&, const DeviceInfo&, std::size_t branches, std::size_t least);
  Heuristic model(const DeviceInfo&, std::size_t branches) const;

 private:
  struct Places {
    const Schedule* schedule;
    std::size_t problems;
    std::optional<std::size_t> configs;
  };
  Predicts predicts_;
  std::vector<Places> places_;
  std::vector<TreeSamples> samples_;
  Grove grove_;
};

}  // namespace sl
