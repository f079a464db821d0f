#include "tuner/tables.hpp"

#include <map>
#include <utility>

#include "core/json_reader.hpp"
#include "routing/decision_store.hpp"
#include "tuner/agreement.hpp"

namespace sl::tool {
namespace {

using Json = RowFile::Json;

Result<Json> read_table(const std::string& path) {
  SL_ASSIGN(const std::string text, read_text_file(path));
  // The library's own reader says what is wrong with a table; the rows are then taken as they stand.
  SL_ASSIGN(const DecisionTable checked, DecisionTable::from_json(text, path));
  (void)checked;
  Json table = Json::parse(text, nullptr, false);
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
  shape.check = [](const std::string& text, const std::string& origin) -> Status {
    const auto table = DecisionTable::from_json(text, origin);
    return table.ok() ? Status() : Status(table.error());
  };
  return RowFile::open(path, std::move(shape));
}

namespace {

struct Joined {
  Merged merged;
  Json header;
  std::map<std::string, Json> rows;
};

Result<Joined> join(const std::vector<std::string>& in) {
  Joined out;
  Agreement agreement;
  for (const std::string& path : in) {
    SL_ASSIGN(Json table, read_table(path));
    SL_TRY(agreement.check("device", table["device"].dump(), path));
    for (Json& row : table["decisions"]) {
      SL_TRY(agree(agreement, row, path));
      const std::string problem = row["problem"];
      const auto [at, fresh] = out.rows.try_emplace(problem, row);
      if (fresh) continue;
      ++out.merged.duplicates;
      if (row.value("budget_ms", 0.0) > at->second.value("budget_ms", 0.0)) at->second = std::move(row);
    }
    table.erase("decisions");
    if (out.header.is_null()) out.header = std::move(table);
  }
  return out;
}

Result<Merged> written(Joined joined, const std::filesystem::path& out) {
  joined.merged.rows = joined.rows.size();
  SL_TRY(write_rows(out, joined.header, "decisions", joined.rows));
  return joined.merged;
}

}  // namespace

Result<Merged> merge_tables(const std::vector<std::string>& in, const std::filesystem::path& out) {
  SL_ASSIGN(Joined joined, join(in));
  return written(std::move(joined), out);
}

Status share_table(const std::string& table, const std::vector<JobShare>& shares) {
  std::error_code ignored;
  if (!std::filesystem::exists(table, ignored)) return {};
  SL_ASSIGN(Json known, read_table(table));
  std::map<std::string, Json> rows;
  for (Json& row : known["decisions"]) {
    const std::string problem = row["problem"];
    rows.try_emplace(problem, std::move(row));
  }
  known.erase("decisions");
  for (const JobShare& share : shares) {
    if (std::filesystem::exists(share.part, ignored)) continue;  // what a killed run had is newer
    std::map<std::string, Json> mine;
    for (const std::string& problem : share.problems) {
      if (const auto row = rows.find(problem); row != rows.end()) mine.insert(*row);
    }
    if (!mine.empty()) SL_TRY(write_rows(share.part, known, "decisions", mine));
  }
  return {};
}

Result<Merged> join_shares(const std::vector<std::string>& parts, const std::string& table) {
  SL_ASSIGN(Joined joined, join(parts));
  std::error_code ignored;
  if (std::filesystem::exists(table, ignored)) {
    SL_ASSIGN(Json known, read_table(table));
    for (Json& row : known["decisions"]) {
      const std::string problem = row["problem"];
      joined.rows.try_emplace(problem, std::move(row));
    }
  }
  return written(std::move(joined), table);
}

}  // namespace sl::tool
