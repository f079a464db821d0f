// The rows that `sluice bench` writes: what was measured on which machine (docs/file-formats.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "tuner/cudnn/rival.hpp"
#include "tuner/row_file.hpp"
#include "tuning/roofline.hpp"

namespace sl::tool {

/// What all rows of a file share. Rows of another GPU, driver, protocol or cuDNN do not belong in it.
struct ResultsHeader {
  std::string gpu;
  int capability = 0;
  std::string driver, version, commit;
  bool warm = false;
  std::size_t cudnn = 0;  ///< its version number; 0 where no row has cuDNN
  Peaks peaks;
};

/// Microseconds of one contender.
struct Timed {
  double median = 0, low = 0, high = 0;  ///< low and high: 10th and 90th percentile
  double least = 0, most = 0;            ///< 95 % confidence interval of the median
};

struct RivalRow {
  std::string name;  ///< "cudnn", "cudnn_conv"
  std::optional<Timed> time;
  bool every_engine = false;
  cudnn::Chosen chosen;
};

struct ResultsRow {
  ConvProblem problem;
  std::string schedule, config;
  std::optional<Timed> time;
  double copy_us = 0, floor_us = 0;
  double error_over_bound = 0;
  int registers = 0, smem = 0;  ///< of the kernel, as compiled
  double prepare_ms = 0;        ///< from the question to a plan: decide, and where it is new compile, check and time
  std::uint64_t compiles = 0;   ///< kernels compiled in that
  int clock_mhz = 0;            ///< SM clock right after timing; 0 = unknown
  std::string error;            ///< why there is no time; empty where there is one
  bool device_lost = false;     ///< after the error nothing ran in the process any more
  std::vector<std::pair<std::string, double>> schedules;  ///< medians of other schedules in their best configuration
  std::optional<std::vector<RivalRow>> rivals;            ///< none where nobody asked for them
  std::string verdict;                                    ///< against the fastest rival; empty without one
};

Result<RowFile> open_results(const std::filesystem::path&, const ResultsHeader&);
RowFile::Json results_row(const ResultsRow&);
/// Whether the file has a time for this problem, and, where `rivals` are asked for, whether they were tried.
bool has_time(const RowFile&, const ConvProblem&, bool rivals);
/// Whether a run ended at this problem because the device was gone, with rivals in it.
bool lost_device(const RowFile&, const ConvProblem&);

}  // namespace sl::tool
