#include "routing/decision.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "routing/decision_json.hpp"

namespace sl {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t schema_version = 1;

constexpr std::array<std::pair<Origin, std::string_view>, 7> origins = {{{Origin::none, "none"},
                                                                         {Origin::store, "store"},
                                                                         {Origin::shipped, "shipped"},
                                                                         {Origin::tuned, "tuned"},
                                                                         {Origin::heuristic, "heuristic"},
                                                                         {Origin::base, "base"},
                                                                         {Origin::pinned, "pinned"}}};
constexpr std::array<std::pair<Match, std::string_view>, 4> matches = {{{Match::none, "none"},
                                                                        {Match::exact, "exact"},
                                                                        {Match::other_driver, "other_driver"},
                                                                        {Match::other_candidates, "other_candidates"}}};
constexpr std::array<std::pair<Verdict, std::string_view>, 3> verdicts = {
    {{Verdict::optional, "OPTIONAL"}, {Verdict::required, "REQUIRED"}, {Verdict::unsupported, "UNSUPPORTED"}}};

template <class T, std::size_t N>
std::string_view word_of(const std::array<std::pair<T, std::string_view>, N>& table, T value) {
  for (const auto& [one, word] : table)
    if (one == value) return word;
  return "none";
}

/// A field that holds one of a table's words; absent = the first.
template <class T, std::size_t N>
T word_field(JsonFields& fields, std::string_view key, const std::array<std::pair<T, std::string_view>, N>& table,
             bool required) {
  const auto view = fields.value(key, required);
  if (!view) return table.front().first;
  std::string known;
  for (const auto& [one, word] : table) {
    if (view->json() == word) return one;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  fields.fail(view->wrong("one of " + known + " would be right"));
  return table.front().first;
}

ordered_json candidate_json(const CandidateRecord& row) {
  ordered_json out;
  out["schedule"] = row.schedule;
  out["config"] = row.config;
  out["outcome"] = row.outcome;
  out["median_us"] = json_real(row.median_us);
  out["low_us"] = json_real(row.low_us);
  out["high_us"] = json_real(row.high_us);
  out["registers"] = row.registers;
  out["spill_bytes"] = row.spill_bytes;
  out["smem"] = row.smem;
  out["error_over_bound"] = json_real(row.error_over_bound);
  if (row.predicted > 0) out["predicted"] = json_real(row.predicted);
  return out;
}

Result<CandidateRecord> candidate_from(const JsonView& view) {
  JsonFields fields(view);
  CandidateRecord row;
  row.schedule = fields.text("schedule");
  row.config = fields.text("config");
  row.outcome = fields.text("outcome");
  row.median_us = fields.real("median_us", 0.0);
  row.low_us = fields.real("low_us", 0.0);
  row.high_us = fields.real("high_us", 0.0);
  row.registers = fields.count("registers", 0);
  row.spill_bytes = fields.count("spill_bytes", 0);
  row.smem = fields.count("smem", 0);
  row.error_over_bound = fields.real("error_over_bound", 0.0);
  row.predicted = fields.real("predicted", 0.0);
  SL_TRY(fields.finish_tolerant());
  return row;
}

Result<ScheduleRefusal> refusal_from(const JsonView& view) {
  JsonFields fields(view);
  ScheduleRefusal refusal{fields.text("schedule"), fields.text("reason")};
  SL_TRY(fields.finish_tolerant());
  return refusal;
}

/// An array of records, absent = empty.
template <class T>
std::vector<T> records(JsonFields& fields, std::string_view key, Result<T> (*read)(const JsonView&)) {
  std::vector<T> out;
  const auto view = fields.value(key, false);
  if (!view) return out;
  const auto items = view->items();
  if (!items.ok()) {
    fields.fail(items.error());
    return out;
  }
  for (const JsonView& item : items.value()) {
    Result<T> record = read(item);
    if (!record.ok()) {
      fields.fail(record.error());
      return out;
    }
    out.push_back(std::move(record).value());
  }
  return out;
}

}  // namespace

std::string_view name(Origin origin) { return word_of(origins, origin); }
std::string_view name(Match match) { return word_of(matches, match); }

ordered_json decision_json(const Decision& decision) {
  ordered_json out;
  out["schema"] = schema_version;
  out["problem"] = decision.problem;
  out["device"] = decision.device;
  out["verdict"] = name(decision.verdict);
  out["route"] = decision.route;
  out["rule"] = decision.rule;
  out["table"] = decision.table;
  if (!decision.heuristic.empty()) out["heuristic"] = decision.heuristic;
  out["reason"] = decision.reason;
  out["schedule"] = decision.schedule;
  out["config"] = decision.config;
  out["origin"] = name(decision.origin);
  out["match"] = name(decision.match);
  out["candidates"] = ordered_json::array();
  for (const CandidateRecord& row : decision.candidates) out["candidates"].push_back(candidate_json(row));
  out["refusals"] = ordered_json::array();
  for (const ScheduleRefusal& refusal : decision.refusals)
    out["refusals"].push_back({{"schedule", refusal.schedule}, {"reason", refusal.reason}});
  out["searched"] = decision.searched;
  out["driver"] = decision.driver;
  out["compiler"] = decision.compiler;
  out["arch_note"] = decision.arch_note;
  out["candidate_set"] = decision.candidate_set.hex();
  out["schedule_digest"] = decision.schedule_digest.hex();
  out["noise_floor"] = json_real(decision.noise_floor);
  out["baseline_us"] = json_real(decision.baseline_us);
  out["budget_ms"] = json_real(decision.budget_ms);
  out["partial"] = decision.partial;
  return out;
}

Result<Decision> decision_from(const JsonView& view) {
  JsonFields fields(view);
  SL_TRY(fields.schema(schema_version));
  Decision decision;
  decision.problem = fields.text("problem");
  decision.device = fields.text("device");
  decision.verdict = word_field(fields, "verdict", verdicts, true);
  decision.route = fields.text("route");
  decision.rule = fields.text("rule", "");
  decision.table = fields.text("table", "");
  decision.heuristic = fields.text("heuristic", "");
  decision.reason = fields.text("reason", "");
  decision.schedule = fields.text("schedule", "");
  decision.config = fields.text("config", "");
  decision.origin = word_field(fields, "origin", origins, false);
  decision.match = word_field(fields, "match", matches, false);
  decision.candidates = records<CandidateRecord>(fields, "candidates", candidate_from);
  decision.refusals = records<ScheduleRefusal>(fields, "refusals", refusal_from);
  decision.searched = fields.texts("searched", std::vector<std::string>{});
  decision.driver = fields.text("driver", "");
  decision.compiler = fields.text("compiler", "");
  decision.arch_note = fields.text("arch_note", "");
  decision.candidate_set = fields.digest("candidate_set", Digest{});
  decision.schedule_digest = fields.digest("schedule_digest", Digest{});
  decision.noise_floor = fields.real("noise_floor", 0.0);
  decision.baseline_us = fields.real("baseline_us", 0.0);
  decision.budget_ms = fields.real("budget_ms", 0.0);
  decision.partial = fields.boolean("partial", false);
  SL_TRY(fields.finish_tolerant());
  return decision;
}

std::string to_json(const Decision& decision, bool pretty) { return dump_json(decision_json(decision), pretty); }

Result<Decision> decision_from_json(std::string_view text) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, "decision"));
  return decision_from(JsonView(document, "decision"));
}

}  // namespace sl
