// Every environment variable Sluice reads, read once when a context is made (docs/environment.md is the same table).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace sl {

struct Environment {
  bool disabled = false;                        ///< SLUICE_DISABLE=1: every call is kept
  std::string force_schedule;                   ///< SLUICE_FORCE_SCHEDULE=name: only this schedule is a candidate
  std::vector<std::string> disabled_schedules;  ///< SLUICE_DISABLE_SCHEDULES=a,b
  std::string cache_dir;                        ///< SLUICE_CACHE_DIR: root of both stores; "off" = no store
  std::uint64_t cache_max_bytes = 1ULL << 30;   ///< SLUICE_CACHE_MAX_MB, for each store
  std::string routing_table;     ///< SLUICE_ROUTING_TABLE: file or folder of user tables, before the shipped ones
  std::string heuristic;         ///< SLUICE_HEURISTIC: file or folder of user models, before the shipped ones
  std::string sanitized;         ///< SLUICE_SANITIZED: list of what passed the sanitizers (file); "all" = everything
  std::string decision_table;    ///< SLUICE_DECISION_TABLE: tuned decisions (file) for policy pinned
  std::string policy;            ///< SLUICE_POLICY
  std::string record;            ///< SLUICE_RECORD: file that each new call is appended to
  std::string nvrtc;             ///< SLUICE_NVRTC: path of libnvrtc
  std::string libcuda;           ///< SLUICE_LIBCUDA: path of libcuda (tests)
  std::string host_cxx;          ///< SLUICE_HOST_CXX: compiler of the host device
  std::uint64_t host_seed = 0;   ///< SLUICE_HOST_SEED: thread order of the host device
  double tune_budget_ms = 1000;  ///< SLUICE_TUNE_BUDGET_MS
  std::uint64_t tune_scratch_bytes = 1ULL << 30;      ///< SLUICE_TUNE_SCRATCH_MB
  int tune_threads = 0;                               ///< SLUICE_TUNE_THREADS: compile threads; 0 = min(cores, 16)
  std::string cuda_home, xdg_cache_home, home, path;  ///< CUDA_HOME or CUDA_PATH, XDG_CACHE_HOME, HOME, PATH
};

/// One row of the table: name, default, meaning. docs/environment.md is checked against it by a test.
struct EnvironmentVariable {
  const char* name;
  const char* fallback;
  const char* meaning;
};
const std::vector<EnvironmentVariable>& environment_variables();

/// Reads through `get` (getenv in production, a map in tests). A malformed value is an error naming the variable, the
/// value and what would be right.
Result<Environment> read_environment(const std::function<const char*(const char*)>& get);
Result<Environment> read_environment();

}  // namespace sl
