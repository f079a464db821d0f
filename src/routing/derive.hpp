// From measured calls to a routing table: the fewest boxes in the space of features that hold winners only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "device/device_info.hpp"

namespace sl {

struct MeasuredCall {
  ConvProblem problem;
  double time_us = 0;                      ///< Sluice's
  double baseline_us = 0;                  ///< of the fastest rival, in the same run
  std::vector<std::string> networks = {};  ///< that make the call, where known
};

struct DeriveOptions {
  double margin = 0.05;        ///< a call is won when it is faster by this much; more than the noise of a measurement
  std::int64_t min_cases = 2;  ///< a rule from fewer measured calls is left out
};

/// Conditions of one rule in terms of what was measured: of a feature of the kernel's shape the values that occurred
/// and nothing in between, of a size the range that occurred.
struct DerivedRule {
  std::string name, when_json;
  std::vector<std::size_t> cases;  ///< indices of the measured calls inside, all of them won
  double min_speedup = 0, median_speedup = 0;
};

/// Rules in the order of how many calls they hold. Greedy: each takes a won call that no rule has yet, then the winners
/// that bring most others with them, as long as no lost call comes inside: first those that no rule has yet, then all
/// (rules overlap). Deterministic.
std::vector<DerivedRule> derive_rules(std::span<const MeasuredCall>, const DeriveOptions&);

/// The table as JSON text: the rules with their evidence, limited to what was measured.
std::string derived_table(std::span<const MeasuredCall>, std::span<const DerivedRule>, const DeviceInfo&,
                          const std::string& baseline, const std::string& versions, const std::string& note);

/// What rules cost on calls they were not derived from.
struct Regret {
  std::int64_t calls = 0, taken = 0;
  std::int64_t slower = 0;   ///< taken although the baseline was faster by more than `noise`
  double over_oracle = 1;    ///< geometric mean of time by the rules / time of the better choice
  double baseline_over = 1;  ///< the same of always keeping
  std::string worst;         ///< the call lost most, with both times; empty where none was slower
};
struct LeftOutRegret {
  Regret regret;
  std::string by;         ///< what was left out in turn: "networks" or "shapes"
  std::size_t turns = 0;  ///< how often
};
/// Leaves out a network with every call of its shapes, where calls name networks; else a fifth of the shapes (all
/// batches, types and layouts of a shape together). Derives from the rest, decides what was left out; each in turn.
LeftOutRegret cross_validate(std::span<const MeasuredCall>, const DeriveOptions&, double noise);
/// The same without leaving anything out: how much the rules give away on what they were made from.
Regret regret_of(std::span<const DerivedRule>, std::span<const MeasuredCall>, double noise);

}  // namespace sl
