#include "schedules/known.hpp"

#include "schedules/schedule.hpp"

namespace sl {
namespace {

Status known(const char* variable, const std::string& name) {
  if (find_schedule(name) != nullptr) return {};
  std::string names;
  for (const Schedule* schedule : all_schedules()) names += (names.empty() ? "" : ", ") + std::string(schedule->name);
  return Error{Code::invalid, std::string(variable) + " names \"" + name + "\", must be one of " + names};
}

}  // namespace

Status known_schedules(const Environment& environment) {
  if (!environment.force_schedule.empty()) SL_TRY(known("SLUICE_FORCE_SCHEDULE", environment.force_schedule));
  for (const std::string& name : environment.disabled_schedules) SL_TRY(known("SLUICE_DISABLE_SCHEDULES", name));
  return {};
}

}  // namespace sl
