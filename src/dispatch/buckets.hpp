// Batch buckets that were answered: which decision serves the other batch sizes of one, so that a batch size seen for
// the first time does not ask every schedule again.
#pragma once

#include <mutex>
#include <optional>

#include "core/fifo_map.hpp"
#include "routing/routing.hpp"

namespace sl {

/// Thread-safe, bounded.
class Buckets {
 public:
  /// How a call of the bucket was routed, and the key of the decision that served it.
  struct Served {
    Route route;
    Digest decision;
  };

  explicit Buckets(std::size_t capacity) : served_(capacity) {}

  void note(const ConvProblem& problem, Regular, Served);
  /// nullopt where no call of the problem's bucket was served yet.
  std::optional<Served> find(const ConvProblem& problem, Regular) const;

 private:
  mutable std::mutex mutex_;
  FifoMap<Served> served_;
};

}  // namespace sl
