#include "dispatch/decide.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace sl {
namespace {

/// Looked at by tuning and found wanting: wrong, does not compile, does not load. Not looked at is not broken.
bool failed(const CandidateRecord& row) {
  const std::string& outcome = row.outcome;
  return outcome != "untimed" && outcome != "timed" && outcome != "slow" && !outcome.starts_with("skipped");
}

bool any_wrong(const std::vector<CandidateRecord>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const CandidateRecord& row) { return row.outcome.starts_with("wrong"); });
}

bool is_row_of(const CandidateRecord& row, const Candidate& candidate) {
  return row.schedule == candidate.schedule->name && row.config == candidate.config.to_string();
}

CandidateRecord row_of(const Candidate& candidate, std::string outcome) {
  CandidateRecord row;
  row.schedule = candidate.schedule->name;
  row.config = candidate.config.to_string();
  row.outcome = std::move(outcome);
  return row;
}

/// A record names every candidate, those that tuning was not given too.
void add_left_out(const CandidateSet& set, std::vector<CandidateRecord>& rows) {
  const std::size_t given = rows.size();
  for (const Candidate& candidate : set.candidates) {
    CandidateRecord row = row_of(candidate, "skipped: not compiled for another batch of this shape");
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(given);
    const bool there = std::any_of(rows.begin(), end, [&row](const CandidateRecord& other) {
      return other.schedule == row.schedule && other.config == row.config;
    });
    if (!there && given > 0) rows.push_back(std::move(row));
  }
}

}  // namespace

bool partial(const std::vector<CandidateRecord>& rows) {
  constexpr int enough_timed = 4;
  const auto timed =
      std::count_if(rows.begin(), rows.end(), [](const CandidateRecord& row) { return was_timed(row.outcome); });
  const bool skipped =
      std::any_of(rows.begin(), rows.end(), [](const CandidateRecord& row) { return ran_out_of_time(row.outcome); });
  return skipped && timed < enough_timed;
}

void add_predictions(const Ranking& ranked, const CandidateSet& set, std::vector<CandidateRecord>& rows) {
  for (std::size_t i = 0; i < ranked.predicted.size(); ++i) {
    for (CandidateRecord& row : rows) {
      if (is_row_of(row, set.candidates[i])) row.predicted = ranked.predicted[i];
    }
  }
}

bool found_broken(const std::vector<CandidateRecord>& rows, const Candidate& candidate) {
  return std::any_of(rows.begin(), rows.end(),
                     [&candidate](const CandidateRecord& row) { return failed(row) && is_row_of(row, candidate); });
}

std::vector<CandidateRecord> untimed_rows(const CandidateSet& set) {
  std::vector<CandidateRecord> rows;
  for (const Candidate& candidate : set.candidates) rows.push_back(row_of(candidate, "untimed"));
  return rows;
}

Decision joined(const Decision& record, const Winner& winner) {
  Decision result = winner.decision;
  result.problem = record.problem;
  result.device = record.device;
  result.verdict = record.verdict;
  result.route = record.route;
  result.rule = record.rule;
  result.table = record.table;
  result.searched = record.searched;
  result.refusals = record.refusals;
  return result;
}

Winner Decider::untimed(const Triage& triage, const Candidate& candidate, Origin origin) const {
  Winner winner{candidate, triage.record, false};
  winner.decision.schedule = candidate.schedule->name;
  winner.decision.config = candidate.config.to_string();
  winner.decision.schedule_digest = candidate.schedule->digest();
  winner.decision.origin = origin;
  winner.decision.driver = driver_;
  winner.decision.candidates = untimed_rows(triage.set);
  return winner;
}

std::optional<CandidateSet> Decider::compiled(const Triage& triage, Shapes& shapes) {
  return shapes.compiled(triage.tuned_for, parts_.device.info(), driver_, parts_.store, triage.set);
}

/// Among what another batch's tuning compiled, if that holds what this batch would choose first: compiling is cheaper
/// than a kernel made for another size.
CandidateSet Decider::tunable(const Triage& triage) {
  std::optional<CandidateSet> known = compiled(triage, tuned_shapes_);
  if (known && Shapes::has_first_guesses(triage.tuned_for, *known, triage.set)) return *std::move(known);
  return Shapes::for_every_batch(triage.tuned_for, parts_.device.info(), triage.set);
}

std::optional<Winner> Decider::guessed(const Triage& triage, const CandidateSet& set,
                                       const std::vector<CandidateRecord>& rows) const {
  const Heuristic* const model = parts_.options.heuristic.get();
  const Ranking ranked = ranking(model, triage.tuned_for, parts_.device.info(), set, triage.set);
  const auto sound = std::find_if(ranked.order.begin(), ranked.order.end(),
                                  [&](std::size_t i) { return !found_broken(rows, set.candidates[i]); });
  if (sound == ranked.order.end()) return std::nullopt;
  Winner winner = untimed(triage, set.candidates[*sound], Origin::heuristic);
  if (model != nullptr) winner.decision.heuristic = model->origin();
  if (!rows.empty()) winner.decision.candidates = rows;
  add_predictions(ranked, set, winner.decision.candidates);
  return winner;
}

/// Nothing to try here, and no decision made elsewhere.
Winner Decider::untested(const Triage& triage) const {
  Winner winner{{}, triage.record, false};
  winner.condemned = "no schedule that can run this call may be tried in this process";
  for (const ScheduleRefusal& refusal : triage.set.refusals) {
    if (has_schedule(triage.set.with_untested, find_schedule(refusal.schedule)))
      winner.condemned += "; " + refusal.schedule + ": " + refusal.reason;
  }
  winner.decision.reason = winner.condemned;
  return winner;
}

Winner Decider::heuristic(const Triage& triage) {
  if (triage.set.candidates.empty()) return untested(triage);
  return *guessed(triage, compiled(triage, served_shapes_).value_or(triage.set), {});
}

Winner Decider::base(const Triage& triage) {
  const Schedule* schedule = base_schedule(triage.tuned_for, parts_.device.info());
  const CandidateSet known = compiled(triage, served_shapes_).value_or(triage.set);
  for (const CandidateSet* set : {&known, &triage.set}) {
    for (const Candidate& candidate : set->candidates) {
      if (candidate.schedule == schedule) return untimed(triage, candidate, Origin::base);
    }
  }
  return untimed(triage, known.candidates.front(), Origin::heuristic);
}

std::optional<Winner> Decider::accept(const Triage& triage, std::optional<Found> found, Origin origin) const {
  if (!found || found->match == Match::none) return std::nullopt;
  if (parts_.options.policy == Policy::pinned && found->match > parts_.options.pinned_accepts) return std::nullopt;
  // A winner whose schedule is no candidate now (another rule, a disabled schedule) does not apply. Its configuration
  // need not be in the pruned list: a longer search may have found it, and match_level() has checked that it fits, and
  // that one which no process may try was tried in a child.
  const Schedule* schedule = find_schedule(found->decision.schedule);
  std::optional<Config> config = Config::parse(found->decision.config);
  const bool named = has_schedule(triage.set.candidates, schedule) || has_schedule(triage.set.with_untested, schedule);
  if (!named || !config) return std::nullopt;
  parts_.counters.decision_hits.fetch_add(1, std::memory_order_relaxed);
  Winner winner{{schedule, *std::move(config)}, std::move(found->decision), false};
  winner.decision.origin = origin;
  winner.decision.match = found->match;
  return winner;
}

std::optional<Winner> Decider::recall(const Triage& triage) const {
  const DeviceInfo& device = parts_.device.info();
  const bool pinned = parts_.options.policy == Policy::pinned;
  if (!pinned && parts_.store != nullptr) {
    std::optional<Found> found = parts_.store->find(triage.tuned_for, device, driver_, triage.set);
    const Policy policy = parts_.options.policy;
    const bool tunes = policy == Policy::first_use || policy == Policy::background;
    const bool stale =
        found && tunes && found->decision.partial && parts_.options.tune.budget.time_ms > found->decision.budget_ms;
    auto winner = accept(triage, stale ? std::nullopt : std::move(found), Origin::store);
    if (winner) return winner;
  }
  if (parts_.table == nullptr) return std::nullopt;
  return accept(triage, parts_.table->find(triage.tuned_for, device, driver_, triage.set),
                pinned ? Origin::pinned : Origin::shipped);
}

Result<Winner> Decider::tuned(const Triage& triage, bool* found_wrong) {
  parts_.counters.tunings.fetch_add(1, std::memory_order_relaxed);
  const CandidateSet set = tunable(triage);
  TuneResult result =
      parts_.options.tuner(parts_.device, parts_.binaries, triage.tuned_for, set, parts_.options.tune, parts_.log);
  add_left_out(triage.set, result.decision.candidates);
  if (result.winner < 0) {
    // Where something was found wrong and nothing right, what was not looked at is not trusted either.
    const bool wrong = any_wrong(result.decision.candidates);
    if (found_wrong != nullptr) *found_wrong = wrong;
    // Where there was no memory or time to measure anything, running an unmeasured kernel is right.
    std::optional<Winner> winner = wrong ? std::nullopt : guessed(triage, set, result.decision.candidates);
    if (!winner) {
      return Error{wrong ? Code::wrong_result : result.failure,
                   "no candidate survived tuning: " + result.decision.reason};
    }
    winner->decision.reason = "not timed: " + result.decision.reason;
    return *std::move(winner);
  }
  Winner winner{set.candidates[static_cast<std::size_t>(result.winner)], std::move(result.decision), false};
  Decision& decision = winner.decision;
  decision.problem = triage.tuned_for.to_string();
  decision.device = parts_.device.info().name;
  decision.verdict = triage.record.verdict;
  decision.route = triage.record.route;
  decision.rule = triage.record.rule;
  decision.table = triage.record.table;
  decision.refusals = triage.record.refusals;
  decision.searched = triage.record.searched;
  decision.schedule = winner.candidate.schedule->name;
  decision.config = winner.candidate.config.to_string();
  decision.schedule_digest = winner.candidate.schedule->digest();
  decision.candidate_set = triage.record.candidate_set;
  decision.driver = driver_;
  if (decision.origin == Origin::none) decision.origin = Origin::tuned;
  decision.match = Match::exact;
  decision.budget_ms = parts_.options.tune.budget.time_ms;
  decision.partial = partial(decision.candidates);
  tuned_shapes_.remember(triage.tuned_for, decision);
  served_shapes_.remember(triage.tuned_for, decision);
  // What could not be timed here (no memory, say) may well be timed by the next process.
  if (parts_.persist && parts_.store != nullptr && decision.origin == Origin::tuned) {
    // The store has warned already where it cannot write; the winner lives on in memory.
    if (const Status saved = parts_.store->save(triage.tuned_for, parts_.device.info(), decision); !saved.ok()) {
      parts_.log.write(LogLevel::debug, "decision not saved: " + saved.error().message);
    }
  }
  return winner;
}

Result<Winner> Decider::decide(const Triage& triage) {
  Result<Winner> winner = [&]() -> Result<Winner> {
    if (std::optional<Winner> known = recall(triage)) return *std::move(known);
    if (triage.set.candidates.empty() && parts_.options.policy != Policy::pinned) return untested(triage);
    switch (parts_.options.policy) {
      case Policy::first_use:
        return tuned(triage);
      case Policy::background: {
        Winner base_winner = base(triage);
        base_winner.provisional = true;
        return base_winner;
      }
      case Policy::pinned:
        return Error{Code::pinned_miss,
                     "policy pinned: the decision table has no decision for " +
                         signature(triage.tuned_for, parts_.device.info()) + " that matches at level " +
                         std::string(name(parts_.options.pinned_accepts)) + "; add its decision record to the table"};
      case Policy::immediate:
      case Policy::off:
        break;
    }
    return heuristic(triage);
  }();
  if (winner.ok()) served_shapes_.remember(triage.tuned_for, winner->decision);
  return winner;
}

}  // namespace sl
