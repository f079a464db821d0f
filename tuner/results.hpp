// The rows that `sluice bench` writes: what was measured on which machine (docs/file-formats.md).
#pragma once

#include <filesystem>
#include <string>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "tuner/row_file.hpp"
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

Result<RowFile> open_results(const std::filesystem::path&, const ResultsHeader&);
RowFile::Json results_row(const ResultsRow&);
/// Whether the file has a time for this problem.
bool has_time(const RowFile&, const ConvProblem&);

}  // namespace sl::tool
