#include "capi/context.hpp"

#include <unistd.h>

#include <utility>

#include "capi/errors.hpp"
#include "capi/null_device.hpp"
#include "capi/versioned.hpp"
#include "jit/backends.hpp"

namespace sl::capi {
namespace {

enum StoreKind : std::uint32_t { kind_binaries = 1, kind_decisions = 2 };

std::shared_ptr<FileStore> open_store(const Environment& environment, const char* folder, StoreKind kind,
                                      const Log& log) {
  const auto set = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
  const std::filesystem::path root =
      default_cache_root(set(environment.cache_dir), set(environment.xdg_cache_home), set(environment.home));
  StoreOptions options;
  if (!root.empty()) options.directory = root / folder;
  options.kind = kind;
  options.max_bytes = environment.cache_max_bytes;
  return std::make_shared<FileStore>(std::move(options), log);
}

Result<std::shared_ptr<Device>> open_device(const DeviceSpec& spec, const Environment& environment, const Log& log) {
  if (!spec.host) return open_cuda_device(spec.ordinal, environment, log);
  HostDeviceOptions options;
  options.capability = spec.capability;
  options.seed = environment.host_seed;
  return open_host_device(options);
}

Result<std::shared_ptr<const DecisionTable>> open_decisions(const Environment& environment, Policy policy) {
  if (environment.decision_table.empty()) {
    if (policy != Policy::pinned) return std::shared_ptr<const DecisionTable>();
    return Error{Code::invalid,
                 "policy pinned needs a decision table: set sluice_options.decision_table or SLUICE_DECISION_TABLE"};
  }
  SL_ASSIGN(DecisionTable table, DecisionTable::load(environment.decision_table));
  return std::shared_ptr<const DecisionTable>(std::make_shared<DecisionTable>(std::move(table)));
}

/// For a context that keeps every call: whatever is broken on this machine must not matter.
void open_nothing(sluice_context& context, const DispatcherOptions& settings) {
  const auto no_files = [&](StoreKind kind) {
    StoreOptions options;
    options.kind = kind;
    return std::make_shared<FileStore>(std::move(options), context.log);
  };
  context.device = make_null_device();
  context.binaries = std::make_shared<BinaryCache>(make_null_compiler(), no_files(kind_binaries), context.log);
  context.dispatcher.emplace(context.device, context.binaries,
                             std::make_shared<DecisionStore>(no_files(kind_decisions)),
                             std::make_shared<RoutingTable>(RoutingTable::take_everything("none: Sluice is off")),
                             nullptr, context.environment, settings, context.log);
}

LogSink sink_of(const sluice_options& options) {
  if (options.log == nullptr) return {};
  return [callback = options.log, user = options.log_user](LogLevel level, std::string_view message) {
    callback(static_cast<sluice_log_level>(level), std::string(message).c_str(), user);
  };
}

}  // namespace

Result<std::unique_ptr<sluice_context>> make_context(const sluice_options& options) {
  SL_ASSIGN(Environment environment, read_environment());
  SL_TRY(apply(options, environment));
  SL_ASSIGN(const DeviceSpec spec, parse_device(options.device == nullptr ? "cuda" : options.device));
  SL_ASSIGN(DispatcherOptions settings, dispatcher_options(options, environment));

  auto context = std::make_unique<sluice_context>(sink_of(options), static_cast<LogLevel>(options.log_level));
  const Log& log = context->log;
  context->owner = getpid();
  context->environment = std::move(environment);
  const Environment& env = context->environment;
  if (env.disabled || settings.policy == Policy::off) {
    open_nothing(*context, settings);
    return context;
  }
  SL_ASSIGN(context->device, open_device(spec, env, log));
  SL_ASSIGN(TableChoice tables, find_routing_table(context->device->info(), env.routing_table, log));
  SL_ASSIGN(std::shared_ptr<const DecisionTable> decisions, open_decisions(env, settings.policy));
  settings.searched = std::move(tables.searched);
  SL_ASSIGN(settings.heuristic, LazyHeuristic::open(context->device->info(), env.heuristic));
  SL_ASSIGN(settings.sanitized, find_sanitized(env.sanitized));
  std::shared_ptr<Compiler> compiler = spec.host ? make_host_compiler(env, log) : make_nvrtc_compiler(env, log);
  context->binaries =
      std::make_shared<BinaryCache>(std::move(compiler), open_store(env, "binaries", kind_binaries, log), log);
  context->dispatcher.emplace(context->device, context->binaries,
                              std::make_shared<DecisionStore>(open_store(env, "decisions", kind_decisions, log)),
                              std::move(tables.table), std::move(decisions), env, settings, log);
  return context;
}

}  // namespace sl::capi

using namespace sl;
using namespace sl::capi;

extern "C" {

sluice_status sluice_context_create(const sluice_options* options, sluice_context** context) {
  return guarded([&]() -> sluice_status {
    if (context == nullptr) return invalid("context = NULL, must point to where the context goes");
    *context = nullptr;
    sluice_options known = SLUICE_OPTIONS_INIT;
    if (options != nullptr) {
      constexpr std::size_t least = offsetof(sluice_options, device) + sizeof(options->device);
      if (Status status = read_versioned(options, least, "sluice_options", known); !status.ok()) {
        return report(std::move(status).error());
      }
    }
    Result<std::unique_ptr<sluice_context>> made = make_context(known);
    if (!made.ok()) return report(std::move(made).error());
    *context = made->release();
    return SLUICE_OK;
  });
}

void sluice_context_destroy(sluice_context* context) {
  // In a forked child the device and the threads are the parent's: touching them may hang, leaking may not.
  if (context == nullptr || context->owner != getpid()) return;
  delete context;
}

sluice_status sluice_get_counters(const sluice_context* context, sluice_counters* counters) {
  return guarded([&]() -> sluice_status {
    if (context == nullptr) return invalid("context = NULL, must be a context");
    if (counters == nullptr) return invalid("counters = NULL, must point to where the counters go");
    sluice_counters now = SLUICE_COUNTERS_INIT;
    constexpr std::size_t least = offsetof(sluice_counters, compiles) + sizeof(now.compiles);
    if (counters->size < least) {
      return invalid("sluice_counters.size = " + std::to_string(counters->size) +
                     ", must be sizeof(sluice_counters) = " + std::to_string(sizeof(now)) +
                     " (SLUICE_COUNTERS_INIT sets it)");
    }
    const DispatchCounts dispatch = context->dispatcher->counters();
    const JitCounters& jit = context->binaries->counters();
    now.compiles = jit.compiles;
    now.binary_hits = jit.binary_hits;
    now.decision_hits = dispatch.decision_hits;
    now.tunings = dispatch.tunings;
    now.launches = dispatch.launches;
    now.kept = dispatch.kept + context->kept_for_strides;
    now.fallbacks = dispatch.fallbacks;
    now.plan_hits = dispatch.plan_hits;
    now.plan_misses = dispatch.plan_misses;
    now.size = counters->size;
    std::memcpy(counters, &now, std::min(now.size, sizeof(now)));
    return SLUICE_OK;
  });
}

sluice_status sluice_wait_idle(sluice_context* context) {
  return guarded([&]() -> sluice_status {
    if (context == nullptr) return invalid("context = NULL, must be a context");
    context->dispatcher->wait_idle();
    return SLUICE_OK;
  });
}

int32_t sluice_device_supports(const sluice_context* context, int32_t min_capability) {
  return context != nullptr && device_supports(min_capability, context->device->info()) ? 1 : 0;
}

}  // extern "C"
