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
  /// Rows of a problem that several tables have: the one tuned with the larger budget stands.
  std::size_t duplicates = 0;
};
/// Joins tables of one device, tuned with one driver and one build of each schedule, into `out`, which may be one of
/// them. What does not belong together is Code::invalid and leaves `out` as it was: the message names both files, the
/// field and both values. Rows are kept as they are, sorted by problem, so that the order of `in` does not matter.
Result<Merged> merge_tables(const std::vector<std::string>& in, const std::filesystem::path& out);

/// The calls of one of several processes that tune one table together, and the file that it writes.
struct JobShare {
  std::string part;
  std::vector<std::string> problems;
};
/// Gives each job the rows of `table` that are of its calls, so that those that still apply are not tuned again.
/// Without a table, and where a job's file stands already, nothing is done.
Status share_table(const std::string& table, const std::vector<JobShare>&);
/// Puts what the jobs wrote into `table`; rows of other calls stay, as they do where one process tunes.
Result<Merged> join_shares(const std::vector<std::string>& parts, const std::string& table);

}  // namespace sl::tool
