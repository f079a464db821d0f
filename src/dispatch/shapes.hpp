// Which kernels each shape already has, whatever its batch: n is in no binary, so another batch size need not compile.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "dispatch/winners.hpp"
#include "routing/decision_store.hpp"

namespace sl {

/// A schedule's configurations are pruned by a model that looks at n, so another batch size brings other candidates.
/// Dynamic batches must not compile, and what is right for one image can be several times too slow for 32: so the first
/// tuning of a shape is given what other batches would choose first, too, and later ones choose among what that
/// compiled. Thread-safe, bounded.
class Shapes {
 public:
  explicit Shapes(std::size_t capacity) : entries_(capacity) {}

  /// Notes the kernels that a decision about `problem` compiled.
  void remember(const ConvProblem& problem, const Decision&);
  /// The candidates of `set` whose kernels the shape has, from this process or, by `store` (may be null), from others.
  /// Of a schedule that has none of its own there, the ones the shape has. nullopt where the shape has no kernel.
  std::optional<CandidateSet> compiled(const ConvProblem& problem, const DeviceInfo&, const std::string& driver,
                                       const DecisionStore* store, const CandidateSet& set);

  /// `set` and, behind it, the first configuration that each of its schedules has for any other batch.
  static CandidateSet for_every_batch(const ConvProblem& problem, const DeviceInfo&, const CandidateSet& set);
  /// Whether `some` has, of each schedule in both, the kernel of the first configuration in `set`.
  static bool has_first_guesses(const ConvProblem& problem, const CandidateSet& some, const CandidateSet& set);

 private:
  /// By symbol: the candidate that compiled it.
  using Kernels = std::map<std::string, Candidate>;
  static Kernels kernels_of(const ConvProblem&, const Decision&);

  std::mutex mutex_;
  FifoMap<Kernels> entries_;
};

}  // namespace sl
