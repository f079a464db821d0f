// One call from the conv op to the device: look up, else decide, compile, tune, publish.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/environment.hpp"
#include "core/log.hpp"
#include "dispatch/plan_table.hpp"
#include "jit/binary_cache.hpp"
#include "routing/decision.hpp"
#include "routing/decision_store.hpp"
#include "tuning/tuner.hpp"

namespace sl {

enum class Policy : std::uint8_t { first_use, immediate, background, pinned, off };
std::string_view name(Policy);
std::optional<Policy> parse_policy(std::string_view);

struct Tensors {
  const void *x = nullptr, *w = nullptr, *bias = nullptr, *z = nullptr;
  void* y = nullptr;
};

struct DispatcherOptions {
  Policy policy = Policy::first_use;
  Match pinned_accepts = Match::exact;  ///< the weakest match that `pinned` takes
  bool force_take = false;              ///< ignore routing's "keep" (sluice run --force)
  TuneOptions tune;
  std::size_t plan_capacity = 4096;
};

struct DispatchCounters {
  std::atomic<std::uint64_t> launches{0}, kept{0}, plan_hits{0}, plan_misses{0}, decision_hits{0}, tunings{0},
      fallbacks{0}, not_prepared{0};
};

/// An immutable prepared call. Valid until its dispatcher is destroyed (which waits for nothing: the caller has stopped
/// using it).
struct Plan {
  PlanEntry entry;
  ConvProblem problem;
  Decision decision;
};

/// Thread-safe. One a context. Never throws.
class Dispatcher {
 public:
  Dispatcher(std::shared_ptr<Device>, std::shared_ptr<BinaryCache>, std::shared_ptr<DecisionStore>,
             std::shared_ptr<const RoutingTable>, std::shared_ptr<const DecisionTable> pinned, const Environment&,
             const DispatcherOptions&, const Log&);
  ~Dispatcher();  ///< joins the background thread

  /// Look-up-and-run. Code::kept, Code::not_prepared, or an error as in sluice.h. The problem's `align` must already be
  /// the tensors' class.
  Code conv2d(const ConvProblem&, const Tensors&, Stream, Regular, Error& error) noexcept;
  /// Decides (and tunes, by policy) without running. Kept is a Plan whose entry.kind is kept.
  Result<std::shared_ptr<const Plan>> prepare(const ConvProblem&, Stream, Regular);
  /// Launches a prepared plan: no look-up, no lock, no allocation.
  Status run(const Plan&, const Tensors&, Stream) noexcept;
  /// The decision record; decides like prepare() but never tunes nor compiles where `dry`.
  Result<Decision> explain(const ConvProblem&, Regular, bool dry);

  /// Blocks until queued background tunings are done.
  void wait_idle();
  const DispatchCounters& counters() const;
  const PlanTable& plans() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The largest of 16, 8, 4, 2 that divides every given address.
int alignment_class(const Tensors&);

}  // namespace sl
