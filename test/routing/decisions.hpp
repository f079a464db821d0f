// A decision as tuning would record it.
#pragma once

#include "routing/decision_store.hpp"
#include "routing/fixture.hpp"

namespace sl::test {

inline Decision decided(const ConvProblem& call, const DeviceInfo& device, const CandidateSet& set,
                        const std::string& driver = "driver 1") {
  Decision decision;
  decision.problem = call.to_string();
  decision.device = device.name;
  decision.verdict = Verdict::optional;
  decision.route = "take";
  decision.rule = "a rule";
  decision.table = "embedded:test";
  decision.origin = Origin::tuned;
  decision.match = Match::exact;
  EXPECT_FALSE(set.candidates.empty());
  decision.schedule = set.candidates.back().schedule->name;
  decision.config = set.candidates.back().config.to_string();
  decision.schedule_digest = set.candidates.back().schedule->digest();
  decision.candidate_set = set.digest();
  decision.driver = driver;
  decision.compiler = "nvrtc 13.0";
  return decision;
}

inline CandidateSet set_of(const ConvProblem& call, const DeviceInfo& device) {
  return candidates(call, device, {}, {});
}

}  // namespace sl::test
