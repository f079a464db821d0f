#include <algorithm>

#include "schedules/schedule.hpp"

namespace sl {
namespace {

bool named(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Refusal refusal_of(const Schedule& schedule, const ConvProblem& problem, const DeviceInfo& device,
                   std::span<const std::string> only, std::span<const std::string> disabled) {
  if (!only.empty() && !named(only, schedule.name)) return "not among the schedules asked for";
  if (named(disabled, schedule.name)) return "disabled by the environment";
  if (!device_supports(schedule.min_capability, device)) {
    return "capability = " + std::to_string(device.capability) + " of " + device.name + " (" + device.backend +
           "): needs " + std::to_string(schedule.min_capability);
  }
  return schedule.can_run(problem, device);
}

/// How many configurations the schedule at this place of the preference gets. NVRTC takes its front end one program at
/// a time, about 40 ms each, so 20 candidates and more eat the budget of a first use before one of them is timed.
std::size_t share(std::size_t place) {
  constexpr std::size_t shares[] = {6, 4, 2};
  return place < std::size(shares) ? shares[place] : 1;
}

}  // namespace

CandidateSet candidates(const ConvProblem& problem, const DeviceInfo& device, std::span<const std::string> only,
                        std::span<const std::string> disabled) {
  CandidateSet set;
  std::vector<std::pair<const Schedule*, std::vector<Config>>> spaces;
  std::size_t longest = 0;
  for (const Schedule* schedule : all_schedules()) {
    if (Refusal refusal = refusal_of(*schedule, problem, device, only, disabled)) {
      set.refusals.push_back({std::string(schedule->name), *std::move(refusal)});
      continue;
    }
    std::vector<Config> configs = schedule->configs(problem, device);
    configs.resize(std::min(configs.size(), share(spaces.size())));
    longest = std::max(longest, configs.size());
    spaces.emplace_back(schedule, std::move(configs));
  }
  // The best guess of every schedule, then the second of every one: whatever a budget leaves time for, no schedule goes
  // untried because another has many configurations.
  for (std::size_t rank = 0; rank < longest; ++rank) {
    for (auto& [schedule, configs] : spaces) {
      if (rank < configs.size()) set.candidates.push_back({schedule, std::move(configs[rank])});
    }
  }
  return set;
}

Digest CandidateSet::digest() const {
  KeyBuilder key;
  for (const Candidate& candidate : candidates) {
    key.add("schedule", candidate.schedule->digest().hex());
    key.add("config", candidate.config.to_string());
  }
  return key.finish();
}

}  // namespace sl
