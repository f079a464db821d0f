// From candidates to a winner: decision store, decision table, tuner, heuristic, in the order that the policy says.
#pragma once

#include <optional>
#include <string>

#include "dispatch/dispatcher.hpp"
#include "dispatch/shapes.hpp"
#include "dispatch/triage.hpp"
#include "dispatch/winners.hpp"

namespace sl {

/// What deciding needs; all of it outlives the Decider. Thread-safe.
class Decider {
 public:
  struct Parts {
    Device& device;
    BinaryCache& binaries;
    DecisionStore* store;        ///< may be null
    const DecisionTable* table;  ///< may be null
    const DispatcherOptions& options;
    DispatchCounters& counters;
    const Log& log;
    bool persist;  ///< false while the environment forces or disables schedules: such winners are nobody else's
  };
  explicit Decider(const Parts& parts)
      : parts_(parts),
        driver_(parts.device.driver()),
        tuned_shapes_(parts.options.plan_capacity),
        served_shapes_(parts.options.plan_capacity) {}

  /// By policy. May read files, compile and tune; never call it for a capturing stream.
  Result<Winner> decide(const Triage&);
  /// A decision made earlier, here or elsewhere: the store's (the user's own) before the table's (shipped); with
  /// `pinned` the table's alone. nullopt where there is none that applies.
  std::optional<Winner> recall(const Triage&) const;
  /// Times the candidates and saves the winner. An error where none can run; `wrong` (may be null) says whether any
  /// computed a wrong result.
  Result<Winner> tuned(const Triage&, bool* wrong = nullptr);
  /// The candidate that the heuristic (the first, where there is none) takes to be the fastest, untimed; like the
  /// others, one that the shape has compiled for another batch where there is any.
  Winner heuristic(const Triage&);
  /// The base schedule's first candidate, or else the heuristic's.
  Winner base(const Triage&);

 private:
  Winner untested(const Triage&) const;
  std::optional<Winner> accept(const Triage&, std::optional<Found>, Origin) const;
  Winner untimed(const Triage&, const Candidate&, Origin) const;
  /// The heuristic's best of `set` that no row says is broken; nullopt where all are. Its record has the rows, where
  /// there are any, and what the heuristic predicted of each.
  std::optional<Winner> guessed(const Triage&, const CandidateSet& set, const std::vector<CandidateRecord>& rows) const;
  std::optional<CandidateSet> compiled(const Triage&, Shapes&);
  CandidateSet tunable(const Triage&);

  Parts parts_;
  std::string driver_;
  // Two, because what is served untimed (a base kernel, say) must not narrow what a tuning may choose from.
  Shapes tuned_shapes_, served_shapes_;
};

/// The record of a call served by a winner: the winner's own, with this call's problem, verdict and route.
Decision joined(const Decision& record, const Winner&);

/// Whether the budget let tuning time so few candidates that the choice is worth making again with a larger one.
bool partial(const std::vector<CandidateRecord>&);

/// Writes what a model predicts of each candidate of `set` beside the row that is of it; others stay as they are.
void add_predictions(const Ranking&, const CandidateSet& set, std::vector<CandidateRecord>& rows);

/// Whether tuning looked at the candidate and found it wrong, or that it does not compile, load or launch.
bool found_broken(const std::vector<CandidateRecord>&, const Candidate&);

/// Rows for candidates that no tuning has seen.
std::vector<CandidateRecord> untimed_rows(const CandidateSet&);

}  // namespace sl
