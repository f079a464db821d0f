// The Dispatcher's inside, shared by dispatcher.cpp (the ways in) and answer.cpp (the slow path).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "dispatch/background.hpp"
#include "dispatch/decide.hpp"
#include "dispatch/dispatcher.hpp"
#include "dispatch/kernel_pool.hpp"
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
  Decision dry_record(Regular, Triage);  ///< of a call that is taken
  Result<Answer> take(const ConvProblem&, Regular, const Triage&);
  Result<Answer> take_known(const ConvProblem&, Regular, const Triage&);
  Result<Answer> served(const ConvProblem&, const Triage&, const WinnerPtr&);
  Answer kept(const ConvProblem&, Regular, Decision record, std::string reason, bool publish);
  /// kept for OPTIONAL, an error with the call's signature for REQUIRED.
  Result<Answer> fail(const ConvProblem&, Regular, const Triage&, Error);
  Triage triage_of(const ConvProblem&, Regular) const;
  Error rejected(const ConvProblem&, const std::string& reason) const;
  bool forked() const;

  // ---- background hooks: must not throw ----
  void tune_in_background(const Triage&);
  void publish_winner(const Triage&, const std::vector<Target>&);

  // ---- dispatcher.cpp ----
  Status launch(const PlanEntry&, const Tensors&, Stream) noexcept;
  Code slow(const ConvProblem&, const Tensors&, Stream, Regular, Error&);
  Code launch_failed(const ConvProblem&, Regular, Error failure, Error& error);

  std::shared_ptr<Device> device;
  std::shared_ptr<BinaryCache> binaries;
  std::shared_ptr<DecisionStore> store;
  std::shared_ptr<const RoutingTable> routing;
  std::shared_ptr<const DecisionTable> table;
  DispatcherOptions options;
  const Log& log;
  TriageRules rules;
  pid_t owner;
  DispatchCounters counters;
  PlanTable plans;
  Winners winners;
  Failures failures;
  KernelPool kernels;
  Decider decider;
  Background background;  // last: its thread uses everything above
};

/// The plan table's key: the problem's words with `regular` folded into the last one.
inline PlanTable::Key plan_key(const ConvProblem& problem, Regular regular) noexcept {
  PlanTable::Key key = problem.key();
  // The last word of ConvProblem::key() is a small value: its top bit is free.
  if (regular == Regular::no) key.back() ^= std::int64_t{1} << 62;
  return key;
}

}  // namespace sl
