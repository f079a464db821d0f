#include "tuner/session.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sl::tool {
namespace {

enum StoreKind : std::uint32_t { kind_binaries = 1, kind_decisions = 2 };

Result<Policy> choose_policy(const Environment& environment, const std::optional<Policy>& asked) {
  if (asked) return *asked;
  if (environment.policy.empty()) return Policy::first_use;
  if (const auto policy = parse_policy(environment.policy)) return *policy;
  return Error{Code::invalid, "SLUICE_POLICY=" + environment.policy +
                                  ": not a policy; use first_use, immediate, background, pinned or off"};
}

DispatcherOptions dispatcher_options(const Environment& environment, Policy policy, bool force) {
  DispatcherOptions options;
  options.policy = policy;
  options.force_take = force;
  options.tune.budget.time_ms = environment.tune_budget_ms;
  options.tune.budget.scratch_bytes = environment.tune_scratch_bytes;
  options.tune.budget.threads = environment.tune_threads;
  return options;
}

Result<std::shared_ptr<const DecisionTable>> pinned_table(const Environment& environment, Policy policy) {
  std::shared_ptr<const DecisionTable> none;
  if (environment.decision_table.empty()) {
    if (policy != Policy::pinned) return none;
    return Error{Code::invalid,
                 "policy pinned needs a decision table: give --decision-table or set SLUICE_DECISION_TABLE"};
  }
  SL_ASSIGN(auto table, DecisionTable::load(environment.decision_table));
  return std::shared_ptr<const DecisionTable>(std::make_shared<DecisionTable>(std::move(table)));
}

Status check_writable(const Stores& stores) {
  if (stores.root.empty()) {
    return Error{Code::environment, "no cache directory, and --require-cache demands one: set SLUICE_CACHE_DIR"};
  }
  SL_TRY(stores.binaries->writable());
  return stores.decisions->writable();
}

}  // namespace

Result<DeviceName> parse_device_name(std::string_view text) {
  if (text == "host") return DeviceName{true, 0};
  if (text == "cuda") return DeviceName{false, 0};
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix)) {
    int ordinal = -1;
    const auto digits = text.substr(prefix.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (error == std::errc{} && end == digits.data() + digits.size() && ordinal >= 0) return DeviceName{false, ordinal};
  }
  return Error{Code::invalid, "device \"" + std::string(text) + "\": not a device; use cuda, cuda:N or host"};
}

Preflight look(const ConvProblem& problem, const DeviceInfo& device, Regular regular, const Environment& environment,
               const Sanitized* passed) {
  return preflight(problem, device, regular, forced(environment), environment.disabled_schedules, passed);
}

std::vector<std::string> forced(const Environment& environment) {
  if (environment.force_schedule.empty()) return {};
  return {environment.force_schedule};
}

Stores open_stores(const Environment& environment, const Log& log) {
  Stores stores;
  if (environment.cache_dir != "off") {
    const auto set = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    stores.root =
        default_cache_root(set(environment.cache_dir), set(environment.xdg_cache_home), set(environment.home));
  }
  const auto open = [&](const char* folder, std::uint32_t kind) {
    StoreOptions options;
    if (!stores.root.empty()) options.directory = stores.root / folder;
    options.kind = kind;
    options.max_bytes = environment.cache_max_bytes;
    return std::make_shared<FileStore>(std::move(options), log);
  };
  stores.binaries = open("binaries", kind_binaries);
  stores.decisions = open("decisions", kind_decisions);
  return stores;
}

Result<std::shared_ptr<Device>> open_device(const DeviceName& name, int emulate, const Environment& environment,
                                            const Log& log) {
  if (!name.host) return open_cuda_device(name.ordinal, environment, log);
  HostDeviceOptions options;
  options.capability = emulate;
  options.seed = environment.host_seed;
  return open_host_device(options);
}

Result<std::unique_ptr<Session>> open_session(const Environment& environment, const SessionOptions& asked,
                                              const Log& log) {
  auto session = std::make_unique<Session>();
  session->environment = environment;
  SL_ASSIGN(const Policy policy, choose_policy(environment, asked.policy));
  session->options = dispatcher_options(environment, policy, asked.force);

  DeviceName name;
  if (asked.opened != nullptr) {
    name.host = asked.opened->info().backend == "host";
  } else if (!asked.device.empty()) {
    SL_ASSIGN(name, parse_device_name(asked.device));
  } else {
    const auto count = cuda_device_count(environment);
    name.host = !count.ok() || count.value() == 0;
  }
  session->device = asked.opened;
  if (session->device == nullptr) {
    SL_ASSIGN(session->device, open_device(name, asked.emulate, environment, log));
  }
  session->compiler = name.host ? make_host_compiler(environment, log) : make_nvrtc_compiler(environment, log);
  SL_ASSIGN(session->table, find_routing_table(session->device->info(), environment.routing_table, log));
  session->options.searched = session->table.searched;
  SL_ASSIGN(session->options.heuristic, LazyHeuristic::open(session->device->info(), environment.heuristic));
  SL_ASSIGN(session->options.sanitized, find_sanitized(environment.sanitized));
  SL_ASSIGN(session->pinned, pinned_table(environment, policy));
  renew_dispatcher(*session, log);
  if (asked.require_cache) SL_TRY(check_writable(session->stores));
  return session;
}

bool is_described(const std::string& device) {
  const auto known = described_devices();
  return std::find(known.begin(), known.end(), device) != known.end();
}

void renew_dispatcher(Session& session, const Log& log) {
  session.dispatcher.reset();
  session.stores = open_stores(session.environment, log);
  session.binaries = std::make_shared<BinaryCache>(session.compiler, session.stores.binaries, log);
  session.probes = std::make_shared<BinaryCache>(session.compiler, session.stores.binaries, log);
  session.decisions = std::make_shared<DecisionStore>(session.stores.decisions);
  session.dispatcher =
      std::make_unique<Dispatcher>(session.device, session.binaries, session.decisions, session.table.table,
                                   session.pinned, session.environment, session.options, log);
}

}  // namespace sl::tool
