#include "dispatch/shapes.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "tuning/timing.hpp"

namespace sl {
namespace {

constexpr std::int64_t largest_bucket = 256;  // of ConvProblem::batch_bucket()

ConvProblem with_batch(ConvProblem problem, std::int64_t n) {
  problem.n = n;
  return problem;
}

/// Of each schedule what stands first.
std::vector<Candidate> first_guesses(const CandidateSet& set) {
  std::vector<Candidate> firsts;
  for (const Candidate& candidate : set.candidates) {
    if (!has_schedule(firsts, candidate.schedule)) firsts.push_back(candidate);
  }
  return firsts;
}

std::string entry_of(const ConvProblem& problem, const Candidate& candidate) {
  return candidate.schedule->kernel(problem, candidate.config).entry();
}

std::set<std::string> entries_of(const ConvProblem& problem, const CandidateSet& set) {
  std::set<std::string> entries;
  for (const Candidate& candidate : set.candidates) entries.insert(entry_of(problem, candidate));
  return entries;
}

}  // namespace

/// The kernels that a decision says were compiled: its winner's and whatever tuning got past the compiler.
Shapes::Kernels Shapes::kernels_of(const ConvProblem& problem, const Decision& decision) {
  Kernels kernels;
  const auto add = [&](const std::string& schedule_name, const std::string& config_text) {
    const Schedule* schedule = find_schedule(schedule_name);
    const std::optional<Config> config = Config::parse(config_text);
    if (schedule == nullptr || !config || schedule->fits(problem, *config)) return;
    kernels.emplace(schedule->kernel(problem, *config).entry(), Candidate{schedule, *config});
  };
  if (!decision.schedule.empty()) add(decision.schedule, decision.config);
  for (const CandidateRecord& row : decision.candidates) {
    const std::string& outcome = row.outcome;
    const bool skipped = outcome.starts_with("skipped") && outcome != skipped_compiled;
    if (skipped || outcome == "untimed" || outcome.starts_with("compile") || took_process(outcome)) continue;
    add(row.schedule, row.config);
  }
  return kernels;
}

void Shapes::remember(const ConvProblem& problem, const Decision& decision) {
  if (decision.partial) return;  // what little time there was for must not narrow every other batch
  Kernels found = kernels_of(problem, decision);
  const Digest shape = with_batch(problem, 1).digest();
  const std::lock_guard lock(mutex_);
  entries_.put(shape).merge(found);
}

CandidateSet Shapes::for_every_batch(const ConvProblem& problem, const DeviceInfo& device, const CandidateSet& set) {
  CandidateSet result = set;
  std::set<std::string> kernels = entries_of(problem, set);
  const std::vector<Candidate> firsts = first_guesses(set);
  for (std::int64_t n = 1; n <= largest_bucket; n *= 2) {
    const ConvProblem other = with_batch(problem, n);
    for (const Candidate& first : firsts) {
      if (first.schedule->can_run(other, device)) continue;
      const std::vector<Config> configs = first.schedule->configs(other, device);
      if (configs.empty() || first.schedule->fits(problem, configs.front())) continue;
      const Candidate candidate{first.schedule, configs.front()};
      if (!kernels.insert(entry_of(problem, candidate)).second) continue;
      result.candidates.push_back(candidate);
      ++result.for_other_batches;
    }
  }
  return result;
}

bool Shapes::has_first_guesses(const ConvProblem& problem, const CandidateSet& some, const CandidateSet& set) {
  const std::set<std::string> kernels = entries_of(problem, some);
  const std::vector<Candidate> firsts = first_guesses(set);
  return std::all_of(firsts.begin(), firsts.end(), [&](const Candidate& first) {
    return !has_schedule(some.candidates, first.schedule) || kernels.contains(entry_of(problem, first));
  });
}

std::optional<CandidateSet> Shapes::compiled(const ConvProblem& problem, const DeviceInfo& device,
                                             const std::string& driver, const DecisionStore* store,
                                             const CandidateSet& set) {
  Kernels known;
  {
    const std::lock_guard lock(mutex_);
    if (const Kernels* const found = entries_.find(with_batch(problem, 1).digest())) known = *found;
  }
  if (known.empty() && store != nullptr) {
    for (std::int64_t n = 1; n <= largest_bucket; n *= 2) {
      if (n == problem.n) continue;
      const ConvProblem other = with_batch(problem, n);
      if (const auto found = store->find(other, device, driver, set); found && !found->decision.partial) {
        known.merge(kernels_of(other, found->decision));
      }
    }
  }
  CandidateSet result;
  for (const Candidate& candidate : set.candidates) {
    if (known.contains(entry_of(problem, candidate))) result.candidates.push_back(candidate);
  }
  const CandidateSet own = result;
  for (const auto& [entry, candidate] : known) {
    const Schedule& schedule = *candidate.schedule;
    if (has_schedule(own.candidates, &schedule) || !has_schedule(set.candidates, &schedule)) continue;
    if (schedule.fits(problem, candidate.config)) continue;
    result.candidates.push_back(candidate);
  }
  if (result.candidates.empty()) return std::nullopt;
  result.refusals = set.refusals;
  return result;
}

}  // namespace sl
