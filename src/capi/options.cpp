#include <charconv>
#include <cmath>
#include <string_view>

#include "capi/context.hpp"
#include "schedules/known.hpp"

namespace sl::capi {
namespace {

constexpr std::string_view device_forms = "cuda, cuda:N, host or host:CAPABILITY (as in host:90)";

Result<int> number_after(std::string_view text, std::size_t prefix, int least, int most) {
  const std::string_view digits = text.substr(prefix);
  int value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code == std::errc{} && end == digits.data() + digits.size() && value >= least && value <= most) return value;
  return Error{Code::invalid, "device = \"" + std::string(text) + "\": \"" + std::string(digits) +
                                  "\" must be a whole number from " + std::to_string(least) + " to " +
                                  std::to_string(most)};
}

Error bad(const char* field, const std::string& value, const std::string& right) {
  return {Code::invalid, std::string("sluice_options.") + field + " = " + value + ", must be " + right};
}

}  // namespace

Result<DeviceSpec> parse_device(std::string_view text) {
  DeviceSpec spec;
  if (text == "cuda") return spec;
  if (text.starts_with("cuda:")) {
    SL_ASSIGN(spec.ordinal, number_after(text, 5, 0, 1023));
    return spec;
  }
  if (text == "host" || text.starts_with("host:")) {
    spec.host = true;
    if (text == "host") return spec;
    SL_ASSIGN(spec.capability, number_after(text, 5, 50, 990));
    return spec;
  }
  return Error{Code::invalid, "device = \"" + std::string(text) + "\", must be " + std::string(device_forms)};
}

Status apply(const sluice_options& options, Environment& environment) {
  if (options.policy < -1 || options.policy > SLUICE_OFF) {
    return bad("policy", std::to_string(options.policy), "a sluice_policy (0 to 4), or -1 for the environment's");
  }
  if (options.policy >= 0) environment.policy = name(static_cast<Policy>(options.policy));
  if (options.cache_dir != nullptr) environment.cache_dir = options.cache_dir;
  if (options.routing_table != nullptr) environment.routing_table = options.routing_table;
  if (options.heuristic != nullptr) environment.heuristic = options.heuristic;
  if (options.decision_table != nullptr) environment.decision_table = options.decision_table;
  if (options.record != nullptr) environment.record = options.record;
  if (!std::isfinite(options.tune_budget_ms) || options.tune_budget_ms < 0) {
    return bad("tune_budget_ms", std::to_string(options.tune_budget_ms), "finite and not negative (0 = default)");
  }
  if (options.tune_budget_ms > 0) environment.tune_budget_ms = options.tune_budget_ms;
  if (options.tune_scratch_bytes > 0) environment.tune_scratch_bytes = options.tune_scratch_bytes;
  if (options.tune_threads < 0 || options.tune_threads > 1024) {
    return bad("tune_threads", std::to_string(options.tune_threads), "from 0 (default) to 1024");
  }
  if (options.tune_threads > 0) environment.tune_threads = options.tune_threads;
  if (options.force_take != 0 && options.force_take != 1) {
    return bad("force_take", std::to_string(options.force_take), "0 or 1");
  }
  if (options.log_level < SLUICE_DEBUG || options.log_level > SLUICE_ERROR) {
    return bad("log_level", std::to_string(options.log_level), "a sluice_log_level (0 to 3)");
  }
  if (options.pinned_accepts < SLUICE_MATCH_EXACT || options.pinned_accepts > SLUICE_MATCH_OTHER_CANDIDATES) {
    return bad("pinned_accepts", std::to_string(options.pinned_accepts), "a sluice_match (0 to 2)");
  }
  return known_schedules(environment);
}

Result<Policy> choose_policy(const Environment& environment) {
  if (environment.policy.empty()) return Policy::first_use;
  if (const auto policy = parse_policy(environment.policy)) return *policy;
  return Error{Code::invalid, "SLUICE_POLICY = \"" + environment.policy +
                                  "\", must be first_use, immediate, background, pinned or off"};
}

Result<DispatcherOptions> dispatcher_options(const sluice_options& given, const Environment& environment) {
  DispatcherOptions options;
  SL_ASSIGN(options.policy, choose_policy(environment));
  static_assert(static_cast<int>(Match::exact) == SLUICE_MATCH_EXACT + 1 &&
                static_cast<int>(Match::other_candidates) == SLUICE_MATCH_OTHER_CANDIDATES + 1);
  options.pinned_accepts = static_cast<Match>(given.pinned_accepts + 1);
  options.force_take = given.force_take == 1;
  options.tune.budget.time_ms = environment.tune_budget_ms;
  options.tune.budget.scratch_bytes = environment.tune_scratch_bytes;
  options.tune.budget.threads = environment.tune_threads;
  return options;
}

}  // namespace sl::capi
