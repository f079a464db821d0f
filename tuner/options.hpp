// The command line as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/environment.hpp"
#include "core/result.hpp"
#include "dispatch/dispatcher.hpp"
#include "routing/routing.hpp"

namespace sl::tool {

enum class Command {
  none,
  devices,
  run,
  explain,
  bench,
  tune,
  compile,
  merge,
  lint,
  derive,
  fit,
  report,
  suite,
  rewrite,
  cache_ls,
  cache_verify,
  cache_prune,
  cache_clear,
  cache_path,
  env
};

/// Texts are as typed; empty = not given.
struct Options {
  Command command = Command::none;
  bool json = false, verbose = false;

  // the problem
  std::vector<std::string> problem;  ///< descriptor and key=value tokens, joined by spaces
  std::string dtype, tag, weight_tag, bias, activation, alpha, beta, align;
  bool residual = false;
  std::string regular = "yes";

  // the device and how it decides
  std::string device;
  std::string policy;
  int emulate = 90;
  bool force = false;
  bool untested = false;  ///< as SLUICE_SANITIZED=all

  // run
  int iterations = 30;
  std::uint64_t seed = 1;
  std::int64_t check = -1;  ///< outputs checked: 0 = all, -1 = as many as take about a second
  bool integer_data = false;

  // bench, tune, merge, lint, derive, fit, report, suite
  std::vector<std::string> inputs, suites, dtypes, tags;
  std::vector<std::int64_t> batches;
  std::string out, commit, shard;
  int sample = 0;      ///< calls drawn from the suites; 0 = all
  double budget = 0;   ///< seconds; 0 = none
  double tune_ms = 0;  ///< a call; 0 = the environment's
  double margin = 0.05, noise = 0.03;
  int min_cases = 2;
  int jobs = 1;                          ///< processes, one a GPU; 0 = as many as there are GPUs
  bool isolate = false, worker = false;  ///< tune in a child; be that child
  double patience = 60;                  ///< seconds without a word after which a child counts as hung
  int parent = 0;                        ///< of a process that `tune` started: the id of the one it ends with; 0 = none
  bool only_missing = false, compile = false;

  // suite
  std::size_t grid = 0;  ///< calls of a drawn suite; 0 = none asked for
  bool dense = false;

  // rewrite
  std::string model;
  std::string lowering = "onnxruntime";  ///< what the caller's own lowering can compile
  std::int64_t plan_batch = 0;           ///< 0 = not given
  bool dry_run = false;

  // where files are, over the environment
  std::string cache_dir, routing_table, decision_table, heuristic;
  bool require_cache = false;
  std::int64_t max_mb = -1;

  // bench
  bool warm = false, every_schedule = false;
  std::string rivals, cudnn_library, cudnn_engines = "heuristic";
  int cudnn_sample = 0;  ///< calls for which every engine is tried
  int cudnn_limit = 0;   ///< engines tried for the others; 0 = all that the heuristics name
  std::int64_t cudnn_workspace_mb = 1024;
};

/// What main() does next: run `options.command`, or leave with `exit` (help was printed, or the usage was wrong and
/// said so).
struct Parsed {
  Options options;
  std::optional<int> exit;
};
Parsed parse_command_line(int argc, const char* const* argv);

/// The ConvProblem that the options spell.
Result<ConvProblem> problem_of(const Options&);
Regular regular_of(const Options&);
/// None where no --policy was given.
Result<std::optional<Policy>> policy_of(const Options&);
/// The process's environment, overlaid by the options.
Result<Environment> environment_of(const Options&);

}  // namespace sl::tool
