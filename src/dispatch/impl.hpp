// The Dispatcher's inside, shared by dispatcher.cpp (the ways in) and answer.cpp (the slow path).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "dispatch/background.hpp"
#include "dispatch/buckets.hpp"
#include "dispatch/counters.hpp"
#include "dispatch/decide.hpp"
#include "dispatch/dispatcher.hpp"
#include "dispatch/kernel_pool.hpp"
#include "dispatch/plan_key.hpp"
#include "dispatch/recorder.hpp"
#include "dispatch/triage.hpp"
#include "dispatch/winners.hpp"

namespace sl {

/// What the slow path found for one call: a plan or "kept", with its record.
struct Answer {
  PlanEntry entry;
  Decision record;
};

struct Dispatcher::Impl {
  Impl(std::shared_ptr<Device>, std::shared_ptr<BinaryCache>, std::shared_ptr<DecisionStore>,
       std::shared_ptr<const RoutingTable>, std::shared_ptr<const DecisionTable>, const Environment&,
       const DispatcherOptions&, const Log&);

  /// Whether the slow path may block, and on which stream's behalf that is asked.
  struct Caller {
    bool has_stream = false;  ///< false: nothing captures (explain)
    Stream stream = nullptr;
  };

  // ---- answer.cpp: the slow path; may throw bad_alloc ----
  Result<Answer> answer(const ConvProblem&, Regular, Caller);
  Result<Decision> explain(const ConvProblem&, Regular, bool dry);
  Decision dry_record(Regular, const Triage&);  ///< of a call that is taken
  Result<Answer> take(const ConvProblem&, Regular, const Triage&);
  /// What serves the other batches of the call's bucket, if that is settled and serves this one too; published. Asks no
  /// schedule but the winner's, makes no record, compiles and loads nothing: safe while a stream captures.
  std::optional<PlanEntry> as_its_bucket(const ConvProblem&, Regular);
  Result<Answer> take_known(const ConvProblem&, Regular, const Triage&);
  Result<Answer> served(const ConvProblem&, const Triage&, const WinnerPtr&);
  Answer kept(const ConvProblem&, Regular, Decision record, std::string reason, bool publish);
  /// kept for OPTIONAL, an error with the call's signature for REQUIRED. `before`: the key's failures as the call
  /// began.
  Result<Answer> fail(const ConvProblem&, Regular, const Triage&, Error, int before);
  Triage triage_of(const ConvProblem&, Regular) const;
  Error rejected(const ConvProblem&, const std::string& reason) const;
  bool forked() const;

  /// The answer to a call that must not be served any more, whatever the plan table holds for it.
  Result<Answer> refused(const ConvProblem&, Regular, const Triage&, const std::string& why);
  Winner tuned_later(const Triage&);

  // ---- background hooks: must not throw ----
  void tune_in_background(const Triage&);
  void publish_winner(const Triage&, const std::vector<Target>&);

  // ---- dispatcher.cpp ----
  /// Looks up and launches. `checked`: missing where y overlaps another tensor, too.
  enum class Known : std::uint8_t { launched, kept, missing, failed };
  template <bool checked>
  Known known(const PlanTable::Key&, const Tensors&, Stream) noexcept;
  Status launch(const PlanEntry&, const Tensors&, Stream) noexcept;
  Code slow(const ConvProblem&, const Tensors&, Stream, Regular, Error&);
  /// After known() failed, for words.
  Code launch_again(const ConvProblem&, const Tensors&, Stream, Regular, Error&);
  Code launched(const ConvProblem&, Regular, const Status&, Error&);
  Code launch_failed(const ConvProblem&, Regular, const Error& failure, Error& error);

  // What the hot path reads comes first.
  std::shared_ptr<Device> device;
  PlanTable plans;
  DispatchCounters counters;
  std::shared_ptr<BinaryCache> binaries;
  std::shared_ptr<DecisionStore> store;
  std::shared_ptr<const RoutingTable> routing;
  std::shared_ptr<const DecisionTable> table;
  DispatcherOptions options;
  const Log& log;
  TriageRules rules;
  pid_t owner;
  Winners winners;
  Buckets buckets;
  Failures failures;
  KernelPool kernels;
  Recorder recorder;
  Decider decider;
  Background background;  // last: its thread uses everything above
};

}  // namespace sl
