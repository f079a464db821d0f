// The record of how one call was decided; `sluice explain` prints it, the decision store keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/digest.hpp"
#include "core/result.hpp"
#include "device/device_info.hpp"
#include "routing/routing.hpp"

namespace sl {

struct CandidateRecord {
  std::string schedule, config;
  std::string outcome;  ///< "timed", "slow" (abandoned early), "wrong: ...", "compile: ...", "skipped: ...", "untimed"
  double median_us = 0, low_us = 0, high_us = 0;  ///< spread: 10th and 90th percentile of replays
  int registers = 0, spill_bytes = 0, smem = 0;
  double error_over_bound = 0;
  double predicted = 0;  ///< what the heuristic said of it (Heuristic::predict); 0 = nothing
};

/// Whether an outcome says that the candidate ran and was timed, if only until it was clear that it is slow.
constexpr bool was_timed(std::string_view outcome) { return outcome == "timed" || outcome == "slow"; }
/// Whether an outcome says that the candidate took the child process with it that tried it.
constexpr bool took_process(std::string_view outcome) {
  return outcome.starts_with("crashed: ") || outcome.starts_with("timed out: ");
}

/// Where a winner was first found; one that is known in memory keeps it.
enum class Origin : std::uint8_t { none, store, shipped, tuned, heuristic, base, pinned };
enum class Match : std::uint8_t { none, exact, other_driver, other_candidates };
std::string_view name(Origin);
std::string_view name(Match);

struct Decision {
  std::string problem;  ///< canonical text
  std::string device;
  Verdict verdict = Verdict::unsupported;
  std::string route;  ///< "take", "keep", "reject"
  std::string rule, table, reason;
  std::string schedule, config;  ///< the winner; empty unless taken
  std::string heuristic;         ///< the model that picked an untimed winner; empty = the default order did
  Origin origin = Origin::none;
  Match match = Match::none;
  std::vector<CandidateRecord> candidates;
  std::vector<ScheduleRefusal> refusals;
  std::vector<std::string> searched;  ///< routing tables looked at
  std::string driver, compiler;       ///< provenance
  std::string arch_note;              ///< for example "device newer than NVRTC: PTX of compute_121"
  Digest candidate_set, schedule_digest;
  double noise_floor = 0;  ///< relative; smaller differences do not change a winner
  double baseline_us = 0;  ///< copy of the same bytes, where measured
  double budget_ms = 0;    ///< that tuning had
  bool partial = false;    ///< the budget let tuning time only a few candidates: a larger one tunes again
};

std::string to_json(const Decision&, bool pretty = false);
Result<Decision> decision_from_json(std::string_view);

/// Canonical problem (batch bucketed), device description.  The winner's schedule digest is checked on read, not part
/// of the name.
Digest decision_key(const ConvProblem&, const DeviceInfo&);

}  // namespace sl
