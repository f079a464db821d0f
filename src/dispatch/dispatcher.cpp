#include "dispatch/dispatcher.hpp"

#include <unistd.h>

#include <exception>
#include <utility>

#include "dispatch/impl.hpp"

namespace sl {
namespace {

TriageRules rules_of(const RoutingTable* table, const Environment& environment, const DispatcherOptions& options) {
  TriageRules rules{table,           environment.force_schedule, environment.disabled_schedules, options.force_take, {},
                    options.searched};
  if (options.policy == Policy::off) rules.off = "policy off keeps every call";
  if (environment.disabled) rules.off = "SLUICE_DISABLE=1 keeps every call";
  return rules;
}

bool chooses_freely(const Environment& environment) {
  return environment.force_schedule.empty() && environment.disabled_schedules.empty();
}

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
      binaries(std::move(binaries_in)),
      store(std::move(store_in)),
      routing(std::move(routing_in)),
      table(std::move(table_in)),
      options(options_in),
      log(log_in),
      rules(rules_of(routing.get(), environment, options)),
      owner(getpid()),
      plans(options.plan_capacity),
      winners(plans.capacity()),
      kernels(*device, *binaries),
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

Status Dispatcher::Impl::launch(const Kernel& kernel, const Geometry& geometry, SlParams& params,
                                const Tensors& tensors, Stream stream) noexcept {
  params.x = tensors.x;
  params.weight = tensors.w;
  params.bias = tensors.bias;
  params.z = tensors.z;
  params.y = tensors.y;
  Status status = device->launch(kernel, geometry, params, stream);
  if (status.ok()) counters.launches.fetch_add(1, std::memory_order_relaxed);
  return status;
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
  if (Status status = launch(*found->entry.kernel, found->entry.geometry, found->entry.params, tensors, stream);
      !status.ok()) {
    return launch_failed(problem, regular, status.error(), error);
  }
  return Code::ok;
}

Code Dispatcher::conv2d(const ConvProblem& problem, const Tensors& tensors, Stream stream, Regular regular,
                        Error& error) noexcept {
  try {
    PlanEntry entry;
    if (!problem.empty()) {
      if (impl_->plans.find(plan_key(problem, regular), entry)) {
        impl_->counters.plan_hits.fetch_add(1, std::memory_order_relaxed);
        if (entry.kind == PlanEntry::Kind::kept) {
          impl_->counters.kept.fetch_add(1, std::memory_order_relaxed);
          return Code::kept;
        }
        Status status = impl_->launch(*entry.kernel, entry.geometry, entry.params, tensors, stream);
        if (status.ok()) return Code::ok;
        return impl_->launch_failed(problem, regular, status.error(), error);
      }
      impl_->counters.plan_misses.fetch_add(1, std::memory_order_relaxed);
    }
    return impl_->slow(problem, tensors, stream, regular, error);
  } catch (const std::bad_alloc&) {
    return caught(error, Code::out_of_memory, "out of memory");
  } catch (const std::exception& exception) {
    return caught(error, Code::internal, exception.what());
  }
}

Result<std::shared_ptr<const Plan>> Dispatcher::prepare(const ConvProblem& problem, Stream stream, Regular regular) {
  try {
    auto plan = std::make_shared<Plan>();
    plan->problem = problem;
    if (problem.empty()) {
      SL_ASSIGN(plan->decision, impl_->explain(problem, regular, true));
      plan->entry.kind = PlanEntry::Kind::plan;
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
  if (plan.problem.empty()) return {};
  if (plan.entry.kernel == nullptr) return Error{Code::invalid, "plan is kept: run your own convolution"};
  SlParams params = plan.entry.params;
  return impl_->launch(*plan.entry.kernel, plan.entry.geometry, params, tensors, stream);
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

const DispatchCounters& Dispatcher::counters() const { return impl_->counters; }
const PlanTable& Dispatcher::plans() const { return impl_->plans; }

}  // namespace sl
