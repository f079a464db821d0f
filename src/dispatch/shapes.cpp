#include "dispatch/shapes.hpp"

#include <utility>

namespace sl {
namespace {

constexpr std::int64_t largest_bucket = 256;  // of ConvProblem::batch_bucket()

ConvProblem with_batch(ConvProblem problem, std::int64_t n) {
  problem.n = n;
  return problem;
}

/// Symbols of the kernels that a decision says were compiled: its winner and whatever tuning got past the compiler.
std::set<std::string> compiled_entries(const ConvProblem& problem, const Decision& decision) {
  std::set<std::string> entries;
  const auto add = [&](const std::string& schedule_name, const std::string& config_text) {
    const Schedule* schedule = find_schedule(schedule_name);
    const std::optional<Config> config = Config::parse(config_text);
    if (schedule == nullptr || !config || schedule->fits(problem, *config)) return;
    entries.insert(schedule->kernel(problem, *config).entry());
  };
  if (!decision.schedule.empty()) add(decision.schedule, decision.config);
  for (const CandidateRecord& row : decision.candidates) {
    const std::string& outcome = row.outcome;
    if (outcome == "untimed" || outcome.starts_with("skipped") || outcome.starts_with("compile")) continue;
    add(row.schedule, row.config);
  }
  return entries;
}

}  // namespace

void Shapes::remember(const ConvProblem& problem, const Decision& decision) {
  if (decision.partial) return;  // what little time there was for must not narrow every other batch
  std::set<std::string> found = compiled_entries(problem, decision);
  const Digest shape = with_batch(problem, 1).digest();
  const std::lock_guard lock(mutex_);
  const auto [it, added] = entries_.try_emplace(shape);
  it->second.merge(found);
  if (!added) return;
  order_.push_back(shape);
  while (order_.size() > capacity_) {
    entries_.erase(order_.front());
    order_.pop_front();
  }
}

CandidateSet Shapes::compiled(const ConvProblem& problem, const DeviceInfo& device, const std::string& driver,
                              const DecisionStore* store, const CandidateSet& set) {
  std::set<std::string> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = entries_.find(with_batch(problem, 1).digest()); it != entries_.end()) known = it->second;
  }
  if (known.empty() && store != nullptr) {
    for (std::int64_t n = 1; n <= largest_bucket; n *= 2) {
      if (n == problem.n) continue;
      const ConvProblem other = with_batch(problem, n);
      if (const auto found = store->find(other, device, driver, set); found && !found->decision.partial) {
        known.merge(compiled_entries(other, found->decision));
      }
    }
  }
  CandidateSet result;
  for (const Candidate& candidate : set.candidates) {
    if (known.contains(candidate.schedule->kernel(problem, candidate.config).entry())) {
      result.candidates.push_back(candidate);
    }
  }
  if (result.candidates.empty()) return set;
  result.refusals = set.refusals;
  return result;
}

}  // namespace sl
