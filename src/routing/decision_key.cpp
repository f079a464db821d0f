#include "routing/decision.hpp"

namespace sl {

// Raised when the meaning of a decision changes in a way that its other parts do not show: old entries become misses.
constexpr std::int64_t key_schema = 1;

// The driver, the compiler and the candidate set are not here on purpose: a change of them is a weaker match, not a
// miss. The winner's schedule digest is checked on reading.
Digest decision_key(const ConvProblem& problem, const DeviceInfo& device) {
  return KeyBuilder()
      .add("decision", key_schema)
      .add("problem", problem.batch_bucket().to_string())
      .add("device", device.decision_digest().hex())
      .finish();
}

}  // namespace sl
