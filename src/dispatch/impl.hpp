// The Dispatcher's inside, shared by dispatcher.cpp (the ways in) and answer.cpp (the slow path).
#pragma once

#include <sys/types.h>

#include <bit>
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
  Decision dry_record(Regular, const Triage&);  ///< of a call that is taken
  Result<Answer> take(const ConvProblem&, Regular, const Triage&);
  Result<Answer> take_known(const ConvProblem&, Regular, const Triage&);
  Result<Answer> served(const ConvProblem&, const Triage&, const WinnerPtr&);
  Answer kept(const ConvProblem&, Regular, Decision record, std::string reason, bool publish);
  /// kept for OPTIONAL, an error with the call's signature for REQUIRED. `before`: the key's failures as the call
  /// began.
  Result<Answer> fail(const ConvProblem&, Regular, const Triage&, Error, int before);
  Triage triage_of(const ConvProblem&, Regular) const;
  Error rejected(const ConvProblem&, const std::string& reason) const;
  bool forked() const;

  // ---- background hooks: must not throw ----
  void tune_in_background(const Triage&);
  void publish_winner(const Triage&, const std::vector<Target>&);

  // ---- dispatcher.cpp ----
  /// Fills in the pointers and launches; `params` is the caller's own copy.
  Status launch(const Kernel&, const Geometry&, SlParams& params, const Tensors&, Stream) noexcept;
  Code slow(const ConvProblem&, const Tensors&, Stream, Regular, Error&);
  Code launch_failed(const ConvProblem&, Regular, const Error& failure, Error& error);

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

/// The plan table's key: every field of the problem, and `regular`, two to a word. Sizes of a legal problem are below
/// 2^31 (n below 2^40). One that is not legal gets a key that no entry has, so that it goes where it is refused.
inline PlanTable::Key plan_key(const ConvProblem& v, Regular regular) noexcept {
  const auto pair = [](std::int64_t high, std::int64_t low) { return high << 32 | low; };
  const auto word = [](auto value) { return static_cast<std::int64_t>(value); };
  const std::int64_t sizes = v.c | v.h | v.w | v.k | v.groups | v.r | v.s | v.p | v.q | v.stride_h | v.stride_w |
                             v.pad_top | v.pad_left | v.dil_h | v.dil_w;
  if (sizes >> 31 != 0) return {-1};
  const std::int64_t kinds = word(v.dtype) | word(v.layout) << 4 | word(v.weight_layout) << 8 | word(v.bias) << 12 |
                             word(v.activation) << 16 | word(v.residual) << 20 | word(regular == Regular::no) << 24 |
                             word(v.align & 31) << 26;
  return {v.n,
          pair(v.c, v.k),
          pair(v.h, v.w),
          pair(v.p, v.q),
          pair(v.r, v.s),
          pair(v.groups, kinds),
          pair(v.stride_h, v.stride_w),
          pair(v.pad_top, v.pad_left),
          pair(v.dil_h, v.dil_w),
          pair(std::bit_cast<std::int32_t>(v.alpha), std::bit_cast<std::uint32_t>(v.beta))};
}

}  // namespace sl
