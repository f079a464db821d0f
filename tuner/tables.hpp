// Decision tables as files: growing one by tuning, joining the shards of a fleet.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "device/device_info.hpp"
#include "tuner/row_file.hpp"

namespace sl::tool {

/// A decision table (docs/file-formats.md) to add rows to. A table of another device is Code::invalid.
Result<RowFile> open_table(const std::filesystem::path&, const DeviceInfo&);

struct Merged {
  std::size_t rows = 0;  ///< in the result
  std::size_t duplicates =
      0;  ///< rows of a problem that several tables have: the one tuned with the larger budget stands
};
/// Joins tables of one device, tuned with one driver and one build of each schedule, into `out`, which may be one of
/// them. What does not belong together is Code::invalid and leaves `out` as it was: the message names both files, the
/// field and both values. Rows are kept as they are, sorted by problem, so that the order of `in` does not matter.
Result<Merged> merge_tables(const std::vector<std::string>& in, const std::filesystem::path& out);

}  // namespace sl::tool
