// What is wrong with a table although it can be read: rules that can never match, winners that no longer apply.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "routing/decision.hpp"
#include "routing/heuristic.hpp"
#include "routing/routing.hpp"

namespace sl {

struct Finding {
  bool error = true;  ///< false: worth a look, may be meant
  std::string where;  ///< "rule \"dw-3x3\"", "decision 7 (g8...)"
  std::string what;
};

/// Empty conditions, rules hidden behind an earlier one or outside `measured`, one name twice, evidence that does not
/// support taking (errors); rules that overlap and answer differently, so that their order decides (worth a look).
std::vector<Finding> lint(const RoutingTable&);

/// Winners whose schedule is gone, was another build, cannot run the problem, or has no such configuration; rows
/// without a measured time (worth a look). `device` is the table's.
std::vector<Finding> lint(const std::vector<Decision>&, const DeviceInfo& device);

/// Branches that no problem reaches (errors); schedules that were another build or that the model does not know, and a
/// model that did no better than the default order on calls that it had not seen (worth a look).
std::vector<Finding> lint(const Heuristic&);

/// Schedules of this build that no run lists, so that no process tries them on a GPU; listed builds that are none of
/// this program's (worth a look, both: a kernel that was just written, one that was just changed).
std::vector<Finding> lint(const Sanitized&);

/// The rows of a decision table with its device, without dropping any as DecisionTable does.
struct DecisionList {
  DeviceInfo device;
  std::vector<Decision> decisions;
};
Result<DecisionList> read_decisions(std::string_view json, std::string_view origin);

}  // namespace sl
