#include <algorithm>

#include "routing/decision_store.hpp"

namespace sl {

bool tried(const Decision& decision) {
  return std::any_of(decision.candidates.begin(), decision.candidates.end(), [&decision](const CandidateRecord& row) {
    return was_timed(row.outcome) && row.schedule == decision.schedule && row.config == decision.config;
  });
}

Match match_level(const Decision& decision, const ConvProblem& problem, const DeviceInfo& device,
                  const std::string& driver, const CandidateSet& set) {
  if (decision.schedule.empty() || decision.device != device.name) return Match::none;
  // A misfiled or hand-edited record: the name it was found under is not proof enough.
  const Result<ConvProblem> recorded = parse(decision.problem);
  if (!recorded.ok() || recorded.value().batch_bucket() != problem.batch_bucket()) return Match::none;

  const Schedule* schedule = find_schedule(decision.schedule);
  if (schedule == nullptr || schedule->digest() != decision.schedule_digest) return Match::none;
  // A schedule with no candidate refused the problem or the device, or the caller disabled it.
  const bool runs =
      has_schedule(set.candidates, schedule) || (tried(decision) && has_schedule(set.with_untested, schedule));
  if (!runs || schedule->can_run(problem, device)) return Match::none;
  const std::optional<Config> config = Config::parse(decision.config);
  if (!config || schedule->fits(problem, *config)) return Match::none;

  // What a child chose among more candidates than this process would try is no weaker for that.
  if (decision.candidate_set != set.digest() &&
      (set.with_untested.empty() || decision.candidate_set != set.digest_with_untested()))
    return Match::other_candidates;
  return decision.driver == driver ? Match::exact : Match::other_driver;
}

}  // namespace sl
