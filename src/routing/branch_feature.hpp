// What a branch of a heuristic may ask: a feature of the problem (features.hpp), or one of the candidate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "routing/features.hpp"
#include "schedules/schedule.hpp"

namespace sl {

/// A candidate and what it is a candidate for. Refers to its parts.
struct CandidateView {
  const ConvProblem& problem;
  const DeviceInfo& device;
  const Candidate& candidate;
  double rank;  ///< place among its schedule's own candidates, 0 = the schedule's first choice
};

struct CandidateFeature {
  std::string_view name, meaning;
  double (*value)(const CandidateView&);
};
/// Every one but the knobs, which are "knob.NAME".
std::span<const CandidateFeature> candidate_features();

/// A feature found by its name. Immutable; a name feature's words are compared by is().
class BranchFeature {
 public:
  /// nullopt where there is none of that name; features of candidates only where `of_candidate`.
  static std::optional<BranchFeature> find(std::string_view name, bool of_candidate);

  /// Of a feature that is a name (dtype, layout ...), else null.
  const NameFeature* words() const { return word_; }
  /// Of a number; infinite where the candidate has no such knob, so that no bound holds it. Requires !words().
  double number(const CandidateView&) const;

 private:
  const NumberFeature* number_ = nullptr;
  const NameFeature* word_ = nullptr;
  const CandidateFeature* candidate_ = nullptr;
  std::string_view knob_;
};

/// Every name that find() knows, comma separated, for messages.
std::string branch_feature_list(bool of_candidate);

}  // namespace sl
