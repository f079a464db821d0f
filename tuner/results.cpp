#include "tuner/results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/json_reader.hpp"

namespace sl::tool {
namespace {

using Json = RowFile::Json;

double finite(double value) { return std::isfinite(value) ? value : std::numeric_limits<double>::max(); }

void add_times(Json& out, const Timed& time) {
  out["time_us"] = time.median;
  out["spread_us"] = {time.low, time.high};
  out["interval_us"] = {time.least, time.most};
}

/// How one rival came by its time: the engine that was kept, and every one that was not.
Json rival_json(const RivalRow& rival) {
  const cudnn::Chosen& chosen = rival.chosen;
  Json out = Json::object();
  if (rival.time) {
    add_times(out, *rival.time);
    const cudnn::Attempt& best = chosen.attempts[chosen.best];
    out["engine"] = best.engine;
    out["mode"] = best.mode;
    out["notes"] = best.notes;
    out["workspace"] = best.workspace_bytes;
    out["error_over_bound"] = finite(best.error_over_bound);
    // Both from the rotation in which the engines were compared, as is best_us.
    if (chosen.heuristic_us() > 0) out["heuristic_us"] = chosen.heuristic_us();
    if (chosen.best_heuristic_us() > 0) out["best_heuristic_us"] = chosen.best_heuristic_us();
    out["best_us"] = best.us;
  }
  out["engines"] = rival.every_engine ? "all" : "heuristic";
  out["tried"] = chosen.attempts.size();
  Json dropped = Json::array();
  for (const cudnn::Attempt& one : chosen.attempts) {
    if (one.outcome == "timed" || one.outcome == "slow") continue;
    dropped.push_back({{"engine", one.engine}, {"mode", one.mode}, {"notes", one.notes}, {"outcome", one.outcome}});
  }
  out["dropped"] = std::move(dropped);
  if (!chosen.error.empty()) out["error"] = chosen.error;
  return out;
}

void add_rivals(Json& out, const std::vector<RivalRow>& rivals) {
  Json times = Json::object(), details = Json::object();
  for (const RivalRow& rival : rivals) {
    if (rival.time) times[rival.name] = rival.time->median;
    details[rival.name] = rival_json(rival);
  }
  out["rivals"] = std::move(times);
  out["rival_details"] = std::move(details);
}

/// What of a header must be equal; a file of before a key was written has its default.
std::string differs(const Json& there, const Json& here) {
  const Json defaults = {{"gpu", nullptr}, {"driver", nullptr}, {"protocol", "cold"}};
  for (const auto& [key, fallback] : defaults.items()) {
    const Json stands = fallback.is_null() ? there.at(key) : there.value(key, fallback);
    if (stands != here.at(key)) {
      return key + " = " + stands.dump() + ", but this machine has " + here.at(key).dump();
    }
  }
  // Rows without cuDNN may be added to; rows with another version, or none, do not go beside those that have one.
  const std::int64_t cudnn = there.value("cudnn", std::int64_t{0}), ours = here.at("cudnn");
  if (cudnn != 0 && cudnn != ours) {
    return "cudnn = " + std::to_string(cudnn) + ", but this run has " + (ours == 0 ? "none" : std::to_string(ours));
  }
  return {};
}

/// What others read of a row.
Status check_row(const JsonView& view) {
  JsonFields row(view);
  const std::string signature = row.text("signature");
  for (const char* key : {"time_us", "copy_us", "floor_us"}) {
    if (!row.has(key)) continue;
    const double us = row.number(key);
    SL_TRY(row.finish_tolerant());  // what is no number has no value to speak of
    if (us <= 0) return row.value(key, true)->wrong("a time above 0 would be right");
  }
  if (row.has("device_lost")) (void)row.boolean("device_lost");
  if (const auto rivals = row.value("rivals", false)) {
    SL_ASSIGN(const auto times, rivals->members());
    for (const auto& [name, time] : times) {
      SL_ASSIGN(const double us, time.number());
      if (us <= 0) return time.wrong("a time above 0 would be right");
    }
  }
  SL_TRY(row.finish_tolerant());
  const auto problem = parse(signature);
  return problem.ok() ? Status() : Status(view.error("signature: " + problem.error().message));
}

Status check_results(const std::string& text, const std::string& origin) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, origin));
  const JsonView root(document, origin);
  JsonFields fields(root);
  const auto rows = fields.value("rows", true);
  SL_TRY(fields.finish_tolerant());
  SL_ASSIGN(const auto items, rows->items());
  for (const JsonView& row : items) SL_TRY(check_row(row));
  return {};
}

}  // namespace

Result<RowFile> open_results(const std::filesystem::path& path, const ResultsHeader& header) {
  RowFile::Shape shape;
  shape.writer = "bench";
  shape.list = "rows";
  shape.key = "signature";
  shape.header = {
      {"gpu", header.gpu},        {"capability", header.capability}, {"driver", header.driver},
      {"sluice", header.version}, {"commit", header.commit},         {"protocol", header.warm ? "warm" : "cold"},
      {"cudnn", header.cudnn},    {"fma_per_s", header.peaks.fma},   {"mma_macs_per_s", header.peaks.mma}};
  shape.foreign = [here = shape.header](const Json& there) { return differs(there, here); };
  shape.check = check_results;
  return RowFile::open(path, std::move(shape));
}

Json results_row(const ResultsRow& row) {
  Json out = {{"problem", row.problem.descriptor()},
              {"dtype", name(row.problem.dtype)},
              {"layout", name(row.problem.layout)},
              {"signature", row.problem.to_string()}};
  if (row.error.empty()) {
    add_times(out, *row.time);
    out["copy_us"] = row.copy_us;
    out["floor_us"] = row.floor_us;
    out["schedule"] = row.schedule;
    out["config"] = row.config;
    out["error_over_bound"] = finite(row.error_over_bound);
    out["registers"] = row.registers;
    out["smem"] = row.smem;
    out["schedules"] = Json::object();
    for (const auto& [name, us] : row.schedules) out["schedules"][name] = us;
  } else {
    out["error"] = row.error;
    if (row.device_lost) out["device_lost"] = true;
  }
  out["prepare_ms"] = row.prepare_ms;
  out["compiles"] = row.compiles;
  if (row.clock_mhz > 0) out["clock_mhz"] = row.clock_mhz;
  if (row.rivals) add_rivals(out, *row.rivals);
  if (!row.verdict.empty()) out["verdict"] = row.verdict;
  return out;
}

bool has_time(const RowFile& file, const ConvProblem& problem, bool rivals) {
  const Json* const row = file.find(problem.to_string());
  return row != nullptr && row->contains("time_us") && (!rivals || row->contains("rivals"));
}

bool lost_device(const RowFile& file, const ConvProblem& problem) {
  const Json* const row = file.find(problem.to_string());
  return row != nullptr && row->value("device_lost", false) && row->contains("rivals");
}

}  // namespace sl::tool
