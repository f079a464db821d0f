// One call from the conv op to the device: look up, else decide, compile, tune, publish.
//
// Who decides what: triage.hpp (pure: verdict, route, candidates), winners.hpp (one decision a key, single flight),
// decide.hpp (store, table, tuner, heuristic by policy), shapes.hpp (kernels that other batches have), kernel_pool.hpp
// (load once, keep), background.hpp (the tuning thread), plan_table.hpp (the hot path's look-up).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/environment.hpp"
#include "core/log.hpp"
#include "dispatch/counters.hpp"
#include "dispatch/plan_table.hpp"
#include "jit/binary_cache.hpp"
#include "routing/decision.hpp"
#include "routing/decision_store.hpp"
#include "routing/heuristic.hpp"
#include "tuning/tuner.hpp"

namespace sl {

enum class Policy : std::uint8_t { first_use, immediate, background, pinned, off };
std::string_view name(Policy);
std::optional<Policy> parse_policy(std::string_view);

using TuneFunction = std::function<TuneResult(Device&, BinaryCache&, const ConvProblem&, const CandidateSet&,
                                              const TuneOptions&, const Log&)>;

struct DispatcherOptions {
  Policy policy = Policy::first_use;
  Match pinned_accepts = Match::exact;  ///< the weakest match that `pinned` takes
  bool force_take = false;              ///< ignore routing's "keep" (sluice run --force)
  TuneOptions tune;
  std::size_t plan_capacity = 4096;  ///< entries of the plan table; decisions in memory are bounded by it too
  /// Loaded kernels are never unloaded before the dispatcher dies; beyond this many, only size-generic schedules are
  /// candidates for a problem that is not known yet, so endless new sizes do not grow memory.
  std::size_t max_kernels = 4096;
  LazyHeuristic heuristic;                     ///< picks where nothing is timed; null: the schedules' own order does
  std::shared_ptr<const Sanitized> sanitized;  ///< what may be tried on a GPU; null: everything
  std::vector<std::string> searched;           ///< TableChoice::searched, for decision records
  TuneFunction tuner = sl::tune;               ///< a seam for tests
};

/// What launching a plan needs of its dispatcher.
struct HotPath {
  Device& device;
  HotCounters& counters;
};

/// An immutable prepared call. Valid until its dispatcher is destroyed (which waits for nothing: the caller has stopped
/// using it). An empty problem (n = 0) has a plan without a kernel; running it does nothing.
struct Plan {
  PlanEntry entry;
  ConvProblem problem;
  Decision decision;
};

/// A failure of an OPTIONAL call (compile, device, memory) is answered "kept" and retried on the key's next calls;
/// after this many failures the key's answer is published as kept, so that a broken key does not compile and tune
/// forever.
constexpr int max_failures = 3;

/// Thread-safe. One a context. Never throws.
///
/// After fork() a child must not use it: slow paths answer Code::environment there, and the destructor leaks everything
/// rather than touch a device or a thread that belongs to the parent.
class Dispatcher {
 public:
  /// `pinned` may be null: then policy `pinned` misses always. With another policy it is read as shipped decisions,
  /// after the decision store. `routing` must not be null; `log` must outlive this.
  Dispatcher(std::shared_ptr<Device>, std::shared_ptr<BinaryCache>, std::shared_ptr<DecisionStore>,
             std::shared_ptr<const RoutingTable> routing, std::shared_ptr<const DecisionTable> pinned,
             const Environment&, const DispatcherOptions&, const Log& log);
  ~Dispatcher();  ///< joins the background thread
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Look-up-and-run. Code::kept, Code::not_prepared, or an error as in sluice.h. The problem's `align` must already be
  /// the tensors' class. `error` is untouched for Code::ok and for a kept call that the plan table knew (filling it
  /// would allocate); explain() has the reason.
  Code conv2d(const ConvProblem&, const Tensors&, Stream, Regular, Error& error) noexcept;
  /// The short way through conv2d() for a caller that has the call's key (plan_key.hpp) and tensors of the right dtype,
  /// none missing, none that the call has not: Code::ok or Code::kept where the plan table knows the call, y lies apart
  /// from the other tensors and all went well. Code::not_found otherwise; then conv2d() does it, or says why not.
  Code known(const PlanTable::Key&, const Tensors&, Stream) noexcept;
  /// Decides (and tunes, by policy) without running. Kept is a Plan whose entry.kind is kept. Under policy `background`
  /// the plan holds the base kernel until it is prepared again.
  Result<std::shared_ptr<const Plan>> prepare(const ConvProblem&, Stream, Regular);
  /// For run_quickly() (quick_launch.hpp), the short way through run(). Valid as long as the dispatcher.
  HotPath hot() noexcept;
  /// Launches a prepared plan: no look-up, no lock, no allocation.
  Status run(const Plan&, const Tensors&, Stream) noexcept;
  /// The decision record; decides like prepare() but never tunes nor compiles where `dry`. Only a problem that
  /// validate() refuses, or one that fails where not dry, is an error; kept and rejected calls have a record too.
  Result<Decision> explain(const ConvProblem&, Regular, bool dry);

  /// Blocks until queued background tunings are done.
  void wait_idle();
  /// Each exact; together not a snapshot while other threads call.
  DispatchCounts counters() const;
  const PlanTable& plans() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sl
