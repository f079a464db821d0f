#include "routing/lint.hpp"

namespace sl {

std::vector<Finding> lint(const Sanitized& list) {
  std::vector<Finding> findings;
  for (const Schedule* schedule : all_schedules()) {
    if (!list.has(schedule->name, schedule->digest()))
      findings.push_back({false, "schedule " + std::string(schedule->name), untested_reason(*schedule, list)});
  }
  for (const SanitizerRun& run : list.runs()) {
    for (const SanitizedBuild& build : run.passed) {
      const Schedule* const schedule = find_schedule(build.schedule);
      if (schedule != nullptr && schedule->digest() == build.digest) continue;
      findings.push_back({false, "run of " + run.commit,
                          build.schedule + " " + build.digest.hex() +
                              (schedule == nullptr ? ": no schedule has this name; the entry can go"
                                                   : ": another build than this program's; the entry can go")});
    }
  }
  return findings;
}

}  // namespace sl
