// Schedules beside the winner: the baseline that needs no other library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "routing/decision.hpp"
#include "tuner/contest.hpp"
#include "tuning/verify.hpp"

namespace sl::tool {

/// One schedule with the configuration it is timed in.
struct ScheduleContender {
  std::string schedule, config;
  std::string error;  ///< why it is not timed: "compile: ...", "load: ...", "wrong: ..."; empty where it is
  std::shared_ptr<const Launchable> launchable;
};

/// Its name in the contest.
std::string contender_name(const ScheduleContender&);

/// Compiles, verifies and adds to the contest: of every schedule that can run the problem the configuration that was
/// fastest in tuning (`decision`; the heuristic's where none was timed), or, not `every`, of the base schedule alone.
/// The winner itself is left out: it is timed as the plan. The contest keeps what it needs.
std::vector<ScheduleContender> add_schedules(Session&, Contest&, const Decision&, bool every);

}  // namespace sl::tool
