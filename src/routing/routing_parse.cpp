// From JSON to a RoutingTable. What is not understood is an error that names the file, the place, the value and what
// would be right: a rule that silently did not apply would cost far more than a refused file.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json_reader.hpp"
#include "routing/features.hpp"
#include "routing/routing.hpp"

namespace sl {
namespace {

constexpr std::int64_t schema_version = 1;

Result<Threshold> number_set(const JsonView& view, const std::string& feature) {
  SL_ASSIGN(const std::vector<JsonView> items, view.items());
  Threshold threshold;
  threshold.feature = feature;
  for (const JsonView& item : items) {
    SL_ASSIGN(const double value, item.number());
    threshold.values.push_back(value);
  }
  if (threshold.values.empty()) return view.wrong("at least one number would be right");
  return threshold;
}

Result<Threshold> number_range(const JsonView& view, const std::string& feature) {
  if (view.json().is_array()) return number_set(view, feature);
  if (!view.json().is_object()) {
    return view.wrong("{\"min\": number, \"max\": number} or [number, ...] would be right for a number");
  }
  JsonFields fields(view);
  Threshold threshold;
  threshold.feature = feature;
  for (const auto& [key, bound] : {std::pair("min", &threshold.min), std::pair("max", &threshold.max)}) {
    if (const auto found = fields.value(key, false)) {
      SL_ASSIGN(*bound, found->number());
    }
  }
  SL_TRY(fields.finish());
  if (!threshold.min && !threshold.max) return view.wrong("at least one of min and max would be right");
  if (threshold.min && threshold.max && *threshold.min > *threshold.max) return view.wrong("min <= max would be right");
  return threshold;
}

Result<Threshold> name_set(const JsonView& view, const NameFeature& feature) {
  SL_ASSIGN(const std::vector<JsonView> items, view.items());
  Threshold threshold;
  threshold.feature = feature.name;
  for (const JsonView& item : items) {
    SL_ASSIGN(std::string word, item.text());
    if (!feature.known(word)) return item.wrong("one of " + std::string(feature.meaning) + " would be right");
    threshold.any_of.push_back(std::move(word));
  }
  if (threshold.any_of.empty())
    return view.wrong("at least one of " + std::string(feature.meaning) + " would be right");
  return threshold;
}

Result<std::vector<Threshold>> conditions(const JsonView& view) {
  SL_ASSIGN(const auto members, view.members());
  std::vector<Threshold> out;
  for (const auto& [feature, condition] : members) {
    if (find_number_feature(feature) != nullptr) {
      SL_ASSIGN(Threshold threshold, number_range(condition, feature));
      out.push_back(std::move(threshold));
    } else if (const NameFeature* words = find_name_feature(feature)) {
      SL_ASSIGN(Threshold threshold, name_set(condition, *words));
      out.push_back(std::move(threshold));
    } else {
      return condition.error("there is no feature \"" + feature + "\"; there are: " + feature_list());
    }
  }
  return out;
}

Result<Evidence> evidence(const JsonView& view) {
  JsonFields fields(view);
  Evidence out;
  out.cases = fields.integer("cases", 1, 1'000'000'000);
  out.min_speedup = fields.number("min_speedup");
  out.median_speedup = fields.number("median_speedup");
  out.baseline = fields.text("baseline");
  out.versions = fields.text("versions");
  SL_TRY(fields.finish());
  if (!(out.min_speedup > 0)) return view.wrong("min_speedup above 0 would be right");
  if (out.median_speedup < out.min_speedup) return view.wrong("median_speedup >= min_speedup would be right");
  return out;
}

Result<std::vector<std::string>> schedule_names(const JsonView& view) {
  SL_ASSIGN(const std::vector<JsonView> items, view.items());
  std::vector<std::string> out;
  for (const JsonView& item : items) {
    SL_ASSIGN(std::string schedule, item.text());
    if (find_schedule(schedule) == nullptr) {
      std::string known;
      for (const Schedule* one : all_schedules()) known += (known.empty() ? "" : ", ") + std::string(one->name);
      return item.wrong("a schedule would be right: " + known);
    }
    if (std::find(out.begin(), out.end(), schedule) != out.end())
      return item.wrong("each schedule once would be right");
    out.push_back(std::move(schedule));
  }
  return out;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

Result<Rule> parse_rule(const JsonView& view, bool needs_evidence) {
  JsonFields fields(view);
  Rule rule;
  rule.name = fields.text("name");
  const std::string route = fields.text("route");
  rule.note = fields.text("note", "");
  const auto when = fields.value("when", true);
  const auto schedules = fields.value("schedules", false);
  const auto proof = fields.value("evidence", false);
  SL_TRY(fields.finish());
  if (rule.name.empty()) return view.error("has an empty name");
  if (std::any_of(rule.name.begin(), rule.name.end(), is_control)) {  // names are printed to terminals
    return view.error("has a control character in its name; printable text would be right");
  }
  if (route != "take" && route != "keep")
    return view.error("route is \"" + route + "\", \"take\" or \"keep\" would be right");
  rule.take = route == "take";
  SL_ASSIGN(rule.when, conditions(*when));
  if (schedules) {
    if (!rule.take) return schedules->error("a rule that keeps has no schedules");
    SL_ASSIGN(rule.schedules, schedule_names(*schedules));
  }
  if (proof) {
    SL_ASSIGN(rule.evidence, evidence(*proof));
  } else if (rule.take && needs_evidence) {
    return view.error(
        "takes without \"evidence\" (cases, min_speedup, median_speedup, baseline, versions); only a table "
        "for device \"any\" may");
  }
  return rule;
}

}  // namespace

Result<RoutingTable> RoutingTable::from_json(std::string_view text, std::string_view origin) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, origin));
  const JsonView root(document, origin);
  JsonFields fields(root);
  SL_TRY(fields.schema(schema_version));

  RoutingTable table;
  table.origin_ = origin;
  table.note_ = fields.text("note", "");
  const auto device = fields.value("device", true);
  const auto measured = fields.value("measured", false);
  const auto rules = fields.value("rules", true);
  SL_TRY(fields.finish());

  if (device->json() == "any") {
    table.any_device_ = true;
  } else if (!device->json().is_object()) {
    return device->wrong("\"any\" or {\"name\": ..., \"capability\": ...} would be right");
  } else {
    JsonFields names(*device);
    table.device_name_ = names.text("name");
    table.capability_ = static_cast<int>(names.integer("capability", 50, 9990));
    SL_TRY(names.finish());
  }
  if (measured) {
    SL_ASSIGN(table.measured_, conditions(*measured));
  }
  SL_ASSIGN(const std::vector<JsonView> items, rules->items());
  std::set<std::string> seen;
  for (const JsonView& item : items) {
    SL_ASSIGN(Rule rule, parse_rule(item, !table.any_device_));
    if (!seen.insert(rule.name).second) return item.error("name \"" + rule.name + "\" was used before; each name once");
    table.rules_.push_back(std::move(rule));
  }
  return table;
}

}  // namespace sl
