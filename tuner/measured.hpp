// Reading rows that hold Sluice's time and rivals' times: files of `sluice bench` (one JSON object), and of
// bench/compare_torch.py (a JSON object a line).
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "routing/derive.hpp"

namespace sl::tool {

struct MeasuredFile {
  std::string gpu, baseline, versions;
  int capability = 0;
  std::vector<MeasuredCall> calls;  ///< a call that failed or was inaccurate counts as infinitely slow: never taken
  std::int64_t failed = 0;
};

/// Rows of all files together. Files of different GPUs, and what is not such a row, are Code::invalid: the message
/// names the file and the line.
Result<MeasuredFile> read_measured(const std::vector<std::string>& paths);

}  // namespace sl::tool
