// The parts of `sluice tune`: in this process, in one process a GPU (--jobs), or in a child that may die (--isolate).
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "tuner/options.hpp"

namespace sl::tool {

/// Calls by what became of them; `crashed` counts candidates that took a child with them, `rows` the table's.
struct TuneTally {
  std::size_t tuned = 0, there = 0, cannot = 0, failed = 0, crashed = 0, left = 0, rows = 0;

  nlohmann::ordered_json json(const std::string& out) const;
  /// Adds what json() of another process said.
  void add(const nlohmann::json&);
};
void show(const TuneTally&, const std::string& out, bool json);

/// The command line of a `tune` with these options.
std::vector<std::string> tune_words(const Options&);

/// What a child is given, and how it says what it is doing (worker.hpp); null where this process tunes for itself.
class Worker;
Result<int> tune_here(const Options&, const std::vector<ConvProblem>& calls, const Worker*);
/// One process a GPU; their tables and what stands at --out already become the table.
Result<int> tune_in_jobs(const Options&, const std::vector<ConvProblem>& calls, std::size_t jobs);
/// In a child, started again without the candidate that it died of.
Result<int> tune_isolated(const Options&, const std::vector<ConvProblem>& calls);

}  // namespace sl::tool
