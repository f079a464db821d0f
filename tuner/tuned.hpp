// Reading what tuning found out, for `sluice fit`: decision tables with every candidate's time, or rows that name the
// winner only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "routing/fit.hpp"

namespace sl::tool {

struct TunedFile {
  DeviceInfo device;
  std::string versions;  ///< driver, and the commit where the file says it
  std::vector<TunedCall> calls;
  std::size_t incomplete = 0;  ///< left out: a candidate was skipped (budget, memory), or none has a time
  std::size_t stale = 0;       ///< left out: won by what is no candidate of this build
  std::size_t failed = 0;      ///< left out: the call failed
  std::size_t duplicates =
      0;  ///< of one call in several places that with the larger budget stands, else that with the shorter first time
};

/// All files together: either decision tables, or files of `sluice bench` and bench/compare_torch.py (a JSON object a
/// line). Of one device, driver and build; tables of this program's own candidates. Anything else is Code::invalid: the
/// message names the file, the place and what would be right.
/// `passed`: as the tables' tuning read it, where it was not in children.
Result<TunedFile> read_tuned(const std::vector<std::string>& paths, std::shared_ptr<const Sanitized> passed);

}  // namespace sl::tool
