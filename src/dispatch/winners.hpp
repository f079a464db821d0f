// Decisions in memory: one a key, made once however many threads ask at once, bounded.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/fifo_map.hpp"
#include "core/result.hpp"
#include "routing/decision.hpp"
#include "schedules/schedule.hpp"

namespace sl {

/// What won for a key. Immutable once shared.
struct Winner {
  Candidate candidate;
  Decision decision;
  bool provisional = false;  ///< served until a background tuning replaces it
  /// Why nothing may be served for the key, found out after a base kernel was; then there is no candidate.
  std::string condemned = {};
};
using WinnerPtr = std::shared_ptr<const Winner>;

/// Thread-safe.
class Winners {
 public:
  explicit Winners(std::size_t capacity) : known_(capacity) {}

  /// Null where nothing is known; never waits for a flight.
  WinnerPtr find(const Digest&) const;
  /// The known winner, or what `make` returns: called without a lock, by one thread a key; the others wait for it. A
  /// failure goes to every waiter of that flight and is forgotten.
  Result<WinnerPtr> get(const Digest&, const std::function<Result<Winner>()>& make);
  /// Replaces what is known.
  void put(const Digest&, WinnerPtr);
  std::size_t size() const;

 private:
  struct Flight;

  mutable std::mutex mutex_;
  FifoMap<WinnerPtr> known_;
  std::unordered_map<Digest, std::shared_ptr<Flight>, DigestHash> flights_;
};

/// How often each key failed, with the last reason. Thread-safe, bounded.
class Failures {
 public:
  /// Returns the count, this one included. `before` is what count() said as the attempt began: calls that ran side by
  /// side saw one failure, not one each, however many shared a flight, a compile or a load.
  int record(const Digest&, const std::string& reason, int before);
  int count(const Digest&, std::string* reason = nullptr) const;
  void forget(const Digest&);

 private:
  static constexpr std::size_t capacity = 1024;
  struct Row {
    int count = 0;
    std::string reason;
  };
  mutable std::mutex mutex_;
  std::unordered_map<Digest, Row, DigestHash> rows_;
};

}  // namespace sl
