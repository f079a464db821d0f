#include "dispatch/triage.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace sl {
namespace {

/// Keeps the size-generic candidates, unless there are none: serving beats a bound on memory.
void drop_sized(CandidateSet& set) {
  const auto sized = [](const Candidate& candidate) { return !candidate.schedule->size_generic; };
  for (auto* list : {&set.candidates, &set.with_untested}) {
    if (!std::all_of(list->begin(), list->end(), sized)) std::erase_if(*list, sized);
  }
}

/// The candidates a rule wants, in its order of preference.
CandidateSet wanted(const ConvProblem& problem, const DeviceInfo& device, std::span<const std::string> only,
                    const TriageRules& rules) {
  CandidateSet set = candidates(problem, device, only, rules.disabled_schedules, rules.sanitized);
  const auto rank = [&](const Candidate& candidate) {
    return std::find(only.begin(), only.end(), candidate.schedule->name) - only.begin();
  };
  for (auto* list : {&set.candidates, &set.with_untested}) {
    std::stable_sort(list->begin(), list->end(),
                     [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  }
  return set;
}

void conclude(Triage& result, Triage::Outcome outcome, std::string reason) {
  result.outcome = outcome;
  result.record.route = name(outcome);
  if (!reason.empty()) result.record.reason = std::move(reason);
}

Triage::Outcome without_sluice(Regular regular) {
  return regular == Regular::yes ? Triage::Outcome::keep : Triage::Outcome::reject;
}

}  // namespace

std::string_view name(Triage::Outcome outcome) {
  switch (outcome) {
    case Triage::Outcome::take:
      return "take";
    case Triage::Outcome::keep:
      return "keep";
    case Triage::Outcome::reject:
      break;
  }
  return "reject";
}

std::string signature(const ConvProblem& problem, const DeviceInfo& device) {
  return problem.to_string() + " on " + device.name;
}

Triage triage(const ConvProblem& problem, const DeviceInfo& device, Regular regular, const TriageRules& rules,
              bool size_generic_only) {
  Triage result;
  Decision& record = result.record;
  record.problem = problem.to_string();
  record.device = device.name;
  record.searched = rules.searched;
  record.table = rules.table->origin();
  result.tuned_for = problem.batch_bucket();

  std::vector<std::string> only;
  if (!rules.force_schedule.empty()) only.push_back(rules.force_schedule);
  Preflight preflight = sl::preflight(problem, device, regular, only, rules.disabled_schedules, rules.sanitized);
  // What only a child may try may have been tried in one: whether a decision says so is not known here.
  if (preflight.verdict == Verdict::unsupported && !preflight.set.empty())
    preflight.verdict = regular == Regular::yes ? Verdict::optional : Verdict::required;
  record.verdict = preflight.verdict;
  record.refusals = preflight.set.refusals;
  if (!rules.off.empty()) {
    record.rule = "off";
    conclude(result, without_sluice(regular), rules.off);
    return result;
  }
  if (preflight.verdict == Verdict::unsupported) {
    conclude(result, without_sluice(regular), std::move(preflight.reason));
    return result;
  }

  const Route& route = result.route = rules.table->decide(problem, device);
  record.rule = route.rule;
  record.table = route.table;
  if (!route.take && !rules.force_take && regular == Regular::yes) {
    conclude(result, Triage::Outcome::keep, "the routing table keeps this call (" + route.rule + ")");
    return result;
  }
  if (route.take && only.empty()) only = route.schedules;
  // Preflight has asked the same question where the rule names nothing and the batch is its bucket's.
  const bool asked = result.tuned_for == problem && (only.empty() || !rules.force_schedule.empty());
  result.set = asked ? preflight.set : wanted(result.tuned_for, device, only, rules);
  if (result.set.empty()) {
    result.tuned_for = problem;
    result.set = wanted(problem, device, only, rules);
  }
  // A REQUIRED call has nothing else to go to than what the rule does not name.
  if (result.set.candidates.empty() && regular == Regular::no && !preflight.set.candidates.empty()) {
    result.tuned_for = problem;
    result.set = std::move(preflight.set);
  }
  if (result.set.empty()) {
    record.refusals = result.set.refusals;
    conclude(result, without_sluice(regular), "no schedule that rule \"" + route.rule + "\" names can run the call");
    return result;
  }
  if (size_generic_only) drop_sized(result.set);
  record.candidate_set = result.set.digest();
  result.key = KeyBuilder()
                   .add("decision", decision_key(result.tuned_for, device).hex())
                   .add("candidates", record.candidate_set.hex())
                   .finish();
  conclude(result, Triage::Outcome::take, {});
  return result;
}

}  // namespace sl
