#include "tuner/tables.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "routing/decision_store.hpp"
#include "tuner/agreement.hpp"

namespace sl::tool {
namespace {

using Json = RowFile::Json;

Result<Json> read_table(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{Code::invalid, path + ": cannot be read"};
  std::ostringstream text;
  text << file.rdbuf();
  // The library's own reader says what is wrong with a table; the rows are then taken as they stand.
  SL_ASSIGN(const DecisionTable checked, DecisionTable::from_json(text.str(), path));
  (void)checked;
  Json table = Json::parse(text.str(), nullptr, false);
  if (table.is_discarded()) return Error{Code::invalid, path + ": not JSON"};
  return table;
}

Status agree(Agreement& agreement, const Json& row, const std::string& path) {
  SL_TRY(agreement.check("driver", row.value("driver", ""), path));
  const std::string schedule = row.value("schedule", "");
  if (schedule.empty()) return {};
  return agreement.check("the build of schedule " + schedule, row.value("schedule_digest", ""), path);
}

}  // namespace

Result<RowFile> open_table(const std::filesystem::path& path, const DeviceInfo& device) {
  RowFile::Shape shape;
  shape.writer = "tune";
  shape.list = "decisions";
  shape.key = "problem";
  shape.header = {{"schema", 1}, {"device", Json::parse(to_json(device))}};
  shape.foreign = [device](const Json& there) -> std::string {
    const auto other = parse_device_info(there.at("device").dump(), "device");
    if (!other.ok()) return other.error().message;
    if (other->decision_digest() == device.decision_digest()) return {};
    return "a table of " + other->name + ", but this device is " + device.name +
           (other->name == device.name ? " of another make-up" : "");
  };
  return RowFile::open(path, std::move(shape));
}

Result<Merged> merge_tables(const std::vector<std::string>& in, const std::filesystem::path& out) {
  Merged merged;
  Agreement agreement;
  std::map<std::string, Json> rows;
  Json header;
  for (const std::string& path : in) {
    SL_ASSIGN(Json table, read_table(path));
    SL_TRY(agreement.check("device", table["device"].dump(), path));
    for (Json& row : table["decisions"]) {
      SL_TRY(agree(agreement, row, path));
      const std::string problem = row["problem"];
      const auto [at, fresh] = rows.try_emplace(problem, row);
      if (fresh) continue;
      ++merged.duplicates;
      if (row.value("budget_ms", 0.0) > at->second.value("budget_ms", 0.0)) at->second = std::move(row);
    }
    table.erase("decisions");
    if (header.is_null()) header = std::move(table);
  }
  merged.rows = rows.size();
  SL_TRY(write_rows(out, header, "decisions", rows));
  return merged;
}

}  // namespace sl::tool
