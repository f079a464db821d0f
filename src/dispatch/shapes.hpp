// Which kernels each shape already has, whatever its batch: n is in no binary, so another batch size need not compile.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "dispatch/winners.hpp"
#include "routing/decision_store.hpp"

namespace sl {

/// A schedule's configurations are pruned by a model that looks at n, so another batch size may bring candidates that
/// nobody has compiled. They are left out while the shape has others: dynamic batches must not compile. Thread-safe,
/// bounded.
class Shapes {
 public:
  explicit Shapes(std::size_t capacity) : capacity_(capacity) {}

  /// Notes the kernels that a decision about `problem` compiled.
  void remember(const ConvProblem& problem, const Decision&);
  /// The candidates of `set` whose kernels the shape has, from this process or, by `store` (may be null), from others.
  /// Of a schedule that has none of its own there, the ones the shape has; all of `set` where the shape has no kernel.
  CandidateSet compiled(const ConvProblem& problem, const DeviceInfo&, const std::string& driver,
                        const DecisionStore* store, const CandidateSet& set);

 private:
  /// By symbol: the candidate that compiled it.
  using Kernels = std::map<std::string, Candidate>;
  static Kernels kernels_of(const ConvProblem&, const Decision&);

  std::mutex mutex_;
  std::size_t capacity_;
  std::unordered_map<Digest, Kernels, DigestHash> entries_;
  std::deque<Digest> order_;  // oldest first
};

}  // namespace sl
