// The pure half of a decision: may Sluice serve this call, should it, and with which candidates. Touches no device, no
// file and no clock, so it is safe while a stream captures.
#pragma once

#include <string>
#include <vector>

#include "routing/decision.hpp"
#include "routing/routing.hpp"

namespace sl {

struct TriageRules {
  const RoutingTable* table = nullptr;
  std::string force_schedule;  ///< only this schedule is a candidate; empty = any
  std::vector<std::string> disabled_schedules;
  bool force_take = false;               ///< ignore the table's "keep"
  const Sanitized* sanitized = nullptr;  ///< what may be tried on a GPU; null = everything
  std::string off;                       ///< why nothing may be taken at all (kill switch, policy off); empty = on
  std::vector<std::string> searched;     ///< routing tables looked at, for the record
};

struct Triage {
  enum class Outcome { take, keep, reject };
  Outcome outcome = Outcome::reject;
  Route route;  ///< what the table says; empty where it was not asked
  /// What decisions are made for: the problem with its batch bucketed, or as it is where no schedule takes the bucket.
  ConvProblem tuned_for;
  /// For tuned_for; not empty() where outcome is take. Without `candidates` only a decision that was made elsewhere
  /// serves the call.
  CandidateSet set;
  Digest key;       ///< decision key joined with the candidate set: what decisions in memory go by
  Decision record;  ///< everything that is known before a winner is
};

/// `size_generic_only`: drop candidates that would need one binary for each size. `problem` must be valid and not
/// empty.
Triage triage(const ConvProblem& problem, const DeviceInfo&, Regular, const TriageRules&, bool size_generic_only);

/// "take", "keep" or "reject", as Decision::route spells it.
std::string_view name(Triage::Outcome);

/// "g144mb32... dt=f16 tag=nhwc on NVIDIA H200": how errors name a call.
std::string signature(const ConvProblem&, const DeviceInfo&);

}  // namespace sl
