// The file that `sluice bench` writes: what was measured on which machine, a row a call (docs/file-formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "tuning/roofline.hpp"

namespace sl::tool {

/// What all rows of a file share. Rows of another GPU or driver do not belong in it.
struct ResultsHeader {
  std::string gpu, driver, commit;
  Peaks peaks;
};

struct ResultsRow {
  ConvProblem problem;
  std::string schedule, config;
  double time_us = 0, low_us = 0, high_us = 0;  ///< median, 10th and 90th percentile
  double copy_us = 0, floor_us = 0;
  double error_over_bound = 0;
  int registers = 0, smem = 0;  ///< of the kernel, as compiled
  std::string error;            ///< why there is no time; empty where there is one
};

/// A results file in the making. Each row is in `FILE.part` (one JSON object a line) when add() returns, so that a kill
/// loses at most the row in flight; finish() puts the whole at FILE in one step and removes the part file.
class Results {
 public:
  /// Reads FILE and FILE.part where they are there. Refuses a file of another GPU or driver, and one that is not such a
  /// file, naming what stands there; nothing is written before the first add().
  static Result<Results> open(const std::filesystem::path&, const ResultsHeader&);
  /// Whether a row with a time for this problem is there already.
  bool has(const ConvProblem&) const;
  Status add(const ResultsRow&);
  Status finish();
  std::size_t rows() const { return rows_.size(); }

 private:
  std::filesystem::path path_;
  ResultsHeader header_;
  std::map<std::string, std::string> rows_;  // by the problem's canonical text: the row as one line of JSON
};

}  // namespace sl::tool
