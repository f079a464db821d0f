#include <nlohmann/json.hpp>

#include "routing/decision_json.hpp"
#include "routing/decision_store.hpp"

namespace sl {
namespace {

constexpr std::int64_t schema_version = 1;

}  // namespace

Result<DecisionTable> DecisionTable::from_json(std::string_view text, std::string_view origin) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, origin));
  const JsonView root(document, origin);
  JsonFields fields(root);
  SL_TRY(fields.schema(schema_version));
  (void)fields.text("note", "");
  const auto device_view = fields.value("device", true);
  const auto decisions = fields.value("decisions", true);
  SL_TRY(fields.finish());
  SL_ASSIGN(const DeviceInfo device,
            parse_device_info(device_view->json().dump(), std::string(origin) + ": " + device_view->path()));
  SL_ASSIGN(const std::vector<JsonView> items, decisions->items());

  DecisionTable table;
  for (const JsonView& item : items) {
    SL_ASSIGN(Decision decision, decision_from(item));
    if (decision.device != device.name)
      return item.error("device is \"" + decision.device + "\", the table's is \"" + device.name + "\"");
    const Result<ConvProblem> problem = parse(decision.problem);
    if (!problem.ok()) return item.error("problem \"" + decision.problem + "\": " + problem.error().message);
    if (decision.schedule.empty() || decision.route != "take") continue;  // not served by Sluice: nothing to replay
    if (!Config::parse(decision.config))
      return item.error("config is \"" + decision.config + "\", \"knob=value,...\" would be right");
    // Two batches of one bucket are one key; the first row stands.
    table.rows_.emplace(decision_key(problem.value(), device), std::move(decision));
  }
  return table;
}

Result<DecisionTable> DecisionTable::load(const std::string& path) {
  SL_ASSIGN(const std::string text, read_text_file(path));
  return from_json(text, path);
}

std::optional<Found> DecisionTable::find(const ConvProblem& problem, const DeviceInfo& device,
                                         const std::string& driver, const CandidateSet& set) const {
  const auto row = rows_.find(decision_key(problem, device));
  if (row == rows_.end()) return std::nullopt;
  const Match match = match_level(row->second, problem, device, driver, set);
  if (match == Match::none) return std::nullopt;
  return Found{row->second, match};
}

std::string DecisionTable::to_json(const DeviceInfo& device, const std::vector<Decision>& decisions) {
  nlohmann::ordered_json out;
  out["schema"] = schema_version;
  out["device"] = nlohmann::ordered_json::parse(sl::to_json(device));
  out["decisions"] = nlohmann::ordered_json::array();
  for (const Decision& decision : decisions) out["decisions"].push_back(decision_json(decision));
  return dump_json(out, true);
}

}  // namespace sl
