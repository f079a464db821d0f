#include "dispatch/dispatcher.hpp"

#include <unistd.h>

#include <exception>
#include <utility>

#include "dispatch/impl.hpp"
#include "dispatch/plan_slot.hpp"
#include "dispatch/quick_launch.hpp"

namespace sl {
namespace {

TriageRules rules_of(const RoutingTable* table, const Environment& environment, const DispatcherOptions& options) {
  TriageRules rules{.table = table,
                    .force_schedule = environment.force_schedule,
                    .disabled_schedules = environment.disabled_schedules,
                    .force_take = options.force_take,
                    .sanitized = options.sanitized.get(),
                    .off = {},
                    .searched = options.searched};
  if (options.policy == Policy::off) rules.off = "policy off keeps every call";
  if (environment.disabled) rules.off = "SLUICE_DISABLE=1 keeps every call";
  return rules;
}

bool chooses_freely(const Environment& environment) {
  return environment.force_schedule.empty() && environment.disabled_schedules.empty();
}

/// A PlanEntry that nobody clears: the look-up fills it.
union Unset {
  Unset() noexcept {}  // NOLINT
  PlanEntry entry;
};

/// Without allocating where it can be avoided: there may be no memory left.
Code caught(Error& error, Code code, const char* message) noexcept {
  error.code = code;
  try {
    error.message = message;
  } catch (...) {
    error.message.clear();
  }
  return code;
}

}  // namespace

Dispatcher::Impl::Impl(std::shared_ptr<Device> device_in, std::shared_ptr<BinaryCache> binaries_in,
                       std::shared_ptr<DecisionStore> store_in, std::shared_ptr<const RoutingTable> routing_in,
                       std::shared_ptr<const DecisionTable> table_in, const Environment& environment,
                       const DispatcherOptions& options_in, const Log& log_in)
    : device(std::move(device_in)),
      plans(options_in.plan_capacity),
      binaries(std::move(binaries_in)),
      store(std::move(store_in)),
      routing(std::move(routing_in)),
      table(std::move(table_in)),
      options(options_in),
      log(log_in),
      rules(rules_of(routing.get(), environment, options)),
      owner(getpid()),
      winners(plans.capacity()),
      buckets(plans.capacity()),
      kernels(*device, *binaries),
      recorder(environment.record, log),
      decider({*device, *binaries, store.get(), table.get(), options, counters, log, chooses_freely(environment)}),
      background(
          {[this](const Digest& key) {
             const WinnerPtr winner = winners.find(key);
             return winner && !winner->provisional;
           },
           [this](const Triage& triage) { tune_in_background(triage); },
           [this](const Triage& triage, const std::vector<Target>& targets) { publish_winner(triage, targets); }}) {}

Dispatcher::Dispatcher(std::shared_ptr<Device> device, std::shared_ptr<BinaryCache> binaries,
                       std::shared_ptr<DecisionStore> store, std::shared_ptr<const RoutingTable> routing,
                       std::shared_ptr<const DecisionTable> pinned, const Environment& environment,
                       const DispatcherOptions& options, const Log& log)
    : impl_(std::make_unique<Impl>(std::move(device), std::move(binaries), std::move(store), std::move(routing),
                                   std::move(pinned), environment, options, log)) {}

Dispatcher::~Dispatcher() {
  // In a forked child the tuning thread does not exist and the device is the parent's: leaking is the only safe end.
  if (impl_->forked()) static_cast<void>(impl_.release());
}

Status Dispatcher::Impl::launch(const PlanEntry& entry, const Tensors& tensors, Stream stream) noexcept {
  SlParams params = entry.params;
  set_pointers(params, tensors);
  return device->launch(*entry.kernel, entry.geometry, params, stream);
}

template <bool checked>
[[gnu::always_inline]] inline Dispatcher::Impl::Known Dispatcher::Impl::known(const PlanTable::Key& key,
                                                                              const Tensors& tensors,
                                                                              Stream stream) noexcept {
  Unset unset;
  PlanEntry& entry = unset.entry;
  if (!PlanReader::find(plans, key, entry) || entry.kind == PlanEntry::Kind::empty) return Known::missing;
  if constexpr (checked) {
    if (!y_is_apart(entry.bytes, tensors)) return Known::missing;
  }
  if (entry.kind == PlanEntry::Kind::kept) {
    counters.hot.add(HotCounters::hit_kept);
    return Known::kept;
  }
  set_pointers(entry.params, tensors);
  if (!enqueue(*device, entry, entry.params, stream)) [[unlikely]]
    return Known::failed;
  counters.hot.add(HotCounters::hit_launched);
  return Known::launched;
}

Code Dispatcher::Impl::launch_again(const ConvProblem& problem, const Tensors& tensors, Stream stream, Regular regular,
                                    Error& error) {
  PlanEntry entry;
  if (!plans.find(plan_key(problem, regular), entry) || entry.kind != PlanEntry::Kind::plan) {
    return slow(problem, tensors, stream, regular, error);  // replaced in between
  }
  return launched(problem, regular, launch(entry, tensors, stream), error);
}

Code Dispatcher::Impl::launched(const ConvProblem& problem, Regular regular, const Status& status, Error& error) {
  if (!status.ok()) return launch_failed(problem, regular, status.error(), error);
  counters.launches.fetch_add(1, std::memory_order_relaxed);
  return Code::ok;
}

Code Dispatcher::Impl::launch_failed(const ConvProblem& problem, Regular regular, const Error& failure, Error& error) {
  const std::string call = signature(problem, device->info());
  if (regular == Regular::no) {
    error = {failure.code, "REQUIRED call " + call + " failed to launch: " + failure.message};
    return error.code;
  }
  // Nothing ran, so the caller's own convolution still can. One warning, or a dead device would flood the log.
  counters.fallbacks.fetch_add(1, std::memory_order_relaxed);
  counters.kept.fetch_add(1, std::memory_order_relaxed);
  log.warn_once("launch", "kept " + call + ", which failed to launch: " + failure.message);
  error = {Code::kept, "failed to launch: " + failure.message};
  return Code::kept;
}

Code Dispatcher::Impl::slow(const ConvProblem& problem, const Tensors& tensors, Stream stream, Regular regular,
                            Error& error) {
  if (problem.empty()) {
    if (Status valid = validate(problem); !valid.ok()) {
      error = std::move(valid).error();
      return error.code;
    }
    return Code::ok;
  }
  if (const auto entry = as_its_bucket(problem, regular)) {
    return launched(problem, regular, launch(*entry, tensors, stream), error);
  }
  Result<Answer> found = answer(problem, regular, {true, stream});
  if (!found.ok()) {
    error = std::move(found).error();
    return error.code;
  }
  if (found->entry.kind == PlanEntry::Kind::kept) {
    counters.kept.fetch_add(1, std::memory_order_relaxed);
    error = {Code::kept, std::move(found->record.reason)};
    return Code::kept;
  }
  return launched(problem, regular, launch(found->entry, tensors, stream), error);
}

Code Dispatcher::conv2d(const ConvProblem& problem, const Tensors& tensors, Stream stream, Regular regular,
                        Error& error) noexcept {
  try {
    if (!problem.empty()) {
      const PlanTable::Key key = plan_key(problem, regular);
      switch (impl_->known<false>(key, tensors, stream)) {
        case Impl::Known::launched:
          return Code::ok;
        case Impl::Known::kept:
          return Code::kept;
        case Impl::Known::failed:
          impl_->counters.plan_hits.fetch_add(1, std::memory_order_relaxed);
          return impl_->launch_again(problem, tensors, stream, regular, error);
        case Impl::Known::missing:
          impl_->counters.plan_misses.fetch_add(1, std::memory_order_relaxed);
          break;
      }
    }
    return impl_->slow(problem, tensors, stream, regular, error);
  } catch (const std::bad_alloc&) {
    return caught(error, Code::out_of_memory, "out of memory");
  } catch (const std::exception& exception) {
    return caught(error, Code::internal, exception.what());
  }
}

[[gnu::hot]] Code Dispatcher::known(const PlanTable::Key& key, const Tensors& tensors, Stream stream) noexcept {
  switch (impl_->known<true>(key, tensors, stream)) {
    case Impl::Known::launched:
      return Code::ok;
    case Impl::Known::kept:
      return Code::kept;
    default:
      return Code::not_found;
  }
}

Result<std::shared_ptr<const Plan>> Dispatcher::prepare(const ConvProblem& problem, Stream stream, Regular regular) {
  try {
    auto plan = std::make_shared<Plan>();
    plan->problem = problem;
    if (problem.empty()) {
      SL_ASSIGN(plan->decision, impl_->explain(problem, regular, true));
      plan->entry.kind = PlanEntry::Kind::plan;
      plan->entry.bytes = extents(problem);
      return std::shared_ptr<const Plan>(std::move(plan));
    }
    SL_ASSIGN(Answer answer, impl_->answer(problem, regular, {true, stream}));
    plan->entry = answer.entry;
    plan->decision = std::move(answer.record);
    if (plan->entry.kind == PlanEntry::Kind::kept) impl_->counters.kept.fetch_add(1, std::memory_order_relaxed);
    return std::shared_ptr<const Plan>(std::move(plan));
  } catch (const std::bad_alloc&) {
    return Error{Code::out_of_memory, "out of memory"};
  } catch (const std::exception& exception) {
    return Error{Code::internal, exception.what()};
  }
}

Status Dispatcher::run(const Plan& plan, const Tensors& tensors, Stream stream) noexcept {
  if (run_quickly(hot(), plan.entry, tensors, stream)) [[likely]]
    return {};
  if (plan.entry.kernel == nullptr) {
    if (plan.entry.kind == PlanEntry::Kind::plan) return {};  // n = 0
    return Error{Code::invalid, "plan is kept: run your own convolution"};
  }
  Status status = impl_->launch(plan.entry, tensors, stream);
  if (status.ok()) impl_->counters.launches.fetch_add(1, std::memory_order_relaxed);
  return status;
}

Result<Decision> Dispatcher::explain(const ConvProblem& problem, Regular regular, bool dry) {
  try {
    return impl_->explain(problem, regular, dry);
  } catch (const std::bad_alloc&) {
    return Error{Code::out_of_memory, "out of memory"};
  } catch (const std::exception& exception) {
    return Error{Code::internal, exception.what()};
  }
}

void Dispatcher::wait_idle() {
  if (!impl_->forked()) impl_->background.wait_idle();
}

HotPath Dispatcher::hot() noexcept { return {*impl_->device, impl_->counters.hot}; }
DispatchCounts Dispatcher::counters() const { return impl_->counters.now(); }
const PlanTable& Dispatcher::plans() const { return impl_->plans; }

}  // namespace sl
