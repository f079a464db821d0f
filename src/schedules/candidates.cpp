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

/// What the problem may be run by: a schedule and its first configurations.
struct Space {
  const Schedule* schedule = nullptr;
  std::vector<Config> configs;
  bool tested = true;
};

/// The best guess of every schedule, then the second of every one: whatever a budget leaves time for, no schedule goes
/// untried because another has many configurations.
std::vector<Candidate> interleaved(const std::vector<Space>& spaces, bool untested_too) {
  std::vector<Candidate> list;
  for (std::size_t rank = 0; rank < share(0); ++rank) {
    std::size_t place = 0;
    for (const Space& space : spaces) {
      if (!space.tested && !untested_too) continue;
      if (rank < std::min(space.configs.size(), share(place++))) list.push_back({space.schedule, space.configs[rank]});
    }
  }
  return list;
}

Digest digest_of(const std::vector<Candidate>& list) {
  KeyBuilder key;
  for (const Candidate& candidate : list) {
    key.add("schedule", candidate.schedule->digest().hex());
    key.add("config", candidate.config.to_string());
  }
  return key.finish();
}

}  // namespace

CandidateSet candidates(const ConvProblem& problem, const DeviceInfo& device, std::span<const std::string> only,
                        std::span<const std::string> disabled, const Sanitized* passed) {
  CandidateSet set;
  std::vector<Space> spaces;
  bool all_tested = true;
  for (const Schedule* schedule : all_schedules()) {
    if (Refusal refusal = refusal_of(*schedule, problem, device, only, disabled)) {
      set.refusals.push_back({std::string(schedule->name), *std::move(refusal)});
      continue;
    }
    Space& space = spaces.emplace_back(schedule, schedule->configs(problem, device));
    space.configs.resize(std::min(space.configs.size(), share(0)));
    space.tested = may_try(*schedule, device, passed);
    if (!space.tested) set.refusals.push_back({std::string(schedule->name), untested_reason(*schedule, *passed)});
    all_tested &= space.tested;
  }
  set.candidates = interleaved(spaces, false);
  if (!all_tested) set.with_untested = interleaved(spaces, true);
  return set;
}

bool has_schedule(std::span<const Candidate> list, const Schedule* schedule) {
  return std::any_of(list.begin(), list.end(),
                     [schedule](const Candidate& candidate) { return candidate.schedule == schedule; });
}

Digest CandidateSet::digest() const { return digest_of(candidates); }

Digest CandidateSet::digest_with_untested() const {
  return digest_of(with_untested.empty() ? candidates : with_untested);
}

}  // namespace sl
