// One table of rows: what is documented is what is read.
#include "core/environment.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace sl {
namespace {

constexpr std::uint64_t megabyte = 1ULL << 20;

// A reader returns nullptr where it took the value, else what would be right.
using Reader = const char* (*)(Environment&, std::string_view value);

struct Row {
  EnvironmentVariable variable;
  Reader read;
};

template <std::string Environment::*field>
const char* take_text(Environment& environment, std::string_view value) {
  environment.*field = value;
  return nullptr;
}

// The whole of `value` as a number from 0 on; false also where it does not fit.
template <class T>
bool read_number(std::string_view value, T& number) {
  const char* last = value.data() + value.size();
  const auto [end, error] = std::from_chars(value.data(), last, number);
  return error == std::errc() && end == last && number >= T{};
}

template <std::uint64_t Environment::*field>
const char* take_megabytes(Environment& environment, std::string_view value) {
  std::uint64_t count = 0;
  if (!read_number(value, count) || __builtin_mul_overflow(count, megabyte, &(environment.*field))) {
    return "a whole number of MiB from 0 to 17592186044415";
  }
  return nullptr;
}

const char* take_disable(Environment& environment, std::string_view value) {
  if (value != "0" && value != "1") return "0 or 1";
  environment.disabled = value == "1";
  return nullptr;
}

const char* take_schedules(Environment& environment, std::string_view value) {
  environment.disabled_schedules.clear();
  while (true) {
    const std::size_t comma = value.find(',');
    const std::string_view name = value.substr(0, comma);
    if (name.empty()) return "schedule names separated by single commas, as in dw_row8,dw_mult";
    environment.disabled_schedules.emplace_back(name);
    if (comma == std::string_view::npos) return nullptr;
    value.remove_prefix(comma + 1);
  }
}

const char* take_policy(Environment& environment, std::string_view value) {
  for (const std::string_view known : {"first_use", "immediate", "background", "pinned", "off"}) {
    if (value == known) {
      environment.policy = value;
      return nullptr;
    }
  }
  return "first_use, immediate, background, pinned or off";
}

const char* take_seed(Environment& environment, std::string_view value) {
  return read_number(value, environment.host_seed) ? nullptr : "a whole number from 0 to 18446744073709551615";
}

const char* take_budget(Environment& environment, std::string_view value) {
  constexpr double day_ms = 24.0 * 3600 * 1000;
  double number = 0;
  if (!read_number(value, number) || !std::isfinite(number) || number > day_ms) {
    return "milliseconds from 0 to 86400000";
  }
  environment.tune_budget_ms = number;
  return nullptr;
}

const char* take_threads(Environment& environment, std::string_view value) {
  int number = 0;
  if (!read_number(value, number) || number > 1024) return "a whole number from 0 to 1024";
  environment.tune_threads = number;
  return nullptr;
}

const char* take_cuda_path(Environment& environment, std::string_view value) {
  if (environment.cuda_home.empty()) environment.cuda_home = value;  // CUDA_HOME's row is read before
  return nullptr;
}

const Row rows[] = {
    {{"SLUICE_DISABLE", "0", "1: every call is kept, so your own convolution runs"}, take_disable},
    {{"SLUICE_FORCE_SCHEDULE", "", "only this schedule is a candidate"}, take_text<&Environment::force_schedule>},
    {{"SLUICE_DISABLE_SCHEDULES", "", "schedules that are no candidates, separated by commas"}, take_schedules},
    {{"SLUICE_CACHE_DIR", "", "root of both stores; off = no store; unset: $XDG_CACHE_HOME/sluice or ~/.cache/sluice"},
     take_text<&Environment::cache_dir>},
    {{"SLUICE_CACHE_MAX_MB", "1024", "bound of each store, in MiB"}, take_megabytes<&Environment::cache_max_bytes>},
    {{"SLUICE_ROUTING_TABLE", "", "file or folder of routing tables that go before the shipped ones"},
     take_text<&Environment::routing_table>},
    {{"SLUICE_HEURISTIC", "", "file or folder of models that pick for policy immediate, before the shipped ones"},
     take_text<&Environment::heuristic>},
    {{"SLUICE_SANITIZED", "",
      "file that lists the schedules which passed the sanitizers, instead of the shipped list; all = every schedule"},
     take_text<&Environment::sanitized>},
    {{"SLUICE_DECISION_TABLE", "", "file of tuned decisions, for policy pinned"},
     take_text<&Environment::decision_table>},
    {{"SLUICE_POLICY", "first_use", "first_use, immediate, background, pinned or off"}, take_policy},
    {{"SLUICE_RECORD", "", "file that each new call is appended to, a suite for `sluice tune`; unset: none"},
     take_text<&Environment::record>},
    {{"SLUICE_NVRTC", "", "path of libnvrtc; unset: the documented places"}, take_text<&Environment::nvrtc>},
    {{"SLUICE_LIBCUDA", "", "path of libcuda (tests); unset: libcuda.so.1"}, take_text<&Environment::libcuda>},
    {{"SLUICE_HOST_CXX", "", "compiler of the host device; unset: the first of c++, g++, clang++ on PATH"},
     take_text<&Environment::host_cxx>},
    {{"SLUICE_HOST_SEED", "0", "order of the threads on the host device"}, take_seed},
    {{"SLUICE_TUNE_BUDGET_MS", "1000", "time for tuning one shape, from compiling to the winner's last check, in ms"},
     take_budget},
    {{"SLUICE_TUNE_SCRATCH_MB", "1024", "device memory that tuning may use, in MiB"},
     take_megabytes<&Environment::tune_scratch_bytes>},
    {{"SLUICE_TUNE_THREADS", "0",
      "threads that compile candidates, and that look at what others computed meanwhile; 0 = the cores, at most 16"},
     take_threads},
    {{"CUDA_HOME", "", "a place where NVRTC is looked for"}, take_text<&Environment::cuda_home>},
    {{"CUDA_PATH", "", "the same, where CUDA_HOME is not set"}, take_cuda_path},
    {{"XDG_CACHE_HOME", "", "the user's cache directory"}, take_text<&Environment::xdg_cache_home>},
    {{"HOME", "", "the user's home, where XDG_CACHE_HOME is not set"}, take_text<&Environment::home>},
    {{"PATH", "", "where the host device's compiler is looked for"}, take_text<&Environment::path>},
};

}  // namespace

const std::vector<EnvironmentVariable>& environment_variables() {
  static const std::vector<EnvironmentVariable> variables = [] {
    std::vector<EnvironmentVariable> result;
    for (const Row& row : rows) result.push_back(row.variable);
    return result;
  }();
  return variables;
}

Result<Environment> read_environment(const std::function<const char*(const char*)>& get) {
  Environment environment;
  for (const Row& row : rows) {
    const char* value = get(row.variable.name);
    if (value == nullptr || *value == '\0') continue;  // an empty variable counts as unset
    if (const char* right = row.read(environment, value)) {
      return Error{Code::invalid,
                   std::string("environment variable ") + row.variable.name + " is `" + value + "`, must be " + right};
    }
  }
  return environment;
}

Result<Environment> read_environment() {
  return read_environment([](const char* name) { return std::getenv(name); });
}

}  // namespace sl
